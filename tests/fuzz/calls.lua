-- SPDX-License-Identifier: Apache-2.0
-- Calls drawn from what the reference knows of every public name: parameters, types, options.

local native = require "perigee.native"
local reference = require "perigee.reference"
local R = require "fuzz.random"
local V = require "fuzz.values"
local A = require "fuzz.arguments"
local receivers = require "fuzz.receivers"

local C = {}

-- Sources of numbers that come out differently each time, and what ends or waits: not for a test that repeats itself.
local LEFT_OUT = {
  ["pg.load_plugin"] = true, -- native code, and it stays
  ["pg.reset"] = true,       -- of the whole process
  ["config.visible_devices"] = true,
}

local function join(list) return table.concat(list, ", ") end

-- Options as "name=value", some of them.
local function some_options(parameters, from)
  local parts = {}
  for i = from, #parameters do
    local p = parameters[i]
    if p.name == "..." then break end
    if p.required and R.percent(97) or not p.required and R.percent(30) then
      parts[#parts + 1] = ("%s=%s"):format(p.name, A.value(p.name, p.type, p.choices))
    end
  end
  if R.percent(1) then parts[#parts + 1] = "nonsense=1" end
  return parts
end

-- The tensors that an operator takes, in order.
local function input_texts(inputs)
  local list = {}
  for i, input in ipairs(inputs) do
    if input.variadic then
      local tensors = {}
      for k = 1, R.weighted { { 1, 0 }, { 4, 1 }, { 8, 2 }, { 3, 3 } } do tensors[k] = A.tensor_of(input.name) end
      list[i] = V.list_text(tensors)
    elseif input.optional and R.percent(40) then
      list[i] = "nil"
    else
      list[i] = R.percent(4) and V.any() or A.tensor_of(input.name)
    end
  end
  return list
end

local function operator_call(entry)
  local name = entry.name:gsub("^pg%.", "")
  local list, options = input_texts(entry.inputs), some_options(entry.parameters, 1)
  if #options > 0 or R.percent(5) then list[#list + 1] = V.list_text(options) end
  local first = entry.inputs[1]
  if first and not first.variadic and R.percent(35) then
    if entry.in_place and R.percent(50) then name = name .. "_" end
    return ("(%s):%s(%s)"):format(table.remove(list, 1), name, join(list))
  end
  return ("pg.%s(%s)"):format(name, join(list))
end

-- Arguments by position up to some parameter, the others by name.
local function argument_texts(entry)
  local parameters, list = entry.parameters, {}
  local positional = 0
  for i, p in ipairs(parameters) do if p.required then positional = i end end
  positional = math.max(0, math.min(#parameters, positional + R.int(-1, 2)))
  if not (entry.grammar or entry.takes_table) and R.percent(70) then positional = #parameters end
  for i = 1, positional do
    local p = parameters[i]
    if p.name == "..." then
      for _ = 1, R.int(0, 3) do list[#list + 1] = A.value("x", p.type) end
    else
      list[#list + 1] = A.value(p.name, p.type, p.choices)
    end
  end
  local options = some_options(parameters, positional + 1)
  if #options > 0 and (entry.grammar or entry.takes_table or R.percent(10)) then
    list[#list + 1] = V.list_text(options)
  end
  return list
end

-- A class: made, and called with tensors.
local function made(entry)
  local path = entry.name:find "^amp%." and entry.name or entry.name
  local parts = {}
  local options = some_options(entry.parameters, 1)
  if R.percent(50) then
    for _, p in ipairs(entry.parameters) do
      if not p.required then break end
      parts[#parts + 1] = A.value(p.name, p.type, p.choices)
      for i, option in ipairs(options) do
        if option:find("^" .. p.name .. "=") then table.remove(options, i) end
      end
    end
  end
  for _, option in ipairs(options) do parts[#parts + 1] = option end
  return ("%s{%s}"):format(path, join(parts))
end

local function layer_call(entry)
  if entry.name == "amp.GradScaler" then return made(entry) end
  local inputs = {}
  for _, input in ipairs(entry.inputs or { { name = "x" } }) do inputs[#inputs + 1] = A.tensor_of(input.name) end
  if not entry.inputs and R.percent(10) then inputs[2] = A.tensor_of "x" end
  return ("(%s)(%s)"):format(made(entry), join(inputs))
end

local function optimizer_call(entry)
  local parameters = {}
  for i = 1, R.int(0, 3) do parameters[i] = "w" .. i end
  local lines = {}
  for i = 1, #parameters do
    lines[i] = ("local w%d = %s:detach():requires_grad_()"):format(i, V.floats())
    lines[#lines] = lines[#lines] .. (" w%d:square():sum():backward()"):format(i)
  end
  local options = some_options(entry.parameters, 1)
  lines[#lines + 1] = ("local optimizer = %s{%s%s}"):format(entry.name, V.list_text(parameters),
                                                            #options > 0 and ", " .. join(options) or "")
  lines[#lines + 1] = "optimizer:step()"
  if R.percent(40) then lines[#lines + 1] = "optimizer:step()" end
  return parameters[1] or "nil", table.concat(lines, "\n")
end

local function function_call(entry)
  local list = argument_texts(entry)
  local class, method = entry.name:match "^([%w_]+):(.*)$"
  if not class then return ("%s(%s)"):format(entry.name, join(list)) end
  local receiver, before = receivers(class)
  return ("(%s):%s(%s)"):format(receiver, method, join(list)), before
end

local KINDS = { operator = operator_call, layer = layer_call, optimizer = optimizer_call, ["function"] = function_call,
                method = function_call }

local names

local function drawable(name)
  local entry = reference.all()[name]
  return not LEFT_OUT[name] and KINDS[entry.kind] ~= nil
end

---The names that calls are drawn of.
function C.names()
  if names then return names end
  names = {}
  for _, name in ipairs(reference.names()) do
    if drawable(name) then names[#names + 1] = name end
  end
  for _, name in ipairs(native.op_names()) do -- those that only gradients use, too
    if reference.is_inner(name) then names[#names + 1] = "inner:" .. name end
  end
  return names
end

local function inner_entry(name)
  local op = native.operators.get(name)
  local parameters = {}
  for i, a in ipairs(op.visible) do
    local kinds = { "boolean", "integer", "number", "perigee.Dtype", "string", "integer", "integer[]", "integer[]",
                    "integer[]", "string" }
    parameters[i] = { name = a.shown or a.name, type = kinds[a.kind] or "any", required = a.required,
                      choices = a.choices }
  end
  return { name = name, kind = "operator", inputs = op.inputs, parameters = parameters, in_place = op.in_place }
end

---A call: an expression, and statements before it. `only`: of this name.
---@param only? string
---@return string expression
---@return string? before
---@return string name
function C.draw(only)
  local name = only or R.pick(C.names())
  local inner = name:match "^inner:(.*)$"
  local entry = inner and inner_entry(inner) or reference.all()[name]
  local expression, before = KINDS[entry.kind](entry)
  return expression, before, name
end

return C
