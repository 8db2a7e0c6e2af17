-- SPDX-License-Identifier: Apache-2.0
-- Layers made of layers. Entries stand at positions from 1: model[2], #model.

local native = require "perigee.native"
local Module = require "perigee.nn.module"
local path = require "perigee.nn.path"
local policy = require "perigee.nn.policy"
local fields = require "perigee.nn.fields"
local positions = require "perigee.nn.positions"
local walk = require "perigee.nn.walk"
local activated = require "perigee.nn.activated"

local META = walk.META
local containers = {}

-- A function may stand where a layer does: it has no parameters.
local function accept(self, i, layer)
  if walk.is_layer(layer) then
    walk.refuse_cycle(self, layer)
    return layer
  end
  if type(layer) == "function" then return containers.Function(layer) end
  local is_class = type(layer) == "table" and rawget(layer, "__perigee_layer")
  native.raise("invalid_argument", getmetatable(self).__name, ("entry %d must be a layer, got %s"):format(i,
               is_class and "the class " .. layer.__name or native.describe(layer)),
               is_class and ("nn.%s{} makes one"):format(layer.__name) or nil)
end

local function need_list(where, list, expected)
  if list == nil or type(list) == "table" and not walk.is_layer(list) then return end
  native.raise("invalid_argument", where, ("takes %s, got %s"):format(expected, native.describe(list)))
end

-- Makes a class one with entries at positions: what they may be, what the first one is called in messages.
local function with_positions(class, accepted, first)
  class.__accept, class.__first, class.__container = accepted, first, class
end

local function add_all(self, where, ...)
  local list = { ... }
  if select("#", ...) == 1 and type(list[1]) == "table" and not walk.is_layer(list[1]) then list = list[1] end
  local count, highest = 0, select("#", ...) > 1 and select("#", ...) or 0
  for key in pairs(list) do
    if type(key) ~= "number" then
      native.raise("invalid_argument", where, ("unknown option %q"):format(tostring(key)), "it takes layers")
    end
    count, highest = count + 1, math.max(highest, key)
  end
  if count ~= highest then
    native.raise("invalid_argument", where, ("the list of layers has a hole: %d entries up to position %d"):format(
                   count, highest))
  end
  for i = 1, count do self[i] = list[i] end
end

