-- SPDX-License-Identifier: Apache-2.0
-- Turns an error into text for the terminal: the message, then the user's frames. Perigee's own frames are left out.

-- Frames of Perigee, of C and of the executable's start are noise; all frames stay when none is the user's.
local function trim(traceback)
  local kept, dir = {}, (debug.getinfo(1, "S").source:match("^@(.*)[/\\]printing[/\\][^/\\]*$")) or "?"
  dir = dir:sub(-16) -- tracebacks shorten paths from the left
  for line in traceback:gmatch("[^\n]+") do
    local own = line:find(dir, 1, true) or line:find("[perigee:", 1, true) or line:find("^%s*%[C%]") or
                line:find("perigee:", 1, true) or line:find("(command line)' '", 1, true)
    if line ~= "stack traceback:" and not own then kept[#kept + 1] = line end
  end
  return kept
end

-- model:forwardd(x) is Lua's own error, as a layer must answer nil for what it has not: layers' methods are suggested.
local function suggestion(text)
  local name = text:match("attempt to call method '([%w_]+)' %(a nil value%)$")
  local native = name and package.loaded["perigee.native"]
  if not native or not native.layer_methods then return "" end
  local names = {}
  for known in pairs(native.layer_methods) do names[#names + 1] = known end
  local near = native.suggest(name, names)
  return near and (" (a layer has %q: did you mean that?)"):format(near) or ""
end

-- The text of an error that was raised where the traceback says.
local function told(err, traceback)
  local meta = getmetatable(err)
  local text
  if type(err) == "string" or (type(meta) == "table" and meta.__tostring) then
    text = tostring(err)
    text = text .. suggestion(text)
  else
    text = ("(error object is a %s value)"):format(type(err))
  end
  local own = type(err) == "table" and rawget(err, "traceback")
  local frames = trim(type(own) == "string" and own or traceback)
  if #frames == 0 then return text end
  local line = text:find("stack overflow$") and frames[1]:match("^%s*(.-:%d+): ")
  if line then text = line .. ": stack overflow" end
  return text .. "\nstack traceback:\n" .. table.concat(frames, "\n")
end

-- A stack that has overflowed has room for one small function: the text is made on another one. LuaJIT does not know
-- its innermost line, and looking for it in compiled code ends the process; the frames further out are all alike.
local DEEP = 6
local wrap, traceback, find = coroutine.wrap, debug.traceback, string.find

---@param err any
---@return string
return function(err)
  local overflow = type(err) == "string" and find(err, "stack overflow", 1, true)
  local frames = traceback("", overflow and DEEP or 2)
  if overflow then return wrap(told)(err, frames) end
  return told(err, frames)
end
