-- SPDX-License-Identifier: Apache-2.0
-- Elementwise operators of two operands, and of three.

local array = require "cases.array"
local S = require "cases.specs"
local F, D, B, V = S.F, S.D, S.B, S.V

local nan, inf = 0 / 0, 1 / 0
local special = { nan, inf, -inf, 0, -0.5, 1, 2.5 }

-- Shapes that every binary operator is tried with; x and y make specs of a shape.
local function cases(x, y, number)
  return {
    { x { 3, 4 }, y { 3, 4 } },
    { x { 3, 4 }, y { 4 } },                     -- broadcasting
    { x { 3, 1, 2 }, y { 5, 1 } },               -- both ways
    { x { 3, 4 }, number },                      -- a Lua number
    { number, y { 3, 4 } },
    { x {}, y {} },                              -- 0-dim
    { x {}, y { 3 } },
    { x { 3, 0 }, y { 1 } },                     -- empty
    { x { 33 }, y { 33 } },                      -- longer than a vector register
  }
end

local function add_special(row, values)
  row.cases[#row.cases + 1] = { V({ 7, 1 }, values or special), V({ 7 }, values or special), grad = false,
                                special = true }
  return row
end

local bad = {
  { { F { 2, 3 }, F { 4 } }, nil, "do not broadcast" },
  { { 1, 2 }, nil, "number" },
}

local function binary(class, f, x, y, number, more)
  local row = { class = class, cases = cases(x, y, number), bad = bad,
                ref = function(a) return array.map(f, a[1], a[2]) end }
  for k, v in pairs(more or {}) do row[k] = v end
  return row
end

local function truth(f) return function(x, y) return f(x, y) and 1 or 0 end end
local function far(shape) return F(shape, 0.5, 3, { 1, 3 }) end    -- positive
local function near(shape) return F(shape, -2, 2, { -3, 3 }) end
local function pick(wanted)
  return function(x, y)
    if x ~= x or y ~= y then return nan end
    return wanted(x, y)
  end
end

local function steps(shape) return S.W(shape, 0, 3) end
local function one_of(wanted)
  return function(x, y)
    if x ~= x then return y end
    return y ~= y and x or wanted(x, y)
  end
end
local function bits(name)
  return function(x, y) return require("bit")[name](x, y) end
end

local rows = {
  add = add_special(binary("arithmetic", function(x, y) return x + y end, near, near, 1.5)),
  sub = add_special(binary("arithmetic", function(x, y) return x - y end, near, near, 1.5)),
  mul = add_special(binary("arithmetic", function(x, y) return x * y end, near, near, 1.5)),
  div = add_special(binary("arithmetic", function(x, y) return x / y end, near, far, 1.5)),
  pow = binary("function_", function(x, y) return x ^ y end, far, near, 2),
  maximum = add_special(binary("exact", pick(math.max), D, D, 0.1)),
  minimum = add_special(binary("exact", pick(math.min), D, D, 0.1)),
  remainder = binary("function_", function(x, y) return x - y * math.floor(x / y) end, D, far, 2.5),
  floor_div = binary("exact", function(x, y) return math.floor(x / y) end, D, far, 2.6),
  fmod = binary("function_", math.fmod, D, far, 2.5),
  fmax = add_special(binary("exact", one_of(math.max), D, near, 0.1)),
  fmin = add_special(binary("exact", one_of(math.min), D, near, 0.1)),
  hypot = binary("function_", function(x, y) return math.sqrt(x * x + y * y) end, far, near, 1.5),
  copysign = binary("exact", function(x, y) return y < 0 and -math.abs(x) or math.abs(x) end, D, D, -1.5),
  logaddexp = add_special(binary("function_", function(x, y)
    if x == y and math.abs(x) == inf then return x end
    return math.max(x, y) + math.log(1 + math.exp(-math.abs(x - y)))
  end, far, far, 1.5), { 0, inf, -inf, 1, -0.5 }),
  logaddexp2 = binary("function_", function(x, y)
    return math.max(x, y) + math.log(1 + 2 ^ -math.abs(x - y)) / math.log(2)
  end, far, far, 1.5),
  xlogy = binary("function_", function(x, y) return x == 0 and 0 or x * math.log(y) end, near, far, 1.5),
  bitwise_and = binary("exact", bits("band"), S.W, S.W, 3),
  bitwise_or = binary("exact", bits("bor"), S.W, S.W, 3),
  bitwise_xor = binary("exact", bits("bxor"), S.W, S.W, 3),
  bitwise_left_shift = binary("exact", function(x, y) return x * 2 ^ y end, S.W, steps, 2),
  bitwise_right_shift = binary("exact", function(x, y) return math.floor(x / 2 ^ y) end, S.W, steps, 1),
  atan2 = binary("function_", math.atan2, far, near, 1.5),
  eq = add_special(binary("exact", truth(function(x, y) return x == y end), near, near, 1)),
  ne = add_special(binary("exact", truth(function(x, y) return x ~= y end), near, near, 1)),
  lt = add_special(binary("exact", truth(function(x, y) return x < y end), near, near, 1)),
  le = add_special(binary("exact", truth(function(x, y) return x <= y end), near, near, 1)),
  gt = add_special(binary("exact", truth(function(x, y) return x > y end), near, near, 1)),
  ge = add_special(binary("exact", truth(function(x, y) return x >= y end), near, near, 1)),
  logical_and = binary("exact", truth(function(x, y) return x ~= 0 and y ~= 0 end), near, near, 1),
  logical_or = binary("exact", truth(function(x, y) return x ~= 0 or y ~= 0 end), near, near, 1),
  logical_xor = binary("exact", truth(function(x, y) return (x ~= 0) ~= (y ~= 0) end), near, near, 1),
}

