-- SPDX-License-Identifier: Apache-2.0
-- Data parallelism: several processes train as one does on the whole batches.

local tests = (debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or ".") .. "/../.."
package.path = tests .. "/?.lua;" .. package.path
local launched = require "launched"

-- One process on whole batches, and the strategy, side by side in every process. 20 samples in batches of 8: the last
-- has 4, whose parts differ between three processes.
local COMMON = [[
local nn, optim = pg.nn, pg.optim
pg.set_default_dtype "float64"
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
    local q = b:parameters()[i]
    worst = math.max(worst, ((p - q):abs():max() / (q:abs():max() + 1e-12)):item())
  end
  if not (worst <= (limit or 1e-9)) then error(("rank %d: parameters differ by %g"):format(rank, worst), 2) end
end
local function bit_equal(model)
  for _, p in ipairs(model:parameters()) do
    local all = d.all_gather(p:detach():reshape(1, -1))
    for r = 1, size do
      if not all[r]:eq(all[1]):all():item() then error("replicas differ", 2) end
    end
  end
end
]]

test("fit: equal to one process on whole batches; replicas are bit-equal", function(t)
  for _, n in ipairs { 2, 3 } do
    launched.well(t, n, COMMON .. [[
      local x, y = data()
      local options = { x = x, y = y, loss = "mse", epochs = 5, batch_size = 8, verbose = 0, seed = 4,
                        metrics = { "mae" }, validation = { x = x[{ { 1, 7 } }], y = y[{ { 1, 7 } }] } }
      local function trained(more)
        pg.manual_seed(1)
        local model = build()
        local o = {}
        for k, v in pairs(options) do o[k] = v end
        for k, v in pairs(more) do o[k] = v end
        o.optimizer = o.optimizer()
        return model, model:fit(o)
      end
      for _, case in ipairs {
        { optimizer = function() return optim.SGD { lr = 0.05, momentum = 0.9 } end },
        { optimizer = function() return optim.Adam { lr = 0.01 } end, clip_norm = 0.5 },
        { optimizer = function() return optim.AdamW { lr = 0.01 } end, accumulate = 2 },
      } do
        local alone, expected = trained(case)
        case.strategy = d.multi_worker()
        same(case.strategy.num_replicas_in_sync, size)
        local model, history = trained(case)
        close(model, alone)
        bit_equal(model)
        for epoch = 1, 5 do
          for _, name in ipairs { "loss", "mae", "val_loss", "val_mae" } do
            local a, b = history[epoch][name], expected[epoch][name]
            if math.abs(a - b) > 1e-9 * math.abs(b) then error(name .. " " .. a .. " " .. b) end
          end
        end
      end
    ]])
  end
end)

test("own loops: scope, distribute, run, reduce", function(t)
  launched.well(t, 3, COMMON .. [[
    local x, y = data(20)
    local ds = pg.data.from_slices { x = x, y = y }:batch(8)
    pg.manual_seed(7)
    local alone = build()
    local alone_optimizer = optim.SGD { alone:parameters(), lr = 0.05, momentum = 0.9 }
    pg.manual_seed(rank == 0 and 7 or 100 + rank) -- rank 0's counts
    local strategy = d.multi_worker()
    local model, optimizer
    local answer = strategy:scope(function(v)
      model = build()
      optimizer = optim.SGD { model:parameters(), lr = 0.05, momentum = 0.9 }
      return v
    end, 5)
    same(answer, 5)
    close(model, alone, 0)
    local draws = d.all_gather(pg.rand { 1 }):totable()
    same(draws[1] ~= draws[2] and draws[2] ~= draws[3], true, "the same draws")
    for epoch = 1, 4 do
      for step, batch in ds:each() do
        alone_optimizer:zero_grad()
        nn.mse(alone(batch.x), batch.y):backward()
        optim.clip_grad_norm_(alone:parameters(), 1)
        alone_optimizer:step()
      end
      for step, batch in strategy:distribute(ds):each() do
        local loss = strategy:run(function(batch)
          optimizer:zero_grad()
          local loss = nn.mse(model(batch.x), batch.y)
          loss:backward()
          strategy:reduce_gradients(optimizer)
          optim.clip_grad_norm_(model:parameters(), 1)
          optimizer:step()
          return loss
        end, batch)
        local total = strategy:reduce("mean", loss)
        same(d.all_gather(total):eq(total):all():item(), true)
      end
    end
    close(model, alone)
    bit_equal(model)
    same(strategy:reduce("sum", rank), 3)
    same(strategy:reduce("max", rank + 0.5), 2.5)
    same(strategy:reduce("sum", pg.tensor { 1, rank }), { 3, 3 })
    -- fewer rows than processes: one of them takes part with nothing
    local few = strategy:distribute(pg.data.from_slices { x = x[{ { 1, 2 } }], y = y[{ { 1, 2 } }] }:batch(2))
    for _, batch in few:each() do
      strategy:run(function(b)
        optimizer:zero_grad()
        nn.mse(model(b.x), b.y):backward()
        optimizer:step()
      end, batch)
    end
    alone_optimizer:zero_grad()
    nn.mse(alone(x[{ { 1, 2 } }]), y[{ { 1, 2 } }]):backward()
    alone_optimizer:step()
    close(model, alone)
  ]])
end)

