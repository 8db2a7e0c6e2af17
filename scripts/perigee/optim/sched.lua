-- SPDX-License-Identifier: Apache-2.0
-- Learning-rate schedules: `local s = optim.sched.Cosine{optimizer, 100}`, then s:step() after each epoch, or each
-- batch: whatever the numbers count. Values are PyTorch's where it has the schedule, with its names for the options.

local native = require "perigee.native"
local Schedule = require "perigee.optim.schedule"
local checks = require "perigee.optim.checks"

---@class perigee.optim.sched
local sched = {}

local OPTIMIZER = { "optimizer", "any", required = true, type = "perigee.Optimizer", doc = "bound: it has parameters" }
local GAMMA = { "gamma", "number", default = 0.1, doc = "factor of the rate" }

-- A reader of a schedule's arguments behind the optimizer; `other` are second names for options.
local function reader(name, params, other)
  local read = native.signature("optim.sched." .. name, { OPTIMIZER, unpack(params) })
  return function(...)
    local first = ...
    if other and native.is_plain(first) then
      local renamed = {}
      for key, value in pairs(first) do renamed[other[key] or key] = value end
      return read(renamed)
    end
    return read(...)
  end
end

local check, check_counts = checks.check, checks.counts

local function make(name, o, rates, chain) return Schedule.new("optim.sched." .. name, o.optimizer, o, rates, chain) end

local read_step = reader("Step", {
  { "step_size", "integer", required = true, doc = "steps between two changes" }, GAMMA }, { every = "step_size" })
---Times gamma every step_size steps: lr gamma^floor(t / step_size) after t steps, lr the initial rate.
---@return perigee.Schedule
function sched.Step(...)
  local o = read_step(...)
  check("Step", o.step_size > 0, "step_size must be positive, got %d", o.step_size)
  return make("Step", o, function(_, done, base) return base * o.gamma ^ math.floor(done / o.step_size) end,
              function(_, done, lr) return done % o.step_size == 0 and lr * o.gamma or lr end)
end

local read_multi = reader("MultiStep", {
  { "milestones", "list", required = true, type = "integer[]", doc = "counts of steps done" }, GAMMA })
---Times gamma at each milestone: lr gamma^n after t steps, n the number of milestones up to t, lr the initial rate.
---@return perigee.Schedule
function sched.MultiStep(...)
  local o = read_multi(...)
  check_counts("MultiStep", "milestones", o.milestones)
  return make("MultiStep", o, function(_, done, base)
    local passed = 0
    for _, milestone in ipairs(o.milestones) do
      if done >= milestone then passed = passed + 1 end
    end
    return base * o.gamma ^ passed
  end, function(_, done, lr)
    for _, milestone in ipairs(o.milestones) do
      if done == milestone then lr = lr * o.gamma end
    end
    return lr
  end)
end

local read_exponential = reader("Exponential", {
  { "gamma", "number", required = true, doc = "factor of the rate at each step" } })
---Times gamma every step: lr gamma^t after t steps, lr the initial rate.
---@return perigee.Schedule
function sched.Exponential(...)
  local o = read_exponential(...)
  return make("Exponential", o, function(_, done, base) return base * o.gamma ^ done end,
              function(_, _, lr) return lr * o.gamma end)
end

local read_polynomial = reader("Polynomial", {
  { "total_iters", "integer", required = true, doc = "steps until 0" },
  { "power", "number", default = 1, doc = "how bent the way down is; 1: a line" } }, { total = "total_iters" })
---Down to 0 in total_iters steps, and 0 from there on: lr (1 - min(t, total_iters) / total_iters)^power after t steps,
---lr the initial rate.
---@return perigee.Schedule
function sched.Polynomial(...)
  local o = read_polynomial(...)
  check("Polynomial", o.total_iters > 0, "total_iters must be positive, got %d", o.total_iters)
  return make("Polynomial", o, function(_, done, base)
    return base * (1 - math.min(done, o.total_iters) / o.total_iters) ^ o.power
  end, function(_, done, lr)
    if done > o.total_iters then return lr end
    return lr * ((o.total_iters - done) / (o.total_iters - done + 1)) ^ o.power
  end)
end

local function cosine(part, low, high) return low + (high - low) * (1 + math.cos(math.pi * part)) / 2 end

local read_cosine = reader("Cosine", {
  { "t_max", "integer", required = true, doc = "steps until eta_min" },
  { "eta_min", "number", default = 0, doc = "the least rate" } }, { total = "t_max" })
