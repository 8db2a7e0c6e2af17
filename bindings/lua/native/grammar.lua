-- SPDX-License-Identifier: Apache-2.0
-- The one call grammar: `f(2, 3)`, `f{2, 3, dtype="int64"}` and `f({2, 3}, {dtype="int64"})` are the same call.

local entries = require "perigee.native.entries"
local errors = require "perigee.native.errors"
local suggest = require "perigee.native.suggest"
local handles = require "perigee.native.handles"
local sizes = require "perigee.native.size"
local dtypes = require "perigee.native.dtypes"
local choice = require "perigee.native.choice"
local results = require "perigee.native.results"

local M = {}
jit.off(true, true) -- walks option tables with next, which cannot be compiled; attempts at it thrash
local is_tensor, is_size = handles.is_tensor, sizes.is
local describe = errors.describe

-- A table that may be taken apart: not an object of somebody's class. Shapes say that they are lists.
local function is_plain(v)
  if type(v) ~= "table" then return false end
  local meta = getmetatable(v)
  return meta == nil or (type(meta) == "table" and meta.__perigee_list == true)
end
M.is_plain = is_plain

-- Numbers of array entries, whether there are names, and the highest position.
local function survey(t)
  local count, highest, named = 0, 0, false
  for k in pairs(t) do
    if type(k) == "number" then
      count = count + 1
      if k > highest then highest = k end
    else
      named = true
    end
  end
  return count, highest, named
end

-- Kinds whose values are no tables.
local single = { single = true, number = true, integer = true, boolean = true, string = true, tensor = true,
                 axis = true, dtype = true, device = true }
local takes_table = { any = true, table = true, list = true, axes = true, tensors = true, ["function"] = true }

-- Is the table behind other values one of them, as in x:view({2, 3})? Else it holds arguments: x:gather{1, index}.
local function is_value(param, t)
  if not param then return true end
  if single[param[2]] then return entries.count(t, 1) == 0 end
  if param[2] == "tensors" then return true end
  for _, v in ipairs(t) do
    if is_tensor(v) then return false end
  end
  return true
end

-- Splits a call into positional values, their number, and named options (or nil).
local function split(where, n, params, ...)
  local args = { ... }
  local last = args[n]
  if n == 0 or not is_plain(last) then return args, n end
  local count, highest, named = survey(last)
  if n > 1 and not named and is_value(params and params[n], last) then return args, n end
  if count ~= highest then
    errors.raise("invalid_argument", where,
                 ("the argument table has a hole: %d entries up to position %d"):format(count, highest))
  end
  args[n] = nil
  for i = 1, highest do args[n - 1 + i] = last[i] end
  return args, n - 1 + highest, named and last or nil
end
M.split = split

---A call's arguments by position, those that are given by name as one table behind them: f{x, 1, keepdim=true} is
---f(x, 1, {keepdim=true}). For functions that take tensors first and are written with plain arguments.
function M.spread(where, ...)
  local given = ...
  if select("#", ...) ~= 1 or not is_plain(given) or not is_tensor(given[1]) then return ... end
  local args, count, named = split(where, 1, nil, given)
  if named then
    local options = {}
    for key, v in pairs(named) do
      if type(key) ~= "number" then options[key] = v end
    end
    count = count + 1
    args[count] = options
  end
  return unpack(args, 1, count)
end

local checks = {
  number = function(v) return type(v) == "number" end,
  integer = function(v) return type(v) == "number" and v == math.floor(v) and math.abs(v) < 2 ^ 53 end,
  size = function(v)
    if type(v) == "number" then return v == math.floor(v) and math.abs(v) < 2 ^ 53 end
    return is_size(v)
  end,
  bound = function(v) return type(v) == "number" or is_size(v) end,
  boolean = function(v) return type(v) == "boolean" end,
  string = function(v) return type(v) == "string" end,
  table = function(v) return type(v) == "table" end,
  ["function"] = function(v)
    if type(v) == "function" then return true end
    local meta = getmetatable(v)
    return type(meta) == "table" and meta.__call ~= nil
  end,
  tensor = is_tensor,
  device = function(v) return type(v) == "string" end,
}
---Whether a value is of a parameter's kind as it stands: false says that it needs a closer look.
function M.fits(param, v)
  local kind = param[2]
  if param.choices then return false end
  if kind == "any" then return true end
  if kind == "single" then return type(v) ~= "table" end
  if kind == "axis" then return type(v) == "number" and v ~= 0 and v == math.floor(v) end
  local fit = checks[kind]
  return fit ~= nil and fit(v)
