-- SPDX-License-Identifier: Apache-2.0
-- Tar archives (POSIX 1003.1: ustar and pax; GNU's long names): what writes them.

local tar = {}

local BLOCK = 512

-- Bytes of a header added up, those of the sum itself as blanks.
local function sum_of(block)
  local sum = 8 * 32
  for i = 1, BLOCK do
    if i < 149 or i > 156 then sum = sum + block:byte(i) end
  end
  return sum
end

local function rounded(size) return math.ceil(size / BLOCK) * BLOCK end

local function octal(value, digits) return ("%0" .. digits .. "o"):format(value) .. "\0" end

local function header(name, size, kind)
  local block = name .. ("\0"):rep(100 - #name) .. octal(420, 7) .. octal(0, 7) .. octal(0, 7) .. octal(size, 11) ..
                octal(0, 11) .. (" "):rep(8) .. kind .. ("\0"):rep(100) .. "ustar\00000" .. ("\0"):rep(247)
  return block:sub(1, 148) .. octal(sum_of(block), 6) .. " " .. block:sub(157)
end

local function padded(bytes) return bytes .. ("\0"):rep(rounded(#bytes) - #bytes) end

---A file of an archive.
function tar.member(name, bytes)
  local extension = ""
  if #name > 100 then
    local record = (" path=%s\n"):format(name)
    local length = #record
    while #record + #tostring(length) ~= length do length = #record + #tostring(length) end
    record = length .. record
    extension = header("././@PaxHeader", #record, "x") .. padded(record)
    name = name:sub(1, 100)
  end
  return extension .. header(name, #bytes, "0") .. padded(bytes)
end

---What an archive ends with.
tar.FINISH = ("\0"):rep(2 * BLOCK)

return tar
