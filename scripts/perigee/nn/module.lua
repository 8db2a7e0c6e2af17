-- SPDX-License-Identifier: Apache-2.0
-- What every layer is: a table whose layers, parameters and lists of layers count in the order they were assigned.

local native = require "perigee.native"
local path = require "perigee.nn.path"
local walk = require "perigee.nn.walk"
local fields = require "perigee.nn.fields"
local hooks = require "perigee.nn.hooks"
local policy = require "perigee.nn.policy"

local META = walk.META

---What takes a hook away again.
---@class perigee.HookHandle
---@field remove fun(self?: perigee.HookHandle)

---@class perigee.Layer
---@field training boolean whether dropout and normalisation behave as in training
---@field [integer] perigee.Layer an inner layer, of containers
---@field [string] any what its init stored: layers, parameters, buffers, options
---@overload fun(...: any): perigee.Tensor, any
local Module = {}

local function run(self, ...)
  local set = self[META].hooks
  if set then return hooks.call(self, set, ...) end
  return path.call(self, self.forward, ...)
end

local function call(self, ...)
  if policy.dtype then return policy.run(run, self, ...) end
  local set = self[META].hooks
  if set then return hooks.call(self, set, ...) end
  if select("#", ...) == 1 then -- see "Code that compiles" in bindings/lua/README.md
    local input = ...
    return path.call_one(self, self.forward, input)
  end
  return path.call(self, self.forward, ...)
end

local function assign(self, key, value)
  if type(key) == "string" and rawget(Module, key) ~= nil then
    native.raise("invalid_argument", "nn", ("%q is a method of every layer and cannot be a field"):format(key),
                 walk.is_layer(value) and ("an nn.ModuleDict holds it: dict:add(%q, layer)"):format(key) or nil)
  end
  fields.assign(self, key, value)
end

local function construct(class, ...)
  local self = setmetatable({ [META] = fields.new(class), training = true }, class)
  if class.init then native.graphs.outside(class.init, self, ...) end -- what a layer holds is drawn once
  local made = rawget(native, "made") -- the scope of a strategy
  if made then made(self) end
  return self
end

---What nn.class answers: called, it makes a layer.
---@class perigee.LayerClass: perigee.Layer
---@field init? fun(self: perigee.Layer, ...: any) stores what the layer is made of
---@overload fun(...: any): perigee.Layer

---A new class of layers. `parent` is the class to extend (`parent.init(self, ...)` is super).
---@param name string what printing and messages call it
---@param parent? perigee.Layer
---@return perigee.LayerClass
function Module.class(name, parent)
  if type(name) ~= "string" then
    native.raise("invalid_argument", "nn.class", "name must be a string, got " .. native.describe(name))
  end
  if parent ~= nil and not (type(parent) == "table" and rawget(parent, "__perigee_layer")) then
    native.raise("invalid_argument", "nn.class", "the second argument must be a class of layers, got " ..
                 native.describe(parent))
  end
  local class = { __name = name, __perigee_layer = true, __newindex = assign, __call = call,
                  __tostring = function(self) return require("perigee.nn.show").tree(self) end }
  class.__index = fields.reader(class)
  return setmetatable(class, { __index = parent or Module, __call = construct })
end

---What layer(...) computes; classes define it.
---@param ... any
---@return any
function Module.forward(self, ...)
  native.raise("not_supported", getmetatable(self).__name, "this layer has no forward", "define function " ..
               getmetatable(self).__name .. ":forward(x)")
end

local read_buffer = native.signature("buffer", {
  { "name", "string", required = true }, { "tensor", "tensor", required = true } })
---Registers state that is saved and moved with the layer but not trained.
---@param name string
---@param tensor perigee.Tensor
---@return perigee.Tensor
function Module.buffer(self, ...)
  local o = read_buffer(...)
  fields.add_buffer(self, o.name, o.tensor)
  return o.tensor
end

---Calls fn at every call of this layer, or in every backward pass through such a call. Several hooks of an event are
---called in the order in which they were set; each value that one returns and that is not nil replaces the one at its
---place, for those after it too.
---  "forward_pre"   fn(layer, inputs) before forward; inputs is a list, its length in `n`; returns new inputs
---  "forward"       fn(layer, inputs, output, ...) after forward, with all that it gave; returns new outputs
---  "backward_pre"  fn(layer, grad_outputs) once gradients of all outputs are known; returns new ones
---  "backward"      fn(layer, grad_inputs, grad_outputs) once those of all inputs are; returns new ones
---Lists of gradients have their length in `n`, and nil at the place of what needs or gets none: numbers and tables, and
---tensors inside of tables. Where no input needs a gradient "backward" is called all the same, with none. Backward
---hooks give forward aliases of its inputs, which it must not write into; in pg.grad they are called where it passes.
---Hooks stay behind when a layer is cloned or saved.
---@param event "forward"|"forward_pre"|"backward"|"backward_pre"
---@param fn fun(layer: perigee.Layer, values: any[], ...: any): any
---@return perigee.HookHandle handle
function Module.hook(self, event, fn) return hooks.add(self, event, fn) end

