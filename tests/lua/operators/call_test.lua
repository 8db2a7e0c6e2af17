-- SPDX-License-Identifier: Apache-2.0
-- Argument orders that the grammar allows beside the declared one.

local pg = require "perigee"

test("gather and index_select take the axis first, as in PyTorch, or last", function(t)
  local x, at = pg.arange(6):reshape(2, 3), pg.tensor { 1, 0, dtype = "int64" }
  t.equal(x:index_select(2, at), { { 1, 0 }, { 4, 3 } })
  t.equal(x:index_select(at, 2), { { 1, 0 }, { 4, 3 } })
  t.equal(pg.index_select(x, -1, at), { { 1, 0 }, { 4, 3 } })
  t.equal(x:index_select { at, axis = 1 }, { { 3, 4, 5 }, { 0, 1, 2 } })
  local index = pg.tensor({ { 2 }, { 0 } }, { dtype = "int64" })
  t.equal(x:gather(2, index), { { 2 }, { 3 } })
  t.equal(x:gather(index, 2), { { 2 }, { 3 } })
  t.raises(function() x:gather(0, index) end, "count from 1")
  t.raises(function() x:gather(3, index) end, "out of range")
  t.raises(function() x:gather(index) end, "missing")
end)
