-- SPDX-License-Identifier: Apache-2.0
-- Operators with hidden outputs give the same bits whether anybody reads those or not, whichever is called first, on
-- the CPU and on the device in force, or else the simulated one.

local here = debug.getinfo(1, "S").source:match("^@(.*)operators/[^/]*$") or "../"
package.path = here .. "../?.lua;" .. here .. "../?/init.lua;" .. package.path

local pg = require "perigee"
local check = require "cases.check"

local DEVICE = pg.device() ~= "cpu" and pg.device() or "sim:0"

local function results(op, case, dtype, device, all)
  return pg.device(device, function()
    local args = check.map_tensors(op, check.tensors(op, case, dtype), function(t)
      return pg.device(device, function() return check.tensor(check.array(t), t.dtype) end)
    end)
    pg.manual_seed(77)
    return check.call(op, args, case.attrs, all)
  end)
end

-- Results behind the visible ones are tensors that were written into.
local function compare(op, lean, all)
  for k, y in ipairs(lean) do
    local at = k <= op.visible_outputs and k or k + #op.outputs - op.visible_outputs
    check.same(y, all[at], "result " .. k)
  end
end

check.for_each(require "cases", function(op, row, case, name)
  if not check.hides(op) then return end
  for _, device in ipairs { "cpu", DEVICE } do
    for n, dtype in ipairs { "float32", "float64", "bfloat16", "int32" } do
      if check.takes(op, row, case, dtype) then
        test(("lean/%s/%s/%s"):format(name, device, dtype), function()
          local lean_first = (case.number + n) % 2 == 0
          local first = results(op, case, dtype, device, not lean_first)
          local second = results(op, case, dtype, device, lean_first)
          compare(op, lean_first and first or second, lean_first and second or first)
        end)
      end
    end
  end
end)
