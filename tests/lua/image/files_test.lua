-- SPDX-License-Identifier: Apache-2.0
-- Files of pictures: JPEG, WebP and PNG as Pillow reads them; what is written; what is damaged, cut or too large.

local pg = require "perigee"

local folder = (debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or ".") .. "/data/"
local NAME = os.tmpname()
local files = {} -- by ending

local function path_of(ending)
  files[ending] = NAME .. "." .. ending
  return files[ending]
end

local function bytes_of(path)
  local file = assert(io.open(path, "rb"))
  local bytes = file:read "*a"
  file:close()
  return bytes
end

local function write(ending, bytes)
  local path = path_of(ending)
  local file = assert(io.open(path, "wb"))
  file:write(bytes)
  file:close()
  return path
end

-- A deterministic picture with edges and gradients.
local function picture(rows, columns, channels)
  local t = pg.arange(rows * columns * channels):reshape(rows, columns, channels)
  return ((t * 7):remainder(251)):to "uint8"
end

local SHAPES = { ["colour.jpg"] = 3, ["progressive.jpg"] = 3, ["grey.jpg"] = 1, ["inks.jpg"] = 3, ["lossy.webp"] = 3,
                 ["opacity.webp"] = 4 }

test("image.load: the pixels are Pillow's, from a path and from bytes", function(t)
  for name, channels in pairs(SHAPES) do
    local x, expected = pg.image.load(folder .. name), pg.image.load(folder .. name .. ".png")
    t.equal({ x.dtype, x.shape }, { "uint8", { 30, 41, channels } })
    t.ok(x:equal(expected), name)
    t.ok(pg.image.load(bytes_of(folder .. name)):equal(expected), name .. " from bytes")
    t.ok(pg.load(folder .. name).data:equal(x), name .. " by pg.load")
  end
end)

test("image.load: channels, smaller JPEGs, 16 bits", function(t)
  local colour, grey = pg.image.load(folder .. "colour.jpg"), pg.image.load(folder .. "grey.jpg")
  local opacity = pg.image.load(folder .. "opacity.webp")
  local function load(name, channels) return pg.image.load { folder .. name, channels = channels } end
  t.ok(load("grey.jpg", 3):equal(pg.cat({ grey, grey, grey }, 3)))
  t.ok(load("colour.jpg", 3):equal(colour))
  t.ok(load("colour.jpg", 4):equal(pg.cat({ colour, pg.full({ 30, 41, 1 }, 255, { dtype = "uint8" }) }, 3)))
  t.ok(load("opacity.webp", 3):equal(opacity:narrow(3, 1, 3)))
  t.ok(load("opacity.webp", 2):narrow(3, 2, 1):equal(opacity:narrow(3, 4, 1)))
  -- The opacity is the luma, as Pillow's mode L has it, of the colours before it.
  t.ok(load("opacity.webp", 1):equal(opacity:narrow(3, 4, 1)))
  for scale, shape in pairs { [2] = { 15, 21, 3 }, [4] = { 8, 11, 3 }, [8] = { 4, 6, 3 } } do
    t.equal(pg.image.load { folder .. "colour.jpg", scale = scale }.shape, shape)
  end
  pg.save(path_of "png", { x = pg.tensor({ { { 0 }, { 128 }, { 129 }, { 65535 } } }, { dtype = "int32" }) })
  t.equal(pg.image.load(files.png):totable(), { { { 0 }, { 0 }, { 1 }, { 255 } } })
  pg.save(files.png, { x = picture(4, 5, 1):squeeze(3) })
  t.equal(pg.image.load(files.png).shape, { 4, 5, 1 })
end)

