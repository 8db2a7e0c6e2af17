-- SPDX-License-Identifier: Apache-2.0
-- Sizes that several threads share: the CPU against the device in force, or else the simulated one, whose loops are
-- plain.

local here = debug.getinfo(1, "S").source:match("^@(.*)operators/[^/]*$") or "../"
package.path = here .. "../?.lua;" .. here .. "../?/init.lua;" .. package.path

local pg = require "perigee"
local native = require "perigee.native"
local check = require "cases.check"
local DEVICE = pg.device() ~= "cpu" and pg.device() or "sim:0"
local rows, large = require "cases".rows, require "cases.large"

local function results(op, case, dtype, device)
  return pg.device(device, function()
    pg.manual_seed(123)
    return check.call(op, check.tensors(op, case, dtype), case.attrs)
  end)
end

-- The largest difference counts; elements are compared on the CPU, in float64, without a Lua number each.
local function compare(got, want, row, class, what)
  if got.shape ~= want.shape or got.dtype ~= want.dtype then error(what .. " has another shape or dtype", 0) end
  if got:numel() == 0 then return end
  local a, b = got:cpu():to("float64"), want:cpu():to("float64")
  local allowed = require("cases.tolerance")[class or row.class or "exact"]
  local relative = native.dtypes.by_name[got.dtype].floating and not row.random and allowed[got.dtype] or 0
  local scale = b:abs()
  if allowed.scaled then scale = scale:amax() end
  local bad = (a - b):abs():gt(scale * (2 * relative) + (relative > 0 and 1e-30 or 0)):logical_and(a:ne(b))
  local positions = bad:reshape(-1):nonzero()
  if #positions == 0 then return end
  local at = positions[1][1]:item() + 1
  error(("%s: %d elements of %s differ, the first at %d: got %.9g, expected %.9g"):format(
          what, #positions, tostring(got.shape), at, a:reshape(-1)[at]:item(), b:reshape(-1)[at]:item()), 0)
end

local names = {}
for name in pairs(large) do names[#names + 1] = name end
table.sort(names)
for _, name in ipairs(names) do
  local op, row = native.operators.get(name), rows[name]
  for i, case in ipairs(check.is_absent(name) and {} or large[name]) do
    case.number = 100 + i
    for _, dtype in ipairs { "float32", "bfloat16" } do
      if (row.random and dtype == "float32") or
        (not row.random and (check.takes(op, row, case, dtype) or (name == "one_hot" and dtype == "float32"))) then
        test("large/" .. name .. "/" .. i .. "/" .. dtype, function()
          local want, got = results(op, case, dtype, DEVICE), results(op, case, dtype, "cpu")
          for k, y in ipairs(got) do compare(y, want[k], row, case.within, "result " .. k) end
        end)
      end
    end
  end
end
