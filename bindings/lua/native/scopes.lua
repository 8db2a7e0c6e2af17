-- SPDX-License-Identifier: Apache-2.0
-- Ambient state for the duration of a function: restored on error, all results returned, and carried by coroutines. In
-- a coroutine the function runs in an inner coroutine, so that a yield inside it first restores what was outside, then
-- passes through, and a resume puts the state back.

local M = {}

-- Puts the old state back and hands on what pcall answered. Foreign errors are rethrown as they are.
local function finish(leave, old, ok, ...)
  leave(old)
  if not ok then error((...), 0) end
  return ...
end

local function pass(co, enter, leave, old, ok, ...)
  leave(old)
  if not ok then error((...), 0) end
  if coroutine.status(co) == "dead" then return ... end
  return M.resume(co, enter, leave, coroutine.yield(...))
end

function M.resume(co, enter, leave, ...)
  return pass(co, enter, leave, enter(), coroutine.resume(co, ...))
end

---Whether no coroutine runs: then what is put in force is put back by whoever put it there.
function M.in_main()
  local co, main = coroutine.running()
  return co == nil or main == true
end

---Runs fn(...) between old = enter() and leave(old).
function M.with(enter, leave, fn, ...)
  if M.in_main() then return finish(leave, enter(), pcall(fn, ...)) end
  return M.resume(coroutine.create(fn), enter, leave, ...)
end

return M
