-- SPDX-License-Identifier: Apache-2.0
-- Whole parameters of a model of which processes hold parts, and parts of whole ones.

local native = require "perigee.native"
local partial = require "perigee.nn.partial"
local walk = require "perigee.nn.walk"

local M = {}

local function pg() return require "perigee" end

local function need_layer(where, model)
  if walk.is_layer(model) then return end
  native.raise("invalid_argument", where, "needs a layer, got " .. native.describe(model))
end

---Parameters and buffers by name, the parts of all processes brought together.
function M.state(where, model)
  need_layer(where, model)
  local state = {}
  pg().no_grad(function()
    for _, entry in ipairs(walk.tensors(model)) do
      local t = entry.tensor
      state[entry.name] = partial.of(t) and partial.whole(t) or t:detach()
    end
  end)
  return state
end

---Of whole tensors by name those that belong to the model as it is here.
function M.parts(where, model, given)
  need_layer(where, model)
  if type(given) ~= "table" then
    native.raise("invalid_argument", where, "needs a table of tensors, got " .. native.describe(given))
  end
  local own = {}
  for name, t in pairs(given) do own[name] = t end
  pg().no_grad(function()
    for _, entry in ipairs(walk.tensors(model)) do
      local part, t = partial.of(entry.tensor), given[entry.name]
      if part and native.is_tensor(t) then
        local shape = partial.whole_shape(entry.tensor)
        if native.tensor.shapes_differ(t.shape, native.shape(shape)) then
          native.raise("invalid_argument", where, ("%s is %s; expected the whole parameter, %s"):format(entry.name,
                       tostring(t.shape), tostring(native.shape(shape))))
        end
        own[entry.name] = partial.part_of(t:to(entry.tensor.device), part)
      end
    end
  end)
  return own
end

return M
