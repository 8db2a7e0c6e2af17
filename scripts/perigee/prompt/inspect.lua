-- SPDX-License-Identifier: Apache-2.0
-- Values as the prompt shows them: strings quoted, tables with what is in them, everything else as tostring has it.

local native = require "perigee.native"

local WIDTH, DEPTH, ENTRIES = 100, 4, 50

local function quoted(s)
  return (("%q"):format(s):gsub("\\\n", "\\n"):gsub("\r", "\\r"):gsub("%z", "\\0"))
end

local function is_name(key)
  return type(key) == "string" and key:find("^[%a_][%w_]*$") and loadstring("local " .. key) ~= nil
end

local function key_text(key, show)
  if is_name(key) then return key .. " = " end
  return "[" .. show(key) .. "] = "
end

local ORDER = { number = 1, string = 2, boolean = 3 }
local function before(a, b)
  local x, y = ORDER[type(a)] or 4, ORDER[type(b)] or 4
  if x ~= y then return x < y end
  if x < 3 then return a < b end
  return tostring(a) < tostring(b)
end

-- Keys behind the list part, sorted.
local function named_keys(t, count)
  local keys = {}
  for key in next, t do
    if not (type(key) == "number" and key >= 1 and key <= count and key == math.floor(key)) then
      keys[#keys + 1] = key
    end
  end
  table.sort(keys, before)
  return keys
end

local show

-- Tensors inside tables are only named: their elements would drown the rest.
local function tensor_text(t)
  if t.ptr == nil then return tostring(t) end
  if t:dim() == 0 and not native.is_graph_tensor(t) then return tostring(t) end
  return ("tensor %s %s"):format(tostring(t.shape), t.dtype)
end

local function entries(t, depth, seen)
  local parts, count = {}, #t
  for i = 1, math.min(count, ENTRIES) do parts[i] = show(t[i], depth + 1, seen) end
  if count > ENTRIES then parts[#parts + 1] = ("... %d more"):format(count - ENTRIES) end
  local keys = named_keys(t, count)
  for i, key in ipairs(keys) do
    if i > ENTRIES then
      parts[#parts + 1] = ("... %d more"):format(#keys - ENTRIES)
      break
    end
    parts[#parts + 1] = key_text(key, tostring) .. show(rawget(t, key), depth + 1, seen)
  end
  return parts
end

local function table_text(t, depth, seen)
  if seen[t] then return "{...}" end
  if depth > DEPTH then return next(t) == nil and "{}" or "{...}" end
  seen[t] = true
  local parts = entries(t, depth, seen)
  seen[t] = nil
  local line = "{" .. table.concat(parts, ", ") .. "}"
  if #line + 2 * depth <= WIDTH and not line:find("\n") then return line end
  local margin = ("  "):rep(depth)
  return "{\n" .. margin .. table.concat(parts, ",\n" .. margin) .. "\n" .. margin:sub(3) .. "}"
end

function show(v, depth, seen)
  local kind = type(v)
  if kind == "string" then return quoted(v) end
  if kind == "cdata" and native.is_tensor(v) and depth > 1 then return tensor_text(v) end
  if kind ~= "table" then return tostring(v) end
  local meta = getmetatable(v)
  if meta ~= nil and (type(meta) ~= "table" or meta.__tostring) then return tostring(v) end
  return table_text(v, depth, seen)
end

---@param v any
---@return string
return function(v) return show(v, 1, {}) end
