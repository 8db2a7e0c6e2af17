-- SPDX-License-Identifier: Apache-2.0
-- Reads a definition file for LuaLS: what its annotations declare, and where they are not what LuaLS accepts
-- (luals.github.io/wiki/annotations, /wiki/diagnostics). Only what definition files need: classes, fields, aliases,
-- operators, overloads, functions.

local types = require "luacats.types"

local luacats = {}

local BUILT_IN = {}
for name in ([[nil any boolean string number integer function table thread userdata lightuserdata unknown true
               false]]):gmatch("%a+") do BUILT_IN[name] = true end

local VISIBILITY = { public = true, protected = true, private = true, package = true }

local OPERATORS = { unm = 0, len = 0, bnot = 0, call = 1 } -- how many operands it names at most
for name in ("add sub mul div mod pow idiv band bor bxor shl shr concat"):gmatch("%a+") do OPERATORS[name] = 1 end

local function fail(text, ...) error({ cats = text:format(...) }, 0) end

-- The text behind a type. Some first letters would go on with the type, and quotes end what is shown.
local function check_text(rest)
  if rest ~= "" and not rest:find("^[#%a]") then fail("%q reads as part of the type: put # before it", rest) end
  if rest:find('^#?%s*"[^"]*"%s*%S') then fail("what stands behind the quotes is not shown: %s", rest) end
end