---All parameters, each once, in order.
---@return perigee.Tensor[]
function Module.parameters(self) return walk.parameters(self) end

---`for name, parameter in model:named_parameters() do`: names as in state().
---@return fun(): string?, perigee.Tensor
function Module.named_parameters(self) return walk.iterate(self, "parameter") end
---Buffers, such as running statistics, by their names in state().
---@return fun(): string?, perigee.Tensor
function Module.named_buffers(self) return walk.iterate(self, "buffer") end

local read_count = native.signature("count_parameters", { { "trainable", "boolean", named = true } })

---Number of elements of all parameters.
---@param options? {trainable?: boolean} only those that need gradients
---@return integer
function Module.count_parameters(self, options)
  local count, trainable = 0, read_count(options).trainable
  for _, p in ipairs(self:parameters()) do
    if p:numel() == 0 and walk.is_lazy(self) then
      native.raise("failed_precondition", "count_parameters", "sizes are not known before the first input",
                   "call the model once, or model:summary{input={...}}")
    end
    if not trainable or p.requires_grad then count = count + p:numel() end
  end
  return count
end

---Bytes that parameters and buffers take.
---@return integer
function Module.size(self)
  local bytes, seen = 0, {}
  for _, kind in ipairs { "parameter", "buffer" } do
    for _, t in walk.iterate(self, kind) do
      if not seen[t] then
        seen[t] = true
        bytes = bytes + t:numel() * native.dtypes.by_name[t.dtype].bytes
      end
    end
  end
  return bytes
end

---The layer and all layers inside it, outermost first, each once.
---@return perigee.Layer[]
function Module.modules(self) return walk.modules(self) end
---The layers directly inside.
---@return perigee.Layer[]
function Module.children(self) return walk.children(self) end

---Calls fn(layer) for this and every inner layer.
---@param fn fun(layer: perigee.Layer)
---@return perigee.Layer
function Module.apply(self, fn)
  for _, layer in ipairs(walk.modules(self)) do fn(layer) end
  return self
end

---Training mode, in which dropout drops and batch norms learn their statistics; train(false) is eval().
---@param on? boolean
---@return perigee.Layer
function Module.train(self, on)
  if on == nil then on = true end
  for _, layer in ipairs(walk.modules(self)) do rawset(layer, "training", on) end
  return self
end

---Evaluation mode: dropout does nothing, batch norms use their running statistics.
---@return perigee.Layer
function Module.eval(self) return self:train(false) end

local function set_trainable(self, on)
  for _, p in ipairs(self:parameters()) do p.requires_grad = on end
  return self
end

---Parameters need no gradients any more.
---@return perigee.Layer
function Module.freeze(self) return set_trainable(self, false) end
---Gives all parameters gradients again.
---@return perigee.Layer
function Module.unfreeze(self) return set_trainable(self, true) end

---Forgets the gradients of all parameters.
function Module.zero_grad(self) native.clear_grads(self:parameters()) end

for name, source in pairs { state = "state", load_state = "state", to = "state", on = "state", clone = "state",
                            summary = "summary" } do
  Module[name] = function(self, ...) return require("perigee.nn." .. source)[name](self, ...) end
end
for name, method in pairs(native.training) do Module[name] = method end
native.layer_methods = Module -- for messages about names that are none
---Moves parameters and buffers to the processor, as to("cpu").
---@return perigee.Layer
function Module.cpu(self) return self:to("cpu") end

native.checked.class(Module, { noun = "a layer", call = "model", is = walk.is_layer, open = true, skip = "class",
  kinds = { state = {}, clone = {}, apply = { { "fn", "function", required = true } }, train = { { "on", "boolean" } },
            hook = { { "event", "any" }, { "fn", "function", required = true } },
            to = { { "target", "any", required = true }, { "second", "any" } },
            on = { { "device", "any", required = true } } } })

local foreign_methods = require("perigee.names.foreign").layer_methods(native.raise)
setmetatable(Module, { __index = foreign_methods, __call = function()
  native.raise("invalid_argument", "nn.Module", "it is what all layers share, and no class to make one of",
               "local Net = nn.class(\"Net\")")
end })

return Module
