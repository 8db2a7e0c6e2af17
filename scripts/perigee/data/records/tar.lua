-- SPDX-License-Identifier: Apache-2.0
-- Tar archives (POSIX 1003.1: ustar and pax; GNU's long names): their files one after the other, and what writes one.

local tar = {}

local BLOCK = 512
local LONGEST_NAME = 2 ^ 16 -- of what extends a header

local function text_at(block, from, length) return (block:sub(from, from + length - 1):match "^[^%z]*") end

-- Digits of base 8, or, after a byte of 128, a number of base 256; nil where it is none.
local function number_at(block, from, length)
  if block:byte(from) == 128 then
    local value = 0
    for i = from + 1, from + length - 1 do value = value * 256 + block:byte(i) end
    return value < 2 ^ 53 and value or nil
  end
  local digits = block:sub(from, from + length - 1):match "^ *([0-7]*)[ %z]*$"
  return digits and (digits == "" and 0 or tonumber(digits, 8))
end

-- Bytes of a header added up, those of the sum itself as blanks.
local function sum_of(block)
  local sum = 8 * 32
  for i = 1, BLOCK do
    if i < 149 or i > 156 then sum = sum + block:byte(i) end
  end
  return sum
end

-- Names and values of pax: "length name=value\n". nil where they are none.
local function read_pax(text)
  local at, found = 1, {}
  while at <= #text do
    local digits = text:match("^(%d+) ", at)
    local length = digits and tonumber(digits)
    if not length or length < #digits + 4 or at + length - 1 > #text then return nil end
    local name, value = text:sub(at + #digits + 1, at + length - 2):match "^([^=]+)=(.*)$"
    if not name or text:sub(at + length - 1, at + length - 1) ~= "\n" then return nil end
    found[name] = value
    at = at + length
  end
  return found
end

local function rounded(size) return math.ceil(size / BLOCK) * BLOCK end

local ENDS = "the archive ends inside of it"

-- One header: a table, nil at the end of the archive, or false and what is wrong.
local function header_at(file, at)
  local block = file:read(at, BLOCK)
  if block == ("\0"):rep(#block) and (#block == BLOCK or #block == 0) then return nil end
  if #block < BLOCK then return false, ENDS end
  if number_at(block, 149, 8) ~= sum_of(block) then return false, "wrong checksum of its header" end
  local size = number_at(block, 125, 12)
  if not size then return false, "a size that is no number" end
  local name, prefix = text_at(block, 1, 100), block:sub(258, 262) == "ustar" and text_at(block, 346, 155) or ""
  -- GNU's archives have other things in the place of the prefix.
  if prefix ~= "" and block:sub(258, 264) ~= "ustar  " then name = prefix .. "/" .. name end
  local kind = block:sub(157, 157)
  local has_data = not kind:find "[1-6]"
  return { name = name, kind = kind, size = has_data and size or 0, data = at + BLOCK }
end

---Calls see(name, at, size) for each file of an archive, in order. Answers the byte of what is damaged and what is
---wrong, or nil.
function tar.each(file, see)
  local total, at = file:size(), 0
  local name, size -- what extensions said of the next file
  while true do
    local begin = at
    local head, problem = header_at(file, at)
    if head == nil then return nil end
    if not head then return begin, problem end
    local kind = head.kind
    local extends = kind == "x" or kind == "g" or kind == "L" or kind == "K"
    if not extends and size then head.size = size end
    if head.data + head.size > total then return begin, ENDS end
    if extends then
      if head.size > LONGEST_NAME then return begin, "a name that is longer than any" end
      local text = file:read(head.data, head.size)
      if kind == "L" then
        name = text:match "^[^%z]*"
      elseif kind == "x" then
        local pax = read_pax(text)
        if not pax then return begin, "damaged names of pax" end
        name = pax.path or name
        if pax.size then
          size = tonumber(pax.size:match "^%d+$")
          if not size or size > 2 ^ 53 then return begin, "a size that is no number" end
        end
      end
    else
      if kind == "S" then return begin, "a sparse file, which is not served" end
      if kind == "0" or kind == "\0" or kind == "7" then
        see(name or head.name, head.data, head.size)
      end
      name, size = nil, nil
    end
    at = head.data + rounded(head.size)
  end
end

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
