-- SPDX-License-Identifier: Apache-2.0
-- pg.callbacks, as fit calls them.

local pg = require "perigee"
local nn, optim, callbacks = pg.nn, pg.optim, pg.callbacks

local function setting()
  pg.manual_seed(2)
  local x = pg.randn { 40, 3 }
  return nn.Linear { 3, 1 }, x, x:sum { axis = 2, keepdim = true }
end

local function fit(options)
  local model, x, y = setting()
  local o = { x = x, y = y, loss = "mse", validation_split = 0.25, batch_size = 10, verbose = 0, epochs = 4,
              optimizer = optim.SGD { lr = 0.05 } }
  for key, value in pairs(options) do o[key] = value end
  return model:fit(o), model
end

local function temporary()
  local path = os.tmpname()
  os.remove(path)
  return path
end

test("EarlyStopping stops, and gives the best weights back", function(t)
  local stopping = callbacks.EarlyStopping { "val_loss", patience = 1, restore_best = true }
  local kept, epochs = {}, 0
  local history, model = fit { epochs = 20, optimizer = optim.SGD { lr = 0.2 }, callbacks = { stopping,
    function(job) -- after three epochs it gets worse and worse
      epochs = epochs + 1
      kept[epochs] = job.model.weight:totable()
      if epochs == 3 then job.optimizer.groups[1].lr = 4 end
    end } }
  t.equal(#history, 5)
  t.equal(stopping.best_epoch, 3)
  t.equal(stopping.best, history[3].val_loss)
  t.equal(model.weight:totable(), kept[3])
  t.raises(function() fit { callbacks = { callbacks.EarlyStopping { "val_los" } } } end, "there are loss, val_loss")
  t.raises(function() callbacks.EarlyStopping { mode = "up" } end, "mode")
  t.raises(function() callbacks.EarlyStopping { patience = -1 } end, "patience")
end)

test("values named after what should grow are better when they do", function(t)
  local stopping = callbacks.EarlyStopping { "val_accuracy" }
  t.equal(stopping.options.mode, "max")
  t.equal(callbacks.EarlyStopping { "val_loss" }.options.mode, "min")
end)

test("CSVLogger writes a line an epoch", function(t)
  local path = temporary()
  fit { epochs = 2, metrics = { "mae" }, callbacks = { callbacks.CSVLogger { path } } }
  local lines = {}
  for line in io.lines(path) do lines[#lines + 1] = line end
  os.remove(path)
  t.equal(lines[1], "epoch,loss,mae,seconds,val_loss,val_mae")
  t.equal(#lines, 3)
  t.ok(lines[3]:find("^2,[%d%.e%-]+,[%d%.e%-]+,"))
end)

test("LRScheduler steps by epoch or by batch", function(t)
  local function rates(callback)
    local list = {}
    fit { callbacks = { callback, function(job) list[#list + 1] = job.optimizer.groups[1].lr end } }
    return list
  end
  local function halve(optimizer) return optim.sched.Exponential { optimizer, 0.5 } end
  t.close(rates(callbacks.LRScheduler { halve }), { 0.025, 0.0125, 0.00625, 0.003125 })
  t.close(rates(callbacks.LRScheduler { halve, per = "batch" })[1], 0.05 / 8) -- three batches an epoch
  t.raises(function() callbacks.LRScheduler { halve, per = "step" } end, "per must be")
  t.raises(function() callbacks.LRScheduler { 3 } end, "needs a schedule")
end)

test("Monitor records norms of parameters and gradients", function(t)
  local monitor = callbacks.Monitor { 2, pattern = "weight", print = false }
  local _, model = fit { epochs = 2, callbacks = { monitor } }
  t.equal(#monitor.records, 3) -- batches 2, 4, 6
  local last = monitor.records[3]
  t.equal({ last.done, last.name }, { 6, "weight" })
  t.close(last.norm, model.weight:square():sum():sqrt():item())
  t.ok(last.grad_norm > 0)
end)

test("ModelCheckpoint keeps the best, and fit resumes where it ended", function(t)
  local folder = temporary()
  local function checkpoint() return callbacks.ModelCheckpoint { folder, keep = 1, monitor = "val_loss" } end
  local whole = fit { epochs = 5 }
  fit { epochs = 2, callbacks = { checkpoint() }, resume = true }
  local saving = checkpoint()
  local history = fit { epochs = 5, callbacks = { saving }, resume = true }
  t.equal(#history, 5)
  for i = 1, 5 do t.equal({ history[i].loss, history[i].val_loss }, { whole[i].loss, whole[i].val_loss }) end
  t.equal(select(2, saving.manager:best()), 15) -- three batches an epoch: the fifth is the best
  t.equal(#fit { epochs = 5, callbacks = { checkpoint() }, resume = true }, 5) -- nothing left to do
  os.execute("rm -rf '" .. folder .. "'")
  t.raises(function() fit { resume = true } end, "ModelCheckpoint")
end)

test("ProgressBar prints a line an epoch where there is no terminal", function(t)
  local said = {}
  local stdout = io.stdout
  io.stdout = { write = function(_, ...) said[#said + 1] = table.concat { ... } end, flush = function() end } -- luacheck: ignore
  local ok, err = pcall(fit, { epochs = 2, callbacks = { callbacks.ProgressBar { verbose = 2 } } })
  io.stdout = stdout -- luacheck: ignore
  t.ok(ok, err)
  t.equal(#said, 2)
  t.ok(said[2]:find("^epoch 2/2 .*val_loss"))
end)
