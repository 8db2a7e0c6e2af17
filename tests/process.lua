-- SPDX-License-Identifier: Apache-2.0
-- Other processes, for tests: the `perigee` that runs this one, and what a command prints.

local process = {}

---@return string? path of the perigee that runs the test; nil where something else does
function process.perigee()
  local pipe = io.popen("readlink /proc/$PPID/exe 2>/dev/null")
  local path = pipe and pipe:read("*l")
  if pipe then pipe:close() end
  return path and path:find("perigee$") and path or nil
end

---The same; where something else runs the test, it is skipped.
---@return string path
function process.need_perigee(t) return process.perigee() or t.skip("not run by perigee") end

---Whether AddressSanitizer is at work, which keeps what was freed for a while.
---@return boolean
function process.is_sanitized()
  local maps = io.open("/proc/self/maps")
  local text = maps and maps:read("*a") or ""
  if maps then maps:close() end
  return text:find("libasan", 1, true) ~= nil
end

---@return string text all that a file holds
function process.read(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read("*a")
  file:close()
  return text
end

function process.write(path, text)
  local file = assert(io.open(path, "wb"))
  file:write(text)
  file:close()
end

---@param text string
---@return string path a new file with this text; the caller removes it
function process.file(text)
  local path = os.tmpname()
  process.write(path, text)
  return path
end

---@param command string for the shell
---@return string text what it printed, errors included
---@return integer status 128 + n where signal n ended it
function process.run(command)
  local pipe = assert(io.popen(command .. " 2>&1; echo status $?"))
  local text, status = pipe:read("*a"):match("^(.-)status (%d+)%s*$")
  pipe:close()
  return text, tonumber(status)
end

return process
