-- SPDX-License-Identifier: Apache-2.0
-- Losses of yes and no: targets from 0 to 1, or -1 and 1.

local native = require "perigee.native"
local common = require "perigee.nn.loss.common"

local losses = {}
local cross_entropy -- of probabilities, once it has been asked for

local weight = "factor of each value, broadcasts against them"

common.declare("bce", { weight = false }, { weight = weight })
---Binary cross entropy of probabilities p in [0, 1], in the shape of y: -(y log(p) + (1 - y) log(1 - p)), logarithms
---being -100 at least. A p outside is an error that names it. The gradient (p - y) / (p (1 - p)) is divided by 1e-12 at
---least, so that it is finite where p is 0 or 1 (float16: by 2^-15).
---@param p perigee.Tensor probabilities
---@param y perigee.Tensor the shape of p
---@param options? {weight?: perigee.Tensor, reduction?: perigee.Reduction}
---@return perigee.Tensor
function losses.bce(p, y, options)
  local o = common.options("bce", options)
  common.check_shapes("bce", p, y)
  common.check_factor("bce", "weight", o.weight, p.shape)
  p = native.call("as_probability", { p }, nil, false, "bce")
  cross_entropy = cross_entropy or require "perigee.nn.loss.probabilities"
  local values = cross_entropy(p, y)
  if o.weight then values = values * o.weight end
  return common.reduce("bce", values, o.reduction)
end

common.declare("bce_with_logits", { weight = false, pos_weight = false },
               { weight = weight, pos_weight = "factor of what positives cost, broadcasts against y" })
---Binary cross entropy of logits x in the shape of y: -(pos_weight y log(s) + (1 - y) log(1 - s)) with s = sigmoid(x),
---safe for any size of x.
---@param x perigee.Tensor logits
---@param y perigee.Tensor the shape of x
---@param options? {weight?: perigee.Tensor, pos_weight?: perigee.Tensor, reduction?: perigee.Reduction}
---@return perigee.Tensor
function losses.bce_with_logits(x, y, options)
  local o = common.options("bce_with_logits", options)
  common.check_shapes("bce_with_logits", x, y)
  common.check_factor("bce_with_logits", "weight", o.weight, x.shape)
  common.check_factor("bce_with_logits", "pos_weight", o.pos_weight, x.shape)
  local values
  if o.pos_weight then
    values = (1 - y) * x + ((o.pos_weight - 1) * y + 1) * (-x):softplus()
  else
    values = x:softplus() - x * y
  end
  if o.weight then values = values * o.weight end
  return common.reduce("bce_with_logits", values, o.reduction)
end

common.declare("multilabel_soft_margin", { weight = false }, { weight = "factor of each label, [C]" })
---Binary cross entropy of logits [..., C] of C independent labels each, averaged over them: the mean over C of
--- -(y log(s) + (1 - y) log(1 - s)) with s = sigmoid(x).
---@param x perigee.Tensor logits
---@param y perigee.Tensor the shape of x
---@param options? {weight?: perigee.Tensor, reduction?: perigee.Reduction}
---@return perigee.Tensor
function losses.multilabel_soft_margin(x, y, options)
  local o = common.options("multilabel_soft_margin", options)
  common.check_shapes("multilabel_soft_margin", x, y)
  common.check_factor("multilabel_soft_margin", "weight", o.weight, x.shape)
  local values = x:softplus() - x * y
  if o.weight then values = values * o.weight end
  return common.reduce("multilabel_soft_margin", values:mean(-1), o.reduction)
end

common.declare("hinge", {})
---max(0, 1 - y x) for targets y of -1 and 1.
---@param x perigee.Tensor scores
---@param y perigee.Tensor the shape of x
---@param options? {reduction?: perigee.Reduction}
---@return perigee.Tensor
function losses.hinge(x, y, options)
  local o = common.options("hinge", options)
  common.check_shapes("hinge", x, y)
  return common.reduce("hinge", (1 - x * y):clamp { min = 0 }, o.reduction)
end

common.declare("soft_margin", {})
---log(1 + exp(-y x)) for targets y of -1 and 1.
---@param x perigee.Tensor scores
---@param y perigee.Tensor the shape of x
---@param options? {reduction?: perigee.Reduction}
---@return perigee.Tensor
function losses.soft_margin(x, y, options)
  local o = common.options("soft_margin", options)
  common.check_shapes("soft_margin", x, y)
  return common.reduce("soft_margin", (-(x * y)):softplus(), o.reduction)
end

return losses
