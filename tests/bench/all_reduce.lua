-- SPDX-License-Identifier: Apache-2.0
-- pg.dist.all_reduce of two processes against MPI_Allreduce called directly (the target bench_programs), by turns: the
-- least microseconds a call, and the medians of the rounds' ratios of times (below 1: less), with the least and the
-- most. MPI in a process of one thread, and in one of several, where an engine has to be.
--
--   perigee tests/bench/all_reduce.lua BUILD [ROUNDS]

local pg = require "perigee"
local native = require "perigee.native"

-- As all_reduce_direct.cpp does it.
local function rank()
  local d = pg.dist
  for power = 10, 26, 2 do
    local bytes = 2 ^ power
    local x, calls, least = pg.ones { bytes / 4 }, math.max(1, math.min(20, 2 ^ 22 / bytes)), math.huge
    for round = 0, 21 do
      d.barrier()
      local begin = native.clock()
      for _ = 1, calls do d.all_reduce(x):free() end
      if round > 0 then least = math.min(least, (native.clock() - begin) / calls) end
    end
    if d.rank() == 0 then print(("%d\t%.3f"):format(bytes, least * 1e6)) end
  end
end

if pg.dist.size() > 1 then return rank() end

local build, rounds = (...), tonumber((select(2, ...))) or 5
if not build then error "perigee tests/bench/all_reduce.lua BUILD [ROUNDS]" end
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$" or "."
local COMMANDS = {
  ("'%s/bin/perigee' launch -n 2 --allow-root --no-prefix '%s/all_reduce.lua'"):format(native.home, here),
  ("mpirun -n 2 --bind-to none --oversubscribe --allow-run-as-root '%s/tests/bin/all_reduce_direct'"):format(build),
  ("mpirun -n 2 --bind-to none --oversubscribe --allow-run-as-root '%s/tests/bin/all_reduce_direct' threads"):format(
    build),
}

local function run(command)
  local times = {}
  local pipe = assert(io.popen(command .. " 2>/dev/null"))
  for line in pipe:lines() do
    local bytes, us = line:match "^(%d+)\t([%d.]+)$"
    if bytes then times[tonumber(bytes)] = tonumber(us) end
  end
  pipe:close()
  return times
end

local function median(list)
  table.sort(list)
  return ("%.2f (%.2f to %.2f)"):format(list[math.ceil(#list / 2)], list[1], list[#list])
end

local rows = {} -- by bytes: { least = by side, ratios = to one thread's MPI, threads = to the other }
for _ = 1, rounds do
  local times = {}
  for side, command in ipairs(COMMANDS) do times[side] = run(command) end
  for power = 10, 26, 2 do
    local bytes = 2 ^ power
    local row = rows[bytes] or { least = { math.huge, math.huge, math.huge }, ratios = {}, threads = {} }
    for side = 1, 3 do
      local us = times[side][bytes]
      if not us then error("a side printed nothing of " .. bytes .. " bytes; is bench_programs built?") end
      row.least[side] = math.min(row.least[side], us)
    end
    table.insert(row.ratios, times[1][bytes] / times[2][bytes])
    table.insert(row.threads, times[1][bytes] / times[3][bytes])
    rows[bytes] = row
  end
end
print(("%9s %11s %9s %11s %23s %23s"):format("bytes", "Perigee us", "MPI us", "threads us", "ratio", "ratio, threads"))
for power = 10, 26, 2 do
  local bytes = 2 ^ power
  local row = rows[bytes]
  print(("%9d %11.1f %9.1f %11.1f %23s %23s"):format(bytes, row.least[1], row.least[2], row.least[3],
    median(row.ratios), median(row.threads)))
end
