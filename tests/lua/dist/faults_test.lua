-- SPDX-License-Identifier: Apache-2.0
-- What goes wrong between processes: every other one ends with an error that names the rank and the call, and none
-- stays behind.

local tests = (debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or ".") .. "/../.."
package.path = tests .. "/?.lua;" .. package.path
local launched, process = require "launched", require "process"

-- Runs a script in three processes that must fail, and answers what they printed. No process of it is left.
local function failing(t, body, environment)
  local begun = os.time()
  local mark = launched.mark()
  local text, status = launched.run(t, 3, body, "PERIGEE_DIST_DEADLINE=2 " .. (environment or ""), nil, mark)
  t.ok(status ~= 0, "status " .. status .. ": " .. text)
  t.ok(os.time() - begun < 20, "took long")
  t.equal(launched.left_of(mark), "")
  return text
end

local function says(t, text, rank, message)
  local found
  for line in text:gmatch "[^\n]+" do
    found = found or line:find(("[%d] perigee: "):format(rank), 1, true) and line:find(message, 1, true)
  end
  if not found then error(("rank %d does not say %q: %s"):format(rank, message, text), 2) end
end

-- Where the script of meet_then, which follows one more line, calls all_reduce.
local _, before = launched.HEAD:gsub("\n", "")
local AT = (".lua:%d"):format(before + 4)

local function meet_then(action)
  return ("d.barrier()\nif rank == 1 then %s end\nd.all_reduce(pg.ones{3})"):format(action)
end

test("a rank that raises: the others name it and its message", function(t)
  local text = failing(t, meet_then 'error "no more apples"')
  for _, rank in ipairs { 0, 2 } do
    says(t, text, rank, "all_reduce: cannot be completed: rank 1 has failed: ")
    says(t, text, rank, "no more apples")
    says(t, text, rank, AT .. ": all_reduce")
  end
  text = failing(t, meet_then "os.exit(3)")
  says(t, text, 0, "rank 1 has failed: os.exit(3)")
end)

test("a rank that is killed or stopped, or never comes", function(t)
  -- The launcher ends all others when one has died: who would say it last may not come to it.
  local text = failing(t, meet_then 'os.execute "kill -9 $PPID"')
  t.ok(text:find "all_reduce: cannot be completed: rank %d has ended", text)
  text = failing(t, meet_then 'os.execute "kill -STOP $PPID"')
  t.ok(text:find("all_reduce: took more than 2 seconds: rank 1 (stopped) has not come to it", 1, true), text)
  text = failing(t, 'if rank == 1 then os.execute "sleep 5" end\nd.barrier()')
  for _, rank in ipairs { 0, 2 } do
    says(t, text, rank, "dist.barrier: within 2 seconds, rank 1 has not come to make a group")
  end
  text = failing(t, "d.barrier()\nif rank == 1 then d.receive(pg.ones{1}, {from=0}) end\nd.all_reduce(pg.ones{3})")
  says(t, text, 1, "dist.receive: took more than 2 seconds: rank 0 of the group did not answer")
end)

test("a rank that is stopped somewhere while groups of all are made", function(t)
  for try = 1, 4 do
    local text = failing(t, ([[
      d.deadline(1)
      d.barrier()
      if rank == 1 then os.execute "p=$PPID; (sleep 0.0%d; kill -STOP $p) > /dev/null 2>&1 &" end
      while true do d.group { 0, 1, 2 } end
    ]]):format(2 * try))
    for _, rank in ipairs { 0, 2 } do says(t, text, rank, "dist.group: ") end
    -- The two may have stopped one group apart: one of them waits for both others.
    t.ok(text:find("rank 1 (stopped)", 1, true) or text:find("(rank 1 stopped)", 1, true), text)
  end
end)

test("a rank that gives up at its deadline tells the others, which would wait for longer", function(t)
  -- Nobody ends before all have heard: there is nothing else that they could see.
  local hears = [[
    local begun = os.time()
    local ok, err = pcall(function()
      for _ = 1, 2 do d.all_reduce(pg.ones { 3 }) end -- one that is late finds in the first what others have sent
    end)
    io.write(("rank %d: %s\n"):format(rank, tostring(err)))
    io.flush()
    if ok or os.time() - begun > 10 then error("was not told", 0) end
    os.execute "sleep 6"
    error(err, 0)
  ]]
  local function is_heard(text, message)
    for rank = 1, 2 do
      local line = text:match(("rank %d: ([^\n]*)"):format(rank)) or ""
      t.ok(line:find(".lua:%d+: all_reduce: cannot be completed: rank 0 has failed: ") and line:find(message, 1, true),
           text)
    end
  end
  is_heard(failing(t, [[
    d.barrier()
    if rank == 0 then
      d.deadline(1)
      raises(function() d.all_reduce(pg.ones { 3 }) end, "took more than 1 seconds: rank 1 has not come to it")
      os.execute "sleep 12"
      return
    end
    d.deadline(60)
    if rank == 1 then os.execute "sleep 3" end
  ]] .. hears), "all_reduce: took more than 1 seconds: rank 1 has not come to it")
  is_heard(failing(t, [[
    d.barrier()
    if rank == 0 then
      d.deadline(1)
      raises(function() d.group { 0, 1 } end, "within 1 seconds, rank 1 has not come to make a group")
      os.execute "sleep 12"
      return
    end
    d.deadline(60)
    if rank == 1 then os.execute "sleep 3" end
  ]] .. hears), "making a group: within 1 seconds, rank 1 has not come to make a group")
end)

