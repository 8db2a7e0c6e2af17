-- SPDX-License-Identifier: Apache-2.0
-- Views: other shapes and strides over the same elements.

local array = require "cases.array"
local S = require "cases.specs"
local F = S.F

local function shaped(a, shape) return array.new(shape, a.data) end

-- Resolves -1 in a shape by what n elements leave.
local function resolve(shape, n)
  local out, known, hole = {}, 1, nil
  for i, d in ipairs(shape) do
    out[i] = d
    if d == -1 then hole = i else known = known * d end
  end
  if hole then out[hole] = n / known end
  return out
end

local function axes_of(a, axes)
  local set = {}
  for _, x in ipairs(axes or {}) do set[x > 0 and x or #a.shape + 1 + x] = true end
  return set
end

local function expanded(a, shape) return array.build(shape, function(ix) return array.shown(a, ix) end) end

local rows = {}

rows.permute = {
  class = "exact",
  ref = function(a, o)
    local x, shape = a[1], {}
    for i, axis in ipairs(o.axes) do shape[i] = x.shape[axis > 0 and axis or #x.shape + 1 + axis] end
    return array.build(shape, function(ix)
      local from = {}
      for i, axis in ipairs(o.axes) do from[axis > 0 and axis or #x.shape + 1 + axis] = ix[i] end
      return x.data[array.at(x, from)]
    end)
  end,
  cases = { { F { 3, 4 }, attrs = { axes = { 2, 1 } } }, { F { 3, 2, 4 }, attrs = { axes = { 3, 1, 2 } } },
            { F { 3, 2, 4 }, attrs = { axes = { -1, 2, 1 } } }, { F { 3, 0 }, attrs = { axes = { 2, 1 } } },
            { F {}, attrs = { axes = {} } } },
  bad = { { { F { 2, 3 } }, { axes = { 1 } }, "each of its 2 axes" }, { { F { 2, 3 } }, { axes = { 1, 1 } }, "twice" },
          { { F { 2, 3 } }, { axes = { 1, 3 } }, "out of range" } },
}

rows.reshape = {
  class = "exact", ref = function(a, o) return shaped(a[1], resolve(o.shape, #a[1].data)) end,
  cases = { { F { 3, 4 }, attrs = { shape = { 2, 6 } }, symbolic = false },
    { F { 5, 4 }, attrs = { shape = { -1, 2 } } },
            { F { 3, 4 }, attrs = { shape = { -1 } } }, { F { 3, 0 }, attrs = { shape = { 0, 7 } }, symbolic = false },
            { F {}, attrs = { shape = { 1, 1 } } }, { F { 1 }, attrs = { shape = {} } } },
  bad = { { { F { 2, 3 } }, { shape = { 4 } }, "6 elements" },
    { { F { 2, 3 } }, { shape = { -1, -1 } }, "more than one" },
          { { F { 2, 3 } }, { shape = { -2, 3 } }, "negative" }, { { F { 0 } }, { shape = { 0, -1 } }, "any size" },
          { { F { 2, 3 } }, { shape = { 2 ^ 40, 2 ^ 40 } }, nil } },
}
rows.reshape_like = {
  class = "exact", ref = function(a) return shaped(a[1], a[2].shape) end,
  cases = { { F { 3, 4 }, F { 2, 6 }, symbolic = false }, { F { 3, 4 }, F { 12 }, symbolic = false }, { F {}, F { 1 } },
            { F { 0, 3 }, F { 5, 0 } } },
  bad = { { { F { 2, 3 }, F { 5 } }, nil, "number of elements" } },
}

rows.expand = {
  class = "exact",
  ref = function(a, o)
    local shape, skip = {}, #o.shape - #a[1].shape
    for i, d in ipairs(o.shape) do shape[i] = d == -1 and a[1].shape[i - skip] or d end
    return expanded(a[1], shape)
  end,
  cases = { { F { 3, 1 }, attrs = { shape = { 3, 4 } }, symbolic = false },
    { F { 3, 1 }, attrs = { shape = { -1, 4 } } },
            { F { 4 }, attrs = { shape = { 2, 3, 4 } }, symbolic = false }, { F {}, attrs = { shape = { 3 } } },
            { F { 1 }, attrs = { shape = { 0 } } } },
  bad = { { { F { 2, 3 } }, { shape = { 2, 4 } }, "does not broadcast" },
    { { F { 3 } }, { shape = { -1, 3 } }, "no size" },
          { { F { 2, 3 } }, { shape = { 3 } }, "does not broadcast" } },
}
rows.expand_like = {
  class = "exact", ref = function(a) return expanded(a[1], a[2].shape) end,
  cases = { { F { 3, 1 }, F { 3, 4 } }, { F { 4 }, F { 3, 4 } }, { F {}, F { 3, 0 } } },
  bad = { { { F { 3 }, F { 4 } }, nil, "does not broadcast" } },
}

rows.squeeze = {
  class = "exact",
  ref = function(a, o)
    local shape, set = {}, axes_of(a[1], o.axes)
    for i, d in ipairs(a[1].shape) do
      if d ~= 1 or (next(set) and not set[i]) then shape[#shape + 1] = d end
    end
    return shaped(a[1], shape)
  end,
  cases = { { F { 3, 1, 4, 1 } }, { F { 3, 1, 4, 1 }, attrs = { axes = { 2 } } },
    { F { 3, 1 }, attrs = { axes = { -1 } } },
            { F { 1, 1 } }, { F { 3, 1, 0 } }, { F {} } },
  bad = { { { F { 2, 1 } }, { axes = { 3 } }, "out of range" } },
}
rows.unsqueeze = {
  class = "exact",
  ref = function(a, o)
    local shape = { unpack(a[1].shape) }
    table.insert(shape, o.axis > 0 and o.axis or #shape + 2 + o.axis, 1)
    return shaped(a[1], shape)
  end,
  cases = { { F { 3, 4 }, attrs = { axis = 1 } }, { F { 3, 4 }, attrs = { axis = 3 } },
    { F { 3, 4 }, attrs = { axis = -1 } },
            { F {}, attrs = { axis = 1 } }, { F { 3, 0 }, attrs = { axis = 2 } } },
  bad = { { { F { 2, 3 } }, { axis = 4 }, "out of range" }, { { F { 2, 3 } }, { axis = 0 }, "count from 1" } },
}

-- ---- slices: attributes count from 0 and are half-open, as in the schema ----

local END = 2 ^ 53
local function parts(shape, o)
  local list, out = {}, {}
  for i, size in ipairs(shape) do
    local start, stop = o.starts and o.starts[i] or 0, o.stops and o.stops[i] or END
    local step, drop = o.steps and o.steps[i] or 1, (o.drop and o.drop[i] or 0) ~= 0
    if drop then
      list[i] = { start < 0 and size + start or start, 1, drop = true }
    else
      start = math.max(0, math.min(size, start < 0 and size + start or start))
      stop = math.max(0, math.min(size, stop < 0 and size + stop or stop))
      out[#out + 1] = math.max(0, math.ceil((stop - start) / step))
      list[i] = { start, step }
    end
  end
  return list, out
end
local function source(list, ix)
  local from, at = {}, 1
  for i, part in ipairs(list) do
    from[i] = part[1]
    if not part.drop then
      from[i] = from[i] + part[2] * ix[at]
      at = at + 1
    end
  end
  return from
end
local function cut(x, o)
  local list, shape = parts(x.shape, o)
  return array.build(shape, function(ix) return x.data[array.at(x, source(list, ix))] end)
end
local function put(x, part, o)
  local list = parts(x.shape, o)
  local out = array.new(x.shape, { unpack(x.data) })
  for p, v in ipairs(part.data) do out.data[array.at(out, source(list, array.index(part.shape, p)))] = v end
  return out
end

-- Shapes of x, attributes, shapes of the part.
local slices = {
  { { 5, 4 }, { starts = { 1 }, stops = { 4 }, steps = { 1 }, drop = { 0 } }, { 3, 4 } },
  { { 5, 4 }, { starts = { 0, -3 }, stops = { END, -1 }, steps = { 1, 1 }, drop = { 0, 0 } }, { 5, 2 } },
  { { 5, 7 }, { starts = { 0, 1 }, stops = { 5, 7 }, steps = { 2, 3 }, drop = { 0, 0 } }, { 3, 2 } },
  { { 5, 4, 2 }, { starts = { 2, 0, -1 }, stops = { 3, 4, 2 }, steps = { 1, 1, 1 }, drop = { 1, 0, 1 } }, { 4 } },
  { { 5, 4 }, { starts = { 3 }, stops = { 1 }, steps = { 1 }, drop = { 0 } }, { 0, 4 } },
  { { 5, 4 }, {}, { 5, 4 } },
  { { 5, 0 }, { starts = { 1, 0 }, stops = { 3, 9 }, steps = { 1, 1 }, drop = { 0, 0 } }, { 2, 0 } },
  { {}, {}, {} },
}
local function slice_cases(make)
  local cases = {}
  for i, s in ipairs(slices) do
    cases[i] = make(s[1], s[3])
    cases[i].attrs = s[2]
    if i == 1 or i == 3 or i == 4 or i == 7 then cases[i].symbolic = false end -- stops tell the size
  end
  return cases
end
local bad_attrs = { starts = { 7 }, stops = { 8 }, steps = { 1 }, drop = { 1 } }
rows.slice = {
  class = "exact", ref = function(a, o) return cut(a[1], o) end,
  cases = slice_cases(function(x) return { F(x) } end),
  bad = { { { F { 5 } }, bad_attrs, "position 8 is out of range" },
    { { F { 5 } }, { steps = { 0 }, starts = { 0 } }, "at least 1" },
          { { F { 5 } }, { starts = { 0, 0 } }, "2 positions" },
            { { F { 0 } }, { starts = { 0 }, drop = { 1 } }, "empty" } },
}
rows.slice_grad = {
  class = "exact", ref = function(a, o) return put(array.fill(a[2].shape, 0), a[1], o) end,
  cases = slice_cases(function(x, part) return { F(part), F(x) } end),
  bad = { { { F { 2 }, F { 5 } }, {}, "another shape" } },
}
rows.slice_scatter = {
  class = "exact", ref = function(a, o) return put(a[1], a[2], o) end,
  cases = slice_cases(function(x, part) return { F(x), F(part) } end),
  bad = { { { F { 5 }, F { 2 } }, {}, "another shape" } },
}

-- Indices into x of the diagonal's element at ix.
local function diagonal_place(x, ix, o)
  local a, b = o.axis1 or 1, o.axis2 or 2
  a, b = a > 0 and a or #x.shape + 1 + a, b > 0 and b or #x.shape + 1 + b
  local at, place, off = {}, ix[#ix], o.offset or 0
  local next_ = 1
  for i = 1, #x.shape do
    if i == a then at[i] = place - math.min(off, 0)
    elseif i == b then at[i] = place + math.max(off, 0)
    else at[i], next_ = ix[next_], next_ + 1 end
  end
  return at
end
local function diagonal_shape(x, o)
  local a, b, shape, off = o.axis1 or 1, o.axis2 or 2, {}, o.offset or 0
  a, b = a > 0 and a or #x.shape + 1 + a, b > 0 and b or #x.shape + 1 + b
  for i, d in ipairs(x.shape) do if i ~= a and i ~= b then shape[#shape + 1] = d end end
  shape[#shape + 1] = math.max(0, math.min(x.shape[a] + math.min(off, 0), x.shape[b] - math.max(off, 0)))
  return shape
end
local function diagonal(x, o)
  return array.build(diagonal_shape(x, o), function(ix) return x.data[array.at(x, diagonal_place(x, ix, o))] end)
end
local function placed(x, part, o)
  local y = array.fill(x.shape, function(i) return x.data[i] end)
  for p, v in ipairs(part.data) do y.data[array.at(y, diagonal_place(x, array.index(part.shape, p), o))] = v end
  return y
end
rows.diagonal = {
  class = "exact", ref = function(a, o) return diagonal(a[1], o) end,
  cases = { { F { 3, 4 } }, { F { 3, 4 }, attrs = { offset = 2 } }, { F { 5, 3 }, attrs = { offset = -1 } },
    { F { 3, 2, 4 }, attrs = { axis1 = 3, axis2 = 1 } }, { F { 5, 3, 3 }, attrs = { axis1 = -2, axis2 = -1 } },
    { F { 3, 4 }, attrs = { offset = 9 }, symbolic = false }, { F { 0, 3 } } },
  bad = { { { F { 3 } }, nil, "2 axes" }, { { F { 3, 3 } }, { axis1 = 1, axis2 = -2 }, "two axes" },
    { { F { 3, 3 } }, { axis1 = 3 }, "out of range" } },
}
rows.diagonal_grad = {
  class = "exact",
  ref = function(a, o) return placed(array.fill(a[2].shape, 0), a[1], o) end,
  cases = { { F { 3 }, F { 3, 4 } }, { F { 2, 3 }, F { 3, 2, 4 }, attrs = { axis1 = 1, axis2 = 3 } },
    { F { 2 }, F { 3, 4 }, attrs = { offset = 2 }, symbolic = false } },
  bad = { { { F { 2 }, F { 3, 4 } }, nil, "diagonal" } },
}
rows.diagonal_scatter = {
  class = "exact", ref = function(a, o) return placed(a[1], a[2], o) end,
  cases = { { F { 3, 4 }, F { 3 } }, { F { 3, 2, 4 }, F { 2, 3 }, attrs = { axis1 = 1, axis2 = 3 } },
    { F { 3, 4 }, F { 2 }, attrs = { offset = -1 }, symbolic = false } },
  bad = { { { F { 3, 4 }, F { 4 } }, nil, "diagonal" } },
}

local function unfolded(x, o)
  local axis, step, shape = o.axis > 0 and o.axis or #x.shape + 1 + o.axis, o.step or 1, { unpack(x.shape) }
  shape[axis] = math.floor((shape[axis] - o.size) / step) + 1
  shape[#shape + 1] = o.size
  return array.build(shape, function(ix)
    local at = { unpack(ix, 1, #ix - 1) }
    at[axis] = ix[axis] * step + ix[#ix]
    return x.data[array.at(x, at)]
  end)
end
rows.unfold = {
  class = "exact", ref = function(a, o) return unfolded(a[1], o) end,
  cases = { { F { 7 }, attrs = { axis = 1, size = 3 } }, { F { 3, 8 }, attrs = { axis = 2, size = 2, step = 3 } },
    { F { 5, 2, 3 }, attrs = { axis = 1, size = 2, step = 2 } }, { F { 3, 4 }, attrs = { axis = -1, size = 4 } },
    { F { 0, 4 }, attrs = { axis = 2, size = 3 } } },
  bad = { { { F { 3 } }, { axis = 1, size = 4 }, "size is 4" }, { { F { 3 } }, { axis = 1, size = 0 }, "at least 1" },
    { { F { 3 } }, { axis = 1, size = 1, step = 0 }, "at least 1" }, { { F { 3 } }, { axis = 2, size = 1 }, "range" } },
}
rows.unfold_grad = {
  class = "sum",
  ref = function(a, o) return array.adjoint(a[2].shape, a[1], function(x) return unfolded(x, o) end) end,
  cases = { { F { 5, 3 }, F { 7 }, attrs = { axis = 1, size = 3 }, symbolic = false },
    { F { 3, 3, 2 }, F { 3, 8 }, attrs = { axis = 2, size = 2, step = 3 }, symbolic = false },
    { F { 2, 2, 3, 2 }, F { 5, 2, 3 }, attrs = { axis = 1, size = 2, step = 2 }, symbolic = false } },
  bad = { { { F { 4, 3 }, F { 7 } }, { axis = 1, size = 3 }, "windows" } },
}

return rows
