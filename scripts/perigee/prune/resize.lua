-- SPDX-License-Identifier: Apache-2.0
-- Layers that take the sizes of their tensors.

local native = require "perigee.native"
local walk = require "perigee.nn.walk"
local masks = require "perigee.prune.masks"
local spaces = require "perigee.prune.spaces"

local resize = {}
local META = walk.META

---Keeps the slices at `places` (int64, from 0) of all that a layer's parameter or buffer consists of.
function resize.cut(layer, name, axis, places)
  local pruned = masks.is_pruned(layer, name)
  for _, key in ipairs(pruned and { name .. "_orig", name .. "_mask" } or { name }) do
    local t = layer[META].tensors[key]
    if t then native.assign(t, t:detach():index_select(axis, places:to(t.device))) end
  end
  if pruned and masks.get(layer, name):all():item() then masks.remove(layer, name) end
end

---Whether a layer's class has sizes that can change.
function resize.can(layer)
  local meta, name = layer[META], getmetatable(layer).__name
  if name == "MultiheadAttention" then return rawget(layer, "options") ~= nil end
  local info = meta.attributes and meta.attributes.info
  return info ~= nil and (info.by_name.features ~= nil or info.by_name.inputs ~= nil) and not meta.lazy
end

---Makes a layer's sizes those of its tensors.
function resize.settle(layer)
  local meta = layer[META]
  if getmetatable(layer).__name == "MultiheadAttention" then
    local options = layer.options
    local width = (options.inner or options.embed) / options.heads
    local inner = layer.out_proj.weight.shape[2]
    options.heads, options.inner = inner / width, inner
    return
  end
  local info, options = meta.attributes.info, {}
  for _, attr in ipairs(info.visible) do options[attr.name] = meta.attributes:get(attr.name) end
  local shape = masks.original(layer, "weight")
  shape = shape and shape.shape
  if info.by_name.inputs and shape then
    local out, inputs = spaces.axes_of(layer)
    if options.groups == options.inputs and options.groups == options.out then options.groups = shape[1] end
    options.out, options.inputs = shape[out] * (out == 2 and options.groups or 1),
                                  shape[inputs] * (inputs == 2 and options.groups or 1)
  elseif info.by_name.features and not info.by_name.entries then
    local t = meta.tensors.running_mean
    options.features = shape and shape[1] or t and t.shape[1] or options.features
  end
  local old = meta.attributes
  meta.attributes = native.new_layer(info.name, options)
  meta.attributes.tensors, meta.attributes.where = meta.tensors, old.where
end

return resize
