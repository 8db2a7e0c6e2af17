-- SPDX-License-Identifier: Apache-2.0
-- pg.image: what is different for each picture, drawn from (seed, epoch, sample) alone: the same whatever else draws,
-- however many workers there are, and on any device. Picture i of a batch is sample + i - 1.

local native = require "perigee.native"
local common = require "perigee.image.common"
local draws = require "perigee.image.draws"

local refuse, check, sides = common.refuse, common.check, common.sides
local IMAGE, SEED, EPOCH, SAMPLE = common.IMAGE, draws.SEED, draws.EPOCH, draws.SAMPLE
local image = {}
local function pg() return require "perigee" end
local function of() return require "perigee.image" end

-- What draws: the second word of Philox' counter, so that functions with one seed draw different numbers.
local CROP, RESIZED, FLIP, JITTER, ERASE, AUGMENT = 1, 2, 3, 4, 5, 6

local function range(where, name, v, least)
  if type(v) ~= "table" or #v ~= 2 or not (v[1] >= least and v[2] >= v[1]) then
    refuse(where, ("%s must be {from, to}, from %g on"):format(name, least))
  end
  return v[1], v[2]
end

local function check_probability(where, p)
  if not (p >= 0 and p <= 1) then refuse(where, "probability must be from 0 to 1, got " .. p) end
end

-- fn(draws, i) for each picture: what it answers, in a list.
local function for_pictures(kind, o, fn)
  local list = {}
  for i = 1, o.image:dim() == 4 and o.image:size(1) or 1 do list[i] = fn(draws.new(kind, o, o.sample + i - 1), i) end
  return list
end

local SIZE = { "size", "counts", required = true, doc = "rows and columns of the result, or one number for both" }

local read_crop = native.signature("image.random_crop", { IMAGE, SIZE, SEED, EPOCH, SAMPLE })
---A part of a picture, at any place.
---@return perigee.Tensor
function image.random_crop(...)
  local where, o = "image.random_crop", read_crop(...)
  check(where, o.image)
  draws.check(where, o)
  local rows, columns = sides(o.image)
  local height, width = common.pair(where, "size", o.size, 1)
  if height > rows or width > columns then
    refuse(where, ("size %d x %d is larger than the picture, %d x %d"):format(height, width, rows, columns),
           "image.pad makes a picture larger")
  end
  return common.each(o.image, function(t, i)
    local draw = draws.new(CROP, o, o.sample + i - 1)
    local top = draw:below(rows - height + 1)
    return of().crop(t, top, draw:below(columns - width + 1), height, width)
  end)
end

---The rectangle of random_resized_crop: tries as torchvision does, then the largest in the middle that fits.
local function rectangle(draw, rows, columns, scale, ratio)
  local area = rows * columns
  for _ = 1, 10 do
    local target = area * draw:between(scale[1], scale[2])
    local aspect = math.exp(draw:between(math.log(ratio[1]), math.log(ratio[2])))
    local width = math.floor(math.sqrt(target * aspect) + 0.5)
    local height = math.floor(math.sqrt(target / aspect) + 0.5)
    if width > 0 and width <= columns and height > 0 and height <= rows then
      local top = draw:below(rows - height + 1)
      return { top, draw:below(columns - width + 1), height, width }
    end
  end
  local width, height = columns, rows
  if columns / rows < ratio[1] then
    height = math.min(math.floor(width / ratio[1] + 0.5), rows)
  elseif columns / rows > ratio[2] then
    width = math.min(math.floor(height * ratio[2] + 0.5), columns)
  end
  return { math.floor((rows - height) / 2), math.floor((columns - width) / 2), height, width }
end

local SCALE = { "scale", "numbers", default = { 0.08, 1 }, named = true, type = "number[]",
                doc = "{from, to}: share of the picture" }
local RATIO = { "ratio", "numbers", default = { 3 / 4, 4 / 3 }, named = true, type = "number[]",
                doc = "{from, to}: width by height" }

local read_rectangle = native.signature("image.random_rectangle", {
  { "rows", "integer", required = true, doc = "of the picture" },
  { "columns", "integer", required = true, doc = "of the picture" }, SCALE, RATIO, SEED, EPOCH, SAMPLE })
