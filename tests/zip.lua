-- SPDX-License-Identifier: Apache-2.0
-- Zip archives, byte by byte, so that tests can write wrong ones. Members are stored unless they say otherwise.

local bit = require "bit"

local zip = {}

---@return string n as `count` bytes, little end first
function zip.little(n, count)
  local text = ""
  for _ = 1, count do
    text = text .. string.char(n % 256)
    n = math.floor(n / 256)
  end
  return text
end
local little = zip.little

function zip.crc(text)
  local crc = -1
  for i = 1, #text do
    crc = bit.bxor(crc, text:byte(i))
    for _ = 1, 8 do crc = bit.bxor(bit.rshift(crc, 1), bit.band(crc, 1) == 1 and 0xedb88320 or 0) end
  end
  return bit.bnot(crc) % 2 ^ 32
end

-- A .npy file of uint8 with this shape (a text) and data.
function zip.npy(shape, data, dtype)
  local header = ("{'descr': '%s', 'fortran_order': False, 'shape': %s, }\n"):format(dtype or "|u1", shape)
  return "\147NUMPY\1\0" .. little(#header, 2) .. header .. data
end

local function common(m)
  return little(20, 2) .. little(m.flags or 0, 2) .. little(m.method or 0, 2) .. little(0, 2) .. little(0x21, 2) ..
         little(m.crc or zip.crc(m.data), 4) .. little(m.packed or #m.data, 4) .. little(m.size or #m.data, 4) ..
         little(#m.name, 2)
end

---@param members table[] each { name=, data=, method?, flags?, crc?, packed?, size?, at?, local_name?, extra? }
---@param options? table count, behind, before (bytes), gap
---@return string
function zip.archive(members, options)
  options = options or {}
  local body, directory = options.before or "", ""
  for _, m in ipairs(members) do
    local at = m.at or #body
    if not m.at then
      body = body .. "PK\3\4" .. common(m) .. little(#(m.extra or ""), 2) .. (m.local_name or m.name) ..
             (m.extra or "") .. m.data .. (m.behind or "")
    end
    directory = directory .. "PK\1\2" .. little(20, 2) .. common(m) .. little(0, 2) .. little(0, 2) .. little(0, 2) ..
                little(0, 2) .. little(0, 4) .. little(at, 4) .. m.name
  end
  local count = options.count or #members
  return body .. directory .. "PK\5\6" .. little(0, 4) .. little(count, 2) .. little(count, 2) ..
         little(#directory, 4) .. little(#body, 4) .. little(0, 2) .. (options.behind or "")
end

return zip