end

local expected = {
  integer = "a whole number", size = "a whole number", bound = "a number", boolean = "true or false",
  axis = "an axis (a whole number)",
  counts = "a whole number or a list of them", numbers = "a number or a list of them",
  axes = "an axis or a list of axes", list = "a list of whole numbers", tensors = "a list of tensors",
  device = "a device name such as \"cpu\"", ["function"] = "a function",
}

local function reject(where, name, kind, v)
  errors.raise("invalid_argument", where,
               ("%s must be %s, got %s"):format(name, expected[kind] or "a " .. kind, describe(v)))
end

local function check_axis(where, name, v)
  if type(v) ~= "number" or v ~= math.floor(v) then reject(where, name, "axis", v) end
  if v == 0 then
    errors.raise("invalid_argument", where, name .. " is 0, but axes count from 1", "the first axis is 1, the last -1")
  end
end

-- One number, or a list of them without holes; of counts whole ones.
local function check_numbers(where, name, kind, v)
  local fit = checks[kind == "counts" and "size" or "bound"]
  if fit(v) then return end
  if not M.is_plain(v) then reject(where, name, kind, v) end
  local count, highest, named = survey(v)
  if named or count ~= highest then reject(where, name .. " (which has holes or names)", kind, v) end
  for _, x in ipairs(v) do
    if not fit(x) then reject(where, name, kind, x) end
  end
end

-- A list of sizes with its names of symbols as the sizes they are; unknown ones stay, to be refused by the operator.
local function resolve(list)
  local sizes_of = {}
  for i, v in ipairs(list) do sizes_of[i] = type(v) == "string" and sizes.named(v) or v end
  return sizes_of
end

---Checks a value against its parameter's kind and brings it into one form.
local function check(where, name, param, v)
  local kind = param[2]
  if param.choices then return choice.check(where, name, param.choices, v) end
  if kind == "any" or kind == "single" or kind == "pair" then return v end
  if kind == "dtype" then return dtypes.find(v, where).name end
  if kind == "axis" then
    check_axis(where, name, v)
    return v
  end
  if kind == "list" or kind == "axes" then
    if type(v) == "number" or is_size(v) then v = { v } end
    if type(v) ~= "table" then reject(where, name, kind, v) end
    local count, highest, named = survey(v)
    if named or count ~= highest then reject(where, name .. " (which has holes or names)", kind, v) end
    local named_sizes
    for _, x in ipairs(v) do
      if kind == "axes" then check_axis(where, name, x) end
      if not checks.size(x) and type(x) ~= "string" then reject(where, name, kind, x) end
      named_sizes = named_sizes or type(x) == "string"
    end
    return named_sizes and resolve(v) or v
  end
  if kind == "counts" or kind == "numbers" then
    check_numbers(where, name, kind, v)
    return v
  end
  if kind == "tensors" then
    if is_tensor(v) then return { v } end
    if type(v) ~= "table" then reject(where, name, kind, v) end
    local count = survey(v)
    for i = 1, count do
      if not is_tensor(v[i]) then reject(where, ("%s[%d]"):format(name, i), "tensor", v[i]) end
    end
    if param.joined then results.check(where, v, count) end
    return v
  end
  if not checks[kind](v) then reject(where, name, kind, v) end
  return v
end

M.check = check

local function is_run(param, v) -- may this value be one of several that make up a list?
  local kind = param[2]
  if kind == "tensors" or param.many then return is_tensor(v) end
  if kind ~= "list" and kind ~= "axes" then return false end
  return type(v) == "number" or (kind == "list" and (type(v) == "string" or is_size(v)))
end

