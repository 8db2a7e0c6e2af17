-- SPDX-License-Identifier: Apache-2.0
-- perigee launch --max-restarts: a run of which a process fails is started again, and goes on from its checkpoint.

local tests = (debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or ".") .. "/../.."
package.path = tests .. "/?.lua;" .. package.path
local launched, process = require "launched", require "process"

-- Trains ten steps; in the first run rank 1 does `action` at step 6.
local TRAINS = [[
local dir, action = ...
local run = tonumber(os.getenv "PERIGEE_RESTARTS")
local strategy = d.multi_worker()
local model, optimizer
strategy:scope(function()
  pg.manual_seed(5)
  model = pg.nn.Sequential { pg.nn.Linear { 3, 8 }, pg.nn.Tanh {}, pg.nn.Linear { 8, 1 } }
  optimizer = pg.optim.Adam { model:parameters(), lr = 0.01 }
end)
local manager = pg.CheckpointManager { dir, model = model, optimizer = optimizer }
local saved = manager:restore()
local first = saved and saved.step + 1 or 1
if rank == 0 then print(("run %d begins at step %d"):format(run, first)) end
for step = first, 10 do
  if run == 0 and rank == 1 and step == 6 then
    if action == "kill" then os.execute "kill -9 $PPID" end
    if action == "raise" then error "no more apples" end
  end
  pg.manual_seed(step * size + rank)
  local x = pg.randn { 4, 3 }
  strategy:run(function()
    optimizer:zero_grad()
    model(x):square():mean():backward()
    optimizer:step()
  end)
  if rank == 0 then manager:save { step = step } end
  d.barrier()
end
local words = {}
for _, p in ipairs(model:parameters()) do
  for _, v in ipairs(p:detach():reshape(-1):totable()) do words[#words + 1] = ("%.9g"):format(v) end
end
if rank == 0 then print("weights " .. table.concat(words, " ")) end
]]

local function trained(t, action, options)
  local dir = os.tmpname()
  os.remove(dir)
  local text, status = launched.run(t, 2, TRAINS, "PERIGEE_DIST_DEADLINE=10", options, dir .. " " .. action)
  process.run("rm -rf " .. dir)
  return text, status
end

test("a run that failed is started again and ends in the same bits", function(t)
  local expected, status = trained(t, "nothing")
  t.equal(status, 0, expected)
  local weights = expected:match "weights [^\n]+"
  t.ok(weights, expected)
  for _, action in ipairs { "kill", "raise" } do
    local text
    text, status = trained(t, action, "--max-restarts 1")
    t.equal(status, 0, text)
    t.ok(text:find("run 0 begins at step 1", 1, true), text)
    t.ok(text:find("run 1 begins at step 6", 1, true), text)
    t.ok(text:find "perigee launch: status %d+; restart 1 of 1", text)
    t.equal(text:match "weights [^\n]+", weights)
  end
end)

test("no more restarts than asked for", function(t)
  local body = "print('run ' .. os.getenv 'PERIGEE_RESTARTS')\nd.barrier()\nerror 'never'"
  for _, case in ipairs { { "", 1 }, { "--max-restarts 2", 3 } } do
    local text, status = launched.run(t, 1, body, "", case[1])
    t.ok(status ~= 0, text)
    local _, runs = text:gsub("run %d", "")
    t.equal(runs, case[2], text)
  end
  for _, words in ipairs { "--max-restarts -1", "--max-restarts 1.5", "--max-restarts many" } do
    local text, status = launched.run(t, 1, body, "", words)
    t.equal(status, 2, text)
    t.ok(text:find("--max-restarts needs a whole number of at least 0, got " .. words:match "%S+$", 1, true), text)
  end
end)
