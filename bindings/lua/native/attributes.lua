-- SPDX-License-Identifier: Apache-2.0
-- Attributes between Lua and the packed struct of an operator, layer or optimizer. Positions and axes count from 1 on
-- the Lua side and from 0 in the struct.

local ffi = require "ffi"
local errors = require "perigee.native.errors"
local dtypes = require "perigee.native.dtypes"
local sizes = require "perigee.native.size"
local choice = require "perigee.native.choice"

local M = {}
jit.off(true, true) -- walks option tables with next, which cannot be compiled; attempts at it thrash

-- PG_ATTR_*
local BOOL, INT, FLOAT, DTYPE, CHOICE, AXIS, INTS, AXES, DIMS, DEVICE = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
local SCALAR, NUMBER, TEXT, TEXTS, TENSOR, TENSORS = 11, 12, 13, 14, 15, 16
M.kinds = { bool = BOOL, int = INT, float = FLOAT, dtype = DTYPE, choice = CHOICE, axis = AXIS, ints = INTS,
            axes = AXES, dims = DIMS, device = DEVICE, scalar = SCALAR, number = NUMBER, texts = TEXTS,
            tensor = TENSOR, tensors = TENSORS }
M.RUNTIME, M.REQUIRED, M.PAIR, M.INTERNAL = 1, 2, 4, 8

local MAX_RANK = 8
local int32_p, uint32_p = ffi.typeof("int32_t *"), ffi.typeof("uint32_t *")
local int64_p, double_p, ints_p = ffi.typeof("int64_t *"), ffi.typeof("double *"), ffi.typeof("pg_ints *")

local text_p = ffi.typeof("const char **")
local number_p, int64, uint64 = ffi.typeof("pg_number *"), ffi.typeof("int64_t"), ffi.typeof("uint64_t")
local istype = ffi.istype
local NUMBER_INT = 2 -- PG_SCALAR_INT

local find_device -- set by start: name -> number

local function reject(where, attr, expected, got)
  errors.raise("invalid_argument", where, ("%s must be %s, got %s"):format(attr.shown, expected, errors.describe(got)))
end

local function whole(where, attr, v, expected)
  if type(v) == "number" then
    if v ~= math.floor(v) or v ~= v or v >= 2 ^ 63 or v < -2 ^ 63 then
      reject(where, attr, expected or "a whole number", v)
    end
    return v
  end
  if ffi.istype("int64_t", v) or ffi.istype("uint64_t", v) then return v end
  reject(where, attr, expected or "a whole number", v)
end

---Whether v is a whole number of LuaJIT's own types, 5LL or 5ULL, that an int64 holds.
function M.is_whole(v) return istype(int64, v) or istype(uint64, v) and v < 2ULL ^ 63 end

---Writes a number of Lua's, or a whole one of LuaJIT's, to a pg_number. False for what is none.
function M.put_number(target, v)
  local number = ffi.cast(number_p, target)
  if type(v) == "number" then
    number.real, number.imaginary, number.integer, number.kind = v, 0, 0, 0
  elseif M.is_whole(v) then
    number.real, number.imaginary, number.integer, number.kind = tonumber(v), 0, v, NUMBER_INT
  else
    return false
  end
  return true
end

local function axis(where, attr, v)
  v = whole(where, attr, v)
  if v == 0 then
    errors.raise("invalid_argument", where, ("%s is 0, but axes count from 1"):format(attr.shown),
                 "the first axis is 1, the last -1")
  end
  return v > 0 and v - 1 or v
end

local function dimension(where, attr, v)
  if type(v) == "string" then
    v = sizes.named(v) or reject(where, attr, "a size or the name of a symbolic dimension", v)
  end
  if sizes.is(v) then return v.dimension end
  return whole(where, attr, v, "a list of whole numbers")
end

