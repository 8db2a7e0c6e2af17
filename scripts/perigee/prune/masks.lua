-- SPDX-License-Identifier: Apache-2.0
-- Masks on parameters. A pruned `weight` is computed of the parameter `weight_orig` and the buffer `weight_mask`,
-- PyTorch's names: so no optimizer brings back what the mask takes out, and the mask goes wherever the layer goes.

local native = require "perigee.native"
local walk = require "perigee.nn.walk"
local fields = require "perigee.nn.fields"
local hooks = require "perigee.nn.hooks"

local masks = {}
local META = walk.META
local KIND = "pruning"

local function pg() return require "perigee" end

-- where, and no product: what is pruned is 0 even if the value beneath is infinite, and gets the gradient 0.
local function rule_of(name)
  local original, mask = name .. "_orig", name .. "_mask"
  return { kind = KIND, keys = { original, mask }, trained = original, aliases = {}, undo = "pg.prune.remove(layer)",
           compute = function(layer)
             local tensors = layer[META].tensors
             return pg().where(tensors[mask], tensors[original], 0)
           end }
end

---Whether the layer's parameter of that name is pruned.
function masks.is_pruned(layer, name)
  local rule = hooks.computed(layer, name)
  return rule ~= nil and rule.kind == KIND
end

---Names of the layer's pruned parameters, sorted.
function masks.names(layer)
  local set, list = layer[META].hooks, {}
  for name, rule in pairs(set and set.computed or {}) do
    if rule.kind == KIND then list[#list + 1] = name end
  end
  table.sort(list)
  return list
end

---The trained tensor: the parameter itself, or what lies beneath the mask.
function masks.original(layer, name)
  return layer[META].tensors[masks.is_pruned(layer, name) and name .. "_orig" or name]
end

---The mask, true for what stays; nil where there is none.
function masks.get(layer, name)
  return masks.is_pruned(layer, name) and layer[META].tensors[name .. "_mask"] or nil
end

---The same, all true where there is none.
function masks.open(layer, name)
  local mask, t = masks.get(layer, name), masks.original(layer, name)
  return mask or pg().ones { t.shape, dtype = "bool", device = t.device }
end

---What the parameter is now, without history.
function masks.value(layer, name)
  local t, mask = masks.original(layer, name):detach(), masks.get(layer, name)
  return mask and pg().where(mask, t, 0) or t
end

---Lets only those elements be that `mask` has true; earlier masks go on holding.
function masks.set(layer, name, mask)
  local old = masks.get(layer, name)
  if old then return old:copy_(old:logical_and(mask)) end
  fields.rename(layer, name, name .. "_orig")
  fields.add_buffer(layer, name .. "_mask", pg().keep(mask))
  hooks.set_computed(layer, name, rule_of(name))
end

---Makes the parameter one again, with zeros where it was pruned; the tensor that optimizers hold stays.
function masks.remove(layer, name)
  local original = masks.original(layer, name)
  native.call("copy", { original:detach(), masks.value(layer, name) })
  hooks.set_computed(layer, name, nil)
  fields.take(layer, name .. "_mask")
  fields.rename(layer, name .. "_orig", name)
end

return masks
