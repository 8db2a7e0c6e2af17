-- SPDX-License-Identifier: Apache-2.0
-- Hooks on layers: functions that a layer's call runs before and after forward, and that a backward pass runs where it
-- enters the layer, at its outputs, and leaves it, at its inputs. Both places are nodes of the tape of Lua's own.

local native = require "perigee.native"
local walk = require "perigee.nn.walk"
local path = require "perigee.nn.path"

local hooks = {}
local META = walk.META

local EVENTS = { "forward_pre", "forward", "backward_pre", "backward" }
local known = {}
for _, event in ipairs(EVENTS) do known[event] = true end

local function pack(...) return { n = select("#", ...), ... } end

-- A list that a call goes through is never changed: one with a hook more, or less, takes its place.
local function with(list, hook)
  local new = {}
  for i, h in ipairs(list or {}) do new[i] = h end
  new[#new + 1] = hook
  return new
end

local function without(list, hook)
  local new = {}
  for _, h in ipairs(list or {}) do
    if h ~= hook then new[#new + 1] = h end
  end
  return #new > 0 and new or nil
end

---Adds a hook. Answers what takes it away.
function hooks.add(self, event, fn)
  if not known[event] then
    local near = type(event) == "string" and native.suggest(event, EVENTS)
    native.raise("invalid_argument", "hook", ("unknown event %s"):format(type(event) == "string" and
                 ("%q"):format(event) or native.describe(event)), (near and ("did you mean %q? "):format(near) or "") ..
                 "events are \"" .. table.concat(EVENTS, "\", \"") .. "\"")
  end
  local meta, hook = self[META], { fn = fn, event = event, line = native.script_line() }
  meta.hooks = meta.hooks or {}
  meta.hooks[event] = with(meta.hooks[event], hook)
  return { remove = function()
    hook.removed = true
    if not meta.hooks then return end
    meta.hooks[event] = without(meta.hooks[event], hook)
    if next(meta.hooks) == nil then meta.hooks = nil end
  end }
end

-- Puts what a hook returned in the places of what it was shown.
local function replace(list, changed)
  for i = 1, changed.n do
    if changed[i] ~= nil then list[i] = changed[i] end
  end
  list.n = math.max(list.n, changed.n)
end

-- ---- backward ----

-- What a hook made of gradients: as many values as places, or one list of them.
local function changed_gradients(list, ...)
  local first = ...
  if select("#", ...) == 1 and native.is_plain(first) then
    local n = list.n
    for key in pairs(first) do
      if type(key) == "number" then n = math.max(n, key) end
    end
    return { n = n, unpack(first, 1, n) }
  end
  return pack(...)
end

local function raise_returned(self, hook, problem)
  native.raise("invalid_argument", getmetatable(self).__name, ("the %s hook%s returned %s"):format(
                 hook.event, hook.line and " set at " .. hook.line or "", problem))
end

local function text_of(kind) return ("%s %s on %s"):format(kind.dtype, tostring(kind.shape), kind.device) end

local function check_gradient(self, hook, i, gradient, kind)
  if not kind then raise_returned(self, hook, ("a gradient at place %d, where there is none"):format(i)) end
  if not native.is_tensor(gradient) then
    raise_returned(self, hook, ("%s at place %d; expected a tensor or nil"):format(native.describe(gradient), i))
  end
  if native.tensor.shapes_differ(gradient.shape, kind.shape) or gradient.dtype ~= kind.dtype or
    gradient.device ~= kind.device then
    raise_returned(self, hook, ("%s at place %d; expected %s"):format(text_of(gradient), i, text_of(kind)))
  end
end

-- Shows gradients to the hooks of an event, each what the one before made of them. `kinds[i]`: what gradient i is like,
-- nil where there cannot be one.
local function show(self, event, list, kinds, ...)
  local set = self[META].hooks
  for _, hook in ipairs(set and set[event] or {}) do
    if not hook.removed then
      local shown = { n = list.n, unpack(list, 1, list.n) }
      local changed = changed_gradients(list, hook.fn(self, shown, ...))
      for i = 1, changed.n do
        if changed[i] ~= nil then
          check_gradient(self, hook, i, changed[i], kinds[i])
          list[i] = changed[i]
        end
      end
    end
  end
  return list
end

-- The tensors of a list that need gradients; and their places, with what they are like.
local function needing(list)
  local tensors, found = {}, { places = {}, kinds = {}, n = list.n }
  for i = 1, list.n do
    local v = list[i]
    if native.is_tensor(v) and v.requires_grad then
      tensors[#tensors + 1], found.places[#found.places + 1] = v, i
      found.kinds[i] = { shape = v.shape, dtype = v.dtype, device = v.device }
    end
  end
  return tensors, found
end

local function by_place(found, cotangents)
  local list = { n = found.n }
  for k, place in ipairs(found.places) do list[place] = cotangents[k] or nil end
  return list
end

local function by_tensor(found, list)
  local gradients = {}
  for k, place in ipairs(found.places) do gradients[k] = list[place] or false end
  return gradients
end

-- The values again, those that need gradients through a node at which a backward pass calls answer(gradients). What
-- that holds lives as long as the node: no tensor.
local function through(list, tensors, found, answer)
  local made = native.custom.record(tensors, tensors, function(pass)
    return by_tensor(found, answer(by_place(found, pass.cotangents)))
  end)
  local new = { n = list.n, unpack(list, 1, list.n) }
  for k, place in ipairs(found.places) do new[place] = made[k] end
  return new, made
end

-- The inputs as forward gets them, and what makes of its outputs what the layer gives.
local function watch(self, inputs)
  local tensors, given = needing(inputs)
  local leaves = #tensors > 0 -- a pass may leave the layer at an input
  local passing -- gradients of the outputs, from where a pass enters to where it leaves
  local made, versions = {}, {}
  if leaves then
    inputs, made = through(inputs, tensors, given, function(gradients)
      local grad_outputs = passing or { n = 0 }
      passing = nil
      return show(self, "backward", gradients, given.kinds, grad_outputs)
    end)
    for k, t in ipairs(made) do versions[k] = native.version_of(t) end
  end

  local function enter(gradients, kinds)
    gradients = show(self, "backward_pre", gradients, kinds)
    passing = { n = gradients.n, unpack(gradients, 1, gradients.n) }
    if not leaves then
      show(self, "backward", { n = given.n }, {}, passing)
      passing = nil
    end
    return gradients
  end

  return inputs, function(outputs)
    for k, t in ipairs(made) do
      if native.version_of(t) ~= versions[k] then
        native.raise("failed_precondition", getmetatable(self).__name,
                     ("its forward wrote into input %d, which backward hooks do not allow"):format(given.places[k]),
                     "write into a :clone() instead")
      end
    end
    local results, found = needing(outputs)
    if #results == 0 then return outputs end
    return (through(outputs, results, found, function(gradients) return enter(gradients, found.kinds) end))
  end
end

-- ---- parameters that are computed ----

---What computes the layer's parameter of this name at every call, or nil.
function hooks.computed(self, name)
  local set = self[META].hooks
  return set and set.computed and set.computed[name]
end

---From now on rule.compute(layer, called) makes that parameter, `called` being true in calls of the layer; nil: nothing
---does. What a rule holds is of the kind, not of the layer: clones share it. rule.undo: the call that messages name.
function hooks.set_computed(self, name, rule)
  local meta, computed = self[META], {}
  for key, r in pairs(meta.hooks and meta.hooks.computed or {}) do computed[key] = r end
  computed[name] = rule
  meta.hooks = meta.hooks or {}
  meta.hooks.computed = next(computed) ~= nil and computed or nil
  if next(meta.hooks) == nil then meta.hooks = nil end
end

---The hooks of a clone: only what its parameters need, and where it is.
function hooks.of_clone(meta)
  local set = meta.hooks
  return set and (set.computed or set.on) and { computed = set.computed, on = set.on } or nil
end

-- ---- layers that are on a device of their own ----

---From now on calls of the layer bring their inputs to a device (its number); nil: they do not.
function hooks.set_device(self, number)
  local meta = self[META]
  if number == nil and not meta.hooks then return end
  meta.hooks = meta.hooks or {}
  meta.hooks.on = number
  if next(meta.hooks) == nil then meta.hooks = nil end
end

-- Tensors of a graph are brought where they are needed when it runs.
local function moved(v, device)
  if native.is_tensor(v) then return native.is_graph_tensor(v) and v or v:to(device) end
  if not native.is_plain(v) then return v end
  local copy = {}
  for key, field in pairs(v) do copy[key] = moved(field, device) end
  return copy
end

local function move_inputs(inputs, number)
  local device = native.device_name(number)
  for i = 1, inputs.n do inputs[i] = moved(inputs[i], device) end
end

-- Names in an order that is the same in every process: rules may ask other processes.
local function names_of(computed)
  local names = {}
  for name in pairs(computed) do names[#names + 1] = name end
  if #names > 1 then table.sort(names) end
  return names
end

local function put_back(tensors, old, computed, ok, ...)
  for name in pairs(old) do
    tensors[name] = old[name] or nil
    if computed[name].done then computed[name].done() end -- the call is over
  end
  if not ok then error((...), 0) end
  return ...
end

---fn() is called where a backward pass comes to an output of the layer's call.
function hooks.set_entered(self, fn)
  local meta = self[META]
  meta.hooks = meta.hooks or {}
  meta.hooks.entered = fn
end

-- The outputs, behind a node that tells.
local function watch_outputs(outputs, entered)
  local results, found = needing(outputs)
  if #results == 0 then return outputs end
  return (through(outputs, results, found, function(gradients)
    entered()
    return gradients
  end))
end

-- forward with parameters that are computed for this call.
local function forward_computed(self, computed, ...)
  local tensors, old = self[META].tensors, {}
  local ok, err = pcall(function()
    for _, name in ipairs(names_of(computed)) do
      local made = computed[name].compute(self, true)
      old[name] = tensors[name] or false
      tensors[name] = made
    end
  end)
  if not ok then return put_back(tensors, old, computed, false, err) end
  return put_back(tensors, old, computed, pcall(path.call, self, self.forward, ...))
end

local forward
function forward(self, set, ...)
  if set.on then
    local on = set.on
    local function enter() return native.set_device(on) end
    return native.with(enter, native.set_device, function(...)
      return forward(self, { computed = set.computed }, ...)
    end, ...)
  end
  if set.computed then return forward_computed(self, set.computed, ...) end
  return path.call(self, self.forward, ...)
end

-- ---- a call ----

---layer(...) of a layer that has hooks.
function hooks.call(self, set, ...)
  local inputs = pack(...)
  if set.on then move_inputs(inputs, set.on) end
  for _, hook in ipairs(set.forward_pre or {}) do replace(inputs, pack(hook.fn(self, inputs))) end
  local leave
  if (set.backward or set.backward_pre) and native.grad_enabled() then inputs, leave = watch(self, inputs) end
  local outputs = pack(forward(self, set, unpack(inputs, 1, inputs.n)))
  if set.entered and native.grad_enabled() then outputs = watch_outputs(outputs, set.entered) end
  for _, hook in ipairs(set.forward or {}) do
    replace(outputs, pack(hook.fn(self, inputs, unpack(outputs, 1, outputs.n))))
  end
  if leave then outputs = leave(outputs) end
  return unpack(outputs, 1, outputs.n)
end

return hooks
