-- SPDX-License-Identifier: Apache-2.0
-- Calls of one operator whose attributes are written straight into its struct: for what is called often with attributes
-- that the caller has checked (indexing).

local ffi = require "ffi"
local entries = require "perigee.native.entries"
local errors = require "perigee.native.errors"
local handles = require "perigee.native.handles"
local operators = require "perigee.native.operators"
local origins = require "perigee.native.origins"
local attributes = require "perigee.native.attributes"

local M = {}
local C
local kinds = attributes.kinds
local RETRY = 10

local pointer = {
  [kinds.bool] = "int32_t *", [kinds.choice] = "int32_t *", [kinds.int] = "int64_t *", [kinds.axis] = "int64_t *",
  [kinds.float] = "double *", [kinds.number] = "double *", -- it begins with one, and is that as long as its kind is 0
  [kinds.dtype] = "uint32_t *", [kinds.ints] = "pg_ints *", [kinds.axes] = "pg_ints *", [kinds.dims] = "pg_ints *",
}

-- run(x, y, z, u, v, w): a call with `count` tensors, of which y and the others may be absent.
local function runner(op, name, count, struct)
  local inputs, out, id = ffi.new("pgc_tensor *[6]"), ffi.new("pgc_tensor *[1]"), op.id
  local function put(x, y, z, u, v, w)
    inputs[0] = handles.pointer(x, name)
    inputs[1] = y and handles.pointer(y, name) or nil
    inputs[2] = z and handles.pointer(z, name) or nil
    inputs[3] = u and handles.pointer(u, name) or nil
    inputs[4] = v and handles.pointer(v, name) or nil
    inputs[5] = w and handles.pointer(w, name) or nil
  end
  return function(x, y, z, u, v, w)
    if origins.on then origins.note() end
    put(x, y, z, u, v, w)
    local rc = C.pgc_call(id, inputs, count, nil, struct, 0, out, 1)
    if rc ~= 0 then
      if rc == RETRY then
        operators.make_room()
        put(x, y, z, u, v, w)
        rc = C.pgc_call(id, inputs, count, nil, struct, 0, out, 1)
      end
      if rc ~= 0 then errors.raise_native(C, name, nil, op.name) end
    end
    return handles.wrap(out[0])
  end
end

---A function of one tensor (of none, where the operator makes one), or of `count`, at most 6, of which those behind the
---first may be absent; and the operator's attributes by name: pointers to numbers, or to { count, value[8] }.
---Everything counts from 0 here. `where`: what messages call it, if not by its name.
function M.prepare(name, count, where)
  local op = operators.get(name) or errors.raise("not_found", name, "there is no such operator")
  local struct = ffi.new("uint8_t[?]", math.max(op.attr_size, 8))
  local out, id = ffi.new("pgc_tensor *[1]"), op.id
  ffi.copy(struct, op.defaults, op.attr_size)
  local attrs = {}
  for _, attr in ipairs(op.attributes) do
    if pointer[attr.kind] then attrs[attr.name] = ffi.cast(pointer[attr.kind], struct + attr.offset) end
  end
  where = where or name
  if count then return runner(op, where, count, struct), attrs, struct end
  local function make()
    if origins.on then origins.note() end
    local rc = C.pgc_call(id, nil, 0, nil, struct, 0, out, 1)
    if rc ~= 0 then
      if rc == RETRY then
        operators.make_room()
        rc = C.pgc_call(id, nil, 0, nil, struct, 0, out, 1)
      end
      if rc ~= 0 then errors.raise_native(C, where, nil, name) end
    end
    return handles.wrap(out[0])
  end
  local function run(x)
    if origins.on then origins.note() end
    local rc = C.pgc_call1(id, handles.pointer(x, where), struct, out)
    if rc ~= 0 then
      if rc == RETRY then
        operators.make_room()
        rc = C.pgc_call1(id, handles.pointer(x, where), struct, out)
      end
      if rc ~= 0 then errors.raise_native(C, where, nil, name) end
    end
    return handles.wrap(out[0])
  end
  return #op.inputs == 0 and make or run, attrs, struct -- the struct must outlive the pointers
end

