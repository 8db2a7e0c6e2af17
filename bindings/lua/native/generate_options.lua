-- SPDX-License-Identifier: Apache-2.0
-- Of an operator's Lua function the part for one table of options, x:sum{axis=1, keepdim=true}, spelt out so that it
-- compiles. Options of kinds that are not here, and values that do not fit, are left to the call grammar.

local ffi = require "ffi"
local attributes = require "perigee.native.attributes"
local has_entries = require "perigee.native.has_entries"

local kinds = attributes.kinds
local MOST = 8 -- axes

local axis_value = "v > 0 and v - 1 or v"

-- By kind: the type that is written, what v must be, what is written of it.
local known = {
  [kinds.bool] = { "int32_t *", "type(v) == 'boolean'", "v and 1 or 0" },
  [kinds.int] = { "int64_t *", "whole(v)", "v" },
  [kinds.float] = { "double *", "type(v) == 'number'", "v" },
  [kinds.number] = { "double *", "type(v) == 'number'", "v" },
  [kinds.axis] = { "int64_t *", "whole(v) and v ~= 0", axis_value },
}

local options = {}

-- The i-th of a list of axes, if it is one.
local function put_axis(target, i, axis)
  if type(axis) ~= "number" or axis ~= math.floor(axis) or axis == 0 then return false end
  target.value[i - 1] = axis > 0 and axis - 1 or axis
  return true
end

---Stores axes, a number or a list of them, into a pg_ints; answers whether they are such. The first few without a loop,
---which would end the trace of the loop that the call stands in.
function options.put_axes(target, v)
  if type(v) == "number" then
    if v ~= math.floor(v) or v == 0 or v >= 2 ^ 63 or v <= -2 ^ 63 then return false end
    target.count, target.value[0] = 1, v > 0 and v - 1 or v
    return true
  end
  if type(v) ~= "table" or getmetatable(v) ~= nil then return false end
  local count = #v
  if count > MOST or not has_entries(v, count) then return false end
  if count >= 1 and not put_axis(target, 1, v[1]) then return false end
  if count >= 2 and not put_axis(target, 2, v[2]) then return false end
  if count >= 3 and not put_axis(target, 3, v[3]) then return false end
  for i = 4, count do
    if not put_axis(target, i, v[i]) then return false end
  end
  target.count = count
  return true
end

local prologue = [[
if type(a) == 'table' and a[1] == nil and b == nil and c == nil and d == nil and select('#', ...) == 0 and
       getmetatable(a) == nil then
  local n, fits, v = 0, true, nil
  copy(options, op.defaults, op.attr_size)
]]

local one = [[
  v = a.$name
  if v == nil then $absent
  elseif $test then
    n = n + 1
    $store
  else fits = false end
]]

-- Statements for one attribute, or nil.
local function statement(expand, k, attr)
  local form = attr.pair == 0 and known[attr.kind]
  local absent = attr.required and "fits = false" or ""
  if form then
    return expand(one, { name = attr.shown, absent = absent, test = form[2],
                         store = ("option%d[0] = %s"):format(k, form[3]) })
  end
  if attr.kind == kinds.choice then
    return expand(one, { name = attr.shown, absent = absent, test = ("type(v) == 'string' and choices%d[v]"):format(k),
                         store = ("option%d[0] = choices%d[v]"):format(k, k) })
  end
  if attr.kind == kinds.axes then
    return expand(one, { name = attr.shown, absent = absent, test = ("put_axes(option%d, v)"):format(k), store = "" })
  end
  return attr.required and "  fits = false\n" or nil
end

---Locals that a function of (x, a, b, c, d, ...) needs for its options in `a`, and the statements for them; two empty
---texts where no option is of such a kind.
---@param expand fun(template: string, names: table): string
---@param op table
---@param run string statements that call with the struct `options` and return
---@return string locals, string form
function options.form(expand, op, run)
  local locals, parts = { "local options, copy, put_axes = scratch.options, ffi.copy, scratch.put_axes\n" }, {}
  for k, attr in ipairs(op.visible) do
    local text = attr.shown:find "^[%a_][%w_]*$" and statement(expand, k, attr)
    if text then
      locals[#locals + 1] = ("local option%d, choices%d = scratch.option[%d], scratch.choices[%d]\n"):format(k, k, k, k)
      parts[#parts + 1] = text
    end
  end
  if #parts == 0 then return "", "" end
  return table.concat(locals), table.concat { prologue, table.concat(parts), "  if fits and holds(a, n) then\n", run,
                                              "  end\nend\n" }
end

---What the form writes into, added to a function's scratch.
function options.make_scratch(scratch, op)
  scratch.options = ffi.new("uint8_t[?]", math.max(op.attr_size, 8))
  scratch.option, scratch.choices, scratch.put_axes = {}, {}, options.put_axes
  for k, attr in ipairs(op.visible) do
    local form = known[attr.kind]
    local others = { [kinds.choice] = "int32_t *", [kinds.axes] = "pg_ints *" }
    local ctype = form and form[1] or others[attr.kind]
    scratch.option[k] = ctype and ffi.cast(ctype, scratch.options + attr.offset) or false
    scratch.choices[k] = attr.choice_index or false
  end
end

return options
