-- SPDX-License-Identifier: Apache-2.0
-- Convolution and pooling.

local array = require "cases.array"
local S = require "cases.specs"
local F, D, I, V = S.F, S.D, S.I, S.V

local function pair(v, otherwise)
  if v == nil then v = otherwise end
  if type(v) == "table" and #v == 0 then v = otherwise end
  return type(v) == "table" and v or { v, v }
end

local function count(size, window, stride, padding, dilation, ceil)
  local room = size + 2 * padding - dilation * (window - 1) - 1
  local n = (ceil and math.ceil or math.floor)(room / stride) + 1
  if ceil and (n - 1) * stride >= size + padding then n = n - 1 end
  return n
end

-- Calls f(h, w, i, j) for the elements of the window at (p, q); h, w may lie in the padding.
local function walk(o, p, q, f)
  for i = 0, o.window[1] - 1 do
    for j = 0, o.window[2] - 1 do
      f(p * o.stride[1] - o.padding[1] + i * o.dilation[1], q * o.stride[2] - o.padding[2] + j * o.dilation[2], i, j)
    end
  end
end

local function geometry(o, window)
  window = pair(window)
  return { window = window, stride = pair(o.stride, o.kernel or 1), padding = pair(o.padding, 0),
    dilation = pair(o.dilation, 1) }
end

local function out_size(g, x, ceil)
  return count(x.shape[3], g.window[1], g.stride[1], g.padding[1], g.dilation[1], ceil),
         count(x.shape[4], g.window[2], g.stride[2], g.padding[2], g.dilation[2], ceil)
end

local function inside(x, h, w) return h >= 0 and w >= 0 and h < x.shape[3] and w < x.shape[4] end

local function conv(x, weight, bias, o)
  local g, groups = geometry(o, { weight.shape[3], weight.shape[4] }), o.groups or 1
  local h, w = out_size(g, x)
  local per_in, per_out = weight.shape[2], weight.shape[1] / groups
  return array.build({ x.shape[1], weight.shape[1], h, w }, function(ix)
    local n, c = ix[1], ix[2]
    local s, first = bias and bias.data[c + 1] or 0, math.floor(c / per_out) * per_in
    walk(g, ix[3], ix[4], function(a, b, i, j)
      if not inside(x, a, b) then return end
      for k = 0, per_in - 1 do s = s + array.get(x, n, first + k, a, b) * array.get(weight, c, k, i, j) end
    end)
    return s
  end)
end

local rows = {}
local x, w = { 3, 2, 5, 4 }, { 4, 2, 3, 2 }
local variants = {
  { x, w, {}, { 3, 4, 3, 3 } },
  { x, w, { stride = 2, padding = 1 }, { 3, 4, 3, 3 } },
  { x, w, { stride = { 2, 1 }, padding = { 1, 2 }, dilation = { 2, 1 } }, { 3, 4, 2, 7 } },
  { { 3, 4, 4, 4 }, { 6, 2, 2, 2 }, { groups = 2 }, { 3, 6, 3, 3 } },
  { { 3, 4, 4, 4 }, { 4, 1, 3, 3 }, { groups = 4, padding = 1 }, { 3, 4, 4, 4 } },
  { { 3, 2, 3, 3 }, { 2, 2, 1, 1 }, {}, { 3, 2, 3, 3 } },
  { { 0, 2, 5, 4 }, w, {}, { 0, 4, 3, 3 } },
}
local function conv_cases(make)
  local cases = {}
  for i, v in ipairs(variants) do
    cases[i] = make(v[1], v[2], v[4], i)
    cases[i].attrs = v[3]
    if i == 5 or i > 5 then cases[i].second = i == 6 end
  end
  return cases
end
rows.conv2d = {
  class = "sum", ref = function(a, o) return conv(a[1], a[2], a[3] or nil, o) end,
  cases = conv_cases(function(xs, ws, _, i) return { F(xs), F(ws), i % 2 == 1 and F { ws[1] } or false } end),
  bad = { { { F { 2, 3, 5, 5 }, F(w) }, nil, "channels" },
    { { F { 2, 2, 2, 2 }, F(w) }, nil, "smaller than the window" }, { { F { 2, 2 }, F(w) }, nil, "axes" },
          { { F(x), F(w) }, { stride = 0 }, "at least 1" }, { { F(x), F(w) }, { groups = 3 }, nil },
            { { F(x), F(w), F { 3 } }, nil, "bias" } },
}
rows.conv2d_grad_input = {
  class = "sum",
  ref = function(a, o) return array.adjoint(a[3].shape, a[1], function(v) return conv(v, a[2], nil, o) end) end,
  cases = conv_cases(function(xs, ws, ys) return { F(ys), F(ws), F(xs) } end),
  bad = { { { F { 3, 4, 2, 3 }, F(w), F(x) }, nil, "convolution's result" } },
}
rows.conv2d_grad_weight = {
  class = "sum",
  ref = function(a, o) return array.adjoint(a[3].shape, a[1], function(v) return conv(a[2], v, nil, o) end) end,
  cases = conv_cases(function(xs, ws, ys) return { F(ys), F(xs), F(ws) } end),
  bad = { { { F { 3, 4, 2, 3 }, F(x), F(w) }, nil, "convolution's result" } },
}

