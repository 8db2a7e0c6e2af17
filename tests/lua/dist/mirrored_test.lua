-- SPDX-License-Identifier: Apache-2.0
-- Data parallelism over devices of one process: several train as one does on the whole batches. Each script runs in a
-- process of its own, which has four simulated devices.

local tests = (debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or ".") .. "/../.."
package.path = tests .. "/?.lua;" .. package.path
local launched = require "launched"
local process = require "process"

-- 20 samples in batches of 8: the last has 4, whose parts differ between three devices.
local COMMON = [[
local nn, optim = pg.nn, pg.optim
local FOUR = { "sim:0", "sim:1", "sim:2", "sim:3" }
local function first(n) return { unpack(FOUR, 1, n) } end
local function data(n)
  pg.manual_seed(3)
  local x = pg.randn { n or 20, 5 }
  return x, (x * x):sum { axis = 2, keepdim = true }
end
local function build()
  return nn.Sequential { nn.Linear { 5, 16 }, nn.Tanh {}, nn.Linear { 16, 1 } }
end
local function close(a, b, limit)
  local worst = 0
  for i, p in ipairs(a:parameters()) do
    local q = b:parameters()[i]:to "cpu"
    worst = math.max(worst, ((p:to "cpu" - q):abs():max() / (q:abs():max() + 1e-12)):item())
  end
  if not (worst <= (limit or 1e-9)) then error(("parameters differ by %g"):format(worst), 2) end
end
-- Every device's parameters are the first one's, bit for bit.
local function bit_equal(strategy, model)
  local all = strategy:run(function()
    local list = {}
    for i, p in ipairs(model:parameters()) do list[i] = p:to("cpu"):totable() end
    return list
  end)
  for r = 2, strategy.num_replicas_in_sync do same(all[r], all[1], "replicas differ") end
end
]]

local function run(t, body, environment)
  local path = process.file(launched.HEAD .. COMMON .. "---\n" .. body .. "\nprint 'came to its end'\n")
  os.rename(path, path .. ".lua")
  local text, status = process.run(("PERIGEE_SIM_DEVICES=4 PERIGEE_SIM_JITTER=100 %s timeout 60 '%s' %s.lua"):format(
    environment or "", process.need_perigee(t), path))
  os.remove(path .. ".lua")
  return text, status
end

local function well(t, body, environment)
  local text, status = run(t, body, environment)
  if status ~= 0 or not text:find "came to its end" then error(text, 0) end
end

