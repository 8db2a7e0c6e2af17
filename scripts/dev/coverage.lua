-- SPDX-License-Identifier: Apache-2.0
-- Prints what the operators' case table (tests/cases) reaches: operators and cases by dtype, and the devices' holes.

local root = arg[0]:match("^(.*)scripts/dev/[^/]*$") or "./"
package.path = root .. "tests/?.lua;" .. root .. "tests/?/init.lua;" .. package.path

local native = require "perigee.native"
local check, table_, absent = require "cases.check", require "cases", require "cases.absent"

local DTYPES = { "float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool" }

local rows, cases, bad = 0, 0, 0
local by_dtype = {}
for _, dtype in ipairs(DTYPES) do by_dtype[dtype] = { operators = 0, cases = 0 } end

for _, name in ipairs(table_.names) do
  local op, row = native.operators.get(name), table_.rows[name]
  rows, cases, bad = rows + 1, cases + #row.cases, bad + #(row.bad or {})
  for dtype, count in pairs(by_dtype) do
    local here = 0
    for _, case in ipairs(row.cases) do
      if check.takes(op, row, case, dtype) then here = here + 1 end
    end
    count.cases = count.cases + here
    if here > 0 then count.operators = count.operators + 1 end
  end
end

print(("\n%d operators have %d cases and %d calls that must fail; with inputs of"):format(rows, cases, bad))
for _, dtype in ipairs(DTYPES) do
  print(("  %-9s %4d operators, %5d cases"):format(dtype, by_dtype[dtype].operators, by_dtype[dtype].cases))
end
local function size(set)
  local n = 0
  for _ in pairs(set or {}) do n = n + 1 end
  return n
end
for _, device in ipairs { "cpu", "sim", "cuda" } do
  print(("  on %-6s %4d operators"):format(device, rows - size(absent[device])))
end
