-- SPDX-License-Identifier: Apache-2.0
-- Schedules beside scripts that set rates themselves, add groups, or ask for odd lengths. Their plain rates are
-- compared in trajectory_test.

local pg = require "perigee"
local optim = pg.optim
local sched = optim.sched

local function optimizer_with(lr, o)
  o = o or {}
  o[1], o.lr = { pg.ones({ 1 }):requires_grad_() }, lr
  return optim.SGD(o)
end

-- PyTorch's rates where a script sets 1 before the third of seven steps; the last is our own beyond t_max.
local rows = {
  { "Step", { 3, 0.5 }, { 0.1, 0.1, 0.5, 0.5, 0.5, 0.25, 0.25 } },
  { "MultiStep", { { 1, 4, 4 }, 0.5 }, { 0.05, 0.05, 1, 0.25, 0.25, 0.25, 0.25 } },
  { "Exponential", { 0.5 }, { 0.05, 0.025, 0.5, 0.25, 0.125, 0.0625, 0.03125 } },
  { "Polynomial", { 5, 2 }, { 0.064, 0.036, 4 / 9, 1 / 9, 0, 0, 0 } },
  { "Cosine", { 6, 0.01 }, { 0.0939711431702998, 0.0775, 0.67, 0.34, 0.0984232335022704, 0.01, 0.01 } },
  { "CosineRestarts", { 4 }, { 0.0853553390593274, 0.05, 0.0146446609406726, 0.1, 0.0853553390593274, 0.05,
                               0.0146446609406726 } },
  { "Warmup", { 5, 0.2 }, { 0.036, 0.052, 1.30769230769231, 1.61538461538462, 1.92307692307692, 1.92307692307692,
                            1.92307692307692 } },
  { "Plateau", { factor = 0.5, patience = 0 }, { 0.1, 0.05, 0.5, 0.5, 0.25, 0.125, 0.125 }, { 3, 3, 3, 2, 3, 3, 1 } },
  { "Plateau", { factor = 0.5, patience = 0 }, { 0.1, 0.1, 1, 1, 1, 0.5, 0.5 }, { 3, 2, 1, 0.5, 0.4, 0.4, 0.3 } },
  { "Chain", {}, { 0.018, 0.013, 0.653846153846154, 0.403846153846154, 0.240384615384615, 0.120192307692308,
                   0.0600961538461538 } },
  { "Chain", { milestones = { 4 } }, { 0.036, 0.052, 1.30769230769231, 0.1, 0.05, 0.025, 0.0125 } },
  { "Sequential", { milestones = { 4 } }, { 0.036, 0.052, 1.30769230769231, 0.1, 0.05, 0.025, 0.0125 } },
  { "Lambda", { function(t) return 1 / (1 + t) end }, { 0.05, 0.1 / 3, 0.025, 0.02, 0.1 / 6, 0.1 / 7, 0.0125 } },
  { "Multiplicative", { function(t) return 1 - 0.1 * t end }, { 0.09, 0.072, 0.7, 0.42, 0.21, 0.084, 0.0252 } },
  { "Linear", {}, { 0.14 / 3, 0.06, 11 / 9, 13 / 9, 5 / 3, 5 / 3, 5 / 3 } },
  { "Constant", { 0.25, 4 }, { 0.025, 0.025, 1, 4, 4, 4, 4 } } }

local function make(name, options, optimizer)
  local o = { optimizer, unpack(options) }
  for key, value in pairs(options) do
    if type(key) == "string" then o[key] = value end
  end
  if name == "Chain" or name == "Sequential" then
    o[1], o[2] = sched.Warmup { optimizer, 5, 0.2 }, sched.Exponential { optimizer, 0.5 }
  end
  return sched[name](o)
end

for number, row in ipairs(rows) do
  test(("%s, %d, goes on from a rate that a script sets, as PyTorch's does"):format(row[1], number), function(t)
    local optimizer = optimizer_with(0.1)
    local schedule = make(row[1], row[2], optimizer)
    for i, want in ipairs(row[3]) do
      if i == 3 then optimizer.groups[1].lr = 1 end
      if i == 3 or i == 4 then -- anew, from its state
        local state, options = schedule:state(), optimizer:state()
        optimizer = optimizer_with(0.7)
        schedule = make(row[1], row[2], optimizer)
        optimizer:load_state(options)
        schedule:load_state(state)
      end
      schedule:step(row[4] and row[4][i])
      t.close(schedule:lr(), { want }, 1e-12)
    end
  end)
