-- SPDX-License-Identifier: Apache-2.0
-- Weights of small whole numbers and scales.

local array = require "cases.array"
local S = require "cases.specs"
local F, N, V = S.F, S.N, S.V

local rows = {}
local INT4 = { format = "int4" }
local function bytes(out, inputs) return N({ out, inputs }, -127, 127, "int8") end
local function pairs_of(out, inputs) return N({ out, inputs / 2 }, 0, 255, "uint8") end
local function scales(out, groups) return F({ out, groups }, 0.25, 2) end

local function scale_at(scale, i, j, inputs) return array.get(scale, i, math.floor(j / (inputs / scale.shape[2]))) end

local function weight(q, scale, o)
  local four = o.format == "int4"
  local inputs = q.shape[2] * (four and 2 or 1)
  return array.build({ q.shape[1], inputs }, function(ix)
    local i, j = ix[1], ix[2]
    local v
    if four then
      local byte = array.get(q, i, math.floor(j / 2))
      v = (j % 2 == 0 and byte % 16 or math.floor(byte / 16)) - 8
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

rows.quantize = {
  class = "exact", grad = false,
  ref = function(a, o)
    local x, scale = a[1], a[2]
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
  },
  bad = { { { N({ 3, 4 }, 0, 9, "uint8"), F { 3, 1 } }, nil, "expected int8" },
    { { N({ 3, 4 }, 0, 9, "int8"), F { 3, 1 } }, INT4, "expected uint8" },
          { { N({ 3, 4 }, 0, 9, "int8"), F { 3, 3 } }, nil, "do not divide" },
            { { N({ 3 }, 0, 9, "int8"), F { 3, 1 } }, nil, "axes" } },
}

local function clamp(v, low, high) return math.min(math.max(v, low), high) end

-- x as whole numbers times scales would have it: of each row where there is no scale.
local function activations(x, scale, zero, o)
  local inputs = x.shape[#x.shape]
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
      return sum
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
    { F({ 3, 32 }, -3, 3), bytes(5, 32), F({ 5, 1 }, 0.01, 0.02), F { 5 }, V({ 1 }, { 0.015625 }), V({ 1 }, { 77 }),
      attrs = { activations = "uint8" }, grad = false },
  },
  bad = { { { F { 3, 8 }, N({ 5, 7 }, 0, 9, "int8"), F { 5, 1 } }, nil, "number of columns" },
    { { F { 3, 8 }, N({ 5, 8 }, 0, 9, "int8"), F { 5, 1 }, F { 4 } }, nil, "first axis of weight" },
          { { F { 3, 8 }, N({ 5, 8 }, 0, 9, "int8"), F { 5, 3 } }, nil, "do not divide" },
            { { F { 3, 8 }, N({ 5, 8 }, 0, 9, "int8"), F { 5, 1 } }, INT4, "expected uint8" },
            { { F {}, N({ 5, 8 }, 0, 9, "int8"), F { 5, 1 } }, nil, "axis" },
            { { F { 3, 8 }, N({ 5, 8 }, 0, 9, "int8"), F { 5, 1 }, F { 5 }, F { 1 } }, nil, "are not quantised" },
            { { F { 3, 8 }, N({ 5, 8 }, 0, 9, "int8"), F { 5, 1 }, F { 5 }, F { 2 } }, { activations = "int8" },
              "one number for all of x" },
            { { F { 3, 8 }, N({ 5, 8 }, 0, 9, "int8"), F { 5, 1 }, F { 5 }, F { 1 }, F { 1 } },
              { activations = "int8" }, "symmetric" },
            { { F { 3, 8 }, N({ 5, 8 }, 0, 9, "int8"), F { 5, 1 }, F { 5 }, F { 1 } }, { activations = "uint8" },
              "or none of them" } },
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
