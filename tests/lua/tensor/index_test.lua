-- SPDX-License-Identifier: Apache-2.0
-- The index rule: numbers, slices, "...", newaxis, masks, index tensors; reading and assigning.

local pg = require "perigee"

local function grid() return pg.arange(12):reshape(3, 4) end

test("numbers and slices", function(t)
  local x = grid()
  t.equal(x[2], { 4, 5, 6, 7 })
  t.equal(x[-1], { 8, 9, 10, 11 })
  t.equal(x[2][3], 6)
  t.equal(x[{ 2, 3 }], 6)
  t.equal(x[{ 2, { 1, 3 } }], { 4, 5, 6 })
  t.equal(x[{ {}, -1 }], { 3, 7, 11 })
  t.equal(x[{ { 1, -1, 2 } }], { { 0, 1, 2, 3 }, { 8, 9, 10, 11 } })
  t.equal(x[{ { 2, 3 }, { -2, -1 } }], { { 6, 7 }, { 10, 11 } })
  t.equal(x[{ {}, { 1, -2 } }].shape, { 3, 3 })
  t.equal(x[{ "...", 1 }], { 0, 4, 8 })
  t.equal(x[{ 1, "..." }], { 0, 1, 2, 3 })
  t.equal(x["..."].shape, { 3, 4 })
  t.equal(x[{ pg.newaxis, 1 }].shape, { 1, 4 })
  t.equal(x[{ {}, pg.newaxis, { 1, 2 } }].shape, { 3, 1, 2 })
  t.equal(x[{ {}, { 3, 100 } }].shape, { 3, 2 }, "slices end where the axis does")
end)

test("writing at no places at all", function(t)
  local x, none = pg.zeros { 2, 2 }, pg.zeros { 3, 0, 2, dtype = "int64" }
  t.equal(x:index_put(none, pg.ones { 2, 2 }), { { 0, 0 }, { 0, 0 } })
  x[{ none, none }] = 1
  t.equal(x, { { 0, 0 }, { 0, 0 } })
  t.equal(pg.zeros { 0, 2 }:index_put(none, pg.ones { 2, 2 }).shape, { 0, 2 })
end)

test("views share memory", function(t)
  local x = grid()
  x[2]:fill_(0)
  t.equal(x[2], { 0, 0, 0, 0 })
  x[{ {}, 1 }]:add_(100)
  t.equal(x[{ {}, 1 }], { 100, 100, 108 })
end)

test("masks and index tensors give copies", function(t)
  local x = grid()
  t.equal(x[x:gt(8)], { 9, 10, 11 })
  t.equal(x[pg.tensor { true, false, true }].shape, { 2, 4 })
  t.equal(x[{ {}, pg.tensor { true, false, false, true } }], { { 0, 3 }, { 4, 7 }, { 8, 11 } })
  t.equal(x[pg.tensor { 2, 0, dtype = "int64" }], { { 8, 9, 10, 11 }, { 0, 1, 2, 3 } })
  t.equal(x[{ {}, pg.tensor { 3, 3, dtype = "int64" } }].shape, { 3, 2 })
  t.equal(x[pg.tensor({ { 0, 1 }, { 1, 2 } }, { dtype = "int64" })].shape, { 2, 2, 4 })
  t.equal(x[pg.tensor(1, { dtype = "int64" })], { 4, 5, 6, 7 })
  local picked = x[pg.tensor { 0, dtype = "int64" }]
  picked:fill_(-1)
  t.equal(x[1], { 0, 1, 2, 3 })
end)

