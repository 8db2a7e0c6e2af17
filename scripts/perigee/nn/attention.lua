-- SPDX-License-Identifier: Apache-2.0
-- Multi-head attention.

local native = require "perigee.native"
local walk = require "perigee.nn.walk"
local common = require "perigee.nn.layers_common"

local layers = {}
local function pg() return require "perigee" end

---Attention of several heads (Vaswani et al., 2017), with PyTorch's parameter names: each head gives
---softmax(q k^T / sqrt(embed / heads)) v of its part of the projected query, key and value; the heads' results side by
---side go through a linear layer. Called as
---layer(query, key, value, options); key and value default to query. Tensors are [N, L, embed], or [L, N, embed] with
---batch_first=false (PyTorch's default, not ours), or [L, embed]. Options, as in PyTorch:
---attn_mask [L, S] or [N * heads, L, S]: bool, true where a query may NOT see a key (the opposite of
---scaled_dot_product_attention), or numbers added to the scores; key_padding_mask [N, S], without a batch [S]: bool,
---true where a key is padding; is_causal; need_weights (default false): returns the weights [N, L, S] too, averaged
---over the heads, or [N, heads, L, S] with average_attn_weights=false.
---@class perigee.nn.MultiheadAttention: perigee.Layer
---@field in_proj_weight? perigee.Tensor [3 embed, embed]; none where kdim or vdim is another size
---@field q_proj_weight? perigee.Tensor then there are three
---@field k_proj_weight? perigee.Tensor
---@field v_proj_weight? perigee.Tensor
---@field in_proj_bias perigee.Tensor
---@field bias_k? perigee.Tensor with add_bias_kv
---@field bias_v? perigee.Tensor
---@field out_proj perigee.nn.Linear
layers.MultiheadAttention = common.class("MultiheadAttention", {
  { "embed", "integer", required = true, doc = "size of the query's and the result's last axis" },
  { "heads", "integer", required = true, doc = "how many; embed is a multiple of it" },
  { "dropout", "number", default = 0, doc = "probability of a weight to become 0 while training" },
  { "bias", "boolean", default = true, doc = "whether the projections have biases" },
  { "add_bias_kv", "boolean", default = false, doc = "whether to learn one more key and value, which all may see" },
  { "add_zero_attn", "boolean", default = false, doc = "whether to add a key and a value of zeros" },
  { "kdim", "integer", doc = "size of the key's last axis; embed if not given" },
  { "vdim", "integer", doc = "size of the value's last axis; embed if not given" },
  { "batch_first", "boolean", default = true, doc = "[N, L, embed], else [L, N, embed]" },
}, function(self, o)
  local where = "MultiheadAttention"
  common.positive(where, o, "embed", "heads")
  common.probability(where, o.dropout)
  if o.embed % o.heads ~= 0 then
    common.refuse(where, ("embed %d is no multiple of heads %d"):format(o.embed, o.heads))
  end
  local function xavier(rows, columns) -- Glorot and Bengio 2010
    return common.uniform({ rows, columns }, math.sqrt(6 / (rows + columns)))
  end
  local e = o.embed
  self.together = (o.kdim or e) == e and (o.vdim or e) == e
  if self.together then
    self.in_proj_weight = xavier(3 * e, e)
  else
    self.q_proj_weight = xavier(e, e)
    self.k_proj_weight, self.v_proj_weight = xavier(e, o.kdim or e), xavier(e, o.vdim or e)
  end
  if o.bias then self.in_proj_bias = common.filled({ 3 * e }, 0) end
  self.out_proj = require("perigee").nn.Linear { e, e, bias = o.bias }
  if o.bias then pg().no_grad(function() self.out_proj.bias:fill_(0) end) end
  if o.add_bias_kv then
    local std = math.sqrt(1 / e)
    self.bias_k, self.bias_v = common.normal({ 1, 1, e }, std), common.normal({ 1, 1, e }, std)
  end
end)
local MultiheadAttention = layers.MultiheadAttention

local names = { attn_mask = true, key_padding_mask = true, is_causal = true, need_weights = true,
                average_attn_weights = true }

-- query, key, value [N, L, embed] as projected. nn.lora puts `projected_beside` into a layer: what is added to each.
local function project(self, query, key, value)
  local e = self.options.inner or self.options.embed
  local weights = { self.q_proj_weight, self.k_proj_weight, self.v_proj_weight }
  if self.together then
    for i = 1, 3 do weights[i] = self.in_proj_weight:narrow(1, (i - 1) * e + 1, e) end
  end
  local out = {}
  for i, x in ipairs { query, key, value } do
    local bias = self.in_proj_bias and self.in_proj_bias:narrow(1, (i - 1) * e + 1, e)
    out[i] = pg().linear(x, weights[i], bias)
    local beside = self.projected_beside
    if beside then out[i] = out[i] + beside(self, i, x) end
  end
  return out[1], out[2], out[3]
end

-- [N, L, embed] as [N, heads, L, embed / heads], a view.
local function by_head(x, heads, width)
  return x:reshape(x:size(1), x:size(2), heads, width):permute(1, 3, 2, 4)
end

-- True where query i may not see key j, for j behind i.
local function later(queries, keys, device)
  return pg().ones { queries, keys, dtype = "bool", device = device }:triu(1)
end

-- Both masks as one for scaled_dot_product_attention, or nil. `extra` more keys at the end may be seen by all.
local function combined_mask(self, o, q, keys, extra)
  local heads, mask, padding = self.options.heads, o.attn_mask, o.key_padding_mask
  local function widened(m)
    if extra == 0 then return m end
    local shape = m.shape
    shape[#shape] = extra
    return pg().cat { m, pg().zeros { shape, dtype = m.dtype, device = m.device }, axis = -1 }
  end
  if o.is_causal and extra > 0 then -- the operator's own would hide them
    local causal = later(q:size(3), keys, q.device)
    if not mask then mask = causal
    elseif mask.dtype == "bool" then mask = mask:logical_or(causal)
    else mask = pg().where(causal, -math.huge, mask) end
  end
  if mask then
    if mask:dim() == 3 then mask = mask:reshape(q:size(1), heads, mask:size(2), mask:size(3)) end
    mask = widened(mask)
    if mask.dtype == "bool" then mask = mask:logical_not() end
  end
  if not padding then return mask end
  if padding:dim() == 1 then padding = padding:unsqueeze(1) end
  padding = widened(padding):unsqueeze(2):unsqueeze(2)
  if padding.dtype == "bool" then
    local seen = padding:logical_not()
    if not mask then return seen end
    return mask.dtype == "bool" and mask:logical_and(seen) or pg().where(seen, mask, -math.huge)
  end
  if not mask then return padding end
  return mask.dtype == "bool" and pg().where(mask, padding, -math.huge) or mask + padding
end

-- The weights themselves: as large as queries times keys. Those of a query that may see nothing are 0.
local function weights_of(q, k, mask, causal)
  local scores = (q * (1 / math.sqrt(q:size(4)))):matmul(k:transpose(3, 4))
  if mask then scores = mask.dtype == "bool" and pg().where(mask, scores, -math.huge) or scores + mask end
  if causal then scores = pg().where(later(q:size(3), k:size(3), q.device), -math.huge, scores) end
  if not mask or k:size(3) == 0 then return scores:softmax(-1) end
  local blind = scores:amax { axis = -1, keepdim = true }:eq(-math.huge)
  return pg().where(blind, 0, pg().where(blind, 0, scores):softmax(-1))
end

local differ = native.tensor.sizes_differ

-- Raises unless the mask has one of these shapes and says yes or no, or has numbers to add.
local function check_mask(name, mask, shapes, query)
  common.check_tensor("MultiheadAttention", name, mask)
  if mask.dtype ~= "bool" and mask.dtype ~= query.dtype and not mask.dtype:find("float", 1, true) then
    common.refuse("MultiheadAttention", ("%s is %s; expected bool (true: not seen), or %s to add to the scores")
                  :format(name, mask.dtype, query.dtype), ("%s:ne(0) makes it bool"):format(name))
  end
  local wanted = {}
  for _, shape in ipairs(shapes) do
    local fits = mask:dim() == #shape
    for axis, size in ipairs(shape) do fits = fits and not differ(mask:size(axis), size) end
    if fits then return end
    local text = {}
    for axis, size in ipairs(shape) do text[axis] = tostring(size) end
    wanted[#wanted + 1] = "{" .. table.concat(text, ", ") .. "}"
  end
  common.refuse("MultiheadAttention", ("%s is %s; expected %s"):format(name, tostring(mask.shape),
                                                                        table.concat(wanted, " or ")))
end

local NAMES = { "query", "key", "value" }

local function check(self, inputs, o)
  local where, options = "MultiheadAttention", self.options
  for i = 1, 3 do common.check_tensor(where, NAMES[i], inputs[i]) end
  if not native.is_plain(o) then
    common.refuse(where, "options must be a table, got " .. native.describe(o),
                  "layer(query, key, value, {attn_mask=...})")
  end
  for name in pairs(o) do
    if not names[name] then common.refuse(where, ("unknown option %q"):format(tostring(name))) end
  end
  local query, key, value = unpack(inputs)
  local rank = query:dim()
  if (rank ~= 2 and rank ~= 3) or key:dim() ~= rank or value:dim() ~= rank then
    common.refuse(where, ("expected three tensors of 3 axes, or of 2, got %s, %s and %s"):format(
      tostring(query.shape), tostring(key.shape), tostring(value.shape)))
  end
  local want = { options.embed, options.kdim or options.embed, options.vdim or options.embed }
  for i, x in ipairs(inputs) do
    if differ(x:size(-1), want[i]) then
      common.refuse(where, ("%s is %s; expected a last axis of %d"):format(NAMES[i], tostring(x.shape), want[i]))
    end
  end
  local batch, length = options.batch_first and 1 or 2, (rank == 2 or not options.batch_first) and 1 or 2
  local single = rank == 2
  if not single and (differ(key:size(batch), query:size(batch)) or differ(value:size(batch), query:size(batch))) or
    differ(value:size(length), key:size(length)) then
    common.refuse(where, ("query %s, key %s and value %s: expected one batch, and as many values as keys"):format(
      tostring(query.shape), tostring(key.shape), tostring(value.shape)))
  end
  local queries, keys = query:size(length), key:size(length)
  if o.key_padding_mask ~= nil then
    check_mask("key_padding_mask", o.key_padding_mask, { single and { keys } or { query:size(batch), keys } }, query)
  end
  if o.attn_mask ~= nil then
    local n = single and 1 or query:size(batch)
    local all = type(n) == "number" and n * options.heads or n
    check_mask("attn_mask", o.attn_mask, { { queries, keys }, { all, queries, keys } }, query)
  end
end

function MultiheadAttention:forward(query, key, value, o)
  o, key, value = o or {}, key or query, value or key or query
  check(self, { query, key, value }, o)
  local options, flat = self.options, query:dim() == 2
  local turn = not flat and not options.batch_first
  local function arranged(x) return flat and x:unsqueeze(1) or turn and x:transpose(1, 2) or x end
  local q, k, v = project(self, arranged(query), arranged(key), arranged(value))
  local inner = options.inner or options.embed -- less where heads were taken out
  local batch, keys, extra = q:size(1), k:size(2), 0
  if self.bias_k then
    local shape = { batch, 1, inner }
    k, v = pg().cat { k, self.bias_k:expand(shape), axis = 2 }, pg().cat { v, self.bias_v:expand(shape), axis = 2 }
    extra = extra + 1
  end
  if options.add_zero_attn then
    local none = pg().zeros { batch, 1, inner, dtype = q.dtype, device = q.device }
    k, v = pg().cat { k, none, axis = 2 }, pg().cat { v, none, axis = 2 }
    extra = extra + 1
  end
  local heads, width = options.heads, inner / options.heads
  q, k, v = by_head(q, heads, width), by_head(k, heads, width), by_head(v, heads, width)
  local mask, dropout = combined_mask(self, o, q, keys, extra), self.training and options.dropout or 0
  local causal = o.is_causal and extra == 0
  local y, weights
  if o.need_weights then
    weights = weights_of(q, k, mask, causal)
    if dropout > 0 then weights = pg().dropout(weights, { p = dropout, training = true }) end
    y = weights:matmul(v)
  else
    y = pg().scaled_dot_product_attention(q, k, v, { attn_mask = mask, is_causal = causal, dropout_p = dropout })
  end
  y = self.out_proj(y:permute(1, 3, 2, 4):reshape(batch, q:size(3), inner))
  y = flat and y:squeeze(1) or turn and y:transpose(1, 2) or y
  if not weights then return y end
  if o.average_attn_weights ~= false then weights = weights:mean(2) end
  return y, flat and weights:squeeze(1) or weights
end

walk.mark_own_forward(MultiheadAttention.forward, function(self) return walk.keeps_nothing(self.out_proj) end)

return layers
