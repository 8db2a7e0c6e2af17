-- SPDX-License-Identifier: Apache-2.0
-- Losses of yes and no: targets from 0 to 1, or -1 and 1.

local common = require "perigee.nn.loss.common"

local losses = {}

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
  local o = common.given("bce", options)
  common.check_shapes("bce", p, y)
  if o then common.check_factor("bce", "weight", o.weight, p.shape) end
  return common.call("bce", "binary_cross_entropy", p, y, o)
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
  local o = common.given("bce_with_logits", options)
  common.check_shapes("bce_with_logits", x, y)
  if o then
    common.check_factor("bce_with_logits", "weight", o.weight, x.shape)
    common.check_factor("bce_with_logits", "pos_weight", o.pos_weight, x.shape)
  end
  return common.call("bce_with_logits", "binary_cross_entropy_with_logits", x, y, o)
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
  local values = common.call("multilabel_soft_margin", "binary_cross_entropy_with_logits", x, y,
                             { weight = o.weight, reduction = "none" })
  return common.reduce("multilabel_soft_margin", values:mean(-1), o.reduction)
end

common.declare("hinge", {})
---max(0, 1 - y x) for targets y of -1 and 1.
---@param x perigee.Tensor scores
---@param y perigee.Tensor the shape of x
---@param options? {reduction?: perigee.Reduction}
---@return perigee.Tensor
function losses.hinge(x, y, options)
  local o = common.given("hinge", options)
  common.check_shapes("hinge", x, y)
  return common.call("hinge", "hinge_loss", x, y, o)
end

common.declare("soft_margin", {})
---log(1 + exp(-y x)) for targets y of -1 and 1.
---@param x perigee.Tensor scores
---@param y perigee.Tensor the shape of x
---@param options? {reduction?: perigee.Reduction}
---@return perigee.Tensor
function losses.soft_margin(x, y, options)
  local o = common.given("soft_margin", options)
  common.check_shapes("soft_margin", x, y)
  return common.call("soft_margin", "soft_margin_loss", x, y, o)
end

return losses
