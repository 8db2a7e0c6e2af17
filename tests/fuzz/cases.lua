-- SPDX-License-Identifier: Apache-2.0
-- Calls that are right, from the operators' case table, with one or two things changed: what lies behind an operator's
-- checks is reached by them.

local native = require "perigee.native"
local table_ = require "cases"
local specs = require "cases.specs"
local R = require "fuzz.random"
local V = require "fuzz.values"

local M = {}

local names
local function operators()
  if names then return names end
  names = {}
  for _, name in ipairs(table_.names) do
    if native.operators.get(name) and name ~= "all_reduce" then names[#names + 1] = name end
  end
  return names
end

local function literal(v)
  if type(v) == "string" then return ("%q"):format(v) end
  if type(v) ~= "table" then
    if v ~= v then return "0/0" end
    if v == math.huge then return "math.huge" end
    if v == -math.huge then return "-math.huge" end
    return tostring(v)
  end
  local parts = {}
  for i, x in ipairs(v) do parts[i] = literal(x) end
  return V.list_text(parts)
end

local FLOATS = { "float32", "float32", "float32", "float64", "bfloat16", "float16" }
local OTHERS = { "int64", "int32", "int16", "int8", "uint8", "bool", "complex64" }

-- The dtype that the case's tensors have.
local function draw_dtype() return R.percent(75) and R.pick(FLOATS) or R.pick(OTHERS) end

local SPECIAL = { "0/0", "1/0", "-1/0", "2^63", "-2^63", "-1", "0", "1e38", "2^31", "1e-40" }

local function changed_shape(shape)
  shape = { unpack(shape) }
  local kind = R.int(1, 6)
  if kind == 1 and #shape > 0 then
    table.remove(shape, R.int(1, #shape))
  elseif kind == 2 and #shape < 8 then
    table.insert(shape, R.int(1, #shape + 1), R.pick { 0, 1, 2, 3 })
  elseif #shape > 0 then
    shape[R.int(1, #shape)] = R.pick { 0, 0, 1, 1, 2, 5, 7, 17, 33 }
  end
  return V.fit(shape)
end

-- `change`: what this tensor has that the case's does not: its shape, its contents or its dtype.
local function tensor_text(spec, dtype, change)
  local kind, low, high = spec.kind, -2, 2
  if kind == "index" then dtype = "int64" elseif kind == "bool" then dtype = "bool" end
  if kind == "whole" and not dtype:find "int" then dtype = "int64" end
  if change == "dtype" then dtype = R.percent(50) and R.pick(FLOATS) or R.pick(OTHERS) end
  if kind == "statistics" then return "nil" end
  local shape = change == "shape" and changed_shape(spec.shape) or spec.shape
  local sizes = literal(shape)
  local text
  if change == "contents" then
    text = ("pg.full(%s, %s):to(%q)"):format(sizes, R.pick(SPECIAL), dtype)
    if R.percent(50) then -- some of them
      text = ("pg.where(pg.rand%s:lt(0.2), pg.full(%s, %s), pg.randint(0, 3, %s):to(\"float64\")):to(%q)"):format(
        sizes, sizes, R.pick(SPECIAL), sizes, dtype)
    end
  elseif spec.values and change ~= "shape" and #shape > 0 then
    local count = 1
    for _, n in ipairs(shape) do count = count * n end
    local values = {}
    for i = 1, count do values[i] = literal(spec.values[(i - 1) % #spec.values + 1]) end
    text = ("pg.tensor(%s, {dtype=\"float64\"}):reshape(%s):to(%q)"):format(
      #values > 0 and V.list_text(values) or "{}", sizes, dtype)
    if #values == 0 then text = ("pg.zeros(%s, {dtype=%q})"):format(sizes, dtype) end
  elseif dtype == "bool" then
    text = ("pg.randint(0, 2, %s):to(\"bool\")"):format(sizes)
  elseif kind == "float" and dtype:find "[fx][l6]" then
    low, high = spec.low or low, spec.high or high
    text = ("(pg.rand%s * %s + %s):to(%q)"):format(sizes, literal(high - low), literal(low), dtype)
  else
    local range = spec.whole or { 0, 3 }
    text = ("pg.randint(%d, %d, %s):to(%q)"):format(range[1], range[2] + 1, sizes, dtype)
  end
  if R.percent(20) and #shape > 0 then
    text = R.pick {
      ("%s:transpose(1, -1):contiguous():transpose(1, -1)"):format(text), text .. ":flip(1)",
      ("%s:unsqueeze(1):expand(2%s)[2]"):format(text, (", -1"):rep(#shape)),
      ("pg.stack({%s}, -1)[{\"...\", 1}]"):format(text),
    }
  end
  if kind == "float" and dtype:find "float" and R.percent(40) then text = text .. ":detach():requires_grad_()" end
  return text
end

local function changed_attribute(v)
  if type(v) == "number" then return R.percent(50) and V.huge() or V.integer(-2, 6) end
  if type(v) == "table" then
    local list = {}
    for i, x in ipairs(v) do list[i] = literal(x) end
    if #list > 0 and R.percent(80) then
      list[R.int(1, #list)] = R.percent(50) and V.huge() or V.integer(-2, 6)
    else
      list[#list + 1] = V.integer(0, 4)
    end
    return V.list_text(list)
  end
  return R.percent(70) and literal(v) or V.odd()
end

---A call, as calls.lua draws them.
function M.draw(only)
  local name = only or R.pick(operators())
  local op, row = native.operators.get(name), table_.rows[name]
  local case = R.pick(row.cases)
  local dtype = draw_dtype()
  local changes = {}
  for _ = 1, R.weighted { { 2, 0 }, { 6, 1 }, { 2, 2 } } do
    changes[R.int(1, #op.inputs + 1)] = R.pick { "shape", "contents", "contents", "dtype" }
  end
  local list = {}
  for i, input in ipairs(op.inputs) do
    local v = case[i]
    if input.variadic then
      local tensors = {}
      local at = R.int(1, 3)
      for k, spec in ipairs(v or {}) do
        tensors[k] = specs.is_spec(spec) and tensor_text(spec, dtype, k == at and changes[i] or nil) or literal(spec)
      end
      list[i] = V.list_text(tensors)
    elseif specs.is_spec(v) then
      list[i] = tensor_text(v, dtype, changes[i])
    else
      list[i] = v == nil and "nil" or literal(v)
    end
  end
  local options, touched = {}, changes[#op.inputs + 1]
  for key, v in pairs(case.attrs or {}) do options[#options + 1] = key end
  table.sort(options)
  local at = #options > 0 and R.int(1, #options) or 0
  for i, key in ipairs(options) do
    local v = case.attrs[key]
    options[i] = ("%s=%s"):format(key, touched and i == at and changed_attribute(v) or literal(v))
  end
  if #options > 0 then list[#list + 1] = V.list_text(options) end
  local form = "pg." .. name
  if op.in_place and R.percent(15) then form = form .. "_" end
  return ("%s(%s)"):format(form, table.concat(list, ", ")), nil, name
end

return M
