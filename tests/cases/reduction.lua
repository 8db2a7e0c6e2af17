-- SPDX-License-Identifier: Apache-2.0
-- Reductions, running sums and products, positions of extremes.

local array = require "cases.array"
local S = require "cases.specs"
local F, D, V = S.F, S.D, S.V
local nan, inf = 0 / 0, 1 / 0

local function reduction(class, f, spec, more)
  spec = spec or F
  local row = {
    class = class,
    ref = function(a, o) return array.reduce(a[1], o.axes, o.keepdim, function(list) return f(list, o) end) end,
    cases = {
      { spec { 3, 4 } },
      { spec { 3, 4 }, attrs = { axes = { 2 } } },
      { spec { 3, 4 }, attrs = { axes = { 1 }, keepdim = true } },
      { spec { 3, 2, 4 }, attrs = { axes = { 1, -1 } } },
      { spec { 3, 2, 4 }, attrs = { axes = { 2 }, keepdim = true } },
      { spec { 3, 4 }, attrs = { keepdim = true } },
      { spec { 41 } },
      { spec {}, one = true },
      { spec {}, attrs = { axes = { -1 } }, one = true },
      { spec { 9, 5 }, attrs = { axes = { 2 } } },
      { spec { 2, 3, 8 }, attrs = { axes = { 3 }, keepdim = true } },
      { spec { 3, 0 }, attrs = { axes = { 1 } } },
      { spec { 0, 4 }, attrs = { axes = { 1 } }, none = true },
    },
    bad = { { { F { 2, 3 } }, { axes = { 3 } }, "out of range" }, { { F { 2, 3 } }, { axes = { 0 } }, "count from 1" },
            { { F { 2, 3 } }, { axes = { 1, -2 } }, "twice" } },
  }
  for k, v in pairs(more or {}) do row[k] = v end
  return row
end

local function drop(row, flag) -- cases without a value
  for i = #row.cases, 1, -1 do if row.cases[i][flag] then table.remove(row.cases, i) end end
  return row
end

local function product(list)
  local p = 1
  for _, x in ipairs(list) do p = p * x end
  return p
end
local function average(list) return array.sum(list) / #list end
local function extreme(better)
  return function(list)
    local best
    for _, x in ipairs(list) do
      if x ~= x then return nan end
      if best == nil or better(x, best) then best = x end
    end
    return best
  end
