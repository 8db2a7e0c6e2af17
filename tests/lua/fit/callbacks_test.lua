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

test("EarlyStopping gives the best weights back however the training ends", function(t)
  local stopping, kept = callbacks.EarlyStopping { "loss", mode = "max", patience = 9, restore_best = true }, {}
  local function keep(job) kept[job.epoch] = job.model.weight:totable() end
  local history, model = fit { callbacks = { stopping, keep } }
  t.equal({ #history, stopping.best_epoch }, { 4, 1 })
  t.equal(model.weight:totable(), kept[1])
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
  t.raises(function() rates(callbacks.LRScheduler { function() end }) end, "must return a schedule, got nil")
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

test("Monitor tells what the process used", function(t)
  local monitor = callbacks.Monitor { 100, seconds = 0, print = false }
  fit { epochs = 3, callbacks = { monitor, function() -- some work, so that the clocks go on
    local stop = os.clock() + 0.01
    while os.clock() < stop do pg.ones({ 64 }):sum() end
  end } }
  for _, name in ipairs { "processor", "memory", "memory of " .. pg.device() } do
    local u = monitor.usage[name]
    t.ok(u and u.count > 1 and u.least > 0 and u.least <= u.mean and u.mean <= u.most, name)
    t.close(u.mean, u.total / u.count)
  end
  t.equal(monitor.usage.memory.unit, "bytes")
  local text = require("perigee.profile.usage").report(monitor.usage)
  t.ok(text:find "processor +mean [%d.]+ cores, least [%d.e-]+ cores, most [%d.]+ cores %(%d+ times%)", text)
  t.raises(function() callbacks.Monitor { seconds = -1 } end, "seconds must be at least 0, got %-1")
end)

test("TensorBoard writes each epoch's values, batches, histograms and the graph", function(t)
  local folder = temporary()
  local board = callbacks.TensorBoard { folder, every = 2, histograms = 2, input = { 3 } }
  local history = fit { epochs = 4, callbacks = { board } } -- three batches an epoch
  local run = require("perigee.events.runs").open(folder)
  run:update()
  t.equal(run.curves.loss.x, { 3, 6, 9, 12 })
  for i = 1, 4 do
    t.close(run.curves.loss.y[i], history[i].loss, 1e-6)
    t.close(run.curves.val_loss.y[i], history[i].val_loss, 1e-6)
  end
  t.equal(run.curves["batch/loss"].x, { 2, 4, 6, 8, 10, 12 })
  t.close(run.curves.lr.y[1], 0.05, 1e-6)
  t.equal(run.curves.epoch.y, { 1, 2, 3, 4 })
  run:close()
  local file = assert(io.open(board.writer.path, "rb"))
  local text = file:read("*a")
  file:close()
  os.execute("rm -r '" .. folder .. "'")
  for _, name in ipairs { "parameters/weight", "gradients/bias", "_output_shapes" } do
    t.ok(text:find(name, 1, true), name)
  end
  t.raises(function() callbacks.TensorBoard { folder, every = -1 } end, "every must be at least 0, got %-1")
  t.raises(function() callbacks.TensorBoard {} end, "dir")
end)

test("TensorBoard: a training that was taken up again has one curve", function(t)
  local folder = temporary()
  local function run_to(epochs)
    fit { epochs = epochs, resume = true,
          callbacks = { callbacks.TensorBoard { folder .. "/board" },
                        callbacks.ModelCheckpoint { folder .. "/kept" } } }
  end
  run_to(2)
  run_to(4)
  local run = require("perigee.events.runs").open(folder .. "/board")
  run:update()
  os.execute("rm -r '" .. folder .. "'")
  t.equal(run.curves.loss.x, { 3, 6, 9, 12 })
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

test("fit goes on where a callback stopped it, to the same bits", function(t)
  local function halve(optimizer) return optim.sched.Exponential { optimizer, 0.5 } end
  local folder = temporary()
  local function go(stop_at, resume)
    local batches = 0
    local stopping = { last = true, on_batch_end = function(_, job)
      batches = batches + 1
      if job.done == stop_at then job.stop = true end
    end }
    local history, model = fit { resume = resume, callbacks = { callbacks.ModelCheckpoint { folder },
                                 callbacks.LRScheduler { halve }, callbacks.EarlyStopping { patience = 9 }, stopping } }
    return { #history, history[#history].loss, history[#history].lr, model.weight:totable() }, batches
  end
  local function clean() os.execute("rm -rf '" .. folder .. "'") end
  local whole = go()
  for _, stop_at in ipairs { 1, 3, 5, 6 } do -- of 3 batches an epoch
    clean()
    t.equal(select(2, go(stop_at)), stop_at)
    local resumed, batches = go(nil, true)
    t.equal(resumed, whole)
    t.equal(batches, 12 - stop_at)
  end
  clean()
end)

test("an EarlyStopping that has stopped stays so after resume, unless it is more patient", function(t)
  local folder = temporary()
  local function go(patience)
    return #fit { resume = true, epochs = 6, callbacks = { callbacks.ModelCheckpoint { folder },
                  callbacks.EarlyStopping { "loss", mode = "max", patience = patience } } }
  end
  t.equal({ go(1), go(1), go(2), go(9) }, { 3, 3, 4, 6 })
  os.execute("rm -rf '" .. folder .. "'")
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
