-- SPDX-License-Identifier: Apache-2.0
-- tf.train.Example: named lists of whole numbers, of floats or of byte strings. Example has Features as 1, Features a
-- map as 1 (entries of a name, 1, and a Feature, 2), Feature one of three lists: bytes 1, float 2, int64 3.

local native = require "perigee.native"
local protobuf = require "perigee.events.protobuf"

local words = native.words
local example = {}

local FIELDS = { bytes = 1, float32 = 2, int64 = 3 }

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

-- The texts one behind the other, and where each ends, as tensors.
local function text_tensors(where, list)
  local ends, at = {}, 0
  for i, text in ipairs(list) do
    at = at + #text
    ends[i] = at
  end
  local by_name = native.dtypes.by_name
  return native.host.from_bytes(where, table.concat(list), by_name.uint8, { at }),
         native.host.from_bytes(where, words.int64s(ends), by_name.int64, { #ends })
end

---What the source of records takes of a spec.
---@param where string
---@param spec? table
function example.options(where, spec)
  local own = { fields = {}, types = {}, shapes = {}, defaults = {}, default_ends = {}, raw = not spec }
  local rules, names = example.rules(where, spec or {}), {}
  for name in pairs(rules) do names[#names + 1] = name end
  table.sort(names)
  for i, name in ipairs(names) do
    local rule = rules[name]
    own.fields[i], own.types[i] = name, rule.dtype
    own.shapes[i] = rule.any and "any" or table.concat(rule.shape, ",")
    if rule.default and rule.dtype == "bytes" then
      own.defaults[name], own.default_ends[name] = text_tensors(where, rule.default)
    elseif rule.default then
      local bytes = rule.dtype == "int64" and words.int64s(rule.default) or words.float32s(rule.default)
      own.defaults[name] = native.host.from_bytes(where, bytes, native.dtypes.by_name[rule.dtype], { #rule.default })
    end
  end
  return own
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
