-- SPDX-License-Identifier: Apache-2.0
-- The declarations that LuaJIT reads must be those of the C header.

local function functions_of(text)
  local list = {}
  for name in text:gmatch("[%*%s](pgc_[%w_]+)%s*%(") do list[#list + 1] = name end
  table.sort(list)
  return list
end

test("the cdef declares the functions of perigee.h", function(t)
  local here = debug.getinfo(1, "S").source:match("^@(.*)tests/lua/[^/]*/[^/]*$")
  local file = here and io.open(here .. "bindings/c/perigee.h")
  if not file then t.skip("the header is not beside the tests") end
  local header = file:read("*a"):gsub("/%*.-%*/", "")
  file:close()
  local declared = {}
  for name in header:gmatch("PGC_API[^;]-(pgc_[%w_]+)%s*%(") do declared[#declared + 1] = name end
  table.sort(declared)
  t.equal(functions_of(require "perigee.native.cdef"), declared)
end)
