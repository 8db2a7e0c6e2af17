-- SPDX-License-Identifier: Apache-2.0
-- pg.dist.all_reduce of two processes against MPI_Allreduce called directly (the target bench_programs), by turns: the
-- least microseconds a call, megabytes a second, and the median of the rounds' ratios of times (below 1: less), with
-- the least and the most.
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

local rows = {}
for _ = 1, rounds do
  local ours, theirs = run(COMMANDS[1]), run(COMMANDS[2])
  for power = 10, 26, 2 do
    local bytes = 2 ^ power
    local a, b, row = ours[bytes], theirs[bytes], rows[power] or { mine = math.huge, plain = math.huge, ratios = {} }
    if not a or not b then error("a side printed nothing of " .. bytes .. " bytes; is bench_programs built?") end
    row.mine, row.plain = math.min(row.mine, a), math.min(row.plain, b)
    table.insert(row.ratios, a / b)
    rows[power] = row
  end
end
print(("%9s %12s %12s %10s %10s %7s"):format("bytes", "Perigee us", "MPI us", "MB/s", "MB/s", "ratio"))
for power = 10, 26, 2 do
  local bytes, row = 2 ^ power, rows[power]
  table.sort(row.ratios)
  print(("%9d %12.1f %12.1f %10.0f %10.0f %7.2f (%.2f to %.2f)"):format(bytes, row.mine, row.plain, bytes / row.mine,
    bytes / row.plain, row.ratios[math.ceil(#row.ratios / 2)], row.ratios[1], row.ratios[#row.ratios]))
end
