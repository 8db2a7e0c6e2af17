-- SPDX-License-Identifier: Apache-2.0
-- Elements of pipelines as Lua values, and Lua values as what the core takes: a layout, and leaves. What comes again
-- and again in one layout is read and written by functions that are made for it, which compile.

local ffi = require "ffi"
local errors = require "perigee.native.errors"
local grammar = require "perigee.native.grammar"
local handles = require "perigee.native.handles"

local M = {}

local is_tensor, pointer = handles.is_tensor, handles.pointer
local sort, two = table.sort, { 1, 2 } -- of two elements it compares once: see native/entries.lua

-- ---- layouts ----

local MOST_FORMS, MOST_NUMBERS = 1024, 64 -- beyond which all are looked for again
local HOT, MOST_PARTS = 8, 64 -- uses before functions are made for a layout; leaves and tables of one that gets them
local forms, form_count = {}, 0 -- by the layouts' texts
local by_number, readers, number_count = {}, {}, 0 -- by their numbers: each pass has new ones

local TYPES = { T = "cdata", N = "number", B = "boolean", S = "string" }

-- A layout as { kind, type = }, or { "{", keys = , values = , by_key = }. `parts`: leaves and tables of it.
local function read_form(text, at)
  local kind = text:sub(at, at)
  at = at + 1
  if kind ~= "{" then return { kind, type = TYPES[kind], parts = 1 }, at end
  local form, n, parts = { kind, keys = {}, values = {}, by_key = {} }, 0, 1
  while text:sub(at, at) ~= "}" do
    local key
    n = n + 1
    if text:sub(at, at) == "i" then
      local digits = text:match("^i(%-?%d+);", at)
      key, at = tonumber(digits), at + #digits + 2
    else
      local digits = text:match("^s(%d+):", at)
      local begin = at + #digits + 2
      key, at = text:sub(begin, begin + tonumber(digits) - 1), begin + tonumber(digits)
    end
    form.keys[n] = key
    form.values[n], at = read_form(text, at)
    form.by_key[key], parts = form.values[n], parts + form.values[n].parts
  end
  form.parts = parts
  return form, at + 1
end

local function form_of(text)
  local form = forms[text]
  if not form then
    if form_count == MOST_FORMS then forms, form_count = {}, 0 end
    form = read_form(text, 1)
    form.text, form.uses = text, 0
    forms[text], form_count = form, form_count + 1
  end
  form.uses = form.uses + 1
  return form
end

local function is_hot(form) return form.uses > HOT and form.parts <= MOST_PARTS end

local function literal(key) return type(key) == "string" and ("%q"):format(key) or ("%.0f"):format(key) end

-- ---- from the core ----

local function build(form, leaves, at)
  local kind = form[1]
  if kind == "T" then return handles.wrap(leaves[at].tensor), at + 1 end
  if kind == "N" then return leaves[at].number, at + 1 end
  if kind == "B" then return leaves[at].number ~= 0, at + 1 end
  if kind == "S" then return ffi.string(leaves[at].text, leaves[at].bytes), at + 1 end
  local value, keys, values = {}, form.keys, form.values
  for i = 1, #keys do value[keys[i]], at = build(values[i], leaves, at) end
  return value, at
end
jit.off(build)

local READ = { T = "wrap(leaves[%d].tensor)", N = "leaves[%d].number", B = "(leaves[%d].number ~= 0)",
               S = "text(leaves[%d].text, leaves[%d].bytes)" }

-- An expression for the value, and the number of the leaf behind it.
local function read_code(form, at)
  if form[1] ~= "{" then return (READ[form[1]]:gsub("%%d", at)), at + 1 end
  local fields = {}
  for i, key in ipairs(form.keys) do
    local code
    code, at = read_code(form.values[i], at)
    fields[i] = ("[%s] = %s"):format(literal(key), code)
  end
  return "{ " .. table.concat(fields, ", ") .. " }", at
end

local function make_reader(form)
  local code = ("local wrap, text = ... return function(leaves) local value = %s return value end"):format(
    (read_code(form, 0)))
  return assert(loadstring(code, "=perigee:read"))(handles.wrap, ffi.string)
end

local function find_reader(e)
  local id = tonumber(e.layout)
  local form = by_number[id]
  if form then form.uses = form.uses + 1 else
    if number_count == MOST_NUMBERS then by_number, readers, number_count = {}, {}, 0 end
    form = form_of(ffi.string(e.text))
    by_number[id], number_count = form, number_count + 1
  end
  if is_hot(form) then
    form.read = form.read or make_reader(form)
    readers[id] = form.read
    return form.read
  end
  form.build = form.build or function(leaves) return (build(form, leaves, 0)) end
  return form.build
end
jit.off(find_reader)

---The Lua value of an element that C has filled.
function M.decode(e)
  local read = readers[tonumber(e.layout)] or find_reader(e)
  local value = read(e.leaves)
  return value
end

-- ---- to the core ----

local function by_sort(a, b)
  if type(a) == type(b) then return a < b end
  return type(a) == "number"
end