-- A type and its text; its names are looked up when all are known.
local function read_type(file, text)
  local tree, rest = types.read(text)
  local line = file.line
  types.names(tree, function(name) file.used[#file.used + 1] = { name = name, line = line } end)
  return tree, rest
end

local function declare(file, name, what)
  if file.declared[name] then fail("%s %s is declared a second time", what, name) end
  file.declared[name] = true
end

-- ---- tags ----

local tags = {}

function tags.meta(file, rest)
  if file.line ~= 1 then fail("@meta must be the first line") end
  file.meta = rest
end

function tags.alias(file, rest)
  local name, text = rest:match("^([%a_][%w_.]*)%s+(.+)$")
  if not name then fail("@alias needs a name and a type") end
  declare(file, name, "alias")
  local tree, behind = read_type(file, text)
  check_text(behind)
  file.aliases[name] = tree
end

tags["class"] = function(file, rest)
  local name, behind = rest:match("^([%a_][%w_.]*)%s*(.*)$")
  local parents = behind == "" and "" or behind and behind:match("^:%s*([%w_., ]+)$")
  if not name then fail("@class needs a name") end
  if not parents then fail("@class: %q behind the name is a comment; parents stand behind a colon", behind) end
  declare(file, name, "class")
  local class = { name = name, parents = {}, fields = {}, keys = {}, operators = {}, calls = {}, methods = {} }
  for parent in parents:gmatch("[%w_.]+") do
    class.parents[#class.parents + 1] = parent
    file.used[#file.used + 1] = { name = parent, line = file.line }
  end
  file.classes[name], file.block.class = class, class
end

local function class_above(file, tag) return file.block.class or fail("no @class above @%s", tag) end

function tags.field(file, rest)
  local class = class_above(file, "field")
  local name, optional
  local key, kind = rest:match("^%[([^%]]+)%]%s+(.+)$")
  if not key then name, optional, kind = rest:match("^([%a_][%w_]*)(%??)%s+(.+)$") end
  if not kind then fail("@field needs a name and a type") end
  if types.keywords[name] then fail("the keyword %q is no name", name) end
  if VISIBILITY[name] then fail("%s says who may see a field: it is no name", name) end
  if class.fields[name] then fail("field %s.%s is declared a second time", class.name, name) end
  if name and class.keys[1] then fail("field %s stands behind a [type]: names come first", name) end
  local tree, behind = read_type(file, kind)
  check_text(behind)
  if key then class.keys[#class.keys + 1] = { key = read_type(file, key), type = tree }
  else class.fields[name] = { type = tree, optional = optional == "?" } end
end

function tags.operator(file, rest)
  local class = class_above(file, "operator")
  local name, operand, text = rest:match("^(%a+)%s*(%b())%s*:%s*(.+)$")
  if not name then name, text = rest:match("^(%a+)%s*:%s*(.+)$") end
  if not name then fail("@operator needs name(type): type") end
  if not OPERATORS[name] then fail("LuaLS knows no operator %s", name) end
  if operand and OPERATORS[name] == 0 then fail("operator %s has no operand", name) end
  if operand then
    local _, behind = read_type(file, operand:sub(2, -2))
    if behind ~= "" then fail("operator %s: one operand, got %s", name, operand) end
  end
  class.operators[name] = read_type(file, text)
end

function tags.overload(file, rest)
  local tree, behind = read_type(file, rest)
  if tree.kind ~= "function" or behind ~= "" then fail("@overload needs a fun() and nothing behind it") end
  table.insert(file.block.class and file.block.class.calls or file.block.overloads, tree)
end

function tags.param(file, rest)
  local name, optional, text = rest:match("^([%w_.]+)(%??)%s+(.+)$")
  if not name then fail("@param needs a name and a type") end
  if name == "..." and optional == "?" then fail("... is optional without a ?") end
  local tree, behind = read_type(file, text)
  check_text(behind)
  for _, p in ipairs(file.block.params) do
    if p.name == name then fail("@param %s stands there twice", name) end
  end
  table.insert(file.block.params, { name = name, type = tree, optional = optional == "?" })
end

-- type [name], type [name] text
tags["return"] = function(file, rest)
  local behind = rest
  repeat
    local tree
    tree, behind = read_type(file, behind)
    table.insert(file.block.returns, tree)
    local name, more = behind:match("^([%a_][%w_]*)%s*(.*)$")
    if not name then name, more = behind:match("^(%.%.%.)%s*(.*)$") end
    if not name then check_text(behind) end
    local follows = (more or behind):match("^,%s*(.+)$")
    behind = follows or behind
  until not follows
end

-- ---- code ----

local function new_block() return { params = {}, returns = {}, overloads = {} } end

-- Each @param names an argument, in their order, and each argument has one.
local function check_arguments(block, arguments)
  local names, at = {}, {}
  for name in arguments:gmatch("[%w_.]+") do
    names[#names + 1], at[name] = name, #names + 1
    if types.keywords[name] then fail("the keyword %q is no name", name) end
  end
  for i, p in ipairs(block.params) do
    if not at[p.name] then fail("the function has no argument %s", p.name) end
    if names[i] and at[p.name] < i then fail("@param %s is out of order", p.name) end
    block.params[p.name] = p
  end
  for i, name in ipairs(names) do
    if not block.params[name] then fail("argument %s has no @param", name) end
    if block.params[i].name ~= name then fail("@param %s is out of order", block.params[i].name) end
  end
end

local function define(file, owner, separator, name, arguments)
  local class = file.locals[owner]
  if not class then fail("assigns the global %s", owner) end
  if class.methods[name] or class.fields[name] then fail("%s%s%s is defined a second time", owner, separator, name) end
  local block = file.block
  class.methods[name] = { kind = "function", returns = block.returns, overloads = block.overloads,
                          parameters = block.params, is_method = separator == ":" }
  check_arguments(block, arguments)
end

local function read_code(file, line)
  local owner, separator, name, arguments = line:match("^function%s+([%w_]+)([.:])([%w_]+)(%b()) end$")
  local own = line:match("^local ([%w_]+) = {}$")
  if owner then
    define(file, owner, separator, name, arguments)
  elseif own then
    if file.locals[own] then fail("local %s stands there twice", own) end
    file.locals[own] = file.block.class or fail("local %s has no @class", own)
  elseif line:find("^return [%w_]+$") then
    file.result = file.locals[line:match("[%w_]+$")]
  else
    local global = line:match("^function%s+([%w_]+)") or line:match("^([%a_][%w_.]*)%s*=")
    if global then fail("assigns the global %s", global) end
    fail("no line of a definition file")
  end
  if not owner and (file.block.params[1] or file.block.returns[1]) then fail("@param or @return above no function") end
  file.block = new_block()
end

local function read_line(file, line)
  if line:find("^%-%-%-%-") then fail("four dashes make no annotation") end
  local tag, rest = line:match("^%-%-%-%s*@([%w_]+)%s*(.*)$")
  if tag then
    if not tags[tag] then fail("unknown tag @%s", tag) end
    tags[tag](file, rest)
  elseif line:find("^%-%-%-%s*|") then
    fail("a text that begins with | is read as a type")
  elseif line == "" then
    if file.block.params[1] or file.block.returns[1] then fail("@param or @return above no function") end
    file.block = new_block()
  elseif not line:find("^%-%-") then
    read_code(file, line)
  end
end

---Reads a definition file.
---@param text string
---@param path? string what problems begin with
---@return table file .classes .aliases by name; .meta what require calls it; .result the class of what it returns
---@return string[] problems "file:line: what is wrong", in order
function luacats.read(text, path)
  local file = { classes = {}, aliases = {}, locals = {}, declared = {}, used = {}, block = new_block(), line = 0 }
  local problems = {}
  local function complain(line, what)
    problems[#problems + 1] = { line, ("%s:%d: %s"):format(path or "?", line, what) }
  end
  for line in (text:gsub("\n$", "") .. "\n\n"):gmatch("([^\n]*)\n") do
    file.line = file.line + 1
    local ok, why = pcall(read_line, file, line)
    if not ok then
      if type(why) ~= "table" then error(why, 0) end
      complain(file.line, why.cats)
      if not line:find("^%-%-") then file.block = new_block() end
    end
  end
  for _, use in ipairs(file.used) do
    if not BUILT_IN[use.name] and not file.declared[use.name] then
      complain(use.line, ("no type is called %s"):format(use.name))
    end
  end
  table.sort(problems, function(a, b) return a[1] < b[1] end)
  for i, problem in ipairs(problems) do problems[i] = problem[2] end
  return file, problems
end

return luacats
