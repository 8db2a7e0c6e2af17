-- SPDX-License-Identifier: Apache-2.0
-- Options that are one of some names.

local errors = require "perigee.native.errors"
local suggest = require "perigee.native.suggest"

local choice = {}

---Raises that a value is none of the names.
---@param where string
---@param name string what the option is called
---@param choices string[]
function choice.refuse(where, name, choices, v)
  local near = type(v) == "string" and suggest(v, choices)
  errors.raise("invalid_argument", where,
               ("%s must be one of %s, got %s"):format(name, table.concat(choices, ", "), errors.describe(v)),
               near and ("did you mean %q?"):format(near))
end

---The value, which is one of the names, or raises.
function choice.check(where, name, choices, v)
  for _, known in ipairs(choices) do
    if v == known then return v end
  end
  choice.refuse(where, name, choices, v)
end

return choice
