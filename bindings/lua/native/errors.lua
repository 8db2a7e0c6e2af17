-- SPDX-License-Identifier: Apache-2.0
-- Errors as Lua values: tables that behave like strings where that is handy. Their message begins with the nearest
-- script line that is still on the stack.

local ffi = require "ffi"
local scopes = require "perigee.native.scopes"

local M = {}

local codes = {
  [1] = "invalid_argument", [2] = "out_of_memory", [3] = "not_supported", [4] = "not_found",
  [5] = "failed_precondition", [6] = "data_loss", [7] = "deadline_exceeded", [8] = "internal",
  [9] = "failed_precondition", [10] = "out_of_memory", [11] = "not_supported", [12] = "out_of_disk",
}

local Error = { __name = "perigee.error" }
local methods = {}
for _, name in ipairs { "match", "find", "sub", "gsub", "lower", "upper", "gmatch", "len", "rep", "format" } do
  methods[name] = function(self, ...) return string[name](self.message, ...) end
end
Error.__index = methods
function Error.__tostring(self) return self.message end
function Error.__concat(a, b) return tostring(a) .. tostring(b) end

---Folders and chunk names whose frames are Perigee's own.
local own = {}
function M.add_own_source(prefix) own[#own + 1] = prefix end
M.add_own_source("=perigee:")

local function is_own(source)
  for i = 1, #own do
    if source:sub(1, #own[i]) == own[i] then return true end
  end
  return false
end
jit.off(is_own) -- native/sites.lua calls it where no compiled code may run
M.is_own_source = is_own

local function frame_name(info)
  local source = info.short_src
  if info.source:sub(1, 1) == "@" then source = info.source:sub(2):gsub("^%./", "") end
  if info.currentline and info.currentline > 0 then return source .. ":" .. info.currentline end
  return ("%s:%d-%d"):format(source, info.linedefined, info.lastlinedefined)
end

---Set by the layer code: the functions that call a layer's forward, with the layer as their first local.
M.layer_calls = {}

-- The lines of a script's forward that has left the stack with `return x:op()`, told by the call of its layer.
local function lost_forward(layer)
  local found, forward = pcall(function() return layer.forward end)
  if not found or type(forward) ~= "function" then return nil end
  local info = debug.getinfo(forward, "S")
  if info.what ~= "C" and not is_own(info.source) then return frame_name(info) end
end

-- By function: false of those that are no script's, else names by line, and what getinfo says of the source.
local scripts = setmetatable({}, { __mode = "k" })

-- M.script_line where no coroutine and no layer's call is met on the way; false: one is. Tables that getinfo fills with
-- one field cost a fraction of those with all, and scopes ask often.
local function quick_line()
  if not scopes.in_main() then return false end
  for level = 3, 250 do
    local info = debug.getinfo(level, "f")
    if not info then return nil end
    local fn = info.func
    if M.layer_calls[fn] then return false end
    local names = scripts[fn]
    if names == nil then
      local source = debug.getinfo(fn, "S")
      names = source.what ~= "C" and not is_own(source.source) and { source = source }
      scripts[fn] = names
    end
    if names then
      local line = debug.getinfo(level, "l").currentline
      if not names[line] then
        names.source.currentline = line
        names[line] = frame_name(names.source)
      end
      return names[line]
    end
  end
  return false
end

---Where the user's script stands: "net.lua:12", or nil when no script is on the stack.
function M.script_line()
  local quick = quick_line()
  if quick ~= false then return quick end
  local line = scopes.each_frame("Slf", function(info, thread, level)
    if info.what ~= "C" and not is_own(info.source) then return frame_name(info) end
    if not M.layer_calls[info.func] then return nil end
    local layer = scopes.first_local(thread, level)
    return lost_forward(layer)
  end)
  return line
end

---Set by the layer code: answers where the layer that is running stands ("Net.blocks.0 (Conv2d)"), its path inside the
---outermost one ("blocks.0"; nil: it is that) and that outermost one; or nil.
M.layer_path = nil

-- "linear: linear: ..." is said by the operator and by its kernel.
local function without_repeats(text)
  local again
  repeat
    text, again = text:gsub("^([%w_]+): %1: ", "%1: ")
  until again == 0
  return text
end

---Builds an error value; `where` is an operator or a layer path, `hint` may be nil.
function M.new(code, where, message, hint)
  local line = M.script_line()
  local text = message
  if where and where ~= "" then text = where .. ": " .. text end
  text = without_repeats(text)
  local path = M.layer_path and M.layer_path()
  if path then
    local class = path:match("%((%w+)%)$") or path
    if text:sub(1, #class + 2) == class .. ": " then text = text:sub(#class + 3) end
    text = path .. ": " .. without_repeats(text)
  end
  if line then text = line .. ": " .. text end
  if hint then text = text .. " (" .. hint .. ")" end
  return setmetatable({ code = code, message = text, where = where, traceback = scopes.traceback(2) }, Error)
end

---Raises.
---@param code string invalid_argument, out_of_memory, not_supported, not_found, failed_precondition, ...
function M.raise(code, where, message, hint) error(M.new(code, where, message, hint), 0) end

function M.is_error(value) return getmetatable(value) == Error end

---A short name of a value for "got ..." in messages.
function M.describe(value)
  local kind = type(value)
  if kind == "nil" then return "nil" end
  if kind == "number" or kind == "boolean" then return kind .. " " .. tostring(value) end
  if kind == "string" then return ("string %q"):format(#value > 40 and value:sub(1, 37) .. "..." or value) end
  if kind == "cdata" then
    if ffi.istype("perigee_handle", value) then
      if value.ptr == nil then return "a closed tensor" end
      return ("tensor %s %s"):format(value.dtype, tostring(value.shape))
    end
    if ffi.istype("perigee_size", value) then return "size " .. tostring(value) end
    return "cdata " .. tostring(ffi.typeof(value))
  end
  if kind == "table" and M.is_error(value) then return "an error" end
  if kind == "userdata" and type(getmetatable(value)) == "table" then return tostring(value) end -- a data set, a file
  return "a " .. kind
end

---Raises what the thread's last failing C call left behind. `where` replaces the core's when given. `op`: the operator
---that stands behind `where`, which its users need not know.
function M.raise_native(C, where, hint, op)
  local e = C.pgc_error()
  local from = ffi.string(e.where)
  local message = ffi.string(C.pgc_error_message())
  if op and op ~= where then
    if from == op then from = where end
    if message:sub(1, #op + 2) == op .. ": " then message = message:sub(#op + 3) end
    if message:sub(1, #op + 1) == op .. " " then message = "this" .. message:sub(#op + 1) end
  end
  if not hint and M.origins and not M.origins.asked() and message:find("^[%w_]+ %(number %d+%): ") then
    hint = "pg.config.set{origins=true} tells where it was called"
  end
  if where and where ~= from and from ~= "" and message:find(from, 1, true) ~= 1 then
    message = from .. ": " .. message
  end
  if where and where:sub(-1) == "_" then -- the in-place form: its operator need not be named again
    local name = where:sub(1, -2) .. ": "
    if message:sub(1, #name) == name then message = message:sub(#name + 1) end
  end
  M.raise(codes[e.code] or "internal", where or from, message, hint)
end

return M
