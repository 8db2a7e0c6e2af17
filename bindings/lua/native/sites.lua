-- SPDX-License-Identifier: Apache-2.0
-- Tells the library of what LuaJIT compiles during a profile, so that compiled code need not stop for a look at the
-- stack behind each operator: a trace calls from one address for one place (perigee.h, pgc_profile_site). That holds as
-- long as the nearest frame of a script belongs to the trace, which it does where the trace begins in a script's
-- function and comes by no return and by no tail call into one of Perigee's own as its outermost: what is below is not
-- part of it.

local ffi = require "ffi"
local has_compiler, util = pcall(require, "jit.util")

local M = {}
local C
local is_own, asker, offer -- given to begin
local fixed -- by number of a trace

local outermost, is_fixed -- the function that the trace in the making begins in; whether all so far holds

local function is_of_own(fn)
  local source = util.funcinfo(fn).source
  return source ~= nil and is_own(source)
end

local function on_record(_, fn, _, depth)
  if fn == asker then offer() end
  if depth ~= 0 or fn == outermost then return end
  outermost = fn
  if is_of_own(fn) then is_fixed = false end
end

local function on_trace(what, trace, fn, _, parent, exit)
  if what == "start" then
    outermost = fn
    if parent and exit >= 0 then is_fixed = fixed[parent] else is_fixed = not is_of_own(fn) end
    return
  end
  C.pgc_profile_offer(nil)
  if what == "stop" then
    local code, address = util.tracemc(trace)
    fixed[trace] = is_fixed
    if code then C.pgc_profile_code(ffi.cast("const void *", address), #code, is_fixed and 1 or 0) end
  elseif what == "flush" then
    fixed = {}
    C.pgc_profile_sites(1)
  end
end

-- Whether somebody watches the compiler already: there is room for one.
local function is_watched()
  for _, handler in pairs(debug.getregistry()._VMEVENTS or {}) do
    if type(handler) == "function" then return true end
  end
  return false
end

---Begins. Without a compiler, or where another watches it, nothing is known of any address.
---@param own fun(chunk: string): boolean whether a chunk's name is of Perigee's own code
---@param asking function that calls pgc_profile_site
---@param offering fun() calls pgc_profile_offer with what that would find
function M.begin(library, own, asking, offering)
  if not has_compiler or not jit.status() or is_watched() then return end
  C, is_own, asker, offer, fixed = library, own, asking, offering, {}
  jit.flush() -- where the traces that there are begin is not known
  C.pgc_profile_sites(1)
  jit.attach(on_trace, "trace")
  jit.attach(on_record, "record")
end

function M.finish()
  if not C then return end
  jit.attach(on_record)
  jit.attach(on_trace)
  C.pgc_profile_sites(0)
  C = nil
  jit.flush() -- what asks at every operator is no way on
end

-- A trace that leaves its code while LuaJIT records one would spoil that, so nothing is compiled that runs meanwhile.
-- And the library learns from pgc_profile_sites where the interpreter's calls return to.
for _, fn in ipairs { is_of_own, on_record, on_trace, M.begin, M.finish } do jit.off(fn) end

return M
