-- SPDX-License-Identifier: Apache-2.0
-- The REPL: prints expressions, keeps top-level locals, goes on over several lines while a chunk is unfinished.

local editor = package.loaded["perigee.command.line_editor"]
local report = require "perigee.command.report"

local HISTORY = (os.getenv("HOME") or ".") .. "/.perigee_history"
local names = setmetatable({}, { __index = _G }) -- what top-level locals became

local function show(v)
  if type(v) == "string" then return ("%q"):format(v):gsub("\\\n", "\\n") end
  return tostring(v)
end

-- "local x, y = ..." at the top level assigns names that later lines see. Local functions likewise.
local function keep_locals(text)
  local fn = text:match("^%s*local%s+function%s+([%a_][%w_]*)")
  if fn then return (text:gsub("^%s*local%s+function", "function", 1)) end
  local list, rest = text:match("^%s*local%s+([%a_][%w_,%s]-)%s*=([^=].*)$")
  if list and not list:find("%s[%a_]") or (list and list:find(",")) then return list .. " =" .. rest end
  local bare = text:match("^%s*local%s+([%a_][%w_]*)%s*;?%s*$")
  if bare then return bare .. " = nil" end
  return text
end

local function compile(text)
  local chunk, problem = loadstring("return " .. text, "=stdin")
  if chunk then return chunk end
  chunk = loadstring(keep_locals(text), "=stdin")
  if chunk then return chunk end
  local plain, message = loadstring(text, "=stdin")
  return plain, problem:find("<eof>", 1, true) and problem or message
end

local function unfinished(message) return message:find("<eof>", 1, true) ~= nil end

-- One complete chunk, over as many lines as it takes. nil: end of input.
local function read_chunk()
  local text = editor.read("> ")
  if not text then return nil end
  text = text:gsub("^=", "return ", 1)
  while true do
    local chunk, message = compile(text)
    if chunk or not unfinished(message) then return text, chunk, message end
    local more = editor.read(">> ")
    if not more then return text, nil, message end
    text = text .. "\n" .. more
  end
end

local function print_results(ok, ...)
  if not ok then
    io.stderr:write((...), "\n")
    return
  end
  local parts = {}
  for i = 1, select("#", ...) do parts[i] = show((select(i, ...))) end
  if #parts > 0 then print(table.concat(parts, "\t")) end
end

return function(...)
  if select("#", ...) > 0 then
    io.stderr:write("perigee: repl takes no words\n")
    return 2
  end
  names.pg = require "perigee"
  print("Perigee " .. names.pg.version() .. ", " .. jit.version .. ". pg is require \"perigee\".")
  editor.history(HISTORY)
  while true do
    local text, chunk, message = read_chunk()
    if not text then break end
    if text:find("%S") then
      editor.history(HISTORY, (text:gsub("\n", " ")))
      if chunk then
        setfenv(chunk, names)
        print_results(xpcall(chunk, report))
      else
        io.stderr:write(message, "\n")
      end
    end
  end
  return 0
end