test("assignment", function(t)
  local x = grid()
  x[{ 1, { 2, 3 } }] = 0
  t.equal(x[1], { 0, 0, 0, 3 })
  x[2] = pg.tensor { 9, 8, 7, 6, dtype = "int64" }
  t.equal(x[2], { 9, 8, 7, 6 })
  x[{ {}, -1 }] = pg.tensor { 1, 2, 3, dtype = "int64" }
  t.equal(x[{ {}, 4 }], { 1, 2, 3 })
  x[x:gt(7)] = -1
  t.equal(x[2], { -1, -1, 7, 2 })
  x["..."] = 5
  t.equal(x, { { 5, 5, 5, 5 }, { 5, 5, 5, 5 }, { 5, 5, 5, 5 } })
  x[pg.tensor { true, false, false }] = 1
  t.equal(x[1], { 1, 1, 1, 1 })
  t.equal(x[2], { 5, 5, 5, 5 })
end)

local function I(list) return pg.tensor(list, { dtype = "int64" }) end
local function each_device(fn)
  for _, device in ipairs { "cpu", "sim:0" } do pg.device(device, fn, device) end
end

test("several index tensors at once", function(t)
  local x = pg.arange(24):reshape(2, 3, 4)
  t.equal(x[{ I { 0, 1 }, I { 2, 0 } }], { { 8, 9, 10, 11 }, { 12, 13, 14, 15 } })
  t.equal(x[{ I { 0, 1 }, I { 2, 0 }, I { 3, 3 } }], { 11, 15 })
  t.equal(x[{ I { { 0 }, { 1 } }, I { 2, 0 }, 1 }], { { 8, 0 }, { 20, 12 } }, "they broadcast together")
  t.equal(x[{ {}, I { 2, 0 }, I { 1, 1 } }], { { 9, 1 }, { 21, 13 } })
  t.equal(x[{ I { 0, 1, 1 }, {}, I { 2, 0, 1 } }].shape, { 3, 3 }, "apart: their axes come first")
  t.equal(x[{ {}, I { 1 }, { 1, -1, 2 } }], { { { 4, 6 } }, { { 16, 18 } } })
  t.equal(x[{ pg.newaxis, I { 1, 0 }, 1, "..." }].shape, { 1, 2, 4 })
  t.equal(x[{ 1, {}, I { 3, 0 } }], { { 3, 0 }, { 7, 4 }, { 11, 8 } })
  t.equal(x[{ I(1), {}, I { 3, 0 } }], { { 15, 12 }, { 19, 16 }, { 23, 20 } }, "a 0-dim tensor is a number")
  t.equal(x[{ I(1), I(2), I(3) }], 23)
  t.equal(x[{ pg.tensor { 1, 0, dtype = "int32" }, pg.tensor { 1, 0, dtype = "uint8" } }].shape, { 2, 4 })
end)

test("masks beside other entries", function(t)
  local x = pg.arange(24):reshape(2, 3, 4)
  local mask = pg.tensor { { true, false, true }, { false, true, false } }
  t.equal(x[mask], { { 0, 1, 2, 3 }, { 8, 9, 10, 11 }, { 16, 17, 18, 19 } })
  t.equal(x[{ mask, 2 }], { 1, 9, 17 })
  t.equal(x[{ mask, I { 3, 2, 1 } }], { 3, 10, 17 })
  t.equal(x[{ {}, pg.tensor { true, false, true }, I { 3, 1 } }], { { 3, 9 }, { 15, 21 } })
  t.equal(x[pg.tensor(true)].shape, { 1, 2, 3, 4 })
  t.equal(x[pg.tensor(false)].shape, { 0, 2, 3, 4 })
end)

