-- SPDX-License-Identifier: Apache-2.0
-- Numbers as the bytes of files, the least byte first, and the checksum of records.

local bit = require "bit"
local ffi = require "ffi"

local band, bnot, bor, bxor = bit.band, bit.bnot, bit.bor, bit.bxor
local lshift, rshift, tobit = bit.lshift, bit.rshift, bit.tobit

local M = {}
local single, double = ffi.new("float[1]"), ffi.new("double[1]")
local halves = ffi.cast("int32_t *", double)
local whole = ffi.new("uint32_t[1]")

function M.float32(v)
  single[0] = v
  return ffi.string(single, 4)
end

function M.float64(v)
  double[0] = v
  return ffi.string(double, 8)
end

---@param v number of which the 32 lowest bits are taken
function M.uint32(v)
  whole[0] = v % 2 ^ 32
  return ffi.string(whole, 4)
end

---A list of numbers as elements of float64.
function M.float64s(list)
  local buffer = ffi.new("double[?]", math.max(#list, 1), list)
  return ffi.string(buffer, #list * 8)
end

---A list of numbers as elements of float32.
function M.float32s(list)
  local buffer = ffi.new("float[?]", math.max(#list, 1), list)
  return ffi.string(buffer, #list * 4)
end

---A list of whole numbers, of 64 bits or Lua's, as elements of int64.
function M.int64s(list)
  local buffer = ffi.new("int64_t[?]", math.max(#list, 1), list)
  return ffi.string(buffer, #list * 8)
end

---Elements of int64 as varints, the lowest 7 bits first; negative ones take ten bytes.
---@param elements string their bytes
---@return string
function M.varints(elements)
  local values, parts = ffi.cast("const uint64_t *", elements), {}
  for i = 0, #elements / 8 - 1 do
    local value = values[i]
    while value >= 128 do
      parts[#parts + 1] = string.char(tonumber(value % 128) + 128)
      value = value / 128
    end
    parts[#parts + 1] = string.char(tonumber(value))
  end
  return table.concat(parts)
end

-- Numbers in texts begin at position `at`, counted from 1; the caller has seen that they are whole. A NaN that is not
-- LuaJIT's own (host.lua says why) becomes the usual one.

function M.to_uint32(text, at)
  local a, b, c, d = text:byte(at, at + 3)
  return a + b * 2 ^ 8 + c * 2 ^ 16 + d * 2 ^ 24
end

function M.to_float32(text, at)
  ffi.copy(single, text:sub(at, at + 3), 4)
  if band(ffi.cast("int32_t *", single)[0], 0x7fffffff) > 0x7f800000 then return 0 / 0 end
  return tonumber(single[0])
end

function M.to_float64(text, at)
  ffi.copy(double, text:sub(at, at + 7), 8)
  local high = band(halves[1], 0x7fffffff)
  if high > 0x7ff00000 or high == 0x7ff00000 and halves[0] ~= 0 then return 0 / 0 end
  return tonumber(double[0])
end

-- CRC-32C (Castagnoli), reflected.
local table_of = ffi.new("int32_t[256]")
for i = 0, 255 do
  local c = i
  for _ = 1, 8 do
    local half = rshift(c, 1)
    c = band(c, 1) ~= 0 and bxor(half, 0x82F63B78) or half
  end
  table_of[i] = c
end

---@param text string
---@return integer checksum as a number from 0
function M.crc32c(text)
  local bytes, c = ffi.cast("const uint8_t *", text), -1
  for i = 0, #text - 1 do c = bxor(table_of[band(bxor(c, bytes[i]), 255)], rshift(c, 8)) end
  return bnot(c) % 2 ^ 32
end

---The checksum as TFRecord files have it: turned, and moved, so that what holds checksums can have one itself.
function M.masked_crc32c(text)
  local c = M.crc32c(text)
  return tobit(bor(rshift(c, 15), lshift(c, 17)) + 0xa282ead8) % 2 ^ 32
end

return M
