-- SPDX-License-Identifier: Apache-2.0
-- pg.image's parts of pictures, numbers for a model, grids and text; and mistakes.

local pg = require "perigee"

local image = pg.image

local function picture(rows, columns, channels)
  local t = pg.arange(rows * columns * channels):reshape(rows, columns, channels)
  return ((t * 7):remainder(251)):to "uint8"
end

test("crop, center_crop, pad, flips, erase", function(t)
  local x = picture(7, 8, 3)
  local batch = pg.stack({ x, x:flip(1) }, 1)
  t.ok(image.crop(x, 2, 1, 4, 5):equal(x:narrow(1, 3, 4):narrow(2, 2, 5)))
  t.ok(image.crop(batch, 0, 0, 7, 8):equal(batch))
  t.ok(image.center_crop(x, { 4, 5 }):equal(image.crop(x, 2, 2, 4, 5))) -- halves 1.5 and 1.5 become 2
  t.ok(image.center_crop(picture(6, 7, 1), { 5, 2 }):equal(image.crop(picture(6, 7, 1), 0, 2, 5, 2)))
  local padded = image.pad(x, { 1, 2, 3, 0 }, { value = 9 })
  t.equal(padded.shape, { 10, 11, 3 })
  t.ok(image.crop(padded, 1, 3, 7, 8):equal(x))
  t.equal(padded[1][1]:totable(), { 9, 9, 9 })
  t.ok(image.pad(batch, 2, { mode = "reflect" })[2]:equal(image.pad(x:flip(1), { 2, 2 }, { mode = "reflect" })))
  t.ok(image.flip_left_right(batch):equal(batch:index_select(8 - pg.arange(1, 9), 3)))
  t.ok(image.flip_up_down(x):equal(x:flip(1)))
  local erased = image.erase(batch, 1, 2, 3, 4, { value = 5 })
  t.ok(image.crop(erased, 1, 2, 3, 4):equal(pg.full({ 2, 3, 4, 3 }, 5, { dtype = "uint8" })))
  t.ok(erased:ne(batch):sum():item() <= 2 * 3 * 4 * 3)
end)

-- Bytes of three and four channels are made many at a time: each channel by itself says what is right.
test("resized pictures have each channel resized by itself", function(t)
  local sizes = { { 5, 6 }, { 9, 4 }, { 23, 31 }, { 8, 5 }, { 17, 300 }, { 70, 3 }, { 6, 16 }, { 41, 90 } }
  local wanted = { { 7, 9 }, { 16, 5 }, { 3, 40 }, { 1, 1 }, { 30, 21 } }
  pg.manual_seed(3)
  for _, channels in ipairs { 3, 4 } do
    for i, from in ipairs(sizes) do
      local x = (pg.rand { from[1], from[2], channels } * 256):floor():to "uint8"
      for k, to in ipairs(wanted) do
        for _, filter in ipairs { "bilinear", "bicubic", "lanczos", "area", "nearest" } do
          local options = { filter = filter, antialias = (i + k) % 3 ~= 0 }
          if k == 5 then options.box = { 0.25, 0.5, from[1] - 1.5, from[2] - 0.75 } end
          local y, parts = image.resize(x, to, options), {}
          for c = 1, channels do parts[c] = image.resize(x:narrow(3, c, 1):contiguous(), to, options) end
          t.ok(y:equal(pg.cat(parts, 3)), ("%dx%dx%d to %dx%d %s"):format(from[1], from[2], channels, to[1], to[2],
               filter))
        end
      end
    end
  end
end)

test("to_float and normalize", function(t)
  local x = picture(4, 5, 3)
  t.close(image.to_float(x), x:float() / 255)
  local mean, std = { 0.4, 0.5, 0.6 }, { 0.2, 0.25, 0.3 }
  local expected = (x:float() / 255 - pg.tensor(mean)) / pg.tensor(std)
  t.close(image.to_float { x, mean = mean, std = std }, expected, 1e-5)
  t.close(image.normalize { x:float() / 255, mean = mean, std = std }, expected, 1e-5)
  local first = image.to_float { x:unsqueeze(1), mean = 0.5, std = 0.5, channels_first = true, dtype = "bfloat16" }
  t.equal({ first.shape, first.dtype }, { { 1, 3, 4, 5 }, "bfloat16" })
end)

