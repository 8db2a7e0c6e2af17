-- SPDX-License-Identifier: Apache-2.0
-- pg.dist.tensor_parallel: a model's layers become ones of which each process of a group holds a part.

local native = require "perigee.native"
local places = require "perigee.nn.places"
local walk = require "perigee.nn.walk"
local layers = require "perigee.nn.tensor_parallel"

local WHERE = "dist.tensor_parallel"
local BLOCKS = { TransformerEncoderLayer = true, TransformerDecoderLayer = true }

local function nn() return require("perigee").nn end
local function kind_of(layer) return getmetatable(layer).__name end

local function attention(from, group, sequence)
  return nn().ShardedAttention { from = from, group = group, sequence = sequence }:train(from.training)
end

-- Between the two linear layers each process has other columns, and with `sequence` outside of them other rows.
local function convert_block(block, o)
  local group, axis = o.group, o.sequence and (block.options.batch_first and 2 or 1) or nil
  local function apart(name)
    local p = block[name].p or block.options.dropout
    local training = block.training
    if p > 0 then block[name] = nn().ShardedDropout { p, group = group }:train(training) end
  end
  block.linear1 = nn().ColumnLinear { from = block.linear1, group = group, sequence_axis = axis }:train(block.training)
  block.linear2 = nn().RowLinear { from = block.linear2, group = group, sequence_axis = axis }:train(block.training)
  block.self_attn = attention(block.self_attn, group, o.sequence)
  if rawget(block, "multihead_attn") then block.multihead_attn = attention(block.multihead_attn, group, o.sequence) end
  apart "dropout"
  for i = 1, 3 do
    if o.sequence and rawget(block, "norm" .. i) then
      layers.share_parameters(block["norm" .. i], group)
      apart("dropout" .. i)
    end
  end
end

local function refuse_lazy(model)
  if walk.is_lazy(model) then
    native.raise("failed_precondition", WHERE, "the model's sizes are not known before its first input", "call it once")
  end
end

---@param model perigee.Layer
---@param o { group: perigee.Group, sequence: boolean }
return function(model, o)
  if not walk.is_layer(model) then
    native.raise("invalid_argument", WHERE, "needs a layer, got " .. native.describe(model))
  end
  refuse_lazy(model)
  local inside, converted, made = {}, 0, {}
  for _, place in ipairs(places.of(model)) do
    local layer = place.layer
    if BLOCKS[kind_of(layer)] and not made[layer] then
      for _, inner in ipairs(walk.modules(layer)) do inside[inner] = true end
      made[layer] = true
      convert_block(layer, o)
      converted = converted + 1
    elseif kind_of(layer) == "MultiheadAttention" and not inside[layer] then
      made[layer] = made[layer] or attention(layer, o.group, o.sequence)
      if place.parent then places.put(place, made[layer]) else model = made[layer] end
      converted = converted + 1
    end
  end
  if converted == 0 then
    native.raise("invalid_argument", WHERE, "the model has no transformer block and no MultiheadAttention",
                 "nn.ColumnLinear{from=linear, group=...} and nn.RowLinear make parts of other layers")
  end
  return model
end
