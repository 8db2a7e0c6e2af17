-- SPDX-License-Identifier: Apache-2.0
-- fn(...), whose tensors no pg.scope around it closes: for state that is first made in the middle of a training step.

local native = require "perigee.native"
local handles = native.handles

local function enter()
  local outer = handles.current_log()
  handles.set_log(false)
  return outer
end

return function(fn, ...)
  if not handles.current_log() then return fn(...) end
  return native.with(enter, handles.set_log, fn, ...)
end
