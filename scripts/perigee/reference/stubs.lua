-- SPDX-License-Identifier: Apache-2.0
-- The reference as a definition file for LuaLS and other editors: names, types and texts, no code.

local native = require "perigee.native"
local reference = require "perigee.reference"

local HEAD = [[
---@meta
-- SPDX-License-Identifier: Apache-2.0
-- Made by scripts/dev/docs. Editors complete `require "perigee"` from it: put its folder into Lua.workspace.library.

---@alias perigee.Dtype %s

---@class perigee.Tensor
---@field shape integer[] a fresh list
---@field dtype perigee.Dtype
---@field device string
---@field grad perigee.Tensor?
---@field requires_grad boolean
---@field is_leaf boolean
---@field [integer|table] perigee.Tensor|number|boolean
---@operator add(perigee.Tensor|number): perigee.Tensor
---@operator sub(perigee.Tensor|number): perigee.Tensor
---@operator mul(perigee.Tensor|number): perigee.Tensor
---@operator div(perigee.Tensor|number): perigee.Tensor
---@operator pow(perigee.Tensor|number): perigee.Tensor
---@operator mod(perigee.Tensor|number): perigee.Tensor
---@operator unm: perigee.Tensor
---@operator len: integer
local Tensor = {}

---@class perigee.Layer
---@field training boolean
---@overload fun(...): perigee.Tensor, any
local Layer = {}

---@class perigee.Optimizer
local Optimizer = {}

---@class perigee.LBFGS
local LBFGS = {}

---@class perigee.Schedule
local Schedule = {}

---@class perigee.Average
local Average = {}

---@class perigee.CheckpointManager
local CheckpointManager = {}

---@class perigee.GradScaler
local GradScaler = {}

---@class perigee.Callback

---@class perigee.Tape
---@field gradient fun(self: perigee.Tape, loss: perigee.Tensor, sources: perigee.Tensor[]): perigee.Tensor[]

---@class perigee.Dataset
---@operator len: integer
---@field [integer] any
local Dataset = {}

---@class perigee.Graph
local Graph = {}

---@class perigee.Session
local Session = {}

---@class perigee.History
local History = {}

---@class perigee.Plot
local Plot = {}

---@class perigee
local pg = { nn = { init = {} }, optim = { sched = {} }, data = {}, amp = {}, memory = {}, config = {}, callbacks = {} }
]]

local OWNERS = { ["tensor:"] = "Tensor:", ["layer:"] = "Layer:", ["optimizer:"] = "Optimizer:", ["lbfgs:"] = "LBFGS:",
                 ["schedule:"] = "Schedule:", ["average:"] = "Average:", ["dataset:"] = "Dataset:",
                 ["checkpoint_manager:"] = "CheckpointManager:", ["graph:"] = "Graph:", ["session:"] = "Session:",
                 ["history:"] = "History:", ["scaler:"] = "GradScaler:", ["plot:"] = "Plot:" }
local KEYWORDS = { ["repeat"] = true, ["and"] = true, ["or"] = true, ["not"] = true, ["end"] = true }

local function comment(lines, text)
  for line in (reference.wrapped(text, 117) .. "\n"):gmatch("([^\n]*)\n") do
    if line ~= "" then lines[#lines + 1] = "---" .. line end
  end
end

-- "{axis?: integer, keepdim?: boolean}"
local function table_type(parameters)
  local parts = {}
  for i, p in ipairs(parameters) do
    parts[i] = ("%s%s: %s"):format(p.name, p.required and "" or "?", p.type)
  end
  return "{" .. table.concat(parts, ", ") .. "}"
end

local function target(name)
  local owner, rest = name:match("^([%l_]+:)(.*)$")
  if owner then return OWNERS[owner] and OWNERS[owner] .. rest end
  return name:find("^pg%.") and name or "pg." .. name
end

local function operator_stub(lines, entry, where, is_method)
  local names = {}
  for i, input in ipairs(entry.inputs) do
    if not (is_method and i == 1) then
      names[#names + 1] = input.name
      local kind = input.variadic and "[]" or entry.op.scalar and "|number" or ""
      lines[#lines + 1] = ("---@param %s%s perigee.Tensor%s %s"):format(input.name, input.optional and "?" or "", kind,
                                                                       input.doc)
    end
  end
  if #entry.parameters > 0 then
    names[#names + 1] = "options"
    lines[#lines + 1] = "---@param options? " .. table_type(entry.parameters) .. "|any"
    names[#names + 1] = "..."
  end
  lines[#lines + 1] = "---@return perigee.Tensor" .. (entry.op.visible_outputs > 1 and " ..." or "")
  lines[#lines + 1] = ("function %s(%s) end"):format(where, table.concat(names, ", "))
end

local function class_stub(lines, entry, where)
  local kind = entry.name == "amp.GradScaler" and "perigee.GradScaler" or
    entry.kind == "layer" and "perigee.Layer" or "perigee.Optimizer"
  lines[#lines + 1] = "---@param options? " .. table_type(entry.parameters) .. "|any"
  lines[#lines + 1] = "---@return " .. kind
  lines[#lines + 1] = ("function %s(options, ...) end"):format(where)
end

local function function_stub(lines, entry, where)
  local names = {}
  if entry.grammar then
    lines[#lines + 1] = "---@param ... any|" .. table_type(entry.parameters)
    names[1] = "..."
  else
    for _, p in ipairs(entry.parameters) do
      names[#names + 1] = p.name
      lines[#lines + 1] = ("---@param %s%s %s %s"):format(p.name, p.required and "" or "?", p.type, p.doc)
    end
  end
  for _, r in ipairs(entry.returns) do lines[#lines + 1] = "---@return " .. r end
  lines[#lines + 1] = ("function %s(%s) end"):format(where, table.concat(names, ", "))
end

local function stub(lines, entry)
  local where = target(entry.name)
  if not where or KEYWORDS[where:match("[%w_]+$")] then return end
  local is_deep = where:find("^pg%.[%w_]+%.[%w_]+%.")
  if is_deep and not where:find("^pg%.nn%.init") and not where:find("^pg%.optim%.sched") then return end
  lines[#lines + 1] = ""
  comment(lines, entry.doc)
  if entry.kind == "operator" then operator_stub(lines, entry, where)
  elseif entry.kind == "layer" or entry.kind == "optimizer" then class_stub(lines, entry, where)
  else function_stub(lines, entry, where) end
end

-- Operators whose first argument is one tensor are methods too.
local function method_stub(lines, entry)
  local plain = entry.name:sub(4)
  if reference.all()["tensor:" .. plain] or KEYWORDS[plain] or not native.operators.is_method(plain) then return end
  lines[#lines + 1] = ""
  comment(lines, entry.doc)
  operator_stub(lines, entry, "Tensor:" .. plain, true)
end

---The text of library/perigee.lua.
---@return string
return function()
  local dtypes = {}
  for i, name in ipairs(native.dtypes.names) do dtypes[i] = ('"%s"'):format(name) end
  local lines = { (HEAD:gsub("%%s", table.concat(dtypes, "|"))) }
  for _, name in ipairs(reference.names()) do
    local entry = reference.all()[name]
    stub(lines, entry)
    if entry.kind == "operator" then method_stub(lines, entry) end
  end
  lines[#lines + 1] = "\nreturn pg\n"
  return (table.concat(lines, "\n"):gsub("[ \t]+\n", "\n"))
end
