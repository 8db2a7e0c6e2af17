-- SPDX-License-Identifier: Apache-2.0
-- Elementwise operators of one operand.

local array = require "cases.array"
local S = require "cases.specs"
local F, D, V = S.F, S.D, S.V

local nan, inf = 0 / 0, 1 / 0
local e = math.exp

-- erf by its series, erfc by its continued fraction: far slower than a library and independent of it.
local function erf_series(x)
  local term, sum = x, x
  for n = 1, 200 do
    term = -term * x * x / n
    sum = sum + term / (2 * n + 1)
  end
  return 2 / math.sqrt(math.pi) * sum
end
local function erfc_fraction(x)
  local f = 0
  for k = 300, 1, -1 do f = (k / 2) / (x + f) end
  return e(-x * x) / math.sqrt(math.pi) / (x + f)
end
local function erf(x)
  if x < 0 then return -erf(-x) end
  return x < 1 and erf_series(x) or 1 - erfc_fraction(x)
end
local function erfc(x) return x > 0.75 and erfc_fraction(x) or 1 - erf(x) end

local function expm1(x)
  if math.abs(x) > 1e-2 then return e(x) - 1 end
  return x * (1 + x / 2 * (1 + x / 3 * (1 + x / 4 * (1 + x / 5 * (1 + x / 6 * (1 + x / 7))))))
end
local function log1p(x)
  local u = 1 + x
  return u == 1 and x or math.log(u) * x / (u - 1)
end
local function half_even(x)
  local f = math.floor(x)
  local d = x - f
  if d > 0.5 or (d == 0.5 and f % 2 == 1) then f = f + 1 end
  return f
end
local function sign(x) return x > 0 and 1 or x < 0 and -1 or 0 end
local function truth(f) return function(x) return f(x) and 1 or 0 end end

