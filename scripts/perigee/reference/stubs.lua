-- SPDX-License-Identifier: Apache-2.0
-- The reference as a definition file for LuaLS and other editors: names, types and texts, no code. tests/luacats reads
-- what is made here as they do.

local native = require "perigee.native"
local columns = require "perigee.printing.columns"
local reference = require "perigee.reference"

local HEAD = [[
---@meta perigee
-- SPDX-License-Identifier: Apache-2.0
-- Made by scripts/dev/docs. Editors complete `require "perigee"` from it: put its folder into Lua.workspace.library.
]]

-- Modules whose functions stand in files of their own, `perigee_NAME.lua`: LuaLS skips files of more than 500 KB.
local APART = { data = true, image = true, nn = true }

local KEYWORDS = {}
for word in ([[and break do else elseif end false for function goto if in local nil not or repeat return then true until
               while]]):gmatch("%a+") do KEYWORDS[word] = true end

-- A comment's lines. A fourth dash would make them no annotation, a first | or @ another one.
local function comment(lines, text)
  for line in (columns.wrap(text, 117) .. "\n"):gmatch("([^\n]*)\n") do
    if line ~= "" then lines[#lines + 1] = (line:find("^[-|@]") and "--- " or "---") .. line end
  end
end

-- " # text": without the sign a "[N, C]" behind a type reads as a part of it.
local function remark(text) return text and text ~= "" and " # " .. text:gsub("\n", " ") or "" end

-- '"mean"|"sum"'
local function one_of(names)
  local list = {}
  for i, name in ipairs(names) do list[i] = ('"%s"'):format(name) end
  return table.concat(list, "|")
end

-- The type of an option. A function's results go on behind the next comma: inside of a table it needs parentheses.
local function option_type(p)
  if p.choices and p.choices[1] then return one_of(p.choices) end
  return p.type:find("fun%(") and "(" .. p.type .. ")" or p.type
end

-- "{axis?: integer, keepdim?: boolean}"
local function table_type(parameters)
  local parts = {}
  for i, p in ipairs(parameters) do
    parts[i] = ("%s%s: %s"):format(p.name, p.required and "" or "?", option_type(p))
  end
  return #parts > 0 and "{" .. table.concat(parts, ", ") .. "}" or "table"
end

-- "a|b|{...}" of types that may be unions, each once, and of the table of options. An editor shows a union with any as
-- any, and still offers what the table names.
local function union(list, options)
  local parts, seen = {}, {}
  local function add(part)
    if not seen[part] then parts[#parts + 1], seen[part] = part, true end
  end
  for _, kind in ipairs(list) do
    if kind:find("[{(<]") then add(kind) else kind:gsub("[^|]+", add) end
  end
  if seen.any then parts = { "any" } end
  parts[#parts + 1] = options
  return table.concat(parts, "|")
end

-- Names and defaults of options as the text of their argument: editors show it with the function.
local function told(parameters)
  local parts = {}
  for i, p in ipairs(parameters) do
    local default = type(p.default) == "string" and p.default or reference.literal(p.default)
    parts[i] = p.name .. ((p.required or p.default == nil or default == "{}") and "" or "=" .. default)
  end
  return remark(table.concat(parts, ", "))
end

local LISTS = { ["integer|integer[]"] = true, ["perigee.Tensor[]"] = true } -- kinds that several values may make up

-- Options as the last arguments of a function: the first without its name, or all in a table; and the others.
local function options_stub(lines, names, parameters, first_type)
  local first = parameters[1]
  names[#names + 1] = "options"
  if first and not first.named then first_type = first_type or option_type(first) end
  lines[#lines + 1] = ("---@param options? %s%s"):format(union({ first_type }, table_type(parameters)),
                                                        told(parameters))
  if not first_type or not parameters[2] and not LISTS[first_type] then return end
  names[#names + 1] = "..."
  lines[#lines + 1] = "---@param ... any"
end

-- ---- classes ----

-- The local that stands for a class: "perigee.nn.init" is nn_init, "perigee.nn.Linear" Linear.
local function local_name(class)
  if class == "perigee" then return "pg" end
  local path = class:gsub("^perigee%.", "")
  return path:match("(%u[%w_]*)$") or path:gsub("%.", "_")
end

-- Whose methods stand behind a prefix of the reference.
local OTHERS = { ["lbfgs:"] = "LBFGS", ["scaler:"] = "GradScaler" }
local function owner_of(prefix)
  return OTHERS[prefix] or prefix:gsub("^%l", string.upper):gsub("_(%l)", string.upper):gsub(":$", "")
end

-- The classes of layers whose parameters a plugin names.
local function add_plugin_layers(classes)
  for _, name in ipairs(native.layer_names()) do
    local fields = {}
    for i, p in ipairs(native.layer(name).params) do fields[i] = { name = p, type = "perigee.Tensor" } end
    if fields[1] then
      classes[#classes + 1] = { name = "perigee.nn." .. name, parent = "perigee.Layer", doc = {}, fields = fields,
                                lines = {} }
    end
  end
end

-- What a class is called with, by LuaLS's lights not inherited: the nearest @overload lines.
local function calls_of(class, by_name)
  local list = {}
  for _, line in ipairs(class.lines) do list[#list + 1] = line:match("^@overload.*") end
  local parent = by_name[class.parent]
  return list[1] and list or parent and calls_of(parent, by_name) or list
end

local function class_stub(lines, class, by_name)
  lines[#lines + 1] = ""
  comment(lines, table.concat(class.doc, "\n"))
  lines[#lines + 1] = "---@class " .. class.name .. (class.parent and ": " .. class.parent or "")
  for _, f in ipairs(class.fields) do
    lines[#lines + 1] = ("---@field %s%s %s%s"):format(f.name, f.optional and "?" or "", f.type, remark(f.doc))
  end
  for _, line in ipairs(class.lines) do
    if not line:find("^@overload") then lines[#lines + 1] = "---" .. line end
  end
  for _, line in ipairs(calls_of(class, by_name)) do lines[#lines + 1] = "---" .. line end
  lines[#lines + 1] = ("local %s = {}"):format(local_name(class.name))
end

local function class_stubs(lines)
  local classes, by_name = require("perigee.reference.annotations").classes(), {}
  add_plugin_layers(classes)
  table.sort(classes, function(a, b) return a.name < b.name end)
  for _, class in ipairs(classes) do by_name[class.name] = class end
  for _, class in ipairs(classes) do class_stub(lines, class, by_name) end
  return by_name
end

-- ---- functions ----

-- What a name of the reference is called in this file: "nn.init.zeros_" is nn_init.zeros_.
local function target(name)
  local prefix, rest = name:match("^([%l_]+:)(.*)$")
  if prefix then return owner_of(prefix) .. ":" .. rest end
  local path, last = name:gsub("^pg%.", ""):match("^(.-)%.?([^.]+)$")
  return (path == "" and "pg" or path:gsub("%.", "_")) .. "." .. last
end

local function tensor_type(entry, input)
  return "perigee.Tensor" .. (input.variadic and "[]" or entry.op.scalar and "|number|boolean" or "")
end

local function overload(lines, is_method, arguments, results)
  lines[#lines + 1] = ("---@overload fun(%s%s): %s"):format(is_method and "self: perigee.Tensor, " or "", arguments,
                                                           results)
end

-- The other ways to call an operator, of which an editor takes none from the main one: all in a table; options behind
-- those tensors that are needed; attributes before tensors, as in x:gather(1, index).
local function other_calls(lines, entry, inputs, is_method, results)
  if not inputs[1] then return end
  local fields, arguments, optional = {}, {}, false
  for i, input in ipairs(inputs) do
    fields[i] = { name = input.name, type = tensor_type(entry, input) }
    optional = optional or input.optional and not entry.op.scalar
    if optional and entry.parameters[1] then
      arguments[i] = "options: " .. table_type(entry.parameters)
      if i > 1 then overload(lines, is_method, table.concat(arguments, ", "), results) end
    end
    arguments[i] = input.name .. ": " .. fields[i].type
  end
  for _, p in ipairs(entry.parameters) do fields[#fields + 1] = p end
  overload(lines, is_method, "arguments: " .. table_type(fields), results)
  if #entry.parameters > 0 and #inputs > (is_method and 0 or 1) then overload(lines, is_method, "...: any", results) end
end

local function operator_stub(lines, entry, where, is_method)
  local names, inputs = {}, { unpack(entry.inputs, is_method and 2 or 1) }
  for i, input in ipairs(inputs) do
    names[i] = input.name
    lines[#lines + 1] = ("---@param %s%s %s%s"):format(input.name, input.optional and "?" or "",
                                                      tensor_type(entry, input), remark(input.doc))
  end
  if #entry.parameters > 0 then options_stub(lines, names, entry.parameters) end
  local count = entry.op.visible_outputs
  for i = 1, count do
    lines[#lines + 1] = "---@return perigee.Tensor" .. (count > 1 and " " .. entry.outputs[i].name or "")
  end
  other_calls(lines, entry, inputs, is_method, ("perigee.Tensor, "):rep(math.max(count, 1)):sub(1, -3))
  lines[#lines + 1] = ("function %s(%s) end"):format(where, table.concat(names, ", "))
end

local function constructor_stub(lines, entry, where, known)
  local class, names = "perigee." .. (entry.alias_of or entry.name), {}
  local kind = known[class] and class or entry.name == "amp.GradScaler" and "perigee.GradScaler" or
    entry.kind == "layer" and "perigee.Layer" or "perigee.Optimizer"
  local has_list = entry.parameters[1] and entry.parameters[1].name == "params"
  options_stub(lines, names, entry.parameters,
               entry.kind == "optimizer" and not has_list and "perigee.Tensor[]" or nil)
  lines[#lines + 1] = "---@return " .. kind
  lines[#lines + 1] = ("function %s(%s) end"):format(where, table.concat(names, ", "))
end

-- The types of all that may stand without a name, and the table of all.
local function any_of(parameters)
  local kinds = {}
  for _, p in ipairs(parameters) do
    if not p.named then kinds[#kinds + 1] = option_type(p) end
  end
  return union(kinds, table_type(parameters))
end

-- The parameters of a function in one table, with what its options name; nil if that is its last argument anyway.
local function all_in_table(entry)
  local parts = {}
  for i, p in ipairs(entry.parameters) do
    local options = p.name == "options" and p.type:match("^{(.*)}$")
    if options and i == 1 or p.name == "..." then return nil end
    parts[i] = options or ("%s?: %s"):format(p.name, p.type)
  end
  return parts[1] and "{" .. table.concat(parts, ", ") .. "}"
end

local function function_stub(lines, entry, where)
  local names = {}
  if entry.grammar then
    lines[#lines + 1] = "---@param ... " .. any_of(entry.parameters) .. told(entry.parameters)
    names[1] = "..."
  else
    for i, p in ipairs(entry.parameters) do
      names[i] = p.name
      lines[#lines + 1] = ("---@param %s%s %s%s"):format(p.name, (p.required or p.name == "...") and "" or "?", p.type,
                                                        remark(p.doc))
    end
  end
  for _, r in ipairs(entry.returns) do lines[#lines + 1] = "---@return " .. r end
  local fields = entry.takes_table and all_in_table(entry)
  if fields then overload(lines, where:find(":"), "arguments: " .. fields, "perigee.Tensor") end
  lines[#lines + 1] = ("function %s(%s) end"):format(where, table.concat(names, ", "))
end

local function stub(lines, entry, known)
  local where = target(entry.name)
  if KEYWORDS[where:match("[%w_]+$")] then return end
  lines[#lines + 1] = ""
  comment(lines, entry.doc)
  if entry.kind == "operator" then operator_stub(lines, entry, where)
  elseif entry.kind == "layer" or entry.kind == "optimizer" then constructor_stub(lines, entry, where, known)
  else function_stub(lines, entry, where) end
end

-- Operators whose first argument is one tensor are methods too, and some write into it.
local function method_stubs(lines, entry)
  local plain, op = entry.name:sub(4), native.operators.get(entry.name:match("^pg%.(.*)$") or "")
  if not op or not native.operators.is_method(plain) then return end
  local function add(name, doc)
    lines[#lines + 1] = ""
    comment(lines, doc)
    local own = reference.all()["tensor:" .. plain]
    if own then function_stub(lines, own, "Tensor:" .. name)
    else operator_stub(lines, entry, "Tensor:" .. name, true) end
  end
  if not reference.all()["tensor:" .. plain] and not KEYWORDS[plain] then add(plain, entry.doc) end
  if op.in_place and not reference.all()["tensor:" .. plain .. "_"] then
    add(plain .. "_", ("x:%s, written into x."):format(plain))
  end
end

local function alias(lines, name, names) lines[#lines + 1] = ("---@alias perigee.%s %s"):format(name, one_of(names)) end

-- What stands before the first function of a file of its own.
local function head_of(module)
  return { (HEAD:gsub("%-%-%-@meta perigee", "---@meta _")),
           ("---@class perigee.%s\nlocal %s = {}"):format(module, module) }
end

local function text_of(lines) return (table.concat(lines, "\n"):gsub("[ \t]+\n", "\n"):gsub("\n\n\n+", "\n\n")) end

---The texts of docs/library, by file.
---@return table<string, string>
return function()
  local lines, apart, files = { HEAD }, {}, {}
  alias(lines, "Dtype", native.dtypes.names)
  alias(lines, "MemoryFormat", require("perigee.native.formats").ALL)
  alias(lines, "LossName", require("perigee.fit").loss_names())
  alias(lines, "MetricName", require("perigee.fit.metrics").names())
  alias(lines, "Reduction", require("perigee.nn.loss.common").REDUCTIONS)
  local known = class_stubs(lines)
  for _, name in ipairs(reference.names()) do
    local entry = reference.all()[name]
    local module = target(name):match "^(.-)%."
    if APART[module] then apart[module] = apart[module] or head_of(module) end
    stub(apart[module] or lines, entry, known)
    method_stubs(lines, entry)
  end
  lines[#lines + 1] = "\nreturn pg\n"
  files["perigee.lua"] = text_of(lines)
  for module, list in pairs(apart) do files[("perigee_%s.lua"):format(module)] = text_of(list) .. "\n" end
  return files
end