---The rectangle {top, left, height, width} that random_resized_crop takes of a picture of that size: image.load can
---decode it alone.
---@return number[]
function image.random_rectangle(...)
  local where, o = "image.random_rectangle", read_rectangle(...)
  draws.check(where, o)
  if o.rows < 1 or o.columns < 1 then refuse(where, "rows and columns must be 1 or more") end
  range(where, "scale", o.scale, 0)
  range(where, "ratio", o.ratio, 1e-6)
  return rectangle(draws.new(RESIZED, o), o.rows, o.columns, o.scale, o.ratio)
end

local read_resized = native.signature("image.random_resized_crop", { IMAGE, SIZE, SCALE, RATIO,
  { "filter", "string", default = "bilinear", choices = common.FILTERS, named = true, doc = "how pixels are weighed" },
  SEED, EPOCH, SAMPLE })
---A part of a picture, of any place, size and shape, resized: how pictures are usually trained on.
---@return perigee.Tensor
function image.random_resized_crop(...)
  local where, o = "image.random_resized_crop", read_resized(...)
  local rank = check(where, o.image)
  draws.check(where, o)
  range(where, "scale", o.scale, 0)
  range(where, "ratio", o.ratio, 1e-6)
  local rows, columns = sides(o.image)
  local height, width = common.pair(where, "size", o.size, 1)
  local boxes = for_pictures(RESIZED, o, function(draw) return rectangle(draw, rows, columns, o.scale, o.ratio) end)
  if rank == 3 then
    local b = boxes[1]
    local part = of().crop(o.image, b[1], b[2], b[3], b[4])
    return pg().image_resize(part, nil, { size = { height, width }, filter = o.filter })
  end
  -- As of pictures by themselves: what lies outside of a rectangle does not count.
  return common.each(o.image, function(t, i)
    local b = boxes[i]
    return pg().image_resize(of().crop(t, b[1], b[2], b[3], b[4]), nil, { size = { height, width }, filter = o.filter })
  end)
end

local read_flip = native.signature("image.random_flip", { IMAGE,
  { "probability", "number", default = 0.5, named = true, doc = "of being flipped" },
  { "direction", "string", default = "left_right", choices = { "left_right", "up_down" }, named = true,
    doc = "columns or rows in reverse order" }, SEED, EPOCH, SAMPLE })
