-- SPDX-License-Identifier: Apache-2.0
-- From cases to calls: makes the tensors of a case, calls its operator, compares results.

local pg = require "perigee"
local native = require "perigee.native"
local array = require "cases.array"
local absent = require "cases.absent"
local specs = require "cases.specs"
local tolerances = require "cases.tolerance"

local C = {}

local MUTATES, META, VARIADIC = 4, 16, 2 -- PG_INPUT_*
local NO_GRAD = 64                       -- PG_OP_*
local function has(flags, flag) return math.floor(flags / flag) % 2 == 1 end

function C.flat(t) return (native.host.flat(t)) end

---A tensor of an array's values, on the device in force.
function C.tensor(a, dtype)
  if #a.data == 0 then return pg.zeros { a.shape, dtype = dtype } end
  local data = a.data
  if dtype == "bool" then
    data = {}
    for i, v in ipairs(a.data) do data[i] = v ~= 0 end
  end
  return pg.tensor(data, { dtype = dtype }):reshape(a.shape)
end

---The array of a tensor's values; booleans become 0 and 1.
function C.array(t)
  local shape, data = {}, C.flat(t)
  for i, d in ipairs(t.shape) do shape[i] = d end
  for i, v in ipairs(data) do
    if type(v) == "boolean" then data[i] = v and 1 or 0 end
  end
  return array.new(shape, data)
end

-- ---- arguments: an entry an input; tensors, numbers, false, or lists of tensors ----

---Calls f(value, input, spec) on every tensor-like entry of a case's inputs; answers the same structure.
function C.each(op, inputs, f)
  local out = {}
  for i, input in ipairs(op.inputs) do
    local v = inputs[i]
    if v == nil then v = false end
    if has(input.flags, VARIADIC) then
      out[i] = {}
      for k, item in ipairs(v or {}) do out[i][k] = f(item, input, i, k) end
    elseif type(v) == "number" or v == false then
      out[i] = v
    else
      out[i] = f(v, input, i)
    end
  end
  return out
end

local function sweep_of(dtype)
  local d = native.dtypes.by_name[dtype]
  if d.floating then return nil end
  return (dtype == "uint8" or dtype == "bool") and "unsigned" or "signed"
end

