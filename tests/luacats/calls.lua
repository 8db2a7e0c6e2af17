-- SPDX-License-Identifier: Apache-2.0
-- What an editor says of the calls of a script: whether arguments that are literals fit what the definitions declare,
-- by LuaLS's rules (missing-fields, missing-parameter, redundant-parameter, param-type-mismatch). Other arguments may
-- be anything.

local script = require "luacats.script"

local calls = {}

-- ---- reading a script ----

-- Where a string or comment that begins here ends, and whether it is a comment.
local function end_of_text(source, at)
  local comment = source:find("^%-%-", at) ~= nil
  local _, last = source:find("^%[(=*)%[.-%]%1%]", comment and at + 2 or at)
  if last then return last, comment end
  if comment then return (source:find("\n", at, true) or #source + 1) - 1, true end
  local quote = source:match("^[\"']", at)
  if not quote then return nil end
  last = at + 1
  while last < #source and source:sub(last, last) ~= quote do
    last = last + (source:sub(last, last) == "\\" and 2 or 1)
  end
  return last, false
end

-- A script of the same length whose strings and comments have no contents.
local function masked(source)
  local parts, at = {}, 1
  while at <= #source do
    local last, is_comment = end_of_text(source, at)
    if last then
      local inner = source:sub(at + 1, last - 1):gsub("[^\n]", is_comment and " " or "s")
      parts[#parts + 1] = is_comment and " " .. inner .. " " or '"' .. inner .. '"'
    else
      parts[#parts + 1] = source:sub(at, at)
    end
    at = (last or at) + 1
  end
  return table.concat(parts)
end

local OPENS = { ["("] = 1, ["{"] = 1, ["["] = 1, [")"] = -1, ["}"] = -1, ["]"] = -1,
                ["function"] = 1, ["if"] = 1, ["do"] = 1, ["repeat"] = 1, ["end"] = -1, ["until"] = -1 }

-- Calls fn(first, last) for each part of text[first..last] between commas that are in no bracket and no function.
local function each_part(text, first, last, fn)
  local depth, from, at = 0, first, first
  while at <= last do
    local word = text:match("^[%a_][%w_]*", at) or text:sub(at, at)
    depth = depth + (OPENS[word] or 0)
    if word == "," and depth == 0 then
      fn(from, at - 1)
      from = at + 1
    end
    at = at + #word
  end
  if text:sub(from, last):find("%S") then fn(from, last) end
end

-- An argument's kind: "table", "string", "number", "boolean", "other"; of the last also whether it may be several.
local function kind_of(text)
  text = text:match("^%s*(.-)%s*$")
  if text:find("^%b{}$") then return "table" end
  if text:find('^"s*"$') then return "string" end
  if text:find("^%-?%d[%w.]*$") then return text:find("[.eE]") and not text:find("^0x") and "number" or "integer" end
  if text == "true" or text == "false" then return "boolean" end
  return "other", text:find("[%)}\"]$") ~= nil or text == "..."
end

-- A call that begins at `at` and whose arguments begin at `behind`; nil where there is none.
local function read_call(source, text, at, path, behind)
  local open = text:sub(behind, behind)
  local _, close = text:find(({ ["("] = "^%b()", ["{"] = "^%b{}", ['"'] = '^"s*"' })[open], behind)
  if not close or path == "function" or text:sub(1, at - 1):find("function%s*$") then return nil end
  local _, lines = source:sub(1, at):gsub("\n", "")
  local call = { path = path:gsub("^.*%.%.", ""), arguments = {}, line = lines + 1,
                 text = source:sub(at, close):gsub("%s+", " ") }
  local function add(first, last)
    local kind, several = kind_of(text:sub(first, last))
    table.insert(call.arguments, { kind = kind, several = several, text = source:sub(first, last) })
  end
  if open == "(" then each_part(text, behind + 1, close - 1, add) else add(behind, close) end
  return call
end

-- The calls of a script: what is called and with what, { kind =, text =, several = }.
local function read(source)
  local text, list = masked(source), {}
  for at, path, behind in text:gmatch("()([%a_:.][%w_.:]*)%s*()[({\"]") do
    list[#list + 1] = read_call(source, text, at, path, behind)
  end
  return list
end

-- ---- what definitions say of a call ----

-- The ways to call a method or function: lists of parameters, without the one before a colon.
local function ways_of(fn, with_colon)
  local ways = { fn.parameters }
  for _, overload in ipairs(fn.overloads or {}) do ways[#ways + 1] = overload.parameters end
  for i, way in ipairs(ways) do
    local has_self = i > 1 or not fn.is_method
    if with_colon and has_self then ways[i] = { unpack(way, 2) } end
  end
  return ways
end

local FILE = getmetatable(io.stdout).__index

-- What may be called by a path: a function, a method of a variable whose class is known, or else any class's method,
-- unless strings or files have it too.
local function find(completer, path)
  local owner, name = path:match("^(.*):([%w_]+)$")
  if not name then
    local tree
    for part in path:gmatch("[^.]+") do
      if not tree then tree = completer.variables[part] or {} else tree = completer:field(tree, part) end
      if not tree then return {} end
    end
    return tree and tree.kind == "function" and { tree } or {}, false
  end
  local known = owner ~= "" and completer.variables[owner]
  local method = known and completer:field(known, name)
  if method then return method.kind == "function" and { method } or {}, true end
  local list = {}
  if string[name] or FILE[name] then return list end
  for _, other in pairs(completer.file.classes) do list[#list + 1] = other.methods[name] end
  return list, true
end

local NO_TABLE = { string = true, number = true, integer = true, boolean = true, ["function"] = true }

-- Whether a type takes a literal; true or nil. A table may be any class: whether it has the fields is asked apart.
local function takes(completer, tree, argument)
  local kind = argument.kind
  return completer:each(tree, function(part)
    local name = part.name
    if part.kind == "literal" then
      return kind == "string" and part.value:sub(2, -2) == argument.text:match("^%s*[\"'](.*)[\"']%s*$") or nil
    end
    if kind == "table" then return part.kind ~= "function" and not NO_TABLE[name] or nil end
    return part.kind == "name" and (name == "any" or name == "unknown" or name == kind or
                                    kind == "integer" and name == "number") or nil
  end)
end

-- Whether a type has a class and nothing that a table literal is of itself.
local function kinds_of_table(completer, tree, seen)
  completer:each(tree, function(part)
    if part.kind == "table" or part.kind == "array" or part.kind == "generic" then seen.table = true end
    if part.kind == "name" and completer.file.classes[part.name] then seen.class = part.name end
  end)
end

local function check_argument(completer, ways, i, argument)
  local declared, fits, seen = false, false, {}
  for _, way in ipairs(ways) do
    local last = way[#way]
    local p = way[i] or last and last.name == "..." and last
    if p then
      declared = true
      fits = fits or not p.type or takes(completer, p.type, argument)
      kinds_of_table(completer, p.type, seen)
    end
  end
  if not declared then return "there is no such argument" end
  if argument.kind == "table" and seen.class and not seen.table then
    return "fields of a " .. seen.class .. " are missing in the table"
  end
  if argument.kind ~= "other" and not fits then return "no type takes the " .. argument.kind end
end

-- How many arguments a call needs at least.
local function needed(completer, way)
  for i = #way, 1, -1 do
    local p = way[i]
    local nothing = p.optional or p.name == "..." or not p.type or p.type.kind == "optional" or
      completer:each(p.type, function(part)
        return part.kind == "name" and (part.name == "any" or part.name == "nil") or nil
      end)
    if not nothing then return i end
  end
  return 0
end

local function check_call(completer, fn, with_colon, call)
  local ways, least, arguments = ways_of(fn, with_colon), math.huge, call.arguments
  for _, way in ipairs(ways) do least = math.min(least, needed(completer, way)) end
  local last = arguments[#arguments]
  if #arguments < least and not (last and last.several) then return ("needs %d arguments"):format(least) end
  for i, argument in ipairs(arguments) do
    local what = check_argument(completer, ways, i, argument)
    if what then return ("argument %d: %s"):format(i, what) end
  end
end

---What an editor marks in a script.
---@param completer table what complete.new answers for the definitions
---@param source string
---@return string[] problems "line: call: what is wrong"
---@return integer count calls that were looked at
function calls.check(completer, source)
  local problems, count = {}, 0
  completer = script.read(completer, source)
  for _, call in ipairs(read(source)) do
    local found, with_colon = find(completer, call.path)
    local what
    for _, fn in ipairs(found) do
      what = check_call(completer, fn, with_colon, call)
      if not what then break end
    end
    if found[1] then count = count + 1 end
    if what then problems[#problems + 1] = ("%d: %s: %s"):format(call.line, call.text, what) end
  end
  return problems, count
end

return calls