test("parameters that not all use, mixed precision, metrics of counts, callbacks of rank 0", function(t)
  launched.well(t, 2, COMMON .. [[
    local strategy = d.multi_worker()
    local a, b, c, o
    strategy:scope(function()
      a, b, c = pg.ones { 2 }:requires_grad_(), pg.ones { 2 }:requires_grad_(), pg.ones { 2 }:requires_grad_()
      o = optim.SGD { { a, b, c }, lr = 1 }
    end)
    strategy:run(function()
      o:zero_grad()
      ;(rank == 0 and a * 2 + b or a * 4):sum():backward()
      o:step()
    end)
    same(a, { -2, -2 })
    same(b, { 0.5, 0.5 })
    same(c, { 1, 1 })
    same(c.grad == nil, true)
    same(strategy:unused(), { "parameter 3" })

    -- one replica overflows: both skip the step
    pg.set_default_dtype "float32"
    local w = pg.ones { 1 }:requires_grad_()
    local opt, scaler = optim.SGD { { w }, lr = 1 }, pg.amp.GradScaler { init_scale = 4 }
    for round = 1, 2 do
      strategy:run(function()
        opt:zero_grad()
        scaler:scale((w * (rank == 1 and round == 1 and 1e38 or 1)):sum()):backward()
        scaler:step(opt)
        scaler:update()
      end)
      same(w, { round == 1 and 1 or 0 })
    end

    local x = pg.arange(12):to "float32":reshape(12, 1)
    local y = pg.tensor({ 0, 0, 0, 1, 0, 1, 0, 1, 1, 1, 1, 1 }, { dtype = "int64" })
    local folder = os.tmpname() .. ".d"
    local function classes(more)
      pg.manual_seed(2)
      local model = nn.Sequential { nn.Linear { 1, 8 }, nn.BatchNorm1d { 8 }, nn.ReLU {}, nn.Linear { 8, 2 } }
      local told = 0
      local given = { x = x, y = y, loss = "cross_entropy", metrics = { "accuracy", "precision", "f1" }, epochs = 2,
                      batch_size = 6, verbose = 2, shuffle = false, strategy = d.multi_worker(),
                      callbacks = { pg.callbacks.CSVLogger { folder .. rank .. ".csv" },
                                    function() told = told + 1 end } }
      for k, v in pairs(more or {}) do given[k] = v end
      local history = model:fit(given)
      same(told, 2)
      return model, history
    end
    local model, history = classes()
    bit_equal(model)
    local values = { history[2].accuracy, history[2].precision, history[2].f1, history[2].loss }
    same(d.all_gather(pg.tensor { values }):eq(pg.tensor { values }):all():item(), true, "metrics differ")
    local file = io.open(folder .. rank .. ".csv")
    same(file ~= nil, rank == 0, "who writes")
    if file then file:close() os.remove(folder .. rank .. ".csv") end
    -- the mean of the two replicas' buffers is rank 0's
    local norm = model[2].running_mean
    same(d.all_gather(norm:reshape(1, -1))[2]:eq(norm):all():item(), true, "statistics differ")
    raises(function() classes { resume = true } end, "resume=true needs a callback that saves")
    raises(function() classes { strategy = {} } end, "strategy must be one of pg.dist")
  ]])
end)

