-- SPDX-License-Identifier: Apache-2.0
-- A Lua function, and what it refers to, as the text of a chunk that makes its like in another Lua state. Refers to no
-- ffi.

local bit = require "bit"
local errors = require "perigee.native.errors"
local handles = require "perigee.native.handles"
local util = require "jit.util"

jit.off(true, true)

local STANDARD = {}
for name in ([[_G _VERSION assert bit collectgarbage coroutine debug dofile error getfenv getmetatable io ipairs jit
  load loadfile loadstring math module newproxy next os package pairs pcall print rawequal rawget rawlen rawset require
  select setfenv setmetatable string table tonumber tostring type unpack xpcall]]):gmatch("[%w_]+") do
  STANDARD[name] = true
end

-- Operation codes as this LuaJIT numbers them.
local function first_code(text) return bit.band((util.funcbc(assert(loadstring(text))(), 1)), 0xff) end
local GGET = first_code "return function() return x end"
local GSET = first_code "return function(v) x = v end"
local assigns = {}
for _, value in ipairs { "v", "'s'", "1", "nil" } do
  assigns[first_code(("local u = 0; return function(v) u = %s end"):format(value))] = true
end

local function refuse(text, hint) errors.raise("invalid_argument", "map", text, hint) end

local function place(fn, pc)
  local info = util.funcinfo(fn, pc)
  return ("%s:%d"):format((info.source:gsub("^[@=]%.?/?", "")), info.currentline or info.linedefined)
end

-- The flags of a function's upvalues, from the end of its dump: whether the local variable that each stands for is
-- never assigned again.
local function read_flags(dump, count)
  local at = 4
  local function byte()
    at = at + 1
    return dump:byte(at)
  end
  local function number()
    local value, scale = 0, 1
    while true do
      local b = byte()
      value, scale = value + b % 128 * scale, scale * 128
      if b < 128 then return value end
    end
  end
  local header = byte()
  if bit.band(header, 2) == 0 then at = at + number() end
  local flags = {}
  while true do
    local size = number()
    if size == 0 then break end
    local stop = at + size
    at = at + 3 -- flags, parameters, frame
    local upvalues = byte()
    number()
    number()
    local codes = number()
    if bit.band(header, 2) == 0 and number() > 0 then
      number()
      number()
    end
    at = at + 4 * codes
    flags = {}
    for i = 1, upvalues do
      local low, high = byte(), byte()
      flags[i] = high * 256 + low
    end
    at = stop
  end
  return #flags == count and flags or {}
end

-- Raises where code of a function, or of functions inside it, assigns an upvalue or uses a global that a worker lacks.
local function check_code(fn, outermost)
  for pc = 1, math.huge do
    local code = util.funcbc(fn, pc)
    if not code then break end
    local op, a, d = bit.band(code, 0xff), bit.band(bit.rshift(code, 8), 0xff), bit.rshift(code, 16)
    if outermost and assigns[op] then
      refuse(("%s: the function assigns upvalue %q, which stays with the script"):format(place(fn, pc),
             util.funcuvname(fn, a)), "return what it computes")
    end
    if op == GSET or op == GGET then
      local name = util.funck(fn, -d - 1)
      if op == GSET or not STANDARD[name] then
        refuse(("%s: the function %s global %q, which a worker does not have"):format(place(fn, pc), op == GSET and
               "assigns" or "uses", name), "make it a local of the script, or require what it is of")
      end
    end
  end
  for i = -1, -math.huge, -1 do
    local constant = util.funck(fn, i)
    if constant == nil then break end
    if type(constant) == "proto" then check_code(constant, false) end
  end
end

local function literal(value)
  if type(value) ~= "number" then return type(value) == "string" and ("%q"):format(value) or tostring(value) end
  if value ~= value then return "0/0" end
  if value == math.huge or value == -math.huge then return value > 0 and "1/0" or "-1/0" end
  return ("%.17g"):format(value)
