-- SPDX-License-Identifier: Apache-2.0
-- pg.image: what is drawn from (seed, epoch, sample), and batches that are mixed.

local pg = require "perigee"
local draws = require "perigee.image.draws"

local image = pg.image

local function picture(rows, columns, channels)
  local t = pg.arange(rows * columns * channels):reshape(rows, columns, channels)
  return ((t * 7):remainder(251)):to "uint8"
end

test("draws: Philox' published numbers, and even ones", function(t)
  local full = 0xffffffff
  t.equal({ draws.block(0, 0, 0, 0, 0, 0) }, { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 })
  t.equal({ draws.block(full, full, full, full, full, full) }, { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd })
  t.equal({ draws.block(0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0) },
          { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 })
  local draw, sum, beta, square = draws.new(9, { seed = -3, epoch = 1, sample = 1 }), 0, 0, 0
  for _ = 1, 20000 do
    sum = sum + draw:uniform()
    local b = draw:beta(0.2)
    beta, square = beta + b, square + b * b
  end
  t.ok(math.abs(sum / 20000 - 0.5) < 0.01 and math.abs(beta / 20000 - 0.5) < 0.015)
  -- The variance of beta(a, a) is 1 / (4 (2 a + 1)).
  t.ok(math.abs(square / 20000 - (beta / 20000) ^ 2 - 1 / 5.6) < 0.01)
end)

local CALLS = {
  random_crop = { 9 }, random_resized_crop = { 8 }, random_flip = {}, color_jitter = { brightness = 0.5, contrast = 0.5,
  saturation = 0.5, hue = 0.2 }, random_erase = { probability = 0.9 }, rand_augment = { count = 3, magnitude = 15 } }

local function call(name, x, seed, epoch, sample)
  local arguments = { x, CALLS[name][1], seed = seed, epoch = epoch, sample = sample }
  for key, v in pairs(CALLS[name]) do
    if type(key) == "string" then arguments[key] = v end
  end
  return image[name](arguments)
end

test("random ones: the same bits for (seed, epoch, sample), alone and in a batch, and others for others", function(t)
  local list = {}
  for i = 1, 6 do list[i] = (picture(20, 24, 3):to "int32" + i * 9):remainder(256):to "uint8" end
  local batch = pg.stack(list, 1)
  for name in pairs(CALLS) do
    local whole, differ = call(name, batch, 7, 2, 11), 0
    pg.manual_seed(1)
    for i = 1, 6 do
      t.ok(call(name, list[i], 7, 2, 10 + i):equal(whole[i]), name .. i)
      if not call(name, list[i], 7, 3, 10 + i):equal(whole[i]) then differ = differ + 1 end
      if not call(name, list[i], 8, 2, 10 + i):equal(whole[i]) then differ = differ + 1 end
    end
    t.ok(differ >= 2, name)
    t.equal(whole.dtype, "uint8")
    t.ok(call(name, batch:to "sim:0", 7, 2, 11):to("cpu"):equal(whole), name .. " on a device")
    t.equal(tostring(call(name, batch:narrow(1, 1, 0), 7):size(1)), "0")
  end
end)

test("random_resized_crop: shares, shapes, and the whole where nothing fits", function(t)
  for i = 1, 200 do
    local b = image.random_rectangle { 50, 80, seed = 1, sample = i }
    local share, aspect = b[3] * b[4] / 4000, b[4] / b[3]
    t.ok(b[1] >= 0 and b[2] >= 0 and b[1] + b[3] <= 50 and b[2] + b[4] <= 80)
    t.ok(share > 0.06 and share <= 1 and aspect > 0.65 and aspect < 1.55, tostring(share) .. " " .. aspect)
  end
  t.equal(image.random_rectangle { 4, 100, seed = 1, scale = { 1, 1 } }, { 0, 47, 4, 5 })
  local x = picture(40, 30, 3)
  local b = image.random_rectangle { 40, 30, seed = 5, epoch = 2, sample = 3 }
  t.ok(image.random_resized_crop { x, 12, seed = 5, epoch = 2, sample = 3 }
             :equal(image.resize(image.crop(x, b[1], b[2], b[3], b[4]), 12)))
end)

test("rand_augment: every change keeps the shape", function(t)
  local x, augment = picture(12, 15, 3), require "perigee.image.augment"
  t.equal(#augment, 14)
  for i, change in ipairs(augment) do
    for _, sign in ipairs { 1, -1 } do
      local y = change(image, x, 0.5, sign, { filter = "nearest", fill = 0 })
      t.equal({ y.shape, y.dtype }, { { 12, 15, 3 }, "uint8" }, "change " .. i)
    end
  end
end)

test("mixup and cutmix: shares of pictures are shares of labels", function(t)
  local x = pg.arange(4):reshape(4, 1, 1, 1):expand(4, 8, 10, 1):float()
  local labels = pg.tensor({ 0, 1, 2, 3 }, { dtype = "int64" })
  for sample = 1, 20 do
    local mixed, y = image.mixup { x, labels, classes = 4, alpha = 1, seed = 3, sample = sample }
    t.close(y:sum(2), pg.ones { 4 })
    t.close(mixed:mean { axis = { 2, 3, 4 } }, y:matmul(pg.arange(4):float()), 1e-5)
    local cut, z = image.cutmix { x:to "uint8", labels, classes = 4, seed = 3, sample = sample }
    t.equal({ cut.dtype, cut.shape }, { "uint8", { 4, 8, 10, 1 } })
    t.close(cut:float():mean { axis = { 2, 3, 4 } }, z:matmul(pg.arange(4):float()), 1e-5)
    local first, of_first = image.cutmix { x:movedim(4, 2), z, channels_first = true, seed = 3, sample = sample }
    t.ok(first:equal(cut:float():movedim(4, 2)))
    t.equal(of_first.shape, { 4, 4 })
  end
end)