test("image.save: what is without loss is read as the same, the rest as what looks alike", function(t)
  for ending, counts in pairs { png = { 1, 2, 3, 4 }, webp = { 3, 4 } } do
    for _, channels in ipairs(counts) do
      local x = picture(7, 9, channels)
      pg.image.save(path_of(ending), x)
      t.ok(pg.image.load(files[ending]):equal(x), ending .. channels)
      pg.image.save(files[ending], x:transpose(1, 2))
      t.ok(pg.image.load(files[ending]):equal(x:transpose(1, 2)), ending .. " of a view")
    end
  end
  local smooth = pg.image.load(folder .. "colour.jpg")
  local function far(x) return (x:to "float32" - smooth:to "float32"):abs():mean():item() end
  for _, ending in ipairs { "jpg", "jpeg", "webp" } do
    pg.image.save { path_of(ending), smooth, quality = 95 }
    local fine, size = far(pg.image.load(files[ending])), #bytes_of(files[ending])
    pg.image.save { files[ending], smooth, quality = 10 }
    t.ok(fine < 6 and far(pg.image.load(files[ending])) > fine, ending)
    t.ok(#bytes_of(files[ending]) < size, ending)
  end
  pg.image.save(path_of "jpg", smooth:narrow(3, 1, 1))
  t.equal(pg.image.load(files.jpg).shape, { 30, 41, 1 })
  pg.image.save(files.jpg, smooth:narrow(3, 1, 1):squeeze(3))
  t.equal(pg.image.load(files.jpg).shape, { 30, 41, 1 })
end)

test("pg.save and pg.load keep a JPEG's comment", function(t)
  pg.save(path_of "jpg", { x = picture(3, 4, 3) }, { notes = { Comment = "a first one", quality = 50 } })
  local _, note = pg.load(files.jpg)
  t.equal(note "Comment", "a first one")
  t.raises(function() pg.save(files.jpg, { x = picture(3, 4, 3) }, { notes = { Author = "me" } }) end,
           "a JPEG image has notes named quality and Comment")
end)

test("image.load and image.save: mistakes", function(t)
  local x = picture(4, 4, 3)
  for text, call in pairs {
    ['image.load: path must end in .jpg, .jpeg, .png or .webp, got "a.bmp"'] = function() pg.image.load "a.bmp" end,
    ["image.load: channels must be 1, 2, 3 or 4, got 5"] = function() pg.image.load { "a.png", channels = 5 } end,
    ["image.save: image must be uint8, got float32 (of numbers from 0 to 1: (t * 255):round()"] = function()
      pg.image.save("a.png", x:float())
    end,
    ["image.save: a PNG is written without loss"] = function() pg.image.save { "a.png", x, quality = 3 } end,
    ["quality must be from 1 to 100, got 0"] = function()
      pg.image.save { "a.jpg", x, quality = 0 }
    end,
    ["a JPEG image is a uint8 tensor [rows, columns] or [rows, columns, 1 or 3]"] = function()
      pg.image.save("a.jpg", picture(4, 4, 4))
    end,
    ["a WebP image is a uint8 tensor [rows, columns] or [rows, columns, 3 or 4]"] = function()
      pg.image.save("a.webp", picture(4, 4, 1))
    end,
    ["a side of a JPEG image has 1 to 65500"] = function()
      pg.image.save("a.jpg", pg.zeros { 1, 65501, 1, dtype = "uint8" })
    end,
    ["a side of a WebP image has 1 to 16383"] = function()
      pg.image.save("a.webp", pg.zeros { 0, 4, 3, dtype = "uint8" })
    end,
    ["option scale: expected 1, 2, 4 or 8, got 3"] = function()
      pg.image.load { folder .. "colour.jpg", scale = 3 }
    end,
  } do
    local e = t.raises(call)
    t.ok(e.message:find(text, 1, true) or tostring(e):find(text, 1, true), tostring(e))
    t.equal(e.code, "invalid_argument")
  end
  t.equal(t.raises(function() pg.image.load "/nowhere/at/all.jpg" end).code, "not_found")
end)

local function damaged(t, ending, bytes, text, options)
  local path = write(ending, bytes)
  local e = t.raises(function() pg.image.load(path, options) end)
  t.ok(e.message:find(path, 1, true) and e.message:find(text or "", 1, true), e.message)
  t.equal(e.code, "data_loss")
end

-- A 16-bit number of a file.
local function number(n) return string.char(math.floor(n / 256), n % 256) end

test("image.load: cut and damaged files, and such as claim too much", function(t)
  local jpeg, webp = bytes_of(folder .. "colour.jpg"), bytes_of(folder .. "lossy.webp")
  for name in pairs(SHAPES) do
    local bytes = bytes_of(folder .. name)
    for length = 0, #bytes - 1, 7 do damaged(t, name:match "%w+$", bytes:sub(1, length)) end
  end
  damaged(t, "jpg", jpeg:sub(1, -3), "the file ends at byte 1123, inside its data")
  damaged(t, "jpg", webp, "not a JPEG image")
  damaged(t, "webp", jpeg, "not a WebP image")
  damaged(t, "webp", bytes_of(folder .. "moving.webp"), "an animation; only single images are read")
  local at = jpeg:find("\255\192", 1, true) -- the frame's header: length, bits, rows, columns
  local function claiming(rows, columns) return jpeg:sub(1, at + 4) .. number(rows) .. number(columns) ..
                                                jpeg:sub(at + 9) end
  local peak = pg.memory.stats("cpu").peak
  damaged(t, "jpg", claiming(60000, 60000), "60000 x 60000 pixels are more than max_pixels, 268435456")
  damaged(t, "jpg", claiming(60000, 60000), "its 1125 bytes cannot hold the 60000 x 60000 pixels that it claims",
          { max_pixels = 2 ^ 40 })
  damaged(t, "jpg", claiming(30, 41), "41 x 30 pixels are more than max_pixels, 1229", { max_pixels = 1229 })
  damaged(t, "webp", webp, "41 x 30 pixels are more than max_pixels, 1229", { max_pixels = 1229 })
  t.equal(pg.memory.stats("cpu").peak, peak)
  damaged(t, "jpg", jpeg:sub(1, at + 3) .. "\12" .. jpeg:sub(at + 5), "precision 12") -- 12 bits a sample
  local e = t.raises(function() pg.image.load(jpeg:sub(1, 600)) end)
  t.ok(e.message:find("the bytes given: the file ends at byte 600", 1, true), e.message)
end)

-- 10,000 of each kind pass too: PERIGEE_IMAGE_MUTATIONS.
test("image.load: random damage is an error or another picture, never a crash", function(t)
  local state = 20
  local function draw(n)
    state = (state * 1103515245 + 12345) % 2 ^ 31
    return math.floor(state / 2 ^ 31 * n)
  end
  local names = {}
  for name in pairs(SHAPES) do names[#names + 1] = name end
  names[#names + 1] = "moving.webp"
  names[#names + 1] = "colour.jpg.png"
  table.sort(names)
  for _, name in ipairs(names) do
    local bytes = bytes_of(folder .. name)
    for _ = 1, tonumber(os.getenv "PERIGEE_IMAGE_MUTATIONS") or 150 do
      local mutated = bytes
      for _ = 1, 1 + draw(4) do
        local at, kind = 1 + draw(#mutated), draw(4)
        local piece = kind == 0 and "" or kind == 1 and mutated:sub(at, at + draw(20)) or string.char(draw(256))
        local dropped = kind == 1 and 0 or 1 + (kind == 0 and draw(9) or 0)
        mutated = mutated:sub(1, at - 1) .. piece .. mutated:sub(at + dropped)
      end
      local path = write(name:match "%w+$", mutated)
      local options = { max_pixels = 2 ^ 20 }
      if draw(3) == 0 then
        options = { max_pixels = 2 ^ 20, crop = { draw(15), draw(20), 15, 21 }, size = 4, draft = true }
      end
      local ok, found = pcall(pg.image.load, path, options)
      local is_outside = not ok and options.crop and found.message:find "is not inside of" -- of the header's new sides
      t.ok(ok or found.code == "data_loss" or is_outside, tostring(found))
      t.ok(not ok or found:numel() <= 2 ^ 22)
    end
  end
  for _, path in pairs(files) do os.remove(path) end
  os.remove(NAME)
end)
