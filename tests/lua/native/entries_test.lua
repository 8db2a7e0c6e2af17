-- SPDX-License-Identifier: Apache-2.0
-- Tables are walked without next() where code is compiled: native/entries.lua says why.

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

test("entries: loops that walk tables compile", function(t)
  local started, whole = {}, false
  local loop = assert(loadstring [[
    local has, n = ..., 0
    for i = 1, 2000 do if has({ i, i }, 2) then n = n + 1 end end
    return n]])
  local function watch(what, trace, fn)
    if what == "start" then started[trace] = fn end
    if what == "stop" and started[trace] == loop then whole = true end
  end
  jit.flush()
  jit.attach(watch, "trace")
  local ok, n = pcall(loop, native.has_entries)
  jit.attach(watch)
  t.ok(ok and n == 2000, n)
  t.ok(whole, "the loop is not compiled")
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
