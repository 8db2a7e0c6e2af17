-- SPDX-License-Identifier: Apache-2.0
-- Operators of the registry as Lua functions. Each is made at its first use: the common forms of its call are compiled
-- by generate.lua, everything else goes through the call grammar here.

local ffi = require "ffi"
local errors = require "perigee.native.errors"
local handles = require "perigee.native.handles"
local attributes = require "perigee.native.attributes"
local grammar = require "perigee.native.grammar"
local modules = require "perigee.native.modules"
local origins = require "perigee.native.origins"
local results_of = require "perigee.native.results"
local sizes = require "perigee.native.size"

local M = {}
jit.off(true, true) -- walks option tables with next, which cannot be compiled; attempts at it thrash

local OPTIONAL, VARIADIC = 1, 2           -- PG_INPUT_*
local HIDDEN, OUTPUT_VARIADIC = 1, 4      -- PG_OUTPUT_*
local IN_PLACE = 8                        -- PG_OP_*
local SCALAR_BOOL, SCALAR_INT, SCALAR_FLOAT = 1, 2, 3
local RETRY = 10
local kinds = attributes.kinds
local is_tensor = handles.is_tensor

local pointers, sizes_of = ffi.typeof("pgc_tensor *[?]"), ffi.typeof("uint32_t[?]")
local scalar_p = ffi.typeof("pg_scalar *")
local FEW = 16
local few_inputs, few_outputs = pointers(FEW), pointers(FEW) -- for calls of few tensors: no allocation

local C
local known, functions = {}, {} -- by name

local function has(flags, flag) return math.floor(flags / flag) % 2 == 1 end

local grammar_kind = {
  [kinds.axis] = "axis", [kinds.axes] = "axes", [kinds.dims] = "list", [kinds.ints] = "list", [kinds.dtype] = "dtype",
}

