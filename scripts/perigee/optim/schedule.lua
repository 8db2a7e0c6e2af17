-- SPDX-License-Identifier: Apache-2.0
-- What all schedules are: rates of an optimizer's groups as a function of how many steps are done. The first schedule
-- of an optimizer notes each group's rate as its initial one, from which all go out, until a script sets another. Where
-- something else has set the rate since, a step goes on from there by PyTorch's recursive rule, `chain`.

local native = require "perigee.native"
local kept = rawget(native, "optim.schedule") -- a script that clears package.loaded gets the same again
if kept then return kept end

---@class perigee.Schedule
---@field done integer steps done: epochs or batches, whatever step() is called for
---@field wants_metric? boolean whether step(metric) needs the value that is watched
local Schedule = {}

---Makes a schedule; `rates(self, done, base, i)` answers the rate of group i, whose initial one is base;
---`chain(self, done, lr, base, i)` the one that follows lr with the done-th step (nil: rates alone counts).
function Schedule.new(where, optimizer, options, rates, chain)
  if type(optimizer) ~= "table" or type(optimizer.groups) ~= "table" or #optimizer.groups == 0 then
    native.raise("invalid_argument", where, "the first argument must be a bound optimizer",
                 "where fit binds it: callbacks.LRScheduler{ function(optimizer) return ... end }")
  end
  local self = setmetatable({ optimizer = optimizer, options = options, rates = rates, chain = chain, done = 0,
                              base = {}, name = where }, Schedule)
  self:apply()
  return self
end

local function base_of(self, i, group)
  if not self.base[i] then
    if not rawget(group, "initial_lr") then rawset(group, "initial_lr", group.lr) end
    self.base[i] = rawget(group, "initial_lr")
  end
  return self.base[i]
end

-- `free`: the rate is not the one that `rates` gives, since a script has set it once.
local function set(group, rate, free)
  rawset(group, "scheduled", rate)
  rawset(group, "free", free)
  group.attributes:set("lr", rate) -- not group.lr: that would be a new initial rate
end

local function is_free(group) return rawget(group, "free") or group.lr ~= rawget(group, "scheduled") end

---Sets the rates of what is done.
function Schedule:apply()
  for i, group in ipairs(self.optimizer.groups) do
    set(group, self:rates(self.done, base_of(self, i, group), i), false)
  end
  if self.also then self:also(self.done) end
end

-- The rates of what is done, from those of the step before.
local function go_on(self)
  for i, group in ipairs(self.optimizer.groups) do
    local now, base = group.lr, base_of(self, i, group)
    local given = self:rates(self.done, base, i)
    local rate = self.chain and is_free(group) and self:chain(self.done, now, base, i) or given
    set(group, rate, rate ~= given)
  end
  if self.also then self:also(self.done) end
end

local function step(self, metric)
  self.done = self.done + 1
  if self.observe then self:observe(metric) end
  go_on(self)
end

---Counts one more step and sets the rates that follow. Schedules that watch a value are given it.
---@param metric? number
function Schedule:step(metric)
  local strategy = rawget(native, "strategy") -- of replicas that share an optimizer
  if strategy then return strategy.once("schedule:step()", step, self, metric) end
  step(self, metric)
end

---The rates in force, a number a group.
---@return number[]
function Schedule:lr()
  local list = {}
  for i, group in ipairs(self.optimizer.groups) do list[i] = group.lr end
  return list
end

---A plain table, for load_state.
---@return table
function Schedule:state()
  local seen = self.seen and {} or nil
  for key, value in pairs(self.seen or {}) do seen[key] = value end
  local parts = self.parts and {} or nil
  for i, part in ipairs(self.parts or {}) do parts[i] = part:state() end
  local base, free = {}, {}
  for i, group in ipairs(self.optimizer.groups) do
    base[i], free[i] = base_of(self, i, group), is_free(group)
  end
  return { schedule = self.name, done = self.done, base = base, lr = self:lr(), free = free, seen = seen,
           parts = parts }
end

local function is_list_of(list, kind, count)
  for i = 1, count do
    if type(list) ~= "table" or type(list[i]) ~= kind then return false end
  end
  return #list == count
end

local function check_state(self, saved)
  local function need(condition, text)
    if not condition then native.raise("invalid_argument", self.name .. ":load_state", text) end
  end
  local count = #self.optimizer.groups
  need(type(saved) == "table" and is_list_of(saved.base, "number", count),
       "needs what state() returned for as many groups")
  need(saved.schedule == nil or saved.schedule == self.name, "the state is one of " .. tostring(saved.schedule))
  need(type(saved.done) == "number" and saved.done >= 0 and saved.done % 1 == 0 and saved.done < 2 ^ 53,
       "done must be a count, got " .. native.describe(saved.done))
  need(saved.lr == nil or is_list_of(saved.lr, "number", count) and is_list_of(saved.free, "boolean", count),
       "needs a rate a group")
  need(type(saved.seen) == type(self.seen), "the state is one of another schedule")
  for key, value in pairs(saved.seen or {}) do
    need(type(key) == "string" and type(value) == "number", ("%s must be a number, got %s"):format(tostring(key),
         native.describe(value)))
  end
  for _, key in ipairs(rawget(self, "needed") or {}) do need(saved.seen[key], key .. " is missing") end
  local active = saved.seen and saved.seen.active
  need(not active or self.parts and self.parts[active], "there is no part " .. tostring(active))
  need(self.parts == nil or is_list_of(saved.parts, "table", #self.parts), "the state is one of other schedules")
  for i, part in ipairs(self.parts or {}) do check_state(part, saved.parts[i]) end
end

local function restore(self, saved)
  self.done, self.base = saved.done, { unpack(saved.base) }
  for i, group in ipairs(self.optimizer.groups) do rawset(group, "initial_lr", self.base[i]) end
  if self.seen then
    self.seen = {}
    for key, value in pairs(saved.seen) do self.seen[key] = value end
  end
  for i, part in ipairs(self.parts or {}) do restore(part, saved.parts[i]) end
end

---Takes up where state() was taken. Everything is checked before anything is changed.
---@param saved table
function Schedule:load_state(saved)
  check_state(self, saved)
  restore(self, saved)
  self:apply()
  for i, group in ipairs(self.optimizer.groups) do
    if saved.free and saved.free[i] then set(group, saved.lr[i], true) end
  end
  return self
end

native.checked.class(Schedule, { noun = "a schedule", call = "schedule", skip = "new",
  fields = "also observe seen parts chain wants_metric milestones cuts",
  kinds = { step = { { "metric", "number" } } } })

function Schedule:__tostring() return ("%s(%d done)"):format(self.name, self.done) end

rawset(native, "optim.schedule", Schedule)
return Schedule
