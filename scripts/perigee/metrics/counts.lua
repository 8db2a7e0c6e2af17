-- SPDX-License-Identifier: Apache-2.0
-- Metrics of how many of a class were found, and how many of what was called it are of it.

local native = require "perigee.native"
local metric = require "perigee.metrics.metric"
local shapes = require "perigee.metrics.shapes"

local metrics = {}

-- Of each class: how often it was called rightly (hits), called at all, and there. Of yes and no only of yes.
local function count(self, prediction, target)
  local binary = prediction.shape == target.shape
  local called, real
  if binary then
    called, real = shapes.yes_or_no(self, prediction, target)
    return called:logical_and(real):sum(), called:sum(), real:sum()
  end
  shapes.check_classes(self.name, prediction, target)
  called, real = prediction:argmax { axis = 2 }:flatten(), target:to("int64"):flatten()
  local classes = { minlength = prediction.shape[2] }
  return called:masked_select(called:eq(real)):bincount(classes), called:bincount(classes), real:bincount(classes)
end

local function add(self, prediction, target)
  local seen, hits, called, real = self.seen, count(self, prediction, target)
  if seen.hits then hits, called, real = seen.hits + hits, seen.called + called, seen.real + real end
  seen.hits, seen.called, seen.real = hits, called, real
end

local function fits_counts(seen)
  for _, key in ipairs { "hits", "called", "real" } do
    local t = seen[key]
    if not native.is_tensor(t) or t.dtype ~= "int64" or t:dim() > 1 or t.shape ~= seen.hits.shape then return false end
  end
  return true
end

-- What several processes have seen, put together. One that has seen nothing counts zeros.
local function merge(seen, reduce)
  local classes = reduce("max", seen.hits and seen.hits:numel() or 0)
  if classes == 0 then return {} end
  local merged = {}
  for _, key in ipairs { "hits", "called", "real" } do
    merged[key] = reduce("sum", seen[key] and seen[key]:flatten() or
                           require("perigee").zeros({ classes }, { dtype = "int64" }))
  end
  return merged
end

local function numbers(t) return t:flatten():totable() end

-- A kind whose value is a/b, of hits, called and real: of several classes the mean over those that were there or
-- called.
local function ratio(name, divide)
  return { name = name, add = add, fits = fits_counts, merge = merge, read = function(self)
    local hits, called, real = numbers(self.seen.hits), numbers(self.seen.called), numbers(self.seen.real)
    local sum, classes = 0, 0
    for c = 1, #hits do
      if called[c] + real[c] > 0 then
        local a, b = divide(hits[c], called[c], real[c])
        sum, classes = sum + (b > 0 and a / b or 0), classes + 1
      end
    end
    return classes > 0 and sum / classes or 0
  end }
end

local PRECISION = ratio("precision", function(hits, called) return hits, called end)
local RECALL = ratio("recall", function(hits, _, real) return hits, real end)
local F1 = ratio("f1", function(hits, called, real) return 2 * hits, called + real end)

local read_precision = native.signature("metrics.Precision", { shapes.THRESHOLD })
---Of what was called positive, the part that is: hits / (hits + false alarms), over all batches together. Scores and
---targets, 0 or 1, of one shape; or scores [N, C, ...] and labels [N, ...]: then the mean over the classes that are
---there or were called. 0 where nothing was called. "precision" in fit{metrics={...}}.
---@return perigee.Metric
function metrics.Precision(...) return metric.new(PRECISION, read_precision(...)) end

local read_recall = native.signature("metrics.Recall", { shapes.THRESHOLD })
---Of what is positive, the part that was called so: hits / (hits + misses), over all batches together; as Precision.
---"recall" in fit{metrics={...}}.
---@return perigee.Metric
function metrics.Recall(...) return metric.new(RECALL, read_recall(...)) end

local read_f1 = native.signature("metrics.F1", { shapes.THRESHOLD })
---2 precision recall / (precision + recall), over all batches together; of several classes the mean of theirs; as
---Precision. "f1" in fit{metrics={...}}.
---@return perigee.Metric
function metrics.F1(...) return metric.new(F1, read_f1(...)) end

-- ---- AUC ----

-- Ranks need all scores at once.
local function keep(self, prediction, target)
  local _, real = shapes.yes_or_no(self, prediction, target)
  local seen = self.seen
  seen.scores, seen.real = seen.scores or {}, seen.real or {}
  seen.scores[#seen.scores + 1] = prediction:detach():to("float32"):flatten()
  seen.real[#seen.real + 1] = real:flatten()
end

-- Over all pairs of a positive and a negative: how often the positive has the higher score, ties half (Hanley and
-- McNeil, 1982).
local function area(self)
  local pg, seen = require "perigee", self.seen
  local scores, real = pg.cat(seen.scores, { axis = 1 }), pg.cat(seen.real, { axis = 1 })
  seen.scores, seen.real = { scores }, { real }
  local positive, negative = scores:masked_select(real), scores:masked_select(real:logical_not()):sort()
  if scores:isnan():any():item() then return 0 / 0 end
  local below, not_above = pg.searchsorted(negative, positive), pg.searchsorted(negative, positive, { right = true })
  return (below + not_above):to("float64"):sum():item() / (2 * #positive * #negative)
end

local function fits_lists(seen)
  if type(seen.scores) ~= "table" or type(seen.real) ~= "table" or #seen.scores == 0 then return false end
  for i = 1, math.max(#seen.scores, #seen.real) do
    local scores, real = seen.scores[i], seen.real[i]
    if not (native.is_tensor(scores) and native.is_tensor(real)) then return false end
    if scores.dtype ~= "float32" or real.dtype ~= "bool" or scores:dim() ~= 1 or scores.shape ~= real.shape then
      return false
    end
  end
  return true
end

-- rows(t): the rows of all processes behind each other.
local function merge_lists(seen, _, rows)
  local pg = require "perigee"
  local scores, real = pg.zeros({ 0 }, { dtype = "float32" }), pg.zeros({ 0 }, { dtype = "uint8" })
  if seen.scores then
    scores = pg.cat(seen.scores, { axis = 1 }):to "cpu"
    real = pg.cat(seen.real, { axis = 1 }):to "cpu":to "uint8"
  end
  scores, real = rows(scores), rows(real)
  return #scores > 0 and { scores = { scores }, real = { real:to "bool" } } or {}
end

local AUC = { name = "auc", add = keep, read = area, fits = fits_lists, merge = merge_lists }

local read_auc = native.signature("metrics.AUC", {})
---Area under the ROC curve, exact: how often a positive has a higher score than a negative, ties half. Scores and
---targets, 0 or 1, of one shape; it keeps all of them. NaN where one kind is missing. "auc" in fit{metrics={...}}.
---@return perigee.Metric
function metrics.AUC(...) return metric.new(AUC, read_auc(...)) end

return metrics