-- What the grammar knows of an operator: its inputs, then its attributes in declared order.
local function make_params(op)
  local params = {}
  for _, input in ipairs(op.inputs) do
    local kind = input.variadic and "tensors" or "any"
    params[#params + 1] = { input.name, kind, joined = input.variadic }
  end
  for _, attr in ipairs(op.visible) do
    local kind = attr.pair > 0 and "pair" or grammar_kind[attr.kind] or "single"
    local alias = attr.shown ~= attr.name and attr.shown or nil
    params[#params + 1] = { attr.name, kind, required = attr.required, alias = alias }
  end
  return grammar.index(params)
end

local function prepare_outputs(op)
  op.visible_outputs = 0
  for _, output in ipairs(op.outputs) do
    if not has(output.flags, HIDDEN) then op.visible_outputs = op.visible_outputs + 1 end
    if has(output.flags, OUTPUT_VARIADIC) then op.variadic_output = output.like end
  end
end

-- Texts are for readers: calls have no use for them.
local function drop_texts(op)
  op.doc = nil
  for _, list in ipairs { op.inputs, op.outputs, op.attributes } do
    for _, entry in ipairs(list) do entry.doc = nil end
  end
end

local function load_op(name)
  local text = C.pgc_op_json(name)
  if text == nil then return false end
  local op = modules.json(ffi.string(text))
  local id = ffi.new("uint32_t[1]")
  if C.pgc_find_op(name, id) ~= 0 then errors.raise_native(C, name) end
  op.id = id[0]
  op.in_place = has(op.traits, IN_PLACE)
  op.attributes = op.attributes or op.attrs or {}
  op.visible = attributes.prepare(op.attributes, op.inputs)
  for _, input in ipairs(op.inputs) do
    input.optional, input.variadic = has(input.flags, OPTIONAL), has(input.flags, VARIADIC)
    op.variadic = op.variadic or input.variadic
  end
  for _, attr in ipairs(op.attributes) do
    if attr.kind == kinds.scalar then op.scalar = attr end
  end
  prepare_outputs(op)
  op.defaults = C.pgc_op_defaults(op.id)
  op.attrs = ffi.new("uint8_t[?]", math.max(op.attr_size, 8)) -- packed here for each call that gives attributes
  op.params = make_params(op)
  return op
end

---The description of an operator, or nil.
function M.get(name)
  local op = known[name]
  if op == nil then
    op = load_op(name)
    if op then drop_texts(op) end
    known[name] = op
  end
  return op or nil
end

---The description of an operator there is, with its texts.
M.describe = load_op

local function shape_text(t) return tostring(t.shape):gsub("^{", "["):gsub("}$", "]") end

-- The core counts axes from 0. When an axis is out of range its message is said again in the user's terms.
local function raise_axis(op, where, attrs, first)
  local rank = C.pgc_describe(first.ptr).rank
  local function check(attr, v)
    if v <= rank and v >= -rank then return end
    errors.raise("invalid_argument", where,
                 ("%s %d is out of range for %s %s; expected 1..%d or -%d..-1"):format(
                   attr.shown, v, op.inputs[1].name, shape_text(first), rank, rank))
  end
  for _, attr in ipairs(op.visible) do
    if attr.kind == kinds.axis then check(attr, attributes.read(attr, attrs)) end
    if attr.kind == kinds.axes then
      for _, v in ipairs(attributes.read(attr, attrs)) do check(attr, v) end
    end
  end
end

---Raises what a failed call left, in the user's terms. `attrs` may be nil.
function M.fail(op, where, attrs, first)
  local said = ffi.string(C.pgc_error().message)
  if attrs and is_tensor(first) and said:find("range", 1, true) and not said:find("new axis", 1, true) then
    raise_axis(op, where, attrs, first)
  end
  local name, dtype = said:match("([%w_]+) is (%w+); expected floating point$")
  local hint = name and not dtype:find "complex" and ("%s:to(\"float32\")"):format(name) or nil
  errors.raise_native(C, where, hint, where:sub(-1) ~= "_" and op.name or nil)
end

---Memory is short and nothing has happened: frees what is dead. The call may then be issued again.
function M.make_room(op)
  local saved = op and ffi.string(op.attrs, math.max(op.attr_size, 8))
  handles.reclaim()
  if op then ffi.copy(op.attrs, saved, #saved) end
  C.pgc_again()
end

local function scalar_kind(v)
  if type(v) == "boolean" then return SCALAR_BOOL, v and 1 or 0 end
  if type(v) ~= "number" then return SCALAR_INT, v end
  if v == math.floor(v) and math.abs(v) < 2 ^ 63 then return SCALAR_INT, v end
  return SCALAR_FLOAT, v
end

-- x.add(y) arrives as add(y): what to say when a tensor is missing.
local function with_colon(op, where)
  local first = op.inputs[1]
  if first.variadic then return nil end
  return ("pg.%s(%s, ...), or with a colon %s:%s(...)"):format(where, first.name, first.name, where)
end

local function bad_input(op, where, input, v)
  local expected = op.scalar and "a tensor or a number" or "a tensor"
  local hint
  if type(v) == "table" then
    hint = type(v[1]) == "number" and grammar.is_plain(v) and "pg.tensor makes one of a table" or nil
  elseif input == op.inputs[1] then
    hint = with_colon(op, where)
  end
  errors.raise("invalid_argument", where, ("%s must be %s, got %s"):format(input.name, expected, errors.describe(v)),
               hint)
end

local function put_scalar(op, where, index, v)
  local scalar = ffi.cast(scalar_p, op.attrs + op.scalar.offset)
  if scalar.kind ~= 0 then
    errors.raise("invalid_argument", where, "only one argument may be a number", "make a tensor with pg.tensor(number)")
  end
  local kind, number = scalar_kind(v)
  scalar.kind, scalar.input = kind, index
  attributes.put_number(op.attrs + op.scalar.value, number)
end

local function put_tensor(op, where, input, v, list, count)
  if not is_tensor(v) then bad_input(op, where, input, v) end
  if v.ptr == nil then handles.raise_closed(v, where) end
  list[count + 1] = v
  return count + 1
end

-- A size of a graph as a 0-dim int64 tensor, on the device of the tensor that it is computed with.
local function size_tensor(size, inputs)
  local one = M.call("fill", {}, { shape = { 1 }, value = 1, dtype = "int64" })
  local n = M.call("sum", { M.call("expand", { one }, { shape = { size } }) }, {})
  for _, other in pairs(inputs) do
    if is_tensor(other) then return n:to(other.device) end
  end
  return n
end

-- The tensors of a call, flat, `false` where absent; and the sizes of groups for a variadic operator.
local function collect_inputs(op, where, o)
  local list, count, groups = {}, 0, op.variadic and {} or nil
  for i, input in ipairs(op.inputs) do
    local v, before = o[input.name], count
    if input.variadic then
      if v == nil and i == 1 then
        errors.raise("invalid_argument", where, ("%s is empty; expected at least one tensor"):format(input.name))
      end
      for _, t in ipairs(v or {}) do count = put_tensor(op, where, input, t, list, count) end
    elseif v == nil or (v == false and not op.scalar) then
      if not input.optional or (op.scalar and i <= 2) then
        errors.raise("invalid_argument", where, ("argument %q is missing"):format(input.name), with_colon(op, where))
      end
      count = count + 1
      list[count] = false
    elseif op.scalar and (type(v) == "number" or type(v) == "boolean" or attributes.is_whole(v)) then
      put_scalar(op, where, i - 1, v)
      count = count + 1
      list[count] = false
    else
      if op.scalar and sizes.is(v) then v = size_tensor(v, o) end
      count = put_tensor(op, where, input, v, list, count)
    end
    if groups then groups[i] = count - before end
  end
  return list, count, groups
end

-- Handles for what a call gave; several come as several values.
local function take(name, out, count)
  if count == 0 then return end
  if count == 1 then return handles.wrap(out[0]) end
  if count == 2 and out[0] ~= nil and out[1] ~= nil then
    return results_of.note(name, handles.wrap(out[0]), handles.wrap(out[1]))
  end
  local results = {}
  for i = 1, count do results[i] = out[i - 1] ~= nil and handles.wrap(out[i - 1]) or nil end
  return unpack(results, 1, count)
end

local function output_count(op, groups)
  if op.variadic_output and groups then return op.visible_outputs - 1 + groups[op.variadic_output + 1] end
  return op.visible_outputs
end

-- Runs an operator whose attributes stand in op.attrs.
local function run(op, where, list, count, groups, in_place, all)
  local inputs = count <= FEW and few_inputs or pointers(count)
  for i = 1, count do inputs[i - 1] = list[i] and list[i].ptr or nil end
  local counts = groups and sizes_of(#groups, groups) or nil
  local outputs = all and #op.outputs or output_count(op, groups)
  local out = outputs <= FEW and few_outputs or pointers(outputs)
  local flags = in_place and 1 or 0
  if origins.on then origins.note() end
  local rc = C.pgc_call(op.id, inputs, count, counts, op.attrs, flags, out, outputs)
  if rc == RETRY then
    M.make_room(op)
    rc = C.pgc_call(op.id, inputs, count, counts, op.attrs, flags, out, outputs)
  end
  if rc ~= 0 then M.fail(op, where, op.attrs, list[1]) end
  if in_place then
    C.pgc_release(out[0])
    return list[1]
  end
  return take(where, out, outputs)
end

-- Calls an operator with parsed arguments.
local function call_parsed(op, where, o, in_place, all)
  local list, count, groups
  ffi.copy(op.attrs, op.defaults, op.attr_size)
  list, count, groups = collect_inputs(op, where, o)
  for _, attr in ipairs(op.attributes) do -- internal ones too: M.call may give them
    local v = o[attr.name]
    if v ~= nil and attr.kind ~= kinds.scalar then attributes.write(where, attr, op.attrs, v) end
  end
  return run(op, where, list, count, groups, in_place, all)
end

---Calls an operator in any form of the call grammar.
function M.call_any(op, in_place, n, ...)
  local where = in_place and op.name .. "_" or op.shown or op.name
  return call_parsed(op, where, grammar.parse(where, op.params, n, ...), in_place)
end

---Calls an operator by name: inputs by declared position, attributes by name, in user terms. `in_place`: the result is
---written into the first input, which is answered. `where`: what messages call it, if not the operator's name.
function M.call(name, inputs, attrs, in_place, where)
  local op = M.get(name) or errors.raise("not_found", name, "there is no such operator")
  local o = {}
  for i, input in ipairs(op.inputs) do o[input.name] = inputs[i] end
  for key, v in pairs(attrs or {}) do o[key] = v end
  return call_parsed(op, where or (in_place and name .. "_" or name), o, in_place)
end

---As `call`, with the hidden outputs behind the others.
function M.call_all(name, inputs, attrs)
  local op = M.get(name) or errors.raise("not_found", name, "there is no such operator")
  local o = {}
  for key, v in pairs(attrs or {}) do o[key] = v end
  for i, input in ipairs(op.inputs) do o[input.name] = inputs[i] end
  return call_parsed(op, name, o, false, true)
end

---The Lua function of an operator, or nil. A name that ends in _ is the in-place form.
function M.get_function(name)
  local f = functions[name]
  if f then return f end
  local in_place = name:sub(-1) == "_"
  local op = M.get(in_place and name:sub(1, -2) or name)
  if not op or (in_place and not op.in_place) then return nil end
  f = modules.lend "generate"(C, M, op, in_place)
  functions[name] = f
  return f
end

---A new Lua function of an operator that messages call `shown`.
function M.function_as(name, shown)
  return modules.lend "generate"(C, M, setmetatable({ shown = shown }, { __index = M.get(name) }), false)
end

---Whether an operator is a method of its first argument.
function M.is_method(name)
  local op = M.get(name:sub(-1) == "_" and name:sub(1, -2) or name)
  return op ~= nil and op.inputs[1] ~= nil and not op.inputs[1].variadic
end

function M.names() return modules.json(ffi.string(C.pgc_op_names_json())) end

---Forgets that names were not found: a plugin has been loaded.
function M.refresh()
  for name, op in pairs(known) do
    if op == false then known[name] = nil end
  end
end

function M.start(library)
  C = library
end

return M
