-- SPDX-License-Identifier: Apache-2.0
-- Losses as functions of (prediction, target, options) and as layers that remember the options: nn.mse(x, y), and
-- nn.MSELoss{reduction="sum"}(x, y). The functions are in loss/, by what they compare.

local native = require "perigee.native"
local policy = require "perigee.nn.policy"
local Module = require "perigee.nn.module"
local common = require "perigee.nn.loss.common"
local told = require "perigee.nn.told"

local losses = {}
for _, part in ipairs { "classes", "values", "binary", "distances", "sequences" } do
  for name, loss in pairs(require("perigee.nn.loss." .. part)) do losses[name] = loss end
end

-- A loss whose arguments may all stand in one table, like those of any other function.
local function with_table(name, loss)
  return function(x, ...)
    if native.is_tensor(x) then return loss(x, ...) end
    return loss(native.spread(name, x, ...))
  end
end
for name, loss in pairs(losses) do losses[name] = with_table(name, policy.wide(native.checked.plain(name, loss))) end

-- Layers by class, and how many tensors they take.
local classes = {
  CrossEntropyLoss = { "cross_entropy", 2 }, NLLLoss = { "nll", 2 }, FocalLoss = { "focal", 2 },
  MultiMarginLoss = { "multi_margin", 2 }, KLDivLoss = { "kl_div", 2 },
  MSELoss = { "mse", 2 }, L1Loss = { "l1", 2 }, HuberLoss = { "huber", 2 }, SmoothL1Loss = { "smooth_l1", 2 },
  PoissonNLLLoss = { "poisson_nll", 2 }, GaussianNLLLoss = { "gaussian_nll", 3 },
  BCELoss = { "bce", 2 }, BCEWithLogitsLoss = { "bce_with_logits", 2 },
  MultiLabelSoftMarginLoss = { "multilabel_soft_margin", 2 }, HingeLoss = { "hinge", 2 },
  SoftMarginLoss = { "soft_margin", 2 }, HingeEmbeddingLoss = { "hinge_embedding", 2 },
  CosineEmbeddingLoss = { "cosine_embedding", 3 }, MarginRankingLoss = { "margin_ranking", 3 },
  TripletMarginLoss = { "triplet_margin", 3 }, CTCLoss = { "ctc", 4 },
}

for class_name, row in pairs(classes) do
  local class, name, count = Module.class(class_name), row[1], row[2]
  function class:init(options)
    self.options = common.copy(class_name, name, options)
  end
  if count == 2 then
    function class:forward(prediction, target) return losses[name](prediction, target, self.options) end
  elseif count == 3 then
    function class:forward(a, b, c) return losses[name](a, b, c, self.options) end
  else
    function class:forward(a, b, c, d) return losses[name](a, b, c, d, self.options) end
  end
  losses[class_name], told.losses[class_name] = class, name
end

return losses
