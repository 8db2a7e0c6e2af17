-- SPDX-License-Identifier: Apache-2.0
-- The tensor type as Lua sees it: fields, methods, arithmetic. What needs no FFI (indexing, printing, views) comes from
-- scripts/perigee through `hooks` and `methods`, which it fills in when a name is asked for.

local ffi = require "ffi"
local errors = require "perigee.native.errors"
local handles = require "perigee.native.handles"
local operators = require "perigee.native.operators"
local dtypes = require "perigee.native.dtypes"
local make_shape = require "perigee.native.shape"
local sizes = require "perigee.native.size"
local suggest = require "perigee.native.suggest"
local grammar = require "perigee.native.grammar"
local checked = require "perigee.native.checked"

local M = {}
local Handle, wrap_shared, is_tensor, pointer = handles.Handle, handles.wrap_shared, handles.is_tensor, handles.pointer
local methods, hooks = {}, {}
M.methods, M.hooks = methods, hooks
local C
local out = ffi.new("pgc_tensor *[1]")

local function check_open(t, where)
  if not is_tensor(t) then
    errors.raise("invalid_argument", where, "self must be a tensor, got " .. errors.describe(t),
                 ("call it with a colon: t:%s()"):format(where))
  end
  if t.ptr == nil then handles.raise_closed(t, where) end
end
M.check_open = check_open

---Number of axes.
function M.rank(t) return C.pgc_describe(pointer(t, "dim")).rank end

---Size of an axis, counted from 1.
---@return integer|perigee.Size
function M.size(t, axis) return sizes.of(C.pgc_describe(pointer(t, "size")).shape[axis - 1]) end

local MOST_PARTS = 2 ^ 20

---Raises where a list of so many tensors is more than anybody wants to wait for.
function M.check_parts(where, count)
  if type(count) == "number" and count > MOST_PARTS then
    errors.raise("invalid_argument", where, ("%.17g tensors would be a list of more than %d"):format(count, MOST_PARTS),
                 "t:reshape, or t:rows() for one at a time")
  end
end

---Whether two sizes are known and not the same. Those of a graph may turn out to be equal.
function M.sizes_differ(a, b) return type(a) == "number" and type(b) == "number" and a ~= b end

---Whether two shapes are known not to be the same.
function M.shapes_differ(a, b)
  if #a ~= #b then return true end
  for i = 1, #a do
    if M.sizes_differ(a[i], b[i]) then return true end
  end
  return false
end

---Whether two open tensors have the same sizes for sure: where a size of a graph has a name, false may mean that.
function M.same_sizes(a, b)
  local c, d = C.pgc_describe(a.ptr), C.pgc_describe(b.ptr)
  if c.rank ~= d.rank then return false end
  for i = 0, c.rank - 1 do
    if c.shape[i] ~= d.shape[i] then return false end
  end
  return true
end

function M.dtype(t)
  local d = C.pgc_describe(pointer(t, "dtype"))
  return dtypes.by_code[d.dtype_code * 65536 + d.dtype_bits]
end

function M.strides(t)
  local d, list = C.pgc_describe(pointer(t, "stride")), {}
  if d.stride == nil then errors.raise("failed_precondition", "stride", "is not known in a graph") end
  for i = 1, d.rank do list[i] = tonumber(d.stride[i - 1]) end
  return list
end

---Whether the elements of an open tensor lie in memory one after the other, in the order of the axes.
function M.is_dense(t)
  local d, expected = C.pgc_describe(pointer(t, "is_contiguous")), 1
  for i = d.rank - 1, 0, -1 do
    if d.shape[i] == 0 then return true end
    if d.shape[i] ~= 1 and d.stride[i] ~= expected then return false end
    expected = expected * d.shape[i]
  end
  return true
end

---The same for another order: axes from 0, the innermost first. False where the tensor has another number of axes.
function M.lies_in(t, innermost)
  local d, expected = C.pgc_describe(pointer(t, "is_contiguous")), 1
  if d.rank ~= #innermost then return false end
  for i = 0, d.rank - 1 do
    if d.shape[i] == 0 then return true end
  end
  for _, axis in ipairs(innermost) do
    if d.shape[axis] ~= 1 and d.stride[axis] ~= expected then return false end
    expected = expected * d.shape[axis]
  end
  return true
end

-- A row-major tensor has the strides that its sizes give, those of axes of one element too. To four axes without a
-- loop, which would end the trace of the loop that the call stands in.
local function steps(d, axis)
  local size = d.shape[axis + 1]
  return d.stride[axis] == d.stride[axis + 1] * (size > 0 and size or 1)
