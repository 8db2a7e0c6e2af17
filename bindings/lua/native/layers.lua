-- SPDX-License-Identifier: Apache-2.0
-- Layers and optimizers that plugins provide: their attributes in user terms, and the calls that emit them.

local ffi = require "ffi"
local errors = require "perigee.native.errors"
local operators = require "perigee.native.operators"
local origins = require "perigee.native.origins"
local attributes = require "perigee.native.attributes"
local grammar = require "perigee.native.grammar"
local gradients = require "perigee.native.gradients"
local dtypes = require "perigee.native.dtypes"
local json = require("perigee.native.modules").json
local tensor = require "perigee.native.tensor"

local M = {}
local C
local kinds = attributes.kinds
local layers, optimizers = {}, {} -- descriptions by name

local function names_of(list)
  local names = {}
  for i, entry in ipairs(list or {}) do names[i] = type(entry) == "table" and entry.name or entry end
  return names
end

-- A description from its JSON, with what the call grammar needs.
local function describe(name, text, find, where)
  if text == nil then return nil end
  local info = json(ffi.string(text))
  local id = ffi.new("uint32_t[1]")
  if find(name, id) ~= 0 then errors.raise_native(C, where) end
  info.id = id[0]
  info.attributes = info.attributes or info.attrs or {}
  info.visible, info.by_name, info.names = attributes.prepare(info.attributes)
  info.grammar = {}
  for i, attr in ipairs(info.visible) do
    local kind = attr.pair > 0 and "pair" or
                 (attr.kind == kinds.ints or attr.kind == kinds.dims) and "list" or
                 attr.kind == kinds.axes and "axes" or "any"
    info.grammar[i] = { attr.name, kind }
  end
  grammar.index(info.grammar)
  info.slots = names_of(info.slots)
  info.params = names_of(info.params or info.parameters)
  info.inputs, info.outputs = info.inputs or info.input_count, info.outputs or info.output_count
  return info
end

---The description of a plugin's layer, or nil.
function M.layer(name)
  layers[name] = layers[name] or describe(name, C.pgc_layer_json(name), C.pgc_find_layer, name)
  return layers[name]
end

---The description of a plugin's optimizer, or nil.
function M.optimizer(name)
  optimizers[name] = optimizers[name] or describe(name, C.pgc_optimizer_json(name), C.pgc_find_optimizer, name)
  return optimizers[name]
end

function M.layer_names() return json(ffi.string(C.pgc_layer_names_json())) end
function M.optimizer_names() return json(ffi.string(C.pgc_optimizer_names_json())) end

-- ---- attributes, common to both ----

local Attributes = {}

function Attributes.get(self, name)
  local attr = self.info.by_name[name]
  if not attr then
    errors.raise("not_found", self.info.name, ("there is no attribute %q"):format(tostring(name)))
  end
  return attributes.read(attr, self.struct)
end

function Attributes.set(self, name, value)
  local attr = self.info.by_name[name]
  if not attr then
    errors.raise("not_found", self.info.name, ("there is no attribute %q"):format(tostring(name)))
  end
  attributes.write(self.info.name, attr, self.struct, value)
end

local function show(v)
  if type(v) ~= "table" then return tostring(v) end
  local parts = {}
  for i, x in ipairs(v) do parts[i] = show(x) end
  return "{" .. table.concat(parts, ", ") .. "}"
end

local function same_value(attr, a, b)
  local x, y = attributes.read(attr, a), attributes.read(attr, b)
  return show(x) == show(y)
end