test("assignment at index tensors and masks", function(t)
  each_device(function()
    local x = pg.arange(12):reshape(3, 4)
    x[I { 2, 0 }] = 0
    t.equal(x, { { 0, 0, 0, 0 }, { 4, 5, 6, 7 }, { 0, 0, 0, 0 } })
    x[{ I { 0, 1, 2 }, I { 3, 2, 1 } }] = I { -1, -2, -3 }
    t.equal(x, { { 0, 0, 0, -1 }, { 4, 5, -2, 7 }, { 0, -3, 0, 0 } })
    x[{ {}, I { 1 } }] = I { { 7 }, { 8 }, { 9 } }
    t.equal(x[{ {}, 2 }], { 7, 8, 9 })
    x[{ { 1, 3, 2 }, I { 0, 2 } }] = I { 5, 6 }
    t.equal(x[{ { 1, 3, 2 } }], { { 5, 7, 6, -1 }, { 5, 9, 6, 0 } })
    x[pg.tensor { true, false, true }] = I { 1, 2, 3, 4 }
    t.equal(x[3], { 1, 2, 3, 4 })
    x[x:gt(3)] = pg.arange(6)[{ { 2, -1 } }]
    t.equal(x, { { 1, 2, 3, 1 }, { 2, 3, -2, 4 }, { 1, 2, 3, 5 } })
    x[{ I(0), I { 1, 1 } }] = I { 8, 9 }
    t.equal(x[1][2], 9, "of equal places the last one stays")
    x[I {}] = 3
    x[x:gt(100)] = pg.zeros { 0 }
    t.equal(x:t()[{ I { 1 }, I { 0 } }], { 9 })
    x:t()[{ I { 1 }, I { 0 } }] = 4.7
    t.equal(x[1][2], 4, "through a view, converted")
    x:transpose(1, 2):index_put_({ I { 0, 0 }, I { 2, 2 } }, 10, { accumulate = true })
    t.equal(x[3][1], 21)
    t.equal(x:index_put({ {}, I { 0, 0 } }, 1, { accumulate = true })[{ {}, 1 }], { 3, 4, 23 })
    t.equal(x[{ {}, 1 }], { 1, 2, 21 })
    local own = pg.arange(5)
    own[I { 4, 3, 2, 1, 0 }] = own
    t.equal(own, { 4, 3, 2, 1, 0 }, "values in the memory that is written to")
  end)
end)

test("gradients of reading and writing", function(t)
  local x = pg.zeros({ 3, 4 }, { requires_grad = true })
  x[{ I { 0, 2, 0 }, I { 1, 1, 1 } }]:sum():backward()
  t.equal(x.grad, { { 0, 2, 0, 0 }, { 0, 0, 0, 0 }, { 0, 1, 0, 0 } })
  local v = pg.ones({ 2 }, { requires_grad = true })
  local base = pg.ones({ 3, 4 }, { requires_grad = true })
  local y = base * 2
  y[{ { 1, 2 }, I { 3, 1 } }] = v * 3
  y[{ {}, y[1]:gt(2.5) }] = 0
  (y * y):sum():backward()
  t.equal(base.grad, { { 8, 0, 8, 0 }, { 8, 0, 8, 0 }, { 8, 0, 8, 0 } })
  t.equal(v.grad, { 0, 0 })
  y = base * 2
  y[{ { 1, 2 }, I { 3, 1 } }] = v * 3
  base.grad = nil
  y:pow(2):sum():backward()
  t.equal(v.grad, { 36, 36 })
  t.equal(base.grad, { { 8, 0, 8, 0 }, { 8, 0, 8, 0 }, { 8, 8, 8, 8 } })
  t.ok(pg.gradcheck(function(a, b)
    return a:index_put({ I { 0, 1, 1 }, I { 2, 0, 0 } }, b, { accumulate = true })[{ I { 1, 0 }, {}, I { 1, 1 } }]
  end, { pg.randn({ 2, 3, 2 }, { dtype = "float64" }), pg.randn({ 3, 2 }, { dtype = "float64" }) }))
end)

