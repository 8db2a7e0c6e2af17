-- SPDX-License-Identifier: Apache-2.0
-- Metrics: fn(prediction, target) -> mean over the batch, a tensor or a number. Sums stay on the device until they are
-- read, so that a step never waits for one.

local native = require "perigee.native"

local metrics = {}
local known = {}

---Part of the samples whose highest score [N, C, ...] is at the label [N, ...].
function known.accuracy(prediction, target)
  if prediction:dim() ~= target:dim() + 1 then
    native.raise("invalid_argument", "accuracy", ("needs scores [N, C] and labels [N], got %s and %s"):format(
                   tostring(prediction.shape), tostring(target.shape)))
  end
  return prediction:argmax { axis = 2 }:eq(target):to("float32"):mean()
end

function known.mse(prediction, target) return (prediction - target):square():mean() end
function known.mae(prediction, target) return (prediction - target):abs():mean() end
known.error = function(prediction, target) return 1 - known.accuracy(prediction, target) end

---What metrics may be called.
---@return string[]
function metrics.names()
  local list = {}
  for name in pairs(known) do list[#list + 1] = name end
  table.sort(list)
  return list
end

---Metrics by name or function: {"accuracy", top = fn} -> list of { name, fn }.
function metrics.resolve(where, given)
  local list = {}
  if type(given) == "string" or type(given) == "function" then given = { given } end
  for key, value in pairs(given or {}) do
    local name, fn = key, value
    if type(value) == "string" then
      name, fn = value, known[value]
      if not fn then
        local near = native.suggest(value, metrics.names())
        native.raise("invalid_argument", where, ("unknown metric %q"):format(value),
                     near and ("did you mean %q?"):format(near) or "known: " .. table.concat(metrics.names(), ", "))
      end
    elseif type(key) == "number" then
      name = "metric_" .. key
    end
    if type(fn) ~= "function" then
      native.raise("invalid_argument", where, ("metric %s must be a name or a function, got %s"):format(tostring(name),
                   native.describe(value)))
    end
    list[#list + 1] = { name = name, fn = fn }
  end
  table.sort(list, function(a, b) return a.name < b.name end)
  return list
end

local Mean = {}
Mean.__index = Mean

---A mean over samples, of values that are means over batches.
function metrics.mean() return setmetatable({ count = 0 }, Mean) end

function Mean:add(value, samples)
  if native.is_tensor(value) then value = value:detach() end
  local weighted = value * samples
  self.sum = self.sum == nil and weighted or self.sum + weighted
  self.count = self.count + samples
end

function Mean:state() return { sum = self.sum, count = self.count } end

function Mean:load_state(saved, device)
  self.sum, self.count = saved.sum, saved.count
  if native.is_tensor(self.sum) and device then self.sum = self.sum:to(device) end
end

---The mean so far as a number; waits for the device.
function Mean:value()
  if self.count == 0 then return 0 / 0 end
  local sum = self.sum
  if native.is_tensor(sum) then sum = sum:item() end
  return sum / self.count
end

return metrics
