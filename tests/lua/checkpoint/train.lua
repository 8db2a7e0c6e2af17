-- SPDX-License-Identifier: Apache-2.0
-- train.lua FOLDER loop|fit: a short training that goes on from FOLDER's checkpoints, for checkpoint_test.lua, which
-- kills it. What it has reported saved is in FOLDER/reported; what it came to, bit by bit, in FOLDER/result.

local pg = require "perigee"
local nn, optim, data = pg.nn, pg.optim, pg.data
local folder, kind = arg[1], arg[2]

local EPOCHS, SAMPLES, BATCH, EVERY = 30, 200, 8, 4

pg.manual_seed(3)
local x = pg.randn { SAMPLES, 6 }
local y = (x * pg.tensor { 1, -1, 2, 0, 1, -2 }):sum { axis = 2 }:gt(0):to("int64")
local ds = data.from_slices { x = x, y = y }:shuffle { seed = 5 }:batch(BATCH)
local model = nn.Sequential { nn.Linear { 6, 16 }, nn.BatchNorm1d { 16 }, nn.ReLU {}, nn.Dropout { 0.2 },
                              nn.Linear { 16, 2 } }

local function reported()
  local file, last = io.open(folder .. "/reported", "rb"), 0
  for line in file and file:lines() or function() end do last = tonumber(line) or last end
  if file then file:close() end
  return last
end

local function report(step)
  local file = assert(io.open(folder .. "/reported", "ab"))
  file:write(("%d\n"):format(step))
  file:close()
end

local function check_kept(step)
  local last = reported()
  if step < last then error(("step %d was reported saved, step %d is there"):format(last, step)) end
end

local function finish(losses)
  local lines = {}
  for name, t in pairs(model:state()) do
    for i, v in ipairs(t:to("float64"):flatten():totable()) do
      lines[#lines + 1] = ("%s %d %.17g"):format(name, i, v)
    end
  end
  table.sort(lines)
  for i, loss in ipairs(losses) do lines[#lines + 1] = ("loss %d %.17g"):format(i, loss) end
  require("perigee.native").write_text(folder .. "/result", table.concat(lines, "\n"))
end

local function own_loop()
  local optimizer = optim.Adam { model:parameters(), lr = 0.01, amsgrad = true }
  local schedule = optim.sched.Cosine { optimizer, EPOCHS }
  local manager = pg.CheckpointManager { folder .. "/checkpoints", keep = 2, model = model, optimizer = optimizer,
                                         schedule = schedule }
  local saved = manager:restore() or { step = 0, epoch = 1, losses = {} }
  check_kept(saved.step)
  local done, losses = saved.step, saved.losses
  for epoch = saved.epoch, EPOCHS do
    local batches = ds:each { from = saved.data }
    saved.data = nil
    for _, batch in batches do
      optimizer:zero_grad()
      local loss = nn.cross_entropy(model(batch.x), batch.y)
      loss:backward()
      optimizer:step()
      done = done + 1
      losses[epoch] = loss:item()
      if done % EVERY == 0 then
        manager:save { step = done, epoch = epoch, losses = losses, data = batches }
        report(done)
      end
    end
    schedule:step()
  end
  finish(losses)
end

local function by_fit()
  local checkpoint = pg.callbacks.ModelCheckpoint { folder .. "/checkpoints", keep = 2, steps = EVERY }
  local history = model:fit {
    data = ds, validation = data.from_slices { x = x, y = y }:batch(50), loss = "cross_entropy", accumulate = 3,
    optimizer = optim.RMSprop { lr = 0.002, momentum = 0.5 }, epochs = EPOCHS, verbose = 0, resume = true,
    metrics = { "accuracy" },
    callbacks = { checkpoint, pg.callbacks.CSVLogger { folder .. "/log.csv" },
      pg.callbacks.LRScheduler { function(optimizer) return optim.sched.Exponential { optimizer, 0.95 } end },
      { on_epoch_begin = function()
          check_kept(select(2, checkpoint.manager:latest()) or 0)
        end,
        on_batch_end = function()
          local _, step = checkpoint.manager:latest()
          if step and step > reported() then report(step) end
        end } },
  }
  local losses = {}
  for i, entry in ipairs(history) do losses[i] = entry.loss + 1000 * entry.val_loss + entry.accuracy end
  finish(losses)
end

if kind == "fit" then by_fit() else own_loop() end
