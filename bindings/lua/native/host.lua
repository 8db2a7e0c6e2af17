-- SPDX-License-Identifier: Apache-2.0
-- Between Lua's numbers and tensors: nested tables in, nested tables and numbers out.

local ffi = require "ffi"
local band = require("bit").band
local errors = require "perigee.native.errors"
local handles = require "perigee.native.handles"
local operators = require "perigee.native.operators"
local dtypes = require "perigee.native.dtypes"
local tensor = require "perigee.native.tensor"

local M = {}
local pointer = handles.pointer
local C
local out = ffi.new("pgc_tensor *[1]")
local int32_p = ffi.typeof("int32_t *")
local MAX_RANK = 8

local function is_number(v)
  return type(v) == "number" or ffi.istype("int64_t", v) or ffi.istype("uint64_t", v)
end

-- "[2][1]" for an error about an element.
local function place(path, depth)
  local parts = {}
  for i = 1, depth do parts[i] = "[" .. path[i] .. "]" end
  return table.concat(parts)
end

-- The shape that the first elements give.
local function survey(where, data)
  local shape, v = {}, data
  while type(v) == "table" do
    if #shape == MAX_RANK then
      errors.raise("invalid_argument", where, ("tables are nested deeper than %d dimensions"):format(MAX_RANK))
    end
    shape[#shape + 1] = #v
    if #v == 0 then break end
    v = v[1]
  end
  return shape
end

-- Elements in row-major order; answers the list, its length and whether all are booleans.
local function flatten(where, data, shape)
  local list, n, booleans, path, rank = {}, 0, 0, {}, #shape
  local function ragged(depth, got)
    local at = depth == 1 and "the outermost list" or "the list at " .. place(path, depth - 1)
    errors.raise("invalid_argument", where, ("the data is ragged: %s has %s, expected %d entries"):format(
                   at, got, shape[depth]))
  end
  local function walk(v, depth)
    if depth > rank then
      if type(v) == "boolean" then booleans = booleans + 1
      elseif not is_number(v) then
        errors.raise("invalid_argument", where,
                     ("data%s must be a number or a boolean, got %s"):format(place(path, rank), errors.describe(v)),
                     handles.is_tensor(v) and "pg.stack joins tensors" or nil)
      end
      n = n + 1
      list[n] = v
      return
    end
    if type(v) ~= "table" then
      errors.raise("invalid_argument", where, ("the data is ragged: expected a list at %s, got %s"):format(
                     place(path, depth - 1), errors.describe(v)))
    end
    local count, highest = 0, 0
    for k in pairs(v) do
      if type(k) ~= "number" then
        errors.raise("invalid_argument", where,
                     ("data%s has an entry named %q"):format(place(path, depth - 1), tostring(k)))
      end
      count = count + 1
      if k > highest then highest = k end
    end
    if highest ~= count then
      errors.raise("invalid_argument", where, ("data%s has a hole: %d entries up to position %d"):format(
                     place(path, depth - 1), count, highest))
    end
    if count ~= shape[depth] then ragged(depth, count) end
    for i = 1, count do
      path[depth] = i
      walk(v[i], depth + 1)
    end
  end
  walk(data, 1)
  if booleans > 0 and booleans < n then
    errors.raise("invalid_argument", where, "numbers and booleans are mixed in the data")
  end
  return list, n, booleans > 0
end

local function fill(where, buffer, list, n, dtype)
  if dtype.boolean then
    for i = 1, n do
      local v = list[i]
      buffer[i - 1] = (v == true or (v ~= false and v ~= 0)) and 1 or 0
    end
    return
  end
  for i = 1, n do
    local v = list[i]
    if v == true then v = 1 elseif v == false then v = 0 end
    if dtype.integer and type(v) == "number" and v ~= math.floor(v) then
      errors.raise("invalid_argument", where, ("%s cannot hold %s"):format(dtype.name, tostring(v)),
                   "give a float dtype")
    end
    if dtype.integer then dtypes.check_number(where, v, dtype) end
    buffer[i - 1] = v
  end
end

-- The length of a list of nothing but numbers, as most are; nil: the other way finds out what it is.
local function plain_length(data)
  local n, count = #data, 0
  for _ in pairs(data) do count = count + 1 end
  if count ~= n or n == 0 then return nil end
  for i = 1, n do
    if type(data[i]) ~= "number" then return nil end
  end
  return n
end

local flat = ffi.new("int64_t[8]")

---A tensor of nested lists, a number or a boolean. dtype and device (a number) may be nil.
function M.from_lua(where, data, dtype, device)
  local list, n, boolean, rank, dims = data, type(data) == "table" and plain_length(data), false, 1, flat
  if n then
    flat[0] = n
  else
    local shape = survey(where, data)
    list, n, boolean = flatten(where, data, shape)
    rank, dims = #shape, ffi.new("int64_t[8]", shape)
  end
  if not dtype then
    dtype = boolean and dtypes.by_name.bool or dtypes.by_code[C.pgc_default_dtype()]
  end
  local host = dtype.direct and dtype or dtypes.by_name[dtype.complex and "float64" or "float32"]
  local buffer = host.array(math.max(n, 1))
  fill(where, buffer, list, n, host)
  local rc = C.pgc_from_host(host.code, rank, dims, buffer, device or -1, out)
  if rc == 10 then
    operators.make_room()
    rc = C.pgc_from_host(host.code, rank, dims, buffer, device or -1, out)
  end
  if rc ~= 0 then errors.raise_native(C, where) end
  local t = handles.wrap(out[0])
  if host ~= dtype then t = operators.call("cast", { t }, { dtype = dtype.name }) end
  return t
end

---A tensor of raw bytes in host memory order (files, tests). `bytes` is a string.
function M.from_bytes(where, bytes, dtype, shape, device)
  local count = 1
  for i = 1, #shape do count = count * shape[i] end
  if #bytes ~= count * dtype.bytes then
    errors.raise("invalid_argument", where, ("%d bytes for %d elements of %s"):format(#bytes, count, dtype.name))
  end
  local rc = C.pgc_from_host(dtype.code, #shape, ffi.new("int64_t[8]", shape), bytes, device or -1, out)
  if rc ~= 0 then errors.raise_native(C, where) end
  return handles.wrap(out[0])
end

-- LuaJIT keeps the types of values in the bits of NaN, and takes a float that it loads for a number as it is: a NaN
-- that is not its own (of a file, of a kernel) would be nil, a table, anything. So each NaN becomes the usual one
-- beforehand, seen by its bits: `words` are the elements as whole numbers of 32 bits, of float64 the high word is the
-- second.
local function tame_nans(words, n, wide)
  if not wide then
    for i = 0, n - 1 do
      if band(words[i], 0x7fffffff) > 0x7f800000 then words[i] = 0x7fc00000 end
    end
    return
  end
  for i = 1, 2 * n - 1, 2 do
    local high = band(words[i], 0x7fffffff)
    if high > 0x7ff00000 or (high == 0x7ff00000 and words[i - 1] ~= 0) then
      words[i], words[i - 1] = 0x7ff80000, 0
    end
  end
end

---Raises where t is a tensor of a graph: `where` needs to know what it holds.
function M.need_contents(where, t, hint)
  if C.pgc_is_graph_tensor(pointer(t, where)) == 0 then return end
  errors.raise("failed_precondition", where, "the tensor is one of a graph and has no contents before the graph runs",
               hint or "fetch it with session:run, or make it outside of pg.graph")
end

-- The elements in host memory, row-major: a C array, their number and their dtype.
local function fetch(where, t, single)
  M.need_contents(where, t)
  local dtype = tensor.dtype(t)
  if dtype.complex then errors.raise("not_supported", where, dtype.name .. " has no form in Lua numbers yet") end
  if not dtype.direct then
    t = operators.call("cast", { t }, { dtype = "float32" })
    dtype = dtypes.by_name.float32
  end
  local n = single and 1 or M.numel(t)
  local buffer = single and dtype.single or dtype.array(math.max(n, 1))
  if C.pgc_to_host(t.ptr, buffer, n * dtype.bytes) ~= 0 then errors.raise_native(C, where) end
  if dtype.floating then tame_nans(ffi.cast(int32_p, buffer), n, dtype.bytes == 8) end
  return buffer, n, dtype
end

-- Of a tensor of a graph with sizes that only a run tells.
local function symbolic_numel(t, rank)
  local n = 1
  for axis = 1, rank do n = n * tensor.size(t, axis) end
  return n
end

---How many elements there are.
---@return integer|perigee.Size
function M.numel(t)
  local d, n = C.pgc_describe(pointer(t, "numel")), 1
  for i = 0, d.rank - 1 do
    if d.shape[i] < 0 then return symbolic_numel(t, d.rank) end
    n = n * tonumber(d.shape[i])
  end
  return n
end

local function to_number(where, v, dtype)
  if dtype.boolean then return v ~= 0 end
  local number = tonumber(v)
  if dtype.name == "int64" and ffi.cast("int64_t", number) ~= v then
    errors.raise("invalid_argument", where, ("%s does not fit a Lua number"):format(tostring(v)),
                 "t:item_int64() gives a 64-bit integer")
  end
  return number
end

---The elements as one flat Lua list, and the list's length.
function M.flat(t, where)
  local buffer, n, dtype = fetch(where or "totable", t)
  local list = {}
  for i = 1, n do list[i] = to_number(where or "totable", buffer[i - 1], dtype) end
  return list, n
end

---The elements of an integer or bool tensor as text, exactly.
function M.flat_text(t)
  local buffer, n, dtype = fetch("tostring", t)
  local list = {}
  for i = 1, n do
    local v = buffer[i - 1]
    if dtype.boolean then list[i] = v ~= 0 and "true" or "false"
    else list[i] = (tostring(v):gsub("U?LL$", "")) end
  end
  return list
end

---The elements as a string of bytes, row-major.
function M.bytes(t, where)
  M.need_contents(where or "bytes", t)
  local dtype = tensor.dtype(t)
  local size = M.numel(t) * dtype.bytes
  local buffer = ffi.new("uint8_t[?]", math.max(size, 1))
  if C.pgc_to_host(t.ptr, buffer, size) ~= 0 then errors.raise_native(C, where or "bytes") end
  return ffi.string(buffer, size)
end

local function only_element(t, where)
  M.need_contents(where, t)
  local n = M.numel(t)
  if n ~= 1 then
    errors.raise("invalid_argument", where, ("needs one element, got a tensor %s with %d"):format(tostring(t.shape), n))
  end
  return fetch(where, t, true)
end

local NO_NUMBER = "pg.cond and pg.while_loop do what a tensor decides; or fetch it with session:run"

function M.item(t)
  M.need_contents("item", t, NO_NUMBER)
  local buffer, _, dtype = only_element(t, "item")
  return to_number("item", buffer[0], dtype)
end

function M.item_int64(t)
  local buffer, _, dtype = only_element(t, "item_int64")
  if not dtype.integer then
    errors.raise("invalid_argument", "item_int64", "needs an integer tensor, got " .. dtype.name)
  end
  return ffi.new("int64_t", buffer[0])
end

function M.start(library) C = library end

return M