end
local function is_row_major(d)
  local rank = d.rank
  if rank == 0 then return true end
  if d.stride[rank - 1] ~= 1 then return false end
  if rank > 1 and not steps(d, rank - 2) then return false end
  if rank > 2 and not steps(d, rank - 3) then return false end
  if rank > 3 and not steps(d, rank - 4) then return false end
  for axis = 0, rank - 5 do
    if not steps(d, axis) then return false end
  end
  return true
end

---Writes the sizes of an open tensor into a list { count, value }, for what a call that names no device makes beside
---it; false where the sizes have no numbers yet, the tensor does not lie in row-major order, or such a call makes it
---elsewhere. `cpu`: the processor's number.
function M.set_shape_of(t, list, cpu)
  local scope = C.pgc_device()
  if scope < 0 then scope = C.pgc_default_device() end
  if scope < 0 then scope = cpu end
  if C.pgc_is_graph_tensor(t.ptr) ~= 0 or C.pgc_device_of(t.ptr) ~= scope then return false end
  local d = C.pgc_describe(t.ptr)
  if not is_row_major(d) then return false end
  local rank, to, from = d.rank, list.value, d.shape
  list.count = rank
  if rank > 0 then to[0] = from[0] end
  if rank > 1 then to[1] = from[1] end
  if rank > 2 then to[2] = from[2] end
  if rank > 3 then to[3] = from[3] end
  for i = 4, rank - 1 do to[i] = from[i] end
  return true
end

local fields = {}

function fields.shape(t)
  check_open(t, "shape")
  local d, list = C.pgc_describe(t.ptr), {}
  local rank, shape = d.rank, d.shape
  if rank > 0 then list[1] = sizes.of(shape[0]) end
  if rank > 1 then list[2] = sizes.of(shape[1]) end
  if rank > 2 then list[3] = sizes.of(shape[2]) end
  if rank > 3 then list[4] = sizes.of(shape[3]) end
  for i = 5, rank do list[i] = sizes.of(shape[i - 1]) end
  return make_shape(list)
end

function fields.dtype(t)
  check_open(t, "dtype")
  return M.dtype(t).name
end

function fields.device(t)
  check_open(t, "device")
  local name = C.pgc_device_name(C.pgc_device_of(t.ptr))
  return name ~= nil and M.canonical_device(ffi.string(name)) or nil
end

---"cpu:0" is called "cpu".
function M.canonical_device(name) return name == "cpu:0" and "cpu" or name end

function fields.requires_grad(t)
  check_open(t, "requires_grad")
  return C.pgc_requires_grad(t.ptr) ~= 0
end

function fields.is_leaf(t)
  check_open(t, "is_leaf")
  return C.pgc_is_leaf(t.ptr) ~= 0
end

function fields.grad(t)
  check_open(t, "grad")
  if C.pgc_grad_of(t.ptr, out) ~= 0 then errors.raise_native(C, "grad") end
  if out[0] == nil then return nil end
  return wrap_shared(out[0])
end

local setters = {}

function setters.grad(t, v)
  if v ~= nil and not is_tensor(v) then
    errors.raise("invalid_argument", "grad", "must be a tensor or nil, got " .. errors.describe(v))
  end
  if v ~= nil then check_open(v, "grad") end
  if C.pgc_set_grad(t.ptr, v ~= nil and v.ptr or nil) ~= 0 then errors.raise_native(C, "grad") end
end

function setters.requires_grad(t, v)
  if type(v) ~= "boolean" then
    errors.raise("invalid_argument", "requires_grad", "must be true or false, got " .. errors.describe(v))
  end
  if C.pgc_set_requires_grad(t.ptr, v and 1 or 0) ~= 0 then errors.raise_native(C, "requires_grad") end
end

