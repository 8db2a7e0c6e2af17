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

local MOST_DEEP = 200 -- tables in tables

local function is_key(key) return type(key) == "string" or type(key) == "number" or type(key) == "boolean" end

-- A list has keys 1 .. n; an object strings that mean themselves; all else is a map. What begins as a list but has a
-- hole is refused: how long Lua says that it is would not come back.
local function kind_of(out, t, path)
  local count, places, last, strings = 0, 0, 0, true
  for key in pairs(t) do
    count = count + 1
    if not is_key(key) then
      native.raise("invalid_argument", out.where, ("%s has %s for a key; keys are texts, numbers and booleans"):format(
                     path, native.describe(key)))
    end
    if type(key) == "number" and key >= 1 and key % 1 == 0 then places, last = places + 1, math.max(last, key) end
    strings = strings and type(key) == "string" and key:sub(1, 1) ~= "$"
  end
  if t[1] ~= nil and places < last then
    local hole = 2
    while t[hole] ~= nil do hole = hole + 1 end
    native.raise("invalid_argument", out.where, ("%s has a hole: something at %d, nothing at %d"):format(path, last,
                 hole), "false for what is not there, or names for keys")
  end
  if count == 0 then return "object" end
  if places == count and t[1] ~= nil then return "list" end
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

local function below(path, key) return path == "" and tostring(key) or path .. "." .. tostring(key) end

local write_value

local function write_table(out, t, path)
  if out.inside[t] then
    native.raise("invalid_argument", out.where, path .. " contains itself")
  end
  if out.depth == MOST_DEEP then
    native.raise("invalid_argument", out.where, ("%s... is nested more than %d deep"):format(path:sub(1, 80),
                 MOST_DEEP))
  end
  out.inside[t], out.depth = true, out.depth + 1
  local kind, parts = kind_of(out, t, path), {}
  if kind == "list" then
    for i, v in ipairs(t) do parts[i] = write_value(out, v, below(path, i - 1)) end
  else
    for _, key in ipairs(sorted_keys(t)) do
      local text = write_value(out, t[key], below(path, key))
      if kind == "object" then
        parts[#parts + 1] = quoted(key) .. ":" .. text
      else
        parts[#parts + 1] = write_value(out, key, path .. " (a key)") .. "," .. text
      end
    end
  end
  out.inside[t], out.depth = nil, out.depth - 1
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
  local out = { where = where, names = {}, tensors = {}, inside = {}, depth = 0, taken = {} }
  return write_table(out, tree, ""), out.names, out.tensors
end

local NULL = {} -- what JSON's null becomes, which nothing here writes

local function fail(text) native.raise("data_loss", nil, "its state: " .. text) end

local read_value

local function read_map(list, tensors, depth)
  if type(list) ~= "table" or #list % 2 ~= 0 then fail("a map without pairs") end
  local t = {}
  for i = 1, #list, 2 do
    local key = read_value(list[i], tensors, depth)
    if not is_key(key) or key ~= key then fail(("a map with %s for a key"):format(native.describe(key))) end
    t[key] = read_value(list[i + 1], tensors, depth)
  end
  return t
end

local special_readers = {
  ["$tensor"] = function(name, tensors)
    return type(name) == "string" and tensors[name] or fail(("there is no tensor %q"):format(tostring(name)))
  end,
  ["$number"] = function(name) return special[name] or fail("an unknown number") end,
  ["$map"] = read_map,
}

function read_value(v, tensors, depth)
  if v == NULL then fail("null stands for nothing here") end
  if type(v) ~= "table" then return v end
  if depth > MOST_DEEP + 1 then fail(("nested more than %d deep"):format(MOST_DEEP)) end
  local key, inner = next(v)
  if type(key) == "string" and key:sub(1, 1) == "$" then
    if not special_readers[key] or next(v, key) ~= nil then fail(("an unknown %q"):format(key)) end
    return special_readers[key](inner, tensors, depth + 1)
  end
  local t = {}
  for name, value in pairs(v) do
    if type(name) == "string" and name:sub(1, 1) == "$" then fail(("an unknown %q"):format(name)) end
    t[name] = read_value(value, tensors, depth + 1)
  end
  return t
end

---The tree that pack was given. What pack does not write is data_loss.
function pack.unpack(text, tensors)
  local ok, tree = pcall(native.json, text, NULL)
  if not ok then fail(tostring(tree)) end
  if type(tree) ~= "table" then fail("it is no table") end
  return read_value(tree, tensors, 1)
end

return pack
