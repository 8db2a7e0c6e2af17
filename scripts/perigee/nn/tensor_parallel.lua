-- SPDX-License-Identifier: Apache-2.0
-- Layers of which each process of a group holds a part (Shoeybi et al., 2019), and normalisation of parts of sequences
-- (Korthikanti et al., 2022). All processes of the group call them together with the same inputs.

local native = require "perigee.native"
local walk = require "perigee.nn.walk"
local Module = require "perigee.nn.module"
local common = require "perigee.nn.layers_common"
local conjugate = require "perigee.nn.conjugate"
local hooks = require "perigee.nn.hooks"
local partial = require "perigee.nn.partial"
local attention = require "perigee.nn.attention"

local layers, losses = {}, {}
local function pg() return require "perigee" end
local function nn() return pg().nn end

local GROUP = { "group", "table", named = true, required = true, type = "perigee.Group",
                doc = "who holds the parts: mesh.model of a pg.dist.mesh, or a pg.dist.group" }

local function check_group(where, group)
  if type(group) == "table" and getmetatable(group) and getmetatable(group).__name == "perigee.Group" then
    return group
  end
  common.refuse(where, "group must be one that pg.dist.group or pg.dist.mesh made, got " .. native.describe(group))
end

local function check_divides(where, what, n, group)
  if n % group.size == 0 then return end
  common.refuse(where, ("%s %d is no multiple of the %d processes of the group"):format(what, n, group.size))
end

local function part_of(whole, part)
  part.shape = whole.shape
  local own = common.parameter(pg().no_grad(partial.cut, whole:detach(), part))
  own.requires_grad = whole.requires_grad
  return partial.mark(own, part)
end

-- The plain layer whose weights are taken: one that was given, or a new one, which draws what one process would.
local function source_of(where, o, class, make)
  if o.from == nil then
    if not o.inputs or not o.outputs then common.refuse(where, "needs inputs and outputs, or from=") end
    common.positive(where, o, "inputs", "outputs")
    return make()
  end
  if not walk.is_layer(o.from) or getmetatable(o.from).__name ~= class then
    common.refuse(where, ("from must be an nn.%s, got %s"):format(class, native.describe(o.from)))
  end
  if walk.is_lazy(o.from) then
    native.raise("failed_precondition", where, "the layer waits for its first input", "call it once")
  end
  return o.from
end