---The float64 arrays of a case for a sweep's dtype, always the same ones.
function C.arrays(op, case, dtype)
  specs.seed(#op.name * 7919 + (case.number or 1) * 104729)
  local before, whole = {}, sweep_of(dtype)
  return C.each(op, case, function(spec, _, i, k)
    local a = specs.draw(spec, whole, before)
    if not k then before[i] = a end
    return a
  end)
end

function C.dtype_of(spec, dtype)
  if spec.kind == "index" then return "int64" end
  if spec.kind == "fixed" then return spec.dtype end
  if spec.kind == "bool" then return "bool" end
  if spec.kind == "whole" then return sweep_of(dtype) and dtype or "int64" end
  if spec.kind == "statistics" then return dtype == "float64" and dtype or "float32" end
  return dtype
end

---Tensors of a case. Statistics are those of what the inputs before them hold after rounding to their dtype.
function C.tensors(op, case, dtype)
  local arrays, held = C.arrays(op, case, dtype), {}
  return C.each(op, arrays, function(a, _, i, k)
    local spec = k and case[i][k] or case[i]
    if spec.kind == "statistics" then a = spec.compute(held) end
    local t = C.tensor(a, C.dtype_of(spec, dtype))
    if not k then held[i] = C.array(t) end
    return t
  end)
end

function C.map_tensors(op, args, f)
  return C.each(op, args, function(t, input, i, k) return f(t, input, i, k) end)
end

---The size that a symbol takes the place of: the first of the first tensor with an axis that does not broadcast.
---@return integer?
function C.batch_of(op, args)
  local size
  C.map_tensors(op, args, function(t)
    if not size and t:dim() > 0 and t.shape[1] ~= 1 then size = t.shape[1] end
    return t
  end)
  return size
end

---Whether a tensor is of a floating dtype.
function C.is_floating(t) return native.dtypes.by_name[t.dtype].floating end

---Whether the operator has outputs that only its gradient reads.
function C.hides(op) return #op.outputs > op.visible_outputs end

---Calls the operator; a list of its outputs (`all`: the hidden ones too), then of the inputs that it writes into.
function C.call(op, args, attrs, all)
  local results = { (all and native.operators.call_all or native.call)(op.name, args, attrs) }
  C.each(op, args, function(t, input)
    if has(input.flags, MUTATES) then results[#results + 1] = t end
    return t
  end)
  return results
end

function C.is_meta(input) return has(input.flags, META) end
function C.is_mutated(input) return has(input.flags, MUTATES) end

---Whether gradients are defined: the schema says so, the row does not except it.
function C.differentiable(op, row, case)
  return not has(op.traits, NO_GRAD) and row.grad ~= false and case.grad ~= false
end

---The tensors of a case whose gradients are to be checked.
function C.leaves(op, row, case, args)
  local list = {}
  C.each(op, args, function(t, input, i)
    local only = type(case.grad) == "table" and case.grad or row.grad
    local wanted = not only or only[i]
    if wanted and native.dtypes.by_name[t.dtype].floating and not C.is_meta(input) and not C.is_mutated(input) then
      list[#list + 1] = t
    end
    return t
  end)
  return list
end

---A flat list of what a reference answers: one array, or nested lists of them.
function C.as_list(v, list)
  list = list or {}
  if type(v) == "table" and v.shape then
    list[#list + 1] = v
  elseif v then
    for i = 1, table.maxn(v) do C.as_list(v[i], list) end
  end
  return list
end

---What the reference answers for these tensors.
function C.reference(op, row, case, args)
  local arrays = C.map_tensors(op, args, C.array)
  return C.as_list((case.ref or row.ref)(arrays, case.attrs or {}))
end

---Whether a dtype is allowed for all inputs of a case whose dtype is free.
function C.takes(op, row, case, dtype)
  local d = native.dtypes.by_name[dtype]
  local class = dtype == "bool" and 1 or d.floating and 4 or 2 -- PG_M_*
  if not d.floating and (case.special or case.integers == false) then return false end
  if dtype == "bool" and row.bools == false then return false end
  local ok, free = true, false
  for i, input in ipairs(op.inputs) do
    local spec = case[i]
    if type(spec) == "table" and not specs.is_spec(spec) then spec = spec[1] end
    if type(spec) == "table" and (spec.kind == "float" or spec.kind == "statistics") then
      free = true
      ok = ok and has(input.dtypes, class)
    elseif type(spec) == "table" and spec.kind == "whole" then
      free = true
      ok = ok and not d.floating and has(input.dtypes, class)
    end
  end
  return ok and free
end

---Whether the device in force lacks this operator's kernel, and absent.lua says so.
function C.is_absent(name)
  local list = absent[pg.device():match("^%a+")]
  return list ~= nil and list[name] == true
end

---For each operator and case: fn(op, row, case, name).
function C.for_each(table_, fn)
  for _, name in ipairs(table_.names) do
    local op, row = native.operators.get(name), table_.rows[name]
    if op and not C.is_absent(name) then -- coverage_test.lua reports one that is not there
      for _, case in ipairs(row.cases) do
        if case.not_on ~= pg.device():match("^%a+") then fn(op, row, case, name .. "/" .. case.number) end
      end
    end
  end
end

-- ---- comparing ----

local function close(got, want, slack)
  if got ~= got or want ~= want then return got ~= got and want ~= want end
  return got == want or math.abs(got - want) <= slack
end

local function shape_text(shape) return "[" .. table.concat(shape, ", ") .. "]" end

---Raises unless `got` (a tensor) is the array `want` within the class' tolerance for `dtype`.
function C.compare(got, want, class, dtype, what)
  local a, limits = C.array(got), tolerances[class]
  what = what or "result"
  if shape_text(a.shape) ~= shape_text(want.shape) then
    error(("%s has shape %s, expected %s"):format(what, shape_text(a.shape), shape_text(want.shape)), 0)
  end
  local relative, scale = limits[dtype] or 0, 0
  if limits.scaled then
    for _, v in ipairs(want.data) do
      if math.abs(v) < math.huge then scale = math.max(scale, math.abs(v)) end
    end
  end
  local least = dtype == "float16" and 2 ^ -24 or 1e-38 -- denormal numbers have no relative precision
  for i, v in ipairs(want.data) do
    local x = a.data[i]
    if not close(x, v, relative * math.max(math.abs(v) < math.huge and math.abs(v) or 0,
      scale) + least * (relative > 0 and 1 or 0)) then
      error(("%s, element %d of %s: got %.17g, expected %.17g"):format(what, i, shape_text(a.shape), x, v), 0)
    end
  end
end

---Raises unless two tensors agree in dtype, shape and every bit (NaN with NaN).
function C.same(got, want, what)
  if got.dtype ~= want.dtype then error(("%s is %s, expected %s"):format(what, got.dtype, want.dtype), 0) end
  C.compare(got, C.array(want), "exact", got.dtype, what)
end

return C
