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
  [kinds.bool] = "int32_t *", [kinds.int] = "int64_t *", [kinds.axis] = "int64_t *", [kinds.float] = "double *",
  [kinds.ints] = "pg_ints *", [kinds.axes] = "pg_ints *", [kinds.dims] = "pg_ints *",
}

---A function of one tensor, and the operator's attributes by name: pointers to numbers, or to { count, value[8] }.
---Everything counts from 0 here.
function M.prepare(name)
  local op = operators.get(name) or errors.raise("not_found", name, "there is no such operator")
  local struct = ffi.new("uint8_t[?]", math.max(op.attr_size, 8))
  local out, id = ffi.new("pgc_tensor *[1]"), op.id
  ffi.copy(struct, op.defaults, op.attr_size)
  local attrs = {}
  for _, attr in ipairs(op.attributes) do
    if pointer[attr.kind] then attrs[attr.name] = ffi.cast(pointer[attr.kind], struct + attr.offset) end
  end
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

function M.start(library) C = library end

return M
