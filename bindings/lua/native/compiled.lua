-- SPDX-License-Identifier: Apache-2.0
-- Compiled functions (core/src/compile). They are few and long-lived, so these have finalizers.

local ffi = require "ffi"
local errors = require "perigee.native.errors"
local gradients = require "perigee.native.gradients"
local handles = require "perigee.native.handles"
local lifetimes = require "perigee.native.lifetimes"
local modules = require "perigee.native.modules"
local operators = require "perigee.native.operators"
local scopes = require "perigee.native.scopes"

local M = {}
local C
local entered, ran = ffi.new("int32_t[1]"), ffi.new("int32_t[1]")
local pointers = ffi.typeof("pgc_tensor *[?]")
local call_none, call_one, call_two, call_any = scopes.calls "compiled"
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

---What M.call takes. fn: what a call runs; by: what its tensors say that has closed them; fuse: whether several
---operators may be one kernel; capture: whether a plan may be captured.
function M.create(fn, by, fuse, capture)
  local out = ffi.new("pgc_compiled *[1]")
  if C.pgc_compiled_create(out) ~= 0 then errors.raise_native(C, "compile") end
  local compiled = ffi.gc(out[0], C.pgc_compiled_release)
  C.pgc_compiled_fuse(compiled, fuse and 1 or 0)
  C.pgc_compiled_capture(compiled, capture and 1 or 0)
  return { native = compiled, fn = fn, by = by, ending = false, noted = false, stepped = false }
end

-- Optimizers count steps that a compiled call has yet to carry out. Where it fails before that, they count as before.
-- Whether an update has happened is told by the version of a parameter, which is looked at before a call begins: within
-- it that would end what is planned as one.
local noting -- whose call is running; one within it notes for both

---Before a group of parameters, { params =, steps = }, is stepped.
function M.note_step(group)
  if not noting then return end
  local list = noting.noted or {}
  for i = 1, #list do if list[i].group == group then return end end
  noting.noted = list
  local steps = {}
  for i, step in ipairs(group.steps) do steps[i] = step end
  list[#list + 1] = { group = group, steps = steps }
end

local function version_of(group) return group.params[1] and gradients.version_of(group.params[1]) end

local function begin_notes(self)
  if noting then return end
  noting, self.noted = self, false
  local stepped = self.stepped -- by the last call
  if not stepped then return end
  for i = 1, #stepped do stepped[i].version = version_of(stepped[i].group) end
end

local function version_before(self, group)
  local stepped = self.stepped or {}
  for i = 1, #stepped do if stepped[i].group == group then return stepped[i].version end end
end

local function take_back(self)
  if noting ~= self then return end
  noting = nil
  for _, note in ipairs(self.noted or {}) do
    local group, version = note.group, version_before(self, note.group)
    if version ~= nil and version == version_of(group) then
      for i, step in ipairs(note.steps) do group.steps[i] = step end
    end
  end
end

-- ---- a call ----

-- Whether the call is planned; else nothing has begun.
local function begin(self)
  begin_notes(self)
  local rc = C.pgc_compiled_begin(self.native, entered)
  if rc == 0 and entered[0] ~= 0 then return true end
  self.ending = false
  take_back(self)
  if rc ~= 0 then errors.raise_native(C, "compile") end
  return false
end

local function give_up(self, err)
  C.pgc_compiled_abort(self.native)
  take_back(self)
  error(err, 0)
end

-- Runs what has been asked for. `ending`: what does so, with the call's results.
local function carry_out(self, ending, count, result)
  handles.release_dead() -- what nobody can ask for any more needs no memory of its own
  local rc
  if ending then
    rc = ending(self.native, count, result)
  else
    rc = C.pgc_compiled_end(self.native)
    if rc == RETRY then
      operators.make_room()
      rc = C.pgc_compiled_end(self.native)
    end
  end
  if rc ~= 0 then
    local _, err = pcall(errors.raise_native, C, "compile")
    give_up(self, err)
  end
  if noting == self then
    noting = nil
    if self.noted then self.stepped = self.noted end
  end
end

-- What stands before the function's call, in main, and behind it: each compiles by itself too, where LuaJIT does not
-- compile what calls it. See "Code that compiles" in bindings/lua/README.md.
local function enter(self)
  if not begin(self) then return nil end
  local log = handles.new_log()
  handles.open_log(log)
  return log
end

local function leave(self, log, ok, count, result)
  local ending = self.ending
  self.ending = false
  handles.leave_log(log)
  if ok then lifetimes.spare(count, result) end
  handles.close_log(log, self.by)
  if not ok then give_up(self, count) end
  carry_out(self, ending, count, result)
end

local function finish(self, log, ok, count, result)
  leave(self, log, ok, count, result)
  if count == 1 then return result end
  return unpack(result, 1, count)
end

local function in_coroutine(self, log, ...)
  local compiled = self.native
  return lifetimes.call_within(log, function() C.pgc_compiled_go_on(compiled) end,
                               function() C.pgc_compiled_pause(compiled) end, self.fn, ...)
end

local function call_in_coroutine(self, ...)
  if not begin(self) then return lifetimes.scope(self.by, self.fn, ...) end
  local log = handles.new_log()
  return finish(self, log, pcall(call_any, in_coroutine, self, log, ...))
end

---M.call without an argument, in main.
function M.call_with_none(self)
  local log = enter(self)
  if not log then return lifetimes.scope(self.by, self.fn) end
  return finish(self, log, pcall(call_none, self.fn))
end

---M.call with one argument, in main.
function M.call_with_one(self, argument)
  local log = enter(self)
  if not log then return lifetimes.scope(self.by, self.fn, argument) end
  return finish(self, log, pcall(call_one, self.fn, argument))
end

---M.call with two arguments, in main.
function M.call_with_two(self, a, b)
  local log = enter(self)
  if not log then return lifetimes.scope(self.by, self.fn, a, b) end
  return finish(self, log, pcall(call_two, self.fn, a, b))
end

---Calls the function, closes what nobody outside of the call may use, and then runs what that has asked for.
function M.call(self, ...)
  if not scopes.in_main() then return call_in_coroutine(self, ...) end
  local log = enter(self)
  if not log then return lifetimes.scope(self.by, self.fn, ...) end
  return finish(self, log, pcall(call_any, self.fn, ...))
end

---Calls from now on may be frozen: see call_to_freeze. layouts: whether what they compute may differ by rounding.
function M.freezes(self, layouts) C.pgc_compiled_freezes(self.native, layouts and 1 or 0) end

---M.call, where the call that it makes may be frozen. results(count, result): the tensors among what the function
---answers, a list; frozen(call, made): hears what run takes, and by result whether it gives that; not after a first
---call.
function M.call_to_freeze(self, arguments, results, frozen, ...)
  self.ending = function(compiled, count, result)
    local list = results(count, result)
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
