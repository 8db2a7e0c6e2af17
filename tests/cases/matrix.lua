-- SPDX-License-Identifier: Apache-2.0
-- Matrix products.

local array = require "cases.array"
local S = require "cases.specs"
local F, V = S.F, S.V

local function swapped(a)
  local r = #a.shape
  local shape = { unpack(a.shape) }
  shape[r], shape[r - 1] = shape[r - 1], shape[r]
  return array.build(shape, function(ix)
    local from = { unpack(ix) }
    from[r], from[r - 1] = ix[r - 1], ix[r]
    return a.data[array.at(a, from)]
  end)
end

local function without(shape, n)
  local out = {}
  for i = 1, #shape - n do out[i] = shape[i] end
  return out
end

local function matmul(x, y, tx, ty)
  local row, column = #x.shape == 1, #y.shape == 1
  if row then x = array.new({ 1, x.shape[1] }, x.data) elseif tx then x = swapped(x) end
  if column then y = array.new({ y.shape[1], 1 }, y.data) elseif ty then y = swapped(y) end
  local batch = array.broadcast_shape(without(x.shape, 2), without(y.shape, 2))
  local shape = { unpack(batch) }
  if not row then shape[#shape + 1] = x.shape[#x.shape - 1] end
  if not column then shape[#shape + 1] = y.shape[#y.shape] end
  local inner = x.shape[#x.shape]
  return array.build(shape, function(ix)
    local i, j = row and 0 or ix[#batch + 1], column and 0 or ix[#ix]
    local s = 0
    for k = 0, inner - 1 do
      local a, b = {}, {}
      for n = 1, #batch do a[n], b[n] = ix[n], ix[n] end
      a[#batch + 1], a[#batch + 2], b[#batch + 1], b[#batch + 2] = i, k, k, j
      s = s + array.shown(x, a) * array.shown(y, b)
    end
    return s
  end)
end

local rows = {}

rows.matmul = {
  class = "sum", ref = function(a, o) return matmul(a[1], a[2], o.transpose_x, o.transpose_y) end,
  cases = {
    { F { 3, 4 }, F { 4, 5 } }, { F { 3, 2, 4 }, F { 3, 4, 5 } }, { F { 3, 2, 4 }, F { 4, 5 } }, { F { 4 }, F { 4 } },
    { F { 3, 4 }, F { 4 } }, { F { 4 }, F { 4, 5 } }, { F { 3, 2, 4 }, F { 4 } }, { F { 4 }, F { 3, 4, 2 } },
    { F { 3, 1, 2, 4 }, F { 5, 4, 2 } }, { F { 2, 4 }, F { 3, 4, 5 } },
    { F { 4, 3 }, F { 4, 5 }, attrs = { transpose_x = true } },
      { F { 3, 4 }, F { 5, 4 }, attrs = { transpose_y = true } },
    { F { 2, 4, 3 }, F { 2, 5, 4 }, attrs = { transpose_x = true, transpose_y = true } },
    { F { 3, 2, 4 }, F { 5, 4 }, attrs = { transpose_y = true } },
      { F { 3, 4, 2 }, F { 4, 5 }, attrs = { transpose_x = true } },
    { F { 3, 0 }, F { 0, 5 } }, { F { 0, 4 }, F { 4, 5 } }, { F { 0, 2, 4 }, F { 4, 5 } },
      { F { 17, 33 }, F { 33, 19 }, grad = false },
    { V({ 2, 2 }, { 0 / 0, 1, 2, 3 }), V({ 2, 2 }, { 1, 2, 3, 1 / 0 }), grad = false, special = true },
  },
  bad = { { { F { 2, 3 }, F { 4, 5 } }, nil, "do not fit" }, { { F {}, F { 2, 2 } }, nil, "axis" },
    { { F { 2, 2, 3 }, F { 3, 3, 4 } }, nil, "broadcast" },
          { { F { 2, 2 }, 2 }, nil, "tensor" } },
}

local function linear(a)
  local y = matmul(a[1], a[2], false, true)
  return a[3] and array.map(function(v, b) return v + b end, y, a[3]) or y
end

rows.linear = {
  class = "sum", ref = linear,
  cases = {
    { F { 3, 4 }, F { 5, 4 }, F { 5 } }, { F { 3, 4 }, F { 5, 4 } }, { F { 4 }, F { 5, 4 }, F { 5 } },
      { F { 3, 2, 4 }, F { 5, 4 }, F { 5 } },
    { F { 0, 4 }, F { 5, 4 }, F { 5 } }, { F { 3, 0 }, F { 5, 0 }, F { 5 } },
      { F { 9, 33 }, F { 17, 33 }, F { 17 }, grad = false },
  },
  bad = { { { F { 3, 4 }, F { 5, 3 } }, nil, "second axis of weight" },
    { { F { 3, 4 }, F { 5, 4 }, F { 4 } }, nil, "first axis of weight" },
          { { F {}, F { 5, 4 } }, nil, "axis" }, { { F { 3, 4 }, F { 4 } }, nil, "axes" } },
}

local function activate(x, name)
  if name ~= "gelu_tanh" then return (x > 0 or x ~= x) and x or 0 end
  return 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ^ 3)))
end

local function activated(...)
  local out = {}
  for _, name in ipairs { "relu", "gelu_tanh" } do
    for _, case in ipairs { ... } do
      local copy = { attrs = { activation = name } }
      for k, v in pairs(case) do copy[k] = v end
      out[#out + 1] = copy
    end
  end
  return out
end

rows.linear_activation = {
  class = "sum",
  ref = function(a, o) return array.map(function(v) return activate(v, o.activation) end, linear(a)) end,
  cases = activated(
    { F { 3, 4 }, F { 5, 4 }, F { 5 } }, { F { 3, 4 }, F { 5, 4 } }, { F { 4 }, F { 5, 4 }, F { 5 } },
    { F { 3, 2, 4 }, F { 5, 4 }, F { 5 } }, { F { 0, 4 }, F { 5, 4 }, F { 5 } }, { F { 3, 0 }, F { 5, 0 }, F { 5 } },
    { F { 9, 33 }, F { 17, 33 }, F { 17 }, grad = false }, { F { 65, 130 }, F { 72, 130 }, F { 72 }, grad = false },
    -- NaN stays
    { V({ 2, 2 }, { 0 / 0, 1, 2, 3 }), V({ 2, 2 }, { 1, 2, 3, 4 }), grad = false, special = true }),
  bad = { { { F { 3, 4 }, F { 5, 3 } }, nil, "second axis of weight" },
    { { F { 3, 4 }, F { 5, 4 }, F { 4 } }, nil, "first axis of weight" },
    { { F { 3, 4 }, F { 5, 4 } }, { activation = "tanh" }, "relu" } },
}

-- What f(i, j) finds of row i of x and row j of y, for all of a batch.
local function of_rows(x, y, f)
  local batch = array.broadcast_shape(without(x.shape, 2), without(y.shape, 2))
  local shape, d = { unpack(batch) }, x.shape[#x.shape]
  shape[#shape + 1], shape[#shape + 2] = x.shape[#x.shape - 1], y.shape[#y.shape - 1]
  return array.build(shape, function(ix)
    local a, b = { unpack(ix) }, { unpack(ix) }
    b[#b - 1] = ix[#ix]
    local function element(t, at, k)
      at[#at] = k
      return array.shown(t, at)
    end
    return f(function(k) return element(x, a, k), element(y, b, k) end, d)
  end)
end

local function distance(p)
  return function(pair, d)
    local total = 0
    for k = 0, d - 1 do
      local u, v = pair(k)
      local t = math.abs(u - v)
      if p == math.huge then total = (t ~= t or t > total) and t or total
      else total = total + (p == 0 and (t ~= 0 and 1 or 0) or t ^ p) end
    end
    return (p == 0 or p == math.huge) and total or total ^ (1 / p)
  end
end

local function cdist_case(p, x, y, more)
  local case = { x, y, attrs = { p = p } }
  for key, value in pairs(more or {}) do case[key] = value end
  return case
end

rows.cdist = {
  class = "composed", ref = function(a, o) return of_rows(a[1], a[2], distance(o.p or 2)) end,
  cases = {
    { F { 3, 4 }, F { 5, 4 } }, { F { 2, 3, 4 }, F { 2, 5, 4 } }, { F { 2, 1, 3, 4 }, F { 3, 2, 4 } },
    { F { 3, 4 }, F { 2, 5, 4 } }, cdist_case(1, F { 3, 4 }, F { 5, 4 }), cdist_case(0, F { 3, 4 }, F { 5, 4 }),
    cdist_case(math.huge, F { 2, 3, 4 }, F { 5, 4 }), cdist_case(3, F { 3, 4 }, F { 5, 4 }),
    cdist_case(1.5, F { 2, 3, 2 }, F { 2, 3, 2 }), cdist_case(0.5, F { 3, 2 }, F { 2, 2 }, { second = false }),
    { F { 0, 4 }, F { 5, 4 } }, { F { 3, 4 }, F { 0, 4 } }, { F { 3, 0 }, F { 5, 0 } },
    cdist_case(math.huge, F { 3, 0 }, F { 5, 0 }), { F { 0, 3, 4 }, F { 5, 4 } },
    { F { 19, 33 }, F { 37, 33 }, grad = false }, cdist_case(1, F { 19, 33 }, F { 37, 33 }, { grad = false }),
    cdist_case(math.huge, F { 19, 3 }, F { 37, 3 }, { grad = false }),
    { F { 3, 4 }, F { 5, 4 }, attrs = { compute_mode = "use_mm_for_euclid_dist" } },
    { V({ 2, 2 }, { 0 / 0, 1, 2, 3 }), V({ 2, 2 }, { 1, 2, 3, 1 / 0 }), grad = false, special = true },
    cdist_case(math.huge, V({ 2, 2 }, { 0 / 0, 1, 2, 3 }), V({ 2, 2 }, { 1, 2, 3, 1 / 0 }),
               { grad = false, special = true }),
  },
  bad = { { { F { 3, 4 }, F { 5, 3 } }, nil, "do not fit" }, { { F { 4 }, F { 5, 4 } }, nil, "at least 2 axes" },
    { { F { 2, 3, 4 }, F { 3, 5, 4 } }, nil, "broadcast" }, { { F { 3, 4 }, F { 5, 4 } }, { p = -1 }, "p is %-1" },
    { { F { 3, 4 }, F { 5, 4 } }, { p = 0 / 0 }, "p is" },
    { { F { 3, 4 }, F { 5, 4 } }, { compute_mode = "mm" }, "compute_mode" } },
}

-- The distances are numbers of their own here.
local function cdist_grad(a, o)
  local dy, x, y, z, p = a[1], a[2], a[3], a[4], o.p or 2
  local shape = { unpack(dy.shape) }
  shape[#shape] = x.shape[#x.shape]
  return array.build(shape, function(ix)
    local total, at, other = 0, { unpack(ix) }, { unpack(ix) }
    for j = 0, y.shape[#y.shape - 1] - 1 do
      at[#at], other[#other - 1] = j, j
      local t, d = array.shown(x, ix) - array.shown(y, other), array.shown(z, at)
      local slope = t == 0 and 0 or (t > 0 and 1 or -1) * math.abs(t) ^ (p - 1) * d ^ (1 - p)
      if p == math.huge then slope = math.abs(t) == d and (t > 0 and 1 or -1) or 0 end
      total = total + array.shown(dy, at) * slope
    end
    return total
  end)
end

local function far(shape) return F(shape, 0.5, 2) end

rows.cdist_grad = {
  class = "composed", ref = cdist_grad,
  cases = {
    { F { 3, 5 }, F { 3, 4 }, F { 5, 4 }, far { 3, 5 } },
    { F { 2, 3, 5 }, F { 3, 4 }, F { 2, 5, 4 }, far { 2, 3, 5 }, attrs = { p = 1 } },
    { F { 2, 3, 5 }, F { 2, 3, 4 }, F { 5, 4 }, far { 2, 3, 5 }, attrs = { p = 3 } },
    { F { 3, 5 }, F { 3, 2 }, F { 5, 2 }, far { 3, 5 }, attrs = { p = math.huge } },
    { V({ 1, 2 }, { 2, 3 }), V({ 1, 2 }, { 0, 1 }), V({ 2, 2 }, { 2, 2, 1, 1 }), V({ 1, 2 }, { 2, 1 }),
      attrs = { p = math.huge }, grad = false },
    { F { 7, 37 }, F { 7, 3 }, F { 37, 3 }, far { 7, 37 }, grad = false },
    { F { 3, 0 }, F { 3, 4 }, F { 0, 4 }, far { 3, 0 } }, { F { 0, 5 }, F { 0, 4 }, F { 5, 4 }, far { 0, 5 } },
  },
  bad = { { { F { 3, 5 }, F { 3, 4 }, F { 4, 4 }, F { 3, 5 } }, nil, "does not fit" } },
}

return rows
