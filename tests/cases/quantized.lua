-- SPDX-License-Identifier: Apache-2.0
-- Weights of small whole numbers and scales.

local array = require "cases.array"
local S = require "cases.specs"
local F, N, V = S.F, S.N, S.V

local rows = {}
local INT4 = { format = "int4" }
local E4M3, E5M2 = { format = "float8_e4m3fn" }, { format = "float8_e5m2" }
local function bytes(out, inputs) return N({ out, inputs }, -127, 127, "int8") end
local function pairs_of(out, inputs) return N({ out, inputs / 2 }, 0, 255, "uint8") end
local function scales(out, groups) return F({ out, groups }, 0.25, 2) end

local function scale_at(scale, i, j, inputs) return array.get(scale, i, math.floor(j / (inputs / scale.shape[2]))) end

-- What a code of float8 stands for: a sign, an exponent, `bits` of a fraction.
local function float8(code, o)
  local bits, bias = o.format == "float8_e4m3fn" and 3 or 2, o.format == "float8_e4m3fn" and 7 or 15
  local sign, rest = code >= 128 and -1 or 1, code % 128
  local exponent, fraction = math.floor(rest / 2 ^ bits), rest % 2 ^ bits / 2 ^ bits
  if o.format == "float8_e4m3fn" and rest == 127 then return 0 / 0 end
  if o.format == "float8_e5m2" and exponent == 31 then return fraction == 0 and sign / 0 or 0 / 0 end
  return sign * (exponent == 0 and fraction * 2 ^ (1 - bias) or (1 + fraction) * 2 ^ (exponent - bias))
end

local function weight(q, scale, o)
  local four = o.format == "int4"
  local inputs = q.shape[2] * (four and 2 or 1)
  return array.build({ q.shape[1], inputs }, function(ix)
    local i, j = ix[1], ix[2]
    local v
    if four then
      local byte = array.get(q, i, math.floor(j / 2))
      v = (j % 2 == 0 and byte % 16 or math.floor(byte / 16)) - 8
    elseif o.format and o.format:find "float8" then
      v = float8(array.get(q, i, j), o)
    else
      v = array.get(q, i, j)
    end
    return v * scale_at(scale, i, j, inputs)
  end)
end

local function nearest(v)
  local low = math.floor(v)
  local above = v - low
  if above == 0.5 then return low % 2 == 0 and low or low + 1 end
  return above < 0.5 and low or low + 1
end

local function whole(x, scale, i, j, low, high)
  local v = array.get(x, i, j) / scale_at(scale, i, j, x.shape[2])
  return v ~= v and 0 or nearest(math.min(math.max(v, low), high))
end

-- The code whose number is nearest, of two as near the even one.
local function float8_code(v, o)
  local top = o.format == "float8_e4m3fn" and 0x7e or 0x7b
  if v ~= v then return 127 end
  local best, off = 0, math.huge
  for code = 0, top do
    local d = math.abs(float8(code, o) - math.abs(v))
    if math.abs(v) == math.huge then d = top - code end
    if d < off or d == off and code % 2 == 0 then best, off = code, d end
  end
  return v < 0 and best + 128 or best
end

