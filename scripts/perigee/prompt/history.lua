-- SPDX-License-Identifier: Apache-2.0
-- What was entered in earlier sessions: $XDG_STATE_HOME/perigee/history, a line an entry. It is appended by one write,
-- so that sessions side by side keep each other's; what has grown too long is replaced by a rename.

local history = {}

local KEEP = 5000
local BREAK = "\30" -- between the lines of one entry, in the file: ASCII's record separator, which nobody types

local function folder()
  local state = os.getenv("XDG_STATE_HOME")
  if not state or state:sub(1, 1) ~= "/" then state = (os.getenv("HOME") or "/tmp") .. "/.local/state" end
  return state .. "/perigee"
end

---@return string path
function history.path() return folder() .. "/history" end

local function replace(path, lines, first)
  pcall(require("perigee.native").write_text, path, table.concat(lines, "\n", first) .. "\n")
end

---Gives the entries that were kept to the editor.
function history.load(editor)
  if not editor.make_folder(folder()) then return end
  local file = io.open(history.path(), "r")
  if not file then return end
  local lines = {}
  for line in file:lines() do lines[#lines + 1] = line end
  file:close()
  local first = math.max(1, #lines - KEEP + 1)
  for i = first, #lines do editor.remember((lines[i]:gsub(BREAK, "\n"))) end
  if #lines > 2 * KEEP then replace(history.path(), lines, first) end
end

---Keeps what was entered, here and in the file: one entry, of as many lines as it has.
function history.add(editor, text)
  if not text:find("%S") then return end
  editor.remember(text)
  local file = io.open(history.path(), "a")
  if not file then return end
  local line = text:gsub("\n", BREAK)
  file:setvbuf("full", #line + 2)
  file:write(line, "\n")
  file:close()
end

return history
