-- SPDX-License-Identifier: Apache-2.0
-- pg.image: brighter, greyer and otherwise other colours, and numbers for a model. Of uint8 to Pillow's bits; floating
-- pictures are of numbers from 0 to 1.

local native = require "perigee.native"
local common = require "perigee.image.common"
local tables = require "perigee.image.tables"

local refuse, check = common.refuse, common.check
local IMAGE = common.IMAGE
local image = {}
local function pg() return require "perigee" end

local FACTOR = { "factor", "number", required = true, doc = "1 leaves the picture as it is, 0 leaves nothing of it" }

local function check_factor(where, factor)
  if factor < 0 or factor ~= factor then refuse(where, "factor must not be negative, got " .. factor) end
end

-- What is 0 % of the picture, and the picture, blended in float32 as Pillow does it.
local function blended(x, none, factor)
  local wide = x.dtype == "uint8" and x:to "float32" or x
  return common.narrowed(none + (wide - none) * factor, x)
end

local read_brightness = native.signature("image.brightness", { IMAGE, FACTOR })
---A picture that is `factor` times as bright.
---@return perigee.Tensor
function image.brightness(...)
  local where, o = "image.brightness", read_brightness(...)
  check(where, o.image)
  check_factor(where, o.factor)
  return blended(o.image, 0, o.factor)
end

local function grey_of(where, t)
  return t:size(-1) == 1 and (t.dtype == "uint8" and t:to "float32" or t) or common.luma(where, t, -1)
end

local read_contrast = native.signature("image.contrast", { IMAGE, FACTOR })
---A picture whose colours are `factor` times as far from the mean of its luma. It has 1 channel or 3.
---@return perigee.Tensor
function image.contrast(...)
  local where, o = "image.contrast", read_contrast(...)
  local rank = check(where, o.image)
  check_factor(where, o.factor)
  local grey = grey_of(where, o.image)
  local mean = grey:to("float64"):mean { axis = { rank - 2, rank - 1, rank }, keepdim = true }
  mean = o.image.dtype == "uint8" and (mean + 0.5):floor():to "float32" or mean:to(o.image.dtype)
  return blended(o.image, mean, o.factor)
end

local read_saturation = native.signature("image.saturation", { IMAGE, FACTOR })
---A picture whose colours are `factor` times as far from their grey. Grey pictures stay as they are.
---@return perigee.Tensor
function image.saturation(...)
  local where, o = "image.saturation", read_saturation(...)
  check(where, o.image)
  check_factor(where, o.factor)
  if o.image:size(-1) == 1 then return o.image end
  return blended(o.image, common.luma(where, o.image, -1), o.factor)
end

-- Red, green and blue, from 0 to 255, as Pillow's hue, saturation and value; what C keeps in a float is float32 here.
local function to_hsv(t)
  local r, g, b = t:narrow(-1, 1, 1), t:narrow(-1, 2, 1), t:narrow(-1, 3, 1)
  local top, low = r:maximum(g):maximum(b), r:minimum(g):minimum(b)
  local span = top - low
  local is_grey = span:eq(0)
  local safe = span:masked_fill(is_grey, 1)
  local rc, gc, bc = (top - r) / safe, (top - g) / safe, (top - b) / safe
  local function apart(x, y, by) -- rounded once
    if t.dtype ~= "float32" then return x + by - y end
    return (x:to "float64" + by - y:to "float64"):to "float32"
  end
  local h = pg().where(r:eq(top), bc - gc, pg().where(g:eq(top), apart(rc, bc, 2), apart(gc, rc, 4)))
  return h, span / top:masked_fill(top:eq(0), 1), top, is_grey
end

-- By sectors of the circle, `f` of the way through one; `whole` rounds.
local function from_hsv(sector, f, s, v, whole)
  local p, q, u = whole(v * (1 - s)), whole(v * (1 - s * f)), whole(v * (1 - s * (1 - f)))
  sector = sector:remainder(6)
  local function choose(...)
    local list = { ... }
    local out = list[6]
    for i = 1, 5 do out = pg().where(sector:eq(i - 1), list[i], out) end
    return out
  end
  return pg().cat({ choose(v, q, p, p, u, v), choose(u, v, v, q, p, p), choose(p, p, u, v, v, q) }, -1)
end

