-- SPDX-License-Identifier: Apache-2.0
-- Where operators are called from: told to the core before each of them while it is on, for the messages of what fails
-- asynchronously. Finding the line walks the stack, so it is off unless asked for.

local errors = require "perigee.native.errors"

local M = { on = false }
errors.origins = M
local C

---Tells the core the script's line, and the layer whose call stands on the stack.
function M.note()
  local line, path = errors.script_line() or "?", errors.layer_path and errors.layer_path()
  C.pgc_set_origin(path and line .. " in " .. path or line)
end

function M.set(on)
  M.on = on
  if not on then C.pgc_set_origin(nil) end
end

function M.start(library) C = library end

return M