end

-- PyTorch's rates, nobody interfering; each is resumed from its state after every step.
local PLAIN = {
  { "Multiplicative", { function(t) return 1 - 0.1 * t end }, { 0.09, 0.072, 0.0504, 0.03024, 0.01512, 0.006048 } },
  { "Linear", { 0.1, 0.5, 4 }, { 0.02, 0.03, 0.04, 0.05, 0.05, 0.05 } },
  { "Constant", {}, { 0.1 / 3, 0.1 / 3, 0.1 / 3, 0.1 / 3, 0.1, 0.1 } },
  { "Constant", { 0, 2 }, { 0, 0.1, 0.1, 0.1, 0.1, 0.1 } },
  { "Lambda", { { function(t) return 0.5 ^ t end } }, { 0.05, 0.025, 0.0125, 0.00625, 0.003125, 0.0015625 } },
}

for number, row in ipairs(PLAIN) do
  test(("%s, %d, and exact resume at each step"):format(row[1], number), function(t)
    local optimizer = optimizer_with(0.1)
    local schedule = make(row[1], row[2], optimizer)
    for _, want in ipairs(row[3]) do
      schedule:step()
      t.close(schedule:lr(), { want }, 1e-12)
      local now, state, options = schedule:lr()[1], schedule:state(), optimizer:state()
      optimizer = optimizer_with(0.1)
      schedule = make(row[1], row[2], optimizer)
      optimizer:load_state(options)
      schedule:load_state(state)
      t.ok(schedule:lr()[1] == now)
    end
  end)
end

test("Lambda: a function a group; Sequential of lines and functions; in fit's callback", function(t)
  local function two()
    return optim.SGD { { { params = { pg.ones({ 1 }):requires_grad_() } },
                         { params = { pg.ones({ 1 }):requires_grad_() }, lr = 1 } }, lr = 0.1 }
  end
  local optimizer = two()
  local schedule = sched.Lambda { optimizer, { function(n) return 1 / (1 + n) end, function(n) return 0.5 ^ n end } }
  schedule:step()
  schedule:step()
  t.close(schedule:lr(), { 0.1 / 3, 0.25 }, 1e-12)
  optimizer = optimizer_with(0.1)
  schedule = sched.Sequential { sched.Linear { optimizer, 0.1, total_iters = 3 },
                                sched.Lambda { optimizer, function(n) return 0.5 ^ n end }, milestones = { 3 } }
  local rates = {}
  for i = 1, 7 do
    schedule:step()
    rates[i] = schedule:lr()[1]
  end
  t.close(rates, { 0.04, 0.07, 0.1, 0.05, 0.025, 0.0125, 0.00625 }, 1e-12)
  local model = pg.nn.Linear { 1, 1 }
  local history = model:fit { x = pg.ones { 4, 1 }, y = pg.ones { 4, 1 }, loss = "mse", epochs = 3, verbose = 0,
    optimizer = optim.SGD { lr = 0.1 }, callbacks = { pg.callbacks.LRScheduler { function(opt)
      return sched.Lambda { opt, function(epoch) return 0.5 ^ epoch end }
    end } } }
  t.close({ history[1].lr, history[2].lr, history[3].lr }, { 0.1, 0.05, 0.025 }, 1e-12)
  local function lambda(...)
    local arguments = { ... }
    return function() return sched.Lambda { two(), unpack(arguments) } end
  end
  t.raises(lambda(1), "optim.sched.Lambda: lr_lambda must be a function or a list of them, got number 1")
  t.raises(lambda({ math.abs, 1 }), "lr_lambda%[2%] must be a function, got number 1")
  t.raises(lambda({ math.abs }), "lr_lambda has 1 functions for 2 parameter groups")
  t.raises(lambda(function() return "x" end), 'lr_lambda%(0%) must return a number, got string "x"')
  t.raises(lambda(function() error("mine") end), "mine")
  t.raises(function() sched.Sequential { sched.Linear { optimizer } } end,
           "optim.sched.Sequential: milestones is missing")
  t.raises(function() sched.Constant { optimizer, 2 } end, "factor must lie in %[0, 1%], got 2")
  t.raises(function() return sched.LambdaLR end, "optim.sched.Lambda")
end)

