-- SPDX-License-Identifier: Apache-2.0
-- Ctrl-C while a script runs, and starting where there is no /proc. Each script in a process of its own.

local tests = (debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or ".") .. "/../.."
package.path = tests .. "/?.lua;" .. package.path

local process = require "process"

-- `after(seconds)` sends SIGINT to the script itself, later.
local HEAD = [[
local pg = require "perigee"
local function after(seconds) io.popen(("(sleep %g; kill -INT $PPID) >/dev/null 2>&1 &"):format(seconds)):close() end
local x = pg.ones { 4 }
local function work() -- half a minute of compiled code
  local finish = os.time() + 30
  while os.time() < finish do
    for _ = 1, 10000 do x = (x + 1) * 0.5 end
  end
end
]]

-- Background jobs, which tests may be, ignore the signal.
local function run(t, script, options)
  local perigee, path = process.need_perigee(t), process.file(HEAD .. script)
  local text, status = process.run(("env %s '%s' %s"):format(options or "--default-signal=INT", perigee, path))
  os.remove(path)
  if text:find("unrecognized option", 1, true) then t.skip("env cannot set signals") end
  return text, status, path
end

test("an interrupt is an error that can be caught; the script goes on", function(t)
  local text, status = run(t, [[
    after(0.3)
    local ok, problem = pcall(work)
    print(ok, (tostring(problem):gsub("^.*:%d+: ", "")), x:sum():item() > 0)
  ]])
  t.equal(text, "false\tinterrupted\ttrue\n")
  t.equal(status, 0)
end)

test("an interrupt that nobody catches ends the script at its line", function(t)
  local text, status, path = run(t, "after(0.3) work() print 'not reached'")
  t.equal(status, 130)
  t.ok(text:find(path .. ":%d+: interrupted"), text)
  t.ok(not text:find("not reached", 1, true), text)
end)

test("a second interrupt ends the script, caught or not, and one that calls no operators", function(t)
  local text, status = run(t, [[
    after(0.3)
    print(pcall(work))
    io.stdout:flush()
    after(0.3)
    pcall(work)
    print "not reached"
  ]])
  t.equal(status, 130)
  t.ok(text:find("^false\t") and not text:find("not reached", 1, true), text)
  text, status = run(t, [[
    after(0.3) after(1)
    local n = 0
    while n >= 0 do n = n + 1 end
  ]])
  t.equal(status, 130, text)
end)

-- What threads make when the process ends is neither waited for nor taken from under them.
test("an interrupt ends a pipeline whose threads are at work", function(t)
  local pipelines = { quick = "range(1e9)", ahead = "range(1e9):map { same, workers = 2 }:prefetch(64)",
                      ["on the script's thread"] = "range(1e9):map(same)",
                      ["the script's own"] = "from_index { 1e9, same }:map(same)",
                      batches = "range(1e6):map { one, workers = 2 }:batch(1e5):prefetch(2)",
                      ["in order"] = "range(1e6):map { one, workers = 2, on_error = 'skip' }:batch(1e5):prefetch(2)",
                      ["for ever"] = "range(8):map { endless, workers = 2 }:prefetch(2)" }
  for name, pipeline in pairs(pipelines) do
    local text, status, path = run(t, [[
      local function same(s) return s end
      local function one() return { x = require("perigee").ones { 200, 200 } * 2 } end
      local function endless()
        local x = require("perigee").ones { 300, 300 }
        while true do x = x:matmul(x) * 0.001 end
      end
      after(0.7)
      for _ in pg.data.]] .. pipeline .. [[:each() do end
      print(same, one, endless, "not reached")
    ]])
    t.equal(status, 130, name .. ": " .. text)
    t.ok(text:find(path .. ":%d+: interrupted"), text)
    t.ok(not text:find("not reached", 1, true), text)
  end
end)

test("a script that was started to ignore interrupts does", function(t)
  local text, status = run(t, [[
    after(0)
    local finish = os.time() + 2
    while os.time() < finish do x = x * 1 end
    print "done"
  ]], "--ignore-signal=INT")
  t.equal(text, "done\n")
  t.equal(status, 0)
end)

test("perigee starts without /proc", function(t)
  if process.is_sanitized() then t.skip("a sanitizer needs /proc") end
  local perigee = process.need_perigee(t)
  local hide = "unshare -m sh -c 'mount -t tmpfs none /proc && exec \"$@\"' sh "
  if select(2, process.run(hide .. "true")) ~= 0 then t.skip("/proc cannot be hidden here") end
  local code = [[-e "local pg = require('perigee') print(pg.ones({ 3 }):sum():item())"]]
  t.equal(process.run(("%s '%s' %s"):format(hide, perigee, code)), "3\n")
  local folder, name = perigee:match("^(.*)/([^/]*)$")
  t.equal(process.run(("cd '%s' && %s ./%s %s"):format(folder, hide, name, code)), "3\n")
end)
