-- SPDX-License-Identifier: Apache-2.0
-- Compiled functions (core/src/compile). They are few and long-lived, so these have finalizers.

local ffi = require "ffi"
local entries = require "perigee.native.entries"
local errors = require "perigee.native.errors"
local gradients = require "perigee.native.gradients"
local handles = require "perigee.native.handles"
local modules = require "perigee.native.modules"
local operators = require "perigee.native.operators"
local scopes = require "perigee.native.scopes"

local M = {}
local C
local entered, ran = ffi.new("int32_t[1]"), ffi.new("int32_t[1]")
local pointers = ffi.typeof("pgc_tensor *[?]")
local RETRY = 10

local MODES = { off = true, plan = true, fuse = true, layout = true, capture = true }

---How far what is recorded may be taken: PERIGEE_COMPILE, as it is now.
---@return string
function M.mode(where)
  local mode = os.getenv "PERIGEE_COMPILE"
  if mode == nil or mode == "" then return "capture" end
  if not MODES[mode] then
    errors.raise("invalid_argument", where,
                 ("PERIGEE_COMPILE is %q; expected off, plan, fuse, layout or capture"):format(mode))
  end
  return mode
end

---What M.call takes. fuse: whether several operators may be one kernel; capture: whether a plan may be captured.
function M.create(fuse, capture)
  local out = ffi.new("pgc_compiled *[1]")
  if C.pgc_compiled_create(out) ~= 0 then errors.raise_native(C, "compile") end
  local compiled = ffi.gc(out[0], C.pgc_compiled_release)
  C.pgc_compiled_fuse(compiled, fuse and 1 or 0)
  C.pgc_compiled_capture(compiled, capture and 1 or 0)
  return { native = compiled, go_on = function() C.pgc_compiled_go_on(compiled) end,
           pause = function() C.pgc_compiled_pause(compiled) end }
end

-- Optimizers count steps that a compiled call has yet to carry out. Where it fails before that, they count as before.
-- Whether an update has happened is told by the version of a parameter, which is looked at before a call begins: within
-- it that would end what is planned as one.
local noted
---Before a group of parameters, { params =, steps = }, is stepped.
function M.note_step(group)
  if not noted or noted[group] then return end
  local steps = {}
  for i, step in ipairs(group.steps) do steps[i] = step end
  noted[group] = steps
end

local function version_of(group) return group.params[1] and gradients.version_of(group.params[1]) end

local function begin_notes(self)
  if noted then return false end -- within another's call, which notes for both
  self.versions = {}
  for group in pairs(self.groups or {}) do self.versions[group] = version_of(group) end
  noted = {}
  return true
end

local function take_back(self, noting)
  if not noting then return end
  local list = noted
  noted = nil
  for group, steps in pairs(list or {}) do
    if self.versions[group] ~= nil and self.versions[group] == version_of(group) then
      for i, step in ipairs(steps) do group.steps[i] = step end
    end
  end
end

local function finish(self, noting, ok, ...)
  local compiled, freezes = self.native, self.ending
  self.ending = nil
  if not ok then
    C.pgc_compiled_abort(compiled)
    take_back(self, noting)
    error((...), 0)
  end
  handles.release_dead() -- what nobody can ask for any more needs no memory of its own
  local rc
  if freezes then
    rc = freezes(compiled, ...)
  else
    rc = C.pgc_compiled_end(compiled)
    if rc == RETRY then
      operators.make_room()
      rc = C.pgc_compiled_end(compiled)
    end
  end
  if rc ~= 0 then
    local _, err = pcall(errors.raise_native, C, "compile")
    C.pgc_compiled_abort(compiled)
    take_back(self, noting)
    error(err, 0)
  end
  if noting then
    if entries.count(noted, 1) > 0 then self.groups = noted end
    noted = nil
  end
  return ...
end

---Calls scope(by, fn, ...), which closes what nobody outside of it may use, and then runs what that has asked for.
function M.call(self, scope, by, fn, ...)
  local compiled = self.native
  local noting = begin_notes(self)
  if C.pgc_compiled_begin(compiled, entered) ~= 0 then
    take_back(self, noting)
    errors.raise_native(C, "compile")
  end
  if entered[0] == 0 then
    self.ending = nil
    take_back(self, noting)
    return scope(by, fn, ...)
  end
  if scopes.in_main() then -- as scopes.with, in one step
    self.go_on()
    return finish(self, noting, pcall(scope, by, fn, ...))
  end
  return finish(self, noting, pcall(scopes.with, self.go_on, self.pause, scope, by, fn, ...))
end

---Calls from now on may be frozen: see call_to_freeze. layouts: whether what they compute may differ by rounding.
function M.freezes(self, layouts) C.pgc_compiled_freezes(self.native, layouts and 1 or 0) end

---M.call, where the call that it makes may be frozen. results(...): the tensors among what the function answers, a
---list; frozen(call, made): hears what run takes, and by result whether it gives that; not after a first call.
function M.call_to_freeze(self, arguments, results, frozen, ...)
  self.ending = function(compiled, ...)
    local list = results(...)
    local made, call = ffi.new("uint8_t[?]", math.max(#list, 1)), ffi.new("pgc_frozen *[1]")
    local given, given_count = gradients.array(arguments, nil, "compile")
    local rc = C.pgc_compiled_freeze(compiled, given, given_count, gradients.array(list, nil, "compile"), #list, made,
                                     call)
    if rc == 0 and call[0] ~= nil then
      local flags = {}
      for i = 1, #list do flags[i] = made[i - 1] ~= 0 end
      frozen({ native = call[0], arguments = pointers(math.max(#arguments, 1)), made = flags,
               results = pointers(math.max(#list, 1)) }, flags)
    end
    return rc
  end
  return M.call(self, ...)
end

---Runs a frozen call. False: the arguments are described otherwise, or it would be part of another call. Else its
---results that are made are at call.results, from 0 on; wrap takes them.
function M.run(self, call, arguments)
  local given = call.arguments
  for i = 1, #arguments do given[i - 1] = handles.pointer(arguments[i], "compiled") end
  local rc = C.pgc_frozen_run(self.native, call.native, given, call.results, ran)
  if rc == RETRY then
    operators.make_room()
    rc = C.pgc_frozen_run(self.native, call.native, given, call.results, ran)
  end
  if rc ~= 0 then errors.raise_native(C, "compile") end
  return ran[0] ~= 0
end
M.wrap = handles.wrap

---It is not run any more.
function M.release(self, call) C.pgc_frozen_release(self.native, call.native) end

---What it has done so far.
function M.stats(self)
  local text = C.pgc_compiled_json(self.native)
  if text == nil then errors.raise_native(C, "compile") end
  return modules.json(ffi.string(text))
end

function M.start(library) C = library end

return M
