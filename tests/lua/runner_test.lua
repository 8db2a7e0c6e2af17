-- SPDX-License-Identifier: Apache-2.0
-- perigee test, run on files made here.

local tests = (debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or ".") .. "/.."
package.path = tests .. "/?.lua;" .. package.path

local process = require "process"

test("--absent skips what fails for want of a listed kernel, and nothing else", function(t)
  local perigee = process.need_perigee(t)
  local suite, holes = os.tmpname(), os.tmpname()
  os.remove(suite)
  suite = suite .. ".lua"
  process.write(suite, [[
    local function lacks(name) error(name .. ": no kernel for float32 [8] on cuda:0; there are kernels on cpu", 0) end
    test("a listed one", function() lacks "median" end)
    test("in place", function() lacks "index_put_" end)
    test("one that is not listed", function() lacks "add" end)
    test("another failure", function() error("median") end)
    test("it passes", function() end)
  ]])
  process.write(holes, "return { cuda = { median = true, index_put = true } }")
  local function run(options)
    return (process.run(("'%s' test %s '%s'"):format(perigee, options, suite)))
  end
  local with, without = run("--absent '" .. holes .. "'"), run("")
  os.remove(suite)
  os.remove(holes)
  t.ok(with:find("SKIP " .. suite .. ": a listed one: median has no kernel on cuda", 1, true), with)
  t.ok(with:find("SKIP " .. suite .. ": in place: index_put has no kernel on cuda", 1, true), with)
  t.ok(with:find("1 passed, 2 failed, 2 skipped", 1, true), with)
  t.ok(without:find("1 passed, 4 failed, 0 skipped", 1, true), without)
end)
