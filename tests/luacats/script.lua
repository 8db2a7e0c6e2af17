-- SPDX-License-Identifier: Apache-2.0
-- A script as its editor reads it, line by line: the types of its locals, those that ---@type says, and its classes, of
-- ---@class lines above locals, with the fields that their methods give self.

local complete = require "luacats.complete"
local types = require "luacats.types"

local script = {}

local function type_of(completer, text)
  local ok, tree = pcall(completer.type_of, completer, (text:gsub("%s*%-%-.*$", "")))
  return ok and tree or nil
end

local function new_class(completer, name, parent)
  completer.file.classes[name] = { name = name, parents = { parent }, fields = {}, keys = {}, operators = {},
                                   calls = {}, methods = {}, of_script = true }
  return { kind = "name", name = name }
end

local function read_line(completer, line, said)
  local variables = completer.variables
  local name, parent = line:match("^%-%-%-@class ([%w_]+): ([%w_.]+)$")
  if name then return new_class(completer, name, parent) end
  local text = line:match("^%s*%-%-%-@type (.+)$")
  if text then return (types.read(text)) end
  name, text = line:match("^%s*local ([%a_][%w_]*) = (.+)$")
  if name then variables[name] = said or type_of(completer, text) end
  name = line:match("^function ([%w_]+):")
  if name then variables.self = variables[name] end
  name, text = line:match("self%.([%w_]+) = ([^;]+)")
  local class = name and variables.self and completer.file.classes[variables.self.name]
  if class and class.of_script and not class.fields[name] then
    class.fields[name] = { type = type_of(completer, text) or { kind = "name", name = "unknown" } }
  end
end

---What an editor knows at the end of a script.
---@param known table what complete.new answers for the definitions
---@param source string
---@return table completer
function script.read(known, source)
  local classes, variables = {}, {}
  for name, class in pairs(known.file.classes) do classes[name] = class end
  for name, tree in pairs(known.variables) do variables[name] = tree end
  local completer = complete.new(setmetatable({ classes = classes }, { __index = known.file }))
  completer.variables = variables
  local said
  for line in (source .. "\n"):gmatch("([^\n]*)\n") do said = read_line(completer, line, said) end
  return completer
end

return script
