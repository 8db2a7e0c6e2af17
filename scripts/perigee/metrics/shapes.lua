-- SPDX-License-Identifier: Apache-2.0
-- What metrics take for scores of classes and for scores of yes and no.

local native = require "perigee.native"
local common = require "perigee.nn.loss.common"

local shapes = {}

---The parameter of metrics of yes and no.
shapes.THRESHOLD = { "threshold", "number", named = true,
  doc = "scores above it are positive; if not given 0, as of logits, or 0.5 where fit's loss is bce" }

local function refuse(where, prediction, target, expected, hint)
  native.raise("invalid_argument", where, ("needs %s, got %s and %s"):format(expected, tostring(prediction.shape),
               tostring(target.shape)), hint)
end

---Whether prediction and target are yes or no an element: [N] or [N, 1] both.
function shapes.is_binary(prediction, target)
  common.check_tensors("metrics", prediction, target)
  local rank = prediction:dim()
  if rank ~= target:dim() or rank < 1 or rank > 2 then return false end
  local shape = prediction.shape
  return (rank == 1 or shape[2] == 1) and shape == target.shape
end

---Raises unless they are scores [N, C, ...] of at least two classes and labels [N, ...].
function shapes.check_classes(where, prediction, target)
  common.check_tensors(where, prediction, target)
  local scores, labels = prediction.shape, target.shape
  local fits = #scores == #labels + 1 and #labels > 0 and scores[2] > 1
  for axis = 1, #labels do
    fits = fits and labels[axis] == scores[axis == 1 and 1 or axis + 1]
  end
  if fits then return end
  local same = scores == labels
  refuse(where, prediction, target, "scores [N, C] and labels [N], or two of [N] or [N, 1]", same and
         'one-hot targets: y:argmax{axis=2}; yes or no an element: "binary_accuracy"' or nil)
end

---Where a score is above the metric's threshold, and where a target is 1, as bool tensors of one shape.
function shapes.yes_or_no(metric, prediction, target)
  common.check_shapes(metric.name, prediction, target)
  return prediction:gt(metric.threshold or 0), target:to("float32"):gt(0.5)
end

return shapes