test("index tensors out of range name the axis and the value", function(t)
  each_device(function(device)
    local x = pg.arange(24):reshape(2, 3, 4)
    local function raises(fn, pattern)
      t.raises(function()
        local y = fn()
        if y then y:totable() end
        x:totable() -- where an asynchronous device says so
      end, pattern)
      pg.synchronize(device)
    end
    raises(function() return x[I { 1, 2 }] end, "2 at position %[2%] is out of range for axis 1; expected 0 to 1")
    raises(function() return x[{ 1, {}, I { 4 } }] end, "4 at position %[1%] is out of range for axis 3")
    raises(function() return x[{ I { 0, 0 }, 1, I { { 0 }, { -1 } } }] end,
           "%-1 at position %[2, 1%] is out of range for axis 3; expected 0 to 3")
    raises(function() x[{ {}, I { 3 } }] = 1 end, "index 3 at position %[1%] is out of range for axis 2")
    t.equal(x[{ 1, 2 }], { 4, 5, 6, 7 })
    t.raises(function() x[{ I { 0, 1 }, I { 0, 1, 2 } }] = 1 end, "broadcast")
    t.raises(function() x[I { 0, 1 }] = pg.zeros { 3 } end, "broadcast")
    t.raises(function() x[{ I { 0 }, I { 0 }, I { 0 }, I { 0 } }] = 1 end, "4 entries")
  end)
end)

test("bad indices", function(t)
  local x = grid()
  t.raises(function() return x[0] end, "count from 1")
  t.raises(function() return x[4] end, "out of range.*1%.%.3")
  t.raises(function() return x[-4] end, "out of range")
  t.raises(function() return x[1.5] end, "whole")
  t.raises(function() return x[{ 1, 5 }] end, "axis 2.*1%.%.4")
  t.raises(function() return x[{ 1, 1, 1 }] end, "3 entries")
  t.raises(function() return x[{ { 0, 2 } }] end, "count from 1")
  t.raises(function() return x[{ { 1, 2, -1 } }] end, "step")
  t.raises(function() return x[{ { 1 } }] end, "two or three")
  t.raises(function() return x[{ 1, nil, 2 }] end, "hole")
  t.raises(function() return x[{ "...", "..." }] end, "more than once")
  t.raises(function() return x[pg.tensor { 0.5 }] end, "integer or bool")
  t.raises(function() return x[pg.tensor { true }] end, "mask {1}")
  t.raises(function()
    local _ = x[pg.tensor { 3, dtype = "int64" }]
    pg.synchronize() -- where an asynchronous device says so
  end, "3")
  t.raises(function() x[1] = "a" end, "number or a tensor")
  t.raises(function() x[1] = { 1, 2, 3, 4 } end, "pg.tensor")
  t.raises(function() x[1] = pg.zeros { 3 } end)
  t.raises(function() return pg.tensor(1)[1] end, "0%-dim")
  t.equal(x[1], { 0, 1, 2, 3 })
end)

test("a mask without axes brings one along", function(t)
  local b, yes, no = pg.arange(12):reshape(3, 4), pg.tensor(true), pg.tensor(false)
  t.equal(b[{ yes, 2 }], { { 4, 5, 6, 7 } })
  t.equal({ b[yes].shape, b[no].shape, b[{ yes, { 1, 2 } }].shape, b[{ { 1, 2 }, yes }].shape },
          { { 1, 3, 4 }, { 0, 3, 4 }, { 1, 2, 4 }, { 2, 1, 4 } })
  b[{ yes, 2 }] = 0
  b[{ no, 1 }] = 9
  t.equal(b, { { 0, 1, 2, 3 }, { 0, 0, 0, 0 }, { 8, 9, 10, 11 } })
  local single = pg.tensor(5)
  single[yes] = 3
  t.equal(single, 3)
end)

test("booleans are assigned like 1 and 0", function(t)
  local m = pg.zeros({ 3 }, { dtype = "bool" })
  m[2] = true
  t.equal(m, { false, true, false })
  m[m:logical_not()] = true
  m[{ { 1, 2 } }] = false
  t.equal(m, { false, false, true })
  local x = pg.zeros { 2, 2 }
  x[{ 1, {} }], x[{ 2, 2 }] = true, true
  t.equal(x, { { 1, 1 }, { 0, 1 } })
end)
