-- SPDX-License-Identifier: Apache-2.0
-- Faults of simulated devices, drawn by a seed: whatever fails, whenever, a run ends, and the run behind it goes on
-- from the checkpoint to the bits of one that nothing happened to. PERIGEE_RANDOM_FAULTS=500: so many (12), from the
-- seed PERIGEE_FAULT_SEED (1) on.

local tests = (debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or ".") .. "/../.."
package.path = tests .. "/?.lua;" .. package.path
local draws, process = require "draws", require "process"

-- Trains with a checkpoint a step; prints what it ends in.
local TRAINS = [[
local dir, deadline = ...
local pg = require "perigee"
local nn, optim = pg.nn, pg.optim
pg.dist.deadline(tonumber(deadline))
pg.manual_seed(3)
local strategy = pg.dist.mirrored { devices = { "sim:0", "sim:1", "sim:2" } }
local model, optimizer
strategy:scope(function()
  model = nn.Sequential { nn.Linear { 4, 8 }, nn.Dropout { 0.2 }, nn.Tanh {}, nn.Linear { 8, 1 } }
  optimizer = optim.Adam { model:parameters(), lr = 0.02, offload = "host" }
end)
local manager = pg.CheckpointManager { dir, model = model, optimizer = optimizer, keep = 2 }
local x = pg.randn { 9, 4 }
local ds = pg.data.from_slices { x = x, y = x:sum { axis = 2, keepdim = true } }:batch(9)
local saved = manager:restore()
for step = (saved and saved.step or 0) + 1, 5 do
  pg.manual_seed(step)
  for _, batch in strategy:distribute(ds):each() do
    strategy:run(function(b)
      optimizer:zero_grad()
      nn.mse(model(b.x), b.y):backward()
      optimizer:step()
    end, batch)
  end
  for k = 0, 2 do pg.synchronize("sim:" .. k) end
  manager:save { step = step }
end
local words = {}
for _, p in ipairs(model:parameters()) do
  for _, v in ipairs(p:detach():reshape(-1):totable()) do words[#words + 1] = ("%.9g"):format(v) end
end
print("weights " .. table.concat(words, " "))
]]

-- Environment, and what stands before the command, of one run.
local function draw(random)
  local function pick(list) return list[random(#list)] end
  local kind, settings = pick { "alloc", "launch", "copy", "collective", "lost", "cut", "stuck", "kill" }, ""
  if kind == "kill" then return kind, ("timeout -s KILL %.3f"):format(random(50, 900) / 1000), settings end
  local most = ({ alloc = 40, launch = 900, copy = 250, collective = 35, lost = 900, cut = 35, stuck = 35 })[kind]
  settings = ("PERIGEE_SIM_FAIL=%s:%d%s"):format(kind, random(most), kind == "alloc" and pick { "", "+" } or "")
  return kind, "timeout 30", settings
end

test("none hangs, none spoils a checkpoint, and all runs end in the same bits", function(t)
  local perigee, script = process.need_perigee(t), process.file(TRAINS)
  local function run(before, settings, dir, deadline)
    local devices = "PERIGEE_SIM_DEVICES=3 PERIGEE_SIM_JITTER=20 PERIGEE_SIM_RACES=1"
    return process.run(("%s %s %s '%s' '%s' '%s' %g"):format(devices, settings, before, perigee, script, dir, deadline))
  end
  local function weights(text) return text:match "weights ([^\n]*)" end
  local function folder()
    local dir = os.tmpname()
    os.remove(dir)
    return dir
  end
  local dir = folder()
  local expected = weights(run("timeout 60", "", dir, 0))
  process.run("rm -rf " .. dir)
  t.ok(expected and #expected > 100, "the run that nothing happens to")
  local first, count = tonumber(os.getenv "PERIGEE_FAULT_SEED") or 1, tonumber(os.getenv "PERIGEE_RANDOM_FAULTS") or 12
  local failed = 0
  for seed = first, first + count - 1 do
    local kind, before, settings = draw(draws.generator(seed))
    dir = folder()
    local text, status = run(before, settings, dir, 0.3)
    local what = ("seed %d, %s %s: "):format(seed, kind, settings)
    if status == 0 then
      t.ok(weights(text) == expected, what .. "other bits:\n" .. text)
    else
      failed = failed + 1
      t.ok(status ~= 124 and (kind == "kill" or status == 1), what .. "status " .. status .. ":\n" .. text)
      local again, ended = run("timeout 60", "", dir, 0)
      t.ok(ended == 0 and weights(again) == expected, what .. "goes on otherwise:\n" .. text .. "\n" .. again)
    end
    process.run("rm -rf " .. dir)
  end
  t.ok(failed > 0, "nothing has failed")
  if count > 100 then print(("%d of %d runs failed, and all went on"):format(failed, count)) end
end)
