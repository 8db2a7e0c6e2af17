-- SPDX-License-Identifier: Apache-2.0
-- Compiled functions (core/src/compile). They are few and long-lived, so these have finalizers.

local ffi = require "ffi"
local errors = require "perigee.native.errors"
local handles = require "perigee.native.handles"
local modules = require "perigee.native.modules"
local operators = require "perigee.native.operators"
local scopes = require "perigee.native.scopes"

local M = {}
local C
local entered = ffi.new("int32_t[1]")
local RETRY = 10

---What M.call takes.
function M.create()
  local out = ffi.new("pgc_compiled *[1]")
  if C.pgc_compiled_create(out) ~= 0 then errors.raise_native(C, "compile") end
  local compiled = ffi.gc(out[0], C.pgc_compiled_release)
  return { native = compiled, go_on = function() C.pgc_compiled_go_on(compiled) end,
           pause = function() C.pgc_compiled_pause(compiled) end }
end

local function finish(compiled, ok, ...)
  if not ok then
    C.pgc_compiled_abort(compiled)
    error((...), 0)
  end
  handles.release_dead() -- what nobody can ask for any more needs no memory of its own
  local rc = C.pgc_compiled_end(compiled)
  if rc == RETRY then
    operators.make_room()
    rc = C.pgc_compiled_end(compiled)
  end
  if rc ~= 0 then
    local _, err = pcall(errors.raise_native, C, "compile")
    C.pgc_compiled_abort(compiled)
    error(err, 0)
  end
  return ...
end

---Calls scope(by, fn, ...), which closes what nobody outside of it may use, and then runs what that has asked for.
function M.call(self, scope, by, fn, ...)
  local compiled = self.native
  if C.pgc_compiled_begin(compiled, entered) ~= 0 then errors.raise_native(C, "compile") end
  if entered[0] == 0 then return scope(by, fn, ...) end
  if scopes.in_main() then -- as scopes.with, in one step
    self.go_on()
    return finish(compiled, pcall(scope, by, fn, ...))
  end
  return finish(compiled, pcall(scopes.with, self.go_on, self.pause, scope, by, fn, ...))
end

---What it has done so far.
function M.stats(self)
  local text = C.pgc_compiled_json(self.native)
  if text == nil then errors.raise_native(C, "compile") end
  return modules.json(ffi.string(text))
end

function M.start(library) C = library end

return M