---What differs from the defaults, or all, for printing: "in=1, out=32, kernel={3, 3}".
function Attributes.describe(self, all)
  local parts = {}
  for _, attr in ipairs(self.info.visible) do
    local is_known = attr ~= self.unknown -- what the first input says is no size yet
    if is_known and (all or attr.required) or not same_value(attr, self.struct, self.defaults) then
      parts[#parts + 1] = attr.name .. "=" .. show(attributes.read(attr, self.struct))
    end
  end
  return table.concat(parts, ", ")
end

local function new_object(class, info)
  local struct = attributes.new_struct(info.attr_size, info.attributes)
  local defaults = attributes.new_struct(info.attr_size, info.attributes)
  return setmetatable({ info = info, struct = struct, defaults = defaults }, class)
end

local function set_all(self, o)
  for _, attr in ipairs(self.info.visible) do
    local v = o[attr.name]
    if v ~= nil then
      attributes.write(self.info.name, attr, self.struct, v)
    elseif attr.required and attr ~= self.unknown then
      errors.raise("invalid_argument", self.info.name, ("argument %q is missing"):format(attr.name))
    end
  end
end

-- ---- layers ----

local Layer = { __index = setmetatable({}, { __index = Attributes }) }
local layer_methods = Layer.__index

-- nn.Conv2d{1, 32} could mean two things: which argument is missing?
local function raise_incomplete(info, args, inferred)
  local given, named, missing = {}, {}, nil
  for _, a in ipairs(info.visible) do
    if a.required and a ~= inferred then
      named[#named + 1] = ("%s=%s"):format(a.name, tostring(args[#named + 1]))
      missing = a.name
    end
  end
  for i, v in ipairs(args) do given[i] = tostring(v) end
  errors.raise("invalid_argument", info.name, ("argument %q is missing"):format(missing),
               ("nn.%s{%s, %s}; to leave %s to the first input: nn.%s{%s}"):format(info.name, table.concat(given, ", "),
                 missing, inferred.name, info.name, table.concat(named, ", ")))
end

-- With one positional argument, one fewer than the required ones, the inferred attribute is the one left out.
local function leave_out_inferred(info, args, count, named)
  local attr = info.attributes[info.inferred]
  if not attr or (named and named[attr.name] ~= nil) then return args, count end
  local required, position = 0, 1
  for i, a in ipairs(info.visible) do
    if a.required and not (named and named[a.name] ~= nil) then required = required + 1 end
    if a == attr then position = i end
  end
  if count ~= required - 1 then return args, count end
  if count > 1 then raise_incomplete(info, args, attr) end
  local shifted = {}
  for i = 1, count do shifted[i < position and i or i + 1] = args[i] end
  return shifted, count >= position and count + 1 or count, attr
end

---A layer's attributes from a call in the call grammar.
function M.new_layer(name, ...)
  local info = M.layer(name) or errors.raise("not_found", "nn." .. name, "no plugin provides this layer")
  local self = new_object(Layer, info)
  local args, count, named = grammar.split(name, select("#", ...), nil, ...)
  if named then grammar.check_names(name, info.grammar, named) end -- before anything is said to be missing
  args, count, self.unknown = leave_out_inferred(info, args, count, named)
  local o = {}
  grammar.place(name, info.grammar, args, count, o)
  if named then grammar.name_options(name, info.grammar, named, o) end
  set_all(self, o)
  return self
end

function layer_methods.needs_input(self) return self.unknown ~= nil end

local inits = { [0] = "constant", "uniform", "normal" }

---Describes the parameters; `input` fills in what is to be inferred.
function layer_methods.parameters(self, input)
  local info = self.info
  local count = #info.params
  local params = ffi.new("pg_param[?]", math.max(count, 1))
  for i = 0, count - 1 do params[i].size = ffi.sizeof("pg_param") end
  if C.pgc_layer_parameters(info.id, self.struct, input and input.ptr or nil, params) ~= 0 then
    errors.raise_native(C, info.name)
  end
  self.unknown = nil
  local list = {}
  for i = 0, count - 1 do
    local p, shape = params[i], {}
    for k = 1, p.rank do shape[k] = tonumber(p.shape[k - 1]) end
    local dtype = dtypes.by_code[p.dtype ~= 0 and p.dtype or C.pgc_default_dtype()]
    list[i + 1] = { name = info.params[i + 1], shape = shape, dtype = dtype.name, init = inits[p.init],
                    a = p.a, b = p.b, buffer = p.buffer ~= 0, present = p.present ~= 0 }
  end
  return list
end

-- ---- optimizers ----

local Optimizer = { __index = setmetatable({}, { __index = Attributes }) }
local optimizer_methods = Optimizer.__index

---Hyperparameters from a table of options.
function M.new_optimizer(name, options)
  local info = M.optimizer(name) or errors.raise("not_found", "optim." .. name, "no plugin provides this optimizer")
  local self = new_object(Optimizer, info)
  local o = {}
  grammar.name_options(name, info.grammar, options or {}, o)
  set_all(self, o)
  self:slots()
  return self
end

---Names of the state slots that these hyperparameters use. Also checks them.
function optimizer_methods.slots(self)
  local mask = ffi.new("uint64_t[1]")
  if C.pgc_optimizer_slots(self.info.id, self.struct, mask) ~= 0 then errors.raise_native(C, self.info.name) end
  local names = {}
  for i, name in ipairs(self.info.slots) do
    if math.floor(tonumber(mask[0]) / 2 ^ (i - 1)) % 2 == 1 then names[#names + 1] = name end
  end
  return names
end

---One step: updates params and state in place. `state[slot]` is a list beside params.
function optimizer_methods.step(self, step, params, grads, state)
  local info, count, where = self.info, #params, self.info.name
  local param_array = gradients.array(params, count, where)
  local gradient_array = gradients.array(grads, count, where)
  local state_array = ffi.new("pgc_tensor *[?]", math.max(count * #info.slots, 1))
  for s, slot in ipairs(info.slots) do
    local list = state[slot]
    for i = 1, list and count or 0 do
      if list[i] then
        tensor.check_open(list[i], where)
        state_array[(s - 1) * count + i - 1] = list[i].ptr
      end
    end
  end
  local function issue()
    return C.pgc_optimizer_step(info.id, self.struct, step, count, param_array, gradient_array, state_array)
  end
  if origins.on then origins.note() end
  local rc = issue()
  if rc == 10 then
    operators.make_room()
    rc = issue()
  end
  if rc ~= 0 then errors.raise_native(C, where) end
end

function M.start(library) C = library end

return M
