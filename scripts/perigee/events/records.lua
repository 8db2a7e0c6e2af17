-- SPDX-License-Identifier: Apache-2.0
-- Records of TFRecord files: length (8 bytes), its checksum (4), the data, their checksum (4).

local native = require "perigee.native"

local words = native.words

local records = {}

local HEAD, TAIL = 12, 4
local LARGEST = 2 ^ 31 -- bytes: a length beyond this is damage, not a record

---@param data string
---@return string record
function records.frame(data)
  local length = words.uint32(#data) .. "\0\0\0\0"
  return length .. words.uint32(words.masked_crc32c(length)) .. data .. words.uint32(words.masked_crc32c(data))
end

records.HEAD, records.TAIL = HEAD, TAIL

---What a record's first 12 bytes say its data's length is; nil where they are damaged.
---@param head string
---@return integer?
function records.length_of(head)
  local length = words.to_uint32(head, 1) + words.to_uint32(head, 5) * 2 ^ 32
  if words.masked_crc32c(head:sub(1, 8)) ~= words.to_uint32(head, 9) or length > LARGEST then return nil end
  return length
end

---The data of what stands behind the first 12 bytes; nil where it is not what was written.
---@param body string data and their checksum
---@param length integer
---@return string?
function records.data_of(body, length)
  local data = body:sub(1, length)
  return words.masked_crc32c(data) == words.to_uint32(body, length + 1) and data or nil
end

---@class perigee.events.Reader
---@field at integer bytes in front of the next record
local Reader = {}
Reader.__index = Reader

---Reads a file's records; what others add to it meanwhile is found by the next calls.
---@param path string
---@return perigee.events.Reader? reader nil: there is no such file
---@return string? problem
function records.open(path)
  local file, problem = io.open(path, "rb")
  if not file then return nil, problem end
  return setmetatable({ path = path, file = file, at = 0 }, Reader)
end

---The next record. nil where none is whole yet: at the end of the file, or where its last record is torn. After damage,
---which is told once, nothing more of a file can be trusted.
---@return string? data
---@return string? damage
function Reader:next()
  if self.damaged or not self.file then return nil end
  self.file:seek("set", self.at)
  local head = self.file:read(HEAD)
  if not head or #head < HEAD then return nil end
  local length = records.length_of(head)
  local damage
  if not length then
    damage = "length"
  else
    local body = self.file:read(length + TAIL)
    if not body or #body < length + TAIL then return nil end
    local data = records.data_of(body, length)
    if data then
      self.at = self.at + HEAD + length + TAIL
      return data
    end
    damage = "content"
  end
  self.damaged = true
  return nil, ("%s: the record at byte %d is damaged: wrong checksum of its %s"):format(self.path, self.at, damage)
end

function Reader:close()
  if self.file then self.file:close() end
  self.file = nil
end

return records
