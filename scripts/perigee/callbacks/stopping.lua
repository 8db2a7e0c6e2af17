-- SPDX-License-Identifier: Apache-2.0
-- EarlyStopping: ends a training that gets no better.

local native = require "perigee.native"
local watch = require "perigee.callbacks.watch"

local callbacks = {}

---@class perigee.callbacks.EarlyStopping: perigee.Callback
---@field best? number the best value so far
---@field best_epoch? integer
local EarlyStopping = {}
EarlyStopping.__index = EarlyStopping

local read = native.signature("EarlyStopping", {
  { "monitor", "string", default = "val_loss", doc = "name of a value in the history's entries" },
  { "patience", "integer", named = true, default = 0, doc = "epochs without a better value that are borne" },
  { "min_delta", "number", named = true, default = 0, doc = "how much better a value must be to count" },
  watch.MODE,
  { "restore_best", "boolean", named = true, default = false, doc = "whether the model ends with its best weights" } })

---Stops when `monitor` has not got better by more than min_delta for more than `patience` epochs. With restore_best the
---model has the weights of the best epoch (`callback.best`, `.best_epoch`) when the training ends, whatever ended it;
---checkpoints have those of their epoch.
---@return perigee.callbacks.EarlyStopping
function callbacks.EarlyStopping(...)
  local o = read(...)
  if o.patience < 0 then
    native.raise("invalid_argument", "EarlyStopping", "patience must not be negative, got " .. o.patience)
  end
  o.mode = watch.mode(o.mode, o.monitor)
  return setmetatable({ options = o, waited = 0 }, EarlyStopping)
end

function EarlyStopping:on_train_begin() self.best, self.best_epoch, self.weights, self.waited = nil, nil, nil, 0 end

function EarlyStopping:on_epoch_end(job, entry)
  local o = self.options
  local value = watch.value("EarlyStopping", entry, o.monitor)
  if watch.better(o.mode, value, self.best, o.min_delta) then
    self.best, self.best_epoch, self.waited = value, entry.epoch, 0
    if o.restore_best then
      self.weights = {}
      for name, t in pairs(job.model:state()) do self.weights[name] = t:clone() end
    end
    return
  end
  self.waited = self.waited + 1
  if self.waited > o.patience then job.stop = true end
end

function EarlyStopping:on_train_end(job)
  if self.weights then job.model:load_state(self.weights) end
end

function EarlyStopping:state()
  return { best = self.best, best_epoch = self.best_epoch, waited = self.waited, weights = self.weights }
end

local function is_count(v) return type(v) == "number" and v >= 0 and v % 1 == 0 end

local function fits(saved)
  if type(saved) ~= "table" or not is_count(saved.waited) then return false end
  if saved.best ~= nil and type(saved.best) ~= "number" then return false end
  if saved.best_epoch ~= nil and not is_count(saved.best_epoch) then return false end
  if saved.weights ~= nil and type(saved.weights) ~= "table" then return false end
  for name, t in pairs(saved.weights or {}) do
    if type(name) ~= "string" or not native.is_tensor(t) then return false end
  end
  return true
end

function EarlyStopping:load_state(saved, job)
  if not fits(saved) then
    native.raise("invalid_argument", "EarlyStopping:load_state", "needs what state() returned, got " ..
                 native.describe(saved))
  end
  self.best, self.best_epoch, self.waited, self.weights = saved.best, saved.best_epoch, saved.waited, saved.weights
  if self.waited > self.options.patience then job.stop = true end
end

return callbacks
