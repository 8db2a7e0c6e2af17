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
