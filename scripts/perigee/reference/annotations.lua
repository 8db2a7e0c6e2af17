-- SPDX-License-Identifier: Apache-2.0
-- Comments behind `---` in Lua sources, with what they stand above: the one place where functions written in Lua are
-- documented.

local annotations = {}

---@class perigee.Annotation
---@field receiver string what stands before the dot or colon, or the function that defines ("define", "both", ...)
---@field name string
---@field arguments string[] as declared
---@field doc string[] lines of text
---@field params {name: string, type: string, doc: string, optional: boolean}[]
---@field returns string[]
---@field file string
---@field line integer

-- What a line defines: receiver, name, arguments as text.
local function definition(line)
  local receiver, name, arguments = line:match("^%s*function%s+([%w_.]-)[.:]([%a_][%w_]*)%s*(%b())")
  if receiver then return receiver, name, arguments end
  receiver, name = line:match("^%s*([%a_][%w_]*)%s*%(%s*\"([%a_][%w_]*)\"")
  if receiver and receiver ~= "require" then return receiver, name, line:match("function%s*(%b())") end
  receiver, name = line:match("^%s*([%a_][%w_.]-)%.([%a_][%w_]*)%s*=%s*function")
  if receiver then return receiver, name, line:match("function%s*(%b())") end
  name = line:match("^%s*local%s+[%w_]+%s*=%s*Module%.class%s*%(%s*\"([%w_]+)\"")
  if name then return "class", name, nil end
  name = line:match("^%s*layers%.([%u][%w_]*)%s*=%s*[%w_.]+%(")
  if name then return "class", name, nil end
  name, arguments = line:match("^%s*local%s+function%s+([%a_][%w_]*)%s*(%b())")
  if name then return "local", name, arguments end
end

-- "name? type text" of a @param line. Types may hold blanks inside brackets.
local function read_param(text)
  local name, rest = text:match("^(%S+)%s*(.*)$")
  local at, depth = 1, 0
  while at <= #rest do
    local c = rest:sub(at, at)
    if c:find("[%(%[{<]") then depth = depth + 1 elseif c:find("[%)%]}>]") then depth = depth - 1 end
    local inside = depth > 0 or rest:sub(1, at - 1):find("[:|,]%s*$") or rest:find("^%s*[|:]", at)
    if c == " " and not inside then break end
    at = at + 1
  end
  return { name = name:gsub("%?$", ""), optional = name:find("%?$") ~= nil, type = rest:sub(1, at - 1),
           doc = rest:sub(at + 1) }
end

-- A type that is too long for a line goes on in the next one, up to its last bracket.
local function joined(lines)
  local list, open = {}, 0
  for _, line in ipairs(lines) do
    if open > 0 then
      list[#list] = list[#list] .. " " .. line:match("^%s*(.*)$")
    else
      list[#list + 1] = line
    end
    if open > 0 or line:find("^%s*@") then
      local _, opened = line:gsub("{", "")
      local _, closed = line:gsub("}", "")
      open = open + opened - closed
    end
  end
  return list
end

local function read_comment(lines)
  local entry = { doc = {}, params = {}, returns = {} }
  for _, line in ipairs(joined(lines)) do
    local tag, rest = line:match("^%s*@(%a+)%s*(.*)$")
    if not tag then entry.doc[#entry.doc + 1] = line:gsub("^ ", "", 1)
    elseif tag == "param" then entry.params[#entry.params + 1] = read_param(rest)
    elseif tag == "return" then entry.returns[#entry.returns + 1] = rest end
  end
  return entry
end

---All annotated definitions of a file, in order.
---@param path string
---@return perigee.Annotation[]
function annotations.read(path)
  local list, comment, number = {}, nil, 0
  for line in assert(io.open(path, "r")):lines() do
    number = number + 1
    local text = line:match("^%s*%-%-%-(.*)$")
    if text and not text:find("^%-") then
      comment = comment or {}
      comment[#comment + 1] = text
    else
      local receiver, name, arguments = definition(line)
      if receiver then
        local entry = read_comment(comment or {})
        entry.receiver, entry.name, entry.file, entry.line = receiver, name, path, number
        entry.arguments = {}
        for argument in (arguments or ""):gmatch("[%w_.]+") do table.insert(entry.arguments, argument) end
        entry.documented = comment ~= nil
        list[#list + 1] = entry
      end
      comment = nil
    end
  end
  return list
end

return annotations