---As `prepare` for `count` tensors, with attributes that stay as they are given here: whole numbers, lists of them, and
---words of choices.
function M.prepare_with(name, count, given)
  local op = operators.get(name) or errors.raise("not_found", name, "there is no such operator")
  local run, attrs, struct = M.prepare(name, count)
  local left = {}
  for key in pairs(given) do left[key] = true end
  for _, attr in ipairs(op.attributes) do
    local v, at = given[attr.name], attrs[attr.name]
    left[attr.name] = nil
    if type(v) == "table" and attr.kind == kinds.ints then
      at.count = #v
      for i, number in ipairs(v) do at.value[i - 1] = number end
    elseif type(v) == "number" and attr.kind == kinds.ints then
      at.count, at.value[0] = 1, v
    elseif v ~= nil then
      at[0] = attr.kind == kinds.choice and attr.choice_index[v] or v
    end
  end
  local key = entries.first(left)
  if key ~= nil then errors.raise("invalid_argument", name, ("unknown option %q"):format(key)) end
  return function(...)
    local _ = struct -- what run's pointers point into lives as long as this function
    return run(...)
  end
end

---Functions that write into open tensors by native calls alone, without handles of views. `part`: the struct that
---slice's attributes stand in. A number is one that the dtype of t holds.
--- fill(t, number, where), copy(t, source, where): into all of t; fill_part, copy_part: into the part of it that the
---slice shows.
function M.writer(part)
  local slice, filled, copy = operators.get "slice", operators.get "filled", operators.get "copy"
  local struct = ffi.new("uint8_t[?]", filled.attr_size)
  local out, inputs, view = ffi.new("pgc_tensor *[1]"), ffi.new("pgc_tensor *[2]"), ffi.new("pgc_tensor *[1]")
  local value_at
  ffi.copy(struct, filled.defaults, filled.attr_size)
  for _, attr in ipairs(filled.attributes) do
    if attr.name == "value" then value_at = ffi.cast(pointer[attr.kind], struct + attr.offset) end
  end

  local function put_number(target, number)
    inputs[0], value_at[0] = target, number
    local rc = C.pgc_call(filled.id, inputs, 1, nil, struct, 1, out, 1)
    if rc == RETRY then
      operators.make_room()
      inputs[0], value_at[0] = target, number
      rc = C.pgc_call(filled.id, inputs, 1, nil, struct, 1, out, 1)
    end
    return rc
  end
  local function put_tensor(target, source)
    inputs[0], inputs[1] = target, source
    local rc = C.pgc_call(copy.id, inputs, 2, nil, nil, 0, out, 1)
    if rc == RETRY then
      operators.make_room()
      inputs[0], inputs[1] = target, source
      rc = C.pgc_call(copy.id, inputs, 2, nil, nil, 0, out, 1)
    end
    return rc
  end
  -- The part of t as a view that nobody else knows.
  local function open(t)
    if origins.on then origins.note() end
    local rc = C.pgc_call1(slice.id, t.ptr, part, view)
    if rc == RETRY then
      operators.make_room()
      rc = C.pgc_call1(slice.id, t.ptr, part, view)
    end
    if rc ~= 0 then errors.raise_native(C, slice.name) end
    return view[0]
  end

  local function fill(t, number, where)
    if origins.on then origins.note() end
    local rc = put_number(t.ptr, number)
    if rc ~= 0 then errors.raise_native(C, where, nil, filled.name) end
    C.pgc_release(out[0])
  end
  local function fill_part(t, number, where)
    local target = open(t)
    local rc = put_number(target, number)
    C.pgc_release(target)
    if rc ~= 0 then errors.raise_native(C, where, nil, filled.name) end
    C.pgc_release(out[0])
  end
  local function copy_all(t, source, where)
    if origins.on then origins.note() end
    local rc = put_tensor(t.ptr, source.ptr)
    if rc ~= 0 then errors.raise_native(C, where) end
    C.pgc_release(out[0])
  end
  local function copy_part(t, source, where)
    local target = open(t)
    local rc = put_tensor(target, source.ptr)
    C.pgc_release(target)
    if rc ~= 0 then errors.raise_native(C, where) end
    C.pgc_release(out[0])
  end
  return { fill = fill, copy = copy_all, fill_part = fill_part, copy_part = copy_part,
           struct = struct } -- kept for its pointers
end

function M.start(library) C = library end

return M
