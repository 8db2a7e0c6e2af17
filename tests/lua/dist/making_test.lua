-- SPDX-License-Identifier: Apache-2.0
-- Groups are made until a deadline, wherever one of their ranks stops.

local tests = (debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or ".") .. "/../.."
package.path = tests .. "/?.lua;" .. package.path
local launched, process = require "launched", require "process"

local STOPS = "/../tests/mpi_stops/mpi_stops.so" -- of the build, behind the folder of perigee

-- Three processes, of which rank 1 stops in a call of MPI while `ranks` make a group.
local function stops_at(t, call, ranks)
  local begun = os.time()
  local mark = launched.mark()
  local now = os.tmpname()
  os.remove(now)
  local environment = ("LD_PRELOAD=%s MPI_STOPS_AT=%s MPI_STOPS_WHEN=%s"):format(
    process.need_perigee(t):match "^(.*)/" .. STOPS, call, now)
  local text, status = launched.run(t, 3, ([[
    d.barrier()
    d.deadline(2)
    if rank == 1 then io.open("%s", "w"):close() end
    if %s then d.group { %s } end
    os.execute "sleep 30"
  ]]):format(now, ranks == "0, 1" and "rank < 2" or "true", ranks), environment, nil, mark)
  os.remove(now)
  t.ok(status ~= 0 and os.time() - begun < 20, ("%s: status %d: %s"):format(call, status, text))
  t.ok(text:find "%[0%] perigee: [^\n]*%.lua:%d+: dist.group: ", call .. ": " .. text)
  t.ok(text:find("within 2 seconds, rank 1 (stopped) has not come to make a group", 1, true), call .. ": " .. text)
  t.equal(launched.left_of(mark), "")
end

test("a rank stops while groups are made", function(t)
  launched.need(t)
  if process.is_sanitized() then t.skip "a sanitizer has to be loaded first" end
  stops_at(t, "MPI_Comm_create_group", "0, 1")
  stops_at(t, "MPI_Comm_idup", "0, 1")
  stops_at(t, "MPI_Ibcast", "0, 1")
  stops_at(t, "MPI_Iallreduce", "0, 1")
  stops_at(t, "MPI_Comm_idup", "0, 1, 2")
end)
