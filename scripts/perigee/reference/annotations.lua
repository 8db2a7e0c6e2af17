-- SPDX-License-Identifier: Apache-2.0
-- Comments behind `---` in Lua sources, with what they stand above: the one place where functions written in Lua are
-- documented.

local native = require "perigee.native"

local annotations = {}

---@class perigee.AnnotatedClass
---@field name string "perigee.Layer"
---@field parent? string
---@field doc string[] lines of text
---@field fields {name: string, type: string, doc: string, optional: boolean}[]
---@field lines string[] its @overload and @operator lines

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
  local entry = { doc = {}, params = {}, returns = {}, fields = {}, lines = {} }
  for _, line in ipairs(joined(lines)) do
    local tag, rest = line:match("^%s*@(%a+)%s*(.*)$")
    if not tag then entry.doc[#entry.doc + 1] = line:gsub("^ ", "", 1)
    elseif tag == "param" then entry.params[#entry.params + 1] = read_param(rest)
    elseif tag == "return" then entry.returns[#entry.returns + 1] = rest
    elseif tag == "class" then entry.class, entry.parent = rest:match("^([%w_.]+)%s*:?%s*([%w_.]*)")
    elseif tag == "field" then entry.fields[#entry.fields + 1] = read_param(rest)
    elseif tag == "overload" or tag == "operator" then entry.lines[#entry.lines + 1] = "@" .. tag .. " " .. rest end
  end
  return entry
end

-- The text of a line behind its three dashes; nil: it has none, or more.
local function comment_text(line)
  local text = line:match("^%s*%-%-%-(.*)$")
  return text and not text:find("^%-") and text or nil
end

---All annotated definitions of a file, in order.
---@param path string
---@return perigee.Annotation[]
function annotations.read(path)
  local list, comment, number = {}, nil, 0
  for line in assert(io.open(path, "r")):lines() do
    number = number + 1
    local text = comment_text(line)
    if text then
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

local HIDDEN_FOLDERS = { command = true, lint = true, prompt = true, reference = true, native = true }

---The Lua files of users' part.
---@param with_native? boolean also those over the C interface
---@return {path: string, short: string}[]
function annotations.sources(with_native)
  local folder = native.module_dir
  local pipe = assert(io.popen("find -L '" .. folder .. "' -name '*.lua' | LC_ALL=C sort"))
  local list = {}
  for path in pipe:lines() do
    local short = path:sub(#folder + 2)
    local part = short:match("^(%w+)/") or ""
    if not HIDDEN_FOLDERS[part] or with_native and part == "native" then
      list[#list + 1] = { path = path, short = short }
    end
  end
  pipe:close()
  return list
end

-- The classes that a file annotates are added to a list.
local function add_classes(list, path)
  local comment = {}
  for line in assert(io.open(path, "r")):lines() do
    local text = comment_text(line)
    if text then
      comment[#comment + 1] = text
    elseif comment[1] then
      local entry = read_comment(comment)
      if entry.class then
        list[#list + 1] = { name = entry.class, parent = entry.parent ~= "" and entry.parent or nil, doc = entry.doc,
                            fields = entry.fields, lines = entry.lines }
      end
      comment = {}
    end
  end
end

---The classes that sources annotate.
---@return perigee.AnnotatedClass[]
function annotations.classes()
  local list = {}
  for _, source in ipairs(annotations.sources(true)) do add_classes(list, source.path) end
  return list
end

---Whether a function with a signature, annotated by one parameter after the other, takes them in a table too. A
---method's signature lacks the tensor.
---@param entry perigee.Annotation
---@param name string its public name
---@return boolean
function annotations.takes_table(entry, name)
  local params = native.signatures[entry.name]
  if not params or not (name:find("^pg%.") or name:find("^tensor:")) then return false end
  for i, p in ipairs(entry.params) do
    local is_self = i == 1 and p.type == "perigee.Tensor"
    if not is_self and not params.by_name[p.name] and p.name ~= "options" then return false end
  end
  return entry.params[1] ~= nil
end

return annotations
