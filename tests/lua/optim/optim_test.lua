-- SPDX-License-Identifier: Apache-2.0
-- Optimizers against their update rules in plain Lua; groups, state, clipping, schedules.

local pg = require "perigee"
local optim, nn = pg.optim, pg.nn

-- Steps down f(w) = sum(w^2 * k) by hand and by the optimizer.
local K = { 1, 3 }
local function run(t, make, rule, steps)
  local w = pg.tensor({ 1, -2 }, { requires_grad = true })
  local k = pg.tensor(K)
  local optimizer = make { { w } }
  local expected, state = { 1, -2 }, { {}, {} }
  for step = 1, steps do
    optimizer:zero_grad()
    local loss = (w * w * k):sum()
    loss:backward()
    optimizer:step()
    for i = 1, 2 do expected[i] = rule(expected[i], 2 * expected[i] * K[i], state[i], step) end
    t.close(w:totable(), expected, 1e-5)
  end
end

local function sgd(o)
  return function(w, g, s, step)
    g = g + (o.weight_decay or 0) * w
    if o.momentum then
      s.b = step == 1 and g or o.momentum * s.b + (1 - (o.dampening or 0)) * g
      g = o.nesterov and g + o.momentum * s.b or s.b
    end
    return w - o.lr * g
  end
end

local function adam(o, decoupled)
  return function(w, g, s, step)
    if decoupled then w = w - o.lr * o.weight_decay * w else g = g + (o.weight_decay or 0) * w end
    s.m = 0.9 * (s.m or 0) + 0.1 * g
    s.v = 0.99 * (s.v or 0) + 0.01 * g * g
    return w - o.lr * (s.m / (1 - 0.9 ^ step)) / (math.sqrt(s.v / (1 - 0.99 ^ step)) + 1e-8)
  end
end

-- The simulated device's name; the test is skipped where there is none.
local function simulated(t)
  for _, d in ipairs(pg.devices()) do
    if d.name == "sim:0" then return d.name end
  end
  t.skip("no sim:0")
end

test("SGD in its variants", function(t)
  for _, o in ipairs { { lr = 0.1 }, { lr = 0.1, momentum = 0.9 }, { lr = 0.1, momentum = 0.9, dampening = 0.5 },
                       { lr = 0.05, momentum = 0.9, nesterov = true }, { lr = 0.1, weight_decay = 0.1 } } do
    run(t, function(params)
      for key, value in pairs(o) do params[key] = value end
      return optim.SGD(params)
    end, sgd(o), 4)
  end
end)

test("Adam and AdamW", function(t)
  run(t, function(p) return optim.Adam { p[1], lr = 0.1, betas = { 0.9, 0.99 } } end, adam { lr = 0.1 }, 5)
  run(t, function(p) return optim.Adam { p[1], lr = 0.1, betas = { 0.9, 0.99 }, weight_decay = 0.2 } end,
      adam { lr = 0.1, weight_decay = 0.2 }, 5)
  run(t, function(p) return optim.AdamW { p[1], lr = 0.1, betas = { 0.9, 0.99 }, weight_decay = 0.2 } end,
      adam({ lr = 0.1, weight_decay = 0.2 }, true), 5)
end)

test("parameter groups have rates of their own", function(t)
  local a, b = pg.tensor({ 1 }, { requires_grad = true }), pg.tensor({ 1 }, { requires_grad = true })
  local optimizer = optim.SGD { { { params = { a } }, { params = { b }, lr = 0.5 } }, lr = 0.1 }
  t.equal(optimizer.groups[2].lr, 0.5)
  local loss = (a + b):sum()
  loss:backward()
  optimizer:step()
  t.close({ a:item(), b:item() }, { 0.9, 0.5 })
  optimizer.groups[1].lr = 0
  optimizer:step()
  t.close({ a:item(), b:item() }, { 0.9, 0 })
  optimizer:zero_grad()
  t.equal(a.grad, nil)
end)

test("parameters without a gradient stay, and count their own steps", function(t)
  local a, b = pg.tensor({ 1 }, { requires_grad = true }), pg.tensor({ 1 }, { requires_grad = true })
  local optimizer = optim.Adam { { a, b }, lr = 0.1 }
  a:sum():backward()
  optimizer:step()
  t.equal(b:item(), 1)
  b:sum():backward()
  optimizer:step()
  t.close(b:item(), 0.9) -- a first step of Adam has the length lr
end)

