-- SPDX-License-Identifier: Apache-2.0
-- What pruning is asked for: a layer, a model or a list of them, and the parameters of one name in it.

local native = require "perigee.native"
local walk = require "perigee.nn.walk"
local hooks = require "perigee.nn.hooks"
local masks = require "perigee.prune.masks"

local targets = {}
local META = walk.META

targets.TARGET = { "target", "any", required = true, type = "perigee.Layer|perigee.Layer[]",
                   doc = "a layer; a model, whose inner layers with such a parameter of two axes or more are meant; " ..
                         "or a list of these" }
targets.NAME = { "name", "string", named = true, default = "weight", doc = "of the parameter" }

local function class_of(layer) return getmetatable(layer).__name end

local function has(layer, name)
  return masks.is_pruned(layer, name) or layer[META].kinds[name] == "parameter" and layer[META].tensors[name] ~= nil
end

---Raises unless the layer's parameter can be pruned.
local function check(where, layer, name)
  if layer[META].lazy then
    native.raise("failed_precondition", where, ("the sizes of %s are not known before the first input"):format(
                   class_of(layer)), "call the model once, or give its input size")
  end
  local t = masks.original(layer, name)
  if not native.dtypes.by_name[t.dtype].floating then
    native.raise("invalid_argument", where, ("%s of %s is %s; expected a floating dtype"):format(name, class_of(layer),
                 t.dtype))
  end
  if not t.requires_grad then
    native.raise("failed_precondition", where, ("%s of %s is frozen"):format(name, class_of(layer)),
                 "layer:unfreeze() before it is pruned")
  end
end

local function refuse_absent(where, layer, name)
  local rule = hooks.computed(layer, name)
  if rule then
    native.raise("failed_precondition", where, ("%s of %s is computed by %s already"):format(name, class_of(layer),
                 rule.kind), rule.undo)
  end
  local names = {}
  for key, kind in pairs(layer[META].kinds) do
    if kind == "parameter" and layer[META].tensors[key] then names[#names + 1] = key end
  end
  table.sort(names)
  local near = native.suggest(name, names)
  local inside = walk.children(layer)[1] ~= nil
  native.raise("not_found", where, (inside and "no layer in %s has a parameter %q of two axes or more" or
                 "%s has no parameter %q"):format(class_of(layer), name),
               near and ("did you mean %q?"):format(near) or
                 #names > 0 and "it has " .. table.concat(names, ", ") or nil)
end

local function add(where, list, seen, layer, name)
  if seen[layer] then return end
  seen[layer] = true
  check(where, layer, name)
  list[#list + 1] = layer
end

-- A layer that computes the parameter otherwise is refused, not passed over.
local function collect(where, list, seen, layer, name)
  if not walk.is_layer(layer) then
    native.raise("invalid_argument", where, "needs a layer, a model or a list of them, got " .. native.describe(layer))
  end
  if has(layer, name) then return add(where, list, seen, layer, name) end
  local found = false
  for _, inner in ipairs(walk.modules(layer)) do
    local rule = hooks.computed(inner, name)
    if rule and not masks.is_pruned(inner, name) then refuse_absent(where, inner, name) end
    if inner ~= layer and has(inner, name) and (inner[META].lazy or #masks.original(inner, name).shape > 1) then
      found = true
      add(where, list, seen, inner, name)
    end
  end
  if not found then refuse_absent(where, layer, name) end
end

---The layers whose parameter of that name is meant, each once, in order.
---@return perigee.Layer[]
function targets.find(where, target, name)
  local list, seen = {}, {}
  if native.is_plain(target) then
    if #target == 0 then native.raise("invalid_argument", where, "the list of layers is empty") end
    for _, layer in ipairs(target) do collect(where, list, seen, layer, name) end
  else
    collect(where, list, seen, target, name)
  end
  return list
end

---"weight of Linear", for messages.
function targets.text(layer, name) return ("%s of %s"):format(name, class_of(layer)) end

return targets