test("pictures of floats: the same changes from 0 to 1, and gradients", function(t)
  local bytes = picture(9, 9, 3)
  local x = bytes:to "float64" / 255
  for name, argument in pairs { brightness = 1.4, contrast = 0.6, saturation = 1.5, sharpness = 0.3, hue = 0.2 } do
    local far = (image[name](x, argument) * 255 - image[name](bytes, argument):to "float64"):abs():max():item()
    t.ok(far < 6.1, name .. ": " .. far)
  end
  local small = pg.rand { 4, 5, 2, dtype = "float64", requires_grad = true }
  t.ok(pg.gradcheck(function(v) return image.resize(v, { 3, 7 }, { filter = "bicubic" }) end, { small }))
  t.ok(pg.gradcheck(function(v) return image.rotate(v, 20, { filter = "bilinear" }) end, { small }))
end)

test("grid, text and show", function(t)
  local batch = pg.stack({ picture(3, 4, 3), picture(3, 4, 3), picture(3, 4, 3) }, 1)
  local grid = image.grid { batch, columns = 2, padding = 1, value = 7 }
  t.equal(grid.shape, { 9, 11, 3 })
  t.ok(image.crop(grid, 1, 1, 3, 4):equal(batch[1]))
  t.ok(image.crop(grid, 1, 6, 3, 4):equal(batch[2]))
  t.ok(image.crop(grid, 5, 1, 3, 4):equal(batch[3]))
  t.equal({ grid[1][1]:totable(), grid[6][7]:totable() }, { { 7, 7, 7 }, { 7, 7, 7 } })
  local two = pg.tensor({ { { 255, 0, 0 } }, { { 0, 0, 255 } } }, { dtype = "uint8" })
  t.equal(image.text(two), "\27[38;2;255;0;0m\27[48;2;0;0;255m\226\150\128\27[0m\n")
  t.equal(image.text { pg.tensor { { { 0 }, { 1 } }, { { 0 }, { 1 } } }, color = false }, " @\n")
  local lines = 0
  for line in image.text { picture(50, 100, 3), width = 40, color = false }:gmatch "[^\n]+" do
    lines = lines + 1
    t.equal(#line, 40)
  end
  t.equal(lines, 10)
end)

test("mistakes name the function, the argument, and what was given", function(t)
  local x = picture(4, 5, 3)
  for text, call in pairs {
    ["image.resize: image must be [rows, columns, channels], or a batch of them, got {4, 5}"] = function()
      image.resize(x:select(3, 1), 2)
    end,
    ["image.flip_up_down: image must be uint8 or of a floating dtype, got int32"] = function()
      image.flip_up_down(x:to "int32")
    end,
    ["image.resize: size must be 1 or more, got 0"] = function() image.resize(x, { 3, 0 }) end,
    ["image.resize: box {0, 0, 5, 1} is not inside of a picture of 4 x 5"] = function()
      image.resize(x, 2, { box = { 0, 0, 5, 1 } })
    end,
    ["image.crop: 4 rows from 1 and 2 columns from 0 are not inside of 4 x 5"] = function()
      image.crop(x, 1, 0, 4, 2)
    end,
    ["image.center_crop: size 5 x 5 is larger than the picture, 4 x 5"] = function() image.center_crop(x, 5) end,
    ["image.pad: padding must be one number, two or four, got 3"] = function() image.pad(x, { 1, 2, 3 }) end,
    ["image.affine: matrix must be six numbers"] = function() image.affine(x, { 1, 2 }) end,
    ["image.hue: turn must be from -0.5 to 0.5, got 0.7"] = function() image.hue(x, 0.7) end,
    ["image.brightness: factor must not be negative, got -1"] = function() image.brightness(x, -1) end,
    ["image.equalize: image must be uint8, got float32"] = function() image.equalize(x:float()) end,
    ["image.normalize: image must be of a floating dtype, got uint8"] = function() image.normalize(x) end,
    ["image.to_float: mean must be one number or 3, one a channel, got 2"] = function()
      image.to_float { x, mean = { 1, 2 } }
    end,
    ['image.random_flip: argument "seed" is missing'] = function() image.random_flip(x) end,
    ["image.random_crop: size 6 x 6 is larger than the picture, 4 x 5"] = function()
      image.random_crop { x, 6, seed = 1 }
    end,
    ["image.mixup: needs classes where labels are integers"] = function()
      image.mixup { x:float():unsqueeze(1), pg.zeros { 1, dtype = "int64" }, seed = 1 }
    end,
    ["image.cutmix: labels must be one a picture"] = function()
      image.cutmix { x:unsqueeze(1), pg.zeros { 2, dtype = "int64" }, classes = 2, seed = 1 }
    end,
    ["image.grid: images must be [n, rows, columns, channels]"] = function() image.grid(x) end,
  } do
    local e = t.raises(call)
    t.ok(tostring(e):find(text, 1, true), text .. "\n" .. tostring(e))
    t.equal(e.code, "invalid_argument")
  end
end)