-- Negative integer exponents are an error; whole bases of either sign are not.
rows.pow.cases[5] = { 2, near { 3, 4 }, integers = false }
for i, case in ipairs(rows.pow.cases) do
  if type(case[2]) == "table" and i ~= 5 then case[2].whole = { 0, 3 } end
end
for _, case in ipairs { { near { 3, 4 }, 2 }, { near { 3, 4 }, 3 }, { near { 3, 4 }, 0 }, { near { 3, 4 }, 1 } } do
  rows.pow.cases[#rows.pow.cases + 1] = case
end
rows.pow.cases[#rows.pow.cases + 1] =
  { V({ 4 }, { 0, 0, 1, 2 }), V({ 4 }, { 0, 2, 3, 0 }), grad = { true, false } } -- slopes where x or y is 0

for _, name in ipairs { "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift" } do
  rows[name].bad = { { { S.I({ 2, 3 }, 0, 3), S.I({ 4 }, 0, 3) }, nil, "do not broadcast" },
    { { F { 2 }, F { 2 } }, nil, "integer" } }
end
table.insert(rows.xlogy.cases, { V({ 4 }, { 0, 0, 2, 0 }), V({ 4 }, { 0, 2, 3, 5 }), grad = { true, false },
  second = false })
table.insert(rows.hypot.cases, { V({ 2 }, { 3e200, 1e-200 }), V({ 2 }, { 4e200, 0 }), grad = false, special = true,
  ref = function() return array.new({ 2 }, { 5e200, 1e-200 }) end })

-- ---- three operands ----

local function three(class, f, x, y, z, more)
  local row = {
    class = class,
    ref = function(a, o) return array.map(function(p, q, r) return f(p, q, r, o) end, a[1], a[2], a[3]) end,
    cases = {
      { x { 3, 4 }, y { 3, 4 }, z { 3, 4 } }, { x { 3, 1 }, y { 4 }, z { 2, 1, 1 } }, { x {}, y {}, z {} },
      { x { 3, 0 }, y { 3, 1 }, z {} }, { x { 33 }, y { 33 }, z { 33 } }, { x { 3, 4 }, y { 3, 4 }, z { 4 } },
    },
    bad = { { { F { 2, 3 }, F { 4 }, F { 3 } }, nil, "do not broadcast" } },
  }
  for k, v in pairs(more or {}) do row[k] = v end
  return row
end
rows.lerp = three("sum", function(x, y, w) return x + w * (y - x) end, near, near, function(s) return F(s, -1, 2) end)
table.insert(rows.lerp.cases, { near { 3, 4 }, near { 4 }, 0.25 })
table.insert(rows.lerp.bad, { { F { 2 }, S.I({ 2 }, 0, 3), S.B { 2 } }, nil, nil })
rows.lerp.bad[2] = nil
rows.addcmul = three("sum", function(x, a, b, o) return x + (o.value or 1) * a * b end, near, near, near)
rows.addcdiv = three("sum", function(x, a, b, o) return x + (o.value or 1) * a / b end, near, near, far)
for _, name in ipairs { "addcmul", "addcdiv" } do
  for i = 1, 3 do rows[name].cases[i].attrs = { value = i } end
end

-- ---- slopes of activations: of x, or of the result y, and of what flows back ----

local function sigmoid(x) return 1 / (1 + math.exp(-x)) end
local function tanh_softplus(x) return math.tanh(math.log(1 + math.exp(x))) end
local function bell(x) return math.exp(-x * x / 2) / math.sqrt(2 * math.pi) end
local unary_rows = require "cases.unary"
local function normal(x) -- the distribution function, by gelu's reference
  return x == 0 and 0.5 or unary_rows.gelu.ref({ array.new({}, { x }) }, {}).data[1] / x
end
local function slope(f, spec, attribute_sets)
  local row = {
    class = "function_", ref = function(a, o) return array.map(function(x, d) return d * f(x, o) end, a[1], a[2]) end,
    cases = { { spec { 3, 4 }, near { 3, 4 } }, { spec { 3, 4 }, near { 4 } }, { spec { 3, 1 }, near { 2, 1, 4 } },
      { spec {}, near {} }, { spec { 3, 0 }, near { 1 } }, { spec { 37 }, near { 37 } } },
    bad = { { { F { 2, 3 }, F { 4 } }, nil, "do not broadcast" } },
  }
  for i, case in ipairs(row.cases) do case.attrs = attribute_sets and attribute_sets[i % #attribute_sets + 1] end
  return row
end
local function kinks(shape) return V(shape, { -4.2, -2.6, -0.4, 0.7, 1.9, 2.8, 3.3, -3.4, 6.2, -1.3, 0.2 }) end

rows.relu_grad = slope(function(y) return y > 0 and 1 or 0 end, D)
rows.hardtanh_grad = slope(function(x, o) return x > (o.min_val or -1) and x < (o.max_val or 1) and 1 or 0 end, D,
                           { {}, { min_val = -2, max_val = 0.5 } })
rows.leaky_relu_grad = slope(function(x, o) return x > 0 and 1 or o.negative_slope or 0.01 end, D,
                             { {}, { negative_slope = 0.25 } })
rows.elu_grad = slope(function(x, o)
  local k = o.input_scale or 1
  return (o.scale or 1) * (x > 0 and 1 or (o.alpha or 1) * k * math.exp(k * x))
end, D, { {}, { alpha = 1.5, scale = 2, input_scale = 0.5 } })
rows.sigmoid_grad = slope(function(y) return y * (1 - y) end, function(s) return F(s, 0.05, 0.95) end)
rows.tanh_grad = slope(function(y) return 1 - y * y end, function(s) return F(s, -0.9, 0.9) end)
rows.silu_grad = slope(function(x) return sigmoid(x) * (1 + x * (1 - sigmoid(x))) end, F)
rows.gelu_grad = slope(function(x, o)
  if o.approximate ~= "tanh" then return normal(x) + x * bell(x) end
  local k, c = math.sqrt(2 / math.pi), 0.044715
  local t = math.tanh(k * (x + c * x ^ 3))
  return (1 + t) / 2 + x / 2 * (1 - t * t) * k * (1 + 3 * c * x * x)
end, F, { {}, { approximate = "tanh" } })
rows.softplus_grad = slope(function(x, o)
  local z = x * (o.beta or 1)
  return z > (o.threshold or 20) and 1 or sigmoid(z)
end, kinks, { {}, { beta = 2, threshold = 3 } })
rows.mish_grad = slope(function(x)
  local t = tanh_softplus(x)
  return t + x * sigmoid(x) * (1 - t * t)
end, F)
rows.hardswish_grad = slope(function(x) return x < -3 and 0 or x > 3 and 1 or x / 3 + 0.5 end, kinks)
for _, name in ipairs { "silu_grad", "gelu_grad", "mish_grad", "hardswish_grad" } do
  rows[name].class = "sum" -- they cross 0
end

rows.where = {
  class = "exact",
  ref = function(a) return array.map(function(c, x, y) return c ~= 0 and x or y end, a[1], a[2], a[3]) end,
  cases = {
    { B { 3, 4 }, F { 3, 4 }, F { 3, 4 } },
    { B { 4 }, F { 3, 1 }, F {} },
    { B { 3, 4 }, F { 3, 4 }, 1 },
    { B { 3, 4 }, 1, F { 4 } },
    { B {}, F {}, F {} },
    { B { 3, 0 }, F { 3, 0 }, F { 1 } },
    { B { 7 }, V({ 7 }, special), V({ 7 }, special), grad = false, special = true },
  },
  bad = { { { B { 2 }, F { 3 }, F { 3 } }, nil, "do not broadcast" }, { { F { 2 }, F { 2 }, F { 2 } }, nil, "bool" },
          { { B { 2 }, 1, 2 }, nil, "number" } },
}

rows.masked_fill = {
  class = "exact",
  ref = function(a, o) return array.map(function(x, m) return m ~= 0 and o.value or x end, a[1], a[2]) end,
  cases = {
    { F { 3, 4 }, B { 3, 4 }, attrs = { value = 2 } },
    { F { 3, 4 }, B { 4 }, attrs = { value = 1 } },
    { F {}, B {}, attrs = { value = 1 } },
    { F { 3, 0 }, B { 1 }, attrs = { value = 1 } },
  },
  bad = { { { F { 3 }, B { 2, 3 } }, { value = 1 }, "does not broadcast" },
    { { F { 3 }, F { 3 } }, { value = 1 }, "bool" } },
}

return rows
