-- SPDX-License-Identifier: Apache-2.0
-- Floating dtypes against float64 on the same (rounded) inputs; integers and booleans against the reference.

local here = debug.getinfo(1, "S").source:match("^@(.*)operators/[^/]*$") or "../"
package.path = here .. "../?.lua;" .. here .. "../?/init.lua;" .. package.path

local pg = require "perigee"
local native = require "perigee.native"
local check = require "cases.check"

local function widened(op, case, args)
  return check.map_tensors(op, args, function(t)
    return native.dtypes.by_name[t.dtype].floating and t:to("float64") or t:clone()
  end)
end

local function floating(op, row, case, dtype)
  local args = check.tensors(op, case, dtype)
  local want = check.call(op, widened(op, case, args), case.attrs)
  local got = check.call(op, args, case.attrs)
  for k, y in ipairs(got) do
    local expected = row.class == "exact" and want[k]:to(y.dtype) or want[k]
    check.compare(y, check.array(expected), row.class, y.dtype, "result " .. k)
  end
end

local function whole(op, row, case, dtype)
  local args = check.tensors(op, case, dtype)
  local want = check.reference(op, row, case, args)
  for k, y in ipairs(check.call(op, args, case.attrs)) do
    local is_floating = native.dtypes.by_name[y.dtype].floating
    if y.dtype == "bool" then
      for i, v in ipairs(want[k].data) do want[k].data[i] = v ~= 0 and 1 or 0 end
    end
    if y.dtype == "uint8" then
      for i, v in ipairs(want[k].data) do want[k].data[i] = v % 256 end
    end
    check.compare(y, want[k], is_floating and "function_" or "exact", y.dtype, "result " .. k)
  end
end

local floats = { "float32", "bfloat16", "float16" }
local wholes = { "int64", "int32", "int16", "int8", "uint8", "bool" }

check.for_each(require "cases", function(op, row, case, name)
  if row.random then return end
  for _, dtype in ipairs(floats) do
    if check.takes(op, row, case, dtype) then
      test("dtype/" .. name .. "/" .. dtype, function() floating(op, row, case, dtype) end)
    end
  end
  for _, dtype in ipairs(wholes) do
    if check.takes(op, row, case, dtype) and row.class ~= "differences" then
      test("dtype/" .. name .. "/" .. dtype, function() whole(op, row, case, dtype) end)
    end
  end
end)

-- Operators that make tensors take every dtype that they declare.
for _, dtype in ipairs { "float64", "float32", "bfloat16", "float16", "int64", "int32", "int16", "int8", "uint8" } do
  test("dtype/fill and arange/" .. dtype, function(t)
    t.equal(pg.full({ 3 }, 2, { dtype = dtype }):totable(), { 2, 2, 2 })
    t.equal(pg.arange(1, 4, { dtype = dtype }):totable(), { 1, 2, 3 })
  end)
end
