-- SPDX-License-Identifier: Apache-2.0
-- perigee and its commands, run on files made here.

local tests = (debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or ".") .. "/../.."
package.path = tests .. "/?.lua;" .. package.path

local process = require "process"

-- What `perigee WORDS` prints, and its status.
local function command(t, words) return process.run(("'%s' %s"):format(process.need_perigee(t), words)) end

test("every command says what it takes, and refuses what it does not", function(t)
  for _, name in ipairs { "test", "lint", "plugins", "devices", "conform", "doctor", "repl" } do
    local text, status = command(t, name .. " --help")
    t.equal({ text:match("^usage: perigee %a+"), status }, { "usage: perigee " .. name, 0 })
  end
  for _, option in ipairs { "--filter", "--device", "--absent", "--shard", "--times", "--verbose",
                           "--compiled" } do
    t.ok(command(t, "test --help"):find("  " .. option, 1, true), option)
  end
  for _, name in ipairs { "devices", "doctor", "repl" } do
    t.equal({ command(t, name .. " foo") }, { ("perigee: %s takes no words\n"):format(name), 2 })
  end
end)

test("a word that is nothing says what is near", function(t)
  local main, said, stderr = require "perigee.command.main", {}, io.stderr
  io.stderr = { write = function(_, ...) said[#said + 1] = table.concat { ... } end } -- luacheck: ignore
  local status = main("tset")
  io.stderr = stderr -- luacheck: ignore
  t.equal({ table.concat(said), status },
          { "perigee: tset is neither a command nor a script (did you mean test?)\n", 2 })
end)

test("a stack overflow names a line of the script, in compiled code and in what is interpreted", function(t)
  local recursive = {
    "local pg = require 'perigee'\nlocal Net = pg.nn.class('Net')\n" ..
    "function Net:forward(x) return 1 + self(x) end\nNet()(pg.ones{2})",
    "jit.off()\n\nlocal function f(n) return 1 + f(n + 1) end\nf(1)",
  }
  for _, code in ipairs(recursive) do
    local script = process.file(code)
    local text, status = process.run(("'%s' '%s'"):format(process.need_perigee(t), script))
    os.remove(script)
    t.equal({ text:match("^[^\n]*"), status }, { ("perigee: %s:3: stack overflow"):format(script), 1 })
    t.ok(text:find("in main chunk", 1, true), text)
  end
end)

test("a filter that is no pattern, or that nothing fits, is an error", function(t)
  local suite = os.tmpname()
  os.remove(suite)
  suite = suite .. ".lua"
  process.write(suite, 'test("one", function() end)')
  local fine, ok = command(t, ("test --filter on '%s'"):format(suite))
  local broken, no_pattern = command(t, ("test --filter 'on[' '%s'"):format(suite))
  local none, no_test = command(t, ("test --filter two '%s'"):format(suite))
  os.remove(suite)
  t.ok(fine:find("1 passed", 1, true) and ok == 0, fine)
  t.ok(broken:find("perigee test: --filter on[: malformed pattern (missing ']')", 1, true) and no_pattern == 2, broken)
  t.ok(none:find("there is no test whose name or file fits two", 1, true) and no_test == 2, none)
end)

test("--absent skips what fails for want of a listed kernel, and nothing else", function(t)
  local perigee = process.need_perigee(t)
  local suite, holes = os.tmpname(), os.tmpname()
  os.remove(suite)
  suite = suite .. ".lua"
  process.write(suite, [[
    local function lacks(name) error(name .. ": no kernel for float32 [8] on cuda:0; there are kernels on cpu", 0) end
    test("a listed one", function() lacks "median" end)
    test("in place", function() lacks "index_put_" end)
    test("in a session", function() error("y: (IndexPut) of float32 on /gpu:0: the device has no kernel for it", 0) end)
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
  t.ok(with:find("SKIP " .. suite .. ": in a session: index_put has no kernel on cuda", 1, true), with)
  t.ok(with:find("1 passed, 2 failed, 3 skipped", 1, true), with)
  t.ok(without:find("1 passed, 5 failed, 0 skipped", 1, true), without)
end)

test("--compiled compares what tests check, compiled and not, and counts those that do not repeat", function(t)
  local suite = os.tmpname()
  os.remove(suite)
  suite = suite .. ".lua"
  process.write(suite, [[
    local pg, calls = require "perigee", 0
    test("same", function(t) t.equal((pg.ones{3} * 2 + pg.rand{3} * 0):sum(), 6) end)
    test("counts", function(t) calls = calls + 1 t.ok(calls) end)
    test("differs", function(t) calls = calls + 1 t.ok(calls > 6 and 2 or 1) end)
  ]])
  local text, status = command(t, ("test --compiled '%s'"):format(suite))
  os.remove(suite)
  t.ok(text:find("compiled: 2 tests the same, or failed above; %d+ stretches launched as plans; 1 tests not"), text)
  t.ok(text:find("differs\n  compiled, call 1: value 1 is 2, plainly 1", 1, true) and status == 1, text)
  t.ok(tonumber(text:match "(%d+) stretches") >= 2, text)
end)
