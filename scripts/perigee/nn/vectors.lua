-- SPDX-License-Identifier: Apache-2.0
-- Layers over the functions of perigee.neural: normalisation in groups, distances, bilinear forms, bags of embeddings,
-- dropout of channels, shapes.

local common = require "perigee.nn.layers_common"
local told = require "perigee.nn.told"
local native = require "perigee.native"

local layers = {}
local function pg() return require "perigee" end

-- ---- normalisation ----

---Each group of channels of each example normalised by itself, then scaled and shifted by channel: [N, C, ...] in the
---same shape (Wu and He, 2018). (x - mean) / sqrt(var + eps) * weight + bias, mean and biased variance taken over a
---group's channels and all axes behind them.
---@class perigee.nn.GroupNorm: perigee.Layer
---@field weight perigee.Tensor
---@field bias perigee.Tensor
layers.GroupNorm = common.class("GroupNorm", {
  { "groups", "integer", required = true, doc = "parts that the channels are split into" },
  { "channels", "integer", required = true, doc = "C, a multiple of groups" },
  { "eps", "number", default = 1e-5, doc = "added to the variance" },
  { "affine", "boolean", default = true, doc = "whether to learn a scale and a shift for each channel" },
}, function(self, o)
  common.positive("GroupNorm", o, "groups", "channels")
  if o.channels % o.groups ~= 0 then
    common.refuse("GroupNorm", ("%d channels do not make %d groups"):format(o.channels, o.groups))
  end
  if not o.affine then return end
  self.weight, self.bias = common.filled({ o.channels }, 1), common.filled({ o.channels }, 0)
end)
function layers.GroupNorm:forward(x)
  local o = self.options
  return pg().group_norm { x, o.groups, weight = self.weight, bias = self.bias, eps = o.eps }
end

---@class perigee.nn.InstanceNorm: perigee.Layer
---@field weight? perigee.Tensor with affine
---@field bias? perigee.Tensor with affine
---@field running_mean? perigee.Tensor with track_running_stats
---@field running_var? perigee.Tensor with track_running_stats

---@class perigee.nn.InstanceNorm1d: perigee.nn.InstanceNorm

---@class perigee.nn.InstanceNorm2d: perigee.nn.InstanceNorm

---@class perigee.nn.InstanceNorm3d: perigee.nn.InstanceNorm

local function instance_norm(name, rank)
  local class = common.class(name, {
    { "features", "integer", required = true, doc = "channels: the size of axis 2 of the input" },
    { "eps", "number", default = 1e-5, doc = "added to the variance" },
    { "momentum", "number", default = 0.1, doc = "weight of a new batch in the running statistics" },
    { "affine", "boolean", default = false, doc = "whether to learn a scale and a shift for each channel" },
    { "track_running_stats", "boolean", default = false,
      doc = "whether to keep running statistics, which evaluation then uses" },
  }, function(self, o)
    common.positive(name, o, "features")
    local shape = { o.features }
    if o.affine then self.weight, self.bias = common.filled(shape, 1), common.filled(shape, 0) end
    if not o.track_running_stats then return end
    self:buffer("running_mean", pg().zeros(shape))
    self:buffer("running_var", pg().ones(shape))
  end)
  function class:forward(x)
    local o = self.options
    local alone = x:dim() == rank - 1 -- an example without a batch
    if rank == 0 then
      if x:dim() < 3 then common.refuse(name, ("expected [N, C, ...], got %s"):format(tostring(x.shape))) end
    elseif x:dim() ~= rank and not alone then
      common.refuse(name, ("expected %d axes, got %s"):format(rank, tostring(x.shape)))
    end
    local y = pg().instance_norm {
      alone and x:unsqueeze(1) or x, running_mean = self.running_mean, running_var = self.running_var,
      weight = self.weight, bias = self.bias, momentum = o.momentum, eps = o.eps,
      use_input_stats = self.training or not o.track_running_stats }
    return alone and y:squeeze(1) or y
  end
  layers[name] = class
end
local SHAPES = { [0] = "[N, C, ...]", [3] = "[N, C, L]", [4] = "[N, C, H, W]", [5] = "[N, C, D, H, W]" }
for rank, name in pairs { [0] = "InstanceNorm", [3] = "InstanceNorm1d", [4] = "InstanceNorm2d",
                          [5] = "InstanceNorm3d" } do
  told.texts[name] = ("Each channel of each example normalised by itself, in the same shape: %s%s (Ulyanov, Vedaldi " ..
    "and Lempitsky, 2016).\n(x - mean) / sqrt(var + eps) * weight + bias, mean and biased variance taken over the " ..
    "axes behind C."):format(SHAPES[rank], rank > 0 and "; N may be missing" or "")
  instance_norm(name, rank)
