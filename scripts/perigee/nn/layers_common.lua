-- SPDX-License-Identifier: Apache-2.0
-- What layers written in Lua share: reading options, making parameters, printing.

local native = require "perigee.native"
local Module = require "perigee.nn.module"
local walk = require "perigee.nn.walk"

local common = {}

---A class whose init reads its arguments by `params` (native.signature) and hands them to `make(self, options)`.
function common.class(name, params, make)
  local class, read = Module.class(name), native.signature(name, params)
  function class:init(...)
    local o = read(...)
    self.options = o
    if make then make(self, o) end
  end
  function class:describe()
    local told = {}
    for _, param in ipairs(params) do
      local v = self.options[param[1]]
      if type(v) == "number" or type(v) == "string" or type(v) == "boolean" then
        told[#told + 1] = param[1] .. "=" .. tostring(v)
      end
    end
    return table.concat(told, ", ")
  end
  return class
end

---Makes forward refuse a first input that is no open tensor.
function common.check_input(class)
  local name, forward, is_tensor = class.__name, class.forward, native.is_tensor
  function class.forward(self, x, ...)
    if not is_tensor(x) or x.ptr == nil then
      if type(self) ~= "table" then
        native.raise("invalid_argument", name, "self must be a layer, got " .. native.describe(self),
                     "layer(x), or layer:forward(x) with a colon")
      end
      native.handles.raise_input(x, name)
    end
    return forward(self, x, ...)
  end
end

function common.refuse(where, message, hint) native.raise("invalid_argument", where, message, hint) end

---Raises unless an argument of this name is a tensor.
function common.check_tensor(where, name, x)
  if native.is_tensor(x) then return end
  common.refuse(where, ("%s must be a tensor, got %s"):format(name, native.describe(x)))
end

---Raises unless these options are numbers from 1.
function common.positive(where, o, ...)
  for _, name in ipairs { ... } do
    if o[name] < 1 then common.refuse(where, ("%s must be positive, got %d"):format(name, o[name])) end
  end
end

function common.probability(where, p)
  if p < 0 or p > 1 then common.refuse(where, ("p must lie in [0, 1], got %g"):format(p)) end
end

---Makes a fresh tensor a parameter.
function common.parameter(t)
  t.requires_grad = true
  walk.mark_parameter(t)
  return t
end

function common.filled(shape, value)
  return common.parameter(native.call("fill", {}, { shape = shape, dtype = "float32", value = value }))
end
function common.uniform(shape, bound)
  return common.parameter(native.call("uniform", {}, { shape = shape, dtype = "float32", low = -bound, high = bound }))
end
function common.normal(shape, std)
  return common.parameter(native.call("normal", {}, { shape = shape, dtype = "float32", mean = 0, std = std or 1 }))
end

return common
