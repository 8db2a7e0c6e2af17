-- SPDX-License-Identifier: Apache-2.0
-- pg.json: values as JSON text (RFC 8259), and files of it.

local native = require "perigee.native"
local write = require "perigee.json.write"

---Objects are tables with names, arrays tables with positions from 1. What was read is written as the same again:
---arrays are marked as such, so that an empty one stays one, and null is pg.json.null.
---@class perigee.json
---@field null any what null is read as and written from: nil would leave holes in arrays
local json = {}

-- One value that is nothing else, and is indexed by nobody.
local null = newproxy(true)
getmetatable(null).__tostring = function() return "null" end
json.null = null

local ARRAY = { __perigee_list = true, __name = "perigee.json.array" }
local function mark(list) setmetatable(list, ARRAY) end

---Marks a table as an array: pg.json.array{} is written as [], while {} is written as {}. Arrays that were read are
---marked; tables with positions are arrays without it.
---@param list? any[] without it a new one
---@return any[] list the same table
function json.array(list)
  if list == nil then list = {} end
  if type(list) ~= "table" or getmetatable(list) ~= nil and getmetatable(list) ~= ARRAY then
    native.raise("invalid_argument", "json.array", "needs a list, got " .. native.describe(list))
  end
  mark(list)
  return list
end

---Whether a table is marked as an array: those that were read are.
---@param v any anything
---@return boolean
function json.is_array(v) return type(v) == "table" and getmetatable(v) == ARRAY end

local function decode(text, code, where, prefix)
  local ok, value = pcall(native.json, text, null, true, mark)
  if ok then return value end
  native.raise(code, where, prefix .. value)
end

---The value of a JSON text. Whole numbers from 2^53 on, which a Lua number would round, become int64 (as 1LL is); one
---that int64 does not hold, a name twice in an object, text that is not UTF-8, what is nested more than 1000 deep and
---whatever is not JSON is an error, with the code "data_loss", that says the line and the column.
---@param text string
---@return any value
function json.decode(text)
  if type(text) ~= "string" then
    native.raise("invalid_argument", "json.decode", "text must be a string, got " .. native.describe(text))
  end
  return decode(text, "data_loss", "json.decode", "")
end

local WIDEST = 16
local function read_indent(where, options)
  if options ~= nil and not native.is_plain(options) then
    native.raise("invalid_argument", where, "options must be a table, got " .. native.describe(options))
  end
  for key in pairs(options or {}) do
    if key ~= "indent" then
      native.raise("invalid_argument", where, ("unknown option %q"):format(tostring(key)), "options are indent")
    end
  end
  local indent = options and options.indent
  if indent == nil then return nil end
  if type(indent) ~= "number" or indent % 1 ~= 0 or indent < 0 or indent > WIDEST then
    native.raise("invalid_argument", where, ("indent must be a whole number from 0 to %d, got %s"):format(WIDEST,
                 native.describe(indent)))
  end
  return indent
end

---A value as JSON text, names in alphabetical order. Tables are arrays or objects, never both; numbers are written so
---that the same is read. Refused, with the place in the value: NaN and infinite numbers, holes, cycles, text that is no
---UTF-8, tensors, functions and objects of classes.
---@param value any a text, number, int64, boolean, pg.json.null or a table of these
---@param options? {indent?: integer} spaces a level, 0 to 16; without it one line
---@return string text
function json.encode(value, options)
  return write(value, null, ARRAY, read_indent("json.encode", options))
end

local function check_path(where, path)
  if type(path) == "string" and path ~= "" and not path:find("\0", 1, true) then return end
  native.raise("invalid_argument", where, "path must be a string, got " .. native.describe(path))
end

---The value of a JSON file, as decode gives it.
---@param path string
---@return any value
function json.load(path)
  check_path("json.load", path)
  local file, reason = io.open(path, "rb")
  if not file then
    local is_missing = reason:find("No such file", 1, true)
    native.raise(is_missing and "not_found" or "invalid_argument", "json.load", is_missing and
                 ("there is no file '%s'"):format(path) or reason)
  end
  local text
  text, reason = file:read("*a")
  file:close()
  if not text then native.raise("invalid_argument", "json.load", ("%s: %s"):format(path, reason)) end
  return decode(text, "data_loss", "json.load", path .. ": ")
end

---Writes a value as a JSON file that ends with its line. Atomic: the file is the old one or the whole new one.
---@param path string
---@param value any as of encode
---@param options? {indent?: integer} as of encode
function json.save(path, value, options)
  check_path("json.save", path)
  native.write_text(path, write(value, null, ARRAY, read_indent("json.save", options)) .. "\n")
end

return json
