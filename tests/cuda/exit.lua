-- SPDX-License-Identifier: Apache-2.0
-- Uses what keeps handles of the vendor's libraries, and ends with all of it alive.
--   perigee tests/cuda/exit.lua cuda:0

local pg = require "perigee"

pg.device(arg[1], function()
  local model = pg.nn.Sequential { pg.nn.Conv2d { 4, 8, 3 }, pg.nn.BatchNorm2d { 8 }, pg.nn.AvgPool2d { 2 },
                                   pg.nn.Flatten {}, pg.nn.Linear { 72, 3 } }
  local y = model(pg.randn { 2, 4, 8, 8 })
  y:sum():backward()
  kept = { model, y, pg.arange(3):index_select(1, pg.tensor({ 1, 2 }, { dtype = "int64" })) } -- luacheck: ignore 111
  print(y:sum():item())
end)