test("state goes on where it was", function(t)
  local function train(model, optimizer, steps)
    for _ = 1, steps do
      optimizer:zero_grad()
      model(pg.ones { 2, 3 }):square():sum():backward()
      optimizer:step()
    end
  end
  local a = nn.Linear { 3, 2 }
  local b = a:clone()
  local first = optim.Adam { a:parameters(), lr = 0.01 }
  train(a, first, 3)
  b:load_state(a:state())
  local second = optim.Adam { b:parameters(), lr = 0.5 }
  second:load_state(first:state())
  t.equal(second.groups[1].lr, 0.01)
  train(a, first, 3)
  train(b, second, 3)
  t.equal(b.weight:totable(), a.weight:totable())
  t.raises(function() optim.SGD({ a:parameters(), lr = 1 }):load_state(first:state()) end, "Adam")
end)

test("clipping", function(t)
  local a, b = pg.tensor({ 1, 1 }, { requires_grad = true }), pg.tensor({ 1 }, { requires_grad = true })
  local loss = (a * pg.tensor { 3, 0 }):sum() + (b * 4):sum()
  loss:backward()
  t.close(optim.clip_grad_norm_({ a, b }, 1):item(), 5)
  t.close(a.grad:totable(), { 0.6, 0 })
  t.close(b.grad:totable(), { 0.8 })
  t.close(optim.clip_grad_norm_({ a, b }, 10):item(), 1)
  t.close(b.grad:totable(), { 0.8 })
  optim.clip_grad_value_({ a, b }, 0.7)
  t.close(b.grad:totable(), { 0.7 })
  optim.clip_grad_value_ { { a, b }, 0.5 }
  optim.scale_grad_ { { a, b }, 0.5 }
  t.close(b.grad:totable(), { 0.25 })
  optim.clip_grad_norm_({ a, b }, 0)
  t.equal({ a.grad:totable(), b.grad:totable() }, { { 0, 0 }, { 0 } })
  b.grad = pg.tensor { 2 }
  optim.clip_grad_value_({ b }, 0)
  t.equal(b.grad, { 0 })
  t.raises(function() optim.clip_grad_norm_({ a }, -1) end, "a number from 0")
  t.raises(function() optim.clip_grad_norm_({ a }, 0 / 0) end, "a number from 0")
end)

