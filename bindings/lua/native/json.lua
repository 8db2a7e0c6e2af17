-- SPDX-License-Identifier: Apache-2.0
-- Reads JSON (RFC 8259): what libperigee hands out, and files that nobody vouches for. What is not JSON, a name twice
-- in an object, text that is no UTF-8, half a surrogate pair, a number that would become another one and what is nested
-- too deeply are errors that say the line and the column. In Lua, so that `require "perigee"` needs nothing but LuaJIT
-- and a value costs no call of the library.

local byte, find, match, sub = string.byte, string.find, string.match, string.sub

local MOST_DEEP = 1000
local BEYOND = 2 ^ 53 -- from here on a Lua number does not tell neighbours apart

local escapes = { ['"'] = '"', ["\\"] = "\\", ["/"] = "/", b = "\b", f = "\f", n = "\n", r = "\r", t = "\t" }

-- Characters, not bytes, count in a line.
local function fail(s, at, what)
  local before = sub(s.text, 1, at - 1)
  local _, lines = before:gsub("\n", "")
  local _, characters = match(before, "[^\n]*$"):gsub("[^\128-\191]", "")
  error(("line %d, column %d: %s"):format(lines + 1, characters + 1, what), 0)
end

-- What stands somewhere, as messages show it.
local function shown(s, at)
  if at > #s.text then return "the end" end
  local word = match(s.text, "^[%w_+.-]+", at) or match(s.text, "^[%z\1-\127\194-\244][\128-\191]*", at) or "?"
  return #word > 20 and ("%q ..."):format(sub(word, 1, 20)) or ("%q"):format(word)
end

---The first byte of a string that is not UTF-8, or nil.
local function find_bad_utf8(text)
  local at = find(text, "[\128-\255]")
  while at do
    local first, second = byte(text, at, at + 1)
    second = second or 0
    local count = first >= 0xF0 and 4 or first >= 0xE0 and 3 or 2
    local low, high = 0x80, 0xBF
    if first == 0xE0 then low = 0xA0 elseif first == 0xED then high = 0x9F -- too long; surrogates
    elseif first == 0xF0 then low = 0x90 elseif first == 0xF4 then high = 0x8F end -- too long; beyond U+10FFFF
    if first < 0xC2 or first > 0xF4 or second < low or second > high then return at end
    for i = at + 2, at + count - 1 do
      local following = byte(text, i) or 0
      if following < 0x80 or following > 0xBF then return at end
    end
    at = find(text, "[\128-\255]", at + count)
  end
end

local function utf8(code)
  local char, floor = string.char, math.floor
  if code < 0x80 then return char(code) end
  if code < 0x800 then return char(0xC0 + floor(code / 0x40), 0x80 + code % 0x40) end
  local last = 0x80 + code % 0x40
  local middle = 0x80 + floor(code / 0x40) % 0x40
  if code < 0x10000 then return char(0xE0 + floor(code / 0x1000), middle, last) end
  return char(0xF0 + floor(code / 0x40000), 0x80 + floor(code / 0x1000) % 0x40, middle, last)
end

-- The character of \uXXXX at `at`, which may take a second one behind it, and where it ends.
local function read_unicode(s, at)
  local digits = match(s.text, "^%x%x%x%x", at + 2) or fail(s, at, "\\u needs four hexadecimal digits")
  local code = tonumber(digits, 16)
  if code < 0xD800 or code > 0xDFFF then return utf8(code), at + 6 end
  local low = code < 0xDC00 and tonumber(match(s.text, "^\\u(%x%x%x%x)", at + 6) or "0", 16)
  if not low or low < 0xDC00 or low > 0xDFFF then
    fail(s, at, ("\\u%s is half of a surrogate pair"):format(digits))
  end
  return utf8(0x10000 + (code - 0xD800) * 0x400 + low - 0xDC00), at + 12
end

local function plain(s, first, last)
  local part = sub(s.text, first, last)
  if s.is_ascii then return part end
  local bad = find_bad_utf8(part)
  if bad then fail(s, first + bad - 1, "a byte that is not UTF-8") end
  return part
end

