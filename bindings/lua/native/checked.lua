-- SPDX-License-Identifier: Apache-2.0
-- Functions with plain arguments, looked at before they run: that there are no more than the function has, that each is
-- of its kind, and who self is. Arguments may also come in one table, as everywhere: what does not fit at once is read
-- by the call grammar.

local entries = require "perigee.native.entries"
local errors = require "perigee.native.errors"
local grammar = require "perigee.native.grammar"
local suggest = require "perigee.native.suggest"

local M = {}

-- How many arguments a function has a place for; nil: any number.
local function places(f)
  local info = debug.getinfo(f, "u")
  if info.isvararg or not info.nparams then return nil end
  return info.nparams
end

-- Whether a value is of its parameter's kind as it stands; parameters that there are not take nil.
local function fits(param, v)
  if v == nil then return not (param and param.required) end
  return param ~= nil and grammar.fits(param, v)
end

local function refuse_surplus(where, most, n, ...)
  for i = most + 1, n do
    local v = select(i, ...)
    if v ~= nil then
      errors.raise("invalid_argument", where, most == 0 and ("takes no arguments, got %s"):format(errors.describe(v)) or
                   ("too many arguments: %s is one more than it takes"):format(errors.describe(v)))
    end
  end
end

-- Whether the last argument holds others: it is the only one, or has names, and its place takes no table.
local function is_arguments(params, n, last)
  if n == 0 or not grammar.is_plain(last) then return false end
  local param = params[n]
  if param and (param[2] == "table" or param[2] == "any") then return false end
  return n == 1 or type(entries.first(last)) == "string"
end

-- The arguments in order: a table taken apart, everything checked.
local function read(where, params, n, ...)
  local list, count = { ... }, #params
  if is_arguments(params, n, list[n]) then
    local out = grammar.parse(where, params, n, ...)
    for i, param in ipairs(params) do list[i] = out[param[1]] end
    return unpack(list, 1, count)
  end
  refuse_surplus(where, count, n, ...)
  for i, param in ipairs(params) do
    local v = list[i]
    if v ~= nil then
      list[i] = grammar.check(where, param[1], param, v)
    elseif param.required then
      errors.raise("invalid_argument", where, ("argument %q is missing"):format(param[1]))
    end
  end
  return unpack(list, 1, count)
end

-- The place of the last argument that is not nil.
local function last_of(...)
  for i = select("#", ...), 1, -1 do
    if select(i, ...) ~= nil then return i end
  end
  return 0
end

local FEW = 3 -- parameters, in what is checked without a loop

---A function that looks at its arguments.
---@param where string what messages call it
---@param f function
---@param params? table[] at most three, as of native.signature; without them the arguments are counted
---@return function
function M.plain(where, f, params)
  if params then
    assert(#grammar.index(params) <= FEW, where)
    local p, q, r = params[1], params[2], params[3]
    return function(a, b, c, ...)
      if select("#", ...) == 0 and fits(p, a) and fits(q, b) and fits(r, c) then return f(a, b, c) end
      return f(read(where, params, last_of(a, b, c, ...), a, b, c, ...))
    end
  end
  local most = places(f)
  if not most then return f end
  return function(...)
    local n = select("#", ...)
    if n > most then refuse_surplus(where, most, n, ...) end
    return f(...)
  end
end

---The same of the arguments behind the first.
function M.behind(where, f, params)
  if params then
    assert(#grammar.index(params) <= FEW, where)
    local p, q, r = params[1], params[2], params[3]
    return function(self, a, b, c, ...)
      if select("#", ...) == 0 and fits(p, a) and fits(q, b) and fits(r, c) then return f(self, a, b, c) end
      return f(self, read(where, params, last_of(a, b, c, ...), a, b, c, ...))
    end
  end
  local most = places(f)
  if not most then return f end
  return function(self, ...)
    local n = select("#", ...)
    if n >= most then refuse_surplus(where, most - 1, n, ...) end
    return f(self, ...)
  end
end

---Raises unless fn is a function, of functions that call what they are given.
function M.need_function(where, fn)
  if type(fn) ~= "function" then
    errors.raise("invalid_argument", where, "needs a function, got " .. errors.describe(fn))
  end
end

-- A method that calls check(self, where), which raises where self is not what it must be.
local function method(where, f, params, check)
  local run = M.behind(where, f, params)
  return function(self, ...)
    check(self, where)
    return run(self, ...)
  end
end

local function words(text)
  local set = {}
  for word in (text or ""):gmatch "%S+" do set[word] = true end
  return set
end

local function functions_of(t)
  local names = {}
  for name, f in pairs(t) do
    if type(f) == "function" and type(name) == "string" and not name:find "^__" then names[#names + 1] = name end
  end
  table.sort(names)
  return names
end

---All functions of a table look at their arguments. `prefix` stands before their names in messages; `kinds[name]` are
---their parameters.
function M.functions(t, prefix, kinds)
  for _, name in ipairs(functions_of(t)) do t[name] = M.plain(prefix .. name, t[name], kinds and kinds[name]) end
  return t
end

---@class perigee.ClassRules
---@field noun string what messages call an object: "a graph"
---@field call string what a script may call it: "graph:print()"
---@field open? boolean whether objects answer nil to names that they have not
---@field is? fun(v: any): boolean by default whether the class is its metatable
---@field kinds? table<string, table[]> parameters by method
---@field fields? string names, with blanks between them, of fields that may be nil
---@field skip? string functions that are no methods, in the same way
---@field hint? fun(key: string): string? what to say of a name from elsewhere

-- Reading a name that objects of a class do not have raises.
local function refuse_unknown(class, rules)
  local absent = words(rules.fields)
  local function unknown(_, key)
    if type(key) ~= "string" or key:find "^__" or absent[key] then return nil end -- "__": asked of a metatable
    local names = functions_of(class)
    local hint, near = rules.hint and rules.hint(key), suggest(key, names)
    errors.raise("not_found", nil, ("%s has no %q"):format(rules.noun, key),
                 hint or near and ("did you mean %s:%s()?"):format(rules.call, near))
  end
  class.__index = class
  setmetatable(class, { __index = unknown })
end

---All methods of a class look at self and their arguments, and its objects have no names but their own.
---@param class table
---@param rules perigee.ClassRules
function M.class(class, rules)
  local skip = words(rules.skip)
  local is = rules.is or function(v) return type(v) == "table" and getmetatable(v) == class end
  local function check(self, name)
    if is(self) then return end
    errors.raise("invalid_argument", name, ("self must be %s, got %s"):format(rules.noun, errors.describe(self)),
                 ("call it with a colon: %s:%s()"):format(rules.call, name))
  end
  for _, name in ipairs(functions_of(class)) do
    if not skip[name] then class[name] = method(name, class[name], rules.kinds and rules.kinds[name], check) end
  end
  if not rules.open then refuse_unknown(class, rules) end
  return class
end

return M
