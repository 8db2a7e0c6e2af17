-- SPDX-License-Identifier: Apache-2.0
-- tf.train.Example: named lists of whole numbers, of floats or of byte strings. Example has Features as 1, Features a
-- map as 1 (entries of a name, 1, and a Feature, 2), Feature one of three lists: bytes 1, float 2, int64 3.

local native = require "perigee.native"
local protobuf = require "perigee.events.protobuf"

local words = native.words
local example = {}

local VARINT, DOUBLE, BYTES, FLOAT = 0, 1, 2, 5 -- kinds on the wire
local KINDS = { "bytes", "float32", "int64" }
local FIELDS = { bytes = 1, float32 = 2, int64 = 3 }
local floor = math.floor

-- A length or a field's number, and where it ends; nil where there is none in front of `stop`.
local function varint(text, at, stop)
  local value, scale = 0, 1
  for i = at, math.min(at + 9, stop) do
    local byte = text:byte(i)
    value, scale = value + byte % 128 * scale, scale * 128
    if byte < 128 then return value, i + 1 end
  end
  return nil
end

-- The field at a position: its number, its kind, its first and its last byte, and where the next begins.
local function field_at(text, at, stop)
  local word, first = varint(text, at, stop)
  if not word then return nil end
  local kind, last = word % 8, nil
  if kind == BYTES then
    local length
    length, first = varint(text, first, stop)
    last = length and first + length - 1
  elseif kind == VARINT then
    local _, behind = varint(text, first, stop)
    last = behind and behind - 1
  elseif kind == DOUBLE or kind == FLOAT then
    last = first + (kind == DOUBLE and 7 or 3)
  end
  if not last or last > stop then return nil end
  return floor(word / 8), kind, first, last, last + 1
end

-- Calls see(number, kind, first, last) for the fields of a message; false where the bytes are none.
local function each_field(text, at, stop, see)
  while at <= stop do
    local number, kind, first, last, behind = field_at(text, at, stop)
    if not number or see(number, kind, first, last) == false then return false end
    at = behind
  end
  return true
end

-- Appends the numbers of one field of an Int64List, packed or single.
local function int64s(text, first, last, values)
  local n = #values
  while first <= last do
    n = n + 1
    values[n], first = words.varint_at(text, first, last)
    if not first then return false end
  end
end

