-- SPDX-License-Identifier: Apache-2.0
-- Matrix products of the shapes for which the CPU has a way of its own, against float64.

local pg = require "perigee"

local function close(t, got, expected, within)
  local off = (got:to("float64") - expected):abs():max():item()
  t.ok(off <= within * expected:abs():max():item(), ("%s is off by %g"):format(got.dtype, off))
end
local function wide(x) return x:to("float64") end

test("two to four rows by a large weight", function(t)
  pg.manual_seed(1)
  local w, b = pg.randn { 300, 517 }, pg.randn { 300 }
  for rows = 1, 5 do
    local x = pg.randn { rows, 517 }
    close(t, pg.linear(x, w, b), pg.linear(wide(x), wide(w), wide(b)), 1e-5)
    close(t, x:matmul(w:transpose(1, 2)), wide(x):matmul(wide(w):transpose(1, 2)), 1e-5)
    local part = pg.randn { rows, 1034 }[{ {}, { 1, 1034, 2 } }] -- every other element
    close(t, pg.linear(part, w, b), pg.linear(wide(part), wide(w), wide(b)), 1e-5)
    close(t, pg.linear_activation(x, w, b, { activation = "relu" }), pg.linear(wide(x), wide(w), wide(b)):relu(), 1e-5)
  end
end)

test("b's rows at multiples of 2 KiB", function(t)
  pg.manual_seed(2)
  for _, columns in ipairs { 512, 1024, 1536 } do
    local y = pg.randn { 70, columns }
    for _, rows in ipairs { 15, 16, 40, 256, 257 } do
      local x = pg.randn { rows, 70 }
      close(t, x:matmul(y), wide(x):matmul(wide(y)), 1e-5)
      local turned = pg.randn { 70, rows }:transpose(1, 2)
      close(t, turned:matmul(y), wide(turned):matmul(wide(y)), 1e-5)
    end
    -- part of the columns, and a bias (b lies row by row under a transposed weight)
    local x, bias, some = pg.randn { 33, 70 }, pg.randn { columns - 100 }, y[{ {}, { 51, columns - 50 } }]
    close(t, x:matmul(some), wide(x):matmul(wide(some)), 1e-5)
    close(t, pg.linear(x, some:transpose(1, 2), bias), wide(x):matmul(wide(some)) + wide(bias), 1e-5)
  end
end)

test("x^T y of many columns of x, whose rows begin at multiples of 2 KiB, by few of y", function(t)
  pg.manual_seed(3)
  for _, deep in ipairs { 63, 64, 131, 900 } do
    local stored = pg.randn { deep, 1024 }
    for _, columns in ipairs { 1, 7, 256, 512, 513 } do
      local y = pg.randn { deep, columns }
      for _, x in ipairs { stored, stored[{ {}, { 11, 1000 } }], stored[{ {}, { 1, 200 } }] } do
        close(t, x:t():matmul(y), wide(x):t():matmul(wide(y)), 1e-5)
      end
      local part = pg.randn { deep, columns + 9 }[{ {}, { 5, columns + 4 } }]
      close(t, stored:t():matmul(part), wide(stored):t():matmul(wide(part)), 1e-5)
    end
  end
  local x, y = pg.ones { 64, 1024 }, pg.ones { 64, 8 }
  x[{ 1, 1 }] = 0 / 0
  local z = x:t():matmul(y)
  t.ok(z[1]:isnan():all():item() and z[{ { 2, 1024 } }]:eq(64):all():item(), "NaN stays in its row")
end)

test("any number of rows is cut into tiles, and exact where numbers are whole", function(t)
  pg.manual_seed(4)
  local x, w, b = pg.randint(-9, 10, { 27, 150 }), pg.randint(-9, 10, { 70, 150 }), pg.randint(-9, 10, { 70 })
  local expected = x:to("float64"):matmul(w:to("float64"):t()) + b:to("float64")
  for rows = 5, 27 do
    for _, dtype in ipairs { "float32", "float64", "bfloat16", "int64", "int32" } do
      local from, weight, bias = x:to(dtype)[{ { 1, rows } }], w:to(dtype), b:to(dtype)
      local exact = expected[{ { 1, rows } }]
      if dtype == "bfloat16" then exact = exact:to("bfloat16"):to "float64" end
      local whole = dtype:find "^int"
      local y = whole and from:matmul(weight:t()) + bias or pg.linear(from, weight, bias)
      t.equal((wide(y) - exact):abs():max():item(), 0, dtype .. " of " .. rows)
      if not whole then
        local z = pg.linear_activation(from, weight, bias, { activation = "relu" })
        t.equal((wide(z) - exact:relu()):abs():max():item(), 0, dtype .. ", relu, of " .. rows)
      end
    end
  end
  local deep, weight = pg.randn { 27, 2000 }, pg.randn { 40, 2000 } -- sums that wait in memory for more
  for rows = 5, 27 do
    close(t, pg.linear(deep[{ { 1, rows } }], weight), wide(deep[{ { 1, rows } }]):matmul(wide(weight):t()), 1e-5)
  end
end)

test("one row by columns of any length: what lies behind a column's end is not read", function(t)
  pg.manual_seed(5)
  for k = 60, 150 do
    for _, n in ipairs { 1, 7, 16, 29 } do
      local x, w = pg.randint(-9, 10, { 1, k }):to "float32", pg.full({ n, k + 5 }, 0 / 0)
      local bias = pg.randint(-9, 10, { n }):to "float32"
      local part = w[{ {}, { 1, k } }]
      part:copy_(pg.randint(-9, 10, { n, k }))
      t.equal((wide(pg.linear(x, part, bias)) - pg.linear(wide(x), wide(part), wide(bias))):abs():max():item(), 0,
              ("%d columns of %d"):format(n, k))
    end
  end
end)
