-- SPDX-License-Identifier: Apache-2.0
-- The device in force, or else the simulated one, against the CPU: equal where nothing rounds and where random bits are
-- drawn.

local here = debug.getinfo(1, "S").source:match("^@(.*)operators/[^/]*$") or "../"
package.path = here .. "../?.lua;" .. here .. "../?/init.lua;" .. package.path

local pg = require "perigee"
local native = require "perigee.native"
local check = require "cases.check"

local DEVICE = pg.device() ~= "cpu" and pg.device() or "sim:0"
local dtypes = { "float32", "float64", "bfloat16", "float16", "int64", "int32", "int16", "int8", "uint8", "bool" }

local function moved(op, args, device)
  return check.map_tensors(op, args, function(t)
    return t.device == device and t or pg.device(device, function() return check.tensor(check.array(t), t.dtype) end)
  end)
end

local function results(op, row, case, dtype, device)
  return pg.device(device, function()
    local args = moved(op, check.tensors(op, case, dtype), device)
    local attrs = case.attrs
    if row.creates then
      attrs = { dtype = dtype }
      for k, v in pairs(case.attrs) do attrs[k] = v end
    end
    pg.manual_seed(77)
    local list = check.call(op, args, attrs)
    for _, y in ipairs(list) do
      if y.device ~= device and y:numel() > 0 and op.name ~= "transfer" then error("a result is on " .. y.device, 0) end
    end
    return list
  end)
end

local function creatable(op, row, case, dtype)
  if row.integers then return dtype:find("int") and not (dtype:find("8") and case.number == 1) end
  if row.random then return dtype:find("float") end
  return dtype ~= "bool" and not (dtype == "uint8" and case.signed)
end

check.for_each(require "cases", function(op, row, case, name)
  for _, dtype in ipairs(dtypes) do
    local takes
    if row.creates then takes = creatable(op, row, case, dtype) else takes = check.takes(op, row, case, dtype) end
    if not takes and dtype == "float32" and not row.creates then takes = true end -- all inputs have dtypes of their own
    if takes then
      test("device/" .. name .. "/" .. dtype, function()
        local want = results(op, row, case, dtype, "cpu")
        local got = results(op, row, case, dtype, DEVICE)
        for k, y in ipairs(got) do
          local rounds = native.dtypes.by_name[y.dtype].floating and not row.random
          check.compare(y, check.array(want[k]), rounds and row.class or "exact", y.dtype, "result " .. k)
        end
      end)
    end
  end
end)
