-- SPDX-License-Identifier: Apache-2.0
-- What all schedules are: rates of an optimizer's groups as a function of how many steps are done. The first schedule
-- of an optimizer notes each group's rate as its initial one, from which all go out, until a script sets another.

local native = require "perigee.native"
local kept = rawget(native, "optim.schedule") -- a script that clears package.loaded gets the same again
if kept then return kept end

---@class perigee.Schedule
---@field done integer steps done: epochs or batches, whatever step() is called for
---@field wants_metric? boolean whether step(metric) needs the value that is watched
local Schedule = {}
Schedule.__index = Schedule

---Makes a schedule; `rates(self, done, base)` answers the rate of a group whose initial one is base.
function Schedule.new(where, optimizer, options, rates)
  if type(optimizer) ~= "table" or type(optimizer.groups) ~= "table" or #optimizer.groups == 0 then
    native.raise("invalid_argument", where, "the first argument must be a bound optimizer",
                 "where fit binds it: callbacks.LRScheduler{ function(optimizer) return ... end }")
  end
  local base = {}
  for i, group in ipairs(optimizer.groups) do
    if not rawget(group, "initial_lr") then rawset(group, "initial_lr", group.lr) end
    base[i] = group.initial_lr
  end
  local self = setmetatable({ optimizer = optimizer, options = options, rates = rates, done = 0, base = base,
                              name = where }, Schedule)
  self:apply()
  return self
end

---Sets the rates of what is done.
function Schedule:apply()
  for i, group in ipairs(self.optimizer.groups) do
    group.attributes:set("lr", self:rates(self.done, self.base[i], i)) -- not group.lr: that would be a new initial rate
  end
  if self.also then self:also(self.done) end
end

---Counts one more step and sets the rates that follow. Schedules that watch a value are given it.
---@param metric? number
function Schedule:step(metric)
  self.done = self.done + 1
  if self.observe then self:observe(metric) end
  self:apply()
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
  return { done = self.done, base = { unpack(self.base) }, seen = seen, parts = parts }
end

local function restore(self, saved)
  if type(saved) ~= "table" or type(saved.base) ~= "table" or #saved.base ~= #self.base then
    native.raise("invalid_argument", self.name .. ":load_state", "needs what state() returned for as many groups")
  end
  self.done, self.base = saved.done, { unpack(saved.base) }
  for i, group in ipairs(self.optimizer.groups) do rawset(group, "initial_lr", self.base[i]) end
  if self.seen then
    self.seen = {}
    for key, value in pairs(saved.seen) do self.seen[key] = value end
  end
  for i, part in ipairs(self.parts or {}) do restore(part, saved.parts[i]) end
end

---Takes up where state() was taken.
---@param saved table
function Schedule:load_state(saved)
  restore(self, saved)
  self:apply()
  return self
end

function Schedule:__tostring() return ("%s(%d done)"):format(self.name, self.done) end

rawset(native, "optim.schedule", Schedule)
return Schedule
