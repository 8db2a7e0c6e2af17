-- SPDX-License-Identifier: Apache-2.0
-- help(value) and ?name: what the reference knows of it, as text.

local native = require "perigee.native"
local reference = require "perigee.reference"
local heading = require "perigee.reference.heading"
local objects = require "perigee.reference.objects"
local columns = require "perigee.printing.columns"

local help = {}

local WIDEST = 118 -- of lines, where the terminal is no narrower

local function width() return math.min(WIDEST, native.terminal_width() or WIDEST) end

-- Lines of a paragraph joined: they were broken for a page of another width.
local function flowing(text)
  return (text:gsub("([^\n])\n([^%s%-*|])", "%1 %2"))
end

local function list(lines, title, items)
  if #items == 0 then return end
  lines[#lines + 1] = title
  for _, item in ipairs(items) do lines[#lines + 1] = columns.wrap("  " .. item, width(), 17) end
end

local function parameter_lines(parameters)
  local items = {}
  for _, p in ipairs(parameters) do
    local extra = p.required and "required" or p.default ~= nil and "default " .. reference.literal(p.default) or nil
    local text = ("%-14s %s"):format(p.name, p.type)
    if p.choices and #p.choices > 0 then text = ("%-14s one of %s"):format(p.name, table.concat(p.choices, ", ")) end
    if p.doc ~= "" then text = text .. ": " .. p.doc end
    items[#items + 1] = extra and ("%s (%s)"):format(text, extra) or text
  end
  return items
end

---The text of an entry.
---@param entry perigee.Entry
---@return string
function help.text(entry)
  local lines = { columns.wrap(heading(entry), width(), 4) }
  if entry.doc ~= "" then lines[2] = "  " .. columns.wrap(flowing(entry.doc), width() - 2):gsub("\n", "\n  ") end
  local inputs, outputs = {}, {}
  for i, input in ipairs(entry.inputs or {}) do inputs[i] = ("%-14s %s"):format(input.name, input.doc) end
  for i, output in ipairs(entry.outputs or {}) do outputs[i] = ("%-14s %s"):format(output.name, output.doc) end
  list(lines, "inputs", inputs)
  list(lines, entry.options and "arguments" or "options", parameter_lines(entry.parameters))
  list(lines, "options", parameter_lines(entry.options or {}))
  list(lines, "gives", outputs)
  list(lines, "returns", entry.returns)
  return table.concat(lines, "\n")
end

local function tensor_text(t)
  return columns.wrap(("tensor %s, %s on %s%s\n%s"):format(tostring(t.shape), t.dtype, t.device,
           t.requires_grad and ", requires_grad" or "",
           "  t:NAME() for its methods (Tab behind the colon lists them); help \"sum\" says more of one"), width(), 2)
end

-- A line an entry: its name and how its text begins.
local function entry_lines(names, texts)
  local longest = 0
  for _, name in ipairs(names) do longest = math.max(longest, #name) end
  local lines = {}
  for i, name in ipairs(names) do
    local text = ("%-" .. math.min(longest, 99) .. "s  %s"):format(name, texts[i]:match("^[^\n]*"))
    lines[i] = columns.cut(text, width())
  end
  return table.concat(lines, "\n")
end

-- What a package has: pg, nn, optim.sched and so on.
local function package_text(value)
  local prefix, all = objects.prefix_of(value), reference.all()
  if not prefix then return nil end
  local names, texts = {}, {}
  for _, name in ipairs(reference.names()) do
    if name:sub(1, #prefix) == prefix then names[#names + 1], texts[#texts + 1] = name, all[name].doc end
  end
  return entry_lines(names, texts)
end

-- What can be done with an object: its text, and the methods of its classes.
local function object_text(object)
  local classes = objects.classes_of(object)
  if #classes == 0 then return nil end
  local meta, parts = debug.getmetatable(object), {}
  if type(meta) == "table" and rawget(meta, "__tostring") then parts[1] = tostring(object) end
  local class = type(meta) == "table" and rawget(meta, "__name")
  local entry = type(class) == "string" and reference.find("nn." .. class)
  if entry then parts[#parts + 1] = help.text(entry) end
  local names, texts, told = {}, {}, {}
  for i = 1, #classes do
    local methods = {}
    for name in pairs(classes[i].methods) do methods[#methods + 1] = name end
    table.sort(methods)
    for _, name in ipairs(methods) do
      if not told[name] then
        told[name] = true
        names[#names + 1] = classes[i].name .. ":" .. name
        texts[#texts + 1] = classes[i].methods[name].doc
      end
    end
  end
  parts[#parts + 1] = entry_lines(names, texts)
  return table.concat(parts, "\n")
end

-- What a value is, or nil.
local function describe(value)
  if native.is_tensor(value) then return tensor_text(value) end
  local kind = type(value)
  local entry = (kind == "function" or kind == "table") and reference.find_value(value)
  if entry then return help.text(entry) end
  if kind == "table" or kind == "userdata" then
    local text = kind == "table" and package_text(value) or object_text(value)
    if text then return text end
    local meta = debug.getmetatable(value)
    if type(meta) == "table" and rawget(meta, "__tostring") then return tostring(value) end
  end
  if kind == "function" then
    local info = debug.getinfo(value, "S")
    if info.what ~= "C" then return ("a Lua function of %s, lines %d to %d"):format(info.short_src, info.linedefined,
                                                                                 info.lastlinedefined) end
  end
end

-- Names that contain the word, for what was not found.
local function related(word)
  local bare, list_of, within = (word:match("[%w_]+$") or word):lower(), {}, {}
  for _, name in ipairs(reference.names()) do
    local own = name:lower():match("[^.:]*$") -- those that begin so come first
    if own:sub(1, #bare) == bare then
      list_of[#list_of + 1] = name
    elseif name:lower():find(bare, 1, true) then
      within[#within + 1] = name
    end
  end
  for _, name in ipairs(within) do list_of[#list_of + 1] = name end
  return list_of
end

---Prints what a value is: a function, a class, a tensor, a layer, or the name of one as text.
function help.show(...)
  if select("#", ...) == 0 then
    return print("help(pg.relu), help \"softmax\", ?nn.Conv2d; :help for the prompt itself")
  end
  local value = ...
  if type(value) == "string" then return help.show_text(value) end
  print(describe(value) or ("a %s; there is no more to say"):format(type(value)))
end

-- What a dotted name means at the prompt, and the object whose member it is; nil where it means nothing.
local function value_of(env, text)
  local value, owner = env, nil
  for part in text:gsub(":", "."):gmatch("[^.]+") do
    local ok, found = pcall(function() return value[part] end)
    if not ok or found == nil then return nil end
    owner, value = value, found
  end
  return value, owner
end

-- What is said of a name of the prompt's, or nil.
local function known_text(env, text)
  local value, owner = value_of(env, text)
  if value == nil or type(value) == "string" then return nil, value end
  local entry
  if owner ~= env and type(value) == "function" and not native.is_tensor(owner) then
    entry = objects.find_method(owner, text:match("[%w_]+$"))
  end
  return entry and help.text(entry) or describe(value), value
end

---Prints what a name is.
---@param text string "softmax", "nn.Conv2d", "x:sum", or a name of the prompt's
---@param env? table names at the prompt
function help.show_text(text, env)
  local said, value
  if env and text:find("^[%a_][%w_.:]*$") then said, value = known_text(env, text) end
  if said then return print(said) end
  local entry = reference.find(text) or reference.find((text:gsub("^[^:]*:", "")))
  if entry then return print(help.text(entry)) end
  if value ~= nil and value ~= false then return print(("a %s; there is no more to say"):format(type(value))) end
  local names = related(text)
  if #names == 0 then return print(("nothing is known of %q"):format(text)) end
  print(columns.wrap(("nothing is called %q; there are %s"):format(text, table.concat(names, ", ", 1,
                     math.min(#names, 12))), width()))
end

return help
