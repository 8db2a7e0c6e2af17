-- SPDX-License-Identifier: Apache-2.0
-- TFRecord files: where their records are, and what is in one. A place is where a record begins.

local framing = require "perigee.events.records"
local reader = require "perigee.data.records.reader"
local example = require "perigee.data.records.example"

local HEAD, TAIL = framing.HEAD, framing.TAIL
local framed = { rules = example.rules }

function framed.describe(at, number) return ("record %d at byte %d"):format(number, at) end

---Whether a file is compressed: by gzip, or by zlib, which its first byte and a sum tell.
function framed.is_packed(file)
  local head = file:read(0, HEAD)
  if #head == HEAD and framing.length_of(head) then return false end
  local first, second = head:byte(1, 2)
  return reader.is_gzip(file) or second ~= nil and first == 0x78 and (first * 256 + second) % 31 == 0
end

-- The data at a position, or nil and what is wrong.
local function data_at(file, at)
  local head = file:read(at, HEAD)
  local length = #head == HEAD and framing.length_of(head)
  if not length then return nil, "wrong checksum of its length" end
  local body = file:read(at + HEAD, length + TAIL)
  if #body < length + TAIL then return nil, "the file ends inside of it" end
  local data = framing.data_of(body, length)
  if not data then return nil, "wrong checksum of its content" end
  return data
end

---Where a file's records are: only their first bytes are read. Behind them: the place of what is damaged, and how.
function framed.index(file)
  local size, list, at = file:size(), {}, 0
  while at < size do
    local head, problem = file:read(at, HEAD), nil
    local length = #head == HEAD and framing.length_of(head)
    if #head < HEAD then
      problem = "the file ends inside of it"
    elseif not length then
      problem = "wrong checksum of its length"
    elseif at + HEAD + length + TAIL > size then
      problem = "the file ends inside of it"
    end
    if problem then return list, at, problem end
    list[#list + 1] = at
    at = at + HEAD + length + TAIL
  end
  return list
end

---The sample at a place, or nil and what is wrong.
function framed.sample(where, file, at, rules)
  local data, problem = data_at(file, at)
  if not data then return nil, problem end
  if not rules then return { data = data } end
  return example.parse(where, data, rules)
end

---What a file ends with, and what a sample is in it.
framed.finish = ""
function framed.bytes(where, sample, i)
  return framing.frame(type(sample) == "string" and sample or example.bytes(where, sample, i))
end

return framed
