-- SPDX-License-Identifier: Apache-2.0
-- Which layers are being called, outermost first: what messages name as the place of an error. Read off the stack when
-- something has gone wrong, so that a call costs nothing for it and an error leaves nothing behind.

local native = require "perigee.native"
local kept = rawget(native, "nn.path") -- layers that live on call it after a script has cleared package.loaded
if kept then return kept end

local path = {}

local counted = native.frames.counted

-- The tensors of a graph among a layer's results, computed after what the layer wrote: its statistics are updated in
-- the runs that ask for what it gives.
local function after_writes(written, ...)
  local graphs = native.graphs
  graphs.leave_layer()
  if graphs.written() == written then return ... end
  local results = { n = select("#", ...), ... }
  for i = 1, results.n do
    local v = results[i]
    if native.is_tensor(v) and native.is_graph_tensor(v) then results[i] = graphs.after_writes(v, written) end
  end
  return unpack(results, 1, results.n)
end

-- A profile knows which layer is being called.
local function leave(outer, ok, ...)
  native.origins.leave_layer(outer)
  if not ok then error((...), 0) end
  return ...
end

---Calls a layer's forward, or what computes it and more. Its frame stays on the stack meanwhile: no call is a tail
---call.
function path.call(self, forward, ...)
  local count, result
  if native.graphs.recording then
    native.graphs.enter_layer()
    count, result = counted(after_writes(native.graphs.written(), forward(self, ...)))
  elseif native.origins.in_profile then
    count, result = counted(leave(native.origins.enter_layer(self), pcall(forward, self, ...)))
  else
    count, result = counted(forward(self, ...))
  end
  if count == 1 then return result end
  return unpack(result, 1, count)
end

---The same with one input: see "Code that compiles" in bindings/lua/README.md.
function path.call_one(self, forward, input)
  if native.graphs.recording or native.origins.in_profile then return path.call(self, forward, input) end
  local count, result = counted(forward(self, input))
  if count == 1 then return result end
  return unpack(result, 1, count)
end

-- The functions whose frames, with the layer as their first local, say that it is being called.
path.calls = { [path.call] = true, [path.call_one] = true }

-- The layers whose calls stand on the stack, outermost first.
local function callers()
  local layers, frames = {}, native.frames
  frames.each_frame("f", function(info, thread, level)
    if not path.calls[info.func] then return end
    local layer = frames.first_local(thread, level)
    table.insert(layers, 1, layer)
  end)
  return layers
end

-- "blocks.0" when `child` is a field, an entry or a list entry of `parent`, or of layers in it that are not called
-- themselves, such as an nn.ModuleList.
local function field_of(parent, child)
  local entries = require("perigee.nn.walk").entries(parent)
  for _, entry in ipairs(entries) do
    if entry.value == child then return entry.name end
  end
  for _, entry in ipairs(entries) do
    local inner = entry.kind == "layer" and field_of(entry.value, child)
    if inner then return entry.name .. "." .. inner end
  end
end

local function class_of(layer) return getmetatable(layer).__name end

---The layers in progress as "Net.blocks.0 (Conv2d)", the path alone, "blocks.0", and the layer where it begins; or nil.
function path.text()
  local layers = callers()
  local first, names = #layers, {}
  if first == 0 then return nil end
  while first > 1 do
    local name = field_of(layers[first - 1], layers[first])
    if not name then break end
    table.insert(names, 1, name)
    first = first - 1
  end
  local layer = layers[#layers]
  if #names == 0 then return class_of(layer), nil, layer end
  local joined = table.concat(names, ".")
  return ("%s.%s (%s)"):format(class_of(layers[first]), joined, class_of(layer)), joined, layers[first]
end

---A layer's class, the names of all that it and those in it hold, the tensors, and whether some wait for an input.
function path.tensors(layer)
  local walk = require "perigee.nn.walk"
  local names, tensors = {}, {}
  for i, entry in ipairs(walk.tensors(layer)) do names[i], tensors[i] = entry.name, entry.tensor end
  return class_of(layer), names, tensors, walk.is_lazy(layer)
end

rawset(native, "nn.path", path)
return path
