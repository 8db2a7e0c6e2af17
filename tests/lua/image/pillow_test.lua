-- SPDX-License-Identifier: Apache-2.0
-- pg.image's operations against what Pillow makes of the same pictures (data/pillow.npz, of pillow.py): the same bits.

local pg = require "perigee"

local image = pg.image
local folder = debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or "."
local known = pg.load(folder .. "/data/pillow.npz")

-- In parts: ROTATE/PICTURE/...
local function parts(name)
  local list = {}
  for part in name:gmatch "[^/]+" do list[#list + 1] = part end
  return list
end

-- Calls make(picture, parts, name) for all of a kind, on a device, and compares; floats within `far`.
local function compare(t, kind, make, options)
  options = options or {}
  local seen, wrong = 0, {}
  for name, expected in pairs(known) do
    local p = parts(name)
    if p[1] == kind and not name:find "#" then
      local x = known["x/" .. p[2]]:to(options.device or "cpu")
      local y = make(x, p, name):to "cpu"
      seen = seen + 1
      if y.shape ~= expected.shape and tostring(y.shape) ~= tostring(expected.shape) then
        wrong[#wrong + 1] = ("%s: %s, expected %s"):format(name, tostring(y.shape), tostring(expected.shape))
      else
        local far = (y:to "float64" - expected:to "float64"):abs():max():item()
        if far > (options.far or 0) then wrong[#wrong + 1] = ("%s: off by %g"):format(name, far) end
        if y.dtype ~= expected.dtype then wrong[#wrong + 1] = name .. ": " .. y.dtype end
      end
    end
  end
  table.sort(wrong)
  t.ok(seen > 0 and #wrong == 0, ("%s: %d of %d:\n%s"):format(kind, #wrong, seen, table.concat(wrong, "\n", 1,
                                                              math.min(#wrong, 12))))
end

local function resized(x, p, name)
  local rows, columns = p[4]:match "(%d+)x(%d+)"
  local box = known[name .. "#box"]
  return image.resize(x, { tonumber(rows), tonumber(columns) }, { filter = p[3], box = box and box:totable() })
end

test("image.resize: Pillow's bits, all filters, larger and smaller, of rectangles too", function(t)
  compare(t, "resize", resized)
  compare(t, "floats", function(x, p, name) return resized(x:to "float32" / 7, p, name) end, { far = 1e-5 })
end)

test("image.resize: the decomposition too", function(t)
  compare(t, "resize", resized, { device = "sim:0" })
end)

test("image.rotate and image.affine: Pillow's bits", function(t)
  compare(t, "rotate", function(x, p)
    return image.rotate(x, tonumber(p[4]), { filter = p[3], expand = p[5] == "1", fill = 77 })
  end)
  compare(t, "affine", function(x, p)
    return image.affine(x, { 1.1, 0.2, -1.5, -0.3, 0.9, 2.25 }, { size = { 17, 21 }, filter = p[3] })
  end)
  compare(t, "scaling", function(x, p)
    return image.affine(x, { 0.8, 0, 1.25, 0, 1.2, -2.5 }, { size = { 18, 25 }, filter = p[3] })
  end)
end)

test("image.brightness, contrast, saturation, sharpness: Pillow's bits", function(t)
  for _, name in ipairs { "brightness", "contrast", "saturation", "sharpness" } do
    compare(t, name, function(x, p) return image[name](x, tonumber(p[3])) end)
  end
end)

test("image.hue: Pillow's bits", function(t)
  compare(t, "hue", function(x, p) return image.hue(x, tonumber(p[3])) end)
end)

test("image.grey, autocontrast, equalize, posterize, solarize: Pillow's bits", function(t)
  for _, name in ipairs { "grey", "autocontrast", "equalize" } do
    compare(t, name, function(x) return image[name](x) end)
  end
  for _, name in ipairs { "posterize", "solarize" } do
    compare(t, name, function(x, p) return image[name](x, tonumber(p[3])) end)
  end
end)
