-- SPDX-License-Identifier: Apache-2.0
-- Mixed precision: autocast scopes, and the condition of a step that may have to be skipped.

local ffi = require "ffi"
local errors = require "perigee.native.errors"
local dtypes = require "perigee.native.dtypes"
local handles = require "perigee.native.handles"
local tensor = require "perigee.native.tensor"

local M = {}
local C
local out = ffi.new("pgc_autocast *[1]")

---A scope inside of the one in force: `dtype` (a name; nil: off) on devices of a type (nil: all). Freed by
---release_autocast.
function M.new_autocast(device_type, dtype)
  local code = dtype and dtypes.by_name[dtype].code or 0
  if C.pgc_autocast_create(device_type, code, out) ~= 0 then errors.raise_native(C, "autocast") end
  return out[0]
end

---The same, freed by the collector if need be: a coroutine that holds it may be abandoned.
function M.new_collected_autocast(device_type, dtype)
  return ffi.gc(M.new_autocast(device_type, dtype), C.pgc_autocast_release)
end

function M.release_autocast(scope) C.pgc_autocast_release(scope) end
function M.release_collected_autocast(scope) C.pgc_autocast_release(ffi.gc(scope, nil)) end

---Puts a scope in force and answers the old one.
function M.set_autocast(scope)
  local value = C.pgc_set_autocast(scope)
  return value
end

---Whether any scope is in force, be it one that switches autocast off.
function M.in_autocast() return C.pgc_autocast_scope() ~= nil end

---The dtype that autocast uses on a device (a number, or a tensor that lies there), or nil where it is off.
function M.autocast_dtype(device)
  if type(device) ~= "number" then device = C.pgc_device_of(handles.pointer(device, "autocast")) end
  local code = C.pgc_autocast_dtype(device)
  return code ~= 0 and dtypes.by_code[code].name or nil
end

---From now on what writes does so only where `skip`, one bool, is false; nil: always.
function M.set_condition(skip)
  if skip then tensor.check_open(skip, "condition") end
  if C.pgc_set_condition(skip and skip.ptr or nil) ~= 0 then errors.raise_native(C, "condition") end
end

function M.start(library) C = library end

return M
