-- SPDX-License-Identifier: Apache-2.0
-- Writing at index tensors along an axis, as scripts say it; numbers are in tests/cases/scatter.lua.

local pg = require "perigee"

local function I(list) return pg.tensor(list, { dtype = "int64" }) end
local function F(list) return pg.tensor(list) end

test("scatter: orders of arguments, numbers, larger sources, in place", function(t)
  local x, index, src = pg.zeros { 3, 2 }, I { { 2, 0 } }, F { { 1, 2 }, { 3, 4 } }
  local want = { { 0, 2 }, { 0, 0 }, { 1, 0 } }
  t.equal(x:scatter(index, src, 1), want)
  t.equal(x:scatter(1, index, src), want)
  t.equal(x:scatter { 1, index, src }, want)
  t.equal(pg.scatter(x, index, src, { axis = 1 }), want)
  t.equal(x:scatter(index, 7, 1), { { 0, 7 }, { 0, 0 }, { 7, 0 } })
  t.equal(x, { { 0, 0 }, { 0, 0 }, { 0, 0 } })
  t.ok(rawequal(x:scatter_(1, index, src), x))
  t.equal(x, want)
  x:t():scatter_add_(2, index:t(), 1)
  t.equal(x, { { 0, 3 }, { 0, 0 }, { 2, 0 } })
  x:scatter_reduce_(1, index, 5, { reduce = "amax" })
  t.equal(x, { { 0, 5 }, { 0, 0 }, { 5, 0 } })
  t.equal(x:scatter_reduce(1, index, 1, { reduce = "mean", include_self = false }), { { 0, 1 }, { 0, 0 }, { 1, 0 } })
  t.equal(I { 5, -6 }:scatter_reduce(1, I { 0, 1 }, I { 2, -1 }, { reduce = "mean" }), { 3, -4 }, "rounded down")
end)

test("scatter: bool and small dtypes", function(t)
  t.equal(pg.tensor { true, false }:scatter_add(1, I { 1, 1 }, pg.tensor { true, true }), { true, true })
  local x = pg.zeros { 1, dtype = "bfloat16" }
  local ones = pg.ones { 300, dtype = "bfloat16" }
  t.equal(x:scatter_add(1, pg.zeros { 300, dtype = "int64" }, ones):item(), 300, "adds up in float32")
  t.equal(x:index_add(1, pg.zeros { 300, dtype = "int64" }, ones):item(), 300)
end)

test("index_add, index_copy, index_fill", function(t)
  local x = pg.ones { 3, 2 }
  t.equal(x:index_add(1, I { 0, 2, 0 }, F { { 1, 2 }, { 3, 4 }, { 5, 6 } }), { { 7, 9 }, { 1, 1 }, { 4, 5 } })
  t.equal(x:index_add(I { 1 }, pg.ones { 3, 1 }, 2, { alpha = 3 }), { { 1, 4 }, { 1, 4 }, { 1, 4 } })
  t.equal(x:index_copy(1, I { 2, 0 }, F { { 1, 2 }, { 3, 4 } }), { { 3, 4 }, { 1, 1 }, { 1, 2 } })
  t.equal(x:index_fill(2, I { 1 }, 8), { { 1, 8 }, { 1, 8 }, { 1, 8 } })
  t.ok(rawequal(x:index_add_(2, I(1), pg.ones { 3, 1 }), x))
  t.equal(x, { { 1, 2 }, { 1, 2 }, { 1, 2 } })
  t.equal(pg.tensor(2):index_add(1, I { 0 }, F { 3 }), 5)
  t.raises(function() return x:index_add(1, I { 0 }, pg.ones { 2, 2 }) end, "index_add: source is {2, 2}; expected")
  t.raises(function() return x:index_add(1, I { 3 }, pg.ones { 1, 2 }):totable() end, "3 at position %[1%].*axis 1")
  t.raises(function() return x:index_fill(3, I { 0 }, 1) end, "out of range")
end)

test("take, put, masked_scatter", function(t)
  local x = pg.arange(6):reshape(2, 3)
  t.equal(x:t():take(I { { 1, 5 } }), { { 3, 5 } })
  t.equal(x:put(I { 0, -1 + 6 }, I { 9, 8 }), { { 9, 1, 2 }, { 3, 4, 8 } })
  x:t():put_(I { 1, 1 }, I { 5, 6 }, { accumulate = true })
  t.equal(x, { { 0, 1, 2 }, { 14, 4, 5 } })
  local mask = pg.tensor { true, false, true }
  t.equal(x:masked_scatter(mask, I { 7, 8, 9, 10, 11 }), { { 7, 1, 8 }, { 9, 4, 10 } })
  t.equal(x:masked_scatter(pg.tensor(false), I {}), x:totable())
  t.raises(function() return x:masked_scatter(mask, I { 7 }):totable() end, "out of range")
  t.raises(function() return x:take(I { 6 }):totable() end, "6 at position %[1%]")
end)

test("gradients, twice", function(t)
  local function d(...) return pg.randn({ ... }, { dtype = "float64" }) end
  local index = I { 3, 0, 3 }
  t.ok(pg.gradcheck(function(x, s) return x:index_add(1, index, s, { alpha = 2 }) end, { d(4, 2), d(3, 2) }))
  t.ok(pg.gradcheck(function(x, s) return x:index_copy(2, I { 3, 0 }, s) end, { d(2, 4), d(2, 2) }))
  t.ok(pg.gradcheck(function(x, s) return x:scatter(1, I { { 1, 0 } }, s) end, { d(3, 2), d(2, 3) }))
  t.ok(pg.gradcheck(function(x, s) return x:put(index, s, { accumulate = true }) end, { d(2, 3), d(3) }))
  t.ok(pg.gradcheck(function(x, s)
    return x:masked_scatter(pg.tensor { true, false, true }, s)
  end, { d(2, 3), d(2, 3) }))
  t.ok(pg.gradcheck(function(x) return x:take(I { { 1, 1 } }):pow(2) end, { d(2, 2) }))
end)
