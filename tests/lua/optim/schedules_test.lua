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
  { "Chain", { milestones = { 4 } }, { 0.036, 0.052, 1.30769230769231, 0.1, 0.05, 0.025, 0.0125 } } }

local function make(name, options, optimizer)
  local o = { optimizer, unpack(options) }
  for key, value in pairs(options) do
    if type(key) == "string" then o[key] = value end
  end
  if name == "Chain" then o[1], o[2] = sched.Warmup { optimizer, 5, 0.2 }, sched.Exponential { optimizer, 0.5 } end
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
