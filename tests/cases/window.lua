-- SPDX-License-Identifier: Apache-2.0
-- Convolution and pooling over one to three axes. References walk the windows of every position.

local array = require "cases.array"
local S = require "cases.specs"
local F, D, I, V = S.F, S.D, S.I, S.V

-- A list of n numbers from one number or a list.
local function many(v, n, otherwise)
  if v == nil or (type(v) == "table" and #v == 0) then v = otherwise end
  if type(v) == "table" then return v end
  local list = {}
  for i = 1, n do list[i] = v end
  return list
end

-- Window, stride, dilation, and padding before and behind, by axis.
local function geometry(o, window)
  local n = #window
  local padding, before, behind = many(o.padding, n, 0), {}, {}
  for i = 1, n do
    before[i] = #padding == 2 * n and padding[2 * i - 1] or padding[i]
    behind[i] = #padding == 2 * n and padding[2 * i] or padding[i]
  end
  return { window = window, stride = many(o.stride, n, o.kernel or 1), before = before, behind = behind,
    dilation = many(o.dilation, n, 1) }
end

local function sizes(a)
  local list = {}
  for i = 3, #a.shape do list[i - 2] = a.shape[i] end
  return list
end

local function count(size, g, i, ceil)
  local room = size + g.before[i] + g.behind[i] - g.dilation[i] * (g.window[i] - 1) - 1
  local n = (ceil and math.ceil or math.floor)(room / g.stride[i]) + 1
  if ceil and (n - 1) * g.stride[i] >= size + g.before[i] then n = n - 1 end
  return n
end

local function out_shape(x, channels, g, ceil)
  local shape = { x.shape[1], channels }
  for i, size in ipairs(sizes(x)) do shape[i + 2] = count(size, g, i, ceil) end
  return shape
end

-- Calls f(place, tap, padded) for each element of the window at position o (a list): its place in row-major order, nil
-- outside, and whether it lies within the padding.
local function walk(g, size, o, f)
  local n, taps = #size, array.count(g.window)
  for tap = 1, taps do
    local at, place, padded = array.index(g.window, tap), 0, true
    for i = 1, n do
      local p = o[i] * g.stride[i] - g.before[i] + at[i] * g.dilation[i]
      if p < 0 or p >= size[i] then
        padded = padded and p < size[i] + g.behind[i]
        place = nil
      end
      place = place and place * size[i] + p
    end
    f(place, tap - 1, padded)
  end
end

local function positions(ix)
  local o = {}
  for i = 3, #ix do o[i - 2] = ix[i] end
  return o
end

local function conv(x, weight, bias, o)
  local g, groups = geometry(o, sizes(weight)), o.groups or 1
  local size, per_in, per_out = sizes(x), weight.shape[2], weight.shape[1] / groups
  local plane, taps = array.count(size), array.count(g.window)
  return array.build(out_shape(x, weight.shape[1], g), function(ix)
    local n, c = ix[1], ix[2]
    local s, first = bias and bias.data[c + 1] or 0, math.floor(c / per_out) * per_in
    walk(g, size, positions(ix), function(place, tap)
      if not place then return end
      for k = 0, per_in - 1 do
        s = s + x.data[(n * x.shape[2] + first + k) * plane + place + 1] *
          weight.data[(c * per_in + k) * taps + tap + 1]
      end
    end)
    return s
  end)
end

local function conv_transpose(x, weight, bias, o)
  local g, groups, more = geometry(o, sizes(weight)), o.groups or 1, many(o.output_padding, #x.shape - 2, 0)
  local per_in, per_out, shape = weight.shape[1] / groups, weight.shape[2], { x.shape[1], weight.shape[2] * groups }
  for i, size in ipairs(sizes(x)) do
    shape[i + 2] = (size - 1) * g.stride[i] - g.before[i] - g.behind[i] + g.dilation[i] * (g.window[i] - 1) +
      more[i] + 1
  end
  local y = array.new(shape)
  local plane, taps = array.count(sizes(y)), array.count(g.window)
  for p = 1, array.count(shape) do
    y.data[p] = bias and bias.data[math.floor((p - 1) / plane) % shape[2] + 1] or 0
  end
  for p, v in ipairs(x.data) do
    local ix = array.index(x.shape, p)
    local first = math.floor(ix[2] / per_in) * per_out
    walk(g, sizes(y), positions(ix), function(place, tap)
      if not place then return end
      for k = 0, per_out - 1 do
        local at = (ix[1] * shape[2] + first + k) * plane + place + 1
        y.data[at] = y.data[at] + v * weight.data[(ix[2] * per_out + k) * taps + tap + 1]
      end
    end)
  end
  return y
end

local rows = {}

-- x, weight, attributes, y; gradients of second order of those marked.
local convolutions = {
  { { { 3, 2, 6 }, { 4, 2, 3 }, {}, { 3, 4, 4 } },
    { { 2, 2, 7 }, { 4, 2, 3 }, { stride = 2, padding = 1 }, { 2, 4, 4 }, second = true },
    { { 2, 4, 6 }, { 6, 2, 2 }, { groups = 2, padding = { 0, 2 }, dilation = 2 }, { 2, 6, 6 }, second = true },
    { { 0, 2, 5 }, { 4, 2, 2 }, {}, { 0, 4, 4 } } },
  { { { 3, 2, 5, 4 }, { 4, 2, 3, 2 }, {}, { 3, 4, 3, 3 }, second = true },
    { { 3, 2, 5, 4 }, { 4, 2, 3, 2 }, { stride = 2, padding = 1 }, { 3, 4, 3, 3 }, second = true },
    { { 3, 2, 5, 4 }, { 4, 2, 3, 2 }, { stride = { 2, 1 }, padding = { 1, 2 }, dilation = { 2, 1 } }, { 3, 4, 2, 7 },
      second = true },
    { { 3, 4, 4, 4 }, { 6, 2, 2, 2 }, { groups = 2 }, { 3, 6, 3, 3 }, second = true },
    { { 3, 4, 4, 4 }, { 4, 1, 3, 3 }, { groups = 4, padding = 1 }, { 3, 4, 4, 4 } },
    { { 3, 2, 3, 3 }, { 2, 2, 1, 1 }, {}, { 3, 2, 3, 3 }, second = true },
    { { 0, 2, 5, 4 }, { 4, 2, 3, 2 }, {}, { 0, 4, 3, 3 } } },
  { { { 2, 2, 3, 4, 3 }, { 3, 2, 2, 2, 2 }, {}, { 2, 3, 2, 3, 2 } },
    { { 1, 2, 3, 4, 3 }, { 4, 1, 2, 3, 2 }, { stride = { 1, 2, 1 }, padding = { 1, 1, 0 }, dilation = { 2, 1, 1 },
      groups = 2 }, { 1, 4, 3, 2, 2 }, second = true },
    { { 0, 2, 3, 3, 3 }, { 3, 2, 2, 2, 2 }, {}, { 0, 3, 2, 2, 2 } } },
}
-- Sizes that differ before and behind.
local uneven = { { 2, 2, 4, 3 }, { 2, 2, 2, 2 }, { padding = { 0, 1, 1, 0 } }, { 2, 2, 4, 3 } }

local function conv_cases(axes, make)
  local cases = {}
  for i, v in ipairs(convolutions[axes]) do
    cases[i] = make(v[1], v[2], v[4], i)
    cases[i].attrs, cases[i].second = v[3], v.second or false
  end
  return cases
end

local conv_bad = {
  { { { F { 2, 3, 5 }, F { 4, 2, 3 } }, nil, "channels" }, { { F { 2, 2, 2 }, F { 4, 2, 3 } }, nil, "smaller than" },
    { { F { 2, 2, 5 }, F { 4, 2, 3 } }, { padding = { 1, 1, 1 } }, "3 numbers" } },
  { { { F { 2, 3, 5, 5 }, F { 4, 2, 3, 2 } }, nil, "channels" },
    { { F { 2, 2, 2, 2 }, F { 4, 2, 3, 2 } }, nil, "smaller than the window" },
    { { F { 2, 2 }, F { 4, 2, 3, 2 } }, nil, "axes" },
    { { F { 3, 2, 5, 4 }, F { 4, 2, 3, 2 } }, { stride = 0 }, "at least 1" },
    { { F { 3, 2, 5, 4 }, F { 4, 2, 3, 2 } }, { groups = 3 }, nil },
    { { F { 3, 2, 5, 4 }, F { 4, 2, 3, 2 } }, { padding = { 1, 0, 0, -1 } }, "at least 0" },
    { { F { 3, 2, 5, 4 }, F { 4, 2, 3, 2 }, F { 3 } }, nil, "bias" } },
  { { { F { 1, 2, 3, 3 }, F { 3, 2, 2, 2, 2 } }, nil, "5 axes" },
    { { F { 1, 2, 3, 3, 3 }, F { 3, 2, 2, 2, 2 } }, { dilation = { 1, 2 } }, "dilation has 2 numbers; expected 3" } },
}
local function conv_inputs(xs, ws, _, i) return { F(xs), F(ws), i % 2 == 1 and F { ws[1] } or false } end
for axes = 1, 3 do
  local name, first = ("conv%dd"):format(axes), convolutions[axes][1]
  local longer = { unpack(first[4]) }
  longer[3] = longer[3] + 1
  rows[name] = {
    class = "sum", ref = function(a, o) return conv(a[1], a[2], a[3] or nil, o) end, bad = conv_bad[axes],
    cases = conv_cases(axes, conv_inputs),
  }
  rows[name .. "_activation"] = {
    class = "sum", bad = conv_bad[axes], cases = conv_cases(axes, conv_inputs),
    ref = function(a, o)
      return array.map(function(v) return (v > 0 or v ~= v) and v or 0 end, conv(a[1], a[2], a[3] or nil, o))
    end,
  }
  rows[name .. "_grad_input"] = {
    class = "sum",
    ref = function(a, o) return array.adjoint(a[3].shape, a[1], function(v) return conv(v, a[2], nil, o) end) end,
    cases = conv_cases(axes, function(xs, ws, ys) return { F(ys), F(ws), F(xs) } end),
    bad = { { { F(longer), F(first[2]), F(first[1]) }, nil, "convolution's result" } },
  }
  rows[name .. "_grad_weight"] = {
    class = "sum",
    ref = function(a, o) return array.adjoint(a[3].shape, a[1], function(v) return conv(a[2], v, nil, o) end) end,
    cases = conv_cases(axes, function(xs, ws, ys) return { F(ys), F(xs), F(ws) } end),
    bad = { { { F(longer), F(first[1]), F(first[2]) }, nil, "convolution's result" } },
  }
  rows[name .. "_grad"] = {
    class = "sum", grad = { true, true, true },
    ref = function(a, o)
      local dy, x, weight = a[1], a[2], a[3]
      if a[4] then dy = array.map(function(d, y) return y > 0 and d or 0 end, dy, a[4]) end
      local none, still = array.fill({ 0 }, 0), array.fill(x.shape, 0)
      return {
        o.with_dx == false and none or array.adjoint(x.shape, dy, function(v) return conv(v, weight, nil, o) end),
        array.adjoint(weight.shape, dy, function(v) return conv(x, v, nil, o) end),
        o.with_dbias == false and none or
          array.adjoint({ weight.shape[1] }, dy, function(v) return conv(still, weight, v, o) end),
      }
    end,
    cases = conv_cases(axes, function(xs, ws, ys, i) return { F(ys), F(xs), F(ws), i % 2 == 1 and F(ys) } end),
    bad = { { { F(longer), F(first[1]), F(first[2]), false }, nil, "convolution's result" },
      { { F(first[4]), F(first[1]), F(first[2]), F(longer) }, nil, "y" } },
  }
end
do
  local cases = rows.conv2d_grad.cases
  local function without(attrs, y) return { F { 2, 3, 2, 2 }, F { 2, 2, 3, 3 }, F { 3, 2, 2, 2 }, y, attrs = attrs } end
  cases[#cases + 1] = without({ with_dx = false }, F { 2, 3, 2, 2 })
  cases[#cases + 1] = without({ with_dbias = false }, false)
  cases[#cases + 1] = without({ with_dx = false, with_dbias = false }, false)
  -- only what is above 0 counts: no zero of either sign, no NaN
  local y = V({ 1, 1, 2, 3 }, { 0 / 0, 1, 0, -0.0, -2, 1 / 0 })
  cases[#cases + 1] = { F { 1, 1, 2, 3 }, F { 1, 1, 2, 3 }, F { 1, 1, 1, 1 }, y, grad = false, special = true }
end
rows.conv2d.cases[#rows.conv2d.cases + 1] = { F(uneven[1]), F(uneven[2]), false, attrs = uneven[3] }
do
  local cases, bad = rows.conv2d_activation.cases, { unpack(rows.conv2d_activation.bad) }
  -- NaN stays
  cases[#cases + 1] = { V({ 1, 1, 2, 2 }, { 0 / 0, 1, -2, 3 }), V({ 1, 1, 1, 1 }, { 1 }), false, grad = false,
                        special = true }
  bad[#bad + 1] = { { F { 3, 2, 5, 4 }, F { 4, 2, 3, 2 } }, { activation = "tanh" }, "relu" }
  rows.conv2d_activation.bad = bad
end

-- x, weight, attributes. The last of each: output_padding as large as the dilation allows.
local transposes = {
  { { { 2, 2, 4 }, { 2, 3, 3 }, {} }, { { 2, 4, 3 }, { 4, 2, 3 }, { stride = 2, padding = 1, output_padding = 1,
      groups = 2 }, second = true },
    { { 2, 2, 3 }, { 2, 2, 2 }, { stride = 1, dilation = 3, output_padding = 2 } }, { { 0, 2, 3 }, { 2, 2, 2 }, {} } },
  { { { 2, 2, 3, 4 }, { 2, 3, 3, 2 }, {} },
    { { 2, 4, 3, 3 }, { 4, 2, 3, 3 }, { stride = { 2, 3 }, padding = { 1, 0 }, output_padding = { 1, 2 }, groups = 2 },
      second = true },
    { { 1, 2, 3, 3 }, { 2, 2, 2, 2 }, { stride = { 2, 1 }, padding = 1, dilation = { 3, 2 },
      output_padding = { 2, 1 } } },
    { { 0, 2, 3, 3 }, { 2, 2, 2, 2 }, {} } },
  { { { 1, 2, 2, 3, 2 }, { 2, 2, 2, 2, 2 }, { stride = { 1, 2, 2 }, padding = { 0, 1, 0 },
      output_padding = { 0, 1, 0 } } },
    { { 1, 2, 2, 2, 2 }, { 2, 1, 2, 1, 2 }, { groups = 2, dilation = 2, output_padding = { 1, 0, 1 } } } },
}
local transpose_bad = {
  { { { F { 2, 3, 4 }, F { 2, 3, 3 } }, nil, "channels" },
    { { F { 2, 2, 4 }, F { 2, 3, 3 } }, { output_padding = 1 }, "less than the stride" } },
  { { { F { 2, 2, 3, 4 }, F { 2, 3, 3, 2 }, F { 2 } }, nil, "bias" },
    { { F { 2, 2, 1, 1 }, F { 2, 3, 2, 2 } }, { padding = 1 }, "nothing is left" },
    { { F { 2, 3, 3, 4 }, F { 3, 3, 3, 2 } }, { groups = 2 }, "do not split" } },
  { { { F { 2, 2, 3, 4 }, F { 2, 2, 2, 2, 2 } }, nil, "5 axes" } },
}
for axes = 1, 3 do
  local cases = {}
  for i, v in ipairs(transposes[axes]) do
    local biased = i % 2 == 0 and F { v[2][2] * (v[3].groups or 1) } or false
    cases[i] = { F(v[1]), F(v[2]), biased, attrs = v[3], second = v.second or false }
  end
  rows[("conv_transpose%dd"):format(axes)] = {
    class = "sum", ref = function(a, o) return conv_transpose(a[1], a[2], a[3] or nil, o) end, cases = cases,
    bad = transpose_bad[axes],
  }
end

-- ---- pooling ----

local function best_of(best, v)
  if v ~= v or best ~= best then return 0 / 0 end
  return math.max(best, v)
end

local function largest(a, o)
  local size = sizes(a)
  local g = geometry(o, many(o.kernel, #size))
  local plane = array.count(size)
  return array.build(out_shape(a, a.shape[2], g, o.ceil_mode), function(ix)
    local best, base = -1 / 0, (ix[1] * a.shape[2] + ix[2]) * plane
    walk(g, size, positions(ix), function(place)
      if place then best = best_of(best, a.data[base + place + 1]) end
    end)
    return best
  end)
end

local max_cases = {
  { { D { 3, 2, 8 }, attrs = { kernel = 2 } },
    { D { 2, 2, 7 }, attrs = { kernel = 3, stride = 2, padding = 1, ceil_mode = true } },
    { D { 2, 1, 7 }, attrs = { kernel = 2, stride = 1, dilation = 3 } }, { D { 0, 2, 4 }, attrs = { kernel = 2 } },
    -- a window that lies in the padding altogether
    { D { 2, 1, 4 }, attrs = { kernel = 2, dilation = 5, padding = 1 }, grad = false, integers = false } },
  { { D { 3, 2, 4, 6 }, attrs = { kernel = 2 } },
    { D { 3, 1, 5, 5 }, attrs = { kernel = { 3, 2 }, stride = { 2, 1 }, padding = { 1, 0 } } },
    { D { 3, 1, 5, 5 }, attrs = { kernel = 2, ceil_mode = true } },
    { D { 3, 1, 7, 6 }, attrs = { kernel = 2, stride = 1, dilation = 2 } },
    -- Rows that fill vectors, and what is left of them.
    { D { 2, 2, 5, 21 }, attrs = { kernel = 3, stride = 2, padding = 1 } },
    { D { 1, 2, 4, 17 }, attrs = { kernel = { 2, 3 }, stride = 1, dilation = { 1, 2 }, padding = { 0, 1 } } },
    { V({ 1, 1, 2, 22 }, { 0 / 0, 1, 2, 2, 4, -1 / 0, -1 / 0 }), attrs = { kernel = 2 }, grad = false, special = true },
    { D { 0, 2, 4, 4 }, attrs = { kernel = 2 } },
    { V({ 1, 1, 2, 4 }, { 0 / 0, 1, 2, 3, 4, 5, 6, -1 / 0 }), attrs = { kernel = 2 }, grad = false, special = true } },
  { { D { 2, 1, 4, 3, 4 }, attrs = { kernel = 2 } },
    { D { 1, 2, 4, 4, 3 }, attrs = { kernel = { 2, 3, 2 }, stride = { 2, 1, 2 }, padding = { 1, 1, 0 },
      dilation = { 1, 1, 2 }, ceil_mode = true } },
    { D { 0, 2, 4, 4, 4 }, attrs = { kernel = 2 } } },
}
local max_bad = {
  { { { F { 2, 2 } }, { kernel = 2 }, "axes" }, { { F { 1, 1, 2 } }, { kernel = 3 }, "smaller than the window" } },
  { { { F { 2, 2 } }, { kernel = 2 }, "axes" }, { { F { 1, 1, 2, 2 } }, { kernel = 3 }, "smaller than the window" },
    { { F { 1, 1, 4, 4 } }, nil, "missing" }, { { F { 1, 1, 4, 4 } }, { kernel = 2, padding = 2 }, "more than half" },
    { { F { 1, 1, 4, 4 } }, { kernel = 0 }, "at least 1" } },
  { { { F { 1, 1, 4, 4 } }, { kernel = 2 }, "5 axes" },
    { { F { 1, 1, 4, 4, 4 } }, { kernel = { 2, 2 } }, "kernel has 2 numbers; expected 3" } },
}

-- The elements at indices of the plane.
local function taken(a, at)
  local plane, few = array.count(sizes(a)), array.count(sizes(at))
  return array.fill(at.shape, function(i) return a.data[math.floor((i - 1) / few) * plane + at.data[i] + 1] end)
end

local planes = { { { 3, 2, 6 }, { 3, 2, 3 }, 5 }, { { 3, 2, 4, 5 }, { 3, 2, 2, 2 }, 19 },
  { { 2, 2, 2, 3, 2 }, { 2, 2, 1, 2, 2 }, 11 } }
local function none(shape)
  local list = { unpack(shape) }
  list[1] = 0
  return list
end
for axes = 1, 3 do
  local name, p = ("max_pool%dd"):format(axes), planes[axes]
  local full, pooled, last = p[1], p[2], p[3]
  local other = { unpack(pooled) }
  other[2] = 3
  rows[name] = { class = "exact", ref = function(a, o) return largest(a[1], o) end, cases = max_cases[axes],
    bad = max_bad[axes] }
  rows[name .. "_gather"] = {
    class = "exact", ref = function(a) return taken(a[1], a[2]) end,
    cases = { { F(full), I(pooled, 0, last) }, { F(none(full)), I(none(pooled), 0, last) } },
    bad = { { { F(full), I(other, 0, 1) }, nil, "as in x" } },
  }
  rows[name .. "_grad"] = {
    class = "sum",
    ref = function(a) return array.adjoint(a[3].shape, a[1], function(v) return taken(v, a[2]) end) end,
    cases = { { F(pooled), I(pooled, 0, last), F(full) },
      { F(none(pooled)), I(none(pooled), 0, last), F(none(full)) } },
    bad = { { { F(other), I(other, 0, 1), F(full) }, nil, "as in x" } },
  }
end

-- f(list of elements, position) over the window of each output of adaptive pooling.
local function adaptive(a, o, f)
  local size, plane = sizes(a), array.count(sizes(a))
  local wanted, shape = many(o.size, #size), { a.shape[1], a.shape[2] }
  for i, n in ipairs(wanted) do shape[i + 2] = n == -1 and size[i] or n end
  return array.build(shape, function(ix)
    local list = {}
    for place = 0, plane - 1 do
      local at, inside = array.index(size, place + 1), true
      for i = 1, #size do
        local n, p = shape[i + 2], ix[i + 2]
        inside = inside and at[i] >= math.floor(p * size[i] / n) and at[i] < math.ceil((p + 1) * size[i] / n)
      end
      if inside then list[#list + 1] = a.data[(ix[1] * a.shape[2] + ix[2]) * plane + place + 1] end
    end
    return f(list)
  end)
end

local function max_of(list)
  local best = -1 / 0
  for _, v in ipairs(list) do best = best_of(best, v) end
  return best
end
local function mean_of(list) return array.sum(list) / #list end

-- Those with `uneven` windows are resampled.
local uneven_windows = true
local adaptive_cases = {
  { { { 3, 2, 7 }, 3, uneven_windows }, { { 2, 2, 3 }, 5, uneven_windows }, { { 2, 2, 6 }, 2 }, { { 2, 2, 4 }, -1 },
    { { 0, 2, 4 }, 2 } },
  { { { 3, 2, 7, 5 }, { 3, 2 }, uneven_windows }, { { 2, 1, 4, 6 }, 2 }, { { 2, 2, 4, 3 }, 1 },
    { { 2, 2, 3, 4 }, { -1, 5 }, uneven_windows }, { { 0, 2, 4, 4 }, 2 } },
  { { { 2, 1, 4, 6, 2 }, 2 }, { { 1, 2, 2, 4, 2 }, 1 }, { { 2, 1, 3, 5, 4 }, { 2, 3, 2 }, uneven_windows },
    { { 1, 1, 3, 2, 3 }, { -1, 3, 1 }, uneven_windows }, { { 0, 2, 4, 4, 4 }, 2 } },
}
local adaptive_bad = {
  { { { F { 2, 2 } }, { size = 2 }, "axes" }, { { F { 2, 2, 4 } }, nil, "missing" },
    { { F { 2, 2, 4 } }, { size = 0 }, "at least 1" } },
  { { { F { 2, 2, 0, 4 } }, { size = 2 }, "no windows" }, { { F { 2, 2, 4, 4 } }, { size = -2 }, "at least %-1" } },
  { { { F { 2, 2, 4, 4 } }, { size = 2 }, "5 axes" },
    { { F { 2, 2, 4, 4, 4 } }, { size = { 1, 2 } }, "2 numbers; expected 3" } },
}
for axes = 1, 3 do
  local function cases(spec)
    local list = {}
    for i, v in ipairs(adaptive_cases[axes]) do
      list[i] = { spec(v[1]), attrs = { size = v[2] }, not_on = spec == F and v[3] and "cuda" or nil }
    end
    return list
  end
  rows[("adaptive_max_pool%dd"):format(axes)] = { class = "exact", cases = cases(D), bad = adaptive_bad[axes],
    ref = function(a, o) return adaptive(a[1], o, max_of) end }
  rows[("adaptive_avg_pool%dd"):format(axes)] = { class = "sum", cases = cases(F), bad = adaptive_bad[axes],
    ref = function(a, o) return adaptive(a[1], o, mean_of) end }
end

local function average(a, o)
  local size = sizes(a)
  local g, plane = geometry(o, many(o.kernel, #size)), array.count(size)
  return array.build(out_shape(a, a.shape[2], g, o.ceil_mode), function(ix)
    local s, n, base = 0, 0, (ix[1] * a.shape[2] + ix[2]) * plane
    walk(g, size, positions(ix), function(place, _, padded)
      if place then s = s + a.data[base + place + 1] end
      if place or (padded and o.count_include_pad ~= false) then n = n + 1 end
    end)
    return s / ((o.divisor_override or 0) ~= 0 and o.divisor_override or n)
  end)
end

local averages = {
  { { { 3, 2, 8 }, { kernel = 2 }, { 3, 2, 4 } },
    { { 2, 1, 7 }, { kernel = 3, stride = 2, padding = 1, ceil_mode = true, count_include_pad = false }, { 2, 1, 4 } },
    { { 0, 1, 4 }, { kernel = 2 }, { 0, 1, 2 } } },
  { { { 3, 2, 4, 6 }, { kernel = 2 }, { 3, 2, 2, 3 } },
    { { 3, 1, 5, 5 }, { kernel = { 3, 2 }, stride = { 2, 1 }, padding = { 1, 0 } }, { 3, 1, 3, 4 } },
    { { 3, 1, 5, 5 }, { kernel = 2, ceil_mode = true }, { 3, 1, 3, 3 } },
    { { 3, 1, 4, 4 }, { kernel = 3, stride = 2, padding = 1, count_include_pad = false }, { 3, 1, 2, 2 } },
    { { 3, 1, 4, 4 }, { kernel = 3, stride = 2, padding = 1, ceil_mode = true }, { 3, 1, 3, 3 } },
    { { 2, 1, 4, 4 }, { kernel = 2, padding = 1, divisor_override = 3 }, { 2, 1, 3, 3 } },
    { { 0, 1, 4, 4 }, { kernel = 2 }, { 0, 1, 2, 2 } } },
  { { { 2, 1, 4, 2, 4 }, { kernel = 2 }, { 2, 1, 2, 1, 2 } },
    { { 1, 1, 4, 4, 3 }, { kernel = { 2, 3, 2 }, stride = { 2, 2, 1 }, padding = { 1, 1, 0 }, ceil_mode = true },
      { 1, 1, 3, 3, 2 } },
    { { 1, 1, 3, 4, 3 }, { kernel = 2, stride = 1, padding = 1, count_include_pad = false }, { 1, 1, 4, 5, 4 } },
    { { 1, 1, 2, 2, 4 }, { kernel = 2, divisor_override = -2 }, { 1, 1, 1, 1, 2 } } },
}
local function average_cases(axes, make)
  local cases = {}
  for i, v in ipairs(averages[axes]) do
    cases[i] = make(v[1], v[3])
    cases[i].attrs = v[2]
  end
  return cases
end
for axes = 1, 3 do
  local name, first = ("avg_pool%dd"):format(axes), averages[axes][1]
  local longer = { unpack(first[3]) }
  longer[3] = longer[3] + 1
  rows[name] = { class = "sum", ref = function(a, o) return average(a[1], o) end, bad = max_bad[axes],
    cases = average_cases(axes, function(xs) return { F(xs) } end) }
  rows[name .. "_grad"] = {
    class = "sum",
    ref = function(a, o) return array.adjoint(a[2].shape, a[1], function(v) return average(v, o) end) end,
    cases = average_cases(axes, function(xs, ys) return { F(ys), F(xs) } end),
    bad = { { { F(longer), F(first[1]) }, { kernel = 2 }, "shape of the pooled x" } },
  }
end

return rows
