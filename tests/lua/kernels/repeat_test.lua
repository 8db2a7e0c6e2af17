-- SPDX-License-Identifier: Apache-2.0
-- Copies and elementwise operators whose operands stand still along the last axes, or along others: the same as what
-- index_select picks, element by element, for every width of element, whatever the parts that threads and blocks take.

local pg = require "perigee"

-- x as [..., 1, ...] picked along each axis that is to be longer.
local function picked(x, shape)
  for axis, n in ipairs(shape) do
    if x:size(axis) ~= n then x = x:index_select(pg.zeros({ n }, { dtype = "int64" }), axis) end
  end
  return x
end

local SHAPES = {
  { { 7, 1 }, { 7, 3 } }, { { 1, 1 }, { 1, 5 } }, { { 9, 1 }, { 9, 1 } }, { { 1000, 1 }, { 1000, 3 } },
  { { 700, 1 }, { 700, 8 } }, { { 513, 1 }, { 513, 33 } }, { { 40000, 1 }, { 40000, 3 } }, { { 3, 1 }, { 3, 5000 } },
  { { 1, 6 }, { 300, 6 } }, { { 5, 1, 4, 1 }, { 5, 3, 4, 7 } }, { { 50, 1, 1 }, { 50, 9, 11 } },
  { { 4, 70, 1 }, { 4, 70, 31 } }, { { 70001, 1 }, { 70001, 17 } }, { { 0, 1 }, { 0, 3 } }, { { 3, 1 }, { 3, 0 } },
}

for _, dtype in ipairs { "bool", "uint8", "bfloat16", "int32", "float32", "float64", "int64" } do
  test("repeated: " .. dtype, function(t)
    for _, row in ipairs(SHAPES) do
      local x = pg.randint(0, 2, row[1]):to(dtype)
      if dtype ~= "bool" then x = pg.randint(0, 100, row[1]):to(dtype) end
      local want = picked(x, row[2])
      local what = ("%s to %s, %s"):format(table.concat(row[1], "x"), table.concat(row[2], "x"), dtype)
      for _, threads in ipairs { 1, 2 } do
        pg.config.set { threads = threads }
        t.ok(pg.equal(x:expand(row[2]):contiguous(), want), what)
        if dtype ~= "bool" then
          local y = pg.randint(0, 100, row[2]):to(dtype)
          t.ok(pg.equal(x + y, want + y), what .. ", added")
          t.ok(pg.equal(y:to("int32"):sub(x), y:to("int32"):sub(want)), what .. ", converted")
        end
      end
    end
  end)
end

test("repeated: lines that lie turned, backwards or apart", function(t)
  local x = pg.rand { 30, 40 }
  for _, view in ipairs { x:t(), x:flip(1), x:narrow(2, 3, 7), x:select(2, 5):unsqueeze(2), x[{ { 1, 30, 3 }, {} }] } do
    local column = view:select(2, 1):unsqueeze(2)
    local shape = { column:size(1), 6 }
    t.ok(pg.equal(column:expand(shape):contiguous(), picked(column:contiguous(), shape)))
    local target = pg.zeros { 6, column:size(1) }
    target:t():copy_(column:expand(shape))
    t.ok(pg.equal(target:t():contiguous(), picked(column:contiguous(), shape)))
  end
end)
