-- SPDX-License-Identifier: Apache-2.0
-- new_op: what it computes, in plain Lua, and the cases that all checks of operators are driven from.

local array = require "cases.array"
local S = require "cases.specs"
local F = S.F

local function ref(a, o)
  local x, axis = a[1], o.axis or -1
  local shape = x.shape
  if axis < 0 then axis = #shape + 1 + axis end
  local inner, length = 1, shape[axis] or 1
  for i = axis + 1, #shape do inner = inner * shape[i] end
  return array.fill(shape, function(i)
    local from = math.floor((i - 1) / (length * inner)) * length * inner + (i - 1) % inner
    local total = 0
    for j = 0, length - 1 do total = total + x.data[from + j * inner + 1] end
    return x.data[i] - total / length
  end)
end

return {
  new_op = {
    class = "sum", ref = ref,
    cases = { { F { 3, 4 } }, { F { 3, 4 }, attrs = { axis = 1 } }, { F { 2, 3, 4 }, attrs = { axis = -2 } },
      { F { 5 } }, { F {} }, { F { 0, 3 } } },
    bad = { { { F { 2 } }, { axis = 2 }, "out of range" }, { { "text" }, nil, "tensor" } },
  },
}
