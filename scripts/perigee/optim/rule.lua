-- SPDX-License-Identifier: Apache-2.0
-- Optimizers that are written in Lua, as compositions of operators: hyperparameters that behave like those of a
-- plugin's optimizer, and what the class in optimizer.lua asks of them.

local native = require "perigee.native"

local rule = {}
local definitions = {}

local Attributes = {}
Attributes.__index = Attributes

---definition: { name, attributes = { { name, default, doc }, ... }, check(o), slots(o) -> names, zeros(slot, p, o),
---update(o, step, params, gradients, state) }. `state[slot]` is a list beside params. In a graph step and o.lr are
---tensors, float64 [].
function rule.define(definition)
  local info = { name = definition.name, names = {}, by_name = {}, slots = {} }
  for _, attribute in ipairs(definition.attributes) do
    info.names[#info.names + 1], info.by_name[attribute[1]] = attribute[1], attribute
  end
  definition.info = info
  definitions[definition.name] = definition
end

---Names, defaults and meanings of its hyperparameters, for the reference; nil where the name is not one of them.
function rule.attributes(name) return definitions[name] and definitions[name].attributes end

---The hyperparameters of such an optimizer; nil where the name is not one of them.
function rule.new(name, options)
  local definition = definitions[name]
  if not definition then return nil end
  local self = setmetatable({ info = definition.info, definition = definition, values = {}, in_lua = true },
                            Attributes)
  for _, attribute in ipairs(definition.attributes) do self.values[attribute[1]] = attribute[2] end
  for key, value in pairs(options) do self:set(key, value) end
  self:slots()
  return self
end

function Attributes:get(key) return self.values[key] end

function Attributes:set(key, value)
  local attribute = self.info.by_name[key]
  if not attribute then
    local near = native.suggest(tostring(key), self.info.names)
    native.raise("invalid_argument", self.info.name, ("unknown option %q"):format(tostring(key)),
                 near and ("did you mean %q?"):format(near))
  end
  if type(value) ~= type(attribute[2]) then
    native.raise("invalid_argument", self.info.name, ("%s must be a %s, got %s"):format(key, type(attribute[2]),
                 native.describe(value)))
  end
  self.values[key] = value
end

local function check_common(self)
  local o = self.values
  for _, key in ipairs { "lr", "weight_decay", "eps" } do
    if o[key] and not (o[key] >= 0 and o[key] < math.huge) then
      native.raise("invalid_argument", self.info.name, ("%s must be 0 or more, got %g"):format(key, o[key]))
    end
  end
  for _, key in ipairs { "beta1", "beta2", "momentum" } do
    if o[key] and not (o[key] >= 0 and o[key] < 1) then
      native.raise("invalid_argument", self.info.name, ("%s must lie in [0, 1), got %g"):format(key, o[key]))
    end
  end
end

---Names of the state in use. Also checks the values.
function Attributes:slots()
  check_common(self)
  if self.definition.check then self.definition.check(self.values) end
  return self.definition.slots(self.values)
end

function Attributes:zeros(slot, p) return self.definition.zeros and self.definition.zeros(slot, p, self.values) end

---`values`: in a graph, where step and lr are tensors, float64 [], and skip, if there is one, tells whether nothing is
---to be written; else the options themselves.
function Attributes:step(step, params, gradients, state, values)
  self:slots()
  if values then return self.definition.update(values, step, params, gradients, state) end
  native.without_device(self.definition.update, self.values, step, params, gradients, state) -- where parameters are
end

---An operator that updates, some of whose numbers may be tensors of a graph.
function rule.call(name, inputs, attrs)
  local numbers, tensors = {}, {}
  for key, v in pairs(attrs) do
    if native.is_tensor(v) then tensors[key] = v else numbers[key] = v end
  end
  if native.entries.count(tensors, 1) == 0 then return native.call(name, inputs, numbers) end
  local graphs = native.graphs
  local first = graphs.node_count()
  native.call(name, inputs, numbers)
  for key, v in pairs(tensors) do graphs.bind(first, key, v) end
end

function Attributes:describe()
  local parts = {}
  for i, key in ipairs(self.info.names) do parts[i] = ("%s=%s"):format(key, tostring(self.values[key])) end
  return table.concat(parts, ", ")
end

return rule
