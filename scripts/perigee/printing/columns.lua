-- SPDX-License-Identifier: Apache-2.0
-- How wide texts are on a terminal, in columns, and lines that fit. Texts are UTF-8; other bytes count one.

local columns = {}

local LETTER = "[%z\1-\127\194-\244][\128-\191]*"

-- First and last code points of what takes no column (combining marks, joiners) and of what takes two (East Asian wide
-- letters, pictures): the ranges of Unicode's DerivedGeneralCategory and EastAsianWidth that texts of scripts meet.
local NONE = { { 0x300, 0x36F }, { 0x200B, 0x200F }, { 0x20D0, 0x20FF }, { 0xFE00, 0xFE0F }, { 0xFE20, 0xFE2F } }
local TWO = { { 0x1100, 0x115F }, { 0x2E80, 0x303E }, { 0x3041, 0xA4CF }, { 0xAC00, 0xD7A3 }, { 0xF900, 0xFAFF },
              { 0xFE30, 0xFE4F }, { 0xFF00, 0xFF60 }, { 0xFFE0, 0xFFE6 }, { 0x1F300, 0x1FAFF }, { 0x20000, 0x3FFFD } }

local function is_in(ranges, code)
  for _, range in ipairs(ranges) do
    if code >= range[1] and code <= range[2] then return true end
  end
  return false
end

local function code_of(letter)
  local first = letter:byte()
  if first < 0x80 then return first end
  local code = first % (first >= 0xF0 and 0x08 or first >= 0xE0 and 0x10 or 0x20)
  for i = 2, #letter do code = code * 64 + letter:byte(i) % 64 end
  return code
end

local function width_of(letter)
  local code = code_of(letter)
  return is_in(NONE, code) and 0 or is_in(TWO, code) and 2 or 1
end

---The letters of a text, in order; bytes that begin none come alone.
---@param text string
---@return fun(): string?
function columns.letters(text)
  local at = 1
  return function()
    if at > #text then return nil end
    local from, to = text:find("^" .. LETTER, at)
    if not from then from, to = at, at end
    at = to + 1
    return text:sub(from, to)
  end
end

---@param text string without control characters
---@return integer
function columns.count(text)
  if not text:find("[\128-\255]") then return #text end
  local n = 0
  for letter in columns.letters(text) do n = n + width_of(letter) end
  return n
end

---The text, its end replaced by "…" where it is wider.
---@param text string
---@param width integer columns
---@return string
function columns.cut(text, width)
  if columns.count(text) <= width then return text end
  local parts, n = {}, 0
  for letter in columns.letters(text) do
    n = n + width_of(letter)
    if n > width - 1 then break end
    parts[#parts + 1] = letter
  end
  return width < 1 and "" or table.concat(parts) .. "…"
end

---The lines of a text, long ones broken at blanks; lines that go on begin with `indent` blanks.
---@param text string
---@param width integer columns
---@param indent? integer
---@return string
function columns.wrap(text, width, indent)
  local lines = {}
  for line in (text .. "\n"):gmatch("([^\n]*)\n") do
    local current, margin = nil, line:match("^ *")
    for word in line:gmatch("[^ ]+ *") do
      local bare = word:gsub(" +$", "")
      if current and columns.count(current .. bare) > width then
        lines[#lines + 1] = current:gsub(" +$", "")
        current = (" "):rep(indent or 0) .. word
      else
        current = (current or margin) .. word
      end
    end
    lines[#lines + 1] = (current or ""):gsub(" +$", "")
  end
  return table.concat(lines, "\n")
end

return columns