rows.quantize = {
  class = "exact", grad = false,
  ref = function(a, o)
    local x, scale = a[1], a[2]
    if o.format and o.format:find "float8" then
      return array.build(x.shape, function(ix)
        local step = scale_at(scale, ix[1], ix[2], x.shape[2])
        return float8_code(array.get(x, ix[1], ix[2]) / step, o)
      end)
    end
    if o.format ~= "int4" then
      return array.build(x.shape, function(ix) return whole(x, scale, ix[1], ix[2], -127, 127) end)
    end
    return array.build({ x.shape[1], x.shape[2] / 2 }, function(ix)
      local i, j = ix[1], 2 * ix[2]
      return whole(x, scale, i, j, -8, 7) + 8 + 16 * (whole(x, scale, i, j + 1, -8, 7) + 8)
    end)
  end,
  cases = {
    { F({ 3, 8 }, -200, 200), scales(3, 1) }, { F({ 3, 8 }, -200, 200), scales(3, 4) }, { F { 0, 4 }, scales(0, 2) },
    { F { 3, 0 }, scales(3, 2) }, { F({ 5, 7 }, -9, 9), scales(5, 7) },
    { F({ 3, 8 }, -9, 9), scales(3, 1), attrs = INT4 }, { F({ 3, 8 }, -9, 9), scales(3, 4), attrs = INT4 },
    { F { 3, 0 }, scales(3, 1), attrs = INT4 }, { F({ 2, 6 }, -9, 9), scales(2, 2), attrs = INT4 },
    { V({ 1, 8 }, { 0 / 0, 1 / 0, -1 / 0, 0.5, 1.5, -0.5, -1.5, 1000 }), V({ 1, 1 }, { 1 }), special = true },
    { V({ 1, 8 }, { 0 / 0, 1 / 0, -1 / 0, 0.5, 1.5, -0.5, -1.5, 1000 }), V({ 1, 1 }, { 1 }), special = true,
      attrs = INT4 },
    { F({ 3, 8 }, -600, 600), V({ 3, 1 }, { 1, 0.5, 2 }), attrs = E4M3 },
    { F({ 3, 8 }, -0.05, 0.05), V({ 3, 2 }, { 1, 0.5, 2, 1, 4, 0.25 }), attrs = E4M3 },
    { F({ 3, 8 }, -600, 600), V({ 3, 1 }, { 1, 0.5, 2 }), attrs = E5M2 },
    { F({ 3, 8 }, -1e-4, 1e-4), V({ 3, 1 }, { 1, 0.5, 2 }), attrs = E5M2 }, { F { 3, 0 }, scales(3, 1), attrs = E5M2 },
    { V({ 1, 8 }, { 0 / 0, 1 / 0, -1 / 0, 0.5, 1.5, -0.5, 1.0625, 1000 }), V({ 1, 1 }, { 1 }), special = true,
      attrs = E4M3 },
    { V({ 1, 8 }, { 0 / 0, 1 / 0, -1 / 0, 0.5, 1.125, -1.375, 1.0625, 1e5 }), V({ 1, 1 }, { 1 }), special = true,
      attrs = E5M2 },
  },
  bad = { { { F { 3, 4 }, F { 3, 3 } }, nil, "do not divide" }, { { F { 3, 4 }, F { 2, 1 } }, nil, "number of rows" },
    { { F { 3, 4 }, F { 3, 0 } }, nil, "no groups" }, { { F { 3, 5 }, F { 3, 1 } }, INT4, "even" },
          { { F { 3 }, F { 3, 1 } }, nil, "axes" }, { { F { 3, 4 }, F { 3 } }, nil, "axes" } },
}

rows.dequantize = {
  class = "arithmetic", ref = function(a, o) return weight(a[1], a[2], o) end,
  cases = {
    { bytes(3, 8), scales(3, 1) }, { bytes(3, 8), scales(3, 4) }, { bytes(0, 4), scales(0, 2) },
    { bytes(3, 0), scales(3, 2) }, { bytes(5, 7), scales(5, 7) }, { pairs_of(3, 8), scales(3, 1), attrs = INT4 },
    { pairs_of(3, 8), scales(3, 4), attrs = INT4 }, { pairs_of(3, 0), scales(3, 1), attrs = INT4 },
    { pairs_of(2, 6), scales(2, 2), attrs = INT4 },
    { N({ 4, 12 }, 0, 126, "uint8"), scales(4, 2), attrs = E4M3 },
    { N({ 4, 12 }, 128, 254, "uint8"), scales(4, 1), attrs = E4M3 },
    { N({ 4, 12 }, 0, 110, "uint8"), scales(4, 2), attrs = E5M2 },
    { N({ 4, 12 }, 128, 238, "uint8"), scales(4, 1), attrs = E5M2 },
  },
  bad = { { { N({ 3, 4 }, 0, 9, "uint8"), F { 3, 1 } }, nil, "expected int8" },
    { { N({ 3, 4 }, 0, 9, "int8"), F { 3, 1 } }, E4M3, "expected uint8" },
    { { N({ 3, 4 }, 0, 9, "int8"), F { 3, 1 } }, INT4, "expected uint8" },
          { { N({ 3, 4 }, 0, 9, "int8"), F { 3, 3 } }, nil, "do not divide" },
            { { N({ 3 }, 0, 9, "int8"), F { 3, 1 } }, nil, "axes" } },
}

