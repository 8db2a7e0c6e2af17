-- SPDX-License-Identifier: Apache-2.0
-- help(value) and ?name: what the reference knows of it, as text.

local native = require "perigee.native"
local reference = require "perigee.reference"
local heading = require "perigee.reference.heading"

local help = {}

local function list(lines, title, items)
  if #items == 0 then return end
  lines[#lines + 1] = title
  for _, item in ipairs(items) do lines[#lines + 1] = "  " .. item end
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
  local lines = { heading(entry) }
  if entry.doc ~= "" then lines[#lines + 1] = "  " .. reference.wrapped(entry.doc, 118):gsub("\n", "\n  ") end
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
  return ("tensor %s, %s on %s%s\n%s"):format(tostring(t.shape), t.dtype, t.device,
           t.requires_grad and ", requires_grad" or "",
           "  t:NAME() for its methods (Tab behind the colon lists them); help \"sum\" says more of one")
end

-- What a module has: "pg.", "nn." and so on, a line an entry.
local function module_text(value)
  local pg = require "perigee"
  local prefix = rawequal(value, pg) and "pg."
  for _, name in ipairs { "nn", "optim", "data", "amp" } do
    if rawequal(value, rawget(pg, name)) then prefix = name .. "." end
  end
  if not prefix then return nil end
  local lines, all = {}, reference.all()
  for _, name in ipairs(reference.names()) do
    if name:sub(1, #prefix) == prefix then
      lines[#lines + 1] = ("%-28s %s"):format(name, all[name].doc:match("^[^\n]*"):sub(1, 90))
    end
  end
  return table.concat(lines, "\n")
end

-- What a value is, or nil.
local function describe(value)
  if native.is_tensor(value) then return tensor_text(value) end
  local entry = (type(value) == "function" or type(value) == "table") and reference.find_value(value)
  if entry then return help.text(entry) end
  local members = type(value) == "table" and module_text(value)
  if members then return members end
  local meta = type(value) == "table" and getmetatable(value)
  local class = type(meta) == "table" and rawget(meta, "__name")
  entry = class and reference.find("nn." .. class)
  if entry then return tostring(value) .. "\n" .. help.text(entry) end
  if type(value) == "function" then
    local info = debug.getinfo(value, "S")
    if info.what ~= "C" then return ("a Lua function of %s, lines %d to %d"):format(info.short_src, info.linedefined,
                                                                                 info.lastlinedefined) end
  end
end

-- Names that contain the word, for what was not found.
local function related(word)
  local bare, list_of = (word:match("[%w_]+$") or word):lower(), {}
  for _, name in ipairs(reference.names()) do
    if name:lower():find(bare, 1, true) then list_of[#list_of + 1] = name end
  end
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

-- What a dotted name means at the prompt; nil where it means nothing.
local function value_of(env, text)
  local value = env
  for part in text:gsub(":", "."):gmatch("[^.]+") do
    local ok, found = pcall(function() return value[part] end)
    if not ok or found == nil then return nil end
    value = found
  end
  return value
end

---Prints what a name is.
---@param text string "softmax", "nn.Conv2d", "x:sum", or a name of the prompt's
---@param env? table names at the prompt
function help.show_text(text, env)
  local value = env and text:find("^[%a_][%w_.:]*$") and value_of(env, text)
  local said = value ~= nil and type(value) ~= "string" and describe(value)
  if said then return print(said) end
  local entry = reference.find(text) or reference.find((text:gsub("^[^:]*:", "")))
  if entry then return print(help.text(entry)) end
  if value ~= nil and value ~= false then return print(("a %s; there is no more to say"):format(type(value))) end
  local names = related(text)
  if #names == 0 then return print(("nothing is known of %q"):format(text)) end
  print(("nothing is called %q; there are %s"):format(text, table.concat(names, ", ", 1, math.min(#names, 12))))
end

return help
