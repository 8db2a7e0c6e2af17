-- SPDX-License-Identifier: Apache-2.0
-- Reads the JSON that libperigee hands out. A file of its own and not lua-cjson, so that `require "perigee"` needs
-- nothing but LuaJIT. null becomes nil, unless the caller names another value.

local null -- what null becomes in the text that is being read
local escapes = { ['"'] = '"', ["\\"] = "\\", ["/"] = "/", b = "\b", f = "\f", n = "\n", r = "\r", t = "\t" }

local function fail(text, at, what)
  error(("JSON: %s at byte %d (%q)"):format(what, at, text:sub(at, at + 20)), 0)
end

local function utf8(code)
  if code < 0x80 then return string.char(code) end
  if code < 0x800 then return string.char(0xC0 + math.floor(code / 64), 0x80 + code % 64) end
  return string.char(0xE0 + math.floor(code / 4096), 0x80 + math.floor(code / 64) % 64, 0x80 + code % 64)
end

local function read_string(text, at)
  local stop = text:find('"', at + 1, true)
  local plain = text:sub(at + 1, (stop or at) - 1)
  if stop and not plain:find("\\", 1, true) then return plain, stop + 1 end
  local parts, i = {}, at + 1
  while true do
    local j = text:find('["\\]', i)
    if not j then fail(text, at, "string without an end") end
    parts[#parts + 1] = text:sub(i, j - 1)
    if text:byte(j) == 34 then return table.concat(parts), j + 1 end
    local c = text:sub(j + 1, j + 1)
    if c == "u" then
      local digits = text:match("^%x%x%x%x", j + 2) or fail(text, j, "bad escape")
      parts[#parts + 1] = utf8(tonumber(digits, 16))
      i = j + 6
    else
      parts[#parts + 1] = escapes[c] or fail(text, j, "bad escape")
      i = j + 2
    end
  end
end

local read_value

local function skip(text, at) return text:find("[^ \t\r\n]", at) or #text + 1 end

local function read_array(text, at)
  local list, n = {}, 0
  at = skip(text, at + 1)
  if text:byte(at) == 93 then return list, at + 1 end
  while true do
    n = n + 1
    list[n], at = read_value(text, at)
    at = skip(text, at)
    local c = text:byte(at)
    if c == 93 then return list, at + 1 end
    if c ~= 44 then fail(text, at, "expected , or ]") end
    at = skip(text, at + 1)
  end
end

local function read_object(text, at)
  local object = {}
  at = skip(text, at + 1)
  if text:byte(at) == 125 then return object, at + 1 end
  while true do
    if text:byte(at) ~= 34 then fail(text, at, "expected a name") end
    local key
    key, at = read_string(text, at)
    at = skip(text, at)
    if text:byte(at) ~= 58 then fail(text, at, "expected :") end
    object[key], at = read_value(text, skip(text, at + 1))
    at = skip(text, at)
    local c = text:byte(at)
    if c == 125 then return object, at + 1 end
    if c ~= 44 then fail(text, at, "expected , or }") end
    at = skip(text, at + 1)
  end
end

function read_value(text, at)
  local c = text:byte(at)
  if c == 34 then return read_string(text, at) end
  if c == 123 then return read_object(text, at) end
  if c == 91 then return read_array(text, at) end
  local word = text:match("^[%w%.%+%-]+", at) or fail(text, at, "expected a value")
  local is_number = word:find("^%-?%d") and not word:find("[xX]")
  local after = at + #word
  if word == "true" then return true, after end
  if word == "false" then return false, after end
  if word == "null" then return null, after end
  return is_number and tonumber(word) or fail(text, at, "bad number"), after
end

---@param text string
---@param null_value? any what null becomes; nil leaves holes in arrays
---@return any
return function(text, null_value)
  null = null_value
  local value, at = read_value(text, skip(text, 1))
  if skip(text, at) <= #text then fail(text, at, "something behind the value") end
  return value
end