-- What to say to a value that has no position: which arguments have none.
local function told_by_name(params)
  local names = {}
  for _, param in ipairs(params) do
    if param.named then names[#names + 1] = (param.alias or param[1]) .. "=" end
  end
  local more = #names > 4 and ", ..." or ""
  return names[1] and "by name: " .. table.concat(names, ", ", 1, math.min(#names, 4)) .. more or nil
end

-- Positional values to parameters. A list takes one table, or all the numbers that follow.
function M.place(where, params, args, n, out)
  local at, index = 1, 1
  if params.axis_may_lead and type(args[2]) == "number" and is_tensor(args[3]) then
    args[2], args[3] = args[3], args[2] -- x:gather(axis, index), as well as x:gather(index, axis)
  end
  while at <= n do
    local param = params[index]
    while param and param.named do
      index = index + 1
      param = params[index]
    end
    if not param then
      local last = args[at]
      if at == n and (last == nil or is_plain(last) and entries.count(last, 1) == 0) then return end -- zeros_like{}
      errors.raise("invalid_argument", where,
                   ("too many arguments: %s is one more than it takes"):format(describe(args[at])),
                   told_by_name(params))
    end
    local name, kind, shown = param[1], param[2], param.alias or param[1]
    local v = args[at]
    at = at + 1
    if is_run(param, v) then
      local list = { v }
      while at <= n and is_run(param, args[at]) do
        list[#list + 1] = args[at]
        at = at + 1
      end
      v = list
    end
    local no_options = not takes_table[kind] and is_plain(v) and entries.count(v, 1) == 0 -- x:elu{}
    if v ~= nil and not no_options then out[name] = check(where, shown, param, v) end
    index = index + 1
  end
end

local function unknown(where, names, key)
  if key == "dim" or key == "dims" then
    errors.raise("invalid_argument", where, ("unknown option %q"):format(key),
                 "axes count from 1 here: dim=0 is axis=1")
  end
  local near, hint
  if suggest.foreign.option then near, hint = suggest.foreign.option(tostring(key), names) end
  near = near or suggest(tostring(key), names)
  errors.raise("invalid_argument", where, ("unknown option %q"):format(tostring(key)),
               hint or near and ("did you mean %q?"):format(near) or
               (#names > 0 and "options are " .. table.concat(names, ", ") or "it takes none"))
end

---Raises for a name that is no parameter's.
function M.check_names(where, params, named)
  for key in pairs(named) do
    if type(key) ~= "number" and not params.by_name[key] then unknown(where, params.names, key) end
  end
end

-- Named values to parameters.
function M.name_options(where, params, named, out)
  local by_name = params.by_name
  for key, v in pairs(named) do
    if type(key) ~= "number" then
      local param = by_name[key]
      if not param then unknown(where, params.names, key) end
      local name = param[1]
      if out[name] ~= nil then errors.raise("invalid_argument", where, ("%s is given twice"):format(key)) end
      out[name] = check(where, key, param, v)
    end
  end
end

function M.index(params)
  params.by_name, params.names = {}, {}
  local second, third = params[2], params[3]
  params.axis_may_lead = third and second[2] == "any" and third[2] == "axis" and third.required
  for i, param in ipairs(params) do
    params.by_name[param[1]] = param
    params.names[i] = param.alias or param[1]
    if param.alias then params.by_name[param.alias] = param end
  end
  return params
end

---Parses a call into one table by parameter name. `params` has been through M.index.
function M.parse(where, params, n, ...)
  local args, count, named = split(where, n, params, ...)
  local out = {}
  M.place(where, params, args, count, out)
  if named then M.name_options(where, params, named, out) end
  for _, param in ipairs(params) do
    local name = param[1]
    if out[name] == nil then
      if param.required then
        errors.raise("invalid_argument", where, ("argument %q is missing"):format(param.alias or name))
      end
      out[name] = param.default
    end
  end
  return out
end

---The parameters of every parser that was made, by the name that messages use: completion and the reference pages.
M.signatures = {}

---A parser for one function: see bindings/lua/README.md.
---@param where string what messages call the function
---@param params table[]
---@return fun(...): table
function M.signature(where, params)
  M.index(params)
  M.signatures[where] = params
  return function(...) return M.parse(where, params, select("#", ...), ...) end
end

return M
