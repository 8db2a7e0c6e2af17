-- SPDX-License-Identifier: Apache-2.0
-- Batch normalisation over the parts of a batch that the replicas of a strategy compute. What they tell each other goes
-- through native.replicas, which the strategy at work sets (perigee.dist):
--   gather(t)       [n] of each replica -> [replicas, n], in their order
--   scatter_sum(t)  [replicas, n] of each -> [n], the sum of all their rows for this one
--   weight          by which this replica's gradients will be multiplied
--   empty           whether its samples count for nothing

local native = require "perigee.native"
local common = require "perigee.nn.layers_common"

local layers = {}
local function pg() return require "perigee" end

-- Statistics of all replicas, a row each. Gradients flow back to where a row comes from, each by what it counts.
local function gather(replicas, own)
  local all = replicas.gather(own:detach())
  if not pg().is_grad_enabled() or not own.requires_grad then return all end
  local weight = replicas.weight
  return native.custom.record({ own }, { all }, function(pass)
    if pass.creates_graph then
      native.raise("not_supported", "SyncBatchNorm", "has no gradient of its gradient between replicas")
    end
    local sum = replicas.scatter_sum(pass.cotangents[1] * weight)
    return { weight > 0 and sum / weight or sum * 0 }
  end, true)[1]
end

-- By channel: mean, biased variance, and the number of elements, 0-dim; over all replicas.
local function statistics(replicas, x, axes)
  local channels = x.shape[2]
  local count = replicas.empty and 0 or x:numel() / channels
  local mean = x:mean { axis = axes, keepdim = true }
  local squares = (x - mean):pow(2):sum { axis = axes }
  local counted = pg().full({ 1 }, count, { dtype = x.dtype, device = x.device })
  local all = gather(replicas, pg().cat { mean:reshape(-1), squares, counted })
  local counts = all[{ {}, { 2 * channels + 1, 2 * channels + 1 } }]
  local means, parts = all[{ {}, { 1, channels } }], all[{ {}, { channels + 1, 2 * channels } }]
  local total = counts:sum()
  local together = (means * counts):sum { axis = 1 } / total
  local apart = (means - together):pow(2) * counts
  return together, ((parts * counts:ne(0):to(x.dtype)) + apart):sum { axis = 1 } / total, total
end

---BatchNorm1d, 2d or 3d, whose mean and variance while training are those of the whole batch where replicas of a
---strategy compute parts of it: [N, C, ...] in the same shape. Anywhere else it is a plain one. pg.dist.sync_batchnorm
---makes it of those in a model.
---@class perigee.nn.SyncBatchNorm: perigee.Layer
---@field weight? perigee.Tensor with affine
---@field bias? perigee.Tensor with affine
---@field running_mean? perigee.Tensor with track_running_stats
---@field running_var? perigee.Tensor with track_running_stats
layers.SyncBatchNorm = common.class("SyncBatchNorm", {
  { "features", "integer", required = true, doc = "channels: the size of axis 2 of the input" },
  { "eps", "number", default = 1e-5, doc = "added to the variance" },
  { "momentum", "number", default = 0.1, doc = "weight of a new batch in the running statistics" },
  { "affine", "boolean", default = true, doc = "whether to learn a scale and a shift for each channel" },
  { "track_running_stats", "boolean", default = true,
    doc = "whether to keep running statistics, which evaluation then uses" },
}, function(self, o)
  common.positive("SyncBatchNorm", o, "features")
  local shape = { o.features }
  if o.affine then self.weight, self.bias = common.filled(shape, 1), common.filled(shape, 0) end
  if not o.track_running_stats then return end
  self:buffer("running_mean", pg().zeros(shape))
  self:buffer("running_var", pg().ones(shape))
end)

local function remember(self, mean, variance, total)
  local momentum = self.options.momentum
  local function blend(running, now) running:copy_(running * (1 - momentum) + now:to(running.dtype) * momentum) end
  blend(self.running_mean, mean)
  blend(self.running_var, variance * (total / (total - 1)))
end

function layers.SyncBatchNorm:forward(x)
  local o, replicas = self.options, rawget(native, "replicas")
  if x:dim() < 2 or x.shape[2] ~= o.features then
    common.refuse("SyncBatchNorm", ("expected [N, %d, ...], got %s"):format(o.features, tostring(x.shape)))
  end
  local batch = self.training or not self.running_mean
  if not replicas or not batch then
    return pg().batch_norm { x, weight = self.weight, bias = self.bias, running_mean = self.running_mean,
                             running_var = self.running_var, training = batch, momentum = o.momentum, eps = o.eps }
  end
  local axes, shape = { 1 }, { 1, o.features }
  for axis = 3, x:dim() do axes[#axes + 1], shape[axis] = axis, 1 end
  local narrow = x.dtype == "float16" or x.dtype == "bfloat16"
  local wide = narrow and x:to "float32" or x
  local mean, variance, total = statistics(replicas, wide, axes)
  if self.training and self.running_mean then
    pg().no_grad(remember, self, mean:detach(), variance:detach(), total:detach())
  end
  local scale = (variance + o.eps):rsqrt()
  if self.weight then scale = scale * self.weight end
  local y = (wide - mean:reshape(shape)) * scale:reshape(shape)
  if self.bias then y = y + self.bias:reshape(shape) end
  return narrow and y:to(x.dtype) or y
end
common.check_input(layers.SyncBatchNorm)

return layers
