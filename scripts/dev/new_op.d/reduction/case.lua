-- SPDX-License-Identifier: Apache-2.0
-- new_op: what it computes, in plain Lua, and the cases that all checks of operators are driven from.

local array = require "cases.array"
local S = require "cases.specs"
local F, D = S.F, S.D

-- The axis as a position from 1, and the shape without it (or with 1 in its place).
local function reduced(shape, o)
  local axis, result = o.axis or -1, {}
  if axis < 0 then axis = #shape + 1 + axis end
  for i, n in ipairs(shape) do
    if i ~= axis then result[#result + 1] = n elseif o.keepdim then result[#result + 1] = 1 end
  end
  return axis, result
end

local function rows_of(shape, axis)
  local outer, inner = 1, 1
  for i, n in ipairs(shape) do
    if i < axis then outer = outer * n elseif i > axis then inner = inner * n end
  end
  return outer, shape[axis] or 1, inner
end

local function ref(a, o)
  local x = a[1]
  local axis, shape = reduced(x.shape, o)
  local _, length, inner = rows_of(x.shape, axis)
  return array.fill(shape, function(i)
    local from = math.floor((i - 1) / inner) * length * inner + (i - 1) % inner
    local total = 0
    for j = 0, length - 1 do total = total + x.data[from + j * inner + 1] ^ 2 end
    return math.sqrt(total / length)
  end)
end

return {
  new_op = {
    class = "sum", ref = ref,
    cases = { { D { 3, 4 } }, { D { 3, 4 }, attrs = { axis = 1 } },
      { F { 2, 3, 4 }, attrs = { axis = 2, keepdim = true } }, { F { 5 } }, { F { 0, 3 } } },
    bad = { { { F { 2 } }, { axis = 2 }, "out of range" }, { { "text" }, nil, "tensor" } },
  },
}
