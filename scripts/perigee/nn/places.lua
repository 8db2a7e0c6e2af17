-- SPDX-License-Identifier: Apache-2.0
-- Where layers stand in a model, and putting others there: for what replaces layers.

local walk = require "perigee.nn.walk"

local places = {}

local META = walk.META

---Layers with their names and where they stand, each place once; the model itself first, without a parent.
---@return {path: string, layer: perigee.Layer, parent: perigee.Layer?, key: any, position: integer?}[]
function places.of(model)
  local list, open = { { path = "", layer = model } }, {}
  local function visit(layer, prefix)
    if open[layer] then return end
    open[layer] = true
    for _, entry in ipairs(walk.entries(layer)) do
      if entry.kind == "layer" then
        list[#list + 1] = { path = prefix .. entry.name, layer = entry.value, parent = layer, key = entry.key,
                            position = entry.position }
        visit(entry.value, prefix .. entry.name .. ".")
      end
    end
  end
  visit(model, "")
  return list
end

---Puts a layer where another stands.
function places.put(place, layer)
  local apart = place.parent[META].apart
  if place.position then
    place.parent[place.key][place.position] = layer
  elseif apart and apart[place.key] then
    apart[place.key] = layer
  else
    place.parent[place.key] = layer
  end
end

---Whether a place is meant by the name of a layer, as in state() or the end of one, or of a class.
function places.fits(target, place)
  return place.path == target or getmetatable(place.layer).__name == target or
         place.path:sub(-#target - 1) == "." .. target
end

---Tensors that several layers hold.
function places.shared_tensors(model)
  local owners, shared = {}, {}
  for _, entry in ipairs(walk.tensors(model)) do
    if owners[entry.tensor] and owners[entry.tensor] ~= entry.owner then shared[entry.tensor] = true end
    owners[entry.tensor] = entry.owner
  end
  return shared
end

return places