---A picture, or its mirror image.
---@return perigee.Tensor
function image.random_flip(...)
  local where, o = "image.random_flip", read_flip(...)
  local rank = check(where, o.image)
  draws.check(where, o)
  check_probability(where, o.probability)
  local turned = for_pictures(FLIP, o, function(draw) return draw:uniform() < o.probability end)
  local function flipped() return o.image:flip(o.direction == "left_right" and rank - 1 or rank - 2) end
  if rank == 3 then return turned[1] and flipped() or o.image end
  if not turned[1] and #turned == 0 then return o.image end
  local mask = pg().tensor(turned, { dtype = "bool", device = o.image.device }):reshape(#turned, 1, 1, 1)
  return pg().where(mask, flipped(), o.image)
end

local read_jitter = native.signature("image.color_jitter", { IMAGE,
  { "brightness", "number", default = 0, named = true, doc = "factors from 1 - brightness to 1 + brightness" },
  { "contrast", "number", default = 0, named = true, doc = "the same of contrast" },
  { "saturation", "number", default = 0, named = true, doc = "the same of saturation" },
  { "hue", "number", default = 0, named = true, doc = "turns from -hue to hue, at most 0.5" }, SEED, EPOCH, SAMPLE })
---A picture with other brightness, contrast, saturation and hue, changed in any order.
---@return perigee.Tensor
function image.color_jitter(...)
  local where, o = "image.color_jitter", read_jitter(...)
  check(where, o.image)
  draws.check(where, o)
  local ranges = {}
  for _, name in ipairs { "brightness", "contrast", "saturation", "hue" } do
    local v = o[name]
    if not (v >= 0 and (name ~= "hue" or v <= 0.5)) then
      refuse(where, ("%s must be %s, got %g"):format(name, name == "hue" and "from 0 to 0.5" or "0 or more", v))
    end
    if v > 0 then
      ranges[#ranges + 1] = { name, name == "hue" and -v or math.max(0, 1 - v), name == "hue" and v or 1 + v }
    end
  end
  return common.each(o.image, function(t, i)
    local draw, order = draws.new(JITTER, o, o.sample + i - 1), {}
    for k, r in ipairs(ranges) do order[k] = { r[1], draw:between(r[2], r[3]) } end
    for k = #order, 2, -1 do
      local other = draw:below(k) + 1
      order[k], order[other] = order[other], order[k]
    end
    for _, change in ipairs(order) do t = of()[change[1]](t, change[2]) end
    return t
  end)
end

local read_erase = native.signature("image.random_erase", { IMAGE,
  { "probability", "number", default = 0.5, named = true, doc = "of being erased" },
  { "scale", "numbers", default = { 0.02, 0.33 }, named = true, type = "number[]", doc = "{from, to}: share of the " ..
    "picture" },
  { "ratio", "numbers", default = { 0.3, 3.3 }, named = true, type = "number[]", doc = "{from, to}: height by width" },
  { "value", "number", default = 0, named = true, doc = "what stands there instead" }, SEED, EPOCH, SAMPLE })
---A picture with a rectangle erased, or as it is (Zhong et al., 2017).
---@return perigee.Tensor
function image.random_erase(...)
  local where, o = "image.random_erase", read_erase(...)
  check(where, o.image)
  draws.check(where, o)
  check_probability(where, o.probability)
  local small, large = range(where, "scale", o.scale, 0)
  local flat, high = range(where, "ratio", o.ratio, 1e-6)
  return common.each(o.image, function(t, i)
    local draw = draws.new(ERASE, o, o.sample + i - 1)
    if draw:uniform() >= o.probability then return t end
    local rows, columns = sides(t)
    for _ = 1, 10 do
      local area = rows * columns * draw:between(small, large)
      local aspect = math.exp(draw:between(math.log(flat), math.log(high)))
      local height, width = math.floor(math.sqrt(area * aspect) + 0.5), math.floor(math.sqrt(area / aspect) + 0.5)
      if height < rows and width < columns then
        local top = draw:below(rows - height + 1)
        return of().erase(t, top, draw:below(columns - width + 1), height, width, { value = o.value })
      end
    end
    return t
  end)
end

local read_augment = native.signature("image.rand_augment", { IMAGE,
  { "count", "integer", default = 2, named = true, doc = "changes, one after another" },
  { "magnitude", "integer", default = 9, named = true, doc = "how strong they are, 0 to 30" },
  { "filter", "string", default = "nearest", choices = { "nearest", "bilinear", "bicubic" }, named = true,
    doc = "how a place between pixels is read" },
  { "fill", "number", default = 0, named = true, doc = "what lies outside" }, SEED, EPOCH, SAMPLE })
---A uint8 picture changed in ways that are drawn: moved, turned, sheared, sharpened, of other colours (Cubuk et al.,
---2019), each as torchvision does it.
---@return perigee.Tensor
function image.rand_augment(...)
  local where, o = "image.rand_augment", read_augment(...)
  require("perigee.image.tables").need_bytes(where, o.image)
  draws.check(where, o)
  if o.count < 0 then refuse(where, "count must not be negative, got " .. o.count) end
  if o.magnitude < 0 or o.magnitude > 30 then refuse(where, "magnitude must be from 0 to 30, got " .. o.magnitude) end
  local augment = require "perigee.image.augment"
  return common.each(o.image, function(t, i)
    local draw = draws.new(AUGMENT, o, o.sample + i - 1)
    for _ = 1, o.count do
      local change = augment[draw:below(#augment) + 1]
      local sign = draw:uniform() < 0.5 and -1 or 1
      t = change(of(), t, o.magnitude / 30, sign, { filter = o.filter, fill = o.fill })
    end
    return t
  end)
end

return image