-- Text and leaves of a value; answers what is wrong with it.
local function encode(value, path, text, leaves)
  local kind = type(value)
  if is_tensor(value) then
    text[#text + 1], leaves[#leaves + 1] = "T", value
  elseif kind == "number" then text[#text + 1], leaves[#leaves + 1] = "N", value
  elseif kind == "boolean" then text[#text + 1], leaves[#leaves + 1] = "B", value
  elseif kind == "string" then text[#text + 1], leaves[#leaves + 1] = "S", value
  elseif grammar.is_plain(value) then
    local keys = {}
    for key in pairs(value) do
      if type(key) ~= "string" and (type(key) ~= "number" or key ~= math.floor(key) or math.abs(key) > 2 ^ 53) then
        return path .. " has a key that is " .. errors.describe(key)
      end
      keys[#keys + 1] = key
    end
    sort(keys, by_sort)
    text[#text + 1] = "{"
    for _, key in ipairs(keys) do
      text[#text + 1] = type(key) == "number" and ("i%.0f;"):format(key) or ("s%d:%s"):format(#key, key)
      local wrong = encode(value[key], path == "the result" and tostring(key) or path .. "." .. tostring(key), text,
                           leaves)
      if wrong then return wrong end
    end
    text[#text + 1] = "}"
  else
    return path .. " is " .. errors.describe(value)
  end
end
jit.off(encode)

-- Answers false where the value, which looks like the form, holds something that is no tensor.
local function write_code(form, value, at, lines)
  local kind = form[1]
  if kind == "{" then
    for i, key in ipairs(form.keys) do
      local name = ("v%d"):format(#lines)
      lines[#lines + 1] = ("local %s = %s[%s]"):format(name, value, literal(key))
      at = write_code(form.values[i], name, at, lines)
    end
    return at
  end
  local tensor, number, text, bytes = "nil", "0", "nil", "0"
  if kind == "T" then
    lines[#lines + 1] = ("if not is_tensor(%s) then return false end"):format(value)
    tensor = ("pointer(%s, \"map\")"):format(value)
  elseif kind == "N" then number = value
  elseif kind == "B" then number = value .. " and 1 or 0"
  else text, bytes = value, "#" .. value end
  lines[#lines + 1] = ("leaf = leaves[%d]"):format(at)
  lines[#lines + 1] = ("leaf.tensor, leaf.number, leaf.text, leaf.bytes = %s, %s, %s, %s"):format(tensor, number, text,
                                                                                               bytes)
  return at + 1
end

local function make_writer(form)
  local lines = { "local is_tensor, pointer = ... return function(value, leaves)", "local leaf" }
  form.count = write_code(form, "value", 0, lines)
  lines[#lines + 1] = "return true end"
  return assert(loadstring(table.concat(lines, "\n"), "=perigee:write"))(is_tensor, pointer)
end

local capacity, array = 16, nil
local last -- the form that values are likely to have, which has a writer; nil: there is none

local function write_slowly(value)
  local text, leaves = {}, {}
  local wrong = encode(value, "the result", text, leaves)
  if wrong then return nil, wrong .. "; expected tensors, numbers, booleans, strings, and plain tables of them" end
  if not array or #leaves > capacity then
    capacity = math.max(capacity, 2 * #leaves)
    array = ffi.new("pgc_leaf[?]", capacity)
  end
  for i, leaf in ipairs(leaves) do
    local slot = array[i - 1]
    slot.tensor, slot.number, slot.text, slot.bytes = nil, 0, nil, 0
    if is_tensor(leaf) then slot.tensor = pointer(leaf, "map")
    elseif type(leaf) == "string" then slot.text, slot.bytes = leaf, #leaf
    else slot.number = leaf == true and 1 or leaf == false and 0 or leaf end
  end
  local form = form_of(table.concat(text))
  last = nil
  if is_hot(form) then
    form.write = form.write or make_writer(form)
    last = form
  end
  return form.text, #leaves
end
jit.off(write_slowly)

local function looks_like(form, value)
  if form[1] ~= "{" then return type(value) == form.type end
  if type(value) ~= "table" or getmetatable(value) ~= nil then return false end
  local by_key, count = form.by_key, 0
  for key, field in pairs(value) do
    local inner = by_key[key]
    if not inner then return false end
    if inner.type then
      if type(field) ~= inner.type then return false end
    elseif not looks_like(inner, field) then return false end
    count = count + 1
  end
  return count == #form.keys
end
jit.off(looks_like)

local alike, likely = {}, nil -- of values that were looked at: whether they look like the form `likely`
local subject, limit

local function look_at_all()
  for i = 1, limit do alike[i] = looks_like(likely, subject[i]) end
  return false
end
jit.off(look_at_all)

---Looks at the first n of a list of values, for `write`.
function M.look(values, n)
  likely = last
  if not likely then return end
  subject, limit = values, n
  sort(two, look_at_all)
  subject = nil
end

---The C form of value i of those that were looked at, in the array that `leaves` answers: layout, and how many leaves;
---or nil and what is wrong.
function M.write(value, i)
  local form = likely
  if form and alike[i] and form.write(value, array) then return form.text, form.count end
  return write_slowly(value)
end

local one = {}
---The same of one value.
function M.to_leaves(value)
  one[1] = value
  M.look(one, 1)
  one[1] = nil
  return M.write(value, 1)
end

---The array that was written last.
function M.leaves() return array end

return M