test("area under the curve is that of all samples, also where a process has none", function(t)
  launched.well(t, 3, COMMON .. [[
    local x = pg.tensor { 0.1, 0.4, 0.35, 0.8, 0.7, 0.2, 0.9 }:reshape(7, 1)
    local y = pg.tensor { 0, 0, 1, 1, 0, 1, 1 }:reshape(7, 1)
    local function area(n, strategy)
      local model = nn.Sequential { nn.Linear { 1, 1 } }
      pg.no_grad(function() model[1].weight:fill_(1) model[1].bias:fill_(0) end)
      local history = model:fit { x = x[{ { 1, n } }], y = y[{ { 1, n } }], loss = "bce_with_logits",
        metrics = { "auc" }, batch_size = 3, epochs = 1, shuffle = false, verbose = 0, strategy = strategy,
        optimizer = optim.SGD { lr = 0 } }
      return history[1].auc
    end
    for _, n in ipairs { 7, 5, 3, 2 } do
      local alone, together = area(n), area(n, d.multi_worker())
      local nan = together ~= together and alone ~= alone
      same(together == alone or nan, true, ("%d: %s, %s"):format(n, together, alone))
    end
  ]])
end)

test("what cannot be: on every rank an error, and no hang", function(t)
  launched.well(t, 2, COMMON .. [[
    local strategy = d.multi_worker()
    raises(function()
      strategy:scope(function() d.multi_worker():scope(function() end) end)
    end, "one inside of another")
    raises(function() strategy:run(function() strategy:run(function() end) end) end, "is called inside of strategy:run")
    raises(function() strategy:reduce_gradients(optim.SGD { { pg.ones { 1 } }, lr = 1 }) end,
           "is for functions that strategy:run calls")
    raises(function() strategy:distribute(pg.data.from_slices { x = pg.ones { 4 } }) end, "needs a dataset of batches")
    raises(function() strategy:reduce("sum", "x") end, "needs a number or a tensor")
    raises(function() strategy:scope(5) end, "strategy:scope")

    -- made outside of the scope, from random numbers of its own
    pg.manual_seed(rank)
    local outside = build()
    local o = optim.SGD { outside:parameters(), lr = 1 }
    raises(function()
      strategy:run(function()
        outside(pg.ones { 2, 5 }):sum():backward()
        o:step()
      end)
    end, "parameter 1 of rank 1 is not that of rank 0")

    local different = nn.Linear { 5, rank + 1 }
    raises(function()
      different:fit { x = pg.ones { 4, 5 }, y = pg.ones { 4, 1 }, loss = "mse", verbose = 0, strategy = strategy }
    end, "ranks have different models: rank 0 has 2 parameters with 6 elements, rank 1 has 2 with 12")
    local n = 4 + 40 * rank
    raises(function()
      nn.Linear { 5, 1 }:fit { x = pg.ones { n, 5 }, y = pg.ones { n, 1 }, loss = "mse", verbose = 0,
                               strategy = strategy }
    end, "ranks have different data: rank 0 has 1 batches, rank 1 has 2")
  ]])
  local text = launched.run(t, 2, "d.multi_worker()",
                            [[TF_CONFIG='{"cluster": {"worker": ["a:1", "b:1", "c:1"]}, "task": {"index": 0}}']])
  t.ok(text:find("TF_CONFIG names 3 processes, and 2 were launched (perigee launch -n N --hosts", 1, true), text)
end)

