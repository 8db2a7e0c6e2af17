-- SPDX-License-Identifier: Apache-2.0
-- Operators between processes, of one process alone: copies. Several processes are in tests/lua/dist.

local array = require "cases.array"
local S = require "cases.specs"
local F = S.F

local rows = {}

local function copied(a) return a[1] end

-- Of a number a vector of one.
local function gathered(a)
  if #a[1].shape > 0 then return a[1] end
  local y = array.new { 1 }
  y.data[1] = a[1].data[1]
  return y
end

-- one_size: their gradients are ordered effects too, which run always, with weights of the first size.
local function row(ref, cases, bad) return { class = "exact", one_size = true, ref = ref, cases = cases, bad = bad } end

local ALONE = "expected 1 where group is 0"

rows.all_gather = row(gathered, { { F { 3, 4 } }, { F { 5 } }, { F {} }, { F { 0, 2 } } },
                      { { { F { 3 } }, { ranks = 2 }, ALONE } })
rows.reduce_scatter = row(copied, { { F { 3, 4 } }, { F { 5 }, attrs = { op = "mean" }, integers = false },
                                    { F { 3 }, attrs = { op = "max" }, grad = false },
                                    { F { 3 }, attrs = { op = "min" }, grad = false }, { F { 0, 2 } } },
                          { { { F { 3 } }, { ranks = 2 }, ALONE }, { { F {} }, nil, "at least 1 axis" },
                            { { F { 3 } }, { op = "smu" }, "sum" } })
rows.all_to_all = row(copied, { { F { 3, 4 } }, { F { 5 } }, { F { 0, 2 } } },
                      { { { F { 3 } }, { ranks = 2 }, ALONE }, { { F {} }, nil, "at least 1 axis" } })
rows.broadcast = row(copied, { { F { 3, 4 } }, { F {} }, { F { 0, 2 } } },
                     { { { F { 3 } }, { ranks = 2 }, ALONE }, { { F { 3 } }, { root = 1 }, "root is 1" } })
rows.reduce = row(copied, { { F { 3, 4 } }, { F { 5 }, attrs = { op = "mean" }, integers = false },
                            { F {}, attrs = { op = "max" }, grad = false },
                            { F { 0, 2 }, attrs = { op = "min" }, grad = false } },
                  { { { F { 3 } }, { ranks = 0 }, "at least 1" }, { { F { 3 } }, { root = -1 }, "root is %-1" },
                    { { F { 3 } }, { op = "smu" }, "sum" } })

return rows