test("fit: equal to one device on whole batches; replicas are bit-equal", function(t)
  well(t, [[
    pg.set_default_dtype "float64"
    local x, y = data()
    local options = { x = x, y = y, loss = "mse", epochs = 5, batch_size = 8, verbose = 0, seed = 4,
                      metrics = { "mae", "mse" }, validation = { x = x[{ { 1, 7 } }], y = y[{ { 1, 7 } }] } }
    local function trained(more)
      pg.manual_seed(1)
      local o = {}
      for k, v in pairs(options) do o[k] = v end
      for k, v in pairs(more) do o[k] = v end
      o.optimizer = o.optimizer()
      local model = o.strategy and o.strategy:scope(build) or build()
      return model, model:fit(o)
    end
    for _, case in ipairs {
      { optimizer = function() return optim.SGD { lr = 0.05, momentum = 0.9 } end },
      { optimizer = function() return optim.Adam { lr = 0.01 } end, clip_norm = 0.5 },
      { optimizer = function() return optim.AdamW { lr = 0.01 } end, accumulate = 2 },
    } do
      case.strategy = nil
      local alone, expected = trained(case)
      for _, devices in ipairs { first(1), first(2), first(3), { "cpu", "sim:2" } } do
        case.strategy = d.mirrored { devices = devices }
        same(case.strategy.num_replicas_in_sync, #devices)
        local model, history = trained(case)
        close(model, alone)
        bit_equal(case.strategy, model)
        for epoch = 1, 5 do
          for _, name in ipairs { "loss", "mae", "mse", "val_loss", "val_mae" } do
            local a, b = history[epoch][name], expected[epoch][name]
            if not (math.abs(a - b) <= 1e-9 * math.abs(b)) then error(name .. " " .. a .. " " .. b) end
          end
        end
        -- what is saved is a plain model's
        local plain = build()
        local path = os.tmpname() .. ".safetensors"
        pg.save(path, model:state())
        plain:load_state((pg.load(path)))
        os.remove(path)
        close(plain, model, 0)
      end
    end
  ]])
end)

test("own loops: scope, distribute, run, reduce, accumulation", function(t)
  well(t, [[
    pg.set_default_dtype "float64"
    local x, y = data(20)
    local ds = pg.data.from_slices { x = x, y = y }:batch(8)
    for _, count in ipairs { 1, 2, 4 } do
      pg.manual_seed(7)
      local alone = build()
      local alone_optimizer = optim.Adam { alone:parameters(), lr = 0.05 }
      local strategy = d.mirrored { devices = first(count) }
      local model, optimizer, schedule
      pg.manual_seed(7)
      local answer, more = strategy:scope(function(v)
        model = build()
        optimizer = optim.Adam { model:parameters(), lr = 0.05 }
        schedule = optim.sched.Step(optimizer, 3)
        return v, pg.device()
      end, 5)
      same({ answer, more }, { 5, "sim:0" })
      local alone_schedule = optim.sched.Step(alone_optimizer, 3)
      local average = optim.EMA { model }
      close(model, alone, 0)
      for epoch = 1, 4 do
        for step, batch in ds:each() do
          alone_optimizer:zero_grad()
          nn.mse(alone(batch.x), batch.y):backward()
          nn.mse(alone(batch.x), batch.y):backward()
          optim.clip_grad_norm_(alone:parameters(), 1)
          alone_optimizer:step()
          alone_schedule:step()
        end
        for step, batch in strategy:distribute(ds):each() do
          local devices, ranks, loss = strategy:run(function(batch)
            optimizer:zero_grad()
            local loss
            for _ = 1, 2 do -- accumulates
              loss = nn.mse(model(batch.x), batch.y)
              loss:backward()
            end
            strategy:reduce_gradients(optimizer)
            optim.clip_grad_norm_(model:parameters(), 1)
            optimizer:step()
            schedule:step()
            average:update()
            same(batch.x.device, pg.device())
            same(model[1].weight.device, pg.device())
            same(strategy:reduce("sum", 1), count)
            same(strategy:reduce("max", pg.tensor { strategy.rank, 1 }), { count - 1, 1 })
            return pg.device(), strategy.rank, loss
          end, batch)
          if count > 1 then
            for k = 1, count do same({ devices[k], ranks[k], loss[k].requires_grad }, { FOUR[k], k - 1, false }) end
          end
          local mean = strategy:reduce("mean", loss)
          same(mean.device, "sim:0")
          same(math.abs(mean:item() - strategy:reduce("mean", loss):item()) < 1e-12, true)
        end
      end
      close(model, alone)
      bit_equal(strategy, model)
      same(schedule.done, 12)
      same(average.updates, 12)
      same(strategy.rank, 0)
      same(pg.device(), "cpu")
      if count > 1 then
        local values, none = strategy:run(function() return strategy.rank + 0.5 end)
        same(none, nil)
        same({ values[1], values[2], #values }, { 0.5, 1.5, count })
        same(strategy:reduce("sum", values), count * count / 2)
        same(strategy:reduce("mean", values), count / 2)
        same(strategy:reduce("max", values), count - 0.5)
        same(strategy:reduce("min", values), 0.5)
        raises(function() return values:item() end, "a list of values, one a device")
      end
    end
  ]])
end)

test("parameters change outside of the strategy too: load_state, freeze, dtype, lazy sizes", function(t)
  well(t, [[
    local strategy = d.mirrored { devices = first(2) }
    local model, optimizer = strategy:scope(function()
      local model = nn.Sequential { nn.Linear { 4 }, nn.ReLU {}, nn.Linear { 1 } } -- sizes come with the first input
      return model, optim.SGD { model:parameters(), lr = 0.1 }
    end)
    local ds = strategy:distribute(pg.data.from_slices { x = pg.randn { 8, 3 }, y = pg.randn { 8, 1 } }:batch(4))
    local function epoch()
      for _, batch in ds:each() do
        strategy:run(function(b)
          optimizer:zero_grad()
          nn.mse(model(b.x), b.y):backward()
          optimizer:step()
        end, batch)
      end
    end
    epoch()
    bit_equal(strategy, model)
    local state = {}
    for name, v in pairs(model:state()) do state[name] = v:clone() * 2 end
    model:load_state(state)
    bit_equal(strategy, model)
    model[1]:freeze()
    local before = model[1].weight:to("cpu"):totable()
    epoch()
    bit_equal(strategy, model)
    same(model[1].weight, before)
    strategy:run(function() same(model[1].weight.requires_grad, false) end)
    model:unfreeze()
    model:to "float64"
    strategy:run(function() same(model[1].weight.dtype, "float64") end)
    -- a step changes what the closed-over tensor shows, and gradients are each device's own
    local w = strategy:scope(function()
      local w = pg.ones { 2 }:requires_grad_()
      optimizer = optim.SGD { { w }, lr = 1 }
      return w
    end)
    strategy:run(function()
      (w * (strategy.rank + 1)):sum():backward()
      same(w.grad, { strategy.rank + 1, strategy.rank + 1 })
      optimizer:step()
      same(w, { -0.5, -0.5 })
    end)
    same(w, { -0.5, -0.5 })
    same(w.grad, { 1.5, 1.5 })
  ]])
end)

test("parameters that not all use, GradScaler, autocast, dropout, BatchNorm", function(t)
  well(t, [[
    local strategy = d.mirrored { devices = first(2) }
    local a, b, c, o
    strategy:scope(function()
      a, b, c = pg.ones { 2 }:requires_grad_(), pg.ones { 2 }:requires_grad_(), pg.ones { 2 }:requires_grad_()
      o = optim.SGD { { a, b, c }, lr = 1 }
    end)
    strategy:run(function()
      o:zero_grad()
      ;(strategy.rank == 0 and a * 2 + b or a * 4):sum():backward()
      o:step()
      same(a, { -2, -2 })
    end)
    same(a, { -2, -2 })
    same(b, { 0.5, 0.5 })
    same(c, { 1, 1 })
    same(c.grad == nil, true)
    same(strategy:unused(), { "parameter 3" })

    -- of layers by their names, in fit too
    local half, half_optimizer = strategy:scope(function()
      local model = nn.Sequential { nn.Linear { 2, 1 }, nn.Sequential { nn.Linear { 2, 1 } }, nn.Linear { 2, 1 } }
      return model, optim.SGD { model:parameters(), lr = 0.1 }
    end)
    half[3]:freeze()
    strategy:run(function()
      half[1](pg.ones { 3, 2 }):sum():backward()
      half_optimizer:step()
    end)
    same(strategy:unused(), { "1.0.weight", "1.0.bias" })
    local Half = nn.class "Half"
    function Half:init() self.used, self.aside = nn.Linear { 2, 1 }, nn.Linear { 2, 1 } end
    function Half:forward(x) return self.used(x) end
    strategy:scope(function() return Half() end):fit {
      x = pg.ones { 4, 2 }, y = pg.ones { 4, 1 }, loss = "mse", verbose = 0, strategy = strategy }
    same(strategy:unused(), { "aside.weight", "aside.bias" })

    -- one replica overflows: both skip the step
    local w, opt = strategy:scope(function()
      local w = pg.ones { 1 }:requires_grad_()
      return w, optim.SGD { { w }, lr = 1 }
    end)
    local scaler = pg.amp.GradScaler { init_scale = 4 }
    for round = 1, 3 do
      local skipped = strategy:run(function()
        opt:zero_grad()
        scaler:scale((w * (strategy.rank == 1 and round == 1 and 1e38 or 1)):sum()):backward()
        if round == 3 then
          scaler:unscale(opt)
          same(w.grad, { 1 })
        end
        scaler:step(opt)
        return scaler:update()
      end)
      same({ skipped[1], skipped[2] }, { round == 1, round == 1 })
      same(w, { 2 - round })
      same(scaler:get_scale(), 2)
    end

    -- autocast, and a yield inside of it
    strategy:run(function()
      pg.amp.autocast("bfloat16", function()
        opt:zero_grad()
        ;(w * 2):sum():backward()
        opt:step()
        same(pg.device(), FOUR[strategy.rank + 1])
        same(pg.matmul(pg.ones { 2, 2 }, pg.ones { 2, 2 }).dtype, "bfloat16")
      end)
    end)
    same(pg.matmul(pg.ones { 2, 2 }, pg.ones { 2, 2 }).dtype, "float32")

    -- replicas draw different numbers; the same in every run from one seed
    local function draws()
      pg.manual_seed(11)
      local list = {}
      for i = 1, 2 do
        local v = strategy:run(function() return pg.nn.Dropout { 0.5 }(pg.ones { 32 }) end)
        list[i] = { v[1]:totable(), v[2]:totable() }
      end
      return list, pg.rand { 2 }:totable()
    end
    local one, behind = draws()
    local function differ(x, y)
      for i = 1, #x do if x[i] ~= y[i] then return true end end
      return false
    end
    same(differ(one[1][1], one[1][2]) and differ(one[1][1], one[2][1]) and differ(one[1][2], one[2][2]), true)
    local again, behind_again = draws()
    same(again, one)
    same(behind_again, behind)
    pg.manual_seed(11)
    same(pg.nn.Dropout { 0.5 }(pg.ones { 32 }), one[1][1]) -- the first replica draws what one device does

    -- running statistics: of the first replica's part
    local x = pg.arange(8):to "float32":reshape(8, 1)
    local norm = strategy:scope(function() return nn.BatchNorm1d { 1, momentum = 1 } end)
    local ds = strategy:distribute(pg.data.from_slices { x = x }:batch(8))
    for _, batch in ds:each() do strategy:run(function(b) norm(b.x) end, batch) end
    same(norm.running_mean, { 1.5 })
    norm:eval()
    local means = strategy:run(function() return norm.running_mean end)
    same({ means[1]:item(), means[2]:item() }, { 1.5, 1.5 })
  ]])
end)

test("fit: classes, metrics of counts and lists, callbacks, BatchNorm, amp, resume in an epoch", function(t)
  well(t, [[
    local x = pg.arange(12):to "float32":reshape(12, 1)
    local y = pg.tensor({ 0, 0, 0, 1, 0, 1, 0, 1, 1, 1, 1, 1 }, { dtype = "int64" })
    local function classes(more, norm)
      pg.manual_seed(2)
      local strategy = more.strategy
      local function make()
        return nn.Sequential { nn.Linear { 1, 8 }, norm and nn.BatchNorm1d { 8 } or nn.Identity {}, nn.ReLU {},
                               nn.Dropout { norm and 0.2 or 0 }, nn.Linear { 8, 2 } }
      end
      local model = strategy and strategy:scope(make) or make()
      local given = { x = x, y = y, loss = "cross_entropy", metrics = { "accuracy", "precision", "f1" }, epochs = 2,
                      batch_size = norm and 6 or 5, verbose = 0, shuffle = false, validation = { x = x, y = y } }
      for k, v in pairs(more) do given[k] = v end
      return model, model:fit(given)
    end
    local alone, expected = classes {}
    local strategy = d.mirrored { devices = first(3) }
    local model, history = classes { strategy = strategy }
    for _, name in ipairs { "accuracy", "precision", "f1", "val_accuracy", "val_f1" } do
      same(history[2][name], expected[2][name], name)
    end
    close(model, alone, 1e-4)
    local told = 0
    model, history = classes({ strategy = d.mirrored { devices = first(2) }, amp = "float16",
                               callbacks = { function() told = told + 1 end } }, true)
    same(told, 2)
    bit_equal(strategy, model)
    same(history[2].loss == history[2].loss, true)

    local scores = pg.tensor { 0.1, 0.4, 0.35, 0.8, 0.7, 0.2, 0.9 }:reshape(7, 1)
    local truth = pg.tensor { 0, 0, 1, 1, 0, 1, 1 }:reshape(7, 1)
    local function area(strategy)
      local function make() return nn.Sequential { nn.Linear { 1, 1 } } end
      local model = strategy and strategy:scope(make) or make()
      pg.no_grad(function() model[1].weight:fill_(1) model[1].bias:fill_(0) end)
      return model:fit { x = scores, y = truth, loss = "bce_with_logits", metrics = { "auc" }, batch_size = 3,
                         epochs = 1, shuffle = false, verbose = 0, strategy = strategy,
                         optimizer = optim.SGD { lr = 0 } }[1].auc
    end
    same(area(d.mirrored { devices = first(3) }), area())

    -- stopped in the middle of an epoch, and gone on with: the same bits
    local folder = os.tmpname() .. ".d"
    local function resumed(stop, folder, devices)
      local seen = 0
      local callbacks = { pg.callbacks.ModelCheckpoint { folder, steps = 1 } }
      callbacks[2] = { on_batch_end = function(_, job)
        seen = seen + 1
        if seen == stop then job.stop = true end
      end }
      return classes({ strategy = d.mirrored { devices = first(devices) }, epochs = 3, callbacks = callbacks,
                       resume = true }, true)
    end
    local whole, its_history = resumed(nil, folder .. "1", 2)
    resumed(5, folder .. "2", 2)
    raises(function() resumed(nil, folder .. "2", 3) end, "of a training by 2 devices, this one is by 3")
    local parts, other = resumed(nil, folder .. "2", 2)
    close(parts, whole, 0)
    same(other[3].loss, its_history[3].loss)
    same(other[2].accuracy, its_history[2].accuracy)
    os.execute("rm -rf " .. folder .. "*")
  ]])
end)

test("what cannot be is an error, once, and no hang; the strategy works on behind it", function(t)
  well(t, [[
    raises(function() d.mirrored { devices = { "sim:0", "sim:1", "sim:0" } } end, "sim:0 is named twice")
    raises(function() d.mirrored { devices = { "sim:0", "sim:9" } } end, "sim:9")
    raises(function() d.mirrored { devices = {} } end, "devices must be a list of names")
    raises(function() d.mirrored { devices = "sim:0" } end, "devices must be a list of names")
    local strategy = d.mirrored { devices = first(2) }
    same(tostring(strategy), "strategy(sim:0, sim:1)")
    raises(function()
      strategy:scope(function() d.mirrored { devices = first(2) }:scope(function() end) end)
    end, "one inside of another")
    raises(function()
      strategy:scope(function() d.multi_worker():scope(function() end) end)
    end, "one inside of another")
    raises(function() strategy:run(function() strategy:run(function() end) end) end, "is called inside of strategy:run")
    raises(function() strategy:run(5) end, "strategy:run")
    raises(function() strategy:scope(function() return nn.Linear { 2, 2 }:to "cpu" end) end,
           "parameter weight is on cpu, and the first device of the strategy is sim:0")
    local model, o = strategy:scope(function()
      local model = build()
      return model, optim.SGD { model:parameters(), lr = 1 }
    end)
    raises(function() strategy:reduce_gradients(o) end, "is for functions that strategy:run calls")
    raises(function() strategy:distribute(pg.data.from_slices { x = pg.ones { 4 } }) end, "needs a dataset of batches")
    raises(function() strategy:reduce("sum", 5) end, "needs what strategy:run has returned")
    raises(function() strategy:reduce("product", 5) end, "op must be sum, mean, max or min")
    raises(function() strategy:reduce("sum", strategy:run(function() return "x" end)) end, 'got string "x"')
    raises(function()
      strategy:reduce("sum", strategy:run(function() return pg.ones { strategy.rank + 1 } end))
    end, "replica 0 has {1}, replica 1 has {2}")

    local function few(rows)
      for _, batch in strategy:distribute(pg.data.from_slices { x = pg.ones { rows, 5 } }:batch(rows)):each() do
        strategy:run(function(b) return model(b.x) end, batch)
      end
    end
    raises(function() few(1) end, "a batch of 1 samples for 2 devices")
    few(2)
    raises(function()
      build():fit { x = pg.ones { 4, 5 }, y = pg.ones { 4, 1 }, loss = "mse", verbose = 0, strategy = strategy }
    end, "is on cpu, and the first device of the strategy is sim:0")

    -- made outside of the scope
    local outside = pg.device("sim:0", build)
    local other = optim.SGD { outside:parameters(), lr = 1 }
    raises(function() strategy:run(function() other:step() end) end,
           "parameter 1 of SGD was not made inside of strategy:scope")
    -- replicas that do different things
    local second = strategy:scope(function() return optim.SGD { model:parameters(), lr = 1 } end)
    local function step() model(pg.ones { 2, 5 }):sum():backward() o:step() end
    raises(function() strategy:run(function() if strategy.rank == 0 then step() end end) end,
           "replicas do not do the same: replica 0 (sim:0) is at optimizer:step(), replica 1 (sim:1) has ended")
    raises(function()
      strategy:run(function()
        if strategy.rank == 0 then step() else model(pg.ones { 2, 5 }):sum():backward() second:step() end
      end)
    end, "is at optimizer:step() of another object")
    raises(function() strategy:run(function() if strategy.rank == 1 then error("on one") end step() end) end, "on one")
    raises(function() strategy:run(function() coroutine.yield(1) end) end, "the function yields")
    raises(function() strategy:run(function() optim.LBFGS { model:parameters() }:step(step) end) end, "LBFGS")
    same({ pg.device(), strategy.rank, model[1].weight.device }, { "cpu", 0, "sim:0" })
    strategy:run(step)
    bit_equal(strategy, model)
  ]])
  -- device 1 fails: an error that names it, and not a hang
  local text, status = run(t, [[
    local strategy = d.mirrored { devices = first(2) }
    local model, o = strategy:scope(function()
      local model = build()
      return model, optim.SGD { model:parameters(), lr = 1 }
    end)
    for _ = 1, 20 do
      strategy:run(function()
        o:zero_grad()
        model(pg.ones { 2, 5 }):sum():backward()
        o:step()
      end)
    end
    pg.synchronize()
  ]], "PERIGEE_SIM_FAIL=launch:200")
  t.ok(status ~= 0 and status ~= 124, text)
  t.ok(text:find "sim:[01]", text)
end)