---Down along half a cosine in t_max steps (Loshchilov and Hutter, 2016): eta_min + (lr - eta_min)
---(1 + cos(pi t / t_max)) / 2 after t steps, lr the initial rate. There it stays; PyTorch's goes up again.
---@return perigee.Schedule
function sched.Cosine(...)
  local o = read_cosine(...)
  check("Cosine", o.t_max > 0, "t_max must be positive, got %d", o.t_max)
  return make("Cosine", o, function(_, done, base)
    return cosine(math.min(done, o.t_max) / o.t_max, o.eta_min, base)
  end, function(_, done, lr)
    if done > o.t_max then return lr end
    return o.eta_min + (lr - o.eta_min) * cosine(done / o.t_max, 0, 1) / cosine((done - 1) / o.t_max, 0, 1)
  end)
end

local read_restarts = reader("CosineRestarts", {
  { "t_0", "integer", required = true, doc = "steps of the first cosine" },
  { "t_mult", "integer", default = 1, doc = "how much longer each is than the one before" },
  { "eta_min", "number", default = 0, doc = "the least rate" } })
---Half cosines of t_0, t_0 t_mult, t_0 t_mult^2, ... steps, each from the initial rate (SGDR: Loshchilov and Hutter,
---2016): eta_min + (lr - eta_min) (1 + cos(pi t / T)) / 2, t steps into one of T.
---@return perigee.Schedule
function sched.CosineRestarts(...)
  local o = read_restarts(...)
  check("CosineRestarts", o.t_0 > 0 and o.t_mult >= 1, "t_0 and t_mult must be at least 1")
  return make("CosineRestarts", o, function(_, done, base)
    local length = o.t_0
    if o.t_mult == 1 then
      done = done % length
    else
      while done >= length do done, length = done - length, length * o.t_mult end
    end
    return cosine(done / length, o.eta_min, base)
  end)
end

local function line(name, o)
  check(name, o.total_iters > 0, "total_iters must be positive, got %d", o.total_iters)
  return make(name, o, function(_, done, base)
    return base * (o.start_factor + (o.end_factor - o.start_factor) * math.min(done, o.total_iters) / o.total_iters)
  end, function(self, done, lr, base)
    if done > o.total_iters then return lr end
    local before = o.start_factor * o.total_iters + (o.end_factor - o.start_factor) * (done - 1)
    if before == 0 then return self:rates(done, base) end
    return lr * (1 + (o.end_factor - o.start_factor) / before)
  end)
end

local START_FACTOR = { "start_factor", "number", default = 1 / 3, doc = "the first factor" }
local END_FACTOR = { "end_factor", "number", default = 1, doc = "the last factor, which stays" }

local read_warmup = reader("Warmup", {
  { "total_iters", "integer", required = true, doc = "steps until end_factor" }, START_FACTOR, END_FACTOR },
  { steps = "total_iters" })
---A factor that moves in a line for total_iters steps and stays: lr (start_factor + (end_factor - start_factor) min(t,
---total_iters) / total_iters) after t steps, lr the initial rate.
---@return perigee.Schedule
function sched.Warmup(...) return line("Warmup", read_warmup(...)) end

local read_linear = reader("Linear", {
  START_FACTOR, END_FACTOR, { "total_iters", "integer", default = 5, doc = "steps until end_factor" } })
---What Warmup is, with the order and the defaults of PyTorch's LinearLR: a factor that moves in a line from
---start_factor to end_factor for total_iters steps and stays.
---@return perigee.Schedule
function sched.Linear(...) return line("Linear", read_linear(...)) end

local read_constant = reader("Constant", {
  { "factor", "number", default = 1 / 3, doc = "of the rate, from 0 to 1" },
  { "total_iters", "integer", default = 5, doc = "steps until the factor is 1" } })
---Times factor for total_iters steps, then the initial rate.
---@return perigee.Schedule
function sched.Constant(...)
  local o = read_constant(...)
  check("Constant", o.factor >= 0 and o.factor <= 1, "factor must lie in [0, 1], got %g", o.factor)
  check("Constant", o.total_iters >= 0, "total_iters must be 0 or more, got %d", o.total_iters)
  local function rates(_, done, base) return done < o.total_iters and base * o.factor or base end
  return make("Constant", o, rates, function(self, done, lr, base)
    if done ~= o.total_iters then return lr end
    return o.factor == 0 and rates(self, done, base) or lr / o.factor
  end)
end

-- ---- functions ----

