-- SPDX-License-Identifier: Apache-2.0
-- Every operator has a row, and every row an operator.

local here = debug.getinfo(1, "S").source:match("^@(.*)operators/[^/]*$") or "../"
package.path = here .. "../?.lua;" .. here .. "../?/init.lua;" .. package.path

local native = require "perigee.native"
local check = require "cases.check"
local table_ = require "cases"

test("coverage: every operator has a row", function(t)
  local missing = {}
  for _, name in ipairs(native.op_names()) do
    if not table_.rows[name] then missing[#missing + 1] = name end
  end
  t.ok(#missing == 0, "operators without a row in tests/cases: " .. table.concat(missing, ", "))
end)

test("coverage: every row is an operator's", function(t)
  local known, strange = {}, {}
  for _, name in ipairs(native.op_names()) do known[name] = true end
  for _, name in ipairs(table_.names) do
    if not known[name] then strange[#strange + 1] = name end
  end
  t.ok(#strange == 0, "rows without an operator: " .. table.concat(strange, ", "))
end)

for _, name in ipairs(table_.names) do
  test("coverage/" .. name, function(t)
    local row = table_.rows[name]
    t.ok(#row.cases > 0 and #(row.bad or {}) > 0, "a row needs cases and bad inputs")
    t.ok(row.random and row.holds or row.ref and row.class, "a row needs a reference and a class")
  end)
end

-- On a device whose holes are listed.
for _, name in ipairs(table_.names) do
  if check.is_absent(name) then
    test("coverage/" .. name .. "/absent", function(t)
      local op, case = native.operators.get(name), table_.rows[name].cases[1]
      local attrs = {}
      for k, v in pairs(case.attrs or {}) do attrs[k] = v end
      local err = t.raises(function() check.call(op, check.tensors(op, case, "float32"), attrs) end)
      t.equal(err.code, "not_supported", tostring(err))
    end)
  end
end
