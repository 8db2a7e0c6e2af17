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
