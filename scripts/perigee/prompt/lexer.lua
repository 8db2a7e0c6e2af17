-- SPDX-License-Identifier: Apache-2.0
-- Lua's tokens, with their places. Never fails: what is unfinished becomes a last token that says so.

local lexer = {}

local KEYWORDS = {}
for word in ([[and break do else elseif end false for function goto if in local nil not or repeat return then true until
while]]):gmatch("%a+") do KEYWORDS[word] = true end

-- The end of a quoted string that begins at `from`, or nil when its line ends first.
local function string_end(text, from)
  local quote, i = text:sub(from, from), from + 1
  while i <= #text do
    local c = text:sub(i, i)
    if c == "\\" then i = i + 1
    elseif c == quote then return i
    elseif c == "\n" then return nil end
    i = i + 1
  end
end

-- The end of a [==[ bracket ]==] at `from`: nothing where there is none, false where it is unfinished.
local function bracket_end(text, from)
  local level = text:match("^%[(=*)%[", from)
  if not level then return nil end
  local _, last = text:find("]" .. level .. "]", from, true)
  return last or false
end

local function comment(text, from)
  local last = bracket_end(text, from + 2)
  if last == nil then return (text:find("\n", from, true) or #text + 1) - 1, true end
  return last or #text, last ~= false
end

-- kind, last position and whether the token is finished.
local function next_token(text, at)
  local c = text:sub(at, at)
  if c:find("[%a_\128-\255]") then
    local last = select(2, text:find("^[%w_\128-\255]+", at))
    return KEYWORDS[text:sub(at, last)] and "keyword" or "name", last, true
  end
  if c:find("%d") or text:find("^%.%d", at) then
    local last = select(2, text:find("^0[xX][%x.pP]+[%w]*", at)) or
                 select(2, text:find("^[%d.]+[eE][+-]?%d+%w*", at)) or select(2, text:find("^[%d.]+%w*", at))
    return "number", last, true
  end
  if c == '"' or c == "'" then
    local last = string_end(text, at)
    return "string", last or #text, last ~= nil
  end
  if text:find("^%-%-", at) then return "comment", comment(text, at) end
  local long = bracket_end(text, at)
  if long ~= nil then return "string", long or #text, long ~= false end
  local last = select(2, text:find("^%.%.%.?", at)) or select(2, text:find("^[=~<>]=", at)) or
               select(2, text:find("^::", at)) or at
  return "symbol", last, true
end

---@class perigee.Token
---@field kind "name"|"keyword"|"number"|"string"|"comment"|"symbol"
---@field text string
---@field from integer
---@field to integer
---@field finished boolean

---@param text string
---@return perigee.Token[]
function lexer.tokens(text)
  local list, at = {}, 1
  while true do
    at = text:find("%S", at)
    if not at then return list end
    local kind, last, finished = next_token(text, at)
    list[#list + 1] = { kind = kind, text = text:sub(at, last), from = at, to = last, finished = finished }
    at = last + 1
  end
end

return lexer
