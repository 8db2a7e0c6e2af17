-- SPDX-License-Identifier: Apache-2.0
-- Tables are walked without next() where code is compiled: native/entries.lua says why. That loops of calls with lists
-- compile, compiles_test.lua sees.

local native = require "perigee.native"
local entries = native.entries

test("entries: counts, keys and the first of them, as pairs has them", function(t)
  for _, list in ipairs { {}, { 1 }, { 1, 2, 3 }, { a = 1 }, { 5, a = 1, b = 2 }, { [3] = 1, [1.5] = 2 }, { false } } do
    local want = {}
    for key in pairs(list) do want[#want + 1] = key end
    t.equal(entries.count(list), #want)
    t.equal(entries.count(list, 2), math.min(#want, 2))
    t.equal(entries.first(list), want[1])
    local keys, count = entries.keys(list)
    t.equal(count, #want)
    for i = 1, #want do t.ok(keys[i] == want[i], i) end
    for n = 0, 6 do t.equal(native.has_entries(list, n), n == #want) end
  end
end)

-- What stands on the way of calls, and so in compiled loops.
test("entries: next is called in no file on the way of a call", function(t)
  local folder = native.module_dir .. "/native/"
  local list = io.popen(("ls '%s'"):format(folder))
  local looked_at = 0
  for name in list:lines() do
    if name:find "%.lua$" then
      looked_at = looked_at + 1
      for line in io.lines(folder .. name) do
        local code = line:gsub("%-%-.*", "")
        t.ok(not code:find "%f[%w_.:]next%(", name .. ": " .. line)
      end
    end
  end
  list:close()
  t.ok(looked_at > 20, looked_at)
end)