local function append(self, new)
  positions.settle(self)
  self[#self + 1] = self:__accept(#self + 1, new)
  return self
end

local function insert(self, position, new)
  positions.insert(self, position, new)
  return self
end

local function extend(self, list)
  if type(list) ~= "table" then
    native.raise("invalid_argument", getmetatable(self).__name, "expected a list, got " .. native.describe(list))
  end
  local entries = {}
  if walk.is_layer(list) and list[META].held then positions.settle(list) end
  for i = 1, #list do entries[i] = self:__accept(#self + i, list[i]) end
  for _, accepted in ipairs(entries) do self[#self + 1] = accepted end
  return self
end

local read_function = native.signature("nn.Function", { { "fn", "function", required = true } })

---A function as a layer without parameters.
---@param fn fun(...): any what the layer computes
---@return perigee.Layer
local Function = Module.class("Function")
containers.Function = Function
function Function:init(...) self.fn = read_function(...).fn end
function Function:forward(...) return self.fn(...) end

local function check_self(where, self)
  if walk.is_layer(self) then return end
  native.raise("invalid_argument", where, "self must be a layer, got " .. native.describe(self),
               "model(x), or model:forward(x) with a colon")
end

-- The entry at a position, or nil behind the last: what was assigned since the last look counts.
local function entry(self, i)
  local layer = rawget(self, i)
  if layer ~= self[META].held[i] then
    positions.settle(self)
    layer = rawget(self, i)
  end
  return layer
end

-- What the layer at a position makes of x, with the one behind it if that is one call; whether nobody else has seen
-- that tensor; and the position behind.
local function step(self, i, count, x, ours)
  local layer = entry(self, i)
  if not layer then return x, ours, count + 1 end -- one was taken out
  local both = activated.find(layer, rawget(self, i + 1))
  local y
  local next_ours = true
  if both then
    y = path.call_one(layer, both, x)
  else
    if policy.dtype or layer[META].hooks then y = layer(x) else y = path.call_one(layer, layer.forward, x) end
    next_ours = walk.keeps_nothing(layer)
  end
  -- Nobody else has seen this tensor: its memory serves the next layers while it is still in the processor's caches.
  -- What backward needs, the tape holds.
  if ours and next_ours then native.handles.close(x) end
  return y, next_ours, both and i + 2 or i + 1
end

-- The same from a position to the end. The first layers are written out: see "Code that compiles" in
-- bindings/lua/README.md.
local function run_from(self, i, x, ours)
  local count = #self[META].held
  if i <= count then x, ours, i = step(self, i, count, x, ours) end
  if i <= count then x, ours, i = step(self, i, count, x, ours) end
  if i <= count then x, ours, i = step(self, i, count, x, ours) end
  if i <= count then x, ours, i = step(self, i, count, x, ours) end
  if i <= count then x, ours, i = step(self, i, count, x, ours) end
  if i <= count then x, ours, i = step(self, i, count, x, ours) end
  if i <= count then x, ours, i = step(self, i, count, x, ours) end
  if i <= count then x, ours, i = step(self, i, count, x, ours) end
  while i <= count do x, ours, i = step(self, i, count, x, ours) end
  return x, ours
end

-- What all of them make of the inputs, and whether nobody else has seen that tensor.
local function run(self, ...)
  if select("#", ...) == 1 then
    local x = ...
    return run_from(self, 1, x, false)
  end
  local layer = rawget(self, 1)
  local both = activated.find(layer, rawget(self, 2))
  if both then return run_from(self, 3, path.call(layer, both, ...), true) end
  return run_from(self, 2, layer(...), walk.keeps_nothing(layer))
end

---Layers one after the other: what one returns is the next one's input. model[2] is the second, model[-1] the last,
---model[{1, 2}] another Sequential of the first two; model[2] = layer replaces, model[2] = nil or model:remove(2) takes
---out. What is assigned over an entry is looked at in the next call or read: until then # may still count one that
---was set to nil, while remove is done at once. A convolution, batch normalisation or Linear and a ReLU behind it run
---as one operator, to the same numbers, where nothing sees what goes from one to the other.
---@param ... perigee.Layer|(perigee.Layer|function)[] layers, or functions of tensors
---@return perigee.nn.Sequential
---@class perigee.nn.Sequential: perigee.Layer
local Sequential = Module.class("Sequential")
containers.Sequential = Sequential
with_positions(Sequential, accept, "layer is model[1]")
function Sequential:init(...) add_all(self, "Sequential", ...) end
function Sequential:forward(...)
  check_self("Sequential", self)
  if not entry(self, 1) then return ... end
  if select("#", ...) == 1 then
    local input = ...
    local result = run(self, input)
    return result
  end
  return (run(self, ...))
end
---Adds a layer behind the others.
---@param layer perigee.Layer|function
---@return perigee.nn.Sequential
function Sequential:append(layer) return append(self, layer) end
---Adds a layer in front of the one at a position; those from there on move up by one.
---@param position integer from 1 to #self + 1, negative from the end
---@param layer perigee.Layer|function
---@return perigee.nn.Sequential
function Sequential:insert(position, layer) return insert(self, position, layer) end
---Adds layers behind the others.
---@param layers (perigee.Layer|function)[] a list, or a layer that has positions
---@return perigee.nn.Sequential
function Sequential:extend(layers) return extend(self, layers) end
---Takes out the layer at a position, the last one if not given; those behind it move down by one.
---@param position? integer from 1, negative from the end
---@return perigee.Layer removed
function Sequential:remove(position) return positions.remove(self, position or -1) end

---A list of layers that has no forward of its own; positions as in nn.Sequential.
---@param ... perigee.Layer|(perigee.Layer|function)[] layers, or functions of tensors
---@return perigee.nn.ModuleList
---@class perigee.nn.ModuleList: perigee.Layer
local ModuleList = Module.class("ModuleList")
containers.ModuleList = ModuleList
with_positions(ModuleList, accept, "layer is model[1]")
function ModuleList:init(...) add_all(self, "ModuleList", ...) end
---Adds a layer behind the others.
---@param layer perigee.Layer|function
---@return perigee.nn.ModuleList
function ModuleList:append(layer) return append(self, layer) end
---Adds a layer in front of the one at a position; those from there on move up by one.
---@param position integer from 1 to #self + 1, negative from the end
---@param layer perigee.Layer|function
---@return perigee.nn.ModuleList
function ModuleList:insert(position, layer) return insert(self, position, layer) end
---Adds layers behind the others.
---@param layers (perigee.Layer|function)[] a list, or a layer that has positions
---@return perigee.nn.ModuleList
function ModuleList:extend(layers) return extend(self, layers) end
---Takes out the layer at a position, the last one if not given; those behind it move down by one.
---@param position? integer from 1, negative from the end
---@return perigee.Layer removed
function ModuleList:remove(position) return positions.remove(self, position or -1) end

---x + layer(x): nn.Residual{layer, ...} runs its layers in sequence.
---@param ... perigee.Layer|(perigee.Layer|function)[] layers, or functions of tensors
---@return perigee.Layer
local Residual = Module.class("Residual")
containers.Residual = Residual
with_positions(Residual, accept, "layer is model[1]")
function Residual:init(...) add_all(self, "Residual", ...) end
function Residual:forward(x)
  check_self("Residual", self)
  if not entry(self, 1) then return x + x end
  local y, ours = run(self, x)
  local sum = x + y
  if ours then native.handles.close(y) end
  return sum
end

---Layers by name, none of which runs by itself: nn.ModuleDict{conv=..., pool=...}; dict.conv, and dict:names(). Names
---of one table come in alphabetical order; dict:add(name, layer) appends. Names of methods ("state", "fit") are like
---others, and weights load by them; the layer under one is dict:get("state"), since dict.state is the method.
---@param layers? table<string, perigee.Layer> layers by name
---@return perigee.nn.ModuleDict
---@class perigee.nn.ModuleDict: perigee.Layer
local ModuleDict = Module.class("ModuleDict")
containers.ModuleDict = ModuleDict
function ModuleDict:init(entries)
  local list = {}
  need_list("ModuleDict", entries, "layers by name")
  for name in pairs(entries or {}) do
    if type(name) ~= "string" then self:add(name, entries[name]) end
    list[#list + 1] = name
  end
  table.sort(list)
  for _, name in ipairs(list) do self:add(name, entries[name]) end
end
---Adds a layer under a name, or puts it in the place of the one that has it.
---@param name string
---@param layer perigee.Layer
---@return perigee.nn.ModuleDict
function ModuleDict:add(name, layer)
  if type(name) ~= "string" or not walk.is_layer(layer) then
    native.raise("invalid_argument", "ModuleDict", ("expected names and layers, got %s and %s"):format(
                   native.describe(name), native.describe(layer)))
  end
  fields.check_name("ModuleDict", name)
  if fields.is_reserved(self, name) then
    fields.add_apart(self, name, layer)
  else
    self[name] = layer
  end
  return self
end

local function find(self, where, name)
  local apart = self[META].apart
  local layer = apart and apart[name] or rawget(self, name)
  if walk.is_layer(layer) then return layer end
  local names = self:names()
  local near = native.suggest(name, names)
  native.raise("not_found", where, ("there is no layer %q"):format(name), near and ("did you mean %q?"):format(near) or
               #names > 0 and "the names are " .. table.concat(names, ", ", 1, math.min(#names, 8)) or "it is empty")
end

---The layer under a name, of whatever letters: dict.conv is dict:get("conv").
---@param name string
---@return perigee.Layer
function ModuleDict:get(name) return find(self, "ModuleDict:get", name) end
---Takes out the layer under a name.
---@param name string
---@return perigee.Layer removed
function ModuleDict:remove(name)
  local layer, apart = find(self, "ModuleDict:remove", name), self[META].apart
  if apart and apart[name] then apart[name] = nil else rawset(self, name, nil) end
  return layer
end
---The names, in order.
---@return string[]
function ModuleDict:names()
  local names = {}
  for _, field in ipairs(walk.entries(self)) do
    if field.kind == "layer" then names[#names + 1] = field.key end
  end
  return names
end

-- A plain tensor becomes a parameter.
local function accept_parameter(self, _, p)
  if not native.is_tensor(p) then
    native.raise("invalid_argument", getmetatable(self).__name, "expected tensors, got " .. native.describe(p))
  end
  return walk.is_parameter(p) and p or require("perigee").nn.Parameter(p)
end

---A list of parameters: list[1], #list; positions as in nn.Sequential.
---@param ... perigee.Tensor|perigee.Tensor[] what becomes parameters
---@return perigee.nn.ParameterList
---@class perigee.nn.ParameterList: perigee.Layer
---@field [integer] perigee.Tensor
local ParameterList = Module.class("ParameterList")
containers.ParameterList = ParameterList
with_positions(ParameterList, accept_parameter, "parameter is list[1]")
function ParameterList:init(list)
  need_list("ParameterList", list, "a list of tensors")
  for _, p in ipairs(list or {}) do self:append(p) end
end
---Adds a tensor behind the others, as a parameter.
---@param p perigee.Tensor
---@return perigee.nn.ParameterList
function ParameterList:append(p)
  return append(self, p)
end
---Adds tensors behind the others, as parameters.
---@param list perigee.Tensor[]
---@return perigee.nn.ParameterList
function ParameterList:extend(list) return extend(self, list) end

---Gives what it is given.
---@param ... any anything
---@return perigee.Layer
local Identity = Module.class("Identity")
containers.Identity = Identity
function Identity:forward(...) return ... end

for _, name in ipairs { "ModuleDict", "ParameterList" } do
  containers[name].init = native.checked.behind(name, containers[name].init)
end
local ENTRY = { "layer", "any", required = true }
for name, rules in pairs {
  Sequential = { append = { ENTRY } }, ModuleList = { append = { ENTRY } }, ParameterList = {},
  ModuleDict = { get = { { "name", "string", required = true } }, remove = { { "name", "string", required = true } } },
} do
  native.checked.class(containers[name], { noun = "a layer", call = "layers", is = walk.is_layer, open = true,
                                           skip = "init forward", kinds = rules })
end

return containers