test("a list of parameters alone, as every optimizer takes it", function(t)
  local model, w = nn.Linear { 3, 2 }, pg.tensor({ 1, 2 }, { requires_grad = true })
  for _, make in ipairs { optim.LBFGS, optim.EMA, optim.SWA, optim.Adam } do
    make(model:parameters())
    make(model)
    make({ w })
  end
  t.equal(#optim.LBFGS(model:parameters()).params, 2)
  t.equal(optim.LBFGS({ model:parameters(), lr = 0.5 }).lr, 0.5)
  local average = optim.EMA(model:parameters(), { decay = 0.5 })
  average:update()
  t.raises(function() optim.LBFGS(model:parameters(), 0.5) end, "by name: lr=, max_iter=, max_eval=, tolerance_grad=")
end)

test("schedules", function(t)
  local w = pg.tensor({ 1 }, { requires_grad = true })
  local function rates(make, steps)
    local optimizer = optim.SGD { { w }, lr = 1 }
    local schedule, list = make(optimizer), {}
    for i = 1, steps do
      list[i] = optimizer.groups[1].lr
      schedule:step()
    end
    return list
  end
  t.close(rates(function(o) return optim.sched.Step { o, every = 2 } end, 4), { 1, 1, 0.1, 0.1 })
  t.close(rates(function(o) return optim.sched.MultiStep { o, milestones = { 1, 3 }, gamma = 0.5 } end, 4),
          { 1, 0.5, 0.5, 0.25 })
  t.close(rates(function(o) return optim.sched.Exponential { o, gamma = 0.5 } end, 3), { 1, 0.5, 0.25 })
  t.close(rates(function(o) return optim.sched.Cosine { o, total = 2 } end, 4), { 1, 0.5, 0, 0 })
  t.close(rates(function(o) return optim.sched.Polynomial { o, total = 4 } end, 3), { 1, 0.75, 0.5 })
end)

test("what optimizers refuse", function(t)
  local w = pg.tensor({ 1 }, { requires_grad = true })
  t.raises(function() optim.Adam { { w }, lr = -1 } end, "lr must be 0 or more")
  t.raises(function() optim.Adam { { w }, lr = 0 / 0 } end, "lr")
  t.raises(function() optim.Adam { { w }, betas = { 0.9, 1 } } end, "beta2")
  t.raises(function() optim.Adam { { w }, leraning_rate = 1 } end, "unknown option")
  t.raises(function() optim.SGD { { w }, nesterov = true } end, "momentum")
  t.raises(function() optim.SGD { { w, w } } end, "twice")
  t.raises(function() optim.SGD { { w * 2 } } end, "leaves")
  t.raises(function() optim.LBFGS { { w, w } } end, "parameter 2 is there twice")
  t.raises(function() optim.LBFGS { { w * 2 } } end, "leaves")
  t.raises(function() optim.SGD { {} } end, "empty")
  t.raises(function() optim.SGD({ lr = 1 }):step() end, "no parameters")
  t.raises(function() return optim.Adamm end, "optim.Adam")
  local optimizer = optim.SGD { { w } }
  t.raises(function() optimizer.groups[1].lrr = 1 end, "lr")
end)

test("step calls a closure, with gradients on, and returns its loss", function(t)
  for _, name in ipairs { "SGD", "Adam", "LAMB" } do
    local w = pg.tensor({ 1, 1 }, { requires_grad = true })
    local optimizer = optim[name] { w, lr = 0.5 }
    local function closure()
      optimizer:zero_grad()
      local loss = (w * 3):sum()
      loss:backward()
      return loss
    end
    for i = 1, 3 do
      local before = (w:detach() * 3):sum():item()
      local loss = i < 3 and optimizer:step(closure) or pg.no_grad(optimizer.step, optimizer, closure)
      t.close(loss:item(), before)
      t.ok(w:detach():sum():item() * 3 < before)
    end
    t.equal(optimizer:step(), nil)
    t.raises(function() optimizer:step(3) end, name .. ": step needs a function or nothing, got number 3")
  end
end)

test("zero_grad forgets gradients, or makes them zeros", function(t)
  for _, make in ipairs { optim.SGD, optim.LBFGS } do
    local w, v = pg.tensor({ 1, 1 }, { requires_grad = true }), pg.tensor({ 1 }, { requires_grad = true })
    local optimizer = make { { w, v } }
    for _, options in ipairs { { set_to_none = false }, { false } } do
      w:sum():backward()
      optimizer:zero_grad(options)
      t.equal(w.grad:totable(), { 0, 0 })
      t.equal(v.grad, nil)
    end
    optimizer:zero_grad { set_to_none = true }
    t.equal(w.grad, nil)
    w:square():sum():backward { create_graph = true }
    optimizer:zero_grad(false)
    t.equal({ w.grad:totable(), w.grad.requires_grad }, { { 0, 0 }, false })
    t.raises(function() optimizer:zero_grad { set_to_none = true, foo = 1 } end, 'zero_grad: unknown option "foo"')
  end
end)

test("a hyperparameter that is set later is checked by the step", function(t)
  for _, name in ipairs { "Adam", "LAMB" } do
    for _, bad in ipairs { { lr = -1 }, { lr = 0 / 0 }, { betas = { 2, 0.9 } }, { eps = -1 } } do
      local w = pg.tensor({ 1, 1 }, { requires_grad = true })
      local optimizer = optim[name] { w }
      for i = 1, 3 do
        w:sum():backward()
        if i == 3 then
          local key, value = next(bad)
          optimizer.groups[1][key] = value
          t.raises(function() optimizer:step() end, "must")
        else
          optimizer:step()
        end
      end
    end
  end
end)

test("what the states of optimizers must be", function(t)
  local w = pg.tensor({ 1, 1 }, { requires_grad = true })
  local function refused(optimizer, change, text)
    local state = optimizer:state()
    change(state)
    t.raises(function() optimizer:load_state(state) end, text)
  end
  local first = optim.Adam { w }
  w:sum():backward()
  first:step()
  refused(first, function(s) s.groups[1] = {} end, "group 1 has no options")
  refused(first, function(s) s.groups[1].steps = nil end, "group 1 has no steps")
  refused(first, function(s) s.groups[1].steps[1] = -1 end, "the steps of parameter 1 must be a count, got number %-1")
  refused(first, function(s) s.groups[1].options.lr = -1 end, "lr must be 0 or more")
  refused(first, function(s) s.groups[1].options.speed = 1 end, "speed")
  refused(first, function(s) s.groups[1].slots.exp_avg[1] = 3 end,
          "exp_avg of parameter 1 must be a tensor float32 {2}, got number 3")
  refused(first, function(s) s.groups[1].slots.exp_avg[1] = pg.zeros { 3 } end, "got tensor float32 {3}")
  refused(first, function(s) s.groups[1].slots.exp_avg = 3 end, "exp_avg must be a list, got number 3")
  local lbfgs = optim.LBFGS { { w } }
  lbfgs:step(function()
    lbfgs:zero_grad()
    local loss = w:square():sum()
    loss:backward()
    return loss
  end)
  lbfgs:load_state(lbfgs:state())
  refused(lbfgs, function(s) s.lr = -1 end, "lr is not")
  refused(lbfgs, function(s) s.iterations = 0.5 end, "iterations is not")
  refused(lbfgs, function(s) s.gradient = pg.zeros { 3 } end, "for 2 numbers; gradient is not")
  refused(lbfgs, function(s) s.moves = { 3 } end, "moves is not")
  t.raises(function() lbfgs:load_state {} end, "lr is not")
end)

test("steps that are planned ahead notice what changes between them", function(t)
  local a, b = pg.tensor({ 1 }, { requires_grad = true }), pg.tensor({ 1 }, { requires_grad = true })
  local optimizer = optim.SGD { { a, b }, lr = 0.5 }
  local function step(loss)
    optimizer:zero_grad()
    loss:backward()
    optimizer:step()
  end
  for _ = 1, 2 do step((a + b):sum()) end
  t.close(a:totable(), { 0 })
  step(a:sum()) -- b has no gradient this time
  t.close(a:totable(), { -0.5 })
  t.close(b:totable(), { 0 })
  step((a + b):sum())
  t.close(b:totable(), { -0.5 })

  local c = pg.tensor({ 1 }, { requires_grad = true })
  optimizer = optim.SGD { { c }, lr = 0.5 }
  for _ = 1, 2 do
    optimizer:zero_grad()
    c:sum():backward()
    optimizer:step()
  end
  optimizer.groups[1].momentum = 0.5 -- asks for state that there was none of
  for _ = 1, 2 do
    optimizer:zero_grad()
    c:sum():backward()
    optimizer:step()
  end
  t.close(c:totable(), { 0 - 0.5 - 0.75 })
end)

test("state lies where its parameter does, whatever device is in force", function(t)
  local there = simulated(t)
  for _, make in ipairs { optim.Adam, optim.RMSprop, optim.Lion } do
    local p = pg.ones { 3, device = "cpu", requires_grad = true }
    local optimizer = make { { p } }
    pg.device(there, function()
      for _ = 1, 2 do
        p.grad = pg.ones { 3, device = "cpu" }
        optimizer:step()
      end
    end)
    t.equal(p.device, "cpu")
    t.ok(p[1]:item() < 1)
  end
end)

test("where a part of the model moves, each parameter is stepped once", function(t)
  local there = simulated(t)
  local function train(name, place)
    pg.manual_seed(3)
    local a, b = pg.nn.Linear { 3, 2 }:to("cpu"), pg.nn.Linear { 2, 1 }:to("cpu")
    local optimizer = optim[name] { { a.weight, a.bias, b.weight, b.bias }, lr = 0.01 }
    local x = pg.randn { 5, 3, device = "cpu" }
    for step = 1, 4 do
      if step == 3 then b:to(place) end
      optimizer:zero_grad()
      b(a(x):to(step >= 3 and place or "cpu")):square():sum():backward()
      optimizer:step()
    end
    return { a.weight:totable(), b.weight:cpu():totable() }
  end
  for _, name in ipairs { "Adam", "SGD", "Adagrad", "Lion" } do
    local moved, stayed = train(name, there), train(name, "cpu")
    t.close(moved[1], stayed[1], 1e-6, name)
    t.close(moved[2], stayed[2], 1e-6, name)
  end
end)

test("optimizers that have stepped keep working when the model moves", function(t)
  local there = simulated(t)
  local function train(make, places)
    pg.manual_seed(3)
    local model = pg.nn.Linear { 3, 2 }:to("cpu")
    local x, optimizer = pg.randn { 5, 3, device = "cpu" }, make(model)
    for _, place in ipairs(places) do
      model:to(place)
      for _ = 1, 2 do
        optimizer:step(function()
          optimizer:zero_grad()
          local loss = model(x:to(place)):square():sum()
          loss:backward()
          return loss
        end)
      end
    end
    return model.weight:cpu():totable()
  end
  for _, name in ipairs { "Adam", "Rprop", "LAMB", "LARS", "Adafactor", "LBFGS" } do
    local function make(model) return optim[name] { model:parameters(), lr = 0.01 } end
    local want = train(make, { "cpu", "cpu", "cpu" })
    t.close(train(make, { "cpu", there, "cpu" }), want, 1e-5)
    for _, scope in ipairs { "cpu", there } do -- whatever device is in force
      t.close(pg.device(scope, train, make, { "cpu", there, "cpu" }), want, 1e-5)
    end
  end
end)