local function turned_bytes(t, shift)
  local x = t:to "float32"
  local h, s, v, is_grey = to_hsv(x)
  -- (int)(fmod(h / 6 + 1, 1) * 255): rounded to float32 once, behind the remainder.
  local turn = ((h:to "float64" / 6 + 1):remainder(1)):to "float32"
  local hue = (turn * 255):floor():masked_fill(is_grey, 0)
  local rich = (s * 255):floor():masked_fill(is_grey, 0)
  hue = (hue + shift):remainder(256):to "float64"
  local place = (hue * 6 / 255)
  local sector = place:floor()
  local f = (place - sector):to("float32"):to "float64"
  local fs, value = (rich:to "float64" / 255):to("float32"):to "float64", v:to "float64"
  local function whole(n) return (n + 0.5):floor() end -- C's round of what is not negative
  return from_hsv(sector, f, fs, value, whole):clamp(0, 255):to "uint8"
end

local read_hue = native.signature("image.hue", { IMAGE,
  { "turn", "number", required = true, doc = "of the circle of colours, -0.5 to 0.5" } })
---A picture whose hues are turned: red becomes green by a third. Of uint8 as torchvision does it by Pillow's HSV. Grey
---pictures stay as they are.
---@return perigee.Tensor
function image.hue(...)
  local where, o = "image.hue", read_hue(...)
  check(where, o.image)
  if math.abs(o.turn) > 0.5 or o.turn ~= o.turn then refuse(where, "turn must be from -0.5 to 0.5, got " .. o.turn) end
  local t = o.image
  if t:size(-1) == 1 then return t end
  if t:size(-1) ~= 3 then
    refuse(where, ("image must have 1 channel or 3, got %s"):format(tostring(t.shape)))
  end
  if t.dtype == "uint8" then
    local shift = o.turn * 255
    return turned_bytes(t, shift < 0 and math.ceil(shift) or math.floor(shift))
  end
  local h, s, v, is_grey = to_hsv(t)
  h = (h / 6 + o.turn + 1):remainder(1):masked_fill(is_grey, 0) * 6
  local sector = h:floor()
  return from_hsv(sector, h - sector, s, v, function(n) return n end):clamp(0, 1)
end

local read_grey = native.signature("image.grey", { IMAGE,
  { "channels", "integer", default = 1, named = true, doc = "of the result, all alike: 1 or 3" } })
---A picture in grey: Pillow's luma.
---@return perigee.Tensor
function image.grey(...)
  local where, o = "image.grey", read_grey(...)
  check(where, o.image)
  if o.channels ~= 1 and o.channels ~= 3 then refuse(where, "channels must be 1 or 3, got " .. o.channels) end
  local t = o.image
  if t:size(-1) ~= 1 then t = common.luma(where, t, -1):to(t.dtype) end
  return o.channels == 1 and t or pg().cat({ t, t, t }, -1)
end

local read_sharpness = native.signature("image.sharpness", { IMAGE, FACTOR })
---A picture whose edges are `factor` times as sharp: 0 is smoothed by a window of 3 x 3.
---@return perigee.Tensor
function image.sharpness(...)
  local where, o = "image.sharpness", read_sharpness(...)
  local rank = check(where, o.image)
  check_factor(where, o.factor)
  local t = o.image
  local rows, columns = common.sides(t)
  if rows < 3 or columns < 3 then return t end
  local wide = t.dtype == "uint8" and t:to "float32" or t
  local function part(row, column)
    return wide:narrow(rank - 2, row, rows - 2):narrow(rank - 1, column, columns - 2)
  end
  local total = part(2, 2) * 4
  for row = 1, 3 do
    for column = 1, 3 do total = total + part(row, column) end
  end
  local smooth = t.dtype == "uint8" and ((total * 2 + 13):floor_div(26)) or total / 13
  local inner = blended(t:narrow(rank - 2, 2, rows - 2):narrow(rank - 1, 2, columns - 2), smooth, o.factor)
  local out = t:clone()
  out:narrow(rank - 2, 2, rows - 2):narrow(rank - 1, 2, columns - 2):copy_(inner)
  return out
end

local read_posterize = native.signature("image.posterize", { IMAGE,
  { "bits", "integer", required = true, doc = "that are left of each sample, 0 to 8" } })
---A uint8 picture with fewer bits a sample.
---@return perigee.Tensor
function image.posterize(...)
  local where, o = "image.posterize", read_posterize(...)
  tables.need_bytes(where, o.image)
  if o.bits < 0 or o.bits > 8 then refuse(where, "bits must be from 0 to 8, got " .. o.bits) end
  local unit = 2 ^ (8 - o.bits)
  return (o.image:to "int32":floor_div(unit) * unit):to "uint8"
