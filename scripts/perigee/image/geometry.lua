-- SPDX-License-Identifier: Apache-2.0
-- pg.image: pictures of another size, parts of them, and turned ones.

local native = require "perigee.native"
local common = require "perigee.image.common"
local warp = require "perigee.image.warp"

local refuse, check, sides = common.refuse, common.check, common.sides
local IMAGE, FILTERS = common.IMAGE, common.FILTERS
local image = {}
local function pg() return require "perigee" end

local FILL = { "fill", "number", default = 0, named = true, doc = "what lies outside" }
local WARP_FILTER = { "filter", "string", default = "nearest", named = true,
                      choices = { "nearest", "bilinear", "bicubic" }, doc = "how a place between pixels is read" }
local TOP = { "top", "integer", required = true, doc = "rows above it" }
local LEFT = { "left", "integer", required = true, doc = "columns before it" }
local HEIGHT = { "height", "integer", required = true, doc = "its rows" }
local WIDTH = { "width", "integer", required = true, doc = "its columns" }

local read_resize = native.signature("image.resize", { IMAGE,
  { "size", "counts", required = true, doc = "rows and columns of the result, or one number for both" },
  { "filter", "string", default = "bilinear", choices = FILTERS, named = true, doc = "how pixels are weighed" },
  { "box", "numbers", named = true, type = "number[]",
    doc = "{top, left, height, width} of the part that is resized, fractions too; all of it if not given" },
  { "antialias", "boolean", default = true, named = true,
    doc = "a picture that becomes smaller: the filter covers what a new pixel covers" } })
---A picture, or a part of it, in another size, to Pillow's numbers: of uint8 the same bits. `area` is Pillow's BOX.
---Channels are resized each for itself. Differentiable in floating pictures.
---@return perigee.Tensor
function image.resize(...)
  local where, o = "image.resize", read_resize(...)
  check(where, o.image)
  local rows, columns = common.pair(where, "size", o.size, 1)
  local box = o.box
  if box then
    if type(box) ~= "table" or #box ~= 4 then refuse(where, "box must be {top, left, height, width}") end
    local height, width = sides(o.image)
    if not (box[1] >= 0 and box[2] >= 0 and box[3] > 0 and box[4] > 0 and box[1] + box[3] <= height and
            box[2] + box[4] <= width) then
      refuse(where, ("box {%g, %g, %g, %g} is not inside of a picture of %d x %d"):format(box[1], box[2], box[3],
             box[4], height, width), "it is {top, left, height, width}")
    end
    box = pg().tensor(box, { dtype = "float64", device = o.image.device })
  end
  return pg().image_resize(o.image, box, { size = { rows, columns }, filter = o.filter, antialias = o.antialias })
end

local function fits(o, rows, columns, least)
  return o.top >= 0 and o.left >= 0 and o.height >= least and o.width >= least and o.top + o.height <= rows and
         o.left + o.width <= columns
end

local read_crop = native.signature("image.crop", { IMAGE, TOP, LEFT, HEIGHT, WIDTH })
---The part of `height` rows and `width` columns behind the first `top` rows and `left` columns: a view.
---@return perigee.Tensor
function image.crop(...)
  local where, o = "image.crop", read_crop(...)
  local rank, rows, columns = check(where, o.image), sides(o.image)
  if not fits(o, rows, columns, 1) then
    refuse(where, ("%d rows from %d and %d columns from %d are not inside of %d x %d"):format(o.height, o.top, o.width,
           o.left, rows, columns), "image.pad makes a picture larger")
  end
  return o.image:narrow(rank - 2, o.top + 1, o.height):narrow(rank - 1, o.left + 1, o.width)
end

-- As Python rounds: halves to even ones.
local function half(n) return n % 4 == 3 and (n + 1) / 2 or math.floor(n / 2) end

local read_center = native.signature("image.center_crop", { IMAGE,
  { "size", "counts", required = true, doc = "rows and columns of the result, or one number for both" } })
---The part in the middle, where torchvision has it: a view.
---@return perigee.Tensor
function image.center_crop(...)
  local where, o = "image.center_crop", read_center(...)
  check(where, o.image)
  local rows, columns = sides(o.image)
  local height, width = common.pair(where, "size", o.size, 1)
  if height > rows or width > columns then
    refuse(where, ("size %d x %d is larger than the picture, %d x %d"):format(height, width, rows, columns),
           "image.pad makes a picture larger")
  end
  return image.crop(o.image, half(rows - height), half(columns - width), height, width)
end

local read_pad = native.signature("image.pad", { IMAGE,
  { "padding", "counts", required = true,
    doc = "one number for all edges, {rows, columns}, or {top, bottom, left, right}" },
  { "value", "number", default = 0, named = true, doc = "of what is put there" },
  { "mode", "string", default = "constant", named = true, choices = { "constant", "reflect", "replicate", "circular" },
    doc = "what is put there" } })
---A picture with more rows and columns around it.
---@return perigee.Tensor
function image.pad(...)
  local where, o = "image.pad", read_pad(...)
  local rank, p = check(where, o.image), o.padding
  if type(p) == "number" then p = { p, p, p, p } end
  if #p == 2 then p = { p[1], p[1], p[2], p[2] } end
  if #p ~= 4 then refuse(where, ("padding must be one number, two or four, got %d"):format(#p)) end
  for _, n in ipairs(p) do
    if n < 0 then refuse(where, "padding must not be negative, got " .. n, "image.crop makes a picture smaller") end
  end
  local pairs_of = { { p[1], p[2] }, { p[3], p[4] }, { 0, 0 } }
  if rank == 4 then table.insert(pairs_of, 1, { 0, 0 }) end
  return o.image:pad(pairs_of, { mode = o.mode, value = o.mode == "constant" and o.value or nil })
