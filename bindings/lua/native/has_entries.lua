-- SPDX-License-Identifier: Apache-2.0
-- What the quick ways of calls ask of a list before they read it by position.

local count = require("perigee.native.entries").count

---Whether a table has just n entries.
---@param list table
---@param n integer
---@return boolean
return function(list, n)
  local found = count(list, n + 1)
  return found == n
end
