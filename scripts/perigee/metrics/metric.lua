-- SPDX-License-Identifier: Apache-2.0
-- The one class of metrics: what was seen of batches so far, as tensors that stay on the device until the value is
-- read.

local native = require "perigee.native"
local common = require "perigee.nn.loss.common"

---What is known of a model's outputs so far, batch by batch: `update` it with each, read `value`, `reset` it. For
---fit{metrics={...}} and evaluate, which do so, it only says what to compute: they have one of their own for each pass.
---@class perigee.Metric
---@field name string what histories call its values
---@field threshold? number scores above it are positive
local Metric = {}

-- A kind is { name, add(metric, prediction, target, samples), which takes a batch into metric.seen, read(metric),
-- fits(seen): whether that is what add leaves, and, where parts can be put together, merge(seen, reduce, rows), with
-- reduce("sum"|"max", number or tensor) over all processes }.
local function new(kind, options)
  return setmetatable({ kind = kind, name = kind.name, options = options, threshold = options.threshold, seen = {} },
                      Metric)
end

local function is_metric(v) return getmetatable(v) == Metric end

---Another one of its kind that has seen nothing.
---@param name? string its name, where it is another
---@param threshold? number its threshold, where it has none
---@return perigee.Metric
function Metric:fresh(name, threshold)
  local copy = new(self.kind, self.options)
  copy.name, copy.threshold = name or self.name, self.threshold or threshold
  return copy
end

---Takes a batch in. Does not wait for the device.
---@param prediction perigee.Tensor the model's output
---@param target perigee.Tensor
function Metric:update(prediction, target)
  common.check_tensors(self.name, prediction, target)
  require("perigee").no_grad(self.kind.add, self, prediction, target, target:dim() > 0 and #target or 1)
end

---The value over all batches so far; NaN where there were none. Waits for the device.
---@return number
function Metric:value()
  if native.entries.count(self.seen, 1) == 0 then return 0 / 0 end
  return require("perigee").no_grad(self.kind.read, self)
end

---Forgets all batches.
function Metric:reset() self.seen = {} end

local function copy(v, device)
  if native.is_tensor(v) then return device and v:to(device) or v end
  if type(v) ~= "table" then return v end
  local list = {}
  for key, x in pairs(v) do list[key] = copy(x, device) end
  return list
end

---What it has seen, for load_state and for checkpoints.
---@return table
function Metric:state() return copy(self.seen) end

---Takes up where state() was taken.
---@param saved table
---@param device? string where the next batches will be
function Metric:load_state(saved, device)
  if type(saved) ~= "table" or next(saved) ~= nil and not self.kind.fits(saved) then
    native.raise("invalid_argument", self.name .. ":load_state", "needs what state() returned, got " ..
                 native.describe(saved))
  end
  self.seen = copy(saved, device)
end

native.checked.class(Metric, { noun = "a metric", call = "metric", fields = "threshold",
  kinds = { fresh = { { "name", "string" }, { "threshold", "number" } },
            load_state = { { "saved", "table", required = true }, { "device", "string" } } } })

function Metric:__tostring() return ("%s(%s)"):format(self.name, next(self.seen) and self:value() or "nothing seen") end

-- ---- means over samples ----

-- Adds a mean over `samples` samples: a number, or a tensor with one element.
local function add_mean(self, mean, samples)
  local is_tensor = native.is_tensor(mean)
  if not (type(mean) == "number" or is_tensor and mean:numel() == 1) then
    native.raise("invalid_argument", self.name, "a metric gives a number or a tensor with one element, got " ..
                 native.describe(mean), is_tensor and "the mean over the batch: values:to(\"float32\"):mean()")
  end
  local seen, weighted = self.seen, (is_tensor and mean:detach() or mean) * samples
  seen.sum = seen.sum == nil and weighted or seen.sum + weighted
  seen.count = (seen.count or 0) + samples
end

local function read_mean(self)
  local sum = self.seen.sum
  if native.is_tensor(sum) then sum = sum:item() end
  return sum / self.seen.count
end

local function fits_mean(seen)
  local is_sum = type(seen.sum) == "number" or native.is_tensor(seen.sum) and seen.sum:numel() == 1
  return is_sum and type(seen.count) == "number" and seen.count > 0
end

local function number(v) return native.is_tensor(v) and v:to("float64"):sum():item() or v or 0 end

-- What several processes have seen, put together: reduce(op, value) is over all of them.
local function merge_mean(seen, reduce)
  local merged = { sum = reduce("sum", number(seen.sum)), count = reduce("sum", seen.count or 0) }
  return merged.count > 0 and merged or {}
end

-- The kind whose value is the mean of fn(prediction, target, metric) over batches, by how many samples they have.
local function mean_of(name, fn)
  local function add(self, prediction, target, samples) add_mean(self, fn(prediction, target, self), samples) end
  return { name = name, read = read_mean, fits = fits_mean, merge = merge_mean, add = add }
end

return { new = new, is_metric = is_metric, mean_of = mean_of }
