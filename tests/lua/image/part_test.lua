-- SPDX-License-Identifier: Apache-2.0
-- image.load with crop, size and draft: parts of JPEGs are those of the whole picture, and sizes are read from headers.

local pg = require "perigee"

local image = pg.image
local folder = (debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or ".") .. "/data/"
local NAME = os.tmpname()
local JPEGS = { "colour.jpg", "grey.jpg", "progressive.jpg", "inks.jpg" }

-- A larger picture, in several blocks each way, with edges everywhere.
local function large(channels)
  local t = pg.arange(97 * 131 * channels):reshape(97, 131, channels)
  return ((t * 13):remainder(241)):to "uint8"
end

local function paths()
  local list = {}
  for i, name in ipairs(JPEGS) do list[i] = folder .. name end
  for _, channels in ipairs { 1, 3 } do
    local path = NAME .. channels .. ".jpg"
    image.save(path, large(channels))
    list[#list + 1] = path
  end
  return list
end

test("image.load: a part of a JPEG is that of the whole, at every place and scale", function(t)
  local state = 7
  local function draw(n)
    state = state * 48271 % 2147483647
    return math.floor(state / 2147483647 * n)
  end
  for _, path in ipairs(paths()) do
    for _, scale in ipairs { 1, 2, 4, 8 } do
      local whole = image.load { path, scale = scale }
      local rows, columns = whole:size(1), whole:size(2)
      for _ = 1, 40 do
        local height, width = draw(rows) + 1, draw(columns) + 1
        local top, left = draw(rows - height + 1), draw(columns - width + 1)
        local part = pg.load(path, { scale = scale, top = top, left = left, height = height, width = width }).data
        if part:dim() == 2 then part = part:unsqueeze(3) end
        t.ok(part:equal(image.crop(whole, top, left, height, width)),
             ("%s at 1/%d: %d %d %d %d"):format(path, scale, top, left, height, width))
      end
    end
    t.equal(image.load { path, crop = { 3, 5, 8, 9 } }:totable(), image.crop(image.load(path), 3, 5, 8, 9):totable())
  end
end)

test("image.load: size is image.resize of the part; draft comes close", function(t)
  local path = paths()[6]
  local whole = image.load(path)
  t.ok(image.load { path, size = 20, filter = "bicubic" }:equal(image.resize(whole, 20, { filter = "bicubic" })))
  t.ok(image.load { path, crop = { 10, 20, 60, 70 }, size = { 16, 15 } }
            :equal(image.resize(image.crop(whole, 10, 20, 60, 70), { 16, 15 })))
  local png, colours = NAME .. ".png", image.resize(large(3), { 400, 500 }, { filter = "bicubic" })
  image.save(png, colours)
  t.ok(image.load { png, crop = { 1, 2, 30, 40 }, size = 8 }:equal(image.resize(image.crop(colours, 1, 2, 30, 40), 8)))
  local file = io.open(png, "rb")
  t.ok(image.load { file:read "*a", crop = { 1, 2, 30, 40 } }:equal(image.crop(colours, 1, 2, 30, 40)))
  file:close()
  local smooth = ((pg.arange(400):reshape(400, 1, 1) + pg.arange(500):reshape(1, 500, 1)):remainder(900) * 0.28)
  image.save { NAME .. "s.jpg", smooth:to "uint8":expand(400, 500, 3):contiguous(), quality = 95 }
  local exact = image.load { NAME .. "s.jpg", crop = { 31, 45, 301, 333 }, size = 64 }
  local draft = image.load { NAME .. "s.jpg", crop = { 31, 45, 301, 333 }, size = 64, draft = true }
  t.ok((exact:float() - draft:float()):abs():mean():item() < 1.5)
  for _, ending in ipairs { "1.jpg", "3.jpg", ".png", "s.jpg" } do os.remove(NAME .. ending) end
end)

test("image.sides: rows and columns from the header", function(t)
  for _, name in ipairs { "colour.jpg", "grey.jpg", "progressive.jpg", "inks.jpg", "lossy.webp", "opacity.webp",
                          "grey.jpg.png" } do
    t.equal({ image.sides(folder .. name) }, { 30, 41 }, name)
  end
  local bytes = image.load(folder .. "colour.jpg")
  for channels = 3, 4 do
    image.save(NAME .. ".webp", channels == 3 and bytes or pg.cat({ bytes, bytes:narrow(3, 1, 1) }, 3))
    t.equal({ image.sides(NAME .. ".webp") }, { 30, 41 })
  end
  local file = io.open(folder .. "colour.jpg", "rb")
  local text = file:read "*a"
  file:close()
  t.equal({ image.sides(text) }, { 30, 41 })
  t.equal(t.raises(function() image.sides(text:sub(1, 100)) end).code, "data_loss")
  t.equal(t.raises(function() image.sides "/nowhere/at/all.jpg" end).code, "not_found")
  os.remove(NAME .. ".webp")
  os.remove(NAME)
end)

test("image.load: mistakes with parts", function(t)
  local path = folder .. "colour.jpg"
  for text, call in pairs {
    ["image.load: crop must be {top, left, height, width} in whole pixels"] = function()
      image.load { path, crop = { 1, 2, 3 } }
    end,
    ["image.load: crop {0, 0, 31, 4} is not inside of 30 x 41"] = function()
      image.load { path, crop = { 0, 0, 31, 4 } }
    end,
    ["image.load: size must be 1 or more, got 0"] = function() image.load { path, size = 0 } end,
    ["image.load: scale is chosen by draft where crop or size is given"] = function()
      image.load { path, size = 3, scale = 2 }
    end,
    ["40 rows from 0 and 41 columns from 0 are not inside of 30 x 41 pixels"] = function()
      pg.load(path, { height = 40 })
    end,
    ['image.load: path must end in .jpg, .jpeg, .png or .webp, got "a.bmp"'] = function()
      image.load { "a.bmp", size = 3 }
    end,
  } do
    local e = t.raises(call)
    t.ok(tostring(e):find(text, 1, true), text .. "\n" .. tostring(e))
    t.equal(e.code, "invalid_argument")
  end
end)