local function values_of(text, from, to, kind)
  local values = {}
  local whole = each_field(text, from, to, function(number, wire, first, last)
    if number ~= 1 then return end
    if kind == "bytes" then
      if wire ~= BYTES then return false end
      values[#values + 1] = text:sub(first, last)
    elseif kind == "int64" then
      if wire ~= VARINT and wire ~= BYTES then return false end
      return int64s(text, first, last, values)
    else -- as the bytes they are
      if wire ~= FLOAT and wire ~= BYTES or (last - first + 1) % 4 > 0 then return false end
      values[#values + 1] = text:sub(first, last)
    end
  end)
  return whole and values or nil
end

-- Where the features' lists are: name -> { kind, first, last }. nil where the bytes are no Example.
local function survey(text)
  local found = {}
  local function feature(name, first, last)
    return each_field(text, first, last, function(number, kind, from, to)
      if KINDS[number] and kind ~= BYTES then return false end
      if KINDS[number] then found[name] = { KINDS[number], from, to } end
    end)
  end
  local function entry(number, kind, first, last)
    if number ~= 1 then return end
    local name, from, to = "", nil, nil
    local whole = kind == BYTES and each_field(text, first, last, function(part, wire, a, b)
      if part > 2 then return end
      if wire ~= BYTES then return false end
      if part == 1 then name = text:sub(a, b) else from, to = a, b end
    end)
    return whole and (not from or feature(name, from, to))
  end
  local whole = each_field(text, 1, #text, function(number, kind, first, last)
    if number == 1 then return kind == BYTES and each_field(text, first, last, entry) end
  end)
  return whole and found or nil
end

local function count_of(shape)
  local count = 1
  for _, n in ipairs(shape) do count = count * n end
  return count
end

local function refuse(where, text, hint) native.raise("invalid_argument", where, text, hint) end

local function list_of(rule, value, where, name)
  local list = type(value) == "table" and value or { value }
  for i, v in ipairs(list) do
    local fits = type(v) == (rule.dtype == "bytes" and "string" or "number")
    if not fits or rule.dtype == "int64" and v % 1 ~= 0 then
      refuse(where, ("spec.%s: default %d must be of dtype %s, got %s"):format(name, i, rule.dtype, native.describe(v)))
    end
  end
  return list
end

---Checks a spec: name -> dtype, or { dtype, shape=, default= }.
---@param where string
---@param spec table
function example.rules(where, spec)
  local rules = {}
  for name, given in pairs(spec) do
    local row = type(given) == "string" and { given } or given
    local what = ("spec.%s"):format(tostring(name))
    if type(name) ~= "string" or not native.is_plain(row) then
      refuse(where, what .. " must be a dtype or a table, got " .. native.describe(given),
             "spec={ label=\"int64\", image={\"float32\", shape={28, 28}} }")
    end
    for key in pairs(row) do
      if key ~= 1 and key ~= "shape" and key ~= "default" then
        refuse(where, ("%s has an unknown option %q"):format(what, tostring(key)), "shape and default are known")
      end
    end
    local rule = { dtype = row[1] == "float" and "float32" or row[1], shape = row.shape or {} }
    if not FIELDS[rule.dtype] then
      refuse(where, ("%s must have dtype int64, float32 or bytes, got %s"):format(what, native.describe(row[1])))
    end
    if rule.shape == "any" then
      rule.any = true
    elseif not native.is_plain(rule.shape) then
      refuse(where, ("%s: shape must be a list or \"any\", got %s"):format(what, native.describe(rule.shape)))
    else
      for i, n in ipairs(rule.shape) do
        if type(n) ~= "number" or n % 1 ~= 0 or n < 0 then
          refuse(where, ("%s: shape[%d] must be a count, got %s"):format(what, i, native.describe(n)))
        end
      end
      if #rule.shape > (rule.dtype == "bytes" and 1 or 8) then
        refuse(where, ("%s: %d axes are too many for %s"):format(what, #rule.shape, rule.dtype))
      end
      rule.count = count_of(rule.shape)
    end
    if row.default ~= nil then
      rule.default = list_of(rule, row.default, where, name)
      if not rule.any and type(row.default) == "table" and #rule.default ~= rule.count then
        refuse(where, ("%s: default has %d values, expected %d"):format(what, #rule.default, rule.count))
      end
      for i = #rule.default + 1, rule.any and 0 or rule.count do rule.default[i] = rule.default[1] end
    end
    rules[name] = rule
  end
  return rules
end

local function make(rule, values, where)
  if rule.dtype == "bytes" then
    if rule.any or #rule.shape == 1 then return { unpack(values) } end
    return values[1]
  end
  local dtype = native.dtypes.by_name[rule.dtype]
  local bytes
  if rule.dtype == "int64" then
    bytes = words.int64s(values)
  else -- of a file as they stand there, of a default as numbers
    bytes = type(values[1]) == "number" and words.float32s(values) or table.concat(values)
  end
  return native.host.from_bytes(where, bytes, dtype, rule.any and { #bytes / dtype.bytes } or rule.shape)
end

---The fields of an Example; nil and what is wrong with it.
---@param where string
---@param text string
---@param rules table of example.rules
---@return table? fields
---@return string? problem
function example.parse(where, text, rules)
  local found, sample = survey(text), {}
  if not found then return nil, "it is no tf.train.Example" end
  for name, rule in pairs(rules) do
    local feature = found[name]
    if not feature then
      if not rule.default then
        return nil, rule.any and ("it has no field %q"):format(name) or
                    ("it has no field %q, and spec.%s no default"):format(name, name)
      end
      sample[name] = make(rule, rule.default, where)
    else
      if feature[1] ~= rule.dtype then
        return nil, ("field %q is %s, expected %s"):format(name, feature[1], rule.dtype)
      end
      local values = values_of(text, feature[2], feature[3], feature[1])
      if not values then return nil, ("field %q is damaged"):format(name) end
      local count = #values
      if rule.dtype == "float32" then count = #table.concat(values) / 4 end
      if not rule.any and count ~= rule.count then
        if count > 0 or not rule.default then
          return nil, ("field %q has %d values, expected %d"):format(name, count, rule.count)
        end
        values = rule.default
      end
      sample[name] = make(rule, values, where)
    end
  end
  return sample
end

-- The Feature of a value: a tensor, a string, or a list of strings. nil where it is none.
local function feature_of(where, value)
  if type(value) == "string" then value = { value } end
  if native.is_tensor(value) then
    local whole = not native.dtypes.by_name[value.dtype].floating
    local bytes = native.host.bytes(value:to { dtype = whole and "int64" or "float32", device = "cpu" }, where)
    if not whole then return protobuf.bytes(FIELDS.float32, protobuf.bytes(1, bytes)) end
    return protobuf.bytes(FIELDS.int64, protobuf.bytes(1, words.varints(bytes)))
  end
  if not native.is_plain(value) then return nil end
  local parts = {}
  for i, text in ipairs(value) do
    if type(text) ~= "string" then return nil end
    parts[i] = protobuf.bytes(1, text)
  end
  if next(value) ~= nil and #parts == 0 then return nil end
  return protobuf.bytes(FIELDS.bytes, table.concat(parts))
end

---A table of fields as an Example, fields in the order of their names.
---@param where string
---@param sample table
---@param number integer which, from 1, for messages
---@return string
function example.bytes(where, sample, number)
  local names, parts = {}, {}
  for name in pairs(sample) do
    if type(name) ~= "string" then
      refuse(where, ("sample %d must have names, got field %s"):format(number, native.describe(name)))
    end
    names[#names + 1] = name
  end
  table.sort(names)
  for i, name in ipairs(names) do
    local feature = feature_of(where, sample[name])
    if not feature then
      refuse(where, ("%s of sample %d must be a tensor, a string or a list of strings, got %s"):format(name, number,
             native.describe(sample[name])), type(sample[name]) == "number" and
             "pg.tensor(v, {dtype=\"int64\"}) says what kind of number it is" or nil)
    end
    parts[i] = protobuf.bytes(1, protobuf.bytes(1, name) .. protobuf.bytes(2, feature))
  end
  return protobuf.bytes(1, table.concat(parts))
end

return example