end

local read_solarize = native.signature("image.solarize", { IMAGE,
  { "threshold", "number", default = 128, doc = "samples from here on are turned around" } })
---A picture whose brighter samples are turned around.
---@return perigee.Tensor
function image.solarize(...)
  local where, o = "image.solarize", read_solarize(...)
  check(where, o.image)
  local t = o.image
  return pg().where(t:lt(o.threshold), t, t.dtype == "uint8" and (255 - t:to "int32"):to "uint8" or 1 - t)
end

local read_autocontrast = native.signature("image.autocontrast", { IMAGE })
---A uint8 picture of which each channel goes from 0 to 255.
---@return perigee.Tensor
function image.autocontrast(...)
  local where, o = "image.autocontrast", read_autocontrast(...)
  tables.need_bytes(where, o.image)
  return common.each(o.image, tables.autocontrast)
end

local read_equalize = native.signature("image.equalize", { IMAGE })
---A uint8 picture of which each channel has all values about equally often.
---@return perigee.Tensor
function image.equalize(...)
  local where, o = "image.equalize", read_equalize(...)
  tables.need_bytes(where, o.image)
  return common.each(o.image, tables.equalize)
end

local function channel_numbers(where, name, v, n)
  if type(v) == "number" then v = { v } end
  if #v ~= 1 and #v ~= n then
    refuse(where, ("%s must be one number or %d, one a channel, got %d"):format(name, n, #v))
  end
  return v
end

local MEAN = { "mean", "numbers", named = true, type = "number|number[]", doc = "that is taken off, of all channels " ..
  "or of each" }
local STD = { "std", "numbers", named = true, type = "number|number[]", doc = "that is divided by" }

-- (v / unit - mean) / std by channels as v * scale + shift: a number a channel, or one of each for all.
local function scale_and_shift(where, o, unit, n)
  local mean, std = channel_numbers(where, "mean", o.mean or 0, n), channel_numbers(where, "std", o.std or 1, n)
  local scale, shift = {}, {}
  for i = 1, math.max(#mean, #std) do
    local m, s = mean[#mean == 1 and 1 or i], std[#std == 1 and 1 or i]
    if s <= 0 or s ~= s then refuse(where, "std must be above 0, got " .. s) end
    scale[i], shift[i] = 1 / (s * unit), -m / s
  end
  return scale, shift
end

local read_normalize = native.signature("image.normalize", { IMAGE, MEAN, STD })
---(image - mean) / std of a floating picture, by channels.
---@return perigee.Tensor
function image.normalize(...)
  local where, o = "image.normalize", read_normalize(...)
  check(where, o.image)
  if o.image.dtype == "uint8" then
    refuse(where, "image must be of a floating dtype, got uint8", "image.to_float has mean and std too")
  end
  local t, n = o.image, o.image:size(-1)
  local scale, shift = scale_and_shift(where, o, 1, n)
  if #scale == 1 then
    t = t * scale[1]
    return shift[1] == 0 and t or t + shift[1]
  end
  -- As one multiplication and one addition whose rows are long ones.
  local options, columns = { dtype = t.dtype, device = t.device }, t:size(-2)
  local function row(v) return pg().tensor(v, options):expand(columns, n):reshape(columns * n) end
  return (t:flatten(-2, -1) * row(scale) + row(shift)):reshape(t.shape)
end

local read_to_float = native.signature("image.to_float", { IMAGE, MEAN, STD,
  { "channels_first", "boolean", default = false, named = true, doc = "the result is [channels, rows, columns]" },
  { "dtype", "dtype", default = "float32", named = true, doc = "of the result" } })
---A uint8 picture as numbers from 0 to 1 for a model, less `mean` and divided by `std`.
---@return perigee.Tensor
function image.to_float(...)
  local where, o = "image.to_float", read_to_float(...)
  tables.need_bytes(where, o.image)
  if not native.dtypes.by_name[o.dtype].floating then
    refuse(where, "dtype must be a floating one, got " .. o.dtype)
  end
  local scale, shift = scale_and_shift(where, o, 255, o.image:size(-1))
  local options = { dtype = "float32", device = o.image.device }
  return pg().image_to_float(o.image, pg().tensor(scale, options), pg().tensor(shift, options),
                             { channels_first = o.channels_first, dtype = o.dtype })
end

return image
