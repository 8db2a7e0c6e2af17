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
local weights = model:parameters()
]] .. launched.LEAVES_WEIGHTS

-- Answers what was printed, the status and the weights.
local function trained(t, action, options, body)
  local dir = os.tmpname()
  os.remove(dir)
  local text, status = launched.run(t, 2, body or TRAINS, "PERIGEE_DIST_DEADLINE=10", options, dir .. " " .. action)
  os.remove(dir .. ".csv")
  return text, status, launched.take_weights(dir)
end

test("a run that failed is started again and ends in the same bits", function(t)
  local expected, status, weights = trained(t, "nothing")
  t.equal(status, 0, expected)
  t.ok(weights, expected)
  for _, action in ipairs { "kill", "raise" } do
    local text, ended
    text, status, ended = trained(t, action, "--max-restarts 1")
    t.equal(status, 0, text)
    t.ok(text:find("run 0 begins at step 1", 1, true), text)
    t.ok(text:find("run 1 begins at step 6", 1, true), text)
    t.ok(text:find "perigee launch: status %d+; restart 1 of 1", text)
    t.equal(ended, weights)
  end
end)

-- The same by fit: dropout, running statistics, a scaler and metrics in the middle of an epoch.
local FITS = [[
local dir, action = ...
local run = tonumber(os.getenv "PERIGEE_RESTARTS")
local strategy = d.multi_worker()
pg.manual_seed(5)
local x = pg.randn { 30, 3 }
local y = (x:sum { axis = 2, keepdim = true }):gt(0):to "float32"
local model
strategy:scope(function()
  model = pg.nn.Sequential { pg.nn.Linear { 3, 8 }, pg.nn.BatchNorm1d { 8 }, pg.nn.Dropout { 0.3 },
                             pg.nn.Linear { 8, 1 } }
end)
local breaks = { on_batch_end = function(_, job)
  if run > 0 or rank ~= 1 or job.done ~= 9 then return end
  if action == "kill" then os.execute "kill -9 $PPID" end
  if action == "raise" then error "no more apples" end
end }
local begun
local history = model:fit { x = x, y = y, loss = "bce_with_logits", metrics = { "auc", "binary_accuracy" }, epochs = 3,
  batch_size = 5, seed = 2, verbose = 0, strategy = strategy, resume = true, optimizer = pg.optim.Adam { lr = 0.01 },
  amp = { dtype = "bfloat16", scaler = pg.amp.GradScaler { init_scale = 8, growth_interval = 4 } },
  callbacks = { pg.callbacks.CSVLogger { dir .. ".csv" }, breaks,
                { on_batch_end = function(_, job) begun = begun or job.done end },
                pg.callbacks.EarlyStopping { monitor = "loss", patience = 5 },
                pg.callbacks.ModelCheckpoint { dir, steps = 2 } } }
if rank == 0 then print(("run %d begins with batch %d"):format(run, begun)) end
local words = {}
for _, t in pairs(model:state()) do
  for _, v in ipairs(t:detach():reshape(-1):totable()) do words[#words + 1] = ("%.9g"):format(v) end
end
table.sort(words)
for _, entry in ipairs(history) do
  words[#words + 1] = ("%.17g %.17g %.17g"):format(entry.loss, entry.auc, entry.binary_accuracy)
end
if rank == 0 then
  local file = io.open(dir .. ".weights", "w")
  file:write(table.concat(words, " "))
  file:close()
end
]]

test("fit goes on from its checkpoint in the middle of an epoch and ends in the same bits", function(t)
  local expected, status, weights = trained(t, "nothing", "", FITS)
  t.equal(status, 0, expected)
  t.ok(weights, expected)
  for _, action in ipairs { "kill", "raise" } do
    local text, ended
    text, status, ended = trained(t, action, "--max-restarts 1", FITS)
    t.equal(status, 0, text)
    t.ok(text:find("run 1 begins with batch 9", 1, true), text)
    t.equal(ended, weights)
  end
end)

test("checkpoints of another number of processes, or that not all see, are refused", function(t)
  local dir = os.tmpname()
  os.remove(dir)
  local function fits(n, folder)
    local body = FITS:gsub("local dir, action = %.%.%.", function() return "local dir = " .. folder end)
    return launched.run(t, n, body, "PERIGEE_DIST_DEADLINE=10")
  end
  local own = ("%q"):format(dir)
  t.equal(select(2, fits(2, own)), 0)
  local text, status = fits(1, own)
  t.ok(status ~= 0, text)
  t.ok(text:find("the checkpoint is of a training by 2 processes, this one is by 1", 1, true), text)
  text, status = fits(2, own .. " .. (rank == 0 and '' or '.other')")
  t.ok(status ~= 0, text)
  t.ok(text:find("ranks find different checkpoints: rank 0 one after 18 batches, rank 1 none", 1, true), text)
  process.run(("rm -rf %s %s.other %s.csv %s.weights"):format(dir, dir, dir, dir))
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