local function read_string(s, at)
  local text = s.text
  local i = at + 1
  local stop = find(text, '["\\%z\1-\31]', i)
  if stop and byte(text, stop) == 34 then return plain(s, i, stop - 1), stop + 1 end
  local parts = {}
  while true do
    if not stop then fail(s, at, "a string without an end") end
    parts[#parts + 1] = plain(s, i, stop - 1)
    local c = byte(text, stop)
    if c == 34 then return table.concat(parts), stop + 1 end
    if c ~= 92 then fail(s, stop, ("a control character (%d) inside a string"):format(c)) end
    local kind = sub(text, stop + 1, stop + 1)
    if kind == "u" then
      parts[#parts + 1], i = read_unicode(s, stop)
    else
      parts[#parts + 1] = escapes[kind] or fail(s, stop, "an unknown escape")
      i = stop + 2
    end
    stop = find(text, '["\\%z\1-\31]', i)
  end
end

-- A whole number of up to 19 digits as an int64.
local function read_int64(s, at, digits)
  local bare = digits:gsub("^%-", "")
  local is_negative = bare ~= digits
  local most = is_negative and "9223372036854775808" or "9223372036854775807"
  if #bare > 19 or #bare == 19 and bare > most then fail(s, at, "a whole number that int64 does not hold") end
  local value = 0LL
  for i = 1, #bare do value = value * 10LL - (byte(bare, i) - 48) end
  return is_negative and value or -value
end

local function read_number(s, at)
  local text = s.text
  local _, stop = find(text, "^%-?%d+", at)
  if not stop then fail(s, at, "expected a value, got " .. shown(s, at)) end
  if find(text, "^%-?0%d", at) then fail(s, at, "a number with a 0 in front") end
  local is_whole = true
  local c = byte(text, stop + 1)
  if c == 46 then -- .
    local _, last = find(text, "^%d+", stop + 2)
    if not last then fail(s, at, "a number without digits behind its point") end
    stop, is_whole = last, false
    c = byte(text, stop + 1)
  end
  if c == 101 or c == 69 then -- e, E
    local _, last = find(text, "^[+-]?%d+", stop + 2)
    if not last then fail(s, at, "a number without digits in its exponent") end
    stop, is_whole = last, false
  end
  local digits = sub(text, at, stop)
  local value = tonumber(digits)
  if is_whole then
    if s.int64 and (value >= BEYOND or value <= -BEYOND) then value = read_int64(s, at, digits) end
  elseif value == math.huge or value == -math.huge then
    fail(s, at, "a number too large for a double")
  end
  return value, stop + 1
end

local read_value

local function skip(s, at)
  local c = byte(s.text, at)
  if c and c > 32 then return at, c end
  at = find(s.text, "[^ \t\r\n]", at) or #s.text + 1
  return at, byte(s.text, at)
end

local function read_array(s, at, depth)
  local list, n = {}, 0
  if s.mark then s.mark(list) end
  local c
  at, c = skip(s, at + 1)
  if c == 93 then return list, at + 1 end
  while true do
    n = n + 1
    list[n], at = read_value(s, at, depth)
    at, c = skip(s, at)
    if c == 93 then return list, at + 1 end
    if c ~= 44 then fail(s, at, "expected , or ], got " .. shown(s, at)) end
    at = skip(s, at + 1)
  end
end

local function read_object(s, at, depth)
  local object = {}
  local key, c
  at, c = skip(s, at + 1)
  if c == 125 then return object, at + 1 end
  while true do
    if c ~= 34 then fail(s, at, "expected a name in quotes, got " .. shown(s, at)) end
    local start = at
    key, at = read_string(s, at)
    if object[key] ~= nil then fail(s, start, ("the name %q stands there twice"):format(key)) end
    at, c = skip(s, at)
    if c ~= 58 then fail(s, at, "expected :, got " .. shown(s, at)) end
    object[key], at = read_value(s, skip(s, at + 1), depth)
    at, c = skip(s, at)
    if c == 125 then return object, at + 1 end
    if c ~= 44 then fail(s, at, "expected , or }, got " .. shown(s, at)) end
    at, c = skip(s, at + 1)
  end
end

local words = { [116] = { "true", true }, [102] = { "false", false }, [110] = { "null" } }

function read_value(s, at, depth)
  local c = byte(s.text, at)
  if c == 34 then return read_string(s, at) end
  if c == 123 or c == 91 then
    if depth == MOST_DEEP then fail(s, at, ("nested more than %d deep"):format(MOST_DEEP)) end
    if c == 123 then return read_object(s, at, depth + 1) end
    return read_array(s, at, depth + 1)
  end
  local word = words[c]
  if not word then return read_number(s, at) end
  if match(s.text, "^[%w_]+", at) ~= word[1] then fail(s, at, "expected a value, got " .. shown(s, at)) end
  if c == 110 then return s.null, at + 4 end
  return word[2], at + #word[1]
end

---@param text string
---@param null? any what null becomes; nil leaves holes in arrays
---@param int64? boolean whole numbers from 2^53 on become int64, or errors where that is too small; else doubles
---@param mark? fun(list: table) is given every array, while it is empty
---@return any
local function decode(text, null, int64, mark)
  local s = { text = text, null = null, int64 = int64, mark = mark, is_ascii = not find(text, "[\128-\255]") }
  local begin = sub(text, 1, 3) == "\239\187\191" and 4 or 1 -- a byte order mark
  local value, at = read_value(s, skip(s, begin), 0)
  at = skip(s, at)
  if at <= #text then fail(s, at, "expected the end behind the value, got " .. shown(s, at)) end
  return value
end

return setmetatable({ find_bad_utf8 = find_bad_utf8, most_deep = MOST_DEEP },
                    { __call = function(_, ...) return decode(...) end })
