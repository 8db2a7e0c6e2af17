-- SPDX-License-Identifier: Apache-2.0
-- Operators that read or write at positions that a tensor says.

local array = require "cases.array"
local S = require "cases.specs"
local F, I, B, V = S.F, S.I, S.B, S.V

local function axis_of(a, axis) return axis > 0 and axis or #a.shape + 1 + axis end
local function index(values, shape) return V(shape or { #values }, values, "index") end

local rows = {}

local function joined(list, axis)
  local first = list[1]
  axis = axis_of(first, axis or 1)
  local shape = { unpack(first.shape) }
  shape[axis] = 0
  for _, a in ipairs(list) do shape[axis] = shape[axis] + a.shape[axis] end
  return array.build(shape, function(ix)
    local from, k = { unpack(ix) }, 1
    while from[axis] >= list[k].shape[axis] do
      from[axis] = from[axis] - list[k].shape[axis]
      k = k + 1
    end
    return list[k].data[array.at(list[k], from)]
  end)
end
rows.cat = {
  class = "exact", ref = function(a, o) return joined(a[1], o.axis) end,
  cases = { { { F { 3, 4 }, F { 2, 4 } }, attrs = { axis = 1 } },
    { { F { 3, 4 }, F { 3, 1 }, F { 3, 2 } }, attrs = { axis = -1 } },
            { { F { 3, 4 } }, attrs = { axis = 2 } }, { { F { 3, 0 }, F { 3, 2 } }, attrs = { axis = 2 } },
            { { F { 0 }, F { 0 } }, attrs = { axis = 1 } },
              { { F { 3, 2, 2 }, F { 3, 1, 2 } }, attrs = { axis = 2 } } },
  bad = { { { { F { 3, 4 }, F { 3, 3 } } }, { axis = 1 }, "xs%[2%]" }, { { {} }, { axis = 1 }, "empty" },
          { { { F { 3, 4 } } }, { axis = 3 }, "out of range" } },
}
rows.stack = {
  class = "exact",
  ref = function(a, o)
    local axis, list = o.axis or 1, {}
    if axis < 0 then axis = #a[1][1].shape + 2 + axis end
    for i, x in ipairs(a[1]) do
      local shape = { unpack(x.shape) }
      table.insert(shape, axis, 1)
      list[i] = array.new(shape, x.data)
    end
    return joined(list, axis)
  end,
  cases = { { { F { 3, 4 }, F { 3, 4 } } }, { { F { 3, 4 }, F { 3, 4 }, F { 3, 4 } }, attrs = { axis = 2 } },
    { { F { 3, 4 }, F { 3, 4 } }, attrs = { axis = -1 } }, { { F { 2, 3, 2 } }, attrs = { axis = -2 } },
    { { F {}, F {}, F {} } }, { { F { 0 }, F { 0 } }, attrs = { axis = 2 } }, { { F { 3, 0 }, F { 3, 0 } } },
    { { B { 2, 2 }, B { 2, 2 } }, attrs = { axis = 3 } } },
  bad = { { { { F { 3, 4 }, F { 3, 3 } } }, nil, "xs%[2%]" }, { { {} }, nil, "empty" },
    { { { F { 3, 4 } } }, { axis = 4 }, "out of range" } },
}
rows.cat_grad = {
  class = "exact",
  ref = function(a, o)
    local axis, at, out = axis_of(a[1], o.axis or 1), 0, {}
    for k, x in ipairs(a[2]) do
      local first = at
      out[k] = array.build(x.shape, function(ix)
        local from = { unpack(ix) }
        from[axis] = from[axis] + first
        return a[1].data[array.at(a[1], from)]
      end)
      at = at + x.shape[axis]
    end
    return out
  end,
  cases = { { F { 5, 4 }, { F { 3, 4 }, F { 2, 4 } }, attrs = { axis = 1 } },
            { F { 3, 5 }, { F { 3, 4 }, F { 3, 1 } }, attrs = { axis = 2 } },
            { F { 3, 2 }, { F { 3, 0 }, F { 3, 2 } }, attrs = { axis = 2 } } },
  bad = { { { F { 5, 4 }, { F { 3, 4 }, F { 3, 4 } } }, { axis = 1 }, nil } },
}

local function triangle(keeps)
  return {
    class = "exact",
    ref = function(a, o)
      local rank = #a[1].shape
      return array.build(a[1].shape, function(ix)
        return keeps(ix[rank] - ix[rank - 1], o.diagonal or 0) and a[1].data[array.at(a[1], ix)] or 0
      end)
    end,
    cases = { { F { 3, 4 } }, { F { 4, 3 }, attrs = { diagonal = 1 } }, { F { 2, 3, 3 }, attrs = { diagonal = -1 } },
      { F { 2, 2, 3, 5 }, attrs = { diagonal = 2 } }, { F { 3, 3 }, attrs = { diagonal = 2 ^ 40 } },
      { F { 3, 3 }, attrs = { diagonal = -2 ^ 40 } }, { B { 3, 3 } }, { F { 300, 200 }, attrs = { diagonal = 7 } },
      { F { 0, 3 } }, { F { 3, 0 } }, { F { 0, 2, 2 } }, { F { 1, 1 } } },
    bad = { { { F { 3 } }, nil, "2" }, { { F {} }, nil, "2" } },
  }
end
rows.tril = triangle(function(apart, diagonal) return apart <= diagonal end)
rows.triu = triangle(function(apart, diagonal) return apart >= diagonal end)

local function moved(x, place) -- place(axis, n, i): where the element at i of an axis comes from
  return array.build(x.shape, function(ix)
    local from = {}
    for axis, n in ipairs(x.shape) do from[axis] = place(axis, n, ix[axis]) end
    return x.data[array.at(x, from)]
  end)
end
rows.flip = {
  class = "exact",
  ref = function(a, o)
    local turned = {}
    for _, axis in ipairs(o.axes) do turned[axis_of(a[1], axis)] = true end
    return moved(a[1], function(axis, n, i) return turned[axis] and n - 1 - i or i end)
  end,
  cases = { { F { 3, 4 }, attrs = { axes = { 1 } } }, { F { 3, 4 }, attrs = { axes = { -1 } } },
    { F { 2, 3, 4 }, attrs = { axes = { 1, 3 } } }, { F { 2, 3, 4 }, attrs = { axes = { 3, 2, 1 } } },
    { F { 40, 50 }, attrs = { axes = { 2 } } }, { B { 3, 3 }, attrs = { axes = { 1 } } },
    { F { 3, 4 }, attrs = { axes = {} } }, { F { 3, 0 }, attrs = { axes = { 2 } } },
    { F { 0, 2 }, attrs = { axes = { 1, 2 } } } },
  bad = { { { F { 3, 4 } }, { axes = { 3 } }, "out of range" }, { { F { 3, 4 } }, { axes = { 1, -2 } }, "twice" },
    { { F { 3, 4 } }, nil, "missing" } },
}
rows.roll_axes = {
  class = "exact",
  ref = function(a, o) return moved(a[1], function(axis, n, i) return (i - (o.shifts[axis] or 0)) % n end) end,
  cases = { { F { 3, 4 }, attrs = { shifts = { 1 } } }, { F { 3, 4 }, attrs = { shifts = { 0, -1 } } },
    { F { 3, 4, 5 }, attrs = { shifts = { 7, 1, -12 } } }, { F { 2, 3 }, attrs = { shifts = { 2, 3 } } },
    { F { 60, 50 }, attrs = { shifts = { 13, 21 } } }, { B { 4 }, attrs = { shifts = { 1 } } },
    { F { 3, 0 }, attrs = { shifts = { 1, 1 } } }, { F {}, attrs = { shifts = {} } } },
  bad = { { { F { 3 } }, { shifts = { 1, 1 } }, "2 shifts" }, { { F { 3 } }, nil, "missing" } },
}

-- The position (from 0) of an axis of n that position i of the padded axis shows; nil where it shows none.
local function shown_at(o, axis, n, i)
  local before, behind = o.before and o.before[axis] or 0, o.behind and o.behind[axis] or 0
  local p = i - before
  if o.mode == "circular" then
    local first = math.max(0, -before)
    return first + (p - first) % (n - first + math.min(0, behind))
  end
  if p >= 0 and p < n then return p end
  if o.mode == "reflect" then return p < 0 and -p or 2 * (n - 1) - p end
  if o.mode == "replicate" then return math.max(0, math.min(n - 1, p)) end
end
local function padded(x, o)
  local shape = {}
  for i, n in ipairs(x.shape) do shape[i] = n + (o.before and o.before[i] or 0) + (o.behind and o.behind[i] or 0) end
  return array.build(shape, function(ix)
    local from = {}
    for i, n in ipairs(x.shape) do
      from[i] = shown_at(o, i, n, ix[i])
      if not from[i] then return o.value or 0 end
    end
    return x.data[array.at(x, from)]
  end)
end
rows.pad_axes = {
  class = "exact", ref = function(a, o) return padded(a[1], o) end,
  cases = {
    { F { 3, 4 }, attrs = { before = { 1, 2 }, behind = { 0, 1 } } },
    { F { 3, 4 }, attrs = { before = { 0, -1 }, behind = { 2, 3 }, value = 2 } },
    { F { 3, 4 }, attrs = { before = { -1, 0 }, behind = { -1, -2 } } },
    { F { 2, 3, 4 }, attrs = { before = { 0, 1 }, value = -1 } }, { F { 2, 3, 4 }, attrs = { behind = { 1 } } },
    { F { 2, 3, 4, 2 }, attrs = { before = { 0, 0, 1, 1 }, behind = { 0, 0, 1, 2 } } },
    { F { 3, 4 }, attrs = {} }, { F {}, attrs = {} }, { F { 0, 2 }, attrs = { before = { 1, 1 } } },
    { F { 2, 0 }, attrs = { behind = { 0, 2 }, value = 1 } }, { F { 3 }, attrs = { before = { -3 } } },
    { B { 2, 2 }, attrs = { before = { 1, 1 }, value = 1 } }, { F { 300, 90 }, attrs = { before = { 2, 30 } } },
    { F { 3, 4 }, attrs = { before = { 2, 3 }, behind = { 1, 2 }, mode = "reflect" } },
    { F { 2, 3, 5 }, attrs = { before = { 0, 0, -2 }, behind = { 0, 2, 3 }, mode = "reflect" } },
    { F { 1, 3 }, attrs = { before = { 2, 3 }, behind = { 1, 4 }, mode = "replicate" } },
    { F { 2, 3, 4 }, attrs = { before = { 0, 1, -1 }, behind = { 0, 0, 6 }, mode = "replicate" } },
    { F { 3, 4 }, attrs = { before = { 3, 2 }, behind = { 1, 4 }, mode = "circular" } },
    { F { 2, 5 }, attrs = { before = { 0, -2 }, behind = { 0, 3 }, mode = "circular" } },
    { F { 0, 3 }, attrs = { before = { 0, 1 }, behind = { 0, 1 }, mode = "reflect" } },
  },
  bad = { { { F { 3, 4 } }, { before = { 0, -3 }, behind = { 0, -2 } }, "take more than axis 2" },
    { { F { 3, 4 } }, { before = { 3 }, mode = "reflect" }, "too large for axis 1.*reflect" },
    { { F { 3, 4 } }, { behind = { 0, 5 }, mode = "circular" }, "too large for axis 2.*circular" },
    { { F { 0, 4 } }, { behind = { 1 }, mode = "replicate" }, "too large for axis 1.*replicate" },
    { { F { 3 } }, { before = { 1, 1 } }, "2 widths" }, { { F { 3 } }, { before = { 2 ^ 62 } }, "too large" },
    { { F { 3 } }, { before = { 1 }, mode = "mirror" }, "mirror" } },
}
rows.pad_axes_grad = {
  class = "sum",
  ref = function(a, o)
    o = setmetatable({ mode = o.mode or "reflect" }, { __index = o })
    return array.adjoint(a[2].shape, a[1], function(x) return padded(x, o) end)
  end,
  cases = {
    { F { 6, 9 }, F { 3, 4 }, attrs = { before = { 2, 3 }, behind = { 1, 2 }, mode = "reflect" } },
    { F { 2, 5, 6 }, F { 2, 3, 5 }, attrs = { before = { 0, 0, -2 }, behind = { 0, 2, 3 } } },
    { F { 4, 10 }, F { 1, 3 }, attrs = { before = { 2, 3 }, behind = { 1, 4 }, mode = "replicate" } },
    { F { 2, 4, 9 }, F { 2, 3, 4 }, attrs = { before = { 0, 1, -1 }, behind = { 0, 0, 6 }, mode = "replicate" } },
    { F { 7, 10 }, F { 3, 4 }, attrs = { before = { 3, 2 }, behind = { 1, 4 }, mode = "circular" } },
    { F { 4, 6 }, F { 3, 4 }, attrs = { before = { 1, -1 }, behind = { 0, 3 }, mode = "constant" } },
    { F { 0, 5 }, F { 0, 3 }, attrs = { before = { 0, 1 }, behind = { 0, 1 } } },
    { F { 3, 4 }, F { 3, 4 }, attrs = {} },
  },
  bad = { { { F { 6, 8 }, F { 3, 4 } }, { before = { 2, 3 }, behind = { 1, 2 } }, "shape of the padded" },
    { { F { 6 }, F { 3, 4 } }, { before = { 2 } }, nil } },
}

local function gathered(x, ix_array, axis)
  return array.build(ix_array.shape, function(ix)
    local from = { unpack(ix) }
    if #from > 0 then from[axis] = ix_array.data[array.at(ix_array, ix)] end
    return x.data[array.at(x, from)]
  end)
end
rows.gather = {
  class = "exact", ref = function(a, o) return gathered(a[1], a[2], axis_of(a[1], o.axis)) end,
  cases = { { F { 3, 4 }, I({ 3, 2 }, 0, 3), attrs = { axis = 2 } },
    { F { 3, 4 }, I({ 5, 4 }, 0, 2), attrs = { axis = 1 } },
            { F { 3, 4 }, I({ 2, 6 }, 0, 3), attrs = { axis = -1 } },
              { F { 3, 2, 2 }, I({ 3, 3, 2 }, 0, 1), attrs = { axis = 2 } },
            { F { 3, 4 }, I({ 3, 0 }, 0, 0), attrs = { axis = 2 } }, { F {}, I({}, 0, 0), attrs = { axis = 1 } } },
  bad = { { { F { 3, 4 }, index({ 0, 4 }, { 1, 2 }) }, { axis = 2 }, "4" },
    { { F { 3, 4 }, index({ -1 }, { 1, 1 }) }, { axis = 2 }, "%-1" },
          { { F { 3, 4 }, index { 0 } }, { axis = 1 }, "axes" }, { { F { 3 }, F { 3 } }, { axis = 1 }, "index" } },
}
rows.gather_grad = {
  class = "sum",
  ref = function(a, o)
    return array.adjoint(a[3].shape, a[1], function(x) return gathered(x, a[2], axis_of(x, o.axis)) end)
  end,
  cases = { { F { 3, 2 }, I({ 3, 2 }, 0, 3), F { 3, 4 }, attrs = { axis = 2 } },
            { F { 6, 4 }, I({ 6, 4 }, 0, 2), F { 3, 4 }, attrs = { axis = 1 } },
            { F { 3, 0 }, I({ 3, 0 }, 0, 0), F { 3, 4 }, attrs = { axis = 2 } } },
  bad = { { { F { 3, 3 }, I({ 3, 2 }, 0, 1), F { 3, 4 } }, { axis = 2 }, nil },
          { { F { 1, 1 }, index({ 9 }, { 1, 1 }), F { 3, 4 } }, { axis = 2 }, "9" } },
}

local function selected(x, at, axis)
  axis = axis_of(x, axis)
  local shape = {}
  for i, d in ipairs(x.shape) do
    shape[i] = i == axis and #at.data or d -- a 0-dim index counts as one of one element
  end
  return array.build(shape, function(ix)
    local from = { unpack(ix) }
    from[axis] = at.data[ix[axis] + 1]
    return x.data[array.at(x, from)]
  end)
end
rows.index_select = {
  class = "exact", ref = function(a, o) return selected(a[1], a[2], o.axis) end,
  cases = { { F { 3, 4 }, index { 2, 0, 2 }, attrs = { axis = 1 }, symbolic = false },
    { F { 3, 4 }, index { 1, 3 }, attrs = { axis = -1 } },
            { F { 3, 4 }, index({ 2 }, {}), attrs = { axis = 2 } },
              { F { 5, 2, 3 }, index { 1, 1, 0, 0 }, attrs = { axis = 2 } },
            { F { 3, 4 }, index({}, { 0 }), attrs = { axis = 1 } }, { F { 3, 0 }, index { 1 }, attrs = { axis = 1 } },
            { F {}, index({ 0 }, {}), attrs = { axis = 1 }, ref = function(a) return a[1] end },
            { F {}, index { 0 }, attrs = { axis = 1 }, ref = function(a) return a[1] end } },
  bad = { { { F { 3, 4 }, index { 0, 3 } }, { axis = 1 }, "3" }, { { F { 3, 4 }, index { -1 } }, { axis = 1 }, "%-1" },
          { { F { 3, 4 }, index({ 0 }, { 1, 1 }) }, { axis = 1 }, "axes" },
            { { F { 3, 4 }, index { 0 } }, { axis = 3 }, "out of range" },
          { { F {}, index({}, { 0 }) }, { axis = 1 }, "0 elements; expected 1" },
            { { F {}, index { 0, 0 } }, { axis = 1 }, "2 elements; expected 1" } },
}
rows.index_select_grad = {
  class = "sum",
  ref = function(a, o) return array.adjoint(a[3].shape, a[1], function(x) return selected(x, a[2], o.axis) end) end,
  cases = { { F { 3, 4 }, index { 2, 0, 2 }, F { 3, 4 }, attrs = { axis = 1 }, symbolic = false },
            { F { 3, 2 }, index { 1, 3 }, F { 3, 4 }, attrs = { axis = 2 } },
            { F { 3, 1 }, index({ 2 }, {}), F { 3, 4 }, attrs = { axis = 2 } } },
  bad = { { { F { 2, 4 }, index { 0, 3 }, F { 3, 4 } }, { axis = 1 }, "3" } },
}

local function masked(x, mask)
  local list = {}
  for p, v in ipairs(x.data) do
    if array.shown(mask, array.index(x.shape, p)) ~= 0 then list[#list + 1] = v end
  end
  return array.new({ #list }, list)
end
local function mask(shape, ...) return V(shape, { ... }, "bool") end
rows.masked_select = {
  class = "exact", ref = function(a) return masked(a[1], a[2]) end,
  cases = { { F { 3, 4 }, B { 3, 4 } }, { F { 3, 4 }, mask({ 4 }, 1, 0, 0, 1) }, { F { 3 }, mask({ 3 }, 0) },
    { F {}, mask({}, 1) },
            { F { 3, 0 }, B { 3, 0 } }, { F { 70 }, B { 70 } } },
  bad = { { { F { 3, 4 }, B { 3 } }, nil, "broadcast" }, { { F { 3 }, F { 3 } }, nil, "bool" } },
}
rows.masked_select_grad = {
  class = "exact",
  ref = function(a)
    local at = 0
    return array.build(a[3].shape, function(ix)
      if array.shown(a[2], ix) == 0 then return 0 end
      at = at + 1
      return a[1].data[at]
    end)
  end,
  cases = { { F { 6 }, mask({ 4 }, 1, 0, 0, 1), F { 3, 4 } }, { F { 3 }, mask({ 3 }, 1), F { 3 } },
    { F { 0 }, mask({ 3 }, 0), F { 3 } } },
  bad = { { { F { 2, 2 }, mask({ 4 }, 1), F { 4 } }, nil, nil } },
}

rows.nonzero = {
  class = "exact",
  ref = function(a)
    local data, n = {}, 0
    for p, v in ipairs(a[1].data) do
      if v ~= 0 then
        n = n + 1
        for _, i in ipairs(array.index(a[1].shape, p)) do data[#data + 1] = i end
      end
    end
    return array.new({ n, #a[1].shape }, data)
  end,
  cases = { { V({ 3, 4 }, { 0, 1, 0, 0, 2 }) }, { V({ 3, 4 }, { 0 }) }, { V({}, { 3 }) }, { V({}, { 0 }) },
    { F { 3, 0 } },
            { V({ 90 }, { 0, 1, 1 }) }, { V({ 2, 3, 4 }, { 1, 0, 0 / 0, 0, 0 }), special = true } },
  bad = { { { "text" }, nil, "tensor" } },
}

rows.one_hot = {
  class = "exact",
  ref = function(a, o)
    local shape = { unpack(a[1].shape) }
    shape[#shape + 1] = o.classes
    return array.build(shape, function(ix)
      local class = table.remove(ix)
      return a[1].data[array.at(a[1], ix)] == class and 1 or 0
    end)
  end,
  cases = { { I({ 3 }, 0, 3), attrs = { classes = 4 } }, { I({ 3, 2 }, 0, 1), attrs = { classes = 2 } },
            { I({}, 2, 2), attrs = { classes = 3 } }, { I({ 0 }, 0, 0), attrs = { classes = 3 } } },
  bad = { { { index { 0, 3 } }, { classes = 3 }, "3" }, { { index { -1 } }, { classes = 3 }, "%-1" },
    { { index { 0 } }, { classes = 0 }, "at least 1" },
          { { F { 2 } }, { classes = 2 }, "index" } },
}

local function looked_up(table_, at)
  local shape = { unpack(at.shape) }
  shape[#shape + 1] = table_.shape[2]
  return array.build(shape, function(ix)
    local column = table.remove(ix)
    return array.get(table_, at.data[array.at(at, ix)], column)
  end)
end
rows.embedding = {
  class = "exact", ref = function(a) return looked_up(a[1], a[2]) end,
  cases = { { F { 5, 4 }, index { 4, 0, 4 } }, { F { 5, 4 }, I({ 2, 3 }, 0, 4) }, { F { 5, 4 }, index({ 2 }, {}) },
            { F { 5, 4 }, index({}, { 0 }) }, { F { 5, 4 }, index { 1, 2, 1 }, attrs = { padding_idx = 1 },
              grad = false },
            { F { 5, 40 }, I({ 9 }, 0, 4) } },
  bad = { { { F { 5, 4 }, index { 0, 5 } }, nil, "5" }, { { F { 5, 4 }, index { -1 } }, nil, "%-1" },
    { { F { 5 }, index { 0 } }, nil, "axes" },
          { { F { 5, 4 }, index { 0 } }, { padding_idx = 5 }, "padding_idx" },
            { { F { 5, 4 }, F { 2 } }, nil, "index" } },
}
rows.embedding_grad = {
  class = "sum",
  ref = function(a, o)
    return array.adjoint(a[3].shape, a[1], function(w)
      local y = looked_up(w, a[2])
      local width = a[3].shape[2]
      for p in ipairs(y.data) do
        if a[2].data[math.floor((p - 1) / width) + 1] == o.padding_idx then y.data[p] = 0 end
      end
      return y
    end)
  end,
  cases = { { F { 3, 4 }, index { 4, 0, 4 }, F { 5, 4 } },
    { F { 3, 2 }, index { 1, 2, 1 }, F { 5, 2 }, attrs = { padding_idx = 1 } },
            { F { 0, 2 }, index({}, { 0 }), F { 5, 2 } }, { F { 2, 3, 2 }, I({ 2, 3 }, 0, 4), F { 5, 2 } } },
  bad = { { { F { 1, 4 }, index { 5 }, F { 5, 4 } }, nil, "5" },
    { { F { 1, 3 }, index { 0 }, F { 5, 4 } }, nil, nil } },
}

return rows
