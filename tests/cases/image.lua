-- SPDX-License-Identifier: Apache-2.0
-- image_resize and its gradient, image_to_float: what they compute, in plain Lua, and their cases. Bytes are compared
-- with Pillow in tests/lua/image.

local array = require "cases.array"
local S = require "cases.specs"
local F, V, N = S.F, S.V, S.N

local SUPPORT = { bilinear = 1, bicubic = 2, lanczos = 3, area = 0.5 }
local function sinc(d) return d == 0 and 1 or math.sin(math.pi * d) / (math.pi * d) end
local WEIGHTS = {
  bilinear = function(d) return math.max(1 - math.abs(d), 0) end,
  bicubic = function(d)
    d = math.abs(d)
    if d < 1 then return (1.5 * d - 2.5) * d * d + 1 end
    return d < 2 and ((-0.5 * d + 2.5) * d - 4) * d + 2 or 0
  end,
  lanczos = function(d) return d >= -3 and d < 3 and sinc(d) * sinc(d / 3) or 0 end,
  area = function(d) return d > -0.5 and d <= 0.5 and 1 or 0 end,
}

-- For each new pixel of an axis the old ones, as { { at, weight }, ... }.
local function taps_of(n, size, begin, extent, o)
  local filter, step, list = o.filter or "bilinear", extent / size, {}
  local wide = o.antialias == false and 1 or math.max(step, 1)
  for i = 0, size - 1 do
    local centre, taps, total = begin + (i + 0.5) * step, {}, 0
    if filter == "nearest" then
      taps[1] = { math.min(math.floor(centre), n - 1), 1 }
    else
      local support = SUPPORT[filter] * wide
      for at = math.max(math.floor(centre - support + 0.5), 0), math.min(math.floor(centre + support + 0.5), n) - 1 do
        local weight = WEIGHTS[filter]((at - centre + 0.5) / wide)
        taps[#taps + 1], total = { at, weight }, total + weight
      end
      for _, tap in ipairs(taps) do tap[2] = tap[2] / total end
    end
    list[i] = taps
  end
  return list
end

local function resized(x, box, o)
  local rank = #x.shape
  local rows, columns, channels = x.shape[rank - 2], x.shape[rank - 1], x.shape[rank]
  local size = type(o.size) == "table" and o.size or { o.size, o.size }
  local shape = { unpack(x.shape) }
  shape[rank - 2], shape[rank - 1] = size[1], size[2]
  local tables = {}
  local function taps(picture)
    local at = box and #box.shape == 2 and picture * 4 or 0
    if not tables[at] then
      local b = box and { unpack(box.data, at + 1, at + 4) } or { 0, 0, rows, columns }
      tables[at] = { taps_of(rows, size[1], b[1], b[3], o), taps_of(columns, size[2], b[2], b[4], o) }
    end
    return tables[at]
  end
  return array.fill(shape, function(i)
    local place = i - 1
    local c = place % channels
    local column = math.floor(place / channels) % size[2]
    local row = math.floor(place / channels / size[2]) % size[1]
    local picture = math.floor(place / channels / size[2] / size[1])
    local of, total = taps(picture), 0
    for _, r in ipairs(of[1][row]) do
      for _, k in ipairs(of[2][column]) do
        total = total + r[2] * k[2] * x.data[((picture * rows + r[1]) * columns + k[1]) * channels + c + 1]
      end
    end
    return total
  end)
end

local BOX = V({ 4 }, { 0.5, 1, 3.25, 4.5 })
local BOXES = V({ 2, 4 }, { 0, 0, 5, 6, 1, 0.25, 2.5, 5.5 })
local pictures = {
  { { 4, 5, 3 }, { size = { 7, 3 } }, { 7, 3, 3 } }, { { 4, 5, 1 }, { size = 2 }, { 2, 2, 1 } },
  { { 2, 5, 6, 2 }, { size = { 3, 9 }, filter = "bicubic" }, { 2, 3, 9, 2 } },
  { { 6, 9, 2 }, { size = { 4, 3 }, filter = "lanczos" }, { 4, 3, 2 } },
  { { 6, 9, 1 }, { size = { 4, 5 }, filter = "area" }, { 4, 5, 1 } },
  { { 6, 9, 1 }, { size = { 4, 13 }, filter = "nearest" }, { 4, 13, 1 } },
  { { 6, 9, 4 }, { size = { 2, 4 }, antialias = false }, { 2, 4, 4 } },
  { { 5, 6, 3 }, { size = { 4, 3 } }, { 4, 3, 3 }, BOX },
  { { 2, 5, 6, 3 }, { size = { 4, 3 } }, { 2, 4, 3, 3 }, BOXES },
  { { 2, 5, 6, 1 }, { size = { 4, 3 }, filter = "nearest" }, { 2, 4, 3, 1 }, BOXES },
  { { 0, 5, 6, 1 }, { size = { 4, 3 } }, { 0, 4, 3, 1 } }, { { 2, 3, 0 }, { size = 2 }, { 2, 2, 0 } },
}
local function cases(make)
  local list = {}
  for i, v in ipairs(pictures) do
    list[i] = make(v[1], v[3], v[4])
    list[i].attrs, list[i].integers, list[i].expanded = v[2], false, v[4] == nil or nil
  end
  return list
end

-- x * scale + shift by channels, which may come before rows and columns.
local function floats(x, scale, shift, o)
  local rank, shape = #x.shape, { unpack(x.shape) }
  local rows, columns, channels = x.shape[rank - 2], x.shape[rank - 1], x.shape[rank]
  if o.channels_first then shape[rank - 2], shape[rank - 1], shape[rank] = channels, rows, columns end
  return array.fill(shape, function(i)
    local place = i - 1
    if o.channels_first then
      local pixel = place % (rows * columns)
      local c = math.floor(place / (rows * columns)) % channels
      place = (math.floor(place / (rows * columns * channels)) * rows * columns + pixel) * channels + c
    end
    local of = #scale.data == 1 and 1 or place % channels + 1
    return x.data[place + 1] * scale.data[of] + shift.data[of]
  end)
end
local function bytes(shape) return N(shape, 0, 255, "uint8") end
local function numbers(n) return N({ n }, -3, 3, "float32") end
local FIRST = { channels_first = true }
local HALF, WIDE = { dtype = "bfloat16", channels_first = true }, { dtype = "float64" }

return {
  image_resize = {
    class = "sum", grad = { true, false }, bools = false, ref = function(a, o) return resized(a[1], a[2], o) end,
    cases = cases(function(xs, _, box) return { F(xs), box } end),
    bad = { { { F { 4, 4, 3 } }, { size = 0 }, "at least 1" }, { { F { 4, 4 } }, { size = 2 }, "axes" },
      { { F { 4, 0, 3 } }, { size = 2 }, "nothing to resize" }, { { F { 4, 4, 3 } }, nil, "missing" },
      { { F { 4, 4, 3 }, F { 3 } }, { size = 2 }, "top, left, height and width" },
      { { F { 4, 4, 3 }, F { 2, 4 } }, { size = 2 }, "for pictures" },
      { { F { 4, 4, 3 } }, { size = 2, filter = "box" }, "filter must be one of" },
      { { F { 4, 4, 3 }, V({ 4 }, { 0, 0, 5, 1 }) }, { size = 2 }, "not inside of a picture of 4 x 4",
        not_on = "cuda" } },
  },
  image_resize_grad = {
    class = "sum", grad = { true, false, false },
    ref = function(a, o) return array.adjoint(a[2].shape, a[1], function(v) return resized(v, a[3], o) end) end,
    cases = cases(function(xs, ys, box) return { F(ys), F(xs), box } end),
    bad = { { { F { 4, 4, 3 }, F { 5, 5, 3 } }, { size = 2 }, "shape of the resized x" } },
  },
  image_to_float = {
    class = "arithmetic", ref = function(a, o) return floats(a[1], a[2], a[3], o) end,
    cases = {
      { bytes { 4, 5, 3 }, numbers(3), numbers(3) }, { bytes { 4, 5, 3 }, numbers(3), numbers(3), attrs = FIRST },
      { bytes { 2, 23, 41, 3 }, numbers(3), numbers(3), attrs = FIRST },
      { bytes { 3, 9, 70, 4 }, numbers(4), numbers(4), attrs = FIRST },
      { bytes { 3, 9, 70, 1 }, numbers(1), numbers(1), attrs = FIRST },
      { bytes { 5, 3, 2 }, numbers(2), numbers(2), attrs = FIRST },
      { bytes { 2, 2, 5, 3, 5 }, numbers(5), numbers(5), attrs = FIRST },
      { bytes { 17, 41, 3 }, numbers(1), numbers(1) }, { bytes { 17, 41, 3 }, numbers(1), numbers(1), attrs = FIRST },
      { bytes { 0, 5, 3 }, numbers(3), numbers(3), attrs = FIRST }, { bytes { 4, 5, 0 }, numbers(1), numbers(1) },
      { N({ 2, 30, 20, 3 }, 0, 63, "uint8"), numbers(3), numbers(3), attrs = HALF }, -- which bfloat16 has exactly
      { bytes { 30, 20, 3 }, numbers(3), numbers(3), attrs = { dtype = "float16" } },
      { bytes { 30, 20, 3 }, numbers(3), numbers(3), attrs = WIDE },
    },
    bad = { { { N({ 4, 5, 3 }, 0, 9, "int8"), numbers(3), numbers(3) }, nil, "expected uint8" },
      { { bytes { 4, 5, 3 }, numbers(2), numbers(2) }, nil, "one number a channel" },
      { { bytes { 4, 5, 3 }, numbers(3), numbers(1) }, nil, "must have the shape of" },
      { { bytes { 5, 3 }, numbers(3), numbers(3) }, nil, "axes" },
      { { bytes { 4, 5, 3 }, F { 3 }, numbers(3) }, { dtype = "int64" }, "expected a floating one" },
      { { bytes { 4, 5, 3 }, N({ 3 }, 0, 9, "float64"), numbers(3) }, nil, "expected float32" } },
  },
}
