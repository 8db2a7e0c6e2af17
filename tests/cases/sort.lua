-- SPDX-License-Identifier: Apache-2.0
-- Operators over the order of elements.

local array = require "cases.array"
local S = require "cases.specs"
local F, D, V = S.F, S.D, S.V

local nan = 0 / 0
local function axis_of(a, axis) return axis > 0 and axis or #a.shape + 1 + axis end

-- Positions (from 0) of a list in rising order; NaN behind all numbers, equal elements as they come.
local function sorted(list, descending)
  local order = {}
  for i = 1, #list do order[i] = i end
  local function below(a, b) -- NaN is the largest
    if a ~= a or b ~= b then return a == a and b ~= b end
    return a < b
  end
  table.sort(order, function(i, j)
    local a, b = list[i], list[j]
    if descending then a, b = b, a end
    if below(a, b) then return true end
    return not below(b, a) and i < j
  end)
  for i, at in ipairs(order) do order[i] = at - 1 end
  return order
end

-- choose(list) answers positions (from 0) of each line; k of them. Arrays of values and positions.
local function chosen(a, axis, k, keepdim, choose)
  axis = axis_of(a, axis or -1)
  local shape = { unpack(a.shape) }
  if #shape > 0 then shape[axis] = k end
  local values, indices = array.fill(shape, 0), array.fill(shape, 0)
  local frame = { unpack(shape) }
  if #shape > 0 then frame[axis] = 1 end
  for p = 1, array.count(frame) do
    local ix, list = array.index(frame, p), {}
    for i = 1, #shape > 0 and a.shape[axis] or 1 do
      if #shape > 0 then ix[axis] = i - 1 end
      list[i] = a.data[array.at(a, ix)]
    end
    for i, at in ipairs(choose(list)) do
      if i > k then break end
      if #shape > 0 then ix[axis] = i - 1 end
      local to = array.at(values, ix)
      values.data[to], indices.data[to] = list[at + 1], at
    end
  end
  if keepdim == false and #shape > 0 then
    table.remove(values.shape, axis)
    indices.shape = values.shape
  end
  return values, indices
end
local function length(a, axis) return #a.shape == 0 and 1 or a.shape[axis_of(a, axis or -1)] end

local rows = {}
local special = V({ 7 }, { 2, nan, -1 / 0, -0.0, 1 / 0, 0, nan })

rows.sort = {
  class = "exact",
  ref = function(a, o)
    return { chosen(a[1], o.axis, length(a[1], o.axis), nil, function(l) return sorted(l, o.descending) end) }
  end,
  cases = { { D { 3, 5 } }, { D { 3, 5 }, attrs = { axis = 1, descending = true } },
    { D { 2, 4, 3 }, attrs = { axis = 2, stable = true } }, { V({ 8 }, { 1, 0, 1, 2, 0 }), grad = false },
    { V({ 8 }, { 1, 0, 1, 2, 0 }), attrs = { descending = true }, grad = false }, { special, special = true },
    { special, attrs = { descending = true }, special = true }, { F {} }, { F { 0 } }, { F { 3, 0 } },
    { F { 0, 3 } }, { D { 450 }, symbolic = false, grad = false } },
  bad = { { { F { 3 } }, { axis = 2 }, "out of range" }, { { "text" }, nil, "tensor" } },
}
rows.argsort = { class = "exact", bad = rows.sort.bad, cases = {}, ref = function(a, o)
  local _, indices = chosen(a[1], o.axis, length(a[1], o.axis), nil, function(l) return sorted(l, o.descending) end)
  return indices
end }
for i, case in ipairs(rows.sort.cases) do
  rows.argsort.cases[i] = { case[1], attrs = case.attrs, special = case.special, symbolic = case.symbolic }
end

rows.topk = {
  class = "exact",
  ref = function(a, o)
    return { chosen(a[1], o.axis, o.k, nil, function(l) return sorted(l, o.largest ~= false) end) }
  end,
  cases = { { D { 3, 5 }, attrs = { k = 2 } }, { D { 6, 3 }, attrs = { k = 4, axis = 1, largest = false } },
    { D { 5 }, attrs = { k = 5, sorted = false } }, { D { 2, 3 }, attrs = { k = 0 } }, { F {}, attrs = { k = 1 } },
    { special, attrs = { k = 3 }, special = true }, { special, attrs = { k = 3, largest = false }, special = true },
    { D { 2000 }, attrs = { k = 3 }, grad = false }, { V({ 900 }, { 3, 1, 2, 3 }), attrs = { k = 200 }, grad = false },
    { F { 0, 4 }, attrs = { k = 2 } } },
  bad = { { { F { 3 } }, { k = 4 }, "k is 4" }, { { F { 3 } }, { k = -1 }, "k is %-1" },
    { { F { 3 } }, nil, "missing" }, { { F {} }, { k = 2 }, "k is 2" } },
}
rows.kthvalue = {
  class = "exact",
  ref = function(a, o)
    return { chosen(a[1], o.axis, 1, o.keepdim or false, function(l) return { sorted(l)[o.k] } end) }
  end,
  cases = { { D { 3, 5 }, attrs = { k = 2 } }, { D { 3, 5 }, attrs = { k = 3, axis = 1, keepdim = true } },
    { F {}, attrs = { k = 1 } }, { special, attrs = { k = 6 }, special = true }, { F { 0, 4 }, attrs = { k = 2 } } },
  bad = { { { F { 3 } }, { k = 4 }, "k is 4" }, { { F { 3 } }, { k = 0 }, "k is 0" } },
}

