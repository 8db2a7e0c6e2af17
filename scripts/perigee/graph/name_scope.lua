-- SPDX-License-Identifier: Apache-2.0
-- pg.name_scope: what the names of a part of a graph begin with.

local native = require "perigee.native"

---Calls fn(...); what it records into a graph is called "name/add" instead of "add", and placeholders and variables
---that it makes are fed and fetched as "name/x". Scopes inside of scopes join: "encoder/attention/add". Layers give the
---same by their path in the model. Eager code runs as without it.
---@param name string
---@param fn function
---@param ... any arguments of fn
---@return any ... what fn returns
local function name_scope(name, fn, ...)
  if type(name) ~= "string" or not name:find("^[%w_.%-][%w_./%-]*$") then
    native.raise("invalid_argument", "name_scope",
                 "needs a name of letters, digits and _.-/, got " .. native.describe(name))
  end
  native.checked.need_function("name_scope", fn)
  local origins = native.origins
  local outer = origins.scope()
  local inner = outer and outer .. "/" .. name or name
  return native.with(function() return origins.set_scope(inner) end, origins.set_scope, fn, ...)
end

return { name_scope = name_scope }
