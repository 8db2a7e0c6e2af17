-- SPDX-License-Identifier: Apache-2.0
-- perigee.prune: models with fewer weights, by masks that training cannot undo.

local native = require "perigee.native"
local walk = require "perigee.nn.walk"
local masks = require "perigee.prune.masks"

---@class perigee.prune
local prune = {}
for _, file in ipairs { "methods", "shrink", "gradual", "report" } do
  for name, value in pairs(require("perigee.prune." .. file)) do
    if type(value) == "function" then prune[name] = value end -- `inner` is of this room
  end
end

local function check_layer(where, layer)
  if walk.is_layer(layer) then return end
  native.raise("invalid_argument", where, "needs a layer, got " .. native.describe(layer))
end

---Whether a layer, or one inside of it, is pruned.
---@param layer perigee.Layer or a model
---@return boolean
function prune.is_pruned(layer)
  check_layer("prune.is_pruned", layer)
  for _, inner in ipairs(walk.modules(layer)) do
    if #masks.names(inner) > 0 then return true end
  end
  return false
end

local read_remove = native.signature("prune.remove", {
  { "layer", "any", required = true, type = "perigee.Layer", doc = "or a model: all that is pruned in it" },
  { "name", "string", doc = "of the parameter; all that are pruned if not given" } })
---Makes pruning permanent: the parameter is one again, with zeros at the places that the mask took out, and nothing
---keeps later training from changing them. Optimizers go on with it. Answers the layer.
---@return perigee.Layer
function prune.remove(...)
  local where, o = "prune.remove", read_remove(...)
  check_layer(where, o.layer)
  local found = false
  for _, inner in ipairs(walk.modules(o.layer)) do
    for _, name in ipairs(masks.names(inner)) do
      if not o.name or o.name == name then
        found = true
        require("perigee").no_grad(masks.remove, inner, name)
      end
    end
  end
  if not found then
    native.raise("failed_precondition", where, ("%s%s is not pruned"):format(o.name and o.name .. " of " or "",
                 getmetatable(o.layer).__name))
  end
  return o.layer
end

return prune
