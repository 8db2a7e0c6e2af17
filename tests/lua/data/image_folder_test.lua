-- SPDX-License-Identifier: Apache-2.0
-- data.image_folder: classes by folders, what is decoded, and files that are no pictures.

local pg = require "perigee"

local data, image = pg.data, pg.image
local root = os.tmpname() .. ".d"

local function picture(value, rows) return pg.full({ rows or 5, 7, 3 }, value, { dtype = "uint8" }) end

local function write(path, text)
  local file = assert(io.open(path, "wb"))
  file:write(text)
  file:close()
end

os.execute(("mkdir -p '%s/b cats/deep' '%s/a dogs' '%s/empty'"):format(root, root, root))
for i = 1, 3 do image.save(("%s/a dogs/%d.png"):format(root, i), picture(i)) end
image.save(root .. "/b cats/4.PNG", picture(4))
image.save(root .. "/b cats/deep/5.webp", picture(5, 9))
write(root .. "/b cats/notes.txt", "no picture")
write(root .. "/b cats/.hidden.png", "no picture")
write(root .. "/stray.png", "of no class")

test("image_folder: a class a folder, in the order of names, folders inside of it too", function(t)
  local ds = data.image_folder(root)
  t.equal(#ds, 5)
  local seen = {}
  for i = 1, #ds do seen[i] = { ds[i].x[1][1][1]:item(), ds[i].y } end
  t.equal(seen, { { 1, 0 }, { 2, 0 }, { 3, 0 }, { 4, 1 }, { 5, 1 } })
  t.equal({ ds:class_name(0), ds:shuffle(5):class_name(1) }, { "a dogs", "b cats" })
  t.equal({ ds[5].x.shape, ds[1].x.dtype }, { { 9, 7, 3 }, "uint8" })
  local e = t.raises(function() ds:class_name(2) end)
  t.ok(e.message:find("class_name: class must be from 0 to 1, got number 2", 1, true), e.message)
  t.equal(t.raises(function() data.range(3):class_name(0) end).code, "failed_precondition")
end)

test("image_folder: batches of one size, with workers the same", function(t)
  local function batches(options)
    options[1], options.size, options.channels, options.numbered = root, { 4, 6 }, 1, true
    local list = {}
    for _, b in data.image_folder(options):shuffle { 5, seed = 3 }:batch(2):each() do list[#list + 1] = b end
    return list
  end
  local plain, threaded = batches {}, batches { workers = 2 }
  t.equal({ #plain, #threaded, plain[1].x.shape }, { 3, 3, { 2, 4, 6, 1 } })
  for i, b in ipairs(plain) do
    for name, v in pairs(b) do t.ok(v:equal(threaded[i][name]), name) end
    local sample = b.sample[1]:item()
    t.equal({ b.x[1][1][1][1]:item(), b.y[1]:item() }, { sample, sample > 3 and 1 or 0 })
  end
end)

test("image_folder: pixels are those of image.load, whatever the file's channels", function(t)
  local folder = root .. ".pixels"
  os.execute(("mkdir -p '%s/a'"):format(folder))
  for channels = 1, 4 do
    local x = (pg.arange(24 * 32 * channels):float() * 1.7):fmod(256):to "uint8":reshape(24, 32, channels)
    image.save(("%s/a/%d.png"):format(folder, channels), x)
    if channels % 2 == 1 then image.save(("%s/a/%d.jpg"):format(folder, channels), x) end
  end
  local names = { "1.jpg", "1.png", "2.png", "3.jpg", "3.png", "4.png" }
  for channels = 1, 4 do
    for _, form in ipairs { {}, { size = { 7, 5 } }, { size = 6, draft = true, filter = "area" },
                            { workers = 2, on_error = "skip" }, { size = 40, workers = 1 } } do
      local options = { folder, channels = channels, numbered = true }
      for key, v in pairs(form) do options[key] = v end
      local seen = 0
      for i, sample in data.image_folder(options):each() do
        local wanted = image.load { ("%s/a/%s"):format(folder, names[i]), channels = channels, size = form.size,
                                    draft = form.draft, filter = form.filter }
        t.ok(sample.x:equal(wanted), names[i])
        t.equal({ sample.y, sample.sample, sample.rows }, { 0, i })
        seen = i
      end
      t.equal(seen, 6)
    end
  end
  local e = t.raises(function() data.image_folder { folder, channels = 5 } end)
  t.ok(e.message:find("channels must be 1, 2, 3 or 4, got 5", 1, true), e.message)
  os.execute(("rm -r '%s'"):format(folder))
end)

test("image_folder: a pass goes on where it was, and shards and parts are those of its files", function(t)
  for _, workers in ipairs { 0, 2 } do
    local ds = data.image_folder { root, workers = workers > 0 and workers or nil }:shuffle { seed = 4 }
    local iterator = ds:each()
    iterator()
    iterator()
    local state = iterator:state()
    iterator:close()
    local rest = {}
    for _, sample in ds:each { from = state } do rest[#rest + 1] = sample.x[1][1][1]:item() end
    ds:epoch(state.epoch - 1)
    local whole = {}
    for _, sample in ds:each() do whole[#whole + 1] = sample.x[1][1][1]:item() end
    t.equal(rest, { whole[3], whole[4], whole[5] })
  end
  local ds, seen = data.image_folder(root), {}
  for _, sample in ds:shard(2, 1):each() do seen[#seen + 1] = sample.x[1][1][1]:item() end
  t.equal(seen, { 2, 4 })
  local _, second = ds:split { 0.6, 0.4 }
  t.equal({ #second, second[1].x[1][1][1]:item() }, { 2, 4 })
end)

test("image_folder: mistakes, and damaged files by name", function(t)
  local e = t.raises(function() data.image_folder "/nowhere/at/all" end)
  t.equal(e.code, "not_found")
  t.ok(e.message:find('data.image_folder: there is no folder "/nowhere/at/all"', 1, true), e.message)
  e = t.raises(function() data.image_folder(root .. "/empty") end)
  t.ok(e.message:find("there are no pictures in the folders of", 1, true), e.message)
  write(root .. "/a dogs/2.png", "damaged")
  local ds = data.image_folder(root)
  e = t.raises(function() return ds[2] end)
  t.ok(e.code == "data_loss" and e.message:find(root .. "/a dogs/2.png", 1, true), e.message)
  e = t.raises(function()
    for _ in data.image_folder { root, workers = 2, size = 4 }:batch(5):each() do t.ok(false) end
  end)
  t.ok(tostring(e):find("2.png", 1, true), tostring(e))
  os.execute(("rm -r '%s'"):format(root))
end)
