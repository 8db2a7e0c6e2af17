-- SPDX-License-Identifier: Apache-2.0
-- docs/library, read.

local luacats = require "luacats"

local library = {}

local FOLDER = "docs/library"

local function text_of(path)
  local file = assert(io.open(path, "r"))
  local text = file:read("*a")
  file:close()
  return text
end

-- The files beside perigee.lua, in the order of their names.
local function others(root)
  local list = io.popen(("ls '%s/%s'/perigee_*.lua"):format(root, FOLDER))
  local paths = {}
  for path in list:lines() do paths[#paths + 1] = path end
  list:close()
  return paths
end

---All files as one: an editor reads what they say of one class together.
---@param root string the folder of the sources
---@return table file, string[] problems what luacats.read answers
---@return integer size bytes of the largest
function library.read(root)
  local text = text_of(root .. "/" .. FOLDER .. "/perigee.lua")
  local parts, size = {}, #text
  for _, path in ipairs(others(root)) do
    local more = text_of(path)
    size = math.max(size, #more)
    local head, name, rest = more:match "^(.-)%-%-%-@class [%w_.]+\nlocal ([%w_]+) = {}\n(.*)$"
    assert(head:find("^%-%-%-@meta _\n") and text:find("\nlocal " .. name .. " = {}\n", 1, true), path)
    parts[#parts + 1] = rest
  end
  text = text:gsub("\nreturn pg\n$", function() return "\n" .. table.concat(parts, "\n") .. "\nreturn pg\n" end)
  local read, problems = luacats.read(text, FOLDER)
  return read, problems, size
end

return library