test("schedules that a script steps one after the other", function(t)
  local optimizer = optimizer_with(0.1)
  local warmup, decay = sched.Warmup { optimizer, 2, 0.5 }, sched.Exponential { optimizer, 0.5 }
  local function rates(set)
    local list = {}
    for i = 1, 4 do
      local schedule = i <= 2 and warmup or decay
      if i == set then optimizer.groups[1].lr = 1 end
      schedule:step()
      list[i] = optimizer.groups[1].lr
    end
    return list
  end
  t.close(rates(), { 0.075, 0.1, 0.05, 0.025 }, 1e-12)
  warmup, decay = sched.Warmup { optimizer, 2, 0.5 }, sched.Exponential { optimizer, 0.5 }
  t.close(rates(2), { 0.075, 4 / 3, 2 / 3, 1 / 3 }, 1e-12)
end)

test("a phase without steps, and a rate of 0, give numbers", function(t)
  local optimizer = optimizer_with(0.5, { momentum = 0.9 })
  local schedule = sched.OneCycle { optimizer, 1, 10, pct_start = 0.1 }
  t.close({ optimizer.groups[1].lr, optimizer.groups[1].momentum }, { 1, 0.85 })
  for _ = 1, 9 do schedule:step() end
  t.close({ optimizer.groups[1].lr, optimizer.groups[1].momentum }, { 4e-6, 0.95 })
  local still = optimizer_with(0)
  schedule = sched.Chain { sched.Warmup { still, 2 }, sched.Exponential { still, 0.9 } }
  for _ = 1, 4 do
    t.equal(schedule:lr(), { 0 })
    schedule:step()
  end
end)

test("a group that is added later goes on from its own rate", function(t)
  for _, name in ipairs { "Exponential", "Chain" } do
    local optimizer = optimizer_with(0.1)
    local schedule = name == "Chain" and sched.Chain { sched.Exponential { optimizer, 0.5 } } or
                     sched.Exponential { optimizer, 0.5 }
    schedule:step()
    t.equal(optimizer:add_group { params = { pg.ones({ 1 }):requires_grad_() }, lr = 1 }, optimizer)
    schedule:step()
    t.close(schedule:lr(), { 0.025, 0.5 })
    local again = schedule:state()
    schedule:step()
    schedule:load_state(again)
    t.close(schedule:lr(), { 0.025, 0.5 })
  end
end)

test("what schedules refuse", function(t)
  local two = optim.SGD { { { params = { pg.ones({ 1 }):requires_grad_() } },
                            { params = { pg.ones({ 1 }):requires_grad_() } } }, lr = 0.1, momentum = 0.9 }
  t.raises(function() sched.OneCycle { two, { 1 }, 10 } end, "max_lr has 1 rates for 2 parameter groups")
  t.raises(function() sched.OneCycle { two, "x", 10 } end, 'max_lr must be a number .*, got string "x"')
  t.raises(function() sched.OneCycle { two, { 1, "x" }, 10 } end, 'max_lr%[2%] must be a number, got string "x"')
  local cycle = sched.OneCycle { two, { 1, 2 }, 10 }
  two:add_group { params = { pg.ones({ 1 }):requires_grad_() } }
  t.raises(function() cycle:step() end, "max_lr has 2 rates for 3 parameter groups")
  local one = optimizer_with(0.1)
  t.raises(function() sched.MultiStep { one, { "a" } } end, 'milestones%[1%] must be a whole number, got string "a"')
  t.raises(function() sched.MultiStep { one, { 1.5 } } end, "milestones must be a list of whole numbers")
  local step, plateau = sched.Step { one, 2 }, sched.Plateau { one }
  local chain = sched.Chain { step, sched.Exponential { one, 0.5 }, milestones = { 3 } }
  t.raises(function() step:load_state(plateau:state()) end, "the state is one of optim.sched.Plateau")
  t.raises(function() plateau:load_state(chain:state()) end, "the state is one of optim.sched.Chain")
  t.raises(function() chain:load_state(step:state()) end, "the state is one of optim.sched.Step")
  for _, done in ipairs { -1, 0.5, "1", 0 / 0 } do
    local state = step:state()
    state.done = done
    t.raises(function() step:load_state(state) end, "done must be a count")
  end
  t.raises(function() sched.Chain { step, plateau, milestones = { "a" } } end, "milestones%[1%] must be a whole number")
end)
