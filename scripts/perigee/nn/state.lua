-- SPDX-License-Identifier: Apache-2.0
-- A layer's tensors by name: saving, loading, moving, copying.

local native = require "perigee.native"
local walk = require "perigee.nn.walk"
local positions = require "perigee.nn.positions"
local hooks = require "perigee.nn.hooks"
local initialise = require "perigee.nn.initialise"
local loading = require "perigee.nn.loading"
local partial = require "perigee.nn.partial"

local state = {}
local formats = require "perigee.native.formats"
local META = walk.META

-- Parts would pass for whole ones where they are loaded.
local function refuse_part(where, name, t)
  if not partial.of(t) then return end
  native.raise("failed_precondition", where, ("%s is the part of a parameter %s that this process holds"):format(name,
               tostring(native.shape(partial.whole_shape(t)))), "pg.dist.whole_state(model) brings parts together")
end

---Parameters and buffers by name, without history, sharing the layer's memory.
---@return table<string, perigee.Tensor>
function state.state(self)
  local tensors = {}
  for _, entry in ipairs(walk.tensors(self)) do refuse_part("state", entry.name, entry.tensor) end
  for _, entry in ipairs(walk.tensors(self)) do tensors[entry.name] = entry.tensor:detach() end
  return tensors
end

---Copies tensors in by name. All names and shapes are checked before anything is changed. Of a tensor that has several
---names here (tied weights) one is enough; where there are more they must say the same. strict=false: names may be
---missing or left over. strip_prefix="model." is taken off the names that begin so, add_prefix put in front of all.
---@param given table<string, perigee.Tensor> by name, as state() or pg.load give them
---@param options? {strict?: boolean, strip_prefix?: string, add_prefix?: string}
---@return string[] missing, string[] unexpected
function state.load_state(self, given, options)
  options = loading.read_options(options)
  if type(given) ~= "table" then
    native.raise("invalid_argument", "load_state", "needs a table of tensors, got " .. native.describe(given))
  end
  local names = {}
  for name in pairs(given) do names[#names + 1] = name end
  local plan = loading.plan(self, names, options)
  loading.copy(plan, given)
  return plan.missing, plan.unexpected
end

-- A layer's own copy, as it is to lie; nil where it lies so.
local function arranged(t, format)
  if not (formats.rank(format) == nil or #t.shape == formats.rank(format)) or formats.lies_in(t, format) then return end
  return formats.arrange("to", t, format)
end

-- Parameters and buffers with as many axes as the format has.
local function arrange(t, format)
  local made = arranged(t:detach(), format)
  if not made then return end
  local gradient = t.grad
  if gradient then native.set_grad(t, nil) end
  native.assign(t, made)
  if gradient then native.set_grad(t, arranged(gradient:detach(), format) or gradient) end
end

local function move(t, device, dtype)
  local floating = t.dtype:find("float", 1, true) ~= nil
  local moved = t:detach()
  if device and t:numel() == 0 then -- made anew: there is nothing to copy
    moved = require("perigee").device(device, initialise.empty, t.dtype)
  elseif device then
    moved = moved:to(device)
  end
  if dtype and floating then moved = moved:to(dtype) end
  if moved.device == t.device and moved.dtype == t.dtype then return end
  local gradient = t.grad
  if gradient then native.set_grad(t, nil) end
  native.assign(t, moved)
  if gradient then
    gradient = gradient:detach():to(t.device):to(t.dtype)
    native.set_grad(t, gradient)
  end
end

-- What `to` was given, a device or a floating dtype: its description, or nil for a device. Looked at before anything
-- moves, and where a layer holds nothing, too.
local function read_target(name)
  if type(name) ~= "string" then
    native.raise("invalid_argument", "to", "needs a device or a dtype, got " .. native.describe(name))
  end
  local dtypes = native.dtypes
  local meant = dtypes.by_name[name] or not name:find("%d:") and dtypes.by_name[dtypes.meant(name) or ""]
  if not meant then
    native.find_device(name, "to")
    return nil
  end
  if not meant.floating then
    native.raise("invalid_argument", "to", "a layer's dtype must be a floating one, got " .. name)
  end
  return dtypes.find(name, "to")
end

local read_options = native.signature("to", {
  { "device", "device" }, { "dtype", "dtype" }, { "memory_format", "string", named = true, choices = formats.ALL } })

-- What is asked for: names of devices and dtypes, and a memory format.
local function read_targets(target, second)
  if type(target) ~= "table" or second ~= nil then
    if second == nil and formats.is_name(target) then
      native.raise("invalid_argument", "to", ("%q is a memory format"):format(target),
                   ("model:to{memory_format=%q}"):format(target))
    end
    return { target, second }
  end
  if type(target[1]) == "string" and native.has_entries(target, 1) then return target end
  local o = read_options(target)
  local targets = { o.device }
  targets[#targets + 1] = o.dtype
  if #targets == 0 and not o.memory_format then
    native.raise("invalid_argument", "to", "needs a device, a dtype or a memory_format, got nothing")
  end
  return targets, o.memory_format ~= "preserve" and o.memory_format or nil
end

---Moves parameters and buffers in place: optimizers and averages that hold them keep working, and take their own state
---along. A dtype applies to floating tensors, a memory format to those with as many axes as it is for:
---`model:to{memory_format="channels_last"}`.
---@param target string|{device?: string, dtype?: string, memory_format?: string} a device or a dtype
---@param second? string
---@return perigee.Layer
function state.to(self, target, second)
  partial.refuse_dropped(self, "to")
  local targets, format = read_targets(target, second)
  require("perigee").no_grad(function()
    local wanted = {}
    for i = 1, #targets do wanted[i] = read_target(targets[i]) or false end
    for i, name in ipairs(targets) do
      local dtype = wanted[i]
      if not dtype then -- layers that were on another one
        for _, layer in ipairs(walk.modules(self)) do hooks.set_device(layer, nil) end
      end
      local seen = {}
      for _, entry in ipairs(walk.tensors(self)) do
        local t = entry.tensor
        if not seen[t] then
          seen[t] = true
          move(t, not dtype and name or nil, dtype and dtype.name or nil)
        end
      end
    end
    for _, entry in ipairs(format and walk.tensors(self) or {}) do arrange(entry.tensor, format) end
  end)
  return self
end

---Moves the layer to a device and keeps it there: calls bring their inputs along, and what forward makes is made there.
---A model whose layers are on several devices computes on one after the other, backward too, and its results are where
---its last layer is. model:to(device) brings all of it together again.
---@param device string
---@return perigee.Layer
function state.on(self, device)
  local number = native.find_device(device, "on")
  state.to(self, native.device_name(number))
  hooks.set_device(self, number)
  return self
end

local function clone_tensor(t)
  local copy = t:detach():clone()
  if walk.is_parameter(t) then
    copy.requires_grad = t.requires_grad
    walk.mark_parameter(copy)
    if partial.of(t) then partial.mark(copy, partial.of(t)) end
  end
  return copy
end

-- A size that still waits for the first input is left out again.
local function copy_attributes(attributes)
  local info, options = attributes.info, {}
  for _, attr in ipairs(info.visible) do options[attr.name] = attributes:get(attr.name) end
  if attributes:needs_input() then options[info.attributes[info.inferred].name] = nil end
  return native.new_layer(info.name, options)
end

-- Deep for layers, plain tables, parameters and buffers; everything else is shared. `memo` keeps shared things shared.
local function clone_value(v, memo, is_buffer)
  if native.is_tensor(v) then
    if not is_buffer and not walk.is_parameter(v) then return v end
    memo[v] = memo[v] or clone_tensor(v)
    return memo[v]
  end
  if type(v) ~= "table" then return v end
  if memo[v] then return memo[v] end
  if not walk.is_layer(v) and getmetatable(v) ~= nil then return v end
  local copy = {}
  memo[v] = copy
  local meta = rawget(v, META)
  if meta and meta.held then positions.settle(v) end
  for key, value in pairs(v) do
    if key ~= META then copy[key] = clone_value(value, memo) end
  end
  if meta then
    local own = {}
    for key, value in pairs(meta) do own[key] = value end
    own.hooks, own.params = hooks.of_clone(meta), {}
    own.keys, own.known, own.kinds, own.tensors = {}, {}, {}, {}
    for i, key in ipairs(meta.keys) do own.keys[i], own.known[key] = key, true end
    for key, kind in pairs(meta.kinds) do own.kinds[key] = kind end
    for key, t in pairs(meta.tensors) do own.tensors[key] = clone_value(t, memo, meta.kinds[key] == "buffer") end
    if meta.held then own.held = { unpack(copy) } end
    if meta.apart then own.apart = clone_value(meta.apart, memo) end
    if meta.attributes then
      own.attributes = copy_attributes(meta.attributes)
      own.attributes.tensors = own.tensors
    end
    copy[META] = own
  end
  return setmetatable(copy, getmetatable(v))
end

---A copy with parameters and buffers of its own. Hooks stay behind.
---@return perigee.Layer
function state.clone(self)
  partial.refuse_dropped(self, "clone")
  return require("perigee").no_grad(clone_value, self, {}, false)
end

return state