end

-- "require 'm'" or "require('m').f" of what a module is or holds.
local function find_module(value)
  for name, module in pairs(package.loaded) do
    if rawequal(module, value) then return ("require %q"):format(name) end
  end
  if type(value) ~= "function" then return nil end
  for name, module in pairs(package.loaded) do
    if type(module) == "table" then
      for key, field in next, module do
        if rawequal(field, value) and type(key) == "string" then return ("require(%q)[%q]"):format(name, key) end
      end
    end
  end
end

local function new_packer()
  local lines, known, count, kept = {}, {}, 0, {}
  local pack

  local function named(text)
    count = count + 1
    lines[#lines + 1] = ("n[%d] = %s"):format(count, text)
    return ("n[%d]"):format(count)
  end

  local function pack_table(value, what)
    if getmetatable(value) ~= nil then refuse(what .. " is a table with a metatable") end
    local name = named "{}"
    known[value] = name
    for key, field in next, value do
      local shown = ("%s[%s]"):format(what, tostring(key))
      local at, entry = pack(key, shown), pack(field, shown) -- which add lines of their own
      lines[#lines + 1] = ("%s[%s] = %s"):format(name, at, entry)
    end
    return name
  end

  local function pack_function(fn, what)
    local info = debug.getinfo(fn, "Su")
    if info.what == "C" then refuse(what .. " is a function of C that no module has") end
    check_code(fn, true)
    local dump = string.dump(fn)
    local flags = read_flags(dump, info.nups)
    local name = named(("code(%q)"):format(dump))
    known[fn] = name
    for i = 1, info.nups do
      local up, value = debug.getupvalue(fn, i)
      local where = ("upvalue %q of the function of %s"):format(up, place(fn))
      local is_local, constant = bit.band(flags[i] or 0, 0x8000) ~= 0, bit.band(flags[i] or 0, 0x4000) ~= 0
      if is_local and not constant then
        refuse(where .. " is assigned after it was made, and workers have copies", "give it a value once")
      end
      local packed = pack(value, where)
      lines[#lines + 1] = ("debug.setupvalue(%s, %d, %s)"):format(name, i, packed)
    end
    return name
  end

  function pack(value, what)
    local kind = type(value)
    if kind == "nil" or kind == "boolean" or kind == "number" or kind == "string" then return literal(value) end
    if known[value] then return known[value] end
    if handles.is_tensor(value) then
      if not tostring(value.device):find "^cpu" then
        refuse(what .. " is a tensor of " .. tostring(value.device),
               "workers share tensors of the processor: :to(\"cpu\")")
      end
      kept[#kept + 1] = value
      return named(("tensor(%.0f)"):format(handles.address(value)))
    end
    local module = find_module(value)
    if module then
      known[value] = named(module)
      return known[value]
    end
    if kind == "table" then return pack_table(value, what) end
    if kind == "function" then return pack_function(value, what) end
    return refuse(("%s is %s"):format(what, errors.describe(value)),
                  "workers get nil, booleans, numbers, strings, plain tables, CPU tensors, Lua functions and modules")
  end

  return pack, lines, kept
end

---The text that answers functions by number, and tensors that must live until it has run. `functions`: a table of them.
return function(functions)
  local pack, lines, kept = new_packer()
  for number, fn in pairs(functions) do
    local name = pack(fn, "the function")
    lines[#lines + 1] = ("f[%d] = %s"):format(number, name)
  end
  -- A function holds so many constants only.
  local parts = { "local tensor, code = ...\nlocal n, f = {}, {}" }
  for i = 1, #lines, 1000 do
    parts[#parts + 1] = "(function()"
    for k = i, math.min(i + 999, #lines) do parts[#parts + 1] = lines[k] end
    parts[#parts + 1] = "end)();"
  end
  parts[#parts + 1] = "return f"
  return table.concat(parts, "\n"), kept
end
