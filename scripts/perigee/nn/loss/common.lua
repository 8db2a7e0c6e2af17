-- SPDX-License-Identifier: Apache-2.0
-- What losses share: options, shapes, reductions.

local native = require "perigee.native"

local common = {}

common.REDUCTIONS = { "mean", "sum", "none" }

local declared = {} -- by loss: { defaults =, reductions = }

-- What options mean that several losses have.
local MEANINGS = {
  reduction = "what is made of the values",
  weight = "factor of each class, [C]", ignore_index = "label that does not count",
  eps = "least number that is divided by", full = "whether to add the terms that do not depend on x",
}

---Names a loss's options: `defaults` (false: none), what they mean beside what MEANINGS says, and reductions beside
---mean, sum and none.
function common.declare(where, defaults, meanings, more)
  defaults.reduction = "mean"
  declared[where] = { defaults = defaults, meanings = meanings or {},
                      reductions = { unpack(common.REDUCTIONS) } }
  for _, name in ipairs(more or {}) do table.insert(declared[where].reductions, name) end
end

---A loss's options and their defaults; false: none.
function common.defaults(loss) return declared[loss].defaults end

---What an option of a loss may be, if it is a name.
function common.choices(loss, name) return name == "reduction" and declared[loss].reductions or nil end

---What an option of a loss means, for the reference.
function common.meaning(loss, name) return declared[loss].meanings[name] or MEANINGS[name] or "" end