local function linear_params(more)
  local list = {
    { "inputs", "integer", doc = "size of the input's last axis, on all processes together" },
    { "outputs", "integer", doc = "size of the result's last axis, on all processes together" },
    { "bias", "boolean", default = true, doc = "whether to add one" },
    GROUP,
    { "from", "any", named = true, type = "perigee.nn.Linear", doc = "a layer whose weights it takes over" },
    { "sequence_axis", "integer", named = true, doc = "where each process has a part of the sequence" },
  }
  list[#list + 1] = more
  return list
end

local function plain_linear(where, o)
  check_group(where, o.group)
  local linear = source_of(where, o, "Linear", function() return nn().Linear { o.inputs, o.outputs, bias = o.bias } end)
  o.outputs, o.inputs, o.from = linear.weight.shape[1], linear.weight.shape[2], nil
  return linear
end

---A Linear whose outputs are shared out: weight [outputs / N, inputs] and bias of the own ones, from [..., inputs] to
---[..., outputs / N], or with gather to [..., outputs] on all. With sequence_axis the input is a part of the sequence
---along that axis, and the result is of all of it. An nn.RowLinear goes on without a word in between.
---@class perigee.nn.ColumnLinear: perigee.Layer
---@field weight perigee.Tensor
---@field bias? perigee.Tensor
layers.ColumnLinear = common.class("ColumnLinear", linear_params {
  "gather", "boolean", named = true, default = false, doc = "whether each process gets all outputs" },
function(self, o)
  local where = "ColumnLinear"
  local linear = plain_linear(where, o)
  check_divides(where, "outputs", o.outputs, o.group)
  self.weight = part_of(linear.weight, { group = o.group, axis = 1 })
  if linear.bias then self.bias = part_of(linear.bias, { group = o.group, axis = 1 }) end
end)
function layers.ColumnLinear:forward(x)
  local o = self.options
  common.check_tensor("ColumnLinear", "x", x)
  x = o.sequence_axis and conjugate.spread_rows(x, o.group, o.sequence_axis) or conjugate.share(x, o.group)
  local y = pg().linear(x, self.weight, self.bias)
  return o.gather and conjugate.join(y, o.group, y:dim()) or y
end

---A Linear whose inputs are shared out: weight [outputs, inputs / N], from [..., inputs / N], as an nn.ColumnLinear
---leaves it, or with split from [..., inputs], to [..., outputs] on all. The bias is added once. With sequence_axis
---each process gets its part of the result along that axis.
---@class perigee.nn.RowLinear: perigee.Layer
---@field weight perigee.Tensor
---@field bias? perigee.Tensor whole on all
layers.RowLinear = common.class("RowLinear", linear_params {
  "split", "boolean", named = true, default = false, doc = "whether the input has all columns on all processes" },
function(self, o)
  local where = "RowLinear"
  local linear = plain_linear(where, o)
  check_divides(where, "inputs", o.inputs, o.group)
  self.weight = part_of(linear.weight, { group = o.group, axis = 2 })
  if linear.bias then
    self.bias = common.parameter(linear.bias:detach():clone())
    self.bias.requires_grad = linear.bias.requires_grad
  end
end)
function layers.RowLinear:forward(x)
  local o = self.options
  common.check_tensor("RowLinear", "x", x)
  if o.split then x = conjugate.split(x, o.group, x:dim()) end
  local y, bias = pg().linear(x, self.weight), self.bias
  if not o.sequence_axis then
    y = conjugate.total(y, o.group)
    return bias and y + bias or y
  end
  if y:size(o.sequence_axis) % o.group.size ~= 0 then
    check_divides("RowLinear", "a sequence of", y:size(o.sequence_axis), o.group)
  end
  y = conjugate.sum_rows(y, o.group, o.sequence_axis)
  return bias and y + conjugate.share(bias, o.group) or y -- each process sees a part of what bias is added to
end

---An Embedding whose rows are shared out: weight [entries / N, features]; from [...] int64 to [..., features] on all,
---or with sequence_axis each process's part of it along that axis of the result.
---@class perigee.nn.ShardedEmbedding: perigee.Layer
---@field weight perigee.Tensor
layers.ShardedEmbedding = common.class("ShardedEmbedding", {
  { "entries", "integer", doc = "rows on all processes together: indices are 0 to entries - 1" },
  { "features", "integer", doc = "size of a row" },
  GROUP,
  { "from", "any", named = true, type = "perigee.nn.Embedding", doc = "a layer whose weights it takes over" },
  { "sequence_axis", "integer", named = true, doc = "along which each process gets its part" },
}, function(self, o)
  local where = "ShardedEmbedding"
  check_group(where, o.group)
  o.inputs, o.outputs = o.entries, o.features
  local whole = source_of(where, o, "Embedding", function() return nn().Embedding { o.entries, o.features } end)
  o.inputs, o.outputs, o.from = nil, nil, nil
  o.entries, o.features = whole.weight.shape[1], whole.weight.shape[2]
  check_divides(where, "entries", o.entries, o.group)
  self.weight = part_of(whole.weight, { group = o.group, axis = 1 })
end)
function layers.ShardedEmbedding:forward(ids)
  local o = self.options
  common.check_tensor("ShardedEmbedding", "ids", ids)
  local own = o.entries / o.group.size
  local first = own * o.group.rank
  local strange = ids:lt(0):logical_or(ids:ge(o.entries)) -- which the operator refuses, on all
  local elsewhere = ids:lt(first):logical_or(ids:ge(first + own))
  local at = pg().where(strange, pg().full_like(ids, own), pg().where(elsewhere, pg().zeros_like(ids), ids - first))
  local y = pg().embedding(self.weight, at)
  y = y * elsewhere:logical_not():to(y.dtype):unsqueeze(-1)
  if o.sequence_axis then return conjugate.sum_rows(y, o.group, o.sequence_axis) end
  return conjugate.total(y, o.group)
end

-- ---- attention by heads ----

---A MultiheadAttention of which each process has some of the heads, and the rows of the projections that are theirs;
---the result is that of all heads, on all. Called as one, with the same masks. With sequence=true query, key and value
---are parts of their sequences, and so is the result.
---@class perigee.nn.ShardedAttention: perigee.nn.MultiheadAttention
---@field in_proj_weight perigee.Tensor [3 embed / N, embed]
---@field in_proj_bias perigee.Tensor
---@field out_proj perigee.nn.RowLinear
layers.ShardedAttention = Module.class("ShardedAttention", attention.MultiheadAttention)
local ShardedAttention = layers.ShardedAttention

local read_attention = native.signature("ShardedAttention", {
  { "embed", "integer", doc = "size of the query's and the result's last axis" },
  { "heads", "integer", doc = "how many on all processes together; embed is a multiple of it" },
  { "dropout", "number", default = 0, doc = "probability of a weight to become 0 while training" },
  { "bias", "boolean", default = true, doc = "whether the projections have biases" },
  { "batch_first", "boolean", default = true, doc = "[N, L, embed], else [L, N, embed]" },
  GROUP,
  { "sequence", "boolean", named = true, default = false, doc = "whether each process has a part of the sequence" },
  { "from", "any", named = true, type = "perigee.nn.MultiheadAttention", doc = "a layer whose weights it takes over" },
})

function ShardedAttention:init(...)
  local where, o = "ShardedAttention", read_attention(...)
  check_group(where, o.group)
  o.inputs, o.outputs = o.embed, o.heads
  local whole = source_of(where, o, "MultiheadAttention", function()
    return nn().MultiheadAttention { o.embed, o.heads, dropout = o.dropout, bias = o.bias, batch_first = o.batch_first }
  end)
  local p = whole.options
  if not whole.together or whole.bias_k or p.add_zero_attn or p.inner then
    common.refuse(where, "from has keys or values of its own (kdim, vdim, add_bias_kv, add_zero_attn), or fewer heads")
  end
  check_divides(where, "heads", p.heads, o.group)
  self.options = { embed = p.embed, heads = p.heads / o.group.size, inner = p.embed / o.group.size, group = o.group,
                   dropout = p.dropout, batch_first = p.batch_first, sequence = o.sequence, all_heads = p.heads }
  self.together = true
  self.in_proj_weight = part_of(whole.in_proj_weight, { group = o.group, axis = 1, blocks = 3 })
  if whole.in_proj_bias then
    self.in_proj_bias = part_of(whole.in_proj_bias, { group = o.group, axis = 1, blocks = 3 })
  end
  self.out_proj = layers.RowLinear { from = whole.out_proj, group = o.group, sequence_axis = o.sequence and 2 or nil }
end

function ShardedAttention:describe()
  local o = self.options
  return ("embed=%d, heads=%d of %d"):format(o.embed, o.heads, o.all_heads)
end

-- Of a mask [N * heads, L, S] the own heads'.
local function own_heads(self, mask)
  local o = self.options
  if not native.is_tensor(mask) or mask:dim() ~= 3 or o.group.size == 1 then return mask end
  if mask:size(1) % o.all_heads ~= 0 then return mask end -- which is refused
  local by_head = mask:reshape(-1, o.all_heads, mask:size(2), mask:size(3))
  return by_head:narrow(2, o.group.rank * o.heads + 1, o.heads):reshape(-1, mask:size(2), mask:size(3))
end

function ShardedAttention:forward(query, key, value, o)
  local options, group = self.options, self.options.group
  key, value = key or query, value or key or query
  local seen = {}
  local function whole(x, name)
    common.check_tensor("ShardedAttention", name, x)
    if not seen[x] then
      local axis = (x:dim() == 2 or not options.batch_first) and 1 or 2
      seen[x] = options.sequence and conjugate.spread_rows(x, group, axis) or conjugate.share(x, group)
    end
    return seen[x]
  end
  local q, k, v = whole(query, "query"), whole(key, "key"), whole(value, "value")
  local given = {}
  for name, choice in pairs(o or {}) do given[name] = choice end
  given.attn_mask = own_heads(self, given.attn_mask)
  local run = attention.MultiheadAttention.forward
  local y, weights
  if self.training and options.dropout > 0 then
    y, weights = conjugate.draw_apart(group, run, self, q, k, v, given)
  else
    y, weights = run(self, q, k, v, given)
  end
  if not weights then return y end
  if given.average_attn_weights == false then return y, conjugate.join(weights, group, weights:dim() - 2) end
  return y, conjugate.total(weights, group) / group.size
end

-- ---- what stands between them ----

---A Dropout that draws other random numbers on each process of a group: for parts of activations.
---@class perigee.nn.ShardedDropout: perigee.Layer
layers.ShardedDropout = common.class("ShardedDropout", {
  { "p", "number", default = 0.5, doc = "probability of an element to become 0 while training" }, GROUP,
}, function(_, o)
  check_group("ShardedDropout", o.group)
  common.probability("ShardedDropout", o.p)
end)
function layers.ShardedDropout:forward(x)
  local o = self.options
  common.check_tensor("ShardedDropout", "x", x)
  if not self.training or o.p == 0 then return x end
  return conjugate.draw_apart(o.group, function() return pg().dropout(x, { p = o.p, training = true }) end)
end

---Parameters of a layer that computes parts of sequences: their gradients are summed over the group.
local function share_parameters(layer, group)
  local function transform(t) return conjugate.share(t, group) end
  for _, entry in ipairs(walk.entries(layer)) do
    if entry.kind == "parameter" then
      local name = entry.key
      hooks.set_computed(layer, name, {
        kind = "sequence parallelism", undo = "a new layer", aliases = {}, transform = transform,
        compute = function(self) return transform(self[walk.META].tensors[name]) end,
      })
    end
  end
end

-- ---- the loss ----

local read_entropy = native.signature("nn.sharded_cross_entropy", {
  { "logits", "tensor", required = true, doc = "[..., classes / N]: the own classes', as a ColumnLinear gives them" },
  { "labels", "tensor", required = true, doc = "[...] int64, of all classes" },
  GROUP,
  { "reduction", "string", named = true, default = "mean", choices = { "mean", "sum", "none" },
    doc = "of the elements' losses" },
  { "label_smoothing", "number", named = true, default = 0, doc = "weight of all classes alike, in [0, 1]" },
  { "ignore_index", "integer", named = true, default = -100, doc = "a label that counts for nothing" },
})

local function check_labels(logits, labels, o)
  local where = "nn.sharded_cross_entropy"
  check_group(where, o.group)
  if labels:dim() ~= logits:dim() - 1 then
    common.refuse(where, ("labels are %s; expected the shape of logits %s without its last axis"):format(
                    tostring(labels.shape), tostring(logits.shape)))
  end
  for axis = 1, labels:dim() do
    if native.tensor.sizes_differ(labels:size(axis), logits:size(axis)) then
      common.refuse(where, ("labels are %s; expected the shape of logits %s without its last axis"):format(
                      tostring(labels.shape), tostring(logits.shape)))
    end
  end
  if not (o.label_smoothing >= 0 and o.label_smoothing <= 1) then
    common.refuse(where, ("label_smoothing must lie in [0, 1], got %g"):format(o.label_smoothing))
  end
end

---Cross entropy over classes that are shared out: what nn.cross_entropy gives of the logits of all processes behind
---each other, on each of them, without bringing these together. Classes stand on the last axis.
---@param logits perigee.Tensor [..., classes / N]
---@param labels perigee.Tensor [...] int64, from 0
---@param options {group: perigee.Group, reduction?: string, label_smoothing?: number, ignore_index?: integer}
---@return perigee.Tensor
function losses.sharded_cross_entropy(...)
  local o = read_entropy(...)
  local logits, labels, group = o.logits, o.labels, o.group
  check_labels(logits, labels, o)
  local own = logits:size(-1)
  local classes, first = own * group.size, own * group.rank
  local most = logits:detach():amax { axis = -1 }
  most = native.call("all_reduce", { { most } }, { op = "max", group = group.number })
  local shifted = logits - most:unsqueeze(-1)
  local counted = labels:ne(o.ignore_index)
  local strange = counted:logical_and(labels:lt(0):logical_or(labels:ge(classes)))
  local elsewhere = labels:lt(first):logical_or(labels:ge(first + own))
  local at = pg().where(strange, pg().full_like(labels, own), pg().where(elsewhere, pg().zeros_like(labels),
                                                                         labels - first))
  local picked = pg().where(elsewhere, 0, shifted:gather(-1, at:unsqueeze(-1)):squeeze(-1))
  local sums = conjugate.total(shifted:exp():sum { axis = -1 }, group)
  local loss = sums:log() - conjugate.total(picked, group)
  if o.label_smoothing > 0 then
    local mean = conjugate.total(shifted:sum { axis = -1 }, group) / classes
    loss = loss * (1 - o.label_smoothing) + (sums:log() - mean) * o.label_smoothing
  end
  loss = pg().where(counted, loss, 0)
  if o.reduction == "none" then return loss end
  if o.reduction == "sum" then return loss:sum() end
  return loss:sum() / counted:to(loss.dtype):sum()
end

return { layers = layers, losses = losses, share_parameters = share_parameters }