local function clamp(v, low, high) return math.min(math.max(v, low), high) end

-- x as whole numbers times scales would have it: of each row where there is no scale.
local function activations(x, scale, zero, o, inputs)
  inputs = inputs or x.shape[#x.shape]
  if not o.activations or o.activations == "floating" or inputs == 0 then return x end
  local low, high = -127, 127
  if o.activations == "uint8" then low, high = 0, 255 end
  local out = { shape = x.shape, data = {} }
  for first = 1, #x.data, inputs do
    local least, most = 0, 0
    for i = first, first + inputs - 1 do least, most = math.min(least, x.data[i]), math.max(most, x.data[i]) end
    local step, at = low < 0 and math.max(-least, most) / 127 or (most - least) / 255, 0
    if step == 0 then step = 1 end
    if low == 0 then at = nearest(-least / step) end
    if scale then step, at = scale.data[1], zero and zero.data[1] or 0 end
    for i = first, first + inputs - 1 do
      out.data[i] = (clamp(nearest(x.data[i] / step) + at, low, high) - at) * step
    end
  end
  return out
end

rows.quantized_linear = {
  class = "sum",
  ref = function(a, o)
    local x, w, bias = activations(a[1], a[5], a[6], o), weight(a[2], a[3], o), a[4]
    local shape, inputs = { unpack(x.shape) }, w.shape[2]
    shape[#shape] = w.shape[1]
    local from = { unpack(x.shape) }
    return array.build(shape, function(ix)
      local sum, at = bias and bias.data[ix[#ix] + 1] or 0, { unpack(ix) }
      for k = 0, inputs - 1 do
        at[#from] = k
        sum = sum + x.data[array.at(x, at)] * array.get(w, ix[#ix], k)
      end
      return o.activation == "relu" and sum < 0 and 0 or sum
    end)
  end,
  cases = {
    { F { 3, 8 }, bytes(5, 8), F({ 5, 1 }, 0.01, 0.02), F { 5 } }, { F { 3, 8 }, bytes(5, 8), F({ 5, 2 }, 0.01, 0.02) },
    { F { 8 }, bytes(5, 8), F({ 5, 1 }, 0.01, 0.02), F { 5 } }, { F { 3, 2, 8 }, bytes(5, 8), F({ 5, 4 }, 0.01, 0.02) },
    { F { 0, 8 }, bytes(5, 8), F({ 5, 1 }, 0.01, 0.02), F { 5 } },
    { F { 3, 0 }, bytes(5, 0), F({ 5, 1 }, 0.01, 0.02), F { 5 } },
    { F { 9, 33 }, bytes(17, 33), F({ 17, 3 }, 0.01, 0.02), F { 17 }, grad = false },
    { F { 3, 8 }, pairs_of(5, 8), F({ 5, 1 }, 0.1, 0.2), F { 5 }, attrs = INT4 },
    { F { 8 }, pairs_of(5, 8), F({ 5, 2 }, 0.1, 0.2), attrs = INT4 },
    { F { 3, 2, 6 }, pairs_of(5, 6), F({ 5, 2 }, 0.1, 0.2), F { 5 }, attrs = INT4 },
    { F { 2, 80 }, pairs_of(11, 80), F({ 11, 5 }, 0.1, 0.2), F { 11 }, attrs = INT4, grad = false },
    { F { 3, 8 }, bytes(5, 8), F({ 5, 1 }, 0.01, 0.02), F { 5 }, attrs = { activations = "int8" }, grad = false },
    { F { 2, 3, 34 }, bytes(6, 34), F({ 6, 2 }, 0.01, 0.02), attrs = { activations = "uint8" }, grad = false },
    { F { 0, 8 }, bytes(5, 8), F({ 5, 1 }, 0.01, 0.02), attrs = { activations = "int8" }, grad = false },
    { F { 2, 0 }, bytes(5, 0), F({ 5, 1 }, 0.01, 0.02), F { 5 }, attrs = { activations = "uint8" }, grad = false },
    { F { 3, 64 }, pairs_of(5, 64), F({ 5, 2 }, 0.1, 0.2), F { 5 }, attrs = { format = "int4", activations = "int8" },
      grad = false },
    { F { 3, 32 }, pairs_of(5, 32), F({ 5, 1 }, 0.1, 0.2), F { 5 }, attrs = { format = "int4", activations = "uint8" },
      grad = false },
    { F({ 3, 32 }, -3, 3), bytes(5, 32), F({ 5, 1 }, 0.01, 0.02), F { 5 }, V({ 1 }, { 0.015625 }),
      attrs = { activations = "int8" }, grad = false },
    { F { 3, 8 }, bytes(5, 8), F({ 5, 1 }, 0.01, 0.02), F { 5 }, attrs = { activation = "relu" } },
    { F { 3, 64 }, bytes(5, 64), F({ 5, 1 }, 0.01, 0.02), F { 5 },
      attrs = { activation = "relu", activations = "uint8" }, grad = false },
    { F { 3, 8 }, N({ 5, 8 }, 0, 90, "uint8"), F({ 5, 2 }, 0.01, 0.02), F { 5 }, attrs = E4M3 },
    { F { 3, 8 }, N({ 5, 8 }, 130, 200, "uint8"), F({ 5, 1 }, 0.01, 0.02), F { 5 }, attrs = E5M2 },
    { F({ 3, 32 }, -3, 3), bytes(5, 32), F({ 5, 1 }, 0.01, 0.02), F { 5 }, V({ 1 }, { 0.015625 }), V({ 1 }, { 77 }),
      attrs = { activations = "uint8" }, grad = false },
  },
  bad = { { { F { 3, 8 }, N({ 5, 7 }, 0, 9, "int8"), F { 5, 1 } }, nil, "number of columns" },
    { { F { 3, 8 }, N({ 5, 8 }, 0, 9, "int8"), F { 5, 1 }, F { 4 } }, nil, "first axis of weight" },
          { { F { 3, 8 }, N({ 5, 8 }, 0, 9, "int8"), F { 5, 3 } }, nil, "do not divide" },
            { { F { 3, 8 }, N({ 5, 8 }, 0, 9, "int8"), F { 5, 1 } }, INT4, "expected uint8" },
            { { F { 3, 8 }, N({ 5, 8 }, 0, 9, "uint8"), F { 5, 1 } },
              { format = "float8_e5m2", activations = "int8" }, "multiplies floats" },
            { { F {}, N({ 5, 8 }, 0, 9, "int8"), F { 5, 1 } }, nil, "axis" },
            { { F { 3, 8 }, N({ 5, 8 }, 0, 9, "int8"), F { 5, 1 }, F { 5 }, F { 1 } }, nil, "are not quantised" },
            { { F { 3, 8 }, N({ 5, 8 }, 0, 9, "int8"), F { 5, 1 }, F { 5 }, F { 2 } }, { activations = "int8" },
              "one number for all of x" },
            { { F { 3, 8 }, N({ 5, 8 }, 0, 9, "int8"), F { 5, 1 }, F { 5 }, F { 1 }, F { 1 } },
              { activations = "int8" }, "symmetric" },
            { { F { 3, 8 }, N({ 5, 8 }, 0, 9, "int8"), F { 5, 1 }, F { 5 }, F { 1 } }, { activations = "uint8" },
              "or none of them" } },
}

rows.quantized_conv2d = {
  class = "sum",
  ref = function(a, o)
    local images, w, bias = a[1], weight(a[2], a[3], o), a[4]
    local n, channels, height, width = unpack(images.shape)
    local x = activations(images, a[5], a[6], o, channels * height * width)
    local function pair(list, default)
      if not list then return default, default end
      return list[1], list[2] or list[1]
    end
    local kh, kw = pair(o.kernel)
    local sh, sw = pair(o.stride, 1)
    local dh, dw = pair(o.dilation, 1)
    local p, groups, out = o.padding or { 0 }, o.groups or 1, w.shape[1]
    local top, left, bottom, right = p[1], p[2] or p[1], p[1], p[2] or p[1]
    if #p == 4 then top, bottom, left, right = unpack(p) end
    local rows_out = math.floor((height + top + bottom - dh * (kh - 1) - 1) / sh) + 1
    local columns_out = math.floor((width + left + right - dw * (kw - 1) - 1) / sw) + 1
    local inside = channels / groups
    return array.build({ n, out, rows_out, columns_out }, function(ix)
      local sum = bias and bias.data[ix[2] + 1] or 0
      local first = math.floor(ix[2] / (out / groups)) * inside
      for c = 0, inside - 1 do
        for i = 0, kh - 1 do
          for j = 0, kw - 1 do
            local row, column = ix[3] * sh - top + i * dh, ix[4] * sw - left + j * dw
            if row >= 0 and row < height and column >= 0 and column < width then
              sum = sum + x.data[array.at(x, { ix[1], first + c, row, column })] *
                      array.get(w, ix[2], (c * kh + i) * kw + j)
            end
          end
        end
      end
      return o.activation == "relu" and sum < 0 and 0 or sum
    end)
  end,
  cases = {
    { F { 2, 3, 5, 4 }, bytes(4, 27), F({ 4, 1 }, 0.01, 0.02), F { 4 },
      attrs = { kernel = { 3, 3 }, padding = { 1 } } },
    { F { 1, 2, 4, 3 }, bytes(4, 8), F({ 4, 1 }, 0.01, 0.02), F { 4 },
      attrs = { kernel = { 2, 2 }, activation = "relu" } },
    { F { 1, 2, 4, 5 }, bytes(3, 12), F({ 3, 2 }, 0.01, 0.02), attrs = { kernel = { 2, 3 }, stride = { 2, 1 } } },
    { F { 2, 4, 5, 5 }, bytes(6, 8), F({ 6, 1 }, 0.01, 0.02), F { 6 },
      attrs = { kernel = { 2, 2 }, groups = 2, dilation = { 2, 1 }, padding = { 0, 1, 2, 0 } } },
    { F { 2, 4, 4, 4 }, pairs_of(3, 36), F({ 3, 3 }, 0.1, 0.2), F { 3 },
      attrs = { kernel = { 3, 3 }, format = "int4" } },
    { F { 1, 2, 4, 4 }, N({ 3, 8 }, 0, 90, "uint8"), F({ 3, 1 }, 0.01, 0.02), F { 3 },
      attrs = { kernel = { 2, 2 }, format = "float8_e4m3fn" } },
    { F { 0, 3, 5, 4 }, bytes(4, 27), F({ 4, 1 }, 0.01, 0.02), F { 4 }, attrs = { kernel = { 3, 3 } } },
    { F { 2, 0, 5, 4 }, bytes(4, 0), F({ 4, 1 }, 0.01, 0.02), F { 4 }, attrs = { kernel = { 3, 3 } }, grad = false },
    { F { 2, 3, 5, 4 }, bytes(9, 27), F({ 9, 1 }, 0.01, 0.02), F { 9 },
      attrs = { kernel = { 3, 3 }, padding = { 1 }, activations = "int8", activation = "relu" }, grad = false },
    { F { 2, 3, 5, 4 }, bytes(9, 27), F({ 9, 1 }, 0.01, 0.02), F { 9 },
      attrs = { kernel = { 3, 3 }, padding = { 1 }, activations = "uint8" }, grad = false },
    { F({ 2, 3, 5, 4 }, -3, 3), bytes(9, 27), F({ 9, 1 }, 0.01, 0.02), F { 9 }, V({ 1 }, { 0.015625 }),
      V({ 1 }, { 77 }), attrs = { kernel = { 3, 3 }, padding = { 2 }, activations = "uint8" }, grad = false },
    { F({ 2, 3, 5, 4 }, -3, 3), bytes(3, 27), F({ 3, 3 }, 0.01, 0.02), F { 3 }, V({ 1 }, { 0.015625 }),
      attrs = { kernel = { 3, 3 }, activations = "int8" }, grad = false },
  },
  bad = { { { F { 1, 3, 5, 5 }, N({ 4, 26 }, 0, 9, "int8"), F { 4, 1 } }, { kernel = { 3, 3 } }, "expected 27" },
    { { F { 3, 5, 5 }, N({ 4, 27 }, 0, 9, "int8"), F { 4, 1 } }, { kernel = { 3, 3 } }, "axes" },
    { { F { 1, 3, 5, 5 }, N({ 4, 27 }, 0, 9, "int8"), F { 4, 1 }, F { 3 } }, { kernel = { 3, 3 } }, "output channels" },
    { { F { 1, 3, 5, 5 }, N({ 4, 9 }, 0, 9, "int8"), F { 4, 1 } }, { kernel = { 3, 3 }, groups = 2 }, "do not split" },
    { { F { 1, 4, 5, 5 }, N({ 3, 18 }, 0, 9, "int8"), F { 3, 1 } }, { kernel = { 3, 3 }, groups = 2 },
      "do not split" },
    { { F { 1, 3, 2, 5 }, N({ 4, 27 }, 0, 9, "int8"), F { 4, 1 } }, { kernel = { 3, 3 } }, "smaller than the window" },
    { { F { 1, 3, 5, 5 }, N({ 4, 27 }, 0, 9, "int8"), F { 4, 2 } }, { kernel = { 3, 3 } }, "do not divide" },
    { { F { 1, 3, 5, 5 }, N({ 4, 27 }, 0, 9, "int8"), F { 4, 1 }, F { 4 }, F { 1 } }, { kernel = { 3, 3 } },
      "are not quantised" },
  },
}

rows.fake_quantize = {
  class = "arithmetic", grad = false,
  ref = function(a, o)
    local x, scale, zero = a[1], a[2], a[3]
    return array.build(x.shape, function(ix)
      local v, step = x.data[array.at(x, ix)], array.shown(scale, ix)
      local at = zero and array.shown(zero, ix) or 0
      local q = nearest(v / step) + at
      return ((q == q and clamp(q, o.low or -127, o.high or 127) or clamp(0, o.low or -127, o.high or 127)) - at) * step
    end)
  end,
  cases = {
    { F({ 3, 8 }, -40, 40), V({ 1 }, { 0.25 }) }, { F({ 3, 8 }, -40, 40), V({ 3, 1 }, { 0.25, 0.5, 1 }) },
    { F({ 2, 3, 4 }, -40, 40), V({ 3, 1 }, { 0.25, 0.5, 1 }), V({ 1 }, { 100 }), attrs = { low = 0, high = 255 } },
    { F { 0, 4 }, V({ 1 }, { 0.25 }) }, { F({}, -9, 9), V({}, { 0.5 }), V({}, { 3 }), attrs = { low = -8, high = 7 } },
    { V({ 6 }, { 0 / 0, 1 / 0, -1 / 0, 0.5, 1.5, -0.5 }), V({ 1 }, { 1 }), special = true },
  },
  bad = { { { F { 3 }, F { 2 } }, nil, "broadcast" }, { { F { 3 }, F { 3 }, F { 2 } }, nil, "broadcast" },
    { { F { 3 }, F { 3 } }, { low = 3, high = 3 }, "low must be below high" } },
}

return rows
