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

local rows = {
  neg = unary("exact", function(x) return -x end, F, { { nan, nan }, { inf, -inf }, { 0, -0 } }),
  abs = unary("exact", math.abs, D, { { nan, nan }, { -inf, inf }, { 0, 0 } }),
  sign = unary("exact", sign, D, { { inf, 1 }, { -inf, -1 }, { 0, 0 } }),
  square = unary("arithmetic", function(x) return x * x end, F, { { nan, nan }, { -inf, inf } }),
  reciprocal = unary("arithmetic", function(x) return 1 / x end, positive, { { inf, 0 }, { 0, inf }, { nan, nan } }),
  exp = unary("function_", e, F, { { inf, inf }, { -inf, 0 }, { nan, nan }, { 0, 1 }, { 1000, inf }, { -1000, 0 } }),
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
  erf = unary("function_", erf, F, { { inf, 1 }, { -inf, -1 }, { 0, 0 }, { nan, nan } }),
  erfc = unary("function_", erfc, F, { { inf, 0 }, { -inf, 2 }, { 0, 1 }, { nan, nan } }),
  sigmoid = unary("function_", function(x) return 1 / (1 + e(-x)) end, F,
                  { { inf, 1 }, { -inf, 0 }, { 0, 0.5 }, { nan, nan }, { -1000, 0 } }),
  relu = unary("exact", function(x) return math.max(x, 0) end, D, { { nan, nan }, { -inf, 0 }, { inf, inf } }),
  silu = unary("function_", function(x) return x / (1 + e(-x)) end, F, { { inf, inf }, { 0, 0 }, { nan, nan } }),
  softplus = unary("function_", function(x) return log1p(e(x)) end, F,
    { { inf, inf }, { -inf, 0 }, { 1000, 1000 }, { nan, nan } }),
  floor = unary("exact", math.floor, D, { { nan, nan }, { inf, inf }, { -0.5, -1 } }),
  ceil = unary("exact", math.ceil, D, { { nan, nan }, { inf, inf }, { 0.5, 1 } }),
  round = unary("exact", half_even, D, { { 0.5, 0 }, { 1.5, 2 }, { 2.5, 2 }, { -1.5, -2 }, { nan, nan },
    { inf, inf } }),
  trunc = unary("exact", function(x) return x < 0 and math.ceil(x) or math.floor(x) end, D,
    { { -1.5, -1 }, { nan, nan } }),
  isnan = unary("exact", truth(function(x) return x ~= x end), F, as({ nan, 1 }, { inf, 0 }, { 0, 0 })),
  isinf = unary("exact", truth(function(x) return x == inf or x == -inf end), F,
    as({ nan, 0 }, { inf, 1 }, { -inf, 1 })),
  isfinite = unary("exact", truth(function(x) return x == x and x ~= inf and x ~= -inf end), F,
    as({ nan, 0 }, { inf, 0 })),
  logical_not = unary("exact", truth(function(x) return x == 0 end), between(-1, 1, { -1, 1 }),
    as({ nan, 0 }, { 0, 1 })),
}

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
rows.erf.bad = { { { 1 }, nil, "tensor" } }

return rows
