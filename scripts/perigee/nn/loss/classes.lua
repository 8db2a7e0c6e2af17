-- SPDX-License-Identifier: Apache-2.0
-- Losses of classifiers: predictions [N, C] or [N, C, ...], labels int64 [N, ...] that count from 0.

local native = require "perigee.native"
local common = require "perigee.nn.loss.common"
local labels_of = require "perigee.nn.loss.labels"

local losses = {}
local cross_entropy -- the operator's function, once it has been asked for

local class_axis = labels_of.axis

-- A number a class, in the shape in which it broadcasts against x.
local function per_class(weight, x, axis)
  local shape = {}
  for i = 1, x:dim() do shape[i] = i == axis and weight:size(1) or 1 end
  return weight:reshape(shape)
end

local function is_share(number) return number >= 0 and number <= 1 end

-- Cross entropy against probabilities of all classes; "mean" is over everything but the classes.
local function cross_entropy_of_probabilities(logits, target, options)
  local o = common.options("cross_entropy", options)
  if native.is_tensor(logits) and logits:dim() == target:dim() + 1 then
    native.raise("invalid_argument", "cross_entropy",
                 ("the labels are %s; classes are integers, counted from 0"):format(target.dtype),
                 "labels:to(\"int64\")")
  end
  common.check_shapes("cross_entropy", logits, target)
  if type(o.ignore_index) == "number" and o.ignore_index >= 0 then
    native.raise("invalid_argument", "cross_entropy",
                 ("ignore_index %s is for labels, but the target is probabilities"):format(o.ignore_index))
  end
  labels_of.check_weight("cross_entropy", logits, o.weight)
  local axis = class_axis(logits)
  local classes = logits:size(axis)
  if o.label_smoothing ~= 0 then
    local share = o.label_smoothing
    if native.size.is(classes) then
      share = require("perigee").full { {}, share, dtype = target.dtype, device = target.device }
    end
    target = target * (1 - o.label_smoothing) + share / classes
  end
  local log_probs = logits:log_softmax(axis)
  if o.weight then log_probs = log_probs * per_class(o.weight, logits, axis) end
  return common.reduce("cross_entropy", (log_probs * target):sum(axis):neg(), o.reduction)
end

common.declare("cross_entropy", { weight = false, label_smoothing = 0, ignore_index = -100 },
               { label_smoothing = "part e of the target that is spread over all classes" })
---Softmax and negative log likelihood in one: -weight[y] log(softmax(x)[y]); with label_smoothing e, 1 - e times that
---plus e / C times its sum over all classes. "mean" divides by the sum of the labels' weights.
---@param logits perigee.Tensor [N, C] or [N, C, ...]
---@param labels perigee.Tensor int64 [N, ...] from 0, or probabilities in the shape of the logits
---@param options? {weight?: perigee.Tensor, ignore_index?: integer, label_smoothing?: number,
---  reduction?: perigee.Reduction}
---@return perigee.Tensor
function losses.cross_entropy(logits, labels, options)
  if type(options) == "table" and options.label_smoothing ~= nil then
    common.check_number("cross_entropy", "label_smoothing", options.label_smoothing, is_share, "a number from 0 to 1")
  end
  if native.is_tensor(labels) and native.dtypes.by_name[labels.dtype].floating then
    return cross_entropy_of_probabilities(logits, labels, options)
  end
  if native.is_tensor(labels) and native.is_tensor(logits) and logits:dim() == 2 then
    labels_of.check_one_hot("cross_entropy", logits, labels, "labels:to(\"float32\") are probabilities")
  end
  if options ~= nil and type(options) ~= "table" then
    native.raise("invalid_argument", "cross_entropy", "options must be a table, got " .. native.describe(options))
  end
  cross_entropy = cross_entropy or native.op("cross_entropy")
  if options == nil or native.entries.count(options, 1) == 0 then return cross_entropy(logits, labels) end
  return cross_entropy(logits, labels, options)
end

common.declare("nll", { weight = false, ignore_index = -100 })
---Negative log likelihood -weight[y] x[y] of log probabilities x. "mean" divides by the sum of the labels' weights.
---@param log_probs perigee.Tensor [N, C] or [N, C, ...]
---@param labels perigee.Tensor int64 [N, ...] from 0
---@param options? {weight?: perigee.Tensor, ignore_index?: integer, reduction?: perigee.Reduction}
---@return perigee.Tensor
function losses.nll(log_probs, labels, options)
  local o = common.options("nll", options)
  common.check_tensors("nll", log_probs, labels)
  labels_of.check("nll", log_probs, labels, o.weight)
  local at = labels_of.pick("nll", log_probs, labels, o.ignore_index)
  return labels_of.reduce("nll", at.values:neg(), at, o.weight, o.reduction)
end

