-- SPDX-License-Identifier: Apache-2.0
-- Layers over the functions of perigee.neural: normalisation in groups, distances, bilinear forms, bags of embeddings,
-- dropout of channels, shapes.

local native = require "perigee.native"
local common = require "perigee.nn.layers_common"

local layers = {}
local function pg() return require "perigee" end

-- ---- normalisation ----

---Each group of channels of each example normalised by itself, then scaled and shifted by channel: [N, C, ...].
layers.GroupNorm = common.class("GroupNorm", {
  { "groups", "integer", required = true }, { "channels", "integer", required = true },
  { "eps", "number", default = 1e-5 }, { "affine", "boolean", default = true },
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

local function instance_norm(name, rank)
  local class = common.class(name, {
    { "features", "integer", required = true }, { "eps", "number", default = 1e-5 },
    { "momentum", "number", default = 0.1 }, { "affine", "boolean", default = false },
    { "track_running_stats", "boolean", default = false },
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
---Each channel of each example normalised by itself: [N, C, ...], whatever the number of axes.
instance_norm("InstanceNorm", 0)
---Each channel of each example normalised by itself: [N, C, L].
instance_norm("InstanceNorm1d", 3)
---The same for images [N, C, H, W].
instance_norm("InstanceNorm2d", 4)
---The same for volumes [N, C, D, H, W].
instance_norm("InstanceNorm3d", 5)

---The last axes, those that `shape` names, divided by their root mean square, then scaled (Zhang and Sennrich 2019).
layers.RMSNorm = common.class("RMSNorm", {
  { "shape", "list", required = true }, { "eps", "number" }, { "affine", "boolean", default = true },
  { "elementwise_affine", "boolean", default = true }, -- the same as affine: PyTorch's name
}, function(self, o)
  if #o.shape == 0 then common.refuse("RMSNorm", "shape must name at least one size") end
  if o.affine and o.elementwise_affine then self.weight = common.filled(o.shape, 1) end
end)
function layers.RMSNorm:forward(x)
  local shape, rank = self.options.shape, x:dim()
  local fits = rank >= #shape
  for i = 1, fits and #shape or 0 do fits = fits and x:size(rank - #shape + i) == shape[i] end
  if not fits then
    common.refuse("RMSNorm", ("the input %s does not end in the layer's shape"):format(tostring(x.shape)))
  end
  return pg().rms_norm { x, weight = self.weight, dims = #shape, eps = self.options.eps }
end

-- ---- vectors ----

---x1 W[k] x2 + bias[k] for every output k: [..., inputs1] and [..., inputs2] to [..., out].
layers.Bilinear = common.class("Bilinear", {
  { "inputs1", "integer", required = true }, { "inputs2", "integer", required = true },
  { "out", "integer", required = true }, { "bias", "boolean", default = true },
}, function(self, o)
  common.positive("Bilinear", o, "inputs1", "inputs2", "out")
  local bound = 1 / math.sqrt(o.inputs1)
  self.weight = common.uniform({ o.out, o.inputs1, o.inputs2 }, bound)
  if o.bias then self.bias = common.uniform({ o.out }, bound) end
end)
function layers.Bilinear:forward(x1, x2) return pg().bilinear(x1, x2, self.weight, self.bias) end

---The cosine of the angle between two tensors along an axis.
layers.CosineSimilarity = common.class("CosineSimilarity", {
  { "axis", "axis", default = 2 }, { "eps", "number", default = 1e-8 },
})
function layers.CosineSimilarity:forward(x, y) return pg().cosine_similarity(x, y, self.options) end

---The p-norm of the difference along the last axis.
layers.PairwiseDistance = common.class("PairwiseDistance", {
  { "p", "number", default = 2 }, { "eps", "number", default = 1e-6 }, { "keepdim", "boolean", default = false },
})
function layers.PairwiseDistance:forward(x, y) return pg().pairwise_distance(x, y, self.options) end

---Rows of weight [entries, features] summed, averaged or their largest values taken, a bag at a time: called as
---layer(index [B, L]) or layer(index [N], offsets [B]); if mode is "sum", with per_sample_weights as third argument.
layers.EmbeddingBag = common.class("EmbeddingBag", {
  { "entries", "integer", required = true }, { "features", "integer", required = true },
  { "mode", "string", default = "mean" }, { "include_last_offset", "boolean", default = false },
  { "padding_idx", "integer", default = -1 },
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
  local class = common.class(name, { { "p", "number", default = 0.5 } }, function(_, o)
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
      one = one:narrow(axis, 1, 1)
    end
    return x * pg().dropout(pg().ones_like(one), { p = p, training = true })
  end
  layers[name] = class
end
---While training: zeroes whole channels of [N, C, L] with probability p, scales the rest (Tompson et al. 2015).
channel_dropout("Dropout1d", 3)
---The same for [N, C, H, W].
channel_dropout("Dropout2d", 4)
---The same for [N, C, D, H, W].
channel_dropout("Dropout3d", 5)

---Dropout for SELU networks: keeps mean and variance (Klambauer et al. 2017).
layers.AlphaDropout = common.class("AlphaDropout", { { "p", "number", default = 0.5 } }, function(_, o)
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
layers.Reshape = common.class("Reshape", { { "shape", "list", required = true } })
function layers.Reshape:forward(x) return x:reshape(x:size(1), unpack(self.options.shape)) end
function layers.Reshape:describe() return table.concat(self.options.shape, ", ") end

---One axis as several: nn.Unflatten{2, {3, 4}} makes [N, 3, 4] of [N, 12].
layers.Unflatten = common.class("Unflatten", {
  { "axis", "axis", required = true }, { "shape", "list", required = true },
})
function layers.Unflatten:forward(x)
  local axis, shape = native.tensor.axis_of("Unflatten", x, self.options.axis), x.shape
  table.remove(shape, axis)
  for i, n in ipairs(self.options.shape) do table.insert(shape, axis + i - 1, n) end
  return x:reshape(shape)
end

return layers
