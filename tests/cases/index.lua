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
