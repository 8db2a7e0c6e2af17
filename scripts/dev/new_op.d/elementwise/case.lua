-- SPDX-License-Identifier: Apache-2.0
-- new_op: what it computes, in plain Lua, and the cases that all checks of operators are driven from.

local array = require "cases.array"
local S = require "cases.specs"
local F = S.F

return {
  new_op = {
    class = "composed", -- devices that decompose it round in between
    ref = function(a, o)
      local beta = o.beta or 1
      return array.map(function(x) return x / (1 + math.exp(-beta * x)) end, a[1])
    end,
    cases = { { F { 3, 5 } }, { F { 2, 3, 4 }, attrs = { beta = 2.5 } }, { F {} }, { F { 0 } }, { F { 37 } } },
    bad = { { { "text" }, nil, "tensor" }, { {}, nil, "missing" } },
  },
}
