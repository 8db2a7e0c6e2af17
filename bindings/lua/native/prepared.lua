-- SPDX-License-Identifier: Apache-2.0
-- Calls of one operator whose attributes are written straight into its struct: for what is called often with attributes
-- that the caller has checked (indexing).

local ffi = require "ffi"
local errors = require "perigee.native.errors"
local handles = require "perigee.native.handles"
local operators = require "perigee.native.operators"
local origins = require "perigee.native.origins"
local attributes = require "perigee.native.attributes"

local M = {}
local C
local kinds = attributes.kinds

local pointer = {
  [kinds.bool] = "int32_t *", [kinds.choice] = "int32_t *", [kinds.int] = "int64_t *", [kinds.axis] = "int64_t *",
  [kinds.float] = "double *",
  [kinds.dtype] = "uint32_t *", [kinds.ints] = "pg_ints *", [kinds.axes] = "pg_ints *", [kinds.dims] = "pg_ints *",
}

-- run(x, y, z, u): a call with `count` tensors, of which y and the others may be absent.
local function runner(op, name, count, struct)
  local inputs, out, id = ffi.new("pgc_tensor *[4]"), ffi.new("pgc_tensor *[1]"), op.id
  local function put(x, y, z, u)
    inputs[0] = handles.pointer(x, name)
    inputs[1] = y and handles.pointer(y, name) or nil
    inputs[2] = z and handles.pointer(z, name) or nil
    inputs[3] = u and handles.pointer(u, name) or nil
  end
  return function(x, y, z, u)
    if origins.on then origins.note() end
    put(x, y, z, u)
    local rc = C.pgc_call(id, inputs, count, nil, struct, 0, out, 1)
    if rc ~= 0 then
      if rc == 10 then
        operators.make_room()
        put(x, y, z, u)
        rc = C.pgc_call(id, inputs, count, nil, struct, 0, out, 1)
      end
      if rc ~= 0 then errors.raise_native(C, name) end
    end
    return handles.wrap(out[0])
  end
end

---A function of one tensor, or of `count`, at most 4, of which those behind the first may be absent; and the operator's
---attributes by name: pointers to numbers, or to { count, value[8] }. Everything counts from 0 here.
function M.prepare(name, count)
  local op = operators.get(name) or errors.raise("not_found", name, "there is no such operator")
  local struct = ffi.new("uint8_t[?]", math.max(op.attr_size, 8))
  local out, id = ffi.new("pgc_tensor *[1]"), op.id
  ffi.copy(struct, op.defaults, op.attr_size)
  local attrs = {}
  for _, attr in ipairs(op.attributes) do
    if pointer[attr.kind] then attrs[attr.name] = ffi.cast(pointer[attr.kind], struct + attr.offset) end
  end
  if count then return runner(op, name, count, struct), attrs, struct end
  local function run(x)
    if origins.on then origins.note() end
    local rc = C.pgc_call1(id, handles.pointer(x, name), struct, out)
    if rc ~= 0 then
      if rc == 10 then
        operators.make_room()
        rc = C.pgc_call1(id, handles.pointer(x, name), struct, out)
      end
      if rc ~= 0 then errors.raise_native(C, name) end
    end
    return handles.wrap(out[0])
  end
  return run, attrs, struct -- the struct must outlive the pointers
end

---The same of an operator without inputs: a function of nothing, on the device in force.
function M.maker(name)
  local op = operators.get(name)
  local struct = ffi.new("uint8_t[?]", op.attr_size)
  local out, attrs, id = ffi.new("pgc_tensor *[1]"), {}, op.id
  ffi.copy(struct, op.defaults, op.attr_size)
  for _, attr in ipairs(op.attributes) do
    if pointer[attr.kind] then attrs[attr.name] = ffi.cast(pointer[attr.kind], struct + attr.offset) end
  end
  local function run()
    if origins.on then origins.note() end
    local rc = C.pgc_call(id, nil, 0, nil, struct, 0, out, 1)
    if rc == 10 then
      operators.make_room()
      rc = C.pgc_call(id, nil, 0, nil, struct, 0, out, 1)
    end
    if rc ~= 0 then errors.raise_native(C, name) end
    return handles.wrap(out[0])
  end
  return run, attrs -- run keeps the struct that the pointers point into
end

---A function (t, value, where) that writes a number, which its dtype holds, into all of an open tensor.
function M.number_writer()
  local fill, copy = operators.get "fill", operators.get "copy"
  local struct = ffi.new("uint8_t[?]", fill.attr_size)
  local out, inputs, at = ffi.new("pgc_tensor *[1]"), ffi.new("pgc_tensor *[2]"), {}
  ffi.copy(struct, fill.defaults, fill.attr_size)
  for _, attr in ipairs(fill.attributes) do at[attr.name] = ffi.cast(pointer[attr.kind], struct + attr.offset) end
  local value_at, dtype_at = at.value, at.dtype
  return function(t, value, where)
    if origins.on then origins.note() end
    local d, device, before = C.pgc_describe(t.ptr), C.pgc_device_of(t.ptr), C.pgc_device()
    value_at[0], dtype_at[0] = value, d.dtype_code * 65536 + d.dtype_bits
    local moved = device ~= before and device >= 0
    if moved then C.pgc_set_device(device) end
    local rc = C.pgc_call(fill.id, nil, 0, nil, struct, 0, out, 1)
    if rc == 10 then
      operators.make_room()
      rc = C.pgc_call(fill.id, nil, 0, nil, struct, 0, out, 1)
    end
    if moved then C.pgc_set_device(before) end
    if rc ~= 0 then errors.raise_native(C, where, nil, fill.name) end
    local number = out[0]
    inputs[0], inputs[1] = t.ptr, number
    rc = C.pgc_call(copy.id, inputs, 2, nil, nil, 0, out, 1)
    if rc == 10 then
      operators.make_room()
      inputs[0], inputs[1] = t.ptr, number
      rc = C.pgc_call(copy.id, inputs, 2, nil, nil, 0, out, 1)
    end
    C.pgc_release(number)
    if rc ~= 0 then errors.raise_native(C, copy.name) end
    C.pgc_release(out[0])
  end, struct -- the struct must outlive the pointers
end

function M.start(library) C = library end

return M
