-- SPDX-License-Identifier: Apache-2.0
-- docs/library/perigee.lua, read.

local luacats = require "luacats"

local library = {}

local PATH = "docs/library/perigee.lua"

---@param root string the folder of the sources
---@return table file, string[] problems what luacats.read answers
---@return integer size bytes
function library.read(root)
  local file = assert(io.open(root .. "/" .. PATH, "r"))
  local text = file:read("*a")
  file:close()
  local read, problems = luacats.read(text, PATH)
  return read, problems, #text
end

return library
