-- SPDX-License-Identifier: Apache-2.0
-- Losses of numbers against numbers, and of likelihoods of numbers.

local native = require "perigee.native"
local common = require "perigee.nn.loss.common"

local losses = {}

local weight = "factor of each value, broadcasts against them"

-- A mean that divides by the sum of the weights, as PyTorch's of these two does.
local function weighed_mean(where, operator, x, y, o)
  if o == nil or not native.is_tensor(o.weight) or o.reduction ~= "mean" then
    return common.call(where, operator, x, y, o)
  end
  local shares = o.weight:expand(x.shape)
  o.reduction = "sum"
  return common.call(where, operator, x, y, o) / shares:sum()
end

common.declare("mse", { weight = false }, { weight = weight })
---Mean of (x - y)^2; with a weight, the weighed sum divided by the sum of the weights.
---@param x perigee.Tensor prediction
---@param y perigee.Tensor the shape of x
---@param options? {weight?: perigee.Tensor, reduction?: perigee.Reduction}
---@return perigee.Tensor
function losses.mse(x, y, options)
  local o = common.given("mse", options)
  common.check_shapes("mse", x, y)
  if o then common.check_factor("mse", "weight", o.weight, x.shape) end
  return weighed_mean("mse", "mse_loss", x, y, o)
end

common.declare("l1", { weight = false }, { weight = weight })
---Mean of |x - y|; with a weight, the weighed sum divided by the sum of the weights.
---@param x perigee.Tensor prediction
---@param y perigee.Tensor the shape of x
---@param options? {weight?: perigee.Tensor, reduction?: perigee.Reduction}
---@return perigee.Tensor
function losses.l1(x, y, options)
  local o = common.given("l1", options)
  common.check_shapes("l1", x, y)
  if o then common.check_factor("l1", "weight", o.weight, x.shape) end
  return weighed_mean("l1", "l1_loss", x, y, o)
end

local function is_positive(number) return number > 0 end
local function is_no_less_than_zero(number) return number >= 0 end

common.declare("huber", { delta = 1, weight = false },
               { delta = "where the quadratic part ends", weight = weight })
---Quadratic within delta, linear outside (Huber, 1964): with d = |x - y|, d^2 / 2 where d < delta, else
---delta (d - delta / 2).
---@param x perigee.Tensor prediction
---@param y perigee.Tensor the shape of x
---@param options? {delta?: number, weight?: perigee.Tensor, reduction?: perigee.Reduction}
---@return perigee.Tensor
function losses.huber(x, y, options)
  local o = common.given("huber", options)
  common.check_shapes("huber", x, y)
  if o then
    common.check_number("huber", "delta", o.delta, is_positive, "a number above 0")
    common.check_factor("huber", "weight", o.weight, x.shape)
  end
  return common.call("huber", "huber_loss", x, y, o)
end

common.declare("smooth_l1", { beta = 1 }, { beta = "where the quadratic part ends; 0: the L1 loss" })
---Huber's loss divided by beta (Girshick, 2015): with d = |x - y|, d^2 / (2 beta) where d < beta, else d - beta / 2.
---@param x perigee.Tensor prediction
---@param y perigee.Tensor the shape of x
---@param options? {beta?: number, reduction?: perigee.Reduction}
---@return perigee.Tensor
function losses.smooth_l1(x, y, options)
  local o = common.given("smooth_l1", options)
  common.check_shapes("smooth_l1", x, y)
  if o then common.check_number("smooth_l1", "beta", o.beta, is_no_less_than_zero, "a number from 0") end
  return common.call("smooth_l1", "smooth_l1_loss", x, y, o)
end

common.declare("poisson_nll", { log_input = true, full = false, eps = 1e-8 }, {
  log_input = "whether x is the mean's logarithm", eps = "added to x in its logarithm",
  full = "whether to add Stirling's approximation of log(y!), y log(y) - y + log(2 pi y) / 2, where y > 1" })
---Negative log likelihood exp(x) - y x of counts y under Poisson's distribution of mean exp(x), or x - y log(x + eps)
---of mean x with log_input=false; without the term log(y!), which x does not change.
---@param x perigee.Tensor the mean, or its logarithm
---@param y perigee.Tensor the shape of x
---@param options? {log_input?: boolean, full?: boolean, eps?: number, reduction?: perigee.Reduction}
---@return perigee.Tensor
function losses.poisson_nll(x, y, options)
  local o = common.given("poisson_nll", options)
  common.check_shapes("poisson_nll", x, y)
  return common.call("poisson_nll", "poisson_nll_loss", x, y, o)
end

common.declare("gaussian_nll", { full = false, eps = 1e-6 },
               { full = "whether to add log(2 pi) / 2", eps = "least variance" })
---Negative log likelihood (log(var) + (x - y)^2 / var) / 2 of y under a normal distribution of mean x and variance var,
---which is taken for eps where it is less (Nix and Weigend, 1994). A negative one is an error that names it.
---@param x perigee.Tensor the mean
---@param y perigee.Tensor the shape of x
---@param var perigee.Tensor the shape of x, or 1 in place of its last axis, or without it
---@param options? {full?: boolean, eps?: number, reduction?: perigee.Reduction}
---@return perigee.Tensor
function losses.gaussian_nll(x, y, var, options)
  local o = common.given("gaussian_nll", options)
  common.check_tensors("gaussian_nll", x, y, var)
  if var:dim() == x:dim() - 1 then var = var:unsqueeze(-1) end
  local fits = var:dim() == x:dim()
  for axis = 1, fits and x:dim() or 0 do
    local n = var:size(axis)
    fits = fits and (not native.tensor.sizes_differ(n, x:size(axis)) or (n == 1 and axis == x:dim()))
  end
  if not fits then
    native.raise("invalid_argument", "gaussian_nll", ("var %s does not fit x %s"):format(tostring(var.shape),
                 tostring(x.shape)))
  end
  return common.call("gaussian_nll", "gaussian_nll_loss", x, y, o, var)
end

return losses
