-- SPDX-License-Identifier: Apache-2.0
-- The blocks of transformers (Vaswani et al. 2017), with PyTorch's parameter names and masks, batch first.

local native = require "perigee.native"
local Module = require "perigee.nn.module"
local walk = require "perigee.nn.walk"
local common = require "perigee.nn.layers_common"

local layers = {}
local function nn() return require("perigee").nn end

local activations = { relu = true, gelu = true, silu = true, tanh = true, sigmoid = true, leaky_relu = true }

local ACTIVATION = {
  "activation", "any", default = "relu", type = "string|function|perigee.Layer",
  doc = "between the linear layers: relu, gelu, silu, tanh, sigmoid, leaky_relu, a function or a layer",
}

-- What both kinds of layer have: `norms` normalisations, dropouts, and the two linear layers.
local function block_params()
  return {
    { "embed", "integer", required = true, doc = "size of the last axis" },
    { "heads", "integer", required = true, doc = "heads of the attention; embed is a multiple of it" },
    { "feedforward", "integer", default = 2048, doc = "size between the two linear layers" },
    { "dropout", "number", default = 0.1, doc = "probability of an element to become 0 while training" },
    ACTIVATION, { "eps", "number", default = 1e-5, doc = "of the normalisations: added to the variance" },
    { "batch_first", "boolean", default = true, doc = "[N, L, embed], else [L, N, embed]" },
    { "norm_first", "boolean", default = false, doc = "whether to normalise before each part, not behind the sum" },
    { "bias", "boolean", default = true, doc = "whether linear layers and normalisations have biases" },
  }
end

local function attention(o)
  return nn().MultiheadAttention { o.embed, o.heads, dropout = o.dropout, bias = o.bias, batch_first = o.batch_first }
end

local function make_block(where, self, o, norms)
  common.positive(where, o, "feedforward")
  common.probability(where, o.dropout)
  if type(o.activation) ~= "function" and not activations[o.activation] and not walk.is_layer(o.activation) then
    common.refuse(where, ("unknown activation %s"):format(native.describe(o.activation)),
                  "it is a function, or relu, gelu, silu, tanh, sigmoid, leaky_relu")
  end
  self.self_attn = attention(o)
  if norms == 3 then self.multihead_attn = attention(o) end
  self.linear1 = nn().Linear { o.embed, o.feedforward, bias = o.bias }
  self.dropout = nn().Dropout { o.dropout }
  self.linear2 = nn().Linear { o.feedforward, o.embed, bias = o.bias }
  for i = 1, norms do self["norm" .. i] = nn().LayerNorm { { o.embed }, eps = o.eps, bias = o.bias } end
  for i = 1, norms do self["dropout" .. i] = nn().Dropout { o.dropout } end
end

local function feed_forward(self, x)
  local activation, h = self.options.activation, self.linear1(x)
  if type(activation) == "string" then h = h[activation](h) else h = activation(h) end
  return self.linear2(self.dropout(h))
end

-- x + part(x), normalised before the part (norm_first) or after the sum.
local function residual(self, i, x, part)
  local norm, dropout = self["norm" .. i], self["dropout" .. i]
  if self.options.norm_first then return x + dropout(part(norm(x))) end
  return norm(x + dropout(part(x)))
end

local inner = { "self_attn", "linear1", "dropout", "linear2", "norm1", "dropout1", "norm2", "dropout2" }

-- Whether nobody sees the tensors inside of a block: then they are closed as soon as it has its result.
local function inner_keep_nothing(self)
  if type(self.options.activation) ~= "string" then return false end
  for i = 1, #inner do
    if not walk.keeps_nothing(self[inner[i]]) then return false end
  end
  local cross = rawget(self, "multihead_attn")
  return not cross or walk.keeps_nothing(cross) and walk.keeps_nothing(self.norm3) and walk.keeps_nothing(self.dropout3)
end

local function run_block(block, self, ...)
  if inner_keep_nothing(self) then return native.lifetimes.tidy(block, self, ...) end
  return block(self, ...)
end

