-- SPDX-License-Identifier: Apache-2.0
-- pg.dist.sync_batchnorm: batch norms of a model that work over all replicas.

local native = require "perigee.native"
local places = require "perigee.nn.places"
local walk = require "perigee.nn.walk"

local WHERE = "dist.sync_batchnorm"
local KINDS = { BatchNorm1d = true, BatchNorm2d = true, BatchNorm3d = true }
local TENSORS = { "weight", "bias", "running_mean", "running_var" }

local function convert(place)
  local layer = place.layer
  local attributes = layer[walk.META].attributes
  if layer[walk.META].lazy then
    native.raise("failed_precondition", WHERE, ("%s waits for its first input"):format(
                   place.path == "" and "the layer" or place.path), "call the model once")
  end
  local o = {}
  for _, name in ipairs { "features", "eps", "momentum", "affine", "track_running_stats" } do
    o[name] = attributes:get(name)
  end
  local made = require("perigee").nn.SyncBatchNorm(o)
  for _, name in ipairs(TENSORS) do
    if layer[name] then made[name] = layer[name] end
  end
  return made:train(layer.training)
end

return function(model)
  if not walk.is_layer(model) then
    native.raise("invalid_argument", WHERE, "needs a layer, got " .. native.describe(model))
  end
  local made = {}
  for _, place in ipairs(places.of(model)) do
    local layer = place.layer
    local class = getmetatable(layer)
    if KINDS[class.__name] and layer[walk.META].attributes then
      made[layer] = made[layer] or convert(place)
      if place.parent then places.put(place, made[layer]) else model = made[layer] end
    end
  end
  return model
end
