-- SPDX-License-Identifier: Apache-2.0
-- Metrics that are means over samples.

local native = require "perigee.native"
local common = require "perigee.nn.loss.common"
local metric = require "perigee.metrics.metric"
local shapes = require "perigee.metrics.shapes"

local metrics = {}

local function part(where) return where:to("float32"):mean() end

local function binary(prediction, target, self)
  local called, real = shapes.yes_or_no(self, prediction, target)
  return part(called:eq(real))
end

local function accuracy(prediction, target, self)
  if shapes.is_binary(prediction, target) then return binary(prediction, target, self) end
  shapes.check_classes(self.name, prediction, target)
  return part(prediction:argmax { axis = 2 }:eq(target))
end

local ACCURACY = metric.mean_of("accuracy", accuracy)
local ERROR_RATE = metric.mean_of("error", function(...) return 1 - accuracy(...) end)
local BINARY = metric.mean_of("binary_accuracy", binary)

local read_accuracy = native.signature("metrics.Accuracy", { shapes.THRESHOLD })
---Part of the samples whose highest score [N, C, ...] is at the label [N, ...]; of scores and targets [N] or [N, 1]:
---that are on the right side of the threshold. "accuracy" in fit{metrics={...}}.
---@return perigee.Metric
function metrics.Accuracy(...) return metric.new(ACCURACY, read_accuracy(...)) end

local read_error = native.signature("metrics.ErrorRate", { shapes.THRESHOLD })
---1 - Accuracy. "error" in fit{metrics={...}}.
---@return perigee.Metric
function metrics.ErrorRate(...) return metric.new(ERROR_RATE, read_error(...)) end

local read_binary = native.signature("metrics.BinaryAccuracy", { shapes.THRESHOLD })
---Part of the elements of a prediction that are on the same side of the threshold as the target, 0 or 1, of the same
---shape. "binary_accuracy" in fit{metrics={...}}.
---@return perigee.Metric
function metrics.BinaryAccuracy(...) return metric.new(BINARY, read_binary(...)) end

local TOP_K = metric.mean_of("top_k_accuracy", function(prediction, target, self)
  shapes.check_classes(self.name, prediction, target)
  local k = self.options.k
  if k > prediction.shape[2] then
    native.raise("invalid_argument", self.name, ("k is %d, but there are %d classes"):format(k, prediction.shape[2]))
  end
  local _, best = prediction:topk { k, axis = 2 }
  return part(best:eq(target:unsqueeze(2)):any { axis = 2 })
end)

local read_top_k = native.signature("metrics.TopKAccuracy", {
  { "k", "integer", default = 5, doc = "how many of the highest scores count" } })
---Part of the samples whose label [N, ...] is among the k highest scores [N, C, ...]. "top_k_accuracy" in
---fit{metrics={...}} has k=5.
---@return perigee.Metric
function metrics.TopKAccuracy(...)
  local o = read_top_k(...)
  if o.k < 1 then native.raise("invalid_argument", "TopKAccuracy", "k must be at least 1, got " .. o.k) end
  return metric.new(TOP_K, o)
end

local function of_differences(name, fn)
  return metric.mean_of(name, function(prediction, target)
    common.check_shapes(name, prediction, target)
    return fn(prediction - target):mean()
  end)
end
local SQUARED = of_differences("mse", function(difference) return difference:square() end)
local ABSOLUTE = of_differences("mae", function(difference) return difference:abs() end)

local read_mse, read_mae = native.signature("metrics.MSE", {}), native.signature("metrics.MAE", {})

---Mean squared difference of a prediction and a target of the same shape. "mse" in fit{metrics={...}}.
---@return perigee.Metric
function metrics.MSE(...) return metric.new(SQUARED, read_mse(...)) end

---Mean absolute difference of a prediction and a target of the same shape. "mae" in fit{metrics={...}}.
---@return perigee.Metric
function metrics.MAE(...) return metric.new(ABSOLUTE, read_mae(...)) end

return metrics
