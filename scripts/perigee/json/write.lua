-- SPDX-License-Identifier: Apache-2.0
-- A value as JSON text: the same text for the same value, and nothing that would be read back as something else.

local native = require "perigee.native"

local concat, format = table.concat, string.format
local WHERE = "json.encode"
local BEYOND = 2 ^ 53 -- whole numbers from here on are read as int64
local MOST_DEEP = native.json.most_deep

-- "value.layers[3].size": where in the value something is wrong.
local function place(s)
  local parts = { "value" }
  for i = 1, s.depth do
    local key = s.path[i]
    parts[#parts + 1] = type(key) == "number" and ("[%d]"):format(key) or key:find("^[%a_][%w_]*$") and "." .. key or
                          ("[%q]"):format(key)
  end
  return #parts > 12 and concat(parts, "", 1, 6) .. " ... " .. concat(parts, "", #parts - 2) or concat(parts)
end

local function refuse(s, what, hint) native.raise("invalid_argument", WHERE, place(s) .. " " .. what, hint) end

local escapes = { ['"'] = '\\"', ["\\"] = "\\\\", ["\b"] = "\\b", ["\f"] = "\\f", ["\n"] = "\\n", ["\r"] = "\\r",
                  ["\t"] = "\\t" }
local function escape(c) return escapes[c] or format("\\u%04x", c:byte()) end

local function text_of(s, v)
  local bad = native.json.find_bad_utf8(v)
  if bad then refuse(s, ("has a byte that is not UTF-8 at position %d"):format(bad), "JSON holds text, not bytes") end
  return '"' .. v:gsub('["\\%z\1-\31]', escape) .. '"'
end

-- The shortest text that is read as this number.
local function number(s, v)
  if v ~= v or v == math.huge or v == -math.huge then
    refuse(s, ("is %s, which JSON has not"):format(v ~= v and "NaN" or v > 0 and "infinite" or "negative infinite"),
           "pg.json.null, or a text")
  end
  if v == 0 then return 1 / v < 0 and "-0" or "0" end
  if v % 1 == 0 and v > -BEYOND and v < BEYOND then return format("%d", v) end
  local text
  for digits = 15, 17 do
    text = format("%." .. digits .. "g", v)
    if tonumber(text) == v then break end
  end
  return text:find("[.e]") and text or text .. ".0" -- a whole one is not to come back as an int64
end

local function describe(v) return "is " .. native.describe(v) end

local function int64(s, v)
  local digits, unsigned = nil, nil
  if not native.is_tensor(v) then digits, unsigned = tostring(v):match("^(%-?%d+)(U?)LL$") end
  if not digits then refuse(s, describe(v), native.is_tensor(v) and "t:totable() gives tables of numbers" or nil) end
  if unsigned == "U" and (#digits > 19 or #digits == 19 and digits > "9223372036854775807") then
    refuse(s, ("is %s, which int64 does not hold"):format(digits))
  end
  return digits
end

-- Whether a table is an array, and how long.
local function measure(s, t, is_marked)
  local numbers, highest, name = 0, 0, nil
  for key in pairs(t) do
    if type(key) == "number" and key >= 1 and key % 1 == 0 then
      numbers, highest = numbers + 1, math.max(highest, key)
    elseif type(key) == "string" then
      name = key
    else
      refuse(s, ("has the key %s"):format(native.describe(key)), "keys are texts, or positions from 1")
    end
  end
  if name and (numbers > 0 or is_marked) then
    refuse(s, ("has the name %q beside positions"):format(name), "an array has positions alone, an object names alone")
  end
  if numbers ~= highest then
    refuse(s, ("has %d entries up to position %d"):format(numbers, highest), "pg.json.null fills holes")
  end
  return name == nil and (numbers > 0 or is_marked), highest
end

local write

local function line(s, out, depth)
  if s.indent then out[#out + 1] = "\n" .. s.indent:rep(depth) end
end

local function each(s, out, key, v)
  s.path[s.depth] = key
  line(s, out, s.depth)
  if type(key) == "string" then out[#out + 1] = text_of(s, key) .. s.colon end
  write(s, out, v)
end

local function container(s, out, t)
  local meta = getmetatable(t)
  local is_marked = meta == s.array or type(meta) == "table" and meta.__perigee_list == true
  if meta ~= nil and not is_marked then
    refuse(s, describe(t) .. " of a class", "tables without a metatable become JSON")
  end
  if s.open[t] then refuse(s, "is a table that it stands in") end
  if s.depth == MOST_DEEP then refuse(s, ("is nested more than %d deep"):format(MOST_DEEP)) end
  local is_array, count = measure(s, t, is_marked)
  local first, last = is_array and "[" or "{", is_array and "]" or "}"
  if native.entries.count(t, 1) == 0 then
    out[#out + 1] = first .. last
    return
  end
  s.open[t], s.depth = true, s.depth + 1
  out[#out + 1] = first
  if is_array then
    for i = 1, count do
      if i > 1 then out[#out + 1] = s.comma end
      each(s, out, i, t[i])
    end
  else
    local names = {}
    for name in pairs(t) do names[#names + 1] = name end
    table.sort(names)
    for i, name in ipairs(names) do
      if i > 1 then out[#out + 1] = s.comma end
      each(s, out, name, t[name])
    end
  end
  s.open[t], s.depth = nil, s.depth - 1
  line(s, out, s.depth)
  out[#out + 1] = last
end

function write(s, out, v)
  local kind = type(v)
  if kind == "string" then
    out[#out + 1] = text_of(s, v)
  elseif kind == "number" then
    out[#out + 1] = number(s, v)
  elseif kind == "boolean" then
    out[#out + 1] = tostring(v)
  elseif rawequal(v, s.null) then
    out[#out + 1] = "null"
  elseif kind == "table" then
    container(s, out, v)
  elseif kind == "cdata" then
    out[#out + 1] = int64(s, v)
  else
    refuse(s, describe(v), kind == "nil" and "pg.json.null stands for nothing" or nil)
  end
end

---@param v any
---@param null any what is written as null
---@param array table the metatable of arrays
---@param indent? integer spaces a level; without it all stands in one line
---@return string
return function(v, null, array, indent)
  local out = {}
  write({ null = null, array = array, indent = indent and (" "):rep(indent), comma = ",",
          colon = indent and ": " or ":", open = {}, path = {}, depth = 0 }, out, v)
  return concat(out)
end