local function largest(a, o)
  local g = geometry(o, o.kernel)
  local h, wide = out_size(g, a, o.ceil_mode)
  return array.build({ a.shape[1], a.shape[2], h, wide }, function(ix)
    local best = -1 / 0
    walk(g, ix[3], ix[4], function(p, q)
      if not inside(a, p, q) then return end
      local v = array.get(a, ix[1], ix[2], p, q)
      if v ~= v or best ~= best then best = 0 / 0 else best = math.max(best, v) end
    end)
    return best
  end)
end
rows.max_pool2d = {
  class = "exact", ref = function(a, o) return largest(a[1], o) end,
  cases = {
    { D { 3, 2, 4, 6 }, attrs = { kernel = 2 } }, { D { 3, 1, 5, 5 },
      attrs = { kernel = { 3, 2 }, stride = { 2, 1 }, padding = { 1, 0 } } },
    { D { 3, 1, 5, 5 }, attrs = { kernel = 2, ceil_mode = true } },
      { D { 3, 1, 7, 6 }, attrs = { kernel = 2, stride = 1, dilation = 2 } },
    { D { 0, 2, 4, 4 }, attrs = { kernel = 2 } },
    { V({ 1, 1, 2, 4 }, { 0 / 0, 1, 2, 3, 4, 5, 6, -1 / 0 }), attrs = { kernel = 2 }, grad = false, special = true },
  },
  bad = { { { F { 2, 2 } }, { kernel = 2 }, "axes" },
    { { F { 1, 1, 2, 2 } }, { kernel = 3 }, "smaller than the window" }, { { F { 1, 1, 4, 4 } }, nil, "missing" },
          { { F { 1, 1, 4, 4 } }, { kernel = 2, padding = 2 }, "more than half" },
            { { F { 1, 1, 4, 4 } }, { kernel = 0 }, "at least 1" } },
}

local function taken(a, at)
  return array.build(at.shape, function(ix)
    local p = at.data[array.at(at, ix)]
    return array.get(a, ix[1], ix[2], math.floor(p / a.shape[4]), p % a.shape[4])
  end)
end
rows.max_pool2d_gather = {
  class = "exact", ref = function(a) return taken(a[1], a[2]) end,
  cases = { { F { 3, 2, 4, 5 }, I({ 3, 2, 2, 2 }, 0, 19) }, { F { 0, 2, 4, 5 }, I({ 0, 2, 2, 2 }, 0, 19) } },
  bad = { { { F { 1, 1, 2, 2 }, I({ 1, 2, 1, 1 }, 0, 3) }, nil, "as in x" } },
}
rows.max_pool2d_grad = {
  class = "sum",
  ref = function(a) return array.adjoint(a[3].shape, a[1], function(v) return taken(v, a[2]) end) end,
  cases = { { F { 3, 2, 2, 2 }, I({ 3, 2, 2, 2 }, 0, 19), F { 3, 2, 4, 5 } },
    { F { 0, 2, 2, 2 }, I({ 0, 2, 2, 2 }, 0, 19), F { 0, 2, 4, 5 } } },
  bad = { { { F { 1, 1, 1, 1 }, I({ 1, 2, 1, 1 }, 0, 3), F { 1, 1, 2, 2 } }, nil, "as in x" } },
}

local function average(a, o)
  local g = geometry(o, o.kernel)
  local h, wide = out_size(g, a, o.ceil_mode)
  return array.build({ a.shape[1], a.shape[2], h, wide }, function(ix)
    local s, n = 0, 0
    walk(g, ix[3], ix[4], function(p, q)
      if inside(a, p, q) then
        s = s + array.get(a, ix[1], ix[2], p, q)
        n = n + 1
      elseif o.count_include_pad ~= false and p < a.shape[3] + g.padding[1] and q < a.shape[4] + g.padding[2] then
        n = n + 1
      end
    end)
    return s / n
  end)
end
local averages = {
  { { 3, 2, 4, 6 }, { kernel = 2 }, { 3, 2, 2, 3 } },
  { { 3, 1, 5, 5 }, { kernel = { 3, 2 }, stride = { 2, 1 }, padding = { 1, 0 } }, { 3, 1, 3, 4 } },
  { { 3, 1, 5, 5 }, { kernel = 2, ceil_mode = true }, { 3, 1, 3, 3 } },
  { { 3, 1, 4, 4 }, { kernel = 3, stride = 2, padding = 1, count_include_pad = false }, { 3, 1, 2, 2 } },
  { { 3, 1, 4, 4 }, { kernel = 3, stride = 2, padding = 1, ceil_mode = true }, { 3, 1, 3, 3 } },
  { { 0, 1, 4, 4 }, { kernel = 2 }, { 0, 1, 2, 2 } },
}
local function average_cases(make)
  local cases = {}
  for i, v in ipairs(averages) do
    cases[i] = make(v[1], v[3])
    cases[i].attrs = v[2]
  end
  return cases
end
rows.avg_pool2d = {
  class = "sum", ref = function(a, o) return average(a[1], o) end,
  cases = average_cases(function(xs) return { F(xs) } end), bad = rows.max_pool2d.bad,
}
rows.avg_pool2d_grad = {
  class = "sum", ref = function(a, o) return array.adjoint(a[2].shape, a[1], function(v) return average(v, o) end) end,
  cases = average_cases(function(xs, ys) return { F(ys), F(xs) } end),
  bad = { { { F { 1, 1, 1, 1 }, F { 1, 1, 4, 4 } }, { kernel = 2 }, "shape of the pooled x" } },
}

return rows