end

local read_left_right = native.signature("image.flip_left_right", { IMAGE })
---A picture with its columns in reverse order.
---@return perigee.Tensor
function image.flip_left_right(...)
  local t = read_left_right(...).image
  return t:flip(check("image.flip_left_right", t) - 1)
end

local read_up_down = native.signature("image.flip_up_down", { IMAGE })
---A picture with its rows in reverse order.
---@return perigee.Tensor
function image.flip_up_down(...)
  local t = read_up_down(...).image
  return t:flip(check("image.flip_up_down", t) - 2)
end

local read_affine = native.signature("image.affine", { IMAGE,
  { "matrix", "numbers", required = true, type = "number[]",
    doc = "{a, b, c, d, e, f}: what the result shows at column x and row y lies at column a x + b y + c and row " ..
          "d x + e y + f" },
  { "size", "counts", named = true, doc = "rows and columns of the result; those of the picture if not given" },
  WARP_FILTER, FILL })
---A picture moved, turned, sheared and scaled, as Pillow's Image.transform does it with AFFINE: of uint8 the same bits.
---@return perigee.Tensor
function image.affine(...)
  local where, o = "image.affine", read_affine(...)
  check(where, o.image)
  if type(o.matrix) ~= "table" or #o.matrix ~= 6 then
    refuse(where, "matrix must be six numbers {a, b, c, d, e, f}")
  end
  local rows, columns = sides(o.image)
  if o.size then rows, columns = common.pair(where, "size", o.size, 1) end
  return warp(o.image, o.matrix, rows, columns, o.filter, o.fill)
end

-- Python's round(x, 15).
local function rounded(x) return math.floor(x * 1e15 + 0.5) / 1e15 end

-- Quarters of a turn, against the clock.
local function quarters(t, n, rank)
  if n == 1 then return t:transpose(rank - 2, rank - 1):flip(rank - 2) end
  if n == 2 then return t:flip { rank - 2, rank - 1 } end
  if n == 3 then return t:transpose(rank - 2, rank - 1):flip(rank - 1) end
  return t
end

local read_rotate = native.signature("image.rotate", { IMAGE,
  { "degrees", "number", required = true, doc = "against the clock" }, WARP_FILTER,
  { "expand", "boolean", default = false, named = true, doc = "the result holds all of the turned picture" }, FILL })
---A picture turned around its middle, to Pillow's numbers.
---@return perigee.Tensor
function image.rotate(...)
  local where, o = "image.rotate", read_rotate(...)
  local rank, degrees = check(where, o.image), o.degrees % 360
  local h, w = sides(o.image)
  if degrees == 0 or degrees == 180 or ((degrees == 90 or degrees == 270) and (o.expand or h == w)) then
    return quarters(o.image, degrees / 90, rank)
  end
  local angle = -math.rad(degrees)
  local a, b, d, e = rounded(math.cos(angle)), rounded(math.sin(angle)), rounded(-math.sin(angle)),
                     rounded(math.cos(angle))
  local x, y = w / 2, h / 2
  local c, f = a * -x + b * -y + 0 + x, d * -x + e * -y + 0 + y
  if o.expand then
    local left, right, top, bottom = math.huge, -math.huge, math.huge, -math.huge
    for _, corner in ipairs { { 0, 0 }, { w, 0 }, { w, h }, { 0, h } } do
      local u, v = a * corner[1] + b * corner[2] + c, d * corner[1] + e * corner[2] + f
      left, right, top, bottom = math.min(left, u), math.max(right, u), math.min(top, v), math.max(bottom, v)
    end
    local wide, high = math.ceil(right) - math.floor(left), math.ceil(bottom) - math.floor(top)
    local u, v = -(wide - w) / 2, -(high - h) / 2
    c, f = a * u + b * v + c, d * u + e * v + f
    w, h = wide, high
  end
  return warp(o.image, { a, b, c, d, e, f }, h, w, o.filter, o.fill)
end

local read_erase = native.signature("image.erase", { IMAGE, TOP, LEFT, HEIGHT, WIDTH,
  { "value", "number", default = 0, named = true, doc = "what stands there instead" } })
---A picture with a rectangle filled with `value`.
---@return perigee.Tensor
function image.erase(...)
  local where, o = "image.erase", read_erase(...)
  check(where, o.image)
  local rows, columns = sides(o.image)
  if not fits(o, rows, columns, 0) then
    refuse(where, ("%d rows from %d and %d columns from %d are not inside of %d x %d"):format(o.height, o.top, o.width,
           o.left, rows, columns))
  end
  local function inside(n, from, count)
    local place = pg().arange { n, device = o.image.device }
    return place:ge(from):logical_and(place:lt(from + count))
  end
  local where_erased = inside(rows, o.top, o.height):reshape(rows, 1, 1):logical_and(
                         inside(columns, o.left, o.width):reshape(columns, 1))
  return o.image:masked_fill(where_erased, o.value)
end

return image
