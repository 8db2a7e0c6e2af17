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
