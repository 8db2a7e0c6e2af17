-- SPDX-License-Identifier: Apache-2.0
-- Training in a graph: what a session's runs make of a model and an optimizer is, bit by bit, what eager steps make.

local pg = require "perigee"
local nn, optim = pg.nn, pg.optim

local f64 = { dtype = "float64" }

local function net()
  return nn.Sequential { nn.Linear { 4, 6 }, nn.BatchNorm1d { 6 }, nn.Tanh {}, nn.Dropout { 0.25 }, nn.Linear { 6, 3 } }
           :to "float64"
end

local function batches(count)
  local list = {}
  for i = 1, count do list[i] = { x = pg.randn({ 8, 4 }, f64), y = pg.randint(0, 3, { 8 }) } end
  return list
end

local function eager_step(model, opt, o)
  return function(batch)
    opt:zero_grad()
    local loss = nn.cross_entropy(model(batch.x), batch.y)
    loss:backward()
    if o and o.clip_norm then optim.clip_grad_norm_(model, o.clip_norm) end
    if o and o.clip_value then optim.clip_grad_value_(model, o.clip_value) end
    opt:step()
    return loss:item()
  end
end

-- A session of the model's training, and the graph.
local function recorded(model, opt, o)
  local g = pg.graph(function(g)
    local x = g:placeholder { "x", shape = { "n", 4 }, dtype = "float64" }
    local y = g:placeholder { "y", shape = { "n" }, dtype = "int64" }
    local loss = nn.cross_entropy(model(x), y)
    return { loss = loss, train = opt:minimize(loss, o) }
  end)
  return pg.Session { g }, g
end

local function same_model(t, a, b, what)
  local want = b:state()
  for name, value in pairs(a:state()) do t.equal(value, want[name], what .. ": " .. name) end
end

local function same_optimizer(t, a, b, what)
  local got, want = a:state(), b:state()
  for g, group in ipairs(want.groups) do
    t.equal(got.groups[g].steps, group.steps, what .. ": steps")
    for slot, list in pairs(group.slots) do
      for i, value in ipairs(list) do
        t.equal(got.groups[g].slots[slot] and got.groups[g].slots[slot][i], value, ("%s: %s %d"):format(what, slot, i))
      end
    end
  end
end

-- Trains twins, one by an eager step and one by a session's runs; `between(i, opt)` is called behind each step.
local function compare(t, what, make, options, between, model)
  model = model or net()
  local twin, list = model:clone(), batches(5)
  local eager, opt = make(model:parameters()), make(twin:parameters())
  local step, s = eager_step(model, eager, options), recorded(twin, opt, options)
  for i, batch in ipairs(list) do
    pg.manual_seed(i)
    local want = step(batch)
    pg.manual_seed(i)
    local got = s:run({ "loss", "train" }, batch)
    t.equal(got.loss:item(), want, ("%s: loss %d"):format(what, i))
    t.equal(got.train:item(), i, what)
    if between then
      between(i, eager)
      between(i, opt)
    end
  end
  s:commit(twin)
  s:commit(opt)
  same_model(t, twin, model, what)
  same_optimizer(t, opt, eager, what)
  return s, twin, opt
end

