-- SPDX-License-Identifier: Apache-2.0
-- How long tensors of a function live: pg.scope, and the same for code of our own.

local entries = require "perigee.native.entries"
local handles = require "perigee.native.handles"
local scopes = require "perigee.native.scopes"

local M = {}

local is_tensor = handles.is_tensor
local call_none, call_one, call_two, call_any = scopes.calls "lifetimes"

-- A result, or those in a table.
local function spare(v)
  if is_tensor(v) then
    handles.spare(v)
  elseif type(v) == "table" and getmetatable(v) == nil then
    local keys, count = entries.keys(v)
    for i = 1, count do
      local x = v[keys[i]]
      if is_tensor(x) then handles.spare(x) end
    end
  end
end

---The log that is closed next lets the tensors among results pass, also those in tables; both as of scopes.counted.
function M.spare(count, result)
  if count == 1 then return spare(result) end
  for i = 1, count do spare(result[i]) end
end

local function finish(log, by, ok, count, result)
  handles.leave_log(log)
  if ok then M.spare(count, result) end
  handles.close_log(log, by)
  if not ok then error(count, 0) end
  if count == 1 then return result end
  return unpack(result, 1, count)
end

local function scope_none(by, fn)
  local log = handles.new_log()
  handles.open_log(log)
  return finish(log, by, pcall(call_none, fn))
end

local function scope_one(by, fn, argument)
  local log = handles.new_log()
  handles.open_log(log)
  return finish(log, by, pcall(call_one, fn, argument))
end

local function scope_two(by, fn, a, b)
  local log = handles.new_log()
  handles.open_log(log)
  return finish(log, by, pcall(call_two, fn, a, b))
end

local function call_within(log, enter, leave, fn, ...)
  return scopes.with(function()
    local old = enter()
    handles.open_log(log)
    return old
  end, function(old)
    handles.leave_log(log)
    leave(old)
  end, fn, ...)
end

local function nothing() end

---Calls fn(...) and closes every tensor that it made, but for what it returns (also in tables) and what is kept. `by`
---is what tensors say that has closed them.
function M.scope(by, fn, ...)
  if not scopes.in_main() then
    local log = handles.new_log()
    return finish(log, by, pcall(call_any, call_within, log, nothing, nothing, fn, ...))
  end
  local arguments = select("#", ...) -- see "Code that compiles" in bindings/lua/README.md
  if arguments == 0 then return scope_none(by, fn) end
  if arguments == 1 then
    local argument = ...
    return scope_one(by, fn, argument)
  end
  if arguments == 2 then
    local a, b = ...
    return scope_two(by, fn, a, b)
  end
  local log = handles.new_log()
  handles.open_log(log)
  return finish(log, by, pcall(call_any, fn, ...))
end

---M.scope for code of our own that shows what it makes to nobody: memory then serves what comes next while it is still
---in the processor's caches, and no collector has to run.
function M.tidy(fn, ...) return M.scope(nil, fn, ...) end

M.call_within = call_within

return M
