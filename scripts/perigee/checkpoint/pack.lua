-- SPDX-License-Identifier: Apache-2.0
-- A tree of plain values and tensors as named tensors and a text (JSON), and back. Numbers keep their bits. What JSON
-- cannot say is an object with one key that begins with "$":
--   {"$tensor": "name"}   {"$number": "inf"}   {"$map": [key, value, key, value, ...]}

local native = require "perigee.native"

local pack = {}

local escapes = { ['"'] = '\\"', ["\\"] = "\\\\", ["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t" }
local function quoted(text)
  return '"' .. text:gsub('[%c"\\]', function(c)
    return escapes[c] or ("\\u%04x"):format(c:byte())
  end) .. '"'
end

local function number_text(v)
  if v ~= v then return '{"$number":"nan"}' end
  if v == math.huge then return '{"$number":"inf"}' end
  if v == -math.huge then return '{"$number":"-inf"}' end
  if v == 0 and 1 / v < 0 then return '{"$number":"-0"}' end
  return ("%.17g"):format(v)
end

local special = { nan = 0 / 0, inf = math.huge, ["-inf"] = -math.huge, ["-0"] = -0.0 }

-- Whether keys are 1 .. n, or all strings that mean themselves.
local function kind_of(t)
  local count, strings = 0, true
  for key in pairs(t) do
    count = count + 1
    strings = strings and type(key) == "string" and key:sub(1, 1) ~= "$"
  end
  if count == 0 then return "object" end
  if count == #t then return "list" end
  return strings and "object" or "map"
end

local function sorted_keys(t)
  local keys = {}
  for key in pairs(t) do keys[#keys + 1] = key end
  table.sort(keys, function(a, b)
    if type(a) ~= type(b) then return type(a) < type(b) end
    if type(a) == "boolean" then return not a and b end
    return a < b
  end)
  return keys
end

local write_value

local function write_table(out, t, path)
  if out.inside[t] then
    native.raise("invalid_argument", out.where, path .. " contains itself")
  end
  out.inside[t] = true
  local kind, parts = kind_of(t), {}
  if kind == "list" then
    for i, v in ipairs(t) do parts[i] = write_value(out, v, path .. "." .. i - 1) end
  else
    for _, key in ipairs(sorted_keys(t)) do
      local text = write_value(out, t[key], path .. "." .. tostring(key))
      if kind == "object" then
        parts[#parts + 1] = quoted(key) .. ":" .. text
      else
        parts[#parts + 1] = write_value(out, key, path .. " (a key)") .. "," .. text
      end
    end
  end
  out.inside[t] = nil
  local inner = table.concat(parts, ",")
  if kind == "list" then return "[" .. inner .. "]" end
  if kind == "map" then return '{"$map":[' .. inner .. "]}" end
  return "{" .. inner .. "}"
end

function write_value(out, v, path)
  if native.is_tensor(v) then
    if path:find("\0", 1, true) then
      native.raise("invalid_argument", out.where, ("a NUL byte stands in the name %q of a tensor"):format(path))
    end
    local name = path
    while out.taken[name] do name = name .. "'" end -- { ["a.b"] = t } beside { a = { b = t } }
    out.taken[name] = true
    out.names[#out.names + 1], out.tensors[#out.tensors + 1] = name, v
    return '{"$tensor":' .. quoted(name) .. "}"
  end
  local kind = type(v)
  if kind == "number" then return number_text(v) end
  if kind == "string" then return quoted(v) end
  if kind == "boolean" then return tostring(v) end
  if kind == "table" then return write_table(out, v, path) end
  native.raise("invalid_argument", out.where, ("%s is %s, which has no place in a file"):format(path,
               native.describe(v)))
end

---@param tree table values by name: nil, booleans, numbers, strings, tensors, tables of them
---@return string text, string[] names, table[] tensors beside names
function pack.pack(where, tree)
  local out = { where = where, names = {}, tensors = {}, inside = {}, taken = {} }
  local parts = {}
  for _, key in ipairs(sorted_keys(tree)) do
    parts[#parts + 1] = quoted(key) .. ":" .. write_value(out, tree[key], key)
  end
  return "{" .. table.concat(parts, ",") .. "}", out.names, out.tensors
end

local function read_value(v, tensors)
  if type(v) ~= "table" then return v end
  local name = v["$tensor"]
  if name then
    return tensors[name] or native.raise("data_loss", nil, ("there is no tensor %q"):format(tostring(name)))
  end
  if v["$number"] then return special[v["$number"]] end
  local t = {}
  if v["$map"] then
    local pairs_ = v["$map"]
    for i = 1, #pairs_, 2 do t[read_value(pairs_[i], tensors)] = read_value(pairs_[i + 1], tensors) end
    return t
  end
  for key, value in pairs(v) do t[key] = read_value(value, tensors) end
  return t
end

---The tree that pack was given.
function pack.unpack(text, tensors) return read_value(native.json(text), tensors) end

return pack