local matrices = function(list)
  local kept = {}
  for _, p in ipairs(list) do
    if p:dim() > 1 then kept[#kept + 1] = p end
  end
  return kept
end

local makers = {
  SGD = function(p) return optim.SGD { p, lr = 0.1 } end,
  ["SGD momentum"] = function(p)
    return optim.SGD { p, lr = 0.1, momentum = 0.9, nesterov = true, weight_decay = 1e-2 }
  end,
  Adam = function(p) return optim.Adam { p, lr = 1e-2, weight_decay = 1e-2 } end,
  ["Adam amsgrad"] = function(p) return optim.Adam { p, lr = 1e-2, amsgrad = true, maximize = true } end,
  AdamW = function(p) return optim.AdamW { p, lr = 1e-2 } end,
  Adamax = function(p) return optim.Adamax { p } end, NAdam = function(p) return optim.NAdam { p } end,
  RAdam = function(p) return optim.RAdam { p } end,
  Adagrad = function(p) return optim.Adagrad { p, lr_decay = 0.1 } end,
  Adadelta = function(p) return optim.Adadelta { p } end,
  RMSprop = function(p) return optim.RMSprop { p, momentum = 0.5, centered = true } end,
  Rprop = function(p) return optim.Rprop { p } end, Lion = function(p) return optim.Lion { p } end,
  LAMB = function(p) return optim.LAMB { p, weight_decay = 0.1 } end,
  LARS = function(p) return optim.LARS { p, weight_decay = 0.1 } end,
  Adafactor = function(p) return optim.Adafactor { p, weight_decay = 0.1 } end,
  Muon = function(p) return optim.Muon { matrices(p) } end,
}

for name, make in pairs(makers) do
  test("a session's training is eager training bit by bit: " .. name, function(t) compare(t, name, make) end)
end

test("schedules: what they set holds from the next run on", function(t)
  local schedules = {
    Step = function(opt) return optim.sched.Step { opt, 2 } end,
    Cosine = function(opt) return optim.sched.Cosine { opt, 10 } end,
    OneCycle = function(opt) return optim.sched.OneCycle { opt, 0.2, total_steps = 10 } end,
  }
  for name, make in pairs(schedules) do
    for _, optimizer in ipairs { "SGD momentum", "Adam", "LAMB" } do
      if not (optimizer == "LAMB" and name == "OneCycle") then
        local by = {}
        compare(t, name .. " " .. optimizer, function(p)
          local opt = makers[optimizer](p)
          by[opt] = make(opt)
          return opt
        end, nil, function(_, opt) by[opt]:step() end)
      end
    end
  end
end)

test("limits of gradients, and parameter groups", function(t)
  compare(t, "norm", makers.Adam, { clip_norm = 0.1 })
  compare(t, "value", makers.SGD, { clip_value = 0.01 })
  compare(t, "both", makers["SGD momentum"], { clip_norm = 0.2, clip_value = 0.01 })
  local s = compare(t, "groups", function(p)
    return optim.Adam { { { params = { p[1], p[2] }, lr = 0.1 }, { params = { unpack(p, 3) }, betas = { 0.8, 0.9 } } } }
  end)
  t.equal(s:state()["adam/group_2/beta1"], pg.tensor(0.8, f64))
  t.equal(s:state()["adam/lr"], pg.tensor(0.1, f64))
end)

test("a tensor of the graph is the learning rate", function(t)
  for _, optimizer in ipairs { "Adam", "LARS" } do
    local model, list = net(), batches(4)
    local twin = model:clone()
    local eager, opt = makers[optimizer](model:parameters()), makers[optimizer](twin:parameters())
    local g = pg.graph(function(g)
      local x = g:placeholder { "x", shape = { "n", 4 }, dtype = "float64" }
      local y = g:placeholder { "y", shape = { "n" }, dtype = "int64" }
      local lr = g:placeholder { "lr", shape = {}, dtype = "float64" }
      return { train = opt:minimize(nn.cross_entropy(twin(x), y), { lr = lr * 0.5 }) }
    end)
    local s, step = pg.Session { g }, eager_step(model, eager)
    for i, batch in ipairs(list) do
      eager.groups[1].lr = i / 10
      pg.manual_seed(i)
      step(batch)
      pg.manual_seed(i)
      s:run("train", { x = batch.x, y = batch.y, lr = i / 5 })
    end
    s:commit(twin)
    same_model(t, twin, model, optimizer)
  end
end)

test("accumulation: every n-th run updates, by the mean of n gradients", function(t)
  for _, name in ipairs { "Adam", "Muon", "LARS", "SGD momentum" } do
    local make = makers[name]
    local model, list = net(), batches(6)
    local twin = model:clone()
    local eager, opt = make(model:parameters()), make(twin:parameters())
    local s = recorded(twin, opt, { accumulate = 3, clip_norm = 0.5 })
    for i, batch in ipairs(list) do
      pg.manual_seed(i)
      if i % 3 == 1 then eager:zero_grad() end
      local loss = nn.cross_entropy(model(batch.x), batch.y);
      (loss * (1 / 3)):backward()
      if i % 3 == 0 then
        local held = name == "Muon" and matrices(model:parameters()) or model
        optim.clip_grad_norm_(held, 0.5)
        eager:step()
      end
      pg.manual_seed(i)
      local got = s:run({ "loss", "train" }, batch)
      t.equal(got.loss:item(), loss:item(), name .. i)
      t.equal(got.train:item(), math.floor(i / 3), name)
    end
    s:commit(twin)
    s:commit(opt)
    same_model(t, twin, model, name)
    same_optimizer(t, opt, eager, name)
  end
end)

test("loss scaling skips steps whose gradients overflow, and adapts the scale", function(t)
  for _, optimizer in ipairs { "Adam", "LAMB" } do
    local options = { init_scale = 2 ^ 10, growth_interval = 2 }
    local model, scaler = net(), pg.amp.GradScaler(options)
    local twin, list = model:clone(), batches(6)
    local eager, opt = makers[optimizer](model:parameters()), makers[optimizer](twin:parameters())
    list[4].x[{ 1, 1 }] = 1 / 0
    local own = pg.amp.GradScaler(options)
    local s = recorded(twin, opt, { scaler = own, clip_norm = 1 })
    for i, batch in ipairs(list) do
      pg.manual_seed(i)
      eager:zero_grad()
      scaler:scale(nn.cross_entropy(model(batch.x), batch.y)):backward()
      scaler:unscale(eager)
      optim.clip_grad_norm_(model, 1)
      scaler:step(eager)
      scaler:update()
      pg.manual_seed(i)
      t.equal(s:run("train", batch):item(), i < 4 and i or i - 1)
      t.equal(s:run("grad_scaler/scale"):item(), scaler:get_scale(), "scale " .. i)
      if i == 4 then -- the statistics of batch norm are not finite any more
        model[2].running_mean:zero_()
        model[2].running_var:fill_(1)
        local state = s:state()
        state["1.running_mean"]:zero_()
        state["1.running_var"]:fill_(1)
        s:load_state(state)
      end
    end
    s:commit(twin)
    s:commit(opt)
    same_model(t, twin, model, optimizer)
    same_optimizer(t, opt, eager, optimizer)
  end
end)

test("training in 16 bits under autocast, with loss scaling in float16, is eager training bit by bit", function(t)
  local amp = pg.amp
  for _, dtype in ipairs { "bfloat16", "float16" } do
    for _, name in ipairs { "SGD momentum", "Adam", "LAMB", "Muon" } do
      local options = { init_scale = 2 ^ 10, growth_interval = 2, enabled = dtype == "float16" }
      local model = nn.Sequential { nn.Linear { 4, 16 }, nn.LayerNorm { 16 }, nn.GELU {}, nn.Linear { 16, 3 } }
      local twin, list = model:clone(), {}
      for i = 1, 5 do list[i] = { x = pg.randn { 8, 4 }, y = pg.randint(0, 3, { 8 }) } end
      if options.enabled then list[3].x[{ 1, 1 }] = 1 / 0 end
      local eager, opt = makers[name](model:parameters()), makers[name](twin:parameters())
      local scaler, own = amp.GradScaler(options), amp.GradScaler(options)
      local hidden
      local g = pg.graph(function(g)
        local x = g:placeholder { "x", shape = { "n", 4 } }
        local y = g:placeholder { "y", shape = { "n" }, dtype = "int64" }
        local loss = amp.autocast(dtype, function()
          hidden = twin[1](x).dtype
          return nn.cross_entropy(twin(x), y)
        end)
        return { loss = loss, train = opt:minimize(loss, { scaler = own }) }
      end)
      t.equal(hidden, dtype)
      local s, steps = pg.Session { g }, 0
      for i, batch in ipairs(list) do
        eager:zero_grad()
        local loss = amp.autocast(dtype, function() return nn.cross_entropy(model(batch.x), batch.y) end)
        scaler:scale(loss):backward()
        scaler:step(eager)
        if not scaler:update() then steps = steps + 1 end
        local got, what = s:run({ "loss", "train" }, batch), ("%s %s %d"):format(dtype, name, i)
        if not (options.enabled and i == 3) then t.equal(got.loss, loss:detach(), what) end
        t.equal(got.train:item(), steps, what)
        if options.enabled then t.equal(s:run("grad_scaler/scale"):item(), scaler:get_scale(), what) end
      end
      t.equal(steps, options.enabled and 4 or 5)
      s:commit(twin)
      s:commit(opt)
      same_model(t, twin, model, dtype .. " " .. name)
      same_optimizer(t, opt, eager, dtype .. " " .. name)
    end
  end
end)

test("apply_gradients takes gradients that the graph computed; g:variables train, too", function(t)
  local opt = optim.SGD { lr = 0.5, momentum = 0.5 }
  local g = pg.graph(function(g)
    local x = g:placeholder { "x", shape = { 2 } }
    local w = g:variable { "w", shape = { 2 }, init = "ones" }
    local fixed = g:variable { "fixed", shape = { 2 }, init = "ones" }
    fixed.requires_grad = false
    local loss = (w * x * fixed):sum()
    local train = opt:minimize(loss)
    local other = optim.Adam { lr = 0.1 }
    return { train = train, more = other:apply_gradients { { w * 2, w } }, loss = loss, w = w }
  end)
  local s = pg.Session { g }
  t.equal(s:run({ "train", "loss" }, { x = { 1, 2 } }).loss, 3)
  t.equal(s:run "w", { 0.5, 0 })
  t.equal(s:run("train", { x = { 1, 2 } }), 2)
  t.equal(s:run "w", { -0.25, -1.5 })
  t.equal(s:run("loss", { x = { 1, 2 } }):item(), -3.25, "the loss alone does not train")
  local names = {}
  for name in pairs(s:state()) do names[#names + 1] = name end
  table.sort(names)
  t.equal(table.concat(names, " "), "adam/beta1 adam/beta2 adam/eps adam/lr adam/step adam/w/exp_avg " ..
          "adam/w/exp_avg_sq adam/weight_decay fixed sgd/dampening sgd/lr sgd/momentum sgd/step " ..
          "sgd/w/momentum_buffer sgd/weight_decay w")
  local state = s:state()
  local again = pg.Session { g }
  again:load_state(state)
  t.equal(s:run({ "train", "w" }, { x = { 1, 2 } }).w, again:run({ "train", "w" }, { x = { 1, 2 } }).w)
  t.equal(again:run("w", { x = { 1, 2 }, ["sgd/lr"] = 0 }), s:run "w", "a fetch of a variable does not train")
end)

test("what is recorded behind a step does not ask for it; steps of one variable go one after the other", function(t)
  local layer, w = nn.Linear { 2, 1, bias = false }, nil
  local g = pg.graph(function(g)
    local x = g:placeholder { "x", shape = { "n", 2 } }
    w = g:variable { "w", shape = { 1 }, init = "ones" }
    local down, up = optim.SGD { { w }, lr = 1 }, optim.SGD { { w }, lr = 10 }
    local results = { train = optim.SGD { layer:parameters(), lr = 0.5 }:minimize(layer(x):sum()),
                      down = down:minimize(w:sum()), up = up:minimize(-w:sum()) }
    results.predicted, results.double, results.weight = layer(x), w * 2, layer.weight
    return results
  end)
  local s, x = pg.Session { g }, pg.ones { 1, 2 }
  local before = s:run("predicted", { x = x })
  t.equal(s:run("predicted", { x = x }), before)
  t.equal(s:run("train", { x = x }), 1)
  t.ok(pg.allclose(s:run("predicted", { x = x }), before - 1))
  t.equal(s:run("weight"), s:run(g:find("weight")))
  t.equal(s:run "sgd/step", 1)
  t.equal(s:run { "down", "double" }.double, { 2 })
  t.equal(s:run("w"), { 0 })
  s:run "up"
  t.equal(s:run("double"), { 20 })
  t.raises(function() s:run { "up", "down" } end, "'w' would be updated twice")
  t.equal(s:run({ "down", "train", "w" }, { x = x }).w, { 9 })
end)

test("training goes on where eager steps ended, and back", function(t)
  local model, list = net(), batches(6)
  local twin = model:clone()
  local eager, opt = makers.Adam(model:parameters()), makers.Adam(twin:parameters())
  local steps = { eager_step(model, eager), eager_step(twin, opt) }
  local s
  for i, batch in ipairs(list) do
    pg.manual_seed(i)
    steps[1](batch)
    pg.manual_seed(i)
    if i == 3 then s = recorded(twin, opt) end
    if i == 3 or i == 4 then
      t.equal(s:run("train", batch), i)
      if i == 4 then s:commit(twin) s:commit(opt) s:close() end
    else
      steps[2](batch)
    end
  end
  same_model(t, twin, model, "back")
  same_optimizer(t, opt, eager, "back")
end)

test("what cannot be trained says why", function(t)
  local layer = nn.Linear { 2, 2 }
  local opt = optim.SGD { layer:parameters(), lr = 0.1 }
  local function build(fn)
    return t.raises(function()
      pg.graph(function(g)
        local x = g:placeholder { "x", shape = { "n", 2 } }
        return fn(layer(x):sum(), x, g)
      end)
    end).message
  end
  local function says(fn, text)
    local message = build(fn)
    t.ok(message:find(text, 1, true), message)
  end
  t.raises(function() opt:minimize(pg.ones { 1 }) end, "SGD: minimize records into the graph of pg.graph")
  t.raises(function() opt:apply_gradients {} end, "SGD: apply_gradients records into the graph of pg.graph")
  says(function() return opt:minimize(3) end, "SGD: the loss must be a tensor of the graph, got number 3")
  says(function() return opt:minimize(layer.weight) end, "got an eager tensor")
  says(function(_, x) return opt:minimize(x) end, "the loss must have one element, got {n, 2}")
  says(function(_, x) return opt:minimize(x:sum()) end, "the loss depends on no parameter that wants gradients")
  says(function(_, x) return optim.SGD { lr = 1 }:minimize(x:sum()) end, "the loss depends on no parameter")
  says(function(loss) return opt:minimize(loss, { accumulate = 0 }) end, "accumulate must be at least 1, got 0")
  says(function(loss) return opt:minimize(loss, { clip = 1 }) end, "clip")
  says(function(loss) return opt:minimize(loss, { clip_norm = -1 }) end, "the limit must be a number from 0")
  says(function(loss) return opt:minimize(loss, { scaler = 3 }) end, "scaler must be an amp.GradScaler")
  says(function(loss, x) return opt:minimize(loss, { lr = x }) end, "lr must be one floating point number, got float32")
  says(function(loss) return opt:apply_gradients { { loss, layer.weight } } end,
       "gradient 1 is float32 {}; expected float32 {2, 2} as its variable")
  says(function() return opt:apply_gradients { layer.weight } end, "pair 1 must be { gradient, variable }, got")
  says(function() return opt:apply_gradients { { layer.weight, layer.weight }, { layer.weight, layer.weight } } end,
       "variable 2, \"weight\", is there twice")
  says(function(_, _, g)
    local v = g:variable { "v", shape = { 2 } }
    return opt:apply_gradients { { v, v } }
  end, "variable 1 is none of its parameters")
  says(function() opt:step() end, "SGD: step() is for eager code, and a graph is being recorded")
  for _, method in ipairs { "minimize", "apply_gradients" } do
    says(function(loss)
      local lbfgs = optim.LBFGS { layer:parameters() }
      return lbfgs[method](lbfgs, loss)
    end, "LBFGS: " .. method .. " cannot record a step")
  end
  local fixed = optim.LAMB { layer:parameters() }
  local g = pg.graph(function(g)
    return { train = fixed:minimize(layer(g:placeholder { "x", shape = { "n", 2 } }):sum()) }
  end)
  local s = pg.Session { g }
  s:run("train", { x = { { 1, 2 } } })
  fixed.groups[1].weight_decay = 0.5
  t.raises(function() s:run("train", { x = { { 1, 2 } } }) end,
           "LAMB: weight_decay was 0 when the graph was recorded, and is 0.5 now")
end)

test("a graph that trains goes on from its file, bit by bit", function(t)
  local model, list = net(), batches(4)
  local s = recorded(model, makers.Adam(model:parameters()), { accumulate = 2 })
  local path = os.tmpname()
  os.remove(path)
  path = path .. ".pgraph"
  for i = 1, 2 do s:run("train", list[i]) end
  pg.save(path, s)
  local again = pg.Session { pg.load_graph(path) }
  os.remove(path)
  for i = 3, 4 do
    pg.manual_seed(i)
    local want = s:run({ "loss", "train" }, list[i])
    pg.manual_seed(i)
    local got = again:run({ "loss", "train" }, list[i])
    t.equal(got.loss, want.loss)
    t.equal(got.train, want.train)
  end
  local held = again:state()
  for name, value in pairs(s:state()) do t.equal(held[name], value, name) end
  t.equal(again:run "adam/step", 2)
end)