test("in one process a strategy changes nothing", function(t)
  local pg = require "perigee"
  local strategy = pg.dist.multi_worker()
  t.equal(strategy.num_replicas_in_sync, 1)
  t.equal(tostring(strategy), "strategy(rank 0 of 1)")
  local function trained(with)
    pg.manual_seed(5)
    local x = pg.randn { 10, 3 }
    local model = pg.nn.Linear { 3, 1 }
    model:fit { x = x, y = x:sum { axis = 2, keepdim = true }, loss = "mse", optimizer = "SGD", epochs = 2,
                batch_size = 4, verbose = 0, strategy = with }
    return model.weight:totable()
  end
  t.equal(trained(strategy), trained())
  t.equal(strategy:reduce("sum", 2.5), 2.5)
  t.equal(strategy:unused(), {})
  local a, b = strategy:scope(function() return pg.nn.Linear { 2, 1 }, pg.nn.Linear { 2, 1 } end)
  local optimizer = pg.optim.SGD { { a.weight, b.weight }, lr = 1 }
  strategy:run(function()
    b(pg.ones { 1, 2 }):sum():backward()
    optimizer:step()
  end)
  t.equal(strategy:unused(), { "weight" })
end)

test("gradients are sent while backward computes: the same bits as before the step, whatever a step does", function(t)
  for _, n in ipairs { 2, 3 } do
    launched.well(t, n, COMMON .. [[
      pg.set_default_dtype "float32"
      -- Two buckets: the first takes 1 MB. `aside` has gradients in some steps, on some ranks.
      local x = pg.rand { 12, 256 }
      local y = x:sum { axis = 2, keepdim = true }
      local function trained(overlap, case)
        pg.manual_seed(1)
        local strategy = d.multi_worker { overlap = overlap }
        local model, aside, optimizer
        strategy:scope(function()
          model = nn.Sequential { nn.Linear { 256, 1024 }, nn.Tanh {}, nn.Linear { 1024, 1024 }, nn.Tanh {},
                                  nn.Linear { 1024, 1024 }, nn.Tanh {}, nn.Linear { 1024, 1 } }
          aside = nn.Linear { 256, 1 }
          local params = model:parameters()
          for _, p in ipairs(aside:parameters()) do params[#params + 1] = p end
          optimizer = optim.SGD { params, lr = 0.01 }
        end)
        local early, sent = {}, 0 -- sent: most buckets on their way when the first layer's backward has not begun
        local ds = strategy:distribute(pg.data.from_slices { x = x, y = y }:batch(5)) -- the last has 2
        local step = 0
        for epoch = 1, 2 do
          for _, batch in ds:each() do
            step = step + 1
            strategy:run(function(b)
              optimizer:zero_grad()
              case(step, function(with_aside)
                local out = model[1](b.x)
                out:hook(function()
                  local reducer = strategy._reducers[optimizer]
                  sent = math.max(sent, reducer and (reducer:counts()) or 0)
                end)
                for i = 2, 7 do out = model[i](out) end
                if with_aside then out = out + aside(b.x) end
                nn.mse(out, b.y):backward()
              end, strategy, optimizer)
              optimizer:step()
            end, batch)
            local reducer = strategy._reducers[optimizer]
            early[step] = select(2, reducer:counts())
          end
        end
        bit_equal(model)
        local list = {}
        for _, p in ipairs(optimizer.groups[1].params) do list[#list + 1] = p:detach():reshape(-1) end
        return pg.cat(list), early, sent
      end
      local function compare(what, case, first_early)
        local expected = trained(false, case)
        local got, early, sent = trained(true, case)
        same(got:eq(expected):all():item(), true, what)
        if first_early and not (early[first_early] == 2) then error(what .. ": nothing was sent early") end
        if first_early and sent == 0 then error(what .. ": nothing was sent before backward was over") end
        if not first_early then
          for _, count in ipairs(early) do same(count, 0, what) end
        end
      end
      compare("one backward", function(_, backward) backward(false) end, 2)
      compare("two", function(_, backward) backward(false) backward(false) end, 4)
      compare("one or two", function(step, backward)
        backward(false)
        if step % 3 == 0 then backward(false) end
      end, 2)
      compare("one or two, as the rank is", function(step, backward)
        backward(false)
        if (step + rank) % 2 == 0 then backward(false) end
      end, 2)
      compare("aside at times", function(step, backward) backward(step > 3) end, 2)
      compare("aside on one rank", function(step, backward) backward(rank == 1 and step % 2 == 0) end, 2)
      compare("a gradient that is dropped", function(step, backward, _, optimizer)
        backward(true)
        if step == 5 then optimizer:zero_grad() end
      end, 2)
      compare("halved behind backward", function(_, backward, _, optimizer)
        backward(true)
        for _, p in ipairs(optimizer.groups[1].params) do p.grad:mul_(0.5) end
      end, 2)
      compare("another in its place", function(_, backward, _, optimizer)
        backward(true)
        for _, p in ipairs(optimizer.groups[1].params) do p.grad = p.grad * 0.5 end
      end, 2)
      compare("clipped", function(_, backward, strategy, optimizer)
        backward(true)
        strategy:reduce_gradients(optimizer)
        optim.clip_grad_norm_(optimizer.groups[1].params, 0.1)
      end, 2)
    ]])
  end
end)

test("compiled functions: the same bits, and sent as early", function(t)
  launched.well(t, 2, COMMON .. [[
    pg.set_default_dtype "float32"
    local function trained(compile)
      pg.manual_seed(1)
      local strategy = d.multi_worker()
      local model, optimizer = strategy:scope(function()
        local model = nn.Sequential { nn.Linear { 64, 512 }, nn.Tanh {}, nn.Linear { 512, 512 }, nn.Tanh {},
                                      nn.Linear { 512, 1 } }
        return model, optim.SGD { model:parameters(), lr = 0.01 }
      end)
      pg.manual_seed(2 + rank)
      local function backward(x)
        optimizer:zero_grad()
        model(x):square():mean():backward()
      end
      local function step(x)
        backward(x)
        optimizer:step()
      end
      local f = compile == "backward" and pg.compile(backward) or compile == "step" and pg.compile(step) or step
      for i = 1, 6 do
        local x = pg.randn { 8, 64 }
        strategy:run(function()
          f(x)
          if compile == "backward" then optimizer:step() end
        end)
        same(select(2, strategy._reducers[optimizer]:counts()) > 0, i > 1, ("step %d, early"):format(i))
      end
      bit_equal(model)
      local list = {}
      for _, p in ipairs(model:parameters()) do list[#list + 1] = p:detach():reshape(-1) end
      return pg.cat(list)
    end
    local expected = trained()
    for _, compile in ipairs { "backward", "step" } do
      same(trained(compile):eq(expected):all():item(), true, compile)
    end
  ]])
end)

test("who holds a gradient sees the sum; one of a step before stays as it was", function(t)
  launched.well(t, 2, COMMON .. [[
    local strategy = d.multi_worker()
    local model, optimizer = strategy:scope(function()
      local model = nn.Linear { 3, 2 }
      return model, optim.SGD { model:parameters(), lr = 0 }
    end)
    local weight, bias = model.weight, model.bias
    local before, held
    for step = 1, 4 do
      strategy:run(function()
        optimizer:zero_grad()
        model(pg.full({ 1, 3 }, step * (rank + 1))):sum():backward()
        if step == 3 then held = weight.grad end
        optimizer:step()
      end)
      same(weight.grad, { { 1.5 * step, 1.5 * step, 1.5 * step }, { 1.5 * step, 1.5 * step, 1.5 * step } }, step)
      same(bias.grad, { 1, 1 }, step)
      if step == 2 then before = weight.grad end
    end
    same(held, { { 4.5, 4.5, 4.5 }, { 4.5, 4.5, 4.5 } })
    same(before, { { 3, 3, 3 }, { 3, 3, 3 } })
  ]])
end)

test("a script that ends with gradients on their way ends well", function(t)
  launched.well(t, 2, COMMON .. [[
    local strategy = d.multi_worker()
    local model, optimizer = strategy:scope(function()
      local model = nn.Sequential { nn.Linear { 512, 512 }, nn.Tanh {}, nn.Linear { 512, 512 } }
      return model, optim.SGD { model:parameters(), lr = 0.1 }
    end)
    local function backward() model(pg.ones { 4, 512 }):sum():backward() end
    for _ = 1, 3 do
      strategy:run(function()
        optimizer:zero_grad()
        backward()
        optimizer:step()
      end)
    end
    optimizer:zero_grad()
    strategy:run(backward)
    same((strategy._reducers[optimizer]:counts()) > 0, true)
  ]])
end)
