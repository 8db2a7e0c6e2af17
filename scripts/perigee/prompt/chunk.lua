-- SPDX-License-Identifier: Apache-2.0
-- What was typed as a function: expressions give their values, locals of the top level outlive the input.

local lexer = require "perigee.prompt.lexer"

local chunk = {}

local OPENS = { ["function"] = true, ["do"] = true, ["then"] = true, ["repeat"] = true, ["("] = true, ["{"] = true,
                ["["] = true }
local CLOSES = { ["end"] = true, ["until"] = true, [")"] = true, ["}"] = true, ["]"] = true, ["else"] = true,
                 ["elseif"] = true }

-- Tokens without comments, each with its depth: 0 is the top level. "for" and "while" open at their "do".
local function nested_tokens(text)
  local list, depth = {}, 0
  for _, token in ipairs(lexer.tokens(text)) do
    if token.kind ~= "comment" then
      local word = (token.kind == "keyword" or token.kind == "symbol") and token.text
      if CLOSES[word] then depth = depth - 1 end
      token.depth = depth
      if OPENS[word] or word == "else" then depth = depth + 1 end
      list[#list + 1] = token
    end
  end
  return list
end

-- The names of "local a, b" behind token i, and the index of the token behind them.
local function local_names(tokens, i)
  local names = {}
  repeat
    i = i + 1
    if not tokens[i] or tokens[i].kind ~= "name" then return nil end
    names[#names + 1] = tokens[i].text
    i = i + 1
  until not (tokens[i] and tokens[i].text == ",")
  return names, i
end

-- The text with "local" of the top level taken out, in places of equal length, and the names that it declared. A local
-- without a value is set to nil.
local function lift_locals(text)
  local tokens, parts, at, declared = nested_tokens(text), {}, 1, {}
  for i, token in ipairs(tokens) do
    if token.text == "local" and token.kind == "keyword" and token.depth == 0 then
      local follower = tokens[i + 1]
      parts[#parts + 1] = text:sub(at, token.from - 1) .. "     "
      at = token.to + 1
      if follower and follower.text == "function" then
        declared[#declared + 1] = tokens[i + 2] and tokens[i + 2].text
      else
        local names, behind = local_names(tokens, i)
        for _, name in ipairs(names or {}) do declared[#declared + 1] = name end
        if names and not (tokens[behind] and tokens[behind].text == "=") then
          local last = tokens[behind - 1].to
          parts[#parts + 1] = text:sub(at, last) .. "=nil"
          at = last + 1
        end
      end
    end
  end
  return table.concat(parts) .. text:sub(at), declared
end

local function ends_early(message) return message:find("near '<eof>'", 1, true) ~= nil end

-- The values of an expression are arguments here: a tail call would leave the prompt's line out of errors.
local function values(...) return ... end
local EXPRESSION = "local _PERIGEE_VALUES = ... return function() return _PERIGEE_VALUES(%s) end"

local function expression(text, env)
  if not loadstring("return " .. text, "=stdin") then return nil end
  local make = loadstring((EXPRESSION:gsub("%%s", function() return text end)), "=stdin")
  if not make then -- it ends in a comment
    make = assert(loadstring((EXPRESSION:gsub("%%s", function() return text .. "\n" end)), "=stdin"))
  end
  return setfenv(make, env)(values)
end

-- "x = 3; x": statements, and what is shown behind the last semicolon of the top level.
local function statements_and_expression(text, env)
  local tokens = nested_tokens(text)
  for i = #tokens, 1, -1 do
    local token = tokens[i]
    if token.depth == 0 and token.kind == "symbol" and token.text == ";" then
      local head, tail = text:sub(1, token.from - 1), text:sub(token.to + 1)
      if not tail:find("%S") or not loadstring(head, "=stdin") then return nil end
      local _, breaks = head:gsub("\n", "")
      local last = expression(("\n"):rep(breaks) .. tail, env)
      if not last then return nil end
      local lifted, names = lift_locals(head)
      local first = setfenv(assert(loadstring(lifted, "=stdin")), env)
      return function()
        first()
        return last()
      end, names
    end
  end
end

---A function of what was typed, in the environment of the prompt.
---@param text string
---@param env table
---@return function? fn
---@return string|string[] problem_or_names the syntax error, or the locals that fn sets
---@return boolean? unfinished whether more lines could mend the error
function chunk.compile(text, env)
  local fn = expression(text, env)
  if fn then return fn, {} end
  local both, names_of_both = statements_and_expression(text, env)
  if both then return both, names_of_both end
  local plain, message = loadstring(text, "=stdin")
  if plain then
    local lifted, names = lift_locals(text)
    return setfenv(assert(loadstring(lifted, "=stdin")), env), names
  end
  local _, as_expression = loadstring("return " .. text, "=stdin")
  local last = lexer.tokens(text)
  last = last[#last]
  if last and not last.finished then return nil, message, last.kind == "comment" or last.text:sub(1, 1) == "[" end
  return nil, message, ends_early(message) or ends_early(as_expression)
end

local GOES_ON = { [")"] = true, ["}"] = true, ["]"] = true, ["then"] = true, ["do"] = true, ["else"] = true,
                  ["elseif"] = true, ["end"] = true, ["until"] = true, ["and"] = true, ["or"] = true }

---Whether a line can only go on with what stands before it: `:shuffle{10}`, `+ 1`, `}`.
---@param line string
---@return boolean
function chunk.continues(line)
  local first = lexer.tokens(line)[1]
  if not first then return false end
  if first.text == ":" then return not line:find("^%s*:%l+%s*$") and not line:find("^%s*:%l+%s+[%w]") end
  return GOES_ON[first.text] or (first.kind == "symbol" and first.text:find("^[.+*/^%%<>~,]") ~= nil)
end

---Names at the top level of the prompt. Reading finds them first, then globals; setting another makes a global.
---@return table env
---@return fun(names: string[]) declare
function chunk.environment()
  local declared = {}
  local env = setmetatable({}, { __index = _G, __newindex = function(t, key, value)
    if declared[key] then rawset(t, key, value) else _G[key] = value end
  end })
  return env, function(names)
    for _, name in ipairs(names) do declared[name] = true end
  end
end

return chunk
