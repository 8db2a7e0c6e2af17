-- SPDX-License-Identifier: Apache-2.0
-- Graphs that come and go leave nothing behind: neither memory, nor symbols that make building slower.
-- PERIGEE_REBUILT_GRAPHS says how many.

local here = debug.getinfo(1, "S").source:match("^@(.*)lua/graph/[^/]*$") or "../../"
package.path = here .. "?.lua;" .. package.path

local pg = require "perigee"
local process = require "process"

local COUNT = tonumber(os.getenv "PERIGEE_REBUILT_GRAPHS") or 10000
local PARTS = 10

local function resident() -- in kB
  for line in io.lines "/proc/self/status" do
    local n = line:match "VmRSS:%s+(%d+)"
    if n then return tonumber(n) end
  end
end

-- Of symbols of all kinds: fed, found out, computed; in a body; in names that differ.
local function build(i)
  local name = "batch" .. i % 7
  return pg.graph(function(g)
    local x = g:placeholder { "x", shape = { name, 3 } }
    local rows = x:gt(0):nonzero()
    local y = pg.scan { init = x:sum { axis = 1 }, xs = x, body = function(c, v) return c + v end }
    return { y = y, flat = x:reshape { x:size(1) * 3 } * 2, found = pg.zeros { rows:size(1) + i % 5 } }
  end)
end

test(("%d graphs, one after the other, leave memory and building as they were"):format(COUNT), function(t)
  if process.is_sanitized() then t.skip("freed memory is kept by AddressSanitizer") end
  local part, times, memory = COUNT / PARTS, {}, {}
  for p = 1, PARTS do
    local began = os.clock()
    for i = 1, part do
      build(i)
      -- How many there are at once would else depend on when the collector runs, and what is resident on that.
      if i % 100 == 0 then pg.memory.collect() end
    end
    times[p] = os.clock() - began
    memory[p] = resident()
  end
  local grown = (memory[PARTS] - memory[2]) * 1024 / (COUNT * (PARTS - 2) / PARTS) -- a graph
  t.ok(grown < 200, ("%.0f bytes remain of each graph"):format(grown))
  local early, late = math.min(times[2], times[3], times[4]), math.min(times[8], times[9], times[10])
  t.ok(late < 1.5 * early, ("%d graphs take %.3f s at first, %.3f s at last"):format(part, early, late))
end)
