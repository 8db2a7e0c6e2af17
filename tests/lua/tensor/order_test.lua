-- SPDX-License-Identifier: Apache-2.0
-- Functions over the order of elements; the operators' numbers are in tests/cases/sort.lua.

local pg = require "perigee"

local function I(list) return pg.tensor(list, { dtype = "int64" }) end
local function F(list) return pg.tensor(list) end
local nan = 0 / 0

test("sort, argsort, topk as scripts call them", function(t)
  local x = F { { 3, 1, 2 }, { 9, 7, 8 } }
  local values, at = x:sort()
  t.equal(values, { { 1, 2, 3 }, { 7, 8, 9 } })
  t.equal(at, { { 1, 2, 0 }, { 1, 2, 0 } })
  t.equal(x:sort(1, true), { { 9, 7, 8 }, { 3, 1, 2 } })
  t.equal(pg.argsort(x, { axis = -1, descending = true }), { { 0, 2, 1 }, { 0, 2, 1 } })
  t.equal(x:topk(1, { axis = 2, largest = false }), { { 1 }, { 7 } })
  t.equal(x:msort(), { { 3, 1, 2 }, { 9, 7, 8 } })
  t.equal(x[x:argsort(1)[{ {}, 1 }]], x:totable(), "positions index")
end)

test("long lines, one and many, are in order on any number of threads", function(t)
  for _, shape in ipairs { { 200000 }, { 3, 70000 }, { 700, 300 }, { 5000, 20 } } do
    for _, dtype in ipairs { "float32", "float64", "int64", "int16", "bfloat16" } do
      pg.manual_seed(1)
      local x = pg.randint(-5000, 5000, shape):to(dtype)
      local values, at = x:sort()
      t.equal(values, x:gather(at, -1):totable())
      local before, behind = values[{ "...", { 1, -2 } }], values[{ "...", { 2, -1 } }]
      t.ok(before:le(behind):all():item(), "values rise")
      local stable = before:lt(behind):logical_or(at[{ "...", { 1, -2 } }]:lt(at[{ "...", { 2, -1 } }]))
      t.ok(stable:all():item(), "equal elements keep their order")
      t.equal(x:topk(7), x:sort { descending = true }[{ "...", { 1, 7 } }]:totable())
    end
  end
end)

test("median, kthvalue, quantile", function(t)
  local x = F { { 4, 1, 3, 2 }, { 5, nan, 6, 7 } }
  t.ok(x:median():item() ~= x:median():item())
  t.equal(x:nanmedian(), 4)
  local values, at = x:nanmedian(2)
  t.equal(values, { 2, 6 })
  t.equal(at, { 3, 2 })
  t.equal(x:kthvalue(2, 2), { 2, 6 })
  local y = F { { 0, 1 }, { 2, 3 }, { 4, 9 } }
  t.equal(y:quantile(0.5, 1), { 2, 3 })
  t.equal(y:quantile { 0.25, axis = 1, keepdim = true }, { { 1, 2 } })
  t.equal(y:quantile({ 0, 0.75, 1 }, 1), { { 0, 1 }, { 3, 6 }, { 4, 9 } })
  t.equal(y:quantile(F { 0.5, 1 }), { 2.5, 9 })
  local want = { linear = 2.4, lower = 2, higher = 3, midpoint = 2.5, nearest = 2 }
  for kind, v in pairs(want) do
    local got = y:quantile(0.48, { interpolation = kind }):item()
    t.ok(math.abs(got - v) < 1e-6, kind .. ": " .. got)
  end
  t.ok(x:quantile(0.5, 2):isnan():totable()[2])
  t.ok(pg.gradcheck(function(z) return z:quantile({ 0.3, 0.9 }, 1) end, { pg.randn({ 4, 2 }, { dtype = "float64" }) }))
  t.raises(function() return y:quantile(1.5) end, "0 to 1")
  t.raises(function() return y:quantile(0.5, { interpolation = "cubic" }) end, "interpolation must be one of linear")
  t.raises(function() return I { 1 }:quantile(0.5) end, "floating")
end)

test("unique", function(t)
  local x = I { { 3, 1, 3 }, { 2, 1, 3 } }
  local values, inverse, counts = x:unique { return_inverse = true, return_counts = true }
  t.equal(values, { 1, 2, 3 })
  t.equal(inverse, { { 2, 0, 2 }, { 1, 0, 2 } })
  t.equal(counts, { 2, 1, 3 })
  local _, only_counts = pg.unique(x, { return_counts = true })
  t.equal(only_counts, { 2, 1, 3 })
  t.equal(F { { 1, 2 }, { 0, 1 }, { 1, 2 } }:unique { axis = 1 }, { { 0, 1 }, { 1, 2 } })
  t.equal(F { { 1, 2, 1 }, { 0, 1, 0 } }:unique { axis = 2 }, { { 1, 2 }, { 0, 1 } })
  t.equal(pg.zeros { 0 }:unique(), {})
  t.equal(I { 1, 1, 2, 1 }:unique_consecutive(), { 1, 2, 1 })
  for _, span in ipairs { 50, 10 ^ 12 } do -- counted, sorted
    pg.manual_seed(2)
    local many = pg.randint(0, span, { 5000 })
    local kinds, kind, number = many:unique { return_inverse = true, return_counts = true }
    t.equal(kinds[kind], many:totable())
    t.equal(kinds, many:sort():unique_consecutive():totable())
    t.equal(kind:bincount(), number:totable())
  end
end)

test("searchsorted, bucketize, isin", function(t)
  local s = F { 1, 3, 3, 5 }
  t.equal(s:searchsorted(3), 1)
  t.equal(s:searchsorted(3, { right = true }), 3)
  t.equal(pg.searchsorted(s, F { { 0, 9 } }, { side = "right" }), { { 0, 4 } })
  t.equal(I { 1, 3 }:searchsorted(2.5), 1, "a fraction among whole numbers")
  t.equal(F { 0, 1, 6 }:bucketize(F { 1, 5 }), { 0, 0, 2 })
  t.equal(I { 1, 2, 5 }:isin(I { 5, 2, 2 }), { false, true, true })
  t.equal(I { 1, 2, 5 }:isin(2, { invert = true }), { true, false, true })
  t.equal(F { 1 }:isin(pg.zeros { 0 }), { false })
  t.raises(function() return s:searchsorted(1, { side = "middle" }) end, "left")
end)

test("bincount and histc", function(t)
  t.equal(I { 0, 3, 3, 1 }:bincount(), { 1, 1, 0, 2 })
  t.equal(I { 0, 3 }:bincount { weights = F { 0.5, 2 }, minlength = 5 }, { 0.5, 0, 0, 2, 0 })
  t.equal(I {}:bincount { minlength = 2 }, { 0, 0 })
  t.raises(function() return I { 1, -1 }:bincount():totable() end, "%-1 at position %[2%]")
  t.raises(function() return F { 1 }:bincount() end, "integers")
  local x = F { 1, 2, 1, 4, nan }
  t.equal(x:histc(4, 0, 3), { 0, 2, 1, 0 })
  t.equal(F { 1, 2, 1, 4 }:histc { bins = 3 }, { 2, 1, 1 })
  t.raises(function() return x:histc(4, 3, 0) end, "above")
end)