-- The length of a list; holes and stray keys raise.
local function list_length(where, attr, v)
  local n, highest = 0, 0
  for k in pairs(v) do
    if type(k) ~= "number" then reject(where, attr, "a list of numbers", v) end
    n = n + 1
    if k > highest then highest = k end
  end
  if n ~= highest then
    errors.raise("invalid_argument", where,
                 ("%s has a hole: %d entries up to position %d"):format(attr.shown, n, highest))
  end
  if n > MAX_RANK then
    errors.raise("invalid_argument", where,
                 ("%s has %d entries; at most %d dimensions"):format(attr.shown, n, MAX_RANK))
  end
  return n
end

local function write_list(where, attr, base, v, element)
  local target = ffi.cast(ints_p, base + attr.offset)
  if type(v) == "table" then
    local n = list_length(where, attr, v)
    target.count = n
    for i = 1, n do target.value[i - 1] = element(where, attr, v[i]) end
  elseif attr.pair > 0 then
    v = element(where, attr, v)
    target.count = attr.pair
    for i = 0, attr.pair - 1 do target.value[i] = v end
  else
    target.count = 1
    target.value[0] = element(where, attr, v)
  end
end

local write = {
  [BOOL] = function(where, attr, base, v)
    if type(v) ~= "boolean" then reject(where, attr, "true or false", v) end
    ffi.cast(int32_p, base + attr.offset)[0] = v and 1 or 0
  end,
  [INT] = function(where, attr, base, v) ffi.cast(int64_p, base + attr.offset)[0] = whole(where, attr, v) end,
  [FLOAT] = function(where, attr, base, v)
    if type(v) ~= "number" then reject(where, attr, "a number", v) end
    ffi.cast(double_p, base + attr.offset)[0] = v
  end,
  [NUMBER] = function(where, attr, base, v)
    if not M.put_number(base + attr.offset, v) then reject(where, attr, "a number", v) end
  end,
  [DTYPE] = function(where, attr, base, v)
    ffi.cast(uint32_p, base + attr.offset)[0] = dtypes.find(v, where).code
  end,
  [CHOICE] = function(where, attr, base, v)
    local index = type(v) == "string" and attr.choice_index[v]
    if not index then choice.refuse(where, attr.shown, attr.choices, v) end
    ffi.cast(int32_p, base + attr.offset)[0] = index
  end,
  -- The string must live as long as the struct.
  [TEXT] = function(where, attr, base, v)
    if type(v) ~= "string" then reject(where, attr, "a string", v) end
    if v:find("%z") then errors.raise("invalid_argument", where, attr.shown .. " has a byte 0 in it") end
    ffi.cast(text_p, base + attr.offset)[0] = v
  end,
  [AXIS] = function(where, attr, base, v) ffi.cast(int64_p, base + attr.offset)[0] = axis(where, attr, v) end,
  [INTS] = function(where, attr, base, v) write_list(where, attr, base, v, whole) end,
  [AXES] = function(where, attr, base, v) write_list(where, attr, base, v, axis) end,
  [DIMS] = function(where, attr, base, v) write_list(where, attr, base, v, dimension) end,
  [DEVICE] = function(where, attr, base, v) ffi.cast(int32_p, base + attr.offset)[0] = find_device(v, where) end,
}

local function read_list(attr, base, element)
  local source, list = ffi.cast(ints_p, base + attr.offset), {}
  for i = 1, tonumber(source.count) do list[i] = element(tonumber(source.value[i - 1])) end
  return list
end

local function same(v) return v end
local function from_axis(v) return v >= 0 and v + 1 or v end

