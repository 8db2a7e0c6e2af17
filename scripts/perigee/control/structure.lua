-- SPDX-License-Identifier: Apache-2.0
-- Structures of tensors: one tensor, or a table of structures by position or name. Branches and bodies take and answer
-- such values; control flow works on their leaves, in an order of its own.

local native = require "perigee.native"
local pg = require "perigee"
local tensor = native.tensor

local structure = {}

local LEAF = { leaf = true }

-- Positions before names, each in order.
local function before(a, b)
  if type(a) ~= type(b) then return type(a) == "number" end
  return a < b
end

local function sorted_keys(where, what, t)
  local keys, positions = {}, 0
  for key in pairs(t) do
    if type(key) == "number" then
      positions = positions + 1
    elseif type(key) ~= "string" then
      native.raise("invalid_argument", where, ("%s has the key %s; expected names and positions"):format(
                     what, native.describe(key)))
    end
    keys[#keys + 1] = key
  end
  if positions ~= #t then native.raise("invalid_argument", where, what .. " has a hole") end
  table.sort(keys, before)
  return keys
end

local function place(what, key) return what .. (type(key) == "number" and "[%d]" or ".%s"):format(key) end

local function take(where, what, v, leaves, names, like)
  if native.is_tensor(v) then
    tensor.check_open(v, where)
  elseif type(v) == "number" or type(v) == "boolean" then
    local kind = like and like[#leaves + 1]
    v = pg.tensor(v, kind and { dtype = kind.dtype, device = kind.device } or nil)
  elseif type(v) ~= "table" or getmetatable(v) ~= nil then
    native.raise("invalid_argument", where, ("%s is %s; expected a tensor, or a table of tensors"):format(
                   what, native.describe(v)))
  else
    local spec = { keys = sorted_keys(where, what, v) }
    for i, key in ipairs(spec.keys) do spec[i] = take(where, place(what, key), v[key], leaves, names, like) end
    return spec
  end
  leaves[#leaves + 1], names[#names + 1] = v, what
  return LEAF
end

---The leaves of a structure and what it is made of, which `build` takes. Numbers and booleans become tensors, of the
---dtype and device of the leaf of `like` (a list of tensors) that stands in their place.
---@param where string what messages begin with
---@param what string what they call the structure
---@param v any
---@param like? perigee.Tensor[]
---@return perigee.Tensor[] leaves
---@return table spec
---@return string[] names what messages call each leaf
function structure.flatten(where, what, v, like)
  if native.is_tensor(v) then
    tensor.check_open(v, where)
    return { v }, LEAF, { what }
  end
  local leaves, names = {}, {}
  return leaves, take(where, what, v, leaves, names, like), names
end

local function build(spec, leaves, at)
  if spec.leaf then return leaves[at], at + 1 end
  local t = {}
  for i, key in ipairs(spec.keys) do t[key], at = build(spec[i], leaves, at) end
  return t, at
end

---The structure again, of other leaves.
function structure.build(spec, leaves) return (build(spec, leaves, 1)) end

local function same(a, b)
  if a == b then return true end
  if a.leaf or b.leaf or #a ~= #b then return false end
  for i, key in ipairs(a.keys) do
    if b.keys[i] ~= key or not same(a[i], b[i]) then return false end
  end
  return true
end

-- "{c, h}", "{tensor, tensor}"
local function text(spec)
  if spec.leaf then return "tensor" end
  local parts = {}
  for i, key in ipairs(spec.keys) do
    parts[i] = type(key) == "number" and text(spec[i]) or spec[i].leaf and key or key .. "=" .. text(spec[i])
  end
  return "{" .. table.concat(parts, ", ") .. "}"
end

---Raises unless two structures are the same; `what` is the one that was given.
function structure.check_same(where, what, given, wanted)
  if same(given, wanted) then return end
  native.raise("invalid_argument", where, ("%s is %s; expected %s"):format(what, text(given), text(wanted)))
end

local function kind_of(t) return ("%s %s"):format(t.dtype, tostring(t.shape)) end

---Raises unless each leaf has the dtype and sizes of that in its place; sizes of a graph may turn out to be equal.
function structure.check_kinds(where, names, given, wanted, hint)
  for i, t in ipairs(wanted) do
    local x = given[i]
    local fits = tensor.dtype(x) == tensor.dtype(t) and
                 (tensor.same_sizes(x, t) or not tensor.shapes_differ(x.shape, t.shape))
    if not fits then
      native.raise("invalid_argument", where, ("%s is %s; expected %s"):format(names[i], kind_of(x), kind_of(t)), hint)
    end
  end
end

---fn(...) as a structure's leaves, spec and names.
---@param like? perigee.Tensor[]
function structure.call(where, what, like, fn, ...)
  local function read(...)
    local n = select("#", ...)
    if n ~= 1 then
      local got = n == 0 and "nothing; expected a tensor or a table of them" or n .. " values; expected one"
      native.raise("invalid_argument", where, what .. " returned " .. got, n > 0 and "return a list: {a, b}" or nil)
    end
    return structure.flatten(where, "what " .. what .. " returned", (...), like)
  end
  return read(fn(...))
end

---Raises unless v can be called.
function structure.check_callable(where, what, v)
  local meta = getmetatable(v)
  if type(v) == "function" or type(meta) == "table" and meta.__call then return end
  native.raise("invalid_argument", where, ("%s must be a function, got %s"):format(what, native.describe(v)))
end

---Whether any of these tensors is one of a graph, or operators are being recorded anyway.
function structure.is_recorded(...)
  if native.graphs.recording then return true end
  for i = 1, select("#", ...) do
    for _, t in ipairs((select(i, ...))) do
      if native.is_graph_tensor(t) then return true end
    end
  end
  return false
end

return structure