local function unknown(where, defaults, key)
  local names = {}
  for name in pairs(defaults) do names[#names + 1] = name end
  table.sort(names)
  local near = native.suggest.foreign.option(tostring(key), names) or native.suggest(tostring(key), names)
  native.raise("invalid_argument", where, ("unknown option %q"):format(tostring(key)),
               near and ("did you mean %q?"):format(near) or "options are " .. table.concat(names, ", "))
end

local TENSORS = { weight = true, pos_weight = true } -- options that are tensors, or numbers; the default is none

local function check_kind(where, key, default, value)
  local kind = type(default)
  if TENSORS[key] then
    if value == false or type(value) == "number" or native.is_tensor(value) then return end
    kind = "tensor"
  elseif type(value) == kind or key == "reduction" then
    return
  end
  native.raise("invalid_argument", where, ("%s must be %s, got %s"):format(key, kind == "boolean" and "true or false" or
               "a " .. kind, native.describe(value)),
               kind == "tensor" and type(value) == "table" and "pg.tensor makes one of a table" or nil)
end

---A loss's options, those that are not given filled in. `where` is what messages call it.
local function read(where, loss, options)
  local o, defaults = {}, declared[loss].defaults
  for key, value in pairs(defaults) do o[key] = value end
  for key, value in pairs(options or {}) do
    if defaults[key] == nil then unknown(where, defaults, key) end
    check_kind(where, key, defaults[key], value)
    o[key] = value
  end
  return o
end

---nil where none are given.
function common.given(loss, options) return options ~= nil and common.options(loss, options) or nil end

function common.options(loss, options)
  if options ~= nil and (type(options) ~= "table" or native.is_tensor(options)) then
    native.raise("invalid_argument", loss, "options must be a table, got " .. native.describe(options),
                 type(options) == "string" and ("{reduction=%q}"):format(options) or nil)
  end
  return read(loss, loss, options)
end

local function check_reduction(where, loss, reduction)
  local known = declared[loss].reductions
  for _, name in ipairs(known) do
    if reduction == name then return end
  end
  native.raise("invalid_argument", where, ("reduction must be %s or %s, got %s"):format(
                 table.concat(known, ", ", 1, #known - 1), known[#known], native.describe(reduction)))
end

---A layer's options, checked, and a copy: its caller may change them afterwards.
function common.copy(where, loss, options)
  if options == nil then return nil end
  if type(options) ~= "table" or native.is_tensor(options) then
    native.raise("invalid_argument", where, "options must be a table, got " .. native.describe(options),
                 native.is_tensor(options) and ("make the layer first: nn.%s{}(x, y)"):format(where) or
                 type(options) == "string" and ("nn.%s{reduction=%q}"):format(where, options) or nil)
  end
  check_reduction(where, loss, read(where, loss, options).reduction)
  local copy = {}
  for key, value in pairs(options) do copy[key] = value end
  return copy
end

-- Functions of operators by the loss that messages name.
local functions = {}
local function operator(where, name)
  functions[where] = native.operators.function_as(name, where)
  return functions[where]
end

---The loss of an operator that has the loss's options, of x, y and what else it is of. `o`: the options, all of them;
---nil: defaults, which are the operator's too.
function common.call(where, name, x, y, o, third)
  local fn = functions[where] or operator(where, name)
  if o == nil then
    if third ~= nil then return fn(x, y, third) end
    return fn(x, y)
  end
  check_reduction(where, where, o.reduction)
  local given, factor = {}, nil
  for key, value in pairs(o) do given[key] = value end
  if type(o.weight) == "number" then given.weight, factor = nil, o.weight end
  if third ~= nil then return fn(x, y, third, given) end
  local loss = fn(x, y, given)
  return factor and loss * factor or loss
end

function common.reduce(where, values, reduction)
  if reduction == "mean" then return values:mean() end
  if reduction == "sum" then return values:sum() end
  if reduction == "none" then return values end
  native.raise("invalid_argument", where, "reduction must be mean, sum or none, got " .. native.describe(reduction))
end

---Raises unless all are tensors.
function common.check_tensors(where, ...)
  local x, y, z = ...
  if native.is_tensor(x) and native.is_tensor(y) and z == nil and select("#", ...) == 2 then return end
  local list = { n = select("#", ...), ... }
  for i = 1, list.n do
    if not native.is_tensor(list[i]) then
      local told = {}
      for k = 1, list.n do told[k] = native.describe(list[k]) end
      local count = ({ "one tensor", "two tensors", "three tensors" })[list.n]
      native.raise("invalid_argument", where, ("needs %s, got %s"):format(count, table.concat(told, ", ", 1, list.n - 1)
                   .. (list.n > 1 and " and " or "") .. told[list.n]))
    end
  end
end

-- Broadcasting [N, 1] against [N] here is nearly always a mistake, and a silent one.
function common.check_shapes(where, x, y)
  common.check_tensors(where, x, y)
  if x.ptr ~= nil and y.ptr ~= nil and native.tensor.same_sizes(x, y) then return end
  if native.tensor.shapes_differ(x.shape, y.shape) then
    native.raise("invalid_argument", where, ("the prediction is %s but the target %s"):format(tostring(x.shape),
                 tostring(y.shape)), "reshape one of them")
  end
end

-- Whether sizes, aligned at the end, broadcast: equal, or one of them 1. Names of a graph's axes may turn out to be.
local function may_broadcast(a, b)
  for i = 0, math.min(#a, #b) - 1 do
    local m, n = a[#a - i], b[#b - i]
    if m ~= 1 and n ~= 1 and native.tensor.sizes_differ(m, n) then return false end
  end
  return true
end

---Raises unless the shapes of two arguments broadcast.
function common.check_broadcast(where, a_name, a, b_name, b)
  if not may_broadcast(a.shape, b.shape) then
    native.raise("invalid_argument", where, ("%s %s and %s %s do not broadcast"):format(a_name, tostring(a.shape),
                 b_name, tostring(b.shape)))
  end
end

---Raises unless targets y, a number for each value, broadcast against values of this shape with no axes of their own.
function common.check_targets(where, y, shape)
  if #y.shape > #shape or not may_broadcast(y.shape, shape) then
    native.raise("invalid_argument", where, ("y %s does not fit values %s"):format(tostring(y.shape), tostring(shape)))
  end
end

---Raises unless a factor, where there is one, broadcasts to values of this shape.
function common.check_factor(where, name, factor, shape)
  if not factor or type(factor) == "number" then return end
  if not native.is_tensor(factor) then
    native.raise("invalid_argument", where, ("%s must be a tensor, got %s"):format(name, native.describe(factor)),
                 type(factor) == "table" and "pg.tensor makes one of a table" or nil)
  end
  local own = factor.shape
  local fits = #own <= #shape and may_broadcast(own, shape)
  for i = 0, fits and #own - 1 or -1 do fits = fits and (shape[#shape - i] ~= 1 or own[#own - i] == 1) end
  if not fits then
    native.raise("invalid_argument", where, ("%s %s does not fit values %s"):format(name, tostring(own),
                 tostring(shape)))
  end
end

---Raises unless a number is as `fits` says.
function common.check_number(where, name, value, fits, expected)
  if type(value) ~= "number" or not fits(value) then
    native.raise("invalid_argument", where, ("%s must be %s, got %s"):format(name, expected, native.describe(value)))
  end
end

return common