-- special: input values and results, where the formula of the reference does not give them by itself.
local function unary(class, f, spec, special, more)
  spec = spec or F
  local row = {
    class = class, ref = function(a, o) return array.map(function(x) return f(x, o) end, a[1]) end,
    cases = { { spec { 3, 5 } }, { spec { 2, 3, 4 } }, { spec {} }, { spec { 0 } }, { spec { 3, 0, 2 } },
      { spec { 37 } } },
    bad = { { { "text" }, nil, "tensor" }, { { F { 2 } }, { nonsense = 1 }, nil } },
  }
  if special then
    local from, to = {}, {}
    for i, pair in ipairs(special) do from[i], to[i] = pair[1], pair[2] end
    row.cases[#row.cases + 1] = { V({ #from }, from), grad = false, special = true,
                                  ref = function() return array.new({ #to }, to) end }
  end
  row.bad[2] = nil
  for k, v in pairs(more or {}) do row[k] = v end
  return row
end

local function between(low, high, whole) return function(shape) return F(shape, low, high, whole) end end
local positive = between(0.2, 4, { 1, 5 })
local bounded = between(-0.9, 0.9, { -1, 1 })
local as = function(...) return { ... } end

-- Distinct, and clear of the kinks at -3, 0, 3 and 6.
local function kinks(shape)
  return V(shape, { -4.2, -2.6, -0.4, 0.7, 1.9, 2.8, 3.3, 4.6, 5.7, 6.4, -3.4, -1.3, 0.2 })
end

local function sin_pi(x)
  local r = x - 2 * math.floor(x / 2 + 0.5)
  if math.abs(r) > 0.5 then r = sign(r) - r end
  return math.sin(math.pi * r)
end

-- By bisection of erf.
local function erfinv(y)
  if math.abs(y) >= 1 then return math.abs(y) == 1 and y * inf or nan end
  if y == 0 then return 0 end
  local low, high = -7, 7
  for _ = 1, 80 do
    local middle = (low + high) / 2
    if erf(middle) < y then low = middle else high = middle end
  end
  return (low + high) / 2
end

-- Stirling's series far out, the recurrence towards it.
local function lgamma(x)
  if x == 1 or x == 2 then return 0 end
  local product = 1
  while x < 15 do
    product = product * x
    x = x + 1
  end
  return -math.log(math.abs(product)) + (x - 0.5) * math.log(x) - x + math.log(2 * math.pi) / 2 +
    1 / (12 * x) - 1 / (360 * x ^ 3) +
    1 / (1260 * x ^ 5) - 1 / (1680 * x ^ 7) + 1 / (1188 * x ^ 9)
end

-- Its derivatives: the same series, differentiated n + 1 times term by term.
local function polygamma(n, x)
  local sum, factorial = 0, 1
  for k = 2, n do factorial = factorial * k end
  local function term(power, factor) -- the n-th derivative of factor * x^-power
    for k = 0, n - 1 do factor = factor * -(power + k) end
    return factor * x ^ -(power + n)
  end
  while x < 15 do
    sum = sum - (n == 0 and 1 / x or (n % 2 == 0 and 1 or -1) * factorial / x ^ (n + 1))
    x = x + 1
  end
  sum = sum + (n == 0 and math.log(x) or (n % 2 == 0 and -1 or 1) * factorial / n / x ^ n)
  for _, part in ipairs { { 1, -1 / 2 }, { 2, -1 / 12 }, { 4, 1 / 120 }, { 6, -1 / 252 }, { 8, 1 / 240 },
                          { 10, -1 / 132 }, { 12, 691 / 32760 }, { 14, -1 / 12 } } do
    sum = sum + term(part[1], part[2])
  end
  return sum
end

local rows = {
  neg = unary("exact", function(x) return -x end, F, { { nan, nan }, { inf, -inf }, { 0, -0 } }),
  abs = unary("exact", math.abs, D, { { nan, nan }, { -inf, inf }, { 0, 0 } }),
  sign = unary("exact", sign, D, { { inf, 1 }, { -inf, -1 }, { 0, 0 } }),
  square = unary("arithmetic", function(x) return x * x end, F, { { nan, nan }, { -inf, inf } }),
  reciprocal = unary("arithmetic", function(x) return 1 / x end, positive, { { inf, 0 }, { 0, inf }, { nan, nan } }),
  exp = unary("function_", e, F, { { inf, inf }, { -inf, 0 }, { nan, nan }, { 0, 1 }, { 1000, inf }, { -1000, 0 } }),
  exp2 = unary("function_", function(x) return 2 ^ x end, F, { { inf, inf }, { -inf, 0 }, { nan, nan }, { 0, 1 },
    { 10, 1024 }, { 2000, inf }, { -2000, 0 } }),
  expm1 = unary("function_", expm1, F, { { inf, inf }, { -inf, -1 }, { nan, nan }, { 0, 0 } }),
  log = unary("function_", function(x) return math.log(x) end, positive,
    { { inf, inf }, { 0, -inf }, { -1, nan }, { nan, nan }, { 1, 0 } }),
  log1p = unary("function_", log1p, between(-0.7, 3, { 0, 3 }), { { inf, inf }, { -1, -inf }, { nan, nan }, { 0, 0 } }),
  log2 = unary("function_", function(x) return math.log(x) / math.log(2) end, positive, { { 8, 3 }, { 0, -inf } }),
  log10 = unary("function_", math.log10, positive, { { 1000, 3 }, { 0, -inf } }),
  sqrt = unary("arithmetic", math.sqrt, positive, { { inf, inf }, { 0, 0 }, { -1, nan }, { nan, nan }, { 4, 2 } }),
  rsqrt = unary("function_", function(x) return 1 / math.sqrt(x) end, positive,
    { { inf, 0 }, { 0, inf }, { -1, nan } }),
  sin = unary("function_", math.sin, F, { { inf, nan }, { nan, nan }, { 0, 0 } }),
  cos = unary("function_", math.cos, F, { { inf, nan }, { nan, nan }, { 0, 1 } }),
  tan = unary("function_", math.tan, between(-1.2, 1.2, { -1, 1 }), { { inf, nan }, { nan, nan }, { 0, 0 } }),
  sinh = unary("function_", function(x) return (expm1(x) - expm1(-x)) / 2 end, F,
    { { inf, inf }, { 0, 0 }, { nan, nan } }),
  cosh = unary("function_", math.cosh, F, { { -inf, inf }, { 0, 1 }, { nan, nan } }),
  tanh = unary("function_", math.tanh, F, { { inf, 1 }, { -inf, -1 }, { 0, 0 }, { nan, nan }, { 100, 1 } }),
  asin = unary("function_", math.asin, bounded, { { 2, nan }, { 0, 0 }, { nan, nan } }),
  acos = unary("function_", math.acos, bounded, { { 2, nan }, { 1, 0 }, { nan, nan } }),
  atan = unary("function_", math.atan, F, { { 0, 0 }, { nan, nan } }),
  asinh = unary("function_", function(x)
    return sign(x) * log1p(math.abs(x) + x * x / (1 + math.sqrt(1 + x * x)))
  end, F,
    { { inf, inf }, { -inf, -inf }, { 0, 0 }, { nan, nan } }),
  acosh = unary("function_", function(x) return math.log(x + math.sqrt(x - 1) * math.sqrt(x + 1)) end,
    between(1.2, 4, { 2, 5 }), { { 1, 0 }, { inf, inf }, { 0.5, nan }, { nan, nan } }),
  atanh = unary("function_", function(x) return math.abs(x) == 1 and x * inf or log1p(2 * x / (1 - x)) / 2 end, bounded,
    { { 1, inf }, { -1, -inf }, { 2, nan }, { 0, 0 } }),
  sinc = unary("sum", function(x) return x == 0 and 1 or sin_pi(x) / (math.pi * x) end, between(-2.3, 2.3),
    { { 0, 1 }, { nan, nan }, { 0.5, 2 / math.pi } }),
  erfinv = unary("function_", erfinv, bounded, { { 1, inf }, { -1, -inf }, { 2, nan }, { nan, nan }, { 0, 0 } }),
  lgamma = unary("sum", lgamma, between(3.5, 6, { 3, 6 }), { { 0, inf }, { -1, inf }, { inf, inf }, { nan, nan } }),
  digamma = unary("sum", function(x) return polygamma(0, x) end, between(-2.7, 5, { 1, 6 }),
    { { 0, -inf }, { -1, nan }, { inf, inf }, { nan, nan } }),
  deg2rad = unary("arithmetic", function(x) return x * (math.pi / 180) end, between(-360, 360, { -90, 90 })),
  rad2deg = unary("arithmetic", function(x) return x * (180 / math.pi) end, F),
  erf = unary("function_", erf, F, { { inf, 1 }, { -inf, -1 }, { 0, 0 }, { nan, nan } }),
  erfc = unary("function_", erfc, F, { { inf, 0 }, { -inf, 2 }, { 0, 1 }, { nan, nan } }),
  sigmoid = unary("function_", function(x) return 1 / (1 + e(-x)) end, F,
                  { { inf, 1 }, { -inf, 0 }, { 0, 0.5 }, { nan, nan }, { -1000, 0 } }),
  relu = unary("exact", function(x) return math.max(x, 0) end, D, { { nan, nan }, { -inf, 0 }, { inf, inf } }),
  silu = unary("function_", function(x) return x / (1 + e(-x)) end, F, { { inf, inf }, { 0, 0 }, { nan, nan } }),
  logsigmoid = unary("function_", function(x) return -log1p(e(-x)) end, F,
    { { inf, 0 }, { -inf, -inf }, { -1000, -1000 }, { 1000, 0 }, { nan, nan } }),
  mish = unary("function_", function(x) return x * math.tanh(log1p(e(x))) end, between(-4, 4),
    { { inf, inf }, { 100, 100 }, { 0, 0 }, { nan, nan } }),
  selu = unary("function_", function(x)
    return 1.05070098735548049342 * (x > 0 and x or 1.67326324235437728481 * expm1(x))
  end,
    D, { { inf, inf }, { 0, 0 }, { nan, nan }, { -inf, -1.05070098735548049342 * 1.67326324235437728481 } }),
  hardswish = unary("function_", function(x) return x * math.min(math.max(x + 3, 0), 6) / 6 end, kinks,
    { { -inf, 0 }, { inf, inf }, { nan, nan }, { -3, 0 }, { 3, 3 } }),
  hardsigmoid = unary("arithmetic", function(x) return math.min(math.max(x + 3, 0), 6) / 6 end, kinks,
    { { -inf, 0 }, { inf, 1 }, { nan, nan } }),
  relu6 = unary("exact", function(x) return math.min(math.max(x, 0), 6) end, kinks,
    { { nan, nan }, { inf, 6 }, { -inf, 0 } }),
  softsign = unary("function_", function(x) return x / (1 + math.abs(x)) end, D, { { 0, 0 }, { nan, nan } }),
  tanhshrink = unary("sum", function(x) return x - math.tanh(x) end, F, { { 0, 0 }, { nan, nan }, { inf, inf } }),
  floor = unary("exact", math.floor, D, { { nan, nan }, { inf, inf }, { -0.5, -1 } }),
  ceil = unary("exact", math.ceil, D, { { nan, nan }, { inf, inf }, { 0.5, 1 } }),
  trunc = unary("exact", function(x) return x < 0 and math.ceil(x) or math.floor(x) end, D,
    { { -1.5, -1 }, { nan, nan } }),
  isnan = unary("exact", truth(function(x) return x ~= x end), F, as({ nan, 1 }, { inf, 0 }, { 0, 0 })),
  isinf = unary("exact", truth(function(x) return x == inf or x == -inf end), F,
    as({ nan, 0 }, { inf, 1 }, { -inf, 1 })),
  isposinf = unary("exact", truth(function(x) return x == inf end), F, as({ nan, 0 }, { inf, 1 }, { -inf, 0 })),
  isneginf = unary("exact", truth(function(x) return x == -inf end), F, as({ nan, 0 }, { inf, 0 }, { -inf, 1 })),
  signbit = unary("exact", truth(function(x) return x < 0 end), D,
    as({ -inf, 1 }, { inf, 0 }, { 0, 0 }, { -1 / inf, 1 })),
  frac = unary("exact", function(x) return x - (x < 0 and math.ceil(x) or math.floor(x)) end, D,
    { { -1.5, -0.5 }, { nan, nan }, { 3, 0 } }),
  bitwise_not = unary("exact", function(x) return -x - 1 end, S.W, nil,
    { bools = false }), -- of booleans it is logical_not
  isfinite = unary("exact", truth(function(x) return x == x and x ~= inf and x ~= -inf end), F,
    as({ nan, 0 }, { inf, 0 })),
  logical_not = unary("exact", truth(function(x) return x == 0 end), between(-1, 1, { -1, 1 }),
    as({ nan, 0 }, { 0, 1 })),
}

-- Clear of -1, -1/2, 1/2 and 1.
local function clear(shape) return V(shape, { -1.75, -0.75, -0.25, 0.375, 0.625, 2.5, -3, 1.25, 0.125 }) end

-- With attributes.
local function with(name, class, f, spec, attribute_sets, special, more)
  local row = unary(class, f, spec, special, more)
  for i, case in ipairs(row.cases) do case.attrs = attribute_sets[(i - 1) % #attribute_sets + 1] end
  if special then row.cases[#row.cases].attrs = attribute_sets[1] end
  rows[name] = row
end

with("clamp", "exact", function(x, o) return math.min(math.max(x, o.min or -inf), o.max or inf) end, D,
     { { min = -1, max = 1 }, { min = 0 }, { max = 1 } }, { { nan, nan }, { inf, 1 }, { -inf, -1 } })
with("leaky_relu", "arithmetic", function(x, o) return x > 0 and x or x * (o.negative_slope or 0.01) end, D,
     { { negative_slope = 0.25 }, {} }, { { nan, nan }, { inf, inf }, { 0, 0 } })
with("elu", "function_", function(x, o) return x > 0 and x or (o.alpha or 1) * expm1(x) end, D, { { alpha = 1.5 }, {} },
     { { nan, nan }, { inf, inf }, { -inf, -1.5 }, { 1000, 1000 } })
with("gelu", "function_", function(x, o)
  if o.approximate == "tanh" then
    return 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ^ 3)))
  end
  return x * erfc(-x / math.sqrt(2)) / 2
end, F, { { approximate = "none" }, { approximate = "tanh" }, {} }, { { inf, inf }, { 0, 0 }, { nan, nan } })
rows.gelu.bad = { { { F { 2 } }, { approximate = "tnah" }, "tanh" } }
with("softplus", "function_", function(x, o)
  local z = x * (o.beta or 1)
  return z > (o.threshold or 20) and x or log1p(e(z)) / (o.beta or 1)
end, F, { {}, { beta = 2 }, { beta = 0.5, threshold = 0.3 } },
     { { inf, inf }, { -inf, 0 }, { 1000, 1000 }, { nan, nan } })
with("celu", "function_", function(x, o) return x > 0 and x or (o.alpha or 1) * expm1(x / (o.alpha or 1)) end, D,
     { { alpha = 1.5 }, {} }, { { nan, nan }, { inf, inf }, { -inf, -1.5 } })
with("hardtanh", "exact", function(x, o) return math.min(math.max(x, o.min_val or -1), o.max_val or 1) end, D,
     { { min_val = -2, max_val = 3 }, {} }, { { nan, nan }, { inf, 3 }, { -inf, -2 } })
with("hardshrink", "exact", function(x, o) return math.abs(x) <= (o.lambd or 0.5) and 0 or x end, clear,
     { {}, { lambd = 1 } }, { { nan, nan }, { inf, inf }, { -0.5, 0 } })
with("softshrink", "exact", function(x, o)
  local l = o.lambd or 0.5
  return x > l and x - l or x < -l and x + l or 0
end, clear, { {}, { lambd = 1 } }, { { nan, nan }, { inf, inf }, { -0.5, 0 } })
with("threshold", "exact", function(x, o) return x > o.threshold and x or o.value end, D,
     { { threshold = 0, value = 7 }, { threshold = -1, value = -4 } }, { { nan, nan }, { inf, inf }, { 0, 7 } })
with("logit", "sum", function(x, o)
  local p = (o.eps or -1) >= 0 and math.min(math.max(x, o.eps), 1 - o.eps) or x
  return math.log(p) - math.log(1 - p)
end, between(0.06, 0.94, { 0, 1 }), { {}, { eps = 0.125 } }, { { 0, -inf }, { 1, inf }, { nan, nan }, { 2, nan } })
with("polygamma", "sum", function(x, o) return polygamma(o.n, x) end, between(0.7, 4, { 1, 5 }),
     { { n = 1 }, { n = 2 }, { n = 0 }, { n = 3 } }, { { 0, inf }, { inf, 0 }, { nan, nan } })
for _, case in ipairs { { V({ 4 }, { -2.7, -1.4, -0.3, 0.2 }), attrs = { n = 1 }, integers = false },
                        { V({ 3 }, { -2.7, -1.4, -0.3 }), attrs = { n = 2 }, integers = false } } do
  table.insert(rows.polygamma.cases, case)
end
table.insert(rows.lgamma.cases, { V({ 5 }, { -3.3, -2.4, -0.4, 0.3, 30 }), integers = false })
rows.polygamma.bad = { { { F { 2 } }, { n = -1 }, "at least 0" }, { { F { 2 } }, nil, "missing" } }
with("round", "exact", function(x, o)
  local scale = 10 ^ math.abs(o.decimals or 0)
  if (o.decimals or 0) < 0 then return half_even(x / scale) * scale end
  return half_even(x * scale) / scale
end, D, { {}, { decimals = 1 }, { decimals = -1 } }, { { 0.5, 0 }, { 1.5, 2 }, { 2.5, 2 }, { -1.5, -2 }, { nan, nan },
  { inf, inf } })
for _, case in ipairs(rows.round.cases) do -- integers have no decimals; 16 bits round twice
  if case.attrs.decimals then case.integers, case.grad = false, false end
end
rows.round.bad = { { { S.I({ 2 }, 0, 3) }, { decimals = 2 }, "has none" } }
with("nan_to_num", "exact", function(x) return x end, F, { { nan = 2, posinf = 5, neginf = -6 }, {} },
     { { nan, 2 }, { inf, 5 }, { -inf, -6 }, { 1, 1 } })
rows.nan_to_num.bad = { { { 1 }, nil, "tensor" } }
rows.erf.bad = { { { 1 }, nil, "tensor" } }

rows.prelu = {
  class = "arithmetic",
  ref = function(a)
    local x, w = a[1], a[2].data
    return array.build(x.shape, function(ix)
      local v = array.shown(x, ix)
      return v > 0 and v or v * (#w > 1 and w[ix[2] + 1] or w[1])
    end)
  end,
  cases = { { D { 3, 4 }, F { 4 } }, { D { 3, 4 }, F { 1 } }, { D { 2, 3, 4 }, F { 3 } }, { D { 5 }, F { 1 } },
    { D {}, F { 1 } }, { D { 2, 0, 3 }, F { 1 } }, { D { 2, 3 }, F {} } },
  bad = { { { F { 2, 3 }, F { 2 } }, nil, "slopes" }, { { F { 2, 3 }, F { 3, 1 } }, nil, "axes" } },
}

rows.glu = {
  class = "function_",
  ref = function(a, o)
    local x, axis = a[1], o.axis or -1
    axis = axis > 0 and axis or #x.shape + 1 + axis
    local shape = { unpack(x.shape) }
    shape[axis] = shape[axis] / 2
    return array.build(shape, function(ix)
      local value = array.shown(x, ix)
      ix[axis] = ix[axis] + shape[axis]
      return value / (1 + e(-array.shown(x, ix)))
    end)
  end,
  cases = { { F { 3, 4 } }, { F { 4, 3 }, attrs = { axis = 1 } }, { F { 2, 6, 3 }, attrs = { axis = 2 } }, { F { 8 } },
    { F { 0, 4 } }, { F { 3, 0 } }, { F { 2, 1, 2, 4, 1, 1, 3, 1 }, attrs = { axis = 4 } },
    { F { 4, 1, 2, 1, 1, 1, 1, 3 }, attrs = { axis = 1 } }, { F { 1, 1, 2, 1, 1, 1, 3, 4 } } },
  bad = { { { F { 2, 3 } }, nil, "even size" }, { { F {} }, nil, "at least 1 axis" },
    { { F { 2, 4 } }, { axis = 3 }, "out of range" } },
}

rows.as_probability = {
  class = "exact",
  ref = function(a) return array.map(function(x) return x end, a[1]) end,
  cases = { { F({ 3, 4 }, 0.1, 0.9) }, { F({}, 0.1, 0.9) }, { F({ 0, 3 }, 0, 1) }, { F({ 3000 }, 0.1, 0.9) },
    { S.V({ 4 }, { 0, 1, 0.5, 0.25 }), grad = false } },
  bad = { { { S.V({ 2, 2 }, { 0.5, 1, 1.5, 2 }) }, nil, "p is 1%.5 at position %[2, 1%]; expected 0 to 1" },
    { { S.V({ 2 }, { 0 / 0, 1 }) }, nil, "at position %[1%]" }, { { S.V({ 1 }, { -1e-3 }) }, nil, "expected 0 to 1" },
    { { S.I({ 2 }, 0, 1) }, nil, "int64" } },
}

return rows
