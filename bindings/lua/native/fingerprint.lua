-- SPDX-License-Identifier: Apache-2.0
-- What tells functions and tensors of one script from those of another: 16 digits over code and all it refers to.

local bit = require "bit"
local ffi = require "ffi"
local errors = require "perigee.native.errors"
local handles = require "perigee.native.handles"

local M = {}
jit.off(true, true)

local C
local sum = ffi.new("uint64_t[1]")
local LARGE = 2 ^ 26 -- elements of tensors that are read whole

local function digits(value) return bit.tohex(value, 16) end

---Of a text.
function M.text(text) return digits(C.pgc_checksum_bytes(text, #text)) end

local function contents(t)
  if C.pgc_checksum_tensor(handles.pointer(t, "cache"), sum) ~= 0 then errors.raise_native(C, "cache") end
  return digits(sum[0])
end

---Of a tensor: its dtype, shape and contents; of a large one, of three rows.
function M.tensor(t)
  local text = ("%s %s "):format(t.dtype, tostring(t.shape))
  if t:numel() <= LARGE then return text .. contents(t) end
  local n = t.shape[1]
  return text .. contents(t[1]) .. contents(t[math.ceil(n / 2)]) .. contents(t[n])
end

local function module_name(value)
  for name, module in pairs(package.loaded) do
    if rawequal(module, value) then return name end
  end
end

local function by_text(a, b) return tostring(a) < tostring(b) end

local function add(parts, value, seen)
  local kind = type(value)
  parts[#parts + 1] = kind
  if handles.is_tensor(value) then
    parts[#parts + 1] = M.tensor(value)
  elseif kind == "number" then
    parts[#parts + 1] = ("%.17g"):format(value)
  elseif kind == "string" or kind == "boolean" then
    parts[#parts + 1] = tostring(value)
  elseif kind == "table" or kind == "function" then
    local module = module_name(value)
    if module or seen[value] then
      parts[#parts + 1] = module or "seen"
      return
    end
    seen[value] = true
    if kind == "table" then
      local keys = {}
      if getmetatable(value) ~= nil then return end
      for key in pairs(value) do keys[#keys + 1] = key end
      table.sort(keys, by_text)
      for _, key in ipairs(keys) do
        add(parts, key, seen)
        add(parts, value[key], seen)
      end
    else
      local info = debug.getinfo(value, "Su")
      if info.what == "C" then return end
      parts[#parts + 1] = string.dump(value, "sd") -- without lines, in an order of its own
      for i = 1, info.nups do add(parts, (select(2, debug.getupvalue(value, i))), seen) end
    end
  end
end

---Of a value: numbers, texts, tables, tensors; functions with all that they refer to, but for modules, which count by
---name.
function M.value(value)
  local parts = {}
  add(parts, value, {})
  return M.text(table.concat(parts, "\0"))
end

function M.start(library) C = library end

return M