-- A function, or one a group: a function of a group's number and the steps done, which must answer a number.
local function each(name, o)
  local given = o.lr_lambda
  local list = native.is_plain(given) and given or nil
  for i, fn in ipairs(list or { given }) do
    check(name, type(fn) == "function", "%s, got %s", list and ("lr_lambda[%d] must be a function"):format(i) or
          "lr_lambda must be a function or a list of them", native.describe(fn))
  end
  return function(i, done)
    check(name, not list or #list == #o.optimizer.groups, "lr_lambda has %d functions for %d parameter groups",
          list and #list or 1, #o.optimizer.groups)
    local factor = (list and list[i] or given)(done)
    check(name, type(factor) == "number", "lr_lambda(%d) must return a number, got %s", done, native.describe(factor))
    return factor
  end
end

local FUNCTION = { "lr_lambda", "any", required = true, doc = "of the steps done, from 0; or a list, one a group",
                   type = "(fun(done: integer): number)|(fun(done: integer): number)[]" }

local read_lambda = reader("Lambda", { FUNCTION })
---Times what a function answers: lr fn(t) after t steps, lr the initial rate. Its state does not hold the function.
---@return perigee.Schedule
function sched.Lambda(...)
  local o = read_lambda(...)
  local factor = each("Lambda", o)
  return make("Lambda", o, function(_, done, base, i) return base * factor(i, done) end)
end

local read_multiplicative = reader("Multiplicative", { FUNCTION })
---Times what a function answers, at each step: lr fn(1) fn(2) ... fn(t) after t steps, lr the initial rate. A function
---must answer the same each time: it is asked again where a state is loaded.
---@return perigee.Schedule
function sched.Multiplicative(...)
  local o = read_multiplicative(...)
  local factor, known = each("Multiplicative", o), {} -- by group: how far its rate has been followed
  return make("Multiplicative", o, function(_, done, base, i)
    local last = known[i]
    if not last or last.base ~= base or last.done > done then
      last = { base = base, done = 0, rate = base }
      known[i] = last
    end
    while last.done < done do
      last.rate = last.rate * factor(i, last.done + 1)
      last.done = last.done + 1
    end
    return last.rate
  end, function(_, done, lr, _, i) return lr * factor(i, done) end)
end

-- ---- one cycle ----

local read_cycle = reader("OneCycle", {
  { "max_lr", "any", required = true, type = "number|number[]", doc = "the highest rate, or one a group" },
  { "total_steps", "integer", required = true, doc = "steps of the whole cycle" },
  { "pct_start", "number", named = true, default = 0.3, doc = "part of the steps that goes up" },
  { "anneal_strategy", "string", named = true, default = "cos", choices = { "cos", "linear" },
    doc = "along half a cosine, or linear: a line" },
  { "cycle_momentum", "boolean", named = true, default = true, doc = "whether the momentum moves too" },
  { "base_momentum", "number", named = true, default = 0.85, doc = "the least momentum, at max_lr" },
  { "max_momentum", "number", named = true, default = 0.95, doc = "the highest momentum, at both ends" },
  { "div_factor", "number", named = true, default = 25, doc = "the first rate is max_lr / div_factor" },
  { "final_div_factor", "number", named = true, default = 1e4, doc = "the last rate is the first / final_div_factor" },
  { "three_phase", "boolean", named = true, default = false,
    doc = "whether it goes down as long as up, and then on to the last rate" } })

local function phases_of(o)
  local up = o.pct_start * o.total_steps - 1
  if o.three_phase then
    return { { up, "first", "high" }, { 2 * o.pct_start * o.total_steps - 2, "high", "first" },
             { o.total_steps - 1, "first", "low" } }
  end
  return { { up, "first", "high" }, { o.total_steps - 1, "high", "low" } }
end

-- The phase that a step is in, and how far: `levels` are its ends by name.
local function along(o, phases, done, levels)
  local start = 0
  done = math.min(done, o.total_steps - 1)
  for i, phase in ipairs(phases) do
    if done <= phase[1] or i == #phases then
      local part = phase[1] == start and 1 or (done - start) / (phase[1] - start)
      local from, to = levels[phase[2]], levels[phase[3]]
      if o.anneal_strategy == "cos" then return cosine(part, to, from) end
      return from + (to - from) * part
    end
    start = phase[1]
  end
end

local function check_highest(o)
  if type(o.max_lr) ~= "table" then
    check("OneCycle", type(o.max_lr) == "number", "max_lr must be a number or a number a group, got %s",
          native.describe(o.max_lr))
    return
  end
  for i, rate in ipairs(o.max_lr) do
    check("OneCycle", type(rate) == "number", "max_lr[%d] must be a number, got %s", i, native.describe(rate))
  end
end

local function momentum_name(optimizer)
  local known = optimizer.groups[1].attributes.info.by_name
  return known.momentum and "momentum" or known.beta1 and "beta1"
end

---From max_lr / div_factor up to max_lr in pct_start total_steps - 1 steps and down to max_lr / div_factor /
---final_div_factor, the momentum (or beta1) the other way (Smith and Topin, 2018); between two ends a and b along
---b + (a - b) (1 + cos(pi part)) / 2, or a line. Behind total_steps it stays.
---@return perigee.Schedule
function sched.OneCycle(...)
  local o = read_cycle(...)
  check("OneCycle", o.total_steps > 0, "total_steps must be positive, got %d", o.total_steps)
  check("OneCycle", o.pct_start >= 0 and o.pct_start <= 1, "pct_start must lie in [0, 1], got %g", o.pct_start)
  check_highest(o)
  local phases = phases_of(o)
  local function rates(_, done, _, i)
    local high = o.max_lr
    if type(high) == "table" then
      check("OneCycle", #high == #o.optimizer.groups, "max_lr has %d rates for %d parameter groups", #high,
            #o.optimizer.groups)
      high = high[i]
    end
    local first = high / o.div_factor
    return along(o, phases, done, { first = first, high = high, low = first / o.final_div_factor })
  end
  local self = make("OneCycle", o, rates)
  local name = momentum_name(o.optimizer)
  if o.cycle_momentum then
    check("OneCycle", name, "%s has no momentum; cycle_momentum=false", o.optimizer.name)
    self.also = function(_, done)
      local value = along(o, phases, done, { first = o.max_momentum, high = o.base_momentum, low = o.max_momentum })
      for _, group in ipairs(o.optimizer.groups) do group[name] = value end
    end
    self:apply()
  end
  return self
end

-- ---- plateau ----

local read_plateau = reader("Plateau", {
  { "mode", "string", named = true, default = "min", choices = { "min", "max" },
    doc = "whether less (min) or more (max) is better" },
  { "factor", "number", named = true, default = 0.1, doc = "of the rate, below 1" },
  { "patience", "integer", named = true, default = 10, doc = "steps without a better value that are borne" },
  { "threshold", "number", named = true, default = 1e-4, doc = "how much better a value must be to count" },
  { "threshold_mode", "string", named = true, default = "rel", choices = { "rel", "abs" },
    doc = "rel: threshold times the best value; abs: threshold itself" },
  { "cooldown", "integer", named = true, default = 0, doc = "steps after a change that do not count" },
  { "min_lr", "number", named = true, default = 0, doc = "the least rate" },
  { "eps", "number", named = true, default = 1e-8, doc = "a change that is not larger is left out" } })

local function is_better(o, value, best)
  if best == nil then return value == value end
  if o.mode == "min" then
    return value < (o.threshold_mode == "rel" and best * (1 - o.threshold) or best - o.threshold)
  end
  return value > (o.threshold_mode == "rel" and best * (1 + o.threshold) or best + o.threshold)
end

local function lower(o, lr)
  local less = math.max(lr * o.factor, o.min_lr)
  return lr - less > o.eps and less or lr
end

local function observe(self, metric)
  local o, seen = self.options, self.seen
  if native.is_tensor(metric) then metric = metric:item() end
  check("Plateau", type(metric) == "number", "step(metric) needs the value that is watched, got %s",
        native.describe(metric))
  if is_better(o, metric, seen.best) then
    seen.best, seen.bad = metric, 0
  else
    seen.bad = seen.bad + 1
  end
  if seen.cooldown > 0 then
    seen.cooldown, seen.bad = seen.cooldown - 1, 0
  end
  self.cuts = seen.bad > o.patience
  if not self.cuts then return end
  seen.cooldown, seen.bad = o.cooldown, 0
  for i, group in ipairs(self.optimizer.groups) do seen["lr" .. i] = lower(o, group.lr) end
end

---Times factor when the value given to step(value) has not got better for more than `patience` steps: lr = max(lr
---factor, min_lr). Better: below best (1 - threshold), in mode max above best (1 + threshold), or best minus or plus
---threshold with threshold_mode abs.
---@return perigee.Schedule
function sched.Plateau(...)
  local o = read_plateau(...)
  check("Plateau", o.factor < 1, "factor must be below 1, got %g", o.factor)
  local self = make("Plateau", o, function(self, _, base, i) return self.seen and self.seen["lr" .. i] or base end,
                    function(self, _, lr) return self.cuts and lower(o, lr) or lr end)
  self.seen, self.wants_metric, self.observe = { bad = 0, cooldown = 0 }, true, observe
  self.needed = { "bad", "cooldown" }
  return self
end

require("perigee.optim.several")(sched)

return require("perigee.names.package").close(sched, "optim.sched", "sched")
