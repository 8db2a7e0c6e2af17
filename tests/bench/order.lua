-- SPDX-License-Identifier: Apache-2.0
-- Sorting, choosing, writing by index, lines along axes and bools against PyTorch: perigee tests/bench/order.lua
-- [PYTHON [ROUNDS]]. The two take turns, with one thread each; a row is an item, the median processor time of each side
-- in ms, and the median of the rounds' ratios (below 1: less).

local pg = require "perigee"
pg.config.set { threads = 1 }
local python, rounds = arg[1] or "/usr/bin/python3", tonumber(arg[2] or 3)
local folder = arg[0]:match("^(.*)/[^/]*$") or "."

package.path = folder .. "/?.lua;" .. package.path

pg.manual_seed(1)
local long, rows, table_ = pg.rand { 1000000 }, pg.rand { 2000, 500 }, pg.rand { 64, 50000 }
local short, whole = pg.rand { 100000, 10 }, pg.randint(0, 1000, { 1000000 })
local edges = pg.randint(0, 50000, { 500000 })
local nodes, features = pg.zeros { 50000, 32 }, pg.rand { 500000, 32 }
local wide = edges:unsqueeze(2):expand(500000, 32)
local i, j, flat = edges % 1000, edges % 777, pg.zeros { 1000, 1000 }
local volume, image, scores = pg.randn { 128, 256, 128 }, pg.randn { 8, 6, 128, 128 }, pg.randn { 4, 19, 128, 128 }
local labels = pg.randint(0, 19, { 4, 128, 128 })
local yes, no = pg.rand({ 1000000 }):gt(0.5), pg.rand({ 1000000 }):gt(0.5)
local items = {
  { "sort 1e6", function() return long:sort() end },
  { "sort 2000 x 500", function() return rows:sort() end },
  { "sort 2000 x 500, axis 1", function() return rows:sort { axis = 1 } end },
  { "sort 100000 x 10", function() return short:sort() end },
  { "sort 1e6 int64", function() return whole:sort() end },
  { "topk 50 of 64 x 50000", function() return table_:topk(50) end },
  { "topk 3 of 100000 x 10", function() return short:topk(3) end },
  { "median of 2000 x 500", function() return rows:median(2) end },
  { "unique 1e6 int64", function() return whole:unique() end },
  { "searchsorted 1e6 in 1e6", function() return long:searchsorted(long) end },
  { "scatter_add 500000 x 32", function() return nodes:scatter_add(1, wide, features) end },
  { "index_add 500000 x 32", function() return nodes:index_add(1, edges, features) end },
  { "x[{i, j}], 500000", function() return flat[{ i, j }] end },
  { "x[{i, j}] = v, 500000", function() flat[{ i, j }] = 1 end },
  { "amax 128x256x128, axis 1", function() return volume:amax(1) end },
  { "amax 128x256x128, axis 3", function() return volume:amax(3) end },
  { "softmax 8x6x128x128, axis 2", function() return image:softmax(2) end },
  { "softmax 8x6x128x128, axis 3", function() return image:softmax(3) end },
  { "cross_entropy 4x19x128x128", function() return pg.cross_entropy(scores, labels) end },
  { "logical_and 1e6", function() return yes:logical_and(no) end },
  { "logical_not 1e6", function() return yes:logical_not() end },
  { "linspace 1e6", function() return pg.linspace(0, 1, 1000000) end },
}

require "turns"(items, { command = ("%s %s/order_torch.py"):format(python, folder), rounds = rounds, seconds = 0.3 })
