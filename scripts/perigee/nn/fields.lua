-- SPDX-License-Identifier: Apache-2.0
-- A layer's fields, in the order of their first assignment. Parameters and buffers stand apart from the others, so
-- that an assignment over one is seen: Lua tells only of those to a field that is not there.

local native = require "perigee.native"
local walk = require "perigee.nn.walk"
local positions = require "perigee.nn.positions"

local fields = {}
local META = walk.META

---The book-keeping of a new layer of this class.
function fields.new(class)
  -- keys: fields in order; kinds: "parameter" or "buffer" by name; held: a container's entries; apart: layers under
  -- names of methods.
  return { keys = {}, known = {}, kinds = {}, tensors = {}, held = class.__accept and {} or nil }
end

---What reads a field that does not stand in the layer's own table.
function fields.reader(class)
  return function(self, key)
    local meta = rawget(self, META)
    if meta then
      local t = meta.tensors[key]
      if t then return t end
      local rule = meta.hooks and meta.hooks.computed and meta.hooks.computed[key]
      if rule then return rule.compute(self, false) end
      if meta.held and type(key) ~= "string" then return positions.get(self, key) end
    end
    return class[key]
  end
end

---Refuses a name that would not say which tensor is meant: names in state() are joined by dots.
function fields.check_name(where, name)
  if name ~= "" and not name:find(".", 1, true) then return end
  native.raise("invalid_argument", where, name == "" and "a name must not be empty" or
               ("the name %q must not contain a dot"):format(name), "dots join the names of layers in state()")
end

local function refuse(self, key, kind, value)
  local way = "a buffer may become another tensor"
  if kind == "parameter" then
    way = ("nn.Parameter(t) makes a new one; pg.no_grad(function() layer.%s:copy_(t) end) writes into it"):format(key)
  end
  native.raise("invalid_argument", getmetatable(self).__name, ("%s is a %s and cannot become %s"):format(key, kind,
               native.describe(value)), way)
end

local function refuse_computed(self, meta, key)
  local rule = meta.hooks.computed[key]
  native.raise("failed_precondition", getmetatable(self).__name, ("%s is computed by %s"):format(key, rule.kind),
               ("%s makes it a parameter again"):format(rule.undo or ("nn.utils.remove_%s(layer)"):format(rule.kind)))
end

local function register(meta, key)
  if meta.known[key] then return end
  meta.known[key] = true
  meta.keys[#meta.keys + 1] = key
end

---self[key] = value where nothing stands in the table itself.
function fields.assign(self, key, value)
  local meta = rawget(self, META)
  if not meta then
    native.raise("failed_precondition", "nn", "this is not a layer", "make one by calling its class: Net{...}")
  end
  if type(key) ~= "string" then
    if meta.held then return positions.assign(self, key, value) end
    if value ~= nil and type(key) == "number" then register(meta, key) end
    return rawset(self, key, value)
  end
  if meta.hooks and meta.hooks.computed and meta.hooks.computed[key] then refuse_computed(self, meta, key) end
  local kind, is_tensor = meta.kinds[key], native.is_tensor(value)
  local is_parameter = is_tensor and walk.is_parameter(value)
  local is_layer = not is_tensor and walk.is_layer(value)
  local is_list = not is_layer and walk.is_list(value)
  if is_parameter or is_layer or is_list then fields.check_name(getmetatable(self).__name, key) end
  if is_layer or is_list then walk.refuse_cycle(self, value) end
  if kind and value ~= nil and not is_parameter and not is_layer and not (is_tensor and kind == "buffer") then
    refuse(self, key, kind, value)
  end
  if value ~= nil then register(meta, key) end
  if is_parameter then
    meta.kinds[key], meta.tensors[key] = "parameter", value
  elseif kind and not is_layer then
    meta.tensors[key] = value
  else
    meta.kinds[key], meta.tensors[key] = nil, nil
    rawset(self, key, value)
  end
end

---Whether reading self[name] gives something of every such layer, so that no field can have this name.
function fields.is_reserved(self, name) return name == "training" or getmetatable(self)[name] ~= nil end

---Registers a layer under a name that is_reserved: it is found by entries and in state(), self[name] stays what it is.
function fields.add_apart(self, name, layer)
  local meta = rawget(self, META)
  walk.refuse_cycle(self, layer)
  meta.apart = meta.apart or {}
  meta.apart[name] = layer
  register(meta, name)
end

---Registers a buffer; a plain field of that name gives way to it.
function fields.add_buffer(self, name, tensor)
  local meta = self[META]
  fields.check_name("buffer", name)
  if meta.kinds[name] == "parameter" then
    native.raise("invalid_argument", "buffer", ("%s is a parameter already"):format(name))
  end
  rawset(self, name, nil)
  meta.kinds[name] = "buffer"
  self[name] = tensor
end

---Another name for a parameter, at its place in the order, which optimizers' state goes by.
function fields.rename(self, old, new)
  local meta = self[META]
  for i, key in ipairs(meta.keys) do
    if key == old then meta.keys[i] = new end
  end
  meta.known[old], meta.known[new] = nil, true
  meta.kinds[old], meta.kinds[new] = nil, meta.kinds[old]
  meta.tensors[old], meta.tensors[new] = nil, meta.tensors[old]
end

---Takes a parameter or buffer out. Answers it.
function fields.take(self, name)
  local meta = self[META]
  local t = meta.tensors[name]
  meta.tensors[name], meta.kinds[name], meta.known[name] = nil, nil, nil
  for i, key in ipairs(meta.keys) do
    if key == name then
      table.remove(meta.keys, i)
      break
    end
  end
  return t
end

return fields
