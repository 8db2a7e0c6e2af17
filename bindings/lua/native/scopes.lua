-- SPDX-License-Identifier: Apache-2.0
-- Ambient state for the duration of a function: restored on error, all results returned, and carried by coroutines. In
-- a coroutine the function runs in an inner coroutine, so that a yield inside it first restores what was outside, then
-- passes through, and a resume puts the state back.

local coroutines = require "perigee.native.coroutines"

local M = {}

local outer = setmetatable({}, { __mode = "k" }) -- by inner coroutine: the one that it stands for

---How many values these are, and the value itself if it is one, else all in a table. Where results stand in a local,
---LuaJIT compiles what it does not compile around `return ...`: see "Code that compiles" in bindings/lua/README.md.
function M.counted(...)
  local count = select("#", ...)
  if count == 1 then
    local value = ...
    return 1, value
  end
  return count, { ... }
end
local counted = M.counted

local CALLS = [[
local counted = ...
return function(fn)
  local count, result = counted(fn())
  return count, result
end, function(fn, argument)
  local count, result = counted(fn(argument))
  return count, result
end, function(fn, first, second)
  local count, result = counted(fn(first, second))
  return count, result
end, function(fn, ...)
  local count, result = counted(fn(...))
  return count, result
end
]]

---What pcall calls in place of a user's function, by how many arguments there are: none, one, two, any number. Each
---module has functions of its own, of bytecode of its own: the same one twice on the stack looks like recursion to
---LuaJIT.
---@param name string the module's
function M.calls(name) return assert(loadstring(CALLS, "=perigee:" .. name))(counted) end
local call_none, call_one, call_two, call_any = M.calls "scopes"

-- Puts the old state back and answers the results. Foreign errors are rethrown as they are.
local function finish(leave, old, ok, count, result)
  leave(old)
  if not ok then error(count, 0) end
  if count == 1 then return result end
  return unpack(result, 1, count)
end

local function with_none(enter, leave, fn) return finish(leave, enter(), pcall(call_none, fn)) end
local function with_one(enter, leave, fn, argument) return finish(leave, enter(), pcall(call_one, fn, argument)) end
local function with_two(enter, leave, fn, a, b) return finish(leave, enter(), pcall(call_two, fn, a, b)) end

local function pass(co, enter, leave, old, ok, ...)
  leave(old)
  if not ok then error((...), 0) end
  if coroutine.status(co) == "dead" then return ... end
  return M.resume(co, enter, leave, coroutine.yield(...))
end

function M.resume(co, enter, leave, ...)
  outer[co] = coroutine.running()
  return pass(co, enter, leave, enter(), coroutine.resume(co, ...))
end

---Calls visit(info, thread, level) for each frame of the stack, innermost first, until it answers something, and
---answers that. Below an inner coroutine come the frames of the one around it.
---@param what string as of debug.getinfo
function M.each_frame(what, visit)
  local level, thread = 2, nil
  repeat
    while true do
      local info
      if thread then info = debug.getinfo(thread, level, what) else info = debug.getinfo(level, what) end
      if not info then break end
      local found = visit(info, thread, level)
      if found ~= nil then return found end
      level = level + 1
    end
    thread, level = outer[thread or coroutine.running()], 0
  until not thread
end

---The first local variable of a frame that is being visited, called from visit itself.
function M.first_local(thread, level)
  local _, value
  if thread then _, value = debug.getlocal(thread, level, 1) else _, value = debug.getlocal(level + 2, 1) end
  return value
end

---The text of the stack, coroutines around this one included.
---@param level integer as of debug.traceback
function M.traceback(level)
  local text, thread = debug.traceback("", level + 1):sub(2), outer[coroutine.running()]
  while thread do
    text, thread = text .. debug.traceback(thread, "", 0):gsub("^%s*stack traceback:", ""), outer[thread]
  end
  return text
end

---Whether no coroutine runs: then what is put in force is put back by whoever put it there.
function M.in_main()
  if not coroutines.possible then return true end
  local co, main = coroutine.running()
  return co == nil or main == true
end

---Runs fn(...) between old = enter() and leave(old).
function M.with(enter, leave, fn, ...)
  if M.in_main() then
    local count = select("#", ...)
    if count == 0 then return with_none(enter, leave, fn) end
    if count == 1 then
      local argument = ...
      return with_one(enter, leave, fn, argument)
    end
    if count == 2 then
      local a, b = ...
      return with_two(enter, leave, fn, a, b)
    end
    return finish(leave, enter(), pcall(call_any, fn, ...))
  end
  return M.resume(coroutine.create(fn), enter, leave, ...)
end

return M
