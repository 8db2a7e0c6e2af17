-- SPDX-License-Identifier: Apache-2.0
-- Which files a path of a command stands for.

local function quoted(path) return "'" .. path:gsub("'", "'\\''") .. "'" end

---A script itself, or the files of a folder whose names fit, in the order of their bytes. Folders are searched by
---find(1): Lua cannot list them.
---@param path string
---@param name string of find(1): "*_test.lua"
---@return string[]? files nil: there is nothing of this name
return function(path, name)
  local file = io.open(path, "rb")
  if not file then return nil end
  local is_file = file:read(0) ~= nil or file:seek("end") == 0 and path:find("%.lua$")
  file:close()
  if is_file and path:find("%.lua$") then return { path } end
  local list = {}
  local pipe = assert(io.popen(("find %s -name '%s' -type f | LC_ALL=C sort"):format(quoted(path), name)))
  for line in pipe:lines() do list[#list + 1] = line end
  pipe:close()
  return list
end
