-- SPDX-License-Identifier: Apache-2.0
-- perigee.nn: layers, losses, initialisers. nn.NAME is a class written here or made from a plugin's layer at first use.

local native = require "perigee.native"
local Module = require "perigee.nn.module"
local containers = require "perigee.nn.containers"
local losses = require "perigee.nn.losses"
local spatial = require "perigee.nn.spatial"
local walk = require "perigee.nn.walk"
local path = require "perigee.nn.path"
local plugin_layer = require "perigee.nn.plugin_layer" -- now: package.loaded may be cleared later

---@class perigee.nn
---@field init perigee.nn.init
---@field utils perigee.nn.utils
local nn = {
  class = Module.class,
  Module = Module,
  init = require("perigee.names.package").close(require("perigee.nn.initialise").functions, "nn.init", "init"),
  utils = require "perigee.nn.utils",
}

for name, class in pairs(containers) do nn[name] = class end
for name, value in pairs(losses) do nn[name] = value end
for _, file in ipairs { "vectors", "attention", "rotary", "transformer", "recurrent", "lora", "sync_norm" } do
  for name, class in pairs(require("perigee.nn." .. file)) do nn[name] = class end
end
for name, class in pairs(spatial) do nn[name] = class end
local tensor_parallel = require "perigee.nn.tensor_parallel"
for name, class in pairs(tensor_parallel.layers) do nn[name] = class end
for name, fn in pairs(tensor_parallel.losses) do nn[name] = fn end
require("perigee.nn.layers_common").check_input(nn.RoPE)

local read_parameter = native.signature("nn.Parameter", {
  { "requires_grad", "boolean", named = true, default = true } })

---Makes a tensor a parameter: a leaf that needs gradients and that layers register. It shares `tensor`'s memory.
---@param tensor perigee.Tensor of a floating dtype
---@param options? {requires_grad?: boolean} requires_grad=false: registered, but not trained
---@return perigee.Tensor
function nn.Parameter(tensor, options)
  if not native.is_tensor(tensor) then
    native.raise("invalid_argument", "nn.Parameter", "needs a tensor, got " .. native.describe(tensor))
  end
  local p = tensor:detach()
  p.requires_grad = read_parameter(options).requires_grad
  walk.mark_parameter(p)
  return p
end

---Whether v is a layer.
---@param v any anything
---@return boolean
function nn.is_layer(v) return walk.is_layer(v) end
---Whether v is a tensor that layers register as a parameter.
---@param v any anything
---@return boolean
function nn.is_parameter(v) return native.is_tensor(v) and walk.is_parameter(v) end

local aliases = require("perigee.nn.told").aliases

local function unknown(name)
  require("perigee.names.package").refuse(nn, "nn", name, "nn", native.layer_names(), native.unavailable "layers")
end

setmetatable(nn, { __index = function(_, name)
  if type(name) ~= "string" then return nil end
  if aliases[name] then return nn[aliases[name]] end
  if name:find("^%l") then -- functions of tensors stand here too, as in torch.nn.functional
    local found, f = pcall(function() return require("perigee")[name] end)
    if found and type(f) == "function" then
      rawset(nn, name, f)
      return f
    end
  end
  if not native.layer(name) then unknown(name) end
  local class = plugin_layer(name)
  rawset(nn, name, class)
  return class
end })

-- Errors name the layer that was being called.
local errors = require "perigee.native.errors"
errors.layer_path, errors.layer_calls, errors.layer_tensors = path.text, path.calls, path.tensors

return nn
