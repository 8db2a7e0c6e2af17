-- SPDX-License-Identifier: Apache-2.0
-- LRScheduler: steps a schedule of perigee.optim.sched while fit trains.

local native = require "perigee.native"
local watch = require "perigee.callbacks.watch"

local callbacks = {}

local LRScheduler = {}
LRScheduler.__index = LRScheduler

local read = native.signature("LRScheduler", {
  { "schedule", "any", required = true, type = "perigee.Schedule|fun(optimizer: perigee.Optimizer): perigee.Schedule",
    doc = "the schedule, or what makes it when the training begins" },
  { "per", "string", named = true, default = "epoch", choices = { "epoch", "batch" },
    doc = "what step() is called for" },
  { "monitor", "string", named = true, default = "val_loss", doc = "name of the value that Plateau is given" } })

local function is_schedule(v) return type(v) == "table" and type(v.step) == "function" end

---Steps a schedule after every epoch, or with per="batch" after every batch. Where fit binds the optimizer, it is a
---function of that optimizer, which makes the schedule when the training begins. optim.sched.Plateau is given the value
---of `monitor`.
---@return perigee.Callback
function callbacks.LRScheduler(...)
  local o = read(...)
  if type(o.schedule) ~= "function" and not is_schedule(o.schedule) then
    native.raise("invalid_argument", "LRScheduler", "needs a schedule or a function that makes one, got " ..
                 native.describe(o.schedule))
  end
  return setmetatable({ options = o }, LRScheduler)
end

function LRScheduler:on_train_begin(job)
  local schedule = self.options.schedule
  if type(schedule) == "function" then
    schedule = schedule(job.optimizer)
    if not is_schedule(schedule) then
      native.raise("invalid_argument", "LRScheduler", "the function must return a schedule, got " ..
                   native.describe(schedule))
    end
  end
  self.schedule = schedule
end

function LRScheduler:on_batch_end()
  if self.options.per == "batch" then self.schedule:step() end
end

function LRScheduler:on_epoch_end(job, entry)
  entry.lr = job.optimizer.groups[1].lr
  if self.options.per ~= "epoch" then return end
  if self.schedule.wants_metric then
    self.schedule:step(watch.value("LRScheduler", entry, self.options.monitor))
  else
    self.schedule:step()
  end
end

function LRScheduler:state() return self.schedule:state() end
function LRScheduler:load_state(saved) self.schedule:load_state(saved) end

return callbacks