---Names of the fields.
function M.field_names()
  local names = {}
  for name in pairs(fields) do names[#names + 1] = name end
  return names
end

local function all_names()
  local names = {}
  hooks.run_rooms()
  for name in pairs(fields) do names[#names + 1] = name end
  for name in pairs(methods) do names[#names + 1] = name end
  for _, name in ipairs(operators.names()) do names[#names + 1] = name end
  return names
end

local function raise_unknown(key, what)
  local hint = suggest.foreign.hint and suggest.foreign.hint("tensor", key)
  local near = not hint and suggest(key, all_names())
  if near == key then near = nil end -- there, but not to be set
  errors.raise("invalid_argument", nil, ("a tensor has no %s %q"):format(what, key),
               hint or near and ("did you mean %q?"):format(near) or nil)
end

-- Everything but a known method.
local function index_slow(t, key)
  local field = fields[key]
  if field then return field(t) end
  if type(key) ~= "string" then
    check_open(t, "index")
    return hooks.index(t, key)
  end
  local method = methods[key] -- of a file that has not run yet
  if method then return method end
  if operators.is_method(key) then
    local f = operators.get_function(key)
    if f then
      methods[key] = f
      return f
    end
  end
  if key == "..." then return hooks.index(t, key) end
  raise_unknown(key, "field or method")
end

---@class perigee.Tensor
---@field shape integer[] a fresh list, which compares by value
---@field dtype perigee.Dtype
---@field device string such as "cuda:0"
---@field grad perigee.Tensor? what backward added up
---@field requires_grad boolean whether gradients are wanted of it
---@field is_leaf boolean whether no operator made it
---@field [integer] perigee.Tensor|any a row, from 1
---@field [table] perigee.Tensor|any what indices, slices, a mask or positions pick
---@operator add(perigee.Tensor|number): perigee.Tensor
---@operator sub(perigee.Tensor|number): perigee.Tensor
---@operator mul(perigee.Tensor|number): perigee.Tensor
---@operator div(perigee.Tensor|number): perigee.Tensor
---@operator pow(perigee.Tensor|number): perigee.Tensor
---@operator mod(perigee.Tensor|number): perigee.Tensor
---@operator concat(any): string
---@operator unm: perigee.Tensor
---@operator len: integer
local meta = {}

function meta.__index(t, key)
  local method = rawget(methods, key)
  if method then return method end
  return index_slow(t, key)
end

function meta.__newindex(t, key, value)
  check_open(t, "assignment")
  if type(key) == "string" and key ~= "..." then
    local set = setters[key]
    if not set then raise_unknown(key, fields[key] and "settable field" or "field") end
    return set(t, value)
  end
  hooks.newindex(t, key, value)
end

function meta.__len(t)
  check_open(t, "#")
  if M.rank(t) == 0 then errors.raise("invalid_argument", "#", "a 0-dim tensor has no length") end
  return M.size(t, 1)
end

-- a + b and its kin: the operator's function is looked up once.
local function arithmetic(name)
  local f
  return function(a, b)
    if not f then f = operators.get_function(name) end
    local made = f(a, b)
    return made
  end
end

local function refuse_order()
  errors.raise("invalid_argument", nil, "tensors have no order that Lua's < and <= could answer with one boolean",
               "a:lt(b), a:le(b), a:gt(b) and a:ge(b) compare elementwise")
end

local function refuse_pairs()
  errors.raise("invalid_argument", nil, "pairs and ipairs do not work on tensors", "use: for i, row in t:rows() do")
end

local function set_up_arithmetic()
  local events = { __add = "add", __sub = "sub", __mul = "mul", __div = "div", __pow = "pow", __mod = "remainder" }
  for event, name in pairs(events) do
    meta[event] = arithmetic(name)
  end
  local neg
  meta.__unm = function(a)
    if not neg then neg = operators.get_function("neg") end
    local made = neg(a)
    return made
  end
  meta.__eq = rawequal
  meta.__lt, meta.__le = refuse_order, refuse_order
  meta.__pairs, meta.__ipairs = refuse_pairs, refuse_pairs
  meta.__tostring = function(t)
    if t.ptr == nil then return "<closed tensor>" end
    return hooks.tostring(t)
  end
  meta.__concat = function(a, b) return tostring(a) .. tostring(b) end
  meta.__call = function()
    errors.raise("invalid_argument", nil, "a tensor cannot be called", "t[i] picks, t:sum() calls a method")
  end
end

function M.start(library)
  C = library
  set_up_arithmetic()
  ffi.metatype(Handle, meta)
  sizes.start(library, meta)
end

local function opened(name, t, ...)
  check_open(t, name)
  return t, ...
end

---Defines a method; its first argument is checked to be an open tensor, or one table has all arguments. `params`: those
---behind it, as of native.signature; without them they are counted.
function M.define(name, f, params)
  local run = checked.behind(name, f, params)
  methods[name] = function(t, ...)
    if not (ffi.istype(Handle, t) and t.ptr ~= nil) then return run(opened(name, grammar.spread(name, t, ...))) end
    return run(t, ...)
  end
end

return M
