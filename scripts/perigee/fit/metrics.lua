-- SPDX-License-Identifier: Apache-2.0
-- The metrics that fit and evaluate are asked for: names, functions (prediction, target) -> mean over the batch, and
-- metrics of perigee.metrics.

local native = require "perigee.native"
local metric = require "perigee.metrics.metric"

local chosen = {}

local classes = { accuracy = "Accuracy", error = "ErrorRate", binary_accuracy = "BinaryAccuracy",
                  top_k_accuracy = "TopKAccuracy", precision = "Precision", recall = "Recall", f1 = "F1", auc = "AUC",
                  mse = "MSE", mae = "MAE" }
local reserved = { loss = true, epoch = true, seconds = true, lr = true } -- what histories hold beside metrics

---What metrics may be called.
---@return string[]
function chosen.names()
  local list = {}
  for name in pairs(classes) do list[#list + 1] = name end
  table.sort(list)
  return list
end

local function by_name(where, name)
  if classes[name] then return require("perigee.metrics")[classes[name]] {} end
  local names = chosen.names()
  local near = require("perigee.names.foreign").metric(name) or native.suggest(name, names)
  native.raise("invalid_argument", where, ("unknown metric %q"):format(name),
               near and ("did you mean %q?"):format(near) or "known: " .. table.concat(names, ", "))
end

-- The metric that is meant by what stands under a key.
local function resolve_one(where, key, value)
  if type(value) == "string" then return by_name(where, value) end
  if metric.is_metric(value) then return value end
  if type(value) == "function" then
    local name = type(key) == "number" and "metric_" .. key or tostring(key)
    return metric.new(metric.mean_of(name, value), {})
  end
  native.raise("invalid_argument", where, ("metric %s must be a name, a function or a metric, got %s"):format(
                 tostring(key), native.describe(value)))
end

local function check_name(where, taken, name)
  if reserved[name] or name:find("^val_") then
    native.raise("invalid_argument", where, ("a metric cannot be called %q: histories have it for something else")
                   :format(name), "metrics={name=fn}")
  end
  if taken[name] then
    native.raise("invalid_argument", where, ("two metrics are called %q"):format(name), "metrics={name=fn}")
  end
  taken[name] = true
end

-- Where scores of yes turn to no: bce takes probabilities, the other losses logits.
local function threshold_of(loss)
  local nn = require "perigee.nn"
  return (loss == nn.bce or getmetatable(loss) == nn.BCELoss) and 0.5 or nil
end

---Metrics by name, function or object: {"accuracy", far = fn} -> a list in the order of their names.
---@param loss function|perigee.Layer what the training minimises
---@return perigee.Metric[]
function chosen.resolve(where, given, loss)
  local list, taken = {}, {}
  if type(given) ~= "table" or metric.is_metric(given) then given = { given } end
  for key, value in pairs(given) do
    local found = resolve_one(where, key, value)
    local name = type(key) == "string" and key or found.name
    check_name(where, taken, name)
    list[#list + 1] = found:fresh(name, threshold_of(loss))
  end
  table.sort(list, function(a, b) return a.name < b.name end)
  return list
end

local LOSS = metric.mean_of("loss", function(loss) return loss end)

---What is seen in one pass over batches: the loss, and fresh metrics by name.
---@param list perigee.Metric[]
---@return table<string, perigee.Metric>
function chosen.begin(list)
  local pass = { loss = metric.new(LOSS, {}) }
  for _, each in ipairs(list) do pass[each.name] = each:fresh() end
  return pass
end

local function add(pass, loss, prediction, target, samples)
  for name, each in pairs(pass) do
    each.kind.add(each, name == "loss" and loss or prediction, target, samples)
  end
end

---Takes a batch in.
function chosen.add(...) require("perigee").no_grad(add, ...) end

return chosen
