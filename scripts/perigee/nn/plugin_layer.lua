-- SPDX-License-Identifier: Apache-2.0
-- Classes for the layers that plugins provide. Parameters exist from the start, so that an optimizer may hold them;
-- those whose shape waits for the first input are empty until then and filled in place.

local native = require "perigee.native"
local Module = require "perigee.nn.module"
local walk = require "perigee.nn.walk"
local activated = require "perigee.nn.activated"
local initialise = require "perigee.nn.initialise"
local conv_padding = require "perigee.neural.conv_padding"
local check_divisor = require "perigee.neural.divisor"

local META = walk.META

-- What a description's initialiser cannot say.
local afterwards = {
  Embedding = function(layer, attributes)
    local index = attributes:get("padding_idx")
    if index >= 0 then
      require("perigee").no_grad(function() layer.weight[index + 1] = 0 end)
    end
  end,
}

local function parameter(layer, spec, tensor)
  if spec.buffer then return layer:buffer(spec.name, tensor) end
  tensor.requires_grad = true
  walk.mark_parameter(tensor)
  layer[spec.name] = tensor
end

-- Which parameters there will be does not depend on the input's size: asked of a second object, with a size of its own.
local function lazy_specs(name, ...)
  local probe = native.new_layer(name, ...)
  local info = native.layer(name)
  local groups = info.by_name.groups and probe:get("groups") or 1
  probe:set(info.attributes[info.inferred].name, groups)
  return probe:parameters()
end

local function init(class_name, self, named_padding, ...)
  local attributes = native.new_layer(class_name, ...)
  local meta = self[META]
  if named_padding then meta.pad = conv_padding.resolve(attributes, named_padding) end
  meta.attributes, attributes.tensors = attributes, meta.tensors
  attributes.where = "" -- the layer's path says more than its class
  meta.lazy = attributes:needs_input()
  local specs = meta.lazy and lazy_specs(class_name, ...) or attributes:parameters()
  for _, spec in ipairs(specs) do
    if spec.present then
      parameter(self, spec, meta.lazy and initialise.empty(spec.dtype) or initialise.tensor(spec))
    else
      meta.kinds[spec.name] = spec.buffer and "buffer" or "parameter"
    end
  end
  if not meta.lazy and afterwards[class_name] then afterwards[class_name](self, attributes) end
  meta.names = {}
  for i, spec in ipairs(specs) do meta.names[i] = spec.name end
end

-- The first input is here: shapes are known now. Values that load_state brought stay.
local function materialise(self, class_name, input)
  local meta = self[META]
  local pg = require "perigee"
  if not native.is_tensor(input) then native.handles.raise_input(input, class_name) end
  local specs = meta.attributes:parameters(input)
  native.graphs.outside(pg.no_grad, function()
    for _, spec in ipairs(specs) do
      local target = spec.present and meta.tensors[spec.name]
      if target and target:numel() == 0 then
        spec.dtype = target.dtype
        native.assign(target, pg.device(input.device, initialise.tensor, spec))
      elseif target and not target:has_shape(spec.shape) then
        native.raise("invalid_argument", class_name, ("%s was loaded as %s, but this input needs %s"):format(
                       spec.name, tostring(target.shape), tostring(native.shape(spec.shape))))
      end
    end
  end)
  meta.lazy = false
  if afterwards[class_name] then native.graphs.outside(afterwards[class_name], self, meta.attributes) end
end

---The class of a plugin's layer.
---@param name string as in nn.NAME
return function(name)
  local class = Module.class(name)
  local gives_one = native.layer(name).outputs == 1
  local named = conv_padding.layers[name]
  local averages = name:find "^AvgPool"
  class.init = function(self, ...)
    if averages then check_divisor(name, 6, ...) end
    if named then return init(name, self, conv_padding.take(name, ...)) end
    return init(name, self, nil, ...)
  end

  -- What computes the call, whose first input this is.
  local function prepared(self, meta, input)
    if meta.lazy then materialise(self, name, input) end
    local attributes = meta.attributes
    local run = attributes.run
    if not run then
      run = native.compile_layer(attributes, meta.names)
      attributes.run = run
    end
    return run
  end

  class.forward = function(self, ...)
    if type(self) ~= "table" then
      native.raise("invalid_argument", name, "self must be a layer, got " .. native.describe(self),
                   "layer(x), or layer:forward(x) with a colon")
    end
    local meta = self[META]
    if meta.pad then return conv_padding.call(self, meta, class.padded_forward, ...) end
    if gives_one and select("#", ...) == 1 then -- see "Code that compiles" in bindings/lua/README.md
      local input = ...
      local result = prepared(self, meta, input)(self, input)
      return result
    end
    return class.padded_forward(self, meta, ...)
  end
  walk.mark_plugin_forward(class.forward)
  activated.add_class(name, class)

  -- The call itself, once a convolution's input has been padded.
  class.padded_forward = function(self, meta, ...) return prepared(self, meta, (...))(self, ...) end

  class.describe = function(self)
    local meta = self[META]
    local text = meta.attributes:describe()
    return meta.pad and ("%s, padding_mode=%s"):format(text, meta.pad.mode) or text
  end
  return class
end