local function check_options(where, o, known)
  if not native.is_plain(o) then common.refuse(where, "options must be a table, got " .. native.describe(o)) end
  for name in pairs(o) do
    if not known[name] then
      local list = {}
      for k in pairs(known) do list[#list + 1] = k end
      local near = native.suggest(tostring(name), list)
      common.refuse(where, ("unknown option %q"):format(tostring(name)), near and ("did you mean %q?"):format(near))
    end
  end
end

local encoder_options = { mask = true, key_padding_mask = true, is_causal = true }

---Self-attention and two linear layers, each with a residual and a layer norm (Vaswani et al., 2017):
---x = norm1(x + attention(x)), then norm2(x + linear2(activation(linear1(x)))); with norm_first (Xiong et al., 2020)
---x + attention(norm1(x)) and so on. layer(x, options): x [N, L, embed], in the same shape; options mask,
---key_padding_mask, is_causal as those of MultiheadAttention.
---@class perigee.nn.TransformerEncoderLayer: perigee.Layer
---@field self_attn perigee.nn.MultiheadAttention
---@field linear1 perigee.nn.Linear
---@field linear2 perigee.nn.Linear
---@field norm1 perigee.nn.LayerNorm
---@field norm2 perigee.nn.LayerNorm
layers.TransformerEncoderLayer = common.class("TransformerEncoderLayer", block_params(), function(self, o)
  make_block("TransformerEncoderLayer", self, o, 2)
end)
local function encode(self, x, o)
  x = residual(self, 1, x, function(y)
    return self.self_attn(y, y, y, { attn_mask = o.mask, key_padding_mask = o.key_padding_mask,
                                     is_causal = o.is_causal })
  end)
  return residual(self, 2, x, function(y) return feed_forward(self, y) end)
end
function layers.TransformerEncoderLayer:forward(x, o)
  o = o or {}
  check_options("TransformerEncoderLayer", o, encoder_options)
  return run_block(encode, self, x, o)
end
walk.mark_own_forward(layers.TransformerEncoderLayer.forward, inner_keep_nothing)

local decoder_options = { mask = true, memory_mask = true, key_padding_mask = true, memory_key_padding_mask = true,
                          is_causal = true, memory_is_causal = true }

---As TransformerEncoderLayer, with attention over `memory` in between. layer(x, memory, options): options mask,
---key_padding_mask and is_causal for x, memory_mask, memory_key_padding_mask and memory_is_causal for memory.
---@class perigee.nn.TransformerDecoderLayer: perigee.Layer
---@field self_attn perigee.nn.MultiheadAttention
---@field multihead_attn perigee.nn.MultiheadAttention over memory
---@field linear1 perigee.nn.Linear
---@field linear2 perigee.nn.Linear
---@field norm1 perigee.nn.LayerNorm
---@field norm2 perigee.nn.LayerNorm
---@field norm3 perigee.nn.LayerNorm
layers.TransformerDecoderLayer = common.class("TransformerDecoderLayer", block_params(), function(self, o)
  make_block("TransformerDecoderLayer", self, o, 3)
end)
local function decode(self, x, memory, o)
  x = residual(self, 1, x, function(y)
    return self.self_attn(y, y, y, { attn_mask = o.mask, key_padding_mask = o.key_padding_mask,
                                     is_causal = o.is_causal })
  end)
  x = residual(self, 2, x, function(y)
    return self.multihead_attn(y, memory, memory, { attn_mask = o.memory_mask, is_causal = o.memory_is_causal,
                                                    key_padding_mask = o.memory_key_padding_mask })
  end)
  return residual(self, 3, x, function(y) return feed_forward(self, y) end)
end
function layers.TransformerDecoderLayer:forward(x, memory, o)
  common.check_tensor("TransformerDecoderLayer", "memory", memory)
  o = o or {}
  check_options("TransformerDecoderLayer", o, decoder_options)
  return run_block(decode, self, x, memory, o)
end
walk.mark_own_forward(layers.TransformerDecoderLayer.forward, inner_keep_nothing)

local function stack(name)
  return common.class(name, {
    { "layer", "any", required = true, type = "perigee.Layer", doc = "what is copied; it is no part of the stack" },
    { "count", "integer", required = true, doc = "how many copies" },
    { "norm", "any", type = "perigee.Layer", doc = "runs behind the last one" },
  }, function(self, o)
    common.positive(name, o, "count")
    if not walk.is_layer(o.layer) then
      common.refuse(name, "the first argument must be a layer, got " .. native.describe(o.layer))
    end
    if o.norm ~= nil and not walk.is_layer(o.norm) then
      common.refuse(name, "norm must be a layer, got " .. native.describe(o.norm))
    end
    local list = {}
    for i = 1, o.count do list[i] = o.layer:clone() end
    self.layers = nn().ModuleList(list)
    self.norm = o.norm
    self.options = { count = o.count } -- not the layer itself: it is no part of the stack
  end)
end

local function through(list, x, ...)
  local ours = false -- whether nobody else has seen x
  for i = 1, #list do
    local y, next_ours = list[i](x, ...), walk.keeps_nothing(list[i])
    if ours and next_ours then native.handles.close(x) end
    x, ours = y, next_ours
  end
  return x
end

---`count` copies of an encoder layer one after the other, then `norm` if given: encoder(x, options).
---@class perigee.nn.TransformerEncoder: perigee.Layer
---@field layers perigee.nn.ModuleList
---@field norm? perigee.Layer
layers.TransformerEncoder = stack("TransformerEncoder")
function layers.TransformerEncoder:forward(x, o)
  x = through(self.layers, x, o)
  return self.norm and self.norm(x) or x
end

---`count` copies of a decoder layer one after the other, then `norm` if given: decoder(x, memory, options).
---@class perigee.nn.TransformerDecoder: perigee.Layer
---@field layers perigee.nn.ModuleList
---@field norm? perigee.Layer
layers.TransformerDecoder = stack("TransformerDecoder")
function layers.TransformerDecoder:forward(x, memory, o)
  x = through(self.layers, x, memory, o)
  return self.norm and self.norm(x) or x
end

---Encoder and decoder (Vaswani et al., 2017), each a stack that ends in a layer norm: model(source [N, S, embed],
---target [N, T, embed], options) gives [N, T, embed]; options source = {...} and target = {...} are those of the two
---stacks.
---@class perigee.nn.Transformer: perigee.Layer
---@field encoder perigee.nn.TransformerEncoder
---@field decoder perigee.nn.TransformerDecoder
layers.Transformer = Module.class("Transformer")
local read = native.signature("Transformer", {
  { "embed", "integer", default = 512, doc = "size of the last axis" },
  { "heads", "integer", default = 8, doc = "heads of the attention; embed is a multiple of it" },
  { "encoder_layers", "integer", default = 6, doc = "layers of the encoder" },
  { "decoder_layers", "integer", default = 6, doc = "layers of the decoder" },
  unpack(block_params(), 3), -- what stands behind embed and heads
})
function layers.Transformer:init(...)
  local o = read(...)
  local function block(class)
    return class { o.embed, o.heads, o.feedforward, dropout = o.dropout, activation = o.activation, eps = o.eps,
                   batch_first = o.batch_first, norm_first = o.norm_first, bias = o.bias }
  end
  local function norm() return nn().LayerNorm { { o.embed }, eps = o.eps, bias = o.bias } end
  self.encoder = layers.TransformerEncoder { block(layers.TransformerEncoderLayer), o.encoder_layers, norm() }
  self.decoder = layers.TransformerDecoder { block(layers.TransformerDecoderLayer), o.decoder_layers, norm() }
  for _, p in ipairs(self:parameters()) do
    if p:dim() > 1 then nn().init.xavier_uniform_(p) end
  end
end
function layers.Transformer:forward(source, target, o)
  common.check_tensor("Transformer", "source", source)
  common.check_tensor("Transformer", "target", target)
  o = o or {}
  check_options("Transformer", o, { source = true, target = true })
  return self.decoder(target, self.encoder(source, o.source), o.target)
end

return layers
