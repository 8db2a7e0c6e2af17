-- SPDX-License-Identifier: Apache-2.0
-- Reading at several index tensors, and writing at the contents of index tensors.

local array = require "cases.array"
local S = require "cases.specs"
local F, I, V, D = S.F, S.I, S.V, S.D

local function axis_of(a, axis) return axis > 0 and axis or #a.shape + 1 + axis end
local function index(values, shape) return V(shape or { #values }, values, "index") end

local rows = {}

-- Calls f(position in the indexed shape, position in x), both from 0; answers the indexed shape.
local function each_indexed(x, indices, axis, f)
  axis = axis_of(x, axis or 1)
  local common, shape = {}, {}
  for _, ix in ipairs(indices) do common = array.broadcast_shape(common, ix.shape) end
  for i = 1, axis - 1 do shape[i] = x.shape[i] end
  for _, d in ipairs(common) do shape[#shape + 1] = d end
  for i = axis + #indices, #x.shape do shape[#shape + 1] = x.shape[i] end
  for p = 1, f and array.count(shape) or 0 do
    local ix, at, place = array.index(shape, p), {}, {}
    for i = 1, axis - 1 do at[i] = ix[i] end
    for i = 1, #common do place[i] = ix[axis - 1 + i] end
    for _, values in ipairs(indices) do at[#at + 1] = array.shown(values, place) end
    for i = axis + #common, #ix do at[#at + 1] = ix[i] end
    f(ix, at)
  end
  return shape
end

local function read(x, indices, axis)
  local y = array.fill(each_indexed(x, indices, axis), 0)
  each_indexed(x, indices, axis, function(ix, at) y.data[array.at(y, ix)] = x.data[array.at(x, at)] end)
  return y
end

rows.index = {
  class = "exact", ref = function(a, o) return read(a[1], a[2], o.axis) end,
  cases = { { F { 3, 4 }, { index { 2, 0, 2 }, index { 1, 1, 3 } }, symbolic = false },
    { F { 3, 4, 2 }, { I({ 2, 1 }, 0, 3), I({ 5 }, 0, 1) }, attrs = { axis = 2 } },
    { F { 3, 4, 2 }, { I({ 2, 2 }, 0, 2) } }, { F { 5, 4, 3, 2 }, { index({ 3 }, {}), I({ 2 }, 0, 2) },
      attrs = { axis = -3 } },
    { F { 3, 4 }, { index({ 2 }, {}), index({ 1 }, {}) } }, { F { 3, 4 }, { I({ 0 }, 0, 0), I({ 1 }, 0, 3) } },
    { F { 5, 2, 3 }, { I({ 7 }, 0, 4), I({ 7 }, 0, 1), I({ 7 }, 0, 2) } } },
  bad = { { { F { 3, 4 }, { index { 0, 3 } } }, nil, "index 3 at position %[2%].*axis 1" },
    { { F { 3, 4 }, { index { 0, 1 }, index { 0, -1 } } }, nil, "index %-1 at position %[2%].*axis 2" },
    { { F { 3, 4 }, { index { 0, 1 }, index { 0, 1, 2 } } }, nil, "broadcast" },
    { { F { 3 }, { index { 0 }, index { 0 } } }, nil, "2 indices" }, { { F { 3 }, {} }, nil, "no indices" },
    { { F { 3 }, { F { 2 } } }, nil, "indices" } },
}
rows.index_grad = {
  class = "sum",
  ref = function(a, o) return array.adjoint(a[3].shape, a[1], function(x) return read(x, a[2], o.axis) end) end,
  cases = { { F { 3 }, { index { 2, 0, 2 }, index { 1, 1, 1 } }, F { 3, 4 }, symbolic = false },
    { F { 3, 2, 5 }, { I({ 2, 1 }, 0, 3), I({ 5 }, 0, 1) }, F { 3, 4, 2 }, attrs = { axis = 2 } },
    { F { 6, 4 }, { I({ 6 }, 0, 2) }, F { 3, 4 } } },
  bad = { { { F { 3, 4 }, { index { 0, 1 } }, F { 3, 4 } }, nil, "expected 2" } },
}

rows.index_put = {
  class = "sum",
  ref = function(a, o)
    local x, y = a[1], array.fill(a[1].shape, function(i) return a[1].data[i] end)
    each_indexed(x, a[2], o.axis, function(ix, at)
      local v, p = array.shown(a[3], ix), array.at(y, at)
      y.data[p] = o.accumulate and y.data[p] + v or v
    end)
    return y
  end,
  -- Of equal places only the last is written; the gradient asks for different ones.
  cases = { { F { 3, 4 }, { index { 2, 0, 2 }, index { 1, 1, 3 } }, F { 3 }, symbolic = false },
    { F { 3, 4 }, { index { 2, 0, 2 }, index { 1, 1, 1 } }, F { 3 }, grad = false, symbolic = false },
    { F { 3, 4 }, { index { 2, 0, 2 }, index { 1, 1, 1 } }, F { 3 }, attrs = { accumulate = true },
      symbolic = false, integers = false },
    { F { 3, 4 }, { index { 2, 0, 2 } }, F { 4 }, attrs = { accumulate = true }, symbolic = false, integers = false },
    { F { 2, 5, 4 }, { index { 3, 0, 4 }, index { 0, 1, 2 } }, F { 2, 1 }, attrs = { axis = 2 } },
    { F { 2, 5, 3 }, { index({ 3, 0, 4, 1 }, { 2, 2 }) }, F { 2, 1, 1 }, attrs = { axis = 2 } },
    { F { 3, 4 }, { index({ 2 }, {}), index({ 1 }, {}) }, F {} }, { F { 3, 4 }, { I({ 0 }, 0, 0) }, F { 0, 4 } } },
  bad = { { { F { 3, 4 }, { index { 0, 3 } }, F {} }, nil, "index 3 at position %[2%].*axis 1", not_on = "cuda" },
    { { F { 3, 4 }, { index { 0, 1 } }, F { 3 } }, nil, "broadcast" },
    { { F { 3, 4 }, { index { 0 } }, V({}, { 1 }, "bool") }, nil, "bool" } },
}

local function folded(x, at, src, axis, fold)
  axis = axis_of(x, axis)
  local y = array.fill(x.shape, function(i) return x.data[i] end)
  for p, v in ipairs(src.data) do
    local ix = array.index(src.shape, p)
    if #ix > 0 then ix[axis] = at.data[p] end
    local place = array.at(y, ix)
    y.data[place] = fold(y.data[place], v, place)
  end
  return y
end

local bad = { { { F { 3, 4 }, index({ 0, 4 }, { 1, 2 }), F { 1, 2 } }, { axis = 2 }, "index 4 at.*axis 2" },
  { { F { 3, 4 }, index({ -1 }, { 1, 1 }), F { 1, 1 } }, { axis = 2 }, "%-1" },
  { { F { 3, 4 }, index { 0 }, F { 1 } }, { axis = 1 }, "axes" },
  { { F { 3, 4 }, index({ 0 }, { 1, 1 }), F { 1, 2 } }, { axis = 1 }, "shape" },
  { { F { 1, 4 }, index({ 0, 0 }, { 2, 1 }), F { 2, 1 } }, { axis = 2 }, "larger" } }

-- Distinct places along each line: what is written does not depend on the order.
local apart = index({ 2, 0, 1, 3, 1, 3, 0, 2 }, { 2, 4 })
rows.scatter = {
  class = "exact",
  ref = function(a, o) return folded(a[1], a[2], a[3], o.axis, function(_, v) return v end) end,
  cases = { { F { 2, 4 }, apart, F { 2, 4 }, attrs = { axis = 2 } },
    { F { 3, 4 }, index({ 2, 0, 0, 1 }, { 2, 2 }), F { 2, 2 }, attrs = { axis = 1 }, symbolic = false },
    { F { 3, 4 }, I({ 3, 6 }, 0, 3), F { 3, 6 }, attrs = { axis = -1 }, grad = false },
    { F { 3, 2, 2 }, I({ 2, 1, 2 }, 0, 0), F { 2, 1, 2 }, attrs = { axis = 2 } },
    { F { 3, 4 }, I({ 3, 0 }, 0, 0), F { 3, 0 }, attrs = { axis = 2 } },
    { F {}, I({}, 0, 0), F {}, attrs = { axis = 1 } } },
  bad = bad,
}
local many = { { F { 3, 4 }, I({ 3, 6 }, 0, 3), F { 3, 6 }, attrs = { axis = 2 }, integers = false },
  { F { 3, 4 }, index({ 2, 0, 0, 1 }, { 2, 2 }), F { 2, 2 }, attrs = { axis = 1 }, symbolic = false },
  { F { 3, 2, 5 }, I({ 3, 4, 5 }, 0, 1), F { 3, 4, 5 }, attrs = { axis = 2 }, integers = false },
  { F { 3, 4 }, I({ 3, 0 }, 0, 0), F { 3, 0 }, attrs = { axis = 2 } },
  { F {}, I({}, 0, 0), F {}, attrs = { axis = 1 } } }
rows.scatter_add = {
  class = "sum", ref = function(a, o) return folded(a[1], a[2], a[3], o.axis, function(s, v) return s + v end) end,
  cases = many, bad = bad,
}

local folds = {
  sum = function(s, v) return s + v end, prod = function(s, v) return s * v end,
  mean = function(s, v) return s + v end, amax = math.max, amin = math.min,
}
local function reduced(a, o)
  local with_self, count = o.include_self ~= false, {}
  local y = folded(a[1], a[2], a[3], o.axis, function(s, v, place)
    count[place] = (count[place] or 0) + 1
    if count[place] == 1 and not with_self then return v end
    return folds[o.reduce](s, v)
  end)
  for place, n in pairs(o.reduce == "mean" and count or {}) do
    y.data[place] = y.data[place] / (n + (with_self and 1 or 0))
  end
  return y
end
local reductions = {}
for _, reduce in ipairs { "sum", "prod", "mean", "amax", "amin" } do
  for _, include_self in ipairs { true, false } do
    local attrs = { axis = 2, reduce = reduce, include_self = include_self }
    reductions[#reductions + 1] = { D { 2, 5 }, I({ 2, 7 }, 0, 3), D { 2, 7 }, attrs = attrs, integers = false }
    reductions[#reductions + 1] = { D { 3, 2, 2 }, index({ 2, 0, 0, 1 }, { 2, 2, 1 }), D { 2, 2, 1 },
      attrs = { axis = 1, reduce = reduce, include_self = include_self }, integers = false, symbolic = false }
  end
end
reductions[#reductions + 1] = { V({ 4 }, { 0, 2, 3, 0 }), index { 0, 1, 1, 2 }, V({ 4 }, { 2, 0, 5, 0 }),
  attrs = { axis = 1, reduce = "prod" }, second = false } -- slopes of slopes at two zeros are left out
reductions[#reductions + 1] = { V({ 3 }, { 1, 2, 3 }), index { 0, 0, 1 }, V({ 3 }, { 4, -4, 5 }),
  attrs = { axis = 1, reduce = "amax" } }
reductions[#reductions + 1] = { F {}, I({}, 0, 0), F {}, attrs = { axis = 1, reduce = "mean" }, integers = false }
rows.scatter_reduce = {
  class = "sum", ref = reduced, cases = reductions,
  bad = { { bad[1][1], { axis = 2, reduce = "sum" }, "index 4" },
    { bad[1][1], { axis = 2, reduce = "median" }, "median" }, { bad[1][1], { axis = 2 }, "missing" } },
}

return rows
