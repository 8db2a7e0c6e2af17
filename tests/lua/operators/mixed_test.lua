-- SPDX-License-Identifier: Apache-2.0
-- Floating inputs of different dtypes: an operator promotes them, computes with them or refuses them by name, and so do
-- its gradients. What comes out of an operator that let through what its gradient cannot take has the code "internal".

local here = debug.getinfo(1, "S").source:match("^@(.*)operators/[^/]*$") or "../"
package.path = here .. "../?.lua;" .. here .. "../?/init.lua;" .. package.path

local pg = require "perigee"
local native = require "perigee.native"
local check = require "cases.check"

local function is_floating(t) return native.is_tensor(t) and native.dtypes.by_name[t.dtype].floating end

-- Calls with input i (of a list its first tensor) of another dtype than the rest, and asks for all gradients.
local function call(op, case, i, dtype)
  local args, leaves = check.tensors(op, case, "float32"), {}
  if is_floating(args[i]) then args[i] = args[i]:to(dtype) end
  if type(args[i]) == "table" and is_floating(args[i][1]) then args[i][1] = args[i][1]:to(dtype) end
  check.each(op, args, function(t, input)
    if is_floating(t) and not check.is_meta(input) and not check.is_mutated(input) then
      t.requires_grad = true
      leaves[#leaves + 1] = t
    end
    return t
  end)
  local total
  for _, y in ipairs(check.call(op, args, case.attrs)) do
    local term = y.requires_grad and (y * y):sum():to("float64")
    total = term and total and total + term or term or total
  end
  if total then pg.grad(total, leaves, { allow_unused = true }) end
end

check.for_each(require "cases", function(op, _, case, name)
  test("mixed/" .. name, function()
    for i in ipairs(op.inputs) do
      for _, dtype in ipairs { "float64", "bfloat16" } do
        local ok, problem = pcall(call, op, case, i, dtype)
        if not ok and (type(problem) ~= "table" or problem.code == "internal") then
          error(("input %d of %s: %s"):format(i, dtype, tostring(problem)), 0)
        end
      end
    end
  end)
end)
