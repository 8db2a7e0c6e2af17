-- SPDX-License-Identifier: Apache-2.0
-- Losses that compare distances or ranks with a margin. Targets are 1 and -1.

local common = require "perigee.nn.loss.common"

local losses = {}

local function pg() return require "perigee" end
local function positive(x) return x:clamp { min = 0 } end

common.declare("hinge_embedding", { margin = 1 }, { margin = "how large the distance of others should be" })
---x where y is 1 (pairs that belong together: a distance to be small), max(0, margin - x) where it is -1.
---@param x perigee.Tensor distances
---@param y perigee.Tensor 1 or -1, broadcasts against x
---@param options? {margin?: number, reduction?: perigee.Reduction}
---@return perigee.Tensor
function losses.hinge_embedding(x, y, options)
  local o = common.given("hinge_embedding", options)
  common.check_tensors("hinge_embedding", x, y)
  common.check_broadcast("hinge_embedding", "x", x, "y", y)
  return common.call("hinge_embedding", "hinge_embedding_loss", x, y, o)
end

common.declare("cosine_embedding", { margin = 0 }, { margin = "how large the cosine of others may be" })
---1 - cos(a, b) where y is 1, max(0, cos(a, b) - margin) where it is -1.
---@param a perigee.Tensor [N, D] or [D]
---@param b perigee.Tensor the shape of a
---@param y perigee.Tensor 1 or -1, [N] or []
---@param options? {margin?: number, reduction?: perigee.Reduction}
---@return perigee.Tensor
function losses.cosine_embedding(a, b, y, options)
  local o = common.options("cosine_embedding", options)
  common.check_tensors("cosine_embedding", a, b, y)
  common.check_broadcast("cosine_embedding", "a", a, "b", b)
  local tiny = 1e-12
  local scale = (((a * a):sum(-1) + tiny) * ((b * b):sum(-1) + tiny)):sqrt()
  local cosine = (a * b):sum(-1) / scale
  common.check_targets("cosine_embedding", y, cosine.shape)
  local values = pg().where(y:eq(1), 1 - cosine, 0) + pg().where(y:eq(-1), positive(cosine - o.margin), 0)
  return common.reduce("cosine_embedding", values, o.reduction)
end

common.declare("margin_ranking", { margin = 0 }, { margin = "how far the higher one should lead" })
---max(0, margin - y (a - b)): where y is 1, a should rank above b.
---@param a perigee.Tensor scores
---@param b perigee.Tensor the shape of a
---@param y perigee.Tensor 1 or -1, broadcasts against a, with no axes of its own
---@param options? {margin?: number, reduction?: perigee.Reduction}
---@return perigee.Tensor
function losses.margin_ranking(a, b, y, options)
  local o = common.options("margin_ranking", options)
  common.check_tensors("margin_ranking", a, b, y)
  common.check_broadcast("margin_ranking", "a", a, "b", b)
  local behind = b - a
  common.check_targets("margin_ranking", y, behind.shape)
  return common.reduce("margin_ranking", positive(behind * y + o.margin), o.reduction)
end

common.declare("triplet_margin", { margin = 1, p = 2, eps = 1e-6, swap = false }, {
  margin = "how much farther the negative should be", p = "order of the norm", eps = "added to the differences",
  swap = "whether the negative's distance to the positive counts where it is smaller" })
---max(0, margin + d(anchor, positive) - d(anchor, negative)), d being the p-norm of the difference along the last axis
---(Schroff, Kalenichenko and Philbin, 2015; swap: Balntas et al., 2016).
---@param anchor perigee.Tensor [N, D]
---@param near perigee.Tensor [N, D] of the same class
---@param far perigee.Tensor [N, D] of another one
---@param options? {margin?: number, p?: number, eps?: number, swap?: boolean, reduction?: perigee.Reduction}
---@return perigee.Tensor
function losses.triplet_margin(anchor, near, far, options)
  local o = common.options("triplet_margin", options)
  common.check_tensors("triplet_margin", anchor, near, far)
  common.check_broadcast("triplet_margin", "the anchor", anchor, "the positive", near)
  common.check_broadcast("triplet_margin", "the anchor", anchor, "the negative", far)
  common.check_broadcast("triplet_margin", "the positive", near, "the negative", far)
  local function distance(a, b) return pg().pairwise_distance(a, b, { p = o.p, eps = o.eps }) end
  local close, wide = distance(anchor, near), distance(anchor, far)
  if o.swap then wide = pg().minimum(wide, distance(near, far)) end
  return common.reduce("triplet_margin", positive(close - wide + o.margin), o.reduction)
end

return losses