local function median(skip)
  return function(list)
    local order, numbers = sorted(list), 0
    for _, v in ipairs(list) do if v == v then numbers = numbers + 1 end end
    local none = skip and numbers == 0 or not skip and numbers < #list
    return { none and order[numbers + 1] or order[math.floor((numbers - 1) / 2) + 1] }
  end
end
local function mode(list)
  local count, best = {}, nil
  for _, v in ipairs(list) do count[v] = (count[v] or 0) + 1 end
  for v, n in pairs(count) do
    if not best or n > count[best] or (n == count[best] and v < best) then best = v end
  end
  for i = #list, 1, -1 do if list[i] == best then return { i - 1 } end end
end
local function picker(choose, cases)
  return {
    class = "exact", cases = cases,
    ref = function(a, o) return { chosen(a[1], o.axis, 1, o.keepdim or false, choose) } end,
    bad = { { { F { 3, 0 } }, nil, "empty" }, { { F { 3 } }, { axis = 2 }, "out of range" } },
  }
end
local function median_cases(extra)
  return { { D { 3, 5 } }, { D { 4, 3 }, attrs = { axis = 1, keepdim = true } }, { F {} }, { F { 0, 3 } },
    { D { 2, 6, 3 }, attrs = { axis = 2 } }, { special, special = true }, extra }
end
rows.median = picker(median(false), median_cases())
rows.nanmedian = picker(median(true), median_cases { V({ 2 }, { nan, nan }), special = true })
rows.mode = picker(mode, { { V({ 3, 5 }, { 1, 2, 2, 1, 0, 3, 3, 3 }), grad = false }, { F {} },
  { V({ 4, 3 }, { 5, 1, 1, 2 }), attrs = { axis = 1, keepdim = true }, grad = false }, { D { 2, 3 } } })

-- Rows as text, so that they can be compared; NaN equals nothing.
local function row_of(a, i)
  local width, list = a.shape[2] or 1, {}
  for j = 1, width do list[j] = a.data[(i - 1) * width + j] end
  return list
end
local function same(a, b)
  for j, v in ipairs(a) do if v ~= b[j] then return false end end
  return true
end
local function below(a, b)
  for j, v in ipairs(a) do
    local w = b[j]
    if v ~= w and (v == v or w == w) then return w ~= w or (v == v and v < w) end
  end
  return false
end
rows.unique_rows = {
  class = "exact",
  ref = function(a, o)
    local x, order = a[1], {}
    for i = 1, x.shape[1] do order[i] = i end
    if not o.consecutive then
      table.sort(order, function(i, j)
        local p, q = row_of(x, i), row_of(x, j)
        if below(p, q) then return true end
        return not below(q, p) and i < j
      end)
    end
    local first, inverse, counts = {}, {}, {}
    for k, i in ipairs(order) do
      if k == 1 or not same(row_of(x, i), row_of(x, order[k - 1])) then
        first[#first + 1], counts[#counts + 1] = i - 1, 0
      end
      counts[#counts], inverse[i] = counts[#counts] + 1, #first - 1
    end
    return { array.new({ #first }, first), array.new({ x.shape[1] }, inverse), array.new({ #counts }, counts) }
  end,
  cases = { { V({ 9 }, { 3, 1, 3, 2 }) }, { V({ 5, 2 }, { 1, 0, 1, 0, 0, 1 }) }, { special, special = true },
    { V({ 9 }, { 3, 3, 1, 1, 3 }), attrs = { consecutive = true } }, { F { 0 } }, { V({ 600 }, { 5, 1, 7 }) },
    { V({ 6, 1 }, { 1, 2, 2 }), attrs = { consecutive = true } } },
  bad = { { { F {} }, nil, "0 axes" }, { { F { 2, 2, 2 } }, nil, "3 axes" } },
}

rows.searchsorted = {
  class = "exact",
  ref = function(a, o)
    local s, n = a[1], a[1].shape[#a[1].shape]
    return array.fill(a[2].shape, function(p)
      local row = #s.shape == 1 and 0 or math.floor((p - 1) / a[2].shape[#a[2].shape])
      local v, count = a[2].data[p], 0
      for i = row * n + 1, row * n + n do
        local x = s.data[i]
        local before
        if o.right then before = x <= v or v ~= v else before = x < v or (v ~= v and x == x) end
        if before then count = count + 1 end
      end
      return count
    end)
  end,
  cases = { { V({ 5 }, { 0, 0, 1, 2, 3 }), F { 3, 4 } }, { V({ 5 }, { 0, 0, 1, 2, 3 }), V({ 4 }, { 0, 2, 3, 1 }) },
    { V({ 5 }, { 0, 0, 1, 2, 3 }), V({ 4 }, { 0, 2, 3, 1 }), attrs = { right = true } },
    { V({ 2, 3 }, { 1, 2, 3, 0, 0, 1 }), F { 2, 4 } }, { V({ 3 }, { 1, 2, 3 }), F {} }, { F { 0 }, F { 3 } },
    { V({ 3 }, { 1, 2, 3 }), V({ 3 }, { nan, 1 / 0, -1 / 0 }), special = true }, { V({ 3 }, { 1, 2, 3 }), F { 0 } } },
  bad = { { { F {}, F { 3 } }, nil, "axis" }, { { F { 2, 3 }, F { 3, 3 } }, nil, "agree" } },
}

return rows