end
local function variance(list, o)
  local m, s = average(list), 0
  for _, x in ipairs(list) do s = s + (x - m) ^ 2 end
  return s / math.max(#list - (o.correction or 1), 0)
end
local function logsumexp(list)
  local m, s = -inf, 0
  for _, x in ipairs(list) do
    if x ~= x then return nan end
    m = math.max(m, x)
  end
  if math.abs(m) == inf then return m end
  for _, x in ipairs(list) do s = s + math.exp(x - m) end
  return m + math.log(s)
end
local function gt(a, b) return a > b end
local function lt(a, b) return a < b end
local function sparse(shape) return V(shape, { 0, 0, 0, 1.5, 0, 0 }) end

local rows = {
  sum = reduction("sum", array.sum),
  mean = reduction("sum", average),
  prod = reduction("function_", product, function(shape) return F(shape, 0.5, 1.5, { -2, 2 }) end),
  amax = drop(reduction("exact", extreme(gt), D), "none"),
  amin = drop(reduction("exact", extreme(lt), D), "none"),
  logsumexp = reduction("composed", logsumexp),
  any = reduction("exact", function(list)
    for _, x in ipairs(list) do if x ~= 0 then return 1 end end
    return 0
  end, sparse),
  all = reduction("exact", function(list)
    for _, x in ipairs(list) do if x == 0 then return 0 end end
    return 1
  end, function(shape) return V(shape, { 1, 2, 1, 0, 3, 1, 1 }) end),
  var = drop(reduction("composed", variance), "one"),
  std = drop(reduction("composed", function(list, o) return math.sqrt(variance(list, o)) end), "one"),
}

local function add(name, case) table.insert(rows[name].cases, case) end
local specials = {}
for _, name in ipairs { "var", "std" } do
  add(name, { F { 3, 4 }, attrs = { axes = { 2 }, correction = 0 } })
  add(name, { F { 3, 4 }, attrs = { axes = { 1 }, correction = 2 } })
end
-- A slope of the product where factors are zero: one zero, two, three.
add("prod", { V({ 3, 3 }, { 0, 2, 3, 0, 0, 5, 0, 0, 0 }), attrs = { axes = { 2 } } })
add("prod", { V({ 5, 3 }, { 0, 2, 3, 0, 0, 5, 0, 0, 0, 2, 0, -1, 1, 2, 3 }), attrs = { axes = { 2 } } })
add("prod", { V({ 4 }, { 2, 0, 1.5, -1 }) })
add("amax", { V({ 2, 4 }, { 1, 3, 3, 0, 2, 2, 2, 2 }), attrs = { axes = { 2 } }, grad = false }) -- ties
add("amax", { V({ 4 }, { 1, nan, inf, -inf }), grad = false, special = true })
add("amin", { V({ 4 }, { 1, nan, inf, -inf }), grad = false, special = true })
for _, name in ipairs { "amax", "amin", "sum", "prod", "logsumexp", "norm" } do -- short lines
  specials[name] = { V({ 7, 3 }, { 1, nan, 2, inf, -inf, 1, -inf, -inf, -inf, nan, nan, nan, inf, 3, 4, -inf, 3, 4,
                                   -1, -3, -2 }), attrs = { axes = { 2 } }, grad = false, special = true }
  if rows[name] then add(name, specials[name]) end
end
add("sum", { V({ 3 }, { inf, 1, 2 }), grad = false, special = true })
add("sum", { V({ 3 }, { inf, -inf, 2 }), grad = false, special = true })
add("logsumexp", { V({ 2, 2 }, { 1000, 1000, -inf, -inf }), attrs = { axes = { 2 } }, grad = false, special = true })
rows.amax.bad[#rows.amax.bad + 1] = { { F { 0, 2 } }, { axes = { 1 } }, "empty" }
rows.amin.bad[#rows.amin.bad + 1] = { { F { 0 } }, nil, "empty" }

local function norm(list, o)
  local p, sum, most, least = o.p or 2, 0, 0, inf
  for _, x in ipairs(list) do
    local size = math.abs(x)
    sum = sum + (p == 0 and (x ~= 0 and 1 or 0) or size ^ p)
    most, least = math.max(most, size), math.min(least, size)
  end
  if p == inf then return most end
  if p == -inf then return least end
  return p == 0 and sum or sum ^ (1 / p)
end
rows.norm = reduction("composed", norm, D)
for _, p in ipairs { 0, 1, 3, 1.5, -2, inf, -inf } do
  add("norm", { D { 3, 4 }, attrs = { p = p, axes = { 2 } } })
  add("norm", { D { 3, 4 }, attrs = { p = p } })
end
add("norm", { V({ 2, 3 }, { 0, 0, 0, 1, 0, -2 }), attrs = { axes = { 2 } }, grad = false })
rows.norm.bad[#rows.norm.bad + 1] = { { F { 0, 2 } }, { p = inf }, "empty" }

add("norm", specials.norm)

-- What amax and prod emit on the way back: x, what was found, dy; the reduced axes have size 1.
local function found(shape, axes)
  return { shape = shape, kind = "float", compute = function(before)
    return array.reduce(before[1], axes, true, extreme(gt))
  end }
end
rows.extreme_grad = {
  class = "composed", grad = { false, false, true },
  ref = function(a, o)
    local x, y, dy = a[1], a[2], a[3]
    local ties = array.reduce(x, o.axes, true, function(list)
      local n, most = 0, extreme(gt)(list)
      for _, v in ipairs(list) do n = n + (v == most and 1 or 0) end
      return n
    end)
    return array.build(x.shape, function(ix)
      if x.data[array.at(x, ix)] ~= array.shown(y, ix) then return 0 end
      return array.shown(dy, ix) / array.shown(ties, ix)
    end)
  end,
  cases = {
    { D { 3, 4 }, found({ 3, 1 }, { 2 }), F { 3, 1 }, attrs = { axes = { 2 } } },
    { D { 3, 4 }, found({ 1, 4 }, { 1 }), F { 1, 4 }, attrs = { axes = { 1 } } },
    { D { 3, 4 }, found({ 1, 1 }), F { 1, 1 } },
    { V({ 9, 5 }, { 1, 3, 3, 0, 2, 2, 2, -1 }), found({ 9, 1 }, { 2 }), F { 9, 1 }, attrs = { axes = { 2 } } },
    { D { 2, 3, 2, 4 }, found({ 2, 3, 1, 1 }, { 3, 4 }), F { 2, 3, 1, 1 }, attrs = { axes = { 3, 4 } } },
    { D { 33, 8 }, found({ 33, 1 }, { 2 }), F { 33, 1 }, attrs = { axes = { 2 } } },
  },
  bad = { { { F { 2, 3 }, F { 2, 2 }, F { 2, 1 } }, { axes = { 2 } }, "do not broadcast" },
          { { F { 2, 3 }, F { 2, 1 }, F { 2, 1 } }, { axes = { 3 } }, "out of range" } },
}
rows.prod_grad = {
  class = "composed", grad = { true, true },
  ref = function(a, o)
    local x, dy = a[1], a[2]
    return array.build(x.shape, function(ix)
      local others = array.new(x.shape, { unpack(x.data) })
      others.data[array.at(x, ix)] = 1
      return array.shown(dy, ix) * array.shown(array.reduce(others, o.axes, true, product), ix)
    end)
  end,
  cases = {
    { F({ 3, 4 }, 0.5, 1.5), F { 3, 1 }, attrs = { axes = { 2 } } },
    { F({ 3, 4 }, 0.5, 1.5), F { 1, 4 }, attrs = { axes = { 1 } } },
    { F({ 3, 4 }, 0.5, 1.5), F { 1, 1 } },
    { F({ 9, 5 }, 0.5, 1.5), F { 9, 1 }, attrs = { axes = { 2 } } },
    -- Its second derivatives, which are the product's third ones, are left out where three factors are zero.
    { V({ 5, 3 }, { 0, 2, 3, 0, 0, 5, 0, 0, 0, 2, 0, -1, 1, 2, 3 }), F { 5, 1 }, attrs = { axes = { 2 } },
      second = false },
    { V({ 3, 3 }, { 0, 2, 3, 0, 0, 5, 0, 0, 0 }), F { 3, 1 }, attrs = { axes = { 2 } }, second = false },
  },
  bad = { { { F { 2, 3 }, F { 2, 2 } }, { axes = { 2 } }, "do not broadcast" },
          { { F { 2, 3 }, F { 3, 2, 3 } }, { axes = { 2 } }, "does not broadcast" } },
}

-- NaN at some places; integers have none.
local function holes(shape) return V(shape, { 1.5, nan, -2, 0, nan, 3.25, 7 }) end
local function drop_nan(f)
  return function(list)
    local kept = {}
    for _, x in ipairs(list) do if x == x then kept[#kept + 1] = x end end
    return f(kept)
  end
end
for name, f in pairs { nansum = array.sum, nanmean = average } do
  rows[name] = drop(reduction("sum", drop_nan(f), F), "none")
  for _, axes in ipairs { {}, { 1 }, { 2 } } do
    add(name, { holes { 4, 3 }, attrs = { axes = axes }, grad = false, special = true })
  end
end
rows.count_nonzero = reduction("exact", function(list)
  local n = 0
  for _, x in ipairs(list) do n = n + (x ~= 0 and 1 or 0) end
  return n
end, sparse)

local function position(better)
  local function find(list)
    local at = 1
    for i, x in ipairs(list) do
      if list[at] == list[at] and (x ~= x or better(x, list[at])) then at = i end
    end
    return at - 1
  end
  return {
    class = "exact",
    ref = function(a, o) return array.reduce(a[1], o.flat == false and o.axis or nil, o.keepdim, find) end,
    cases = {
      { D { 3, 4 } }, { D { 3, 4 }, attrs = { axis = 1, flat = false } },
      { D { 3, 4 }, attrs = { axis = -1, flat = false, keepdim = true } }, { D { 3, 4 }, attrs = { keepdim = true } },
      { V({ 2, 3 }, { 1, 1, 0, 2, 5, 5 }), attrs = { axis = 2, flat = false } }, { D {} },
      { D { 3, 0 }, attrs = { axis = 1, flat = false } }, { V({ 4 }, { 1, inf, nan, nan }), special = true },
      { D { 50 } }, { D { 9, 5 }, attrs = { axis = 2, flat = false } },
      { V({ 7, 3 }, { 1, nan, 2, inf, -inf, 1, -inf, -inf, -inf, nan, nan, nan, inf, 3, 4, 4, 3, 4, -1, -3, -3 }),
        attrs = { axis = 2, flat = false }, special = true },
    },
    bad = { { { F { 0 } }, nil, "no elements" }, { { F { 2, 0 } }, { axis = 2, flat = false }, "empty" },
            { { F { 2 } }, { axis = 2, flat = false }, "out of range" } },
  }
end
rows.argmax, rows.argmin = position(gt), position(lt)

local function running(class, step, spec)
  local function run(list)
    local out, y = {}, nil
    for i, x in ipairs(list) do
      y = y == nil and x or step(y, x)
      out[i] = y
    end
    return out
  end
  return {
    class = class, ref = function(a, o) return array.along(a[1], o.axis, run) end,
    cases = {
      { spec { 3, 4 }, attrs = { axis = 1 } }, { spec { 3, 4 }, attrs = { axis = -1 } },
      { spec { 3, 2, 4 }, attrs = { axis = 2 } }, { spec {}, attrs = { axis = 1 } },
      { spec { 3, 0 }, attrs = { axis = 1 } }, { spec { 0 }, attrs = { axis = 1 } },
        { spec { 40 }, attrs = { axis = 1 } },
    },
    bad = { { { F { 2, 3 } }, { axis = 3 }, "out of range" }, { { F { 2, 3 } }, nil, "missing" },
            { { F { 2, 3 } }, { axis = 0 }, "count from 1" } },
  }
end
rows.cumsum = running("sum", function(y, x) return y + x end, F)
rows.cumprod = running("function_", function(y, x) return y * x end, function(s) return F(s, 0.5, 1.5, { -2, 2 }) end)
table.insert(rows.cumprod.cases, { V({ 3, 4 }, { 2, 0, 3, 4, 0, 0, 5, 6, 1, 2, 3, 0 }), attrs = { axis = 2 } })

local function scan_row(class, scan, spec)
  local row = running(class, nil, spec)
  row.ref = function(a, o) return array.along(a[1], o.axis, function(list) return scan(list, o) end) end
  return row
end
rows.logcumsumexp = scan_row("composed", function(list, o)
  local out, n = {}, #list
  for i = 1, n do
    local part = {}
    for k = o.reverse and i or 1, o.reverse and n or i do part[#part + 1] = list[k] end
    out[i] = logsumexp(part)
  end
  return out
end, F)
table.insert(rows.logcumsumexp.cases, { F { 3, 4 }, attrs = { axis = 2, reverse = true } })
table.insert(rows.logcumsumexp.cases, { V({ 5 }, { -inf, 1000, -1000, 1000, inf }), attrs = { axis = 1 }, grad = false,
                                        special = true })
table.insert(rows.logcumsumexp.cases, { V({ 4 }, { -800, 0.5, 900, 1 }), attrs = { axis = 1 }, integers = false })

local function cumulative_extreme(better)
  local function scan(list)
    local values, places, best = {}, {}, 1
    for i, x in ipairs(list) do
      if x ~= x or (list[best] == list[best] and not better(list[best], x)) then best = i end
      values[i], places[i] = list[best], best - 1
    end
    return values, places
  end
  local row = running("exact", nil, D)
  row.ref = function(a, o)
    return { array.along(a[1], o.axis, function(list) return (scan(list)) end),
             array.along(a[1], o.axis, function(list) return select(2, scan(list)) end) }
  end
  table.insert(row.cases, { V({ 2, 5 }, { 1, 3, 3, 0, 3, -1, -2, -2, 5, 5 }), attrs = { axis = 2 }, grad = false })
  table.insert(row.cases, { V({ 6 }, { 1, inf, -inf, nan, 2, nan }), attrs = { axis = 1 }, special = true,
    grad = false })
  return row
end
rows.cummax, rows.cummin = cumulative_extreme(gt), cumulative_extreme(lt)

rows.all_finite = {
  class = "exact",
  ref = function(a)
    for _, x in ipairs(a[1]) do
      for _, v in ipairs(x.data) do if v ~= v or v == inf or v == -inf then return array.new({}, { 0 }) end end
    end
    return array.new({}, { 1 })
  end,
  cases = { { { F { 3, 4 }, F {} } }, { { F { 3 }, V({ 2 }, { 1, inf }) }, special = true },
    { { V({ 2 }, { nan, 1 }) }, special = true }, { { F { 0 } } } },
  bad = { { { { 1 } }, nil, "tensor" } },
}

rows.sum_like = {
  class = "sum",
  ref = function(a)
    local out = array.fill(a[2].shape, 0)
    for p, v in ipairs(a[1].data) do
      local ix, own = array.index(a[1].shape, p), {}
      for i, d in ipairs(a[2].shape) do own[i] = d == 1 and 0 or ix[i + #ix - #a[2].shape] end
      local at = array.at(out, own)
      out.data[at] = out.data[at] + v
    end
    return out
  end,
  cases = { { F { 3, 4 }, F { 4 } }, { F { 3, 4 }, F { 3, 1 } }, { F { 3, 4 }, F {} }, { F { 3, 4 }, F { 3, 4 } },
            { F { 3, 0 }, F { 3, 1 } }, { F { 2, 3, 4 }, F { 1, 3, 1 } }, { F {}, F {} } },
  bad = { { { F { 3, 4 }, F { 3 } }, nil, "does not broadcast" } },
}

return rows
