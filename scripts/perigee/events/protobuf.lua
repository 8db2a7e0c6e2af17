-- SPDX-License-Identifier: Apache-2.0
-- Fields of protocol buffers, as bytes and back. A message is the concatenation of its fields; all functions take the
-- field's number first.

local native = require "perigee.native"

local words = native.words
local char, floor = string.char, math.floor

local protobuf = {}

local VARINT, DOUBLE, BYTES, FLOAT = 0, 1, 2, 5 -- kinds on the wire

local function varint(n)
  if n < 128 then return char(n) end
  local parts = {}
  while n >= 128 do
    parts[#parts + 1] = char(n % 128 + 128)
    n = floor(n / 128)
  end
  return table.concat(parts) .. char(n)
end

local function key(field, kind) return varint(field * 8 + kind) end

---A whole number from 0.
function protobuf.int(field, n) return key(field, VARINT) .. varint(n) end
function protobuf.bool(field, v) return key(field, VARINT) .. (v and "\1" or "\0") end
function protobuf.float(field, v) return key(field, FLOAT) .. words.float32(v) end
function protobuf.double(field, v) return key(field, DOUBLE) .. words.float64(v) end
---A string, bytes or a message.
function protobuf.bytes(field, text) return key(field, BYTES) .. varint(#text) .. text end
---A list of numbers, packed.
function protobuf.doubles(field, list) return protobuf.bytes(field, words.float64s(list)) end
function protobuf.floats(field, list) return protobuf.bytes(field, words.float32s(list)) end

-- The number at a position and where it ends; nil where the bytes end before it does.
local function read_varint(text, at)
  local value, scale = 0, 1
  for i = at, at + 9 do
    local byte = text:byte(i)
    if not byte then return nil end
    value, scale = value + byte % 128 * scale, scale * 128
    if byte < 128 then return value, i + 1 end
  end
  return nil
end

---The fields of a message, { number, value } each in order; numbers with and without a point as numbers, others as
---strings. nil where the bytes are no message.
---@param text string
---@return {[1]: integer, [2]: number|string}[]?
function protobuf.fields(text)
  local list, at = {}, 1
  while at <= #text do
    local word, behind = read_varint(text, at)
    if not word then return nil end
    local field, kind, value = floor(word / 8), word % 8, nil
    if kind == VARINT then
      value, at = read_varint(text, behind)
    elseif kind == DOUBLE or kind == FLOAT then
      local size = kind == DOUBLE and 8 or 4
      if behind + size - 1 > #text then return nil end
      value = kind == DOUBLE and words.to_float64(text, behind) or words.to_float32(text, behind)
      at = behind + size
    elseif kind == BYTES then
      local length, from = read_varint(text, behind)
      if not length or from + length - 1 > #text then return nil end
      value, at = text:sub(from, from + length - 1), from + length
    end
    if value == nil then return nil end
    list[#list + 1] = { field, value }
  end
  return list
end

return protobuf
