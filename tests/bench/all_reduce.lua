-- SPDX-License-Identifier: Apache-2.0
-- pg.dist.all_reduce of two processes against MPI_Allreduce called directly (the target bench_programs), by turns: the
-- least microseconds a call, and the medians of the rounds' ratios of times (below 1: less), with the least and the
-- most. MPI in a process of one thread, and in one of several, where an engine has to be. With a Python also against
-- PyTorch's all_reduce over gloo and mpi4py's Allreduce, as far as it has them.
--
--   perigee tests/bench/all_reduce.lua BUILD [ROUNDS [PYTHON [PYTHON_WITH_MPI4PY]]]

local pg = require "perigee"
local native = require "perigee.native"

-- As all_reduce_direct.cpp does it.
local function rank()
  local d = pg.dist
  for power = 10, 26, 2 do
    local bytes = 2 ^ power
    local x, calls, least = pg.ones { bytes / 4 }, math.max(1, math.min(20, 2 ^ 22 / bytes)), math.huge
    for round = 1, math.max(22, math.min(400, 2 ^ 24 / bytes)) do
      d.barrier()
      local begin = native.clock()
      for _ = 1, calls do d.all_reduce(x):free() end
      if round > 1 then least = math.min(least, (native.clock() - begin) / calls) end
    end
    if d.rank() == 0 then print(("%d\t%.3f"):format(bytes, least * 1e6)) end
  end
end

if pg.dist.size() > 1 then return rank() end

local build, rounds, python, mpi4py = (...), tonumber((select(2, ...))) or 5, select(3, ...)
if not build then error "perigee tests/bench/all_reduce.lua BUILD [ROUNDS [PYTHON [PYTHON_WITH_MPI4PY]]]" end
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$" or "."
local MPIRUN = "mpirun -n 2 --bind-to none --oversubscribe --allow-run-as-root "
local SIDES = {
  { "Perigee", ("'%s/bin/perigee' launch -n 2 --allow-root --no-prefix '%s/all_reduce.lua'"):format(native.home,
                                                                                                   here) },
  { "MPI", ("%s '%s/tests/bin/all_reduce_direct'"):format(MPIRUN, build) },
  { "MPI, threads", ("%s '%s/tests/bin/all_reduce_direct' threads"):format(MPIRUN, build) },
}
local function add_peer(name, with, how)
  if not with then return end
  SIDES[#SIDES + 1] = { name, ("MASTER_ADDR=127.0.0.1 MASTER_PORT=29577 %s '%s' '%s/all_reduce_peers.py' %s"):format(
    MPIRUN, with, here, how) }
end
add_peer("gloo", python, "gloo")
add_peer("mpi4py", mpi4py, "mpi4py")

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
  return ("%.2f (%.2f-%.2f)"):format(list[math.ceil(#list / 2)], list[1], list[#list])
end

local least, ratios = {}, {} -- by side, by bytes
for side = 1, #SIDES do least[side], ratios[side] = {}, {} end
for _ = 1, rounds do
  local own
  for side, one in ipairs(SIDES) do
    local times = run(one[2])
    own = own or times
    for power = 10, 26, 2 do
      local bytes = 2 ^ power
      local us = times[bytes]
      if not us then error(one[1] .. " printed nothing of " .. bytes .. " bytes; is bench_programs built?") end
      least[side][bytes] = math.min(least[side][bytes] or math.huge, us)
      ratios[side][bytes] = ratios[side][bytes] or {}
      table.insert(ratios[side][bytes], own[bytes] / us)
    end
  end
end
local head = ("%9s"):format "bytes"
for side, one in ipairs(SIDES) do
  head = head .. (" %13s"):format(one[1]) .. (side > 1 and (" %18s"):format "ratio" or "")
end
print(head)
for power = 10, 26, 2 do
  local bytes = 2 ^ power
  local line = ("%9d"):format(bytes)
  for side = 1, #SIDES do
    line = line .. (" %13.1f"):format(least[side][bytes]) ..
           (side > 1 and (" %18s"):format(median(ratios[side][bytes])) or "")
  end
  print(line)
end