local read = {
  [BOOL] = function(attr, base) return ffi.cast(int32_p, base + attr.offset)[0] ~= 0 end,
  [INT] = function(attr, base) return tonumber(ffi.cast(int64_p, base + attr.offset)[0]) end,
  [FLOAT] = function(attr, base) return tonumber(ffi.cast(double_p, base + attr.offset)[0]) end,
  [NUMBER] = function(attr, base)
    local number = ffi.cast(number_p, base + attr.offset)
    if number.kind == NUMBER_INT and math.abs(number.real) >= 2 ^ 53 then return number.integer + 0LL end
    return number.real
  end,
  [DTYPE] = function(attr, base)
    local dtype = dtypes.by_code[ffi.cast(uint32_p, base + attr.offset)[0]]
    return dtype and dtype.name
  end,
  [CHOICE] = function(attr, base) return attr.choices[ffi.cast(int32_p, base + attr.offset)[0] + 1] end,
  [AXIS] = function(attr, base) return from_axis(tonumber(ffi.cast(int64_p, base + attr.offset)[0])) end,
  [INTS] = function(attr, base) return read_list(attr, base, same) end,
  [AXES] = function(attr, base) return read_list(attr, base, from_axis) end,
  [DIMS] = function(attr, base) return read_list(attr, base, same) end,
  [DEVICE] = function(attr, base) return ffi.cast(int32_p, base + attr.offset)[0] end,
}

local default_number = { inf = math.huge, ["-inf"] = -math.huge, nan = 0 / 0 }

-- Writes a default, which is in the terms of the C side.
local function write_default(attr, base)
  local v, kind = attr.default, attr.kind
  if v == nil then return end
  local at = base + attr.offset
  if kind == BOOL then ffi.cast(int32_p, at)[0] = (v == true or v == 1) and 1 or 0
  elseif kind == INT or kind == AXIS then ffi.cast(int64_p, at)[0] = v
  elseif kind == FLOAT or kind == NUMBER then ffi.cast(double_p, at)[0] = default_number[v] or v
  elseif kind == DTYPE then ffi.cast(uint32_p, at)[0] = dtypes.by_name[v] and dtypes.by_name[v].code or v
  elseif kind == CHOICE then ffi.cast(int32_p, at)[0] = attr.choice_index[v] or v
  elseif kind == DEVICE then ffi.cast(int32_p, at)[0] = v
  elseif kind == TEXT then ffi.cast(text_p, at)[0] = v
  elseif kind == INTS or kind == AXES or kind == DIMS then
    local target = ffi.cast(ints_p, at)
    target.count = #v
    for i = 1, #v do target.value[i - 1] = v[i] end
  end
end

---Prepares the attribute list of a description that came as JSON. `inputs`: what else the caller gives by name.
function M.prepare(list, inputs)
  local by_name, names, visible, taken = {}, {}, {}, {}
  for _, attr in ipairs(list) do taken[attr.name] = true end
  for _, input in ipairs(inputs or {}) do taken[input.name] = true end
  local pair = 2 -- what an empty default wants: as many numbers as the list before it
  for _, attr in ipairs(list) do
    attr.internal = math.floor(attr.flags / M.INTERNAL) % 2 == 1
    attr.required = math.floor(attr.flags / M.REQUIRED) % 2 == 1
    attr.pair = 0
    -- What users call it: a list of axes is `axis` too, unless something else is.
    attr.shown = attr.kind == AXES and attr.name == "axes" and not taken.axis and "axis" or attr.name
    if math.floor(attr.flags / M.PAIR) % 2 == 1 then
      attr.pair = type(attr.default) == "table" and #attr.default > 0 and #attr.default or pair
      pair = attr.pair
    end
    attr.choice_index = {}
    for i, name in ipairs(attr.choices or {}) do attr.choice_index[name] = i - 1 end
    if not attr.internal and attr.kind ~= SCALAR then
      visible[#visible + 1], names[#names + 1] = attr, attr.name
      by_name[attr.name] = attr
    end
  end
  return visible, by_name, names
end

---Writes one attribute given in user terms; raises.
function M.write(where, attr, base, value) write[attr.kind](where, attr, base, value) end

---Reads one attribute in user terms.
function M.read(attr, base) return read[attr.kind](attr, base) end

---A new struct with the defaults of `list`.
function M.new_struct(size, list)
  local struct = ffi.new("uint8_t[?]", math.max(size, 8))
  for _, attr in ipairs(list) do write_default(attr, struct) end
  return struct
end

function M.start(device_finder) find_device = device_finder end

return M