end

---The last axes, those that `shape` names, divided by their root mean square, then scaled (Zhang and Sennrich, 2019):
---x / sqrt(mean(x^2) + eps) * weight, in the same shape.
---@class perigee.nn.RMSNorm: perigee.Layer
---@field weight perigee.Tensor
layers.RMSNorm = common.class("RMSNorm", {
  { "shape", "list", required = true, doc = "sizes of the axes to normalise over" },
  { "eps", "number", doc = "added to the mean of the squares; if not given, the distance of numbers at 1" },
  { "affine", "boolean", default = true, doc = "whether to learn a scale for each element" },
  { "elementwise_affine", "boolean", default = true, doc = "the same as `affine`; PyTorch's name" },
}, function(self, o)
  if #o.shape == 0 then common.refuse("RMSNorm", "shape must name at least one size") end
  if o.affine and o.elementwise_affine then self.weight = common.filled(o.shape, 1) end
end)
function layers.RMSNorm:forward(x)
  local shape, rank = self.options.shape, x:dim()
  local fits = rank >= #shape
  for i = 1, fits and #shape or 0 do
    fits = fits and not native.tensor.sizes_differ(x:size(rank - #shape + i), shape[i])
  end
  if not fits then
    common.refuse("RMSNorm", ("the input %s does not end in the layer's shape"):format(tostring(x.shape)))
  end
  return pg().rms_norm { x, weight = self.weight, dims = #shape, eps = self.options.eps }
end

-- ---- vectors ----

---x1 weight[k] x2 + bias[k] for every output k: [..., inputs1] and [..., inputs2] to [..., out]. weight is
---[out, inputs1, inputs2].
---@class perigee.nn.Bilinear: perigee.Layer
---@field weight perigee.Tensor
---@field bias perigee.Tensor
layers.Bilinear = common.class("Bilinear", {
  { "inputs1", "integer", required = true, doc = "size of the first input's last axis" },
  { "inputs2", "integer", required = true, doc = "size of the second input's last axis" },
  { "out", "integer", required = true, doc = "size of the output's last axis" },
  { "bias", "boolean", default = true, doc = "whether to add a bias [out]" },
}, function(self, o)
  common.positive("Bilinear", o, "inputs1", "inputs2", "out")
  local bound = 1 / math.sqrt(o.inputs1)
  self.weight = common.uniform({ o.out, o.inputs1, o.inputs2 }, bound)
  if o.bias then self.bias = common.uniform({ o.out }, bound) end
end)
function layers.Bilinear:forward(x1, x2) return pg().bilinear(x1, x2, self.weight, self.bias) end

---The cosine of the angle between two tensors along an axis: sum(x y) / (max(|x|, eps) max(|y|, eps)), |x| the
---Euclidean norm. layer(x, y): two tensors that broadcast; the axis is gone from the result.
layers.CosineSimilarity = common.class("CosineSimilarity", {
  { "axis", "axis", default = 2, doc = "axis of the vectors, from 1, negative from the end" },
  { "eps", "number", default = 1e-8, doc = "least norm that is divided by" },
})
function layers.CosineSimilarity:forward(x, y) return pg().cosine_similarity(x, y, self.options) end

---The p-norm of the difference along the last axis: (sum |x - y + eps|^p)^(1 / p). layer(x, y): [..., D] and [..., D]
---to [...].
layers.PairwiseDistance = common.class("PairwiseDistance", {
  { "p", "number", default = 2, doc = "order of the norm" },
  { "eps", "number", default = 1e-6, doc = "added to the difference" },
  { "keepdim", "boolean", default = false, doc = "whether the last axis stays, with size 1" },
})
function layers.PairwiseDistance:forward(x, y) return pg().pairwise_distance(x, y, self.options) end

---Rows of weight [entries, features] summed, averaged or their largest values taken, a bag at a time: called as
---layer(index [B, L]) or layer(index [N], offsets [B]), int64 from 0; gives [B, features]. If mode is "sum" a third
---argument, in the index's shape, is what the rows are multiplied by.
---@class perigee.nn.EmbeddingBag: perigee.Layer
---@field weight perigee.Tensor
layers.EmbeddingBag = common.class("EmbeddingBag", {
  { "entries", "integer", required = true, doc = "rows: indices are 0 to entries - 1" },
  { "features", "integer", required = true, doc = "size of a row" },
  { "mode", "string", default = "mean", choices = { "mean", "sum", "max" }, doc = "what becomes of a bag's rows" },
  { "include_last_offset", "boolean", default = false, doc = "whether offsets end with the number of indices" },
  { "padding_idx", "integer", default = -1, doc = "index that does not count, from 0; -1: none" },
}, function(self, o)
  common.positive("EmbeddingBag", o, "entries", "features")
  if o.padding_idx < -1 or o.padding_idx >= o.entries then
    common.refuse("EmbeddingBag", ("padding_idx %d is out of range for %d entries"):format(o.padding_idx, o.entries))
  end
  self.weight = common.normal { o.entries, o.features }
  if o.padding_idx >= 0 then pg().no_grad(function() self.weight[o.padding_idx + 1] = 0 end) end
end)
function layers.EmbeddingBag:forward(index, offsets, weights)
  local o = self.options
  return pg().embedding_bag(self.weight, index, { offsets = offsets or nil, mode = o.mode,
                            per_sample_weights = weights, include_last_offset = o.include_last_offset,
                            padding_idx = o.padding_idx })
end

---softmax(-x) along an axis.
layers.Softmin = common.class("Softmin", { { "axis", "axis", default = -1 } })
function layers.Softmin:forward(x) return x:softmin(self.options.axis) end

-- ---- dropout ----

local function channel_dropout(name, rank)
  local class = common.class(name, {
    { "p", "number", default = 0.5, doc = "probability of a channel to become 0" },
  }, function(_, o)
    common.probability(name, o.p)
  end)
  function class:forward(x)
    if x:dim() == rank - 1 then return self:forward(x:unsqueeze(1)):squeeze(1) end
    if x:dim() ~= rank then common.refuse(name, ("expected %d axes, got %s"):format(rank, tostring(x.shape))) end
    local p = self.options.p
    if not self.training or p == 0 then return x end
    local one = x:detach()
    for axis = 3, rank do
      if x:size(axis) == 0 then return x end
      one = native.tensor.part(one, axis, 0, 1)
    end
    return x * pg().dropout(pg().ones_like(one), { p = p, training = true })
  end
  layers[name] = class
end
for axes = 1, 3 do
  local name = ("Dropout%dd"):format(axes)
  told.texts[name] = ("While training: zeroes whole channels of %s with probability p, scales the rest by " ..
    "1 / (1 - p) (Tompson et al., 2015). N may be missing."):format(SHAPES[axes + 2])
  channel_dropout(name, axes + 2)
end

---Dropout for SELU networks, which keeps mean 0 and variance 1 (Klambauer et al., 2017): while training, an element
---becomes s = -1.7581, SELU's limit for x to -inf, with probability p; then all are scaled and shifted, a x + b with
---a = ((1 - p) (1 + p s^2))^(-1/2) and b = -a p s.
layers.AlphaDropout = common.class("AlphaDropout", {
  { "p", "number", default = 0.5, doc = "probability of an element to be dropped" },
}, function(_, o)
  common.probability("AlphaDropout", o.p)
end)
function layers.AlphaDropout:forward(x)
  local p = self.options.p
  if not self.training or p == 0 then return x end
  if p == 1 then return x * 0 end
  local low = -1.7580993408473766 -- SELU's value at minus infinity
  local a = ((1 - p) * (1 + p * low ^ 2)) ^ -0.5
  local kept = pg().dropout(pg().ones_like(x:detach()), { p = p, training = true }):ne(0)
  return pg().where(kept, x, low) * a - a * low * p
end

-- ---- shapes ----

---All but the first axis in a new shape: nn.Reshape{3, -1} makes [N, 3, ...] of [N, ...].
layers.Reshape = common.class("Reshape", {
  { "shape", "list", required = true, doc = "sizes behind the first axis; one may be -1" },
})
function layers.Reshape:forward(x)
  local n = x:size(1)
  if n ~= 0 then return x:reshape(n, unpack(self.options.shape)) end
  -- Of no examples any -1 would do: it is what one example makes it.
  local shape = pg().empty(1, unpack(x.shape, 2)):reshape(1, unpack(self.options.shape)).shape
  shape[1] = 0
  return x:reshape(shape)
end
function layers.Reshape:describe() return table.concat(self.options.shape, ", ") end

---One axis as several: nn.Unflatten{2, {3, 4}} makes [N, 3, 4] of [N, 12].
layers.Unflatten = common.class("Unflatten", {
  { "axis", "axis", required = true, doc = "axis to split, from 1, negative from the end" },
  { "shape", "list", required = true, doc = "sizes that it becomes; one may be -1" },
})
function layers.Unflatten:forward(x)
  return x:unflatten(self.options.axis, self.options.shape)
end

for _, class in pairs(layers) do common.check_input(class) end

return layers
