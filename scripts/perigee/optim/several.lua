-- SPDX-License-Identifier: Apache-2.0
-- Schedules of schedules: one after the other, or all at once.

local native = require "perigee.native"
local Schedule = require "perigee.optim.schedule"
local checks = require "perigee.optim.checks"

local check, check_counts = checks.check, checks.counts

local function chain_rates(self, _, base, i)
  if not self.milestones then -- all at once: their factors are multiplied
    local rate = base
    for _, part in ipairs(self.parts) do
      local own = part:rates(part.done, base, i)
      rate = base == 0 and rate + own or rate * (own / base)
    end
    return rate
  end
  local part = self.parts[self.seen.active]
  return part:rates(part.done, base, i)
end

local function part_chain(part, lr, base, i)
  if part.chain and part.done > 0 then return part:chain(part.done, lr, base, i) end
  return part:rates(part.done, base, i)
end

local function chain_chain(self, _, lr, base, i)
  if self.milestones then return part_chain(self.parts[self.seen.active], lr, base, i) end
  for _, part in ipairs(self.parts) do lr = part_chain(part, lr, base, i) end
  return lr
end

local function chain_step(self, metric)
  local active = self.seen.active
  if not self.milestones then
    for _, part in ipairs(self.parts) do part.done = part.done + 1 end
  elseif self.milestones[active] and self.done >= self.milestones[active] then
    self.seen.active = active + 1 -- it begins where it began: at no step done
  else
    local part = self.parts[active]
    part.done = part.done + 1
    if part.observe then part:observe(metric) end
  end
end

local function chain_also(self)
  local part = self.milestones and self.parts[self.seen.active]
  if part and part.also then part:also(part.done) end
end

local function check_parts(name, parts, milestones)
  check(name, #parts > 0, "needs schedules")
  for i = 1, #parts do
    local part = parts[i] -- nil in a list with a hole
    check(name, getmetatable(part) == Schedule, "argument %d must be a schedule, got %s", i, native.describe(part))
    check(name, part.optimizer == parts[1].optimizer, "schedule %d has another optimizer", i)
    check(name, milestones or not (part.observe or part.also), "schedule %d, %s, needs milestones", i, part.name)
  end
  if not milestones then return end
  check(name, type(milestones) == "table", "milestones must be a list, got %s", native.describe(milestones))
  check_counts(name, "milestones", milestones)
  check(name, #milestones == #parts - 1, "%d schedules need %d milestones, got %d", #parts, #parts - 1, #milestones)
  for i = 2, #milestones do check(name, milestones[i] > milestones[i - 1], "milestones must increase") end
end

local function several(name, ...)
  local given = ...
  if not native.is_plain(given) then given = { ... } end
  for key in pairs(given) do
    check(name, type(key) == "number" or key == "milestones", "unknown option %q", tostring(key))
  end
  local parts = { unpack(given) }
  check_parts(name, parts, given.milestones)
  check(name, name ~= "Sequential" or given.milestones, "milestones is missing")
  local o = { optimizer = parts[1].optimizer }
  local self = Schedule.new("optim.sched." .. name, o.optimizer, o, function(_, _, base) return base end)
  self.parts, self.milestones, self.seen = parts, given.milestones, { active = 1 }
  self.needed = { "active" }
  self.rates, self.chain, self.observe, self.also = chain_rates, chain_chain, chain_step, chain_also
  for _, part in ipairs(parts) do self.wants_metric = self.wants_metric or part.wants_metric end
  self:apply()
  return self
end

return function(sched)
  ---`optim.sched.Sequential{first, second, ..., milestones={n, ...}}`: one schedule after the other, each beginning at
  ---its milestone, a count of steps: Sequential{Linear{opt, 0.1, total_iters=10}, Cosine{opt, 90}, milestones={10}}.
  ---@return perigee.Schedule
  function sched.Sequential(...) return several("Sequential", ...) end

  ---`optim.sched.Chain{first, second, ...}`: schedules all at once; their factors are multiplied (PyTorch's
  ---ChainedScheduler). With milestones={n, ...} one after the other, as Sequential.
  ---@return perigee.Schedule
  function sched.Chain(...) return several("Chain", ...) end
end