-- Rank 1 is at `its` call, the others at `ours`: each says what another one is at, or has heard it.
local function is_at_another(t, text, ours, its)
  for rank = 0, 2 do says(t, text, rank, "cannot be completed: ") end
  t.ok(text:find("rank 1 is at [the ]*" .. its) or text:find("rank [02] is at [the ]*" .. ours), text)
end

test("a rank that comes to its end early, or calls something else", function(t)
  local text = failing(t, meet_then "return")
  for _, rank in ipairs { 0, 2 } do says(t, text, rank, "all_reduce: ") end
  text = failing(t, meet_then "d.broadcast(pg.ones{3})")
  is_at_another(t, text, "all_reduce of 3 float32", "broadcast of 3 float32")
end)

test("another number of elements, or others, without the debug mode", function(t)
  for _, n in ipairs { 4, 100000 } do
    local text = failing(t, meet_then(("d.all_reduce(pg.ones{%d})"):format(n)))
    local how = n == 4 and "sum of %d of float32" or "all_reduce of %d float32"
    is_at_another(t, text, how:format(3), how:format(n))
  end
  local text = failing(t, meet_then "d.all_reduce(pg.ones{3}:to 'float64')")
  is_at_another(t, text, "sum of 3 of float32", "sum of 3 of float64")
  text = failing(t, meet_then "d.all_reduce(pg.ones{3}, {op='max'})")
  is_at_another(t, text, "sum of 3 of float32", "largest of 3 of float32")
end)

test("the debug mode names both sides of what does not agree, at once and on every rank", function(t)
  local debug_mode = "PERIGEE_DIST_DEBUG=1"
  local text = failing(t, meet_then "d.broadcast(pg.ones{3})", debug_mode)
  for rank = 0, 2 do
    says(t, text, rank, "ranks do not make the same call: rank 0: all_reduce sum of float32 [3] at ")
    says(t, text, rank, AT .. "; rank 1: broadcast (root 0) of float32 [3] at ")
  end
  text = failing(t, meet_then "d.all_reduce(pg.ones{4})", debug_mode)
  says(t, text, 2, "rank 1: all_reduce sum of float32 [4] at ")
  text = failing(t, meet_then "d.all_reduce(pg.ones{3}:to 'float64')", debug_mode)
  says(t, text, 0, "rank 1: all_reduce sum of float64 [3] at ")
  text = failing(t, meet_then "d.barrier()", debug_mode)
  says(t, text, 1, "rank 1: barrier")
  launched.well(t, 2, [[
    if rank == 0 then d.broadcast(pg.ones { 2 }) else d.broadcast(pg.zeros { 2 }) end -- two lines, one call
    d.all_reduce(pg.ones { 2 }, { op = "max" })
    d.barrier()
  ]], debug_mode)
end)

test("words of perigee launch", function(t)
  local perigee = launched.need(t)
  local function refused(words, message)
    local text, status = process.run(("env -u SLURM_NTASKS %s launch %s"):format(perigee, words))
    t.equal(status, 2)
    t.ok(text:find(message, 1, true), text)
  end
  refused("", "which script? perigee launch -n N script.lua")
  refused("script.lua", "how many processes?")
  refused("-n x script.lua", "-n needs a whole number of at least 1, got x")
  refused("-n 0 script.lua", "-n needs a whole number of at least 1, got 0")
  refused("-n", "-n needs a value")
  refused("--nodes 3 script.lua", "unknown option --nodes")
  refused("-n 2 --mpirun /nowhere/mpirun script.lua", "/nowhere/mpirun was not found; Debian: apt-get install")
  if process.run "id -u" == "0\n" then
    refused("-n 2 script.lua", "--allow-root lets it")
  end
  local text = process.run(perigee .. " launch --help")
  t.ok(text:find("usage: perigee launch -n N", 1, true), text)
  text = launched.well(t, 2, "print(arg[1], arg[2], os.getenv 'OMP_NUM_THREADS')", "OMP_NUM_THREADS=3", nil, "a 'b c'")
  t.ok(text:find("[0] a\tb c\t3", 1, true), text)
end)
