-- SPDX-License-Identifier: Apache-2.0
-- Bytes as letters that can be seen, as byte-level tokenizers write their tokens in files: a byte that is a printable
-- character of Latin-1 is that character, the others are the characters from U+0100 on, in order.

local M = { of = {} } -- byte -> letter
local bytes = {} -- letter -> byte, as a string of one

local function utf8(code)
  if code < 128 then return string.char(code) end
  return string.char(192 + math.floor(code / 64), 128 + code % 64)
end

local hidden = 0
for byte = 0, 255 do
  local seen = byte > 32 and byte < 127 or byte > 160 and byte ~= 173
  local code = seen and byte or 256 + hidden
  if not seen then hidden = hidden + 1 end
  M.of[byte] = utf8(code)
  bytes[M.of[byte]] = string.char(byte)
end

---@param token string raw bytes
---@return string letters
function M.written(token) return (token:gsub(".", function(c) return M.of[c:byte()] end)) end

---@param letters string
---@return string? token raw bytes, or nil where some letter stands for none
function M.read(letters)
  local parts = {}
  for letter in letters:gmatch("[%z\1-\127\194-\244][\128-\191]*") do
    local byte = bytes[letter]
    if not byte then return nil end
    parts[#parts + 1] = byte
  end
  return table.concat(parts)
end

return M
