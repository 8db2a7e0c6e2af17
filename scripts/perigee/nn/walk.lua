-- SPDX-License-Identifier: Apache-2.0
-- Going through a layer: what its fields hold, in the order of their first assignment. State names count from 0.

local native = require "perigee.native"

local walk = {}

-- What layers that exist hang on: the same even if a script clears package.loaded and this file is read again.
local registry = debug and debug.getregistry and debug.getregistry() or package.loaded
local shared = registry["perigee.layers"] or {
  meta = setmetatable({}, { __name = "perigee.layer" }), parameters = setmetatable({}, { __mode = "k" }),
}
registry["perigee.layers"] = shared

-- The field of every layer that holds its book-keeping.
local META = shared.meta
walk.META = META

-- Tensors that are parameters. Weak: a tensor that nobody holds is none.
local parameters = shared.parameters

function walk.mark_parameter(t) parameters[t] = true end
function walk.is_parameter(t) return parameters[t] == true end
function walk.is_layer(v) return type(v) == "table" and rawget(v, META) ~= nil end

-- Forwards of plugins' layers: they keep neither handle, their input's or their result's, which is always a new one.
local plugin_forwards = setmetatable({}, { __mode = "k" })

function walk.mark_plugin_forward(forward) plugin_forwards[forward] = true end

-- Forwards of layers in Lua that do so too, where the layers in them do: functions that tell.
local own_forwards = setmetatable({}, { __mode = "k" })

function walk.mark_own_forward(forward, inner_keep_nothing) own_forwards[forward] = inner_keep_nothing end

---Whether a call of `layer` shows its input and its result to nobody but the caller.
function walk.keeps_nothing(layer)
  if not walk.is_layer(layer) or layer[META].hooks ~= nil then return false end
  local forward = layer.forward
  if plugin_forwards[forward] then return true end
  local inner_keep_nothing = own_forwards[forward]
  return inner_keep_nothing ~= nil and inner_keep_nothing(layer)
end

---Whether v is a plain list of layers or parameters.
function walk.is_list(v)
  if type(v) ~= "table" or getmetatable(v) ~= nil or v[1] == nil then return false end
  for i = 1, #v do
    if not walk.is_layer(v[i]) and not (native.is_tensor(v[i]) and parameters[v[i]]) then return false end
  end
  return true
end

local function classify(meta, key, v)
  if walk.is_layer(v) then return "layer" end
  if native.is_tensor(v) then
    if parameters[v] then return "parameter" end
    if meta.kinds[key] == "buffer" then return "buffer" end
  end
end

---The layers, parameters and buffers directly in `layer`: list of { name, kind, value }.
function walk.entries(layer)
  local meta, list = layer[META], {}
  if meta.held then require("perigee.nn.positions").settle(layer) end
  for _, key in ipairs(meta.keys) do
    local v = meta.apart and meta.apart[key] or meta.tensors[key] or rawget(layer, key)
    local name = type(key) == "number" and tostring(key - 1) or key
    local kind = classify(meta, key, v)
    if kind then
      list[#list + 1] = { name = name, kind = kind, value = v, key = key }
    elseif walk.is_list(v) then
      for i = 1, #v do
        list[#list + 1] = { name = name .. "." .. (i - 1), kind = classify(meta, key, v[i]), value = v[i], key = key,
                            position = i }
      end
    end
  end
  return list
end

-- Depth first. `open` guards against a layer that contains itself.
local function visit(layer, prefix, list, open)
  if open[layer] then return end
  open[layer] = true
  for _, entry in ipairs(walk.entries(layer)) do
    local name = prefix .. entry.name
    if entry.kind == "layer" then
      visit(entry.value, name .. ".", list, open)
    else
      list[#list + 1] = { name = name, tensor = entry.value, kind = entry.kind, owner = layer }
    end
  end
  open[layer] = nil
end

---{ name, tensor, kind, owner } of every parameter and buffer, in order; shared ones under each of their names. A list,
---since a function that were called for each would become a part of traces, and what it holds with it.
function walk.tensors(layer)
  local list = {}
  visit(layer, "", list, {})
  return list
end

---Names of all parameters and buffers, in order.
function walk.names(layer)
  local names = {}
  for i, entry in ipairs(walk.tensors(layer)) do names[i] = entry.name end
  return names
end

-- Names and tensors of one kind, each tensor once.
local function distinct(layer, wanted)
  local names, tensors, seen = {}, {}, {}
  for _, entry in ipairs(walk.tensors(layer)) do
    local t = entry.tensor
    if entry.kind == wanted and not seen[t] then
      seen[t] = true
      names[#names + 1], tensors[#tensors + 1] = entry.name, t
    end
  end
  return names, tensors
end

---`for name, tensor in`: those of one kind, each once.
function walk.iterate(layer, wanted)
  local names, tensors = distinct(layer, wanted)
  local i = 0
  return function()
    i = i + 1
    return names[i], tensors[i]
  end
end

function walk.parameters(layer)
  local _, list = distinct(layer, "parameter")
  return list
end

---This layer and all inside, each once, outermost first.
function walk.modules(layer)
  local list, seen = {}, {}
  local function add(l)
    if seen[l] then return end
    seen[l] = true
    list[#list + 1] = l
    for _, child in ipairs(walk.children(l)) do add(child) end
  end
  add(layer)
  return list
end

function walk.children(layer)
  local list = {}
  for _, entry in ipairs(walk.entries(layer)) do
    if entry.kind == "layer" then list[#list + 1] = entry.value end
  end
  return list
end

---Raises where a layer, or one of a list of layers, that `layer` is to hold holds it.
function walk.refuse_cycle(layer, value)
  for _, held in ipairs(walk.is_layer(value) and { value } or value) do
    for _, inner in ipairs(walk.modules(held)) do
      if inner == layer then
        native.raise("invalid_argument", getmetatable(layer).__name, inner == held and "a layer cannot hold itself" or
                     ("a layer cannot hold the %s that holds it"):format(getmetatable(held).__name))
      end
    end
  end
end

---Whether some layer inside still waits for its first input.
function walk.is_lazy(layer)
  for _, l in ipairs(walk.modules(layer)) do
    if l[META].lazy then return true end
  end
  return false
end

return walk
