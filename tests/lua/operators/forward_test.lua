-- SPDX-License-Identifier: Apache-2.0
-- Operators in float64 against references in plain Lua.

local here = debug.getinfo(1, "S").source:match("^@(.*)operators/[^/]*$") or "../"
package.path = here .. "../?.lua;" .. here .. "../?/init.lua;" .. package.path

local pg = require "perigee"
local check, array = require "cases.check", require "cases.array"

check.for_each(require "cases", function(op, row, case, name)
  test("forward/" .. name, function(t)
    pg.manual_seed(11)
    local args = check.tensors(op, case, "float64")
    if row.random then
      local y = check.call(op, args, case.attrs)[1]
      row.holds(check.array(y).data, case.attrs or {})
      if case.expect then check.compare(y, array.new({ #case.expect }, case.expect), "exact", y.dtype) end
      return
    end
    local want = check.reference(op, row, case, args)
    local got = check.call(op, args, case.attrs)
    t.ok(#got == #want, ("%d results, the reference has %d"):format(#got, #want))
    for k, y in ipairs(got) do
      check.compare(y, want[k], row.class, y.dtype == "float32" and "float32" or "float64", "result " .. k)
    end
  end)
end)
