-- SPDX-License-Identifier: Apache-2.0
-- Losses as functions of (prediction, target, options) and as layers that remember the options.

local native = require "perigee.native"
local Module = require "perigee.nn.module"

local losses = {}
local cross_entropy -- the operator's function, once it has been asked for

local function read_options(where, options, known)
  options = options or {}
  if type(options) ~= "table" then
    native.raise("invalid_argument", where, "options must be a table, got " .. native.describe(options))
  end
  known.reduction = known.reduction or "mean"
  for key, value in pairs(options) do
    if known[key] == nil then
      local names = {}
      for name in pairs(known) do names[#names + 1] = name end
      local near = native.suggest(tostring(key), names)
      native.raise("invalid_argument", where, ("unknown option %q"):format(tostring(key)),
                   near and ("did you mean %q?"):format(near))
    end
    known[key] = value
  end
  return known
end

local function reduce(where, values, reduction)
  if reduction == "mean" then return values:mean() end
  if reduction == "sum" then return values:sum() end
  if reduction == "none" then return values end
  native.raise("invalid_argument", where, "reduction must be mean, sum or none, got " .. native.describe(reduction))
end

-- Broadcasting [N, 1] against [N] here is nearly always a mistake, and a silent one.
local function check_shapes(where, x, y)
  if not native.is_tensor(x) or not native.is_tensor(y) then
    native.raise("invalid_argument", where, ("needs two tensors, got %s and %s"):format(native.describe(x),
                 native.describe(y)))
  end
  if x.shape ~= y.shape then
    native.raise("invalid_argument", where, ("the prediction is %s but the target %s"):format(tostring(x.shape),
                 tostring(y.shape)), "reshape one of them")
  end
end

-- Cross entropy against probabilities of all classes; "mean" is over everything but the classes.
local function cross_entropy_of_probabilities(logits, target, options)
  local o = read_options("cross_entropy", options, { weight = false, label_smoothing = 0 })
  check_shapes("cross_entropy", logits, target)
  local axis = logits:dim() == 1 and 1 or 2
  local classes = logits:size(axis)
  if o.label_smoothing ~= 0 then target = target * (1 - o.label_smoothing) + o.label_smoothing / classes end
  local log_probs = logits:log_softmax(axis)
  if o.weight then
    local shape = {}
    for i = 1, logits:dim() do shape[i] = i == axis and classes or 1 end
    log_probs = log_probs * o.weight:reshape(shape)
  end
  return reduce("cross_entropy", (log_probs * target):sum(axis):neg(), o.reduction)
end

---Softmax and negative log likelihood in one: logits [N, C] or [N, C, ...], labels int64 [N, ...] from 0, or
---probabilities in the shape of the logits. Options: weight [C], ignore_index = -100 (of labels),
---label_smoothing = 0, reduction = "mean".
function losses.cross_entropy(logits, labels, options)
  if native.is_tensor(labels) and native.dtypes.by_name[labels.dtype].floating then
    return cross_entropy_of_probabilities(logits, labels, options)
  end
  cross_entropy = cross_entropy or native.op("cross_entropy")
  if options == nil or next(options) == nil then return cross_entropy(logits, labels) end
  return cross_entropy(logits, labels, options)
end

---Negative log likelihood of log probabilities [N, C] or [N, C, ...]; labels int64 [N, ...] from 0.
function losses.nll(log_probs, labels, options)
  local o = read_options("nll", options, { weight = false, ignore_index = -100 })
  if not native.is_tensor(log_probs) or not native.is_tensor(labels) then
    native.raise("invalid_argument", "nll", "needs log probabilities and labels, two tensors")
  end
  local axis = log_probs:dim() == 1 and 1 or 2
  local counts = labels:ne(o.ignore_index)
  local index = labels:masked_fill(labels:eq(o.ignore_index), 0)
  local picked = log_probs:gather(index:unsqueeze(axis), { axis = axis }):squeeze(axis):neg()
  local weights = counts:to(log_probs.dtype)
  if o.weight then weights = weights * o.weight:index_select(index:flatten(), { axis = 1 }):reshape(index.shape) end
  local values = picked * weights
  if o.reduction == "mean" then return values:sum() / weights:sum() end
  return reduce("nll", values, o.reduction)
end

---Mean of (x - y)^2.
function losses.mse(x, y, options)
  local o = read_options("mse", options, {})
  check_shapes("mse", x, y)
  return reduce("mse", (x - y):square(), o.reduction)
end

---Mean of |x - y|.
function losses.l1(x, y, options)
  local o = read_options("l1", options, {})
  check_shapes("l1", x, y)
  return reduce("l1", (x - y):abs(), o.reduction)
end

---Quadratic within delta, linear outside (Huber, 1964).
function losses.huber(x, y, options)
  local o = read_options("huber", options, { delta = 1 })
  check_shapes("huber", x, y)
  local d = (x - y):abs()
  local within = d:clamp { max = o.delta }
  return reduce("huber", within * (d - within * 0.5), o.reduction)
end

---Huber's loss divided by beta.
function losses.smooth_l1(x, y, options)
  local o = read_options("smooth_l1", options, { beta = 1 })
  if o.beta == 0 then return losses.l1(x, y, { reduction = o.reduction }) end
  return losses.huber(x, y, { delta = o.beta, reduction = o.reduction }) / o.beta
end

-- Logarithms stop at -100, so that a certain and wrong prediction costs much and not infinitely much.
local function clamped_log(p) return p:log():clamp { min = -100 } end

---Binary cross entropy of probabilities in [0, 1].
function losses.bce(p, y, options)
  local o = read_options("bce", options, { weight = false })
  check_shapes("bce", p, y)
  local values = -(y * clamped_log(p) + (1 - y) * clamped_log(1 - p))
  if o.weight then values = values * o.weight end
  return reduce("bce", values, o.reduction)
end

---Binary cross entropy of logits: safe for any size of them.
function losses.bce_with_logits(x, y, options)
  local o = read_options("bce_with_logits", options, { weight = false, pos_weight = false })
  check_shapes("bce_with_logits", x, y)
  local values
  if o.pos_weight then
    values = (1 - y) * x + ((o.pos_weight - 1) * y + 1) * (-x):softplus()
  else
    values = x:softplus() - x * y
  end
  if o.weight then values = values * o.weight end
  return reduce("bce_with_logits", values, o.reduction)
end

-- The layers: nn.MSELoss{reduction="sum"}(x, y).
for class_name, name in pairs { CrossEntropyLoss = "cross_entropy", NLLLoss = "nll", MSELoss = "mse", L1Loss = "l1",
                                HuberLoss = "huber", SmoothL1Loss = "smooth_l1", BCELoss = "bce",
                                BCEWithLogitsLoss = "bce_with_logits" } do
  local class = Module.class(class_name)
  function class:init(options) self.options = options end
  function class:forward(prediction, target) return losses[name](prediction, target, self.options) end
  losses[class_name] = class
end

return losses