-- wrong^gamma values. Where nothing is wrong, slopes of a broken power are infinite sooner or later, and those of all
-- of this 0.
local function weighed_down(values, wrong, gamma)
  if gamma == 0 then return values end
  if gamma % 1 == 0 then return values * wrong:pow(gamma) end
  local none = wrong:le(wrong.dtype == "float16" and 1e-4 or 1e-37) -- NaN is not among them
  return (values * wrong:masked_fill(none, 1):pow(gamma)):masked_fill(none, 0)
end

common.declare("focal", { gamma = 2, alpha = 0.25, weight = false, ignore_index = -100 }, {
  gamma = "how far easy examples are weighed down; 0: not at all",
  alpha = "of sigmoids: weight of positives, negatives having 1 - alpha; below 0: 1 for both" })
---The cross entropy with easy examples weighed down: (1 - p)^gamma of it, p the target's probability (Lin et al. 2017).
---Labels mean softmax, targets in the logits' shape sigmoid.
---@param logits perigee.Tensor [N, C] or [N, C, ...]
---@param target perigee.Tensor int64 labels [N, ...], or numbers from 0 to 1 in the shape of the logits
---@param options? {gamma?: number, alpha?: number, weight?: perigee.Tensor, ignore_index?: integer,
---  reduction?: perigee.Reduction}
---@return perigee.Tensor
function losses.focal(logits, target, options)
  local o = common.options("focal", options)
  common.check_tensors("focal", logits, target)
  if not native.dtypes.by_name[target.dtype].floating then
    labels_of.check("focal", logits, target, o.weight, "labels:to(\"float32\") are targets of sigmoids")
    local at = labels_of.pick("focal", logits:log_softmax(class_axis(logits)), target, o.ignore_index)
    local values = weighed_down(at.values:neg(), 1 - at.values:exp(), o.gamma)
    return labels_of.reduce("focal", values, at, o.weight, o.reduction)
  end
  common.check_shapes("focal", logits, target)
  local p = logits:sigmoid()
  local wrong = p * (1 - target) + (1 - p) * target
  local values = weighed_down(logits:softplus() - logits * target, wrong, o.gamma)
  if o.alpha >= 0 then values = values * (target * o.alpha + (1 - target) * (1 - o.alpha)) end
  return common.reduce("focal", values, o.reduction)
end

common.declare("multi_margin", { p = 1, margin = 1, weight = false },
               { p = "the power, 1 or 2", margin = "how far the label's score should lead" })
---weight[label] / C times the sum of max(0, margin - x[label] + x[c])^p over the classes c other than the label
---(Crammer and Singer, 2001).
---@param x perigee.Tensor [N, C] or [C]
---@param labels perigee.Tensor int64 [N] or []
---@param options? {p?: integer, margin?: number, weight?: perigee.Tensor, reduction?: perigee.Reduction} p: 1 or 2
---@return perigee.Tensor
function losses.multi_margin(x, labels, options)
  local o = common.options("multi_margin", options)
  common.check_tensors("multi_margin", x, labels)
  if o.p ~= 1 and o.p ~= 2 then
    native.raise("invalid_argument", "multi_margin", "p must be 1 or 2, got " .. native.describe(o.p))
  end
  labels_of.check("multi_margin", x, labels, o.weight)
  local axis, pg = class_axis(x), require "perigee"
  local own = labels_of.gather("multi_margin", x, labels)
  local values = (x - own:unsqueeze(axis) + o.margin):clamp { min = 0 }
  if o.p == 2 then values = values:square() end
  local classes = x:size(axis)
  local others = labels:one_hot(classes):eq(0)
  values = pg.where(others, values, 0):sum(axis) / classes
  if o.weight then values = values * o.weight:index_select(labels:flatten(), { axis = 1 }):reshape(labels.shape) end
  return common.reduce("multi_margin", values, o.reduction)
end

common.declare("kl_div", { log_target = false }, { log_target = "whether the target is log probabilities too" },
               { "batchmean" })
---Divergence of the target's distribution from the predicted one (Kullback and Leibler 1951): target (log target - x),
---x being log probabilities; with log_target the target is too. reduction "batchmean" divides the sum by the size of
---axis 1, which is the divergence as it is defined; "mean" divides by the number of elements, as in PyTorch.
---@param x perigee.Tensor log probabilities
---@param target perigee.Tensor the shape of x
---@param options? {reduction?: perigee.Reduction|"batchmean", log_target?: boolean}
---@return perigee.Tensor
function losses.kl_div(x, target, options)
  local o = common.given("kl_div", options)
  common.check_shapes("kl_div", x, target)
  if o == nil or o.reduction ~= "batchmean" then return common.call("kl_div", "kl_div", x, target, o) end
  o.reduction = "sum"
  return common.call("kl_div", "kl_div", x, target, o) / (x:dim() > 0 and x:size(1) or 1)
end

return losses
