-- SPDX-License-Identifier: Apache-2.0
-- data.from_generator: samples that a function yields, checked against a spec.

local native = require "perigee.native"
local pipeline = require "perigee.data.pipeline"

local WHERE = "data.from_generator"
local PLAIN = { number = true, string = true, boolean = true }

local function refuse(text, hint) native.raise("invalid_argument", WHERE, text, hint) end

local function shape_text(shape)
  local parts = {}
  for i, n in ipairs(shape) do parts[i] = n == -1 and "any" or tostring(n) end
  return "{" .. table.concat(parts, ", ") .. "}"
end

-- A field's rule: { plain = "string" } or { dtype =, shape = }, and how messages call it.
local function read_rule(name, given)
  if type(name) ~= "string" then refuse(("spec must name fields, got %s"):format(native.describe(name))) end
  if PLAIN[given] then return { plain = given, text = "a " .. given } end
  local dtype, shape = given, nil
  if native.is_plain(given) then
    dtype, shape = given[1] or given.dtype, given.shape
    for key in pairs(given) do
      if key ~= 1 and key ~= "dtype" and key ~= "shape" then
        refuse(("spec of %s has no option %q"):format(name, tostring(key)), "{dtype, shape={3, -1}}")
      end
    end
  end
  if type(dtype) ~= "string" then
    refuse(("spec of %s must be a dtype, \"string\", \"number\", \"boolean\" or {dtype, shape=}, got %s"):format(name,
           native.describe(given)))
  end
  dtype = native.dtypes.find(dtype, WHERE).name
  if shape ~= nil and not native.is_plain(shape) then
    refuse(("shape of %s must be a list of sizes, got %s"):format(name, native.describe(shape)))
  end
  for _, n in ipairs(shape or {}) do
    if type(n) ~= "number" or n ~= math.floor(n) or n < -1 then
      refuse(("shape of %s must have sizes, or -1 for any, got %s"):format(name, native.describe(n)))
    end
  end
  return { dtype = dtype, shape = shape and { unpack(shape) },
           text = "tensor " .. dtype .. (shape and " " .. shape_text(shape) or "") }
end

local function fits(t, rule)
  if t.dtype ~= rule.dtype then return false end
  if not rule.shape then return true end
  if t:dim() ~= #rule.shape then return false end
  for axis, n in ipairs(rule.shape) do
    if n ~= -1 and t.shape[axis] ~= n then return false end
  end
  return true
end

-- A field's value as its rule wants it; numbers and tables of them become tensors. nil: it does not fit.
local function checked(value, rule)
  if rule.plain then
    if type(value) == rule.plain then return value end
    return nil
  end
  if type(value) == "number" or type(value) == "boolean" or native.is_plain(value) then
    local made, t = pcall(require("perigee").tensor, value, { dtype = rule.dtype })
    if not made then return nil end
    value = t
  end
  return native.is_tensor(value) and fits(value, rule) and value or nil
end

-- What checks element i and answers it.
local function checker(spec, place)
  local rules, names = {}, {}
  for name, given in pairs(spec or {}) do rules[name], names[#names + 1] = read_rule(name, given), name end
  table.sort(names)
  local function wrong(i, text) refuse(("element %d of the generator at %s: %s"):format(i, place, text)) end
  return function(i, sample)
    if not native.is_plain(sample) then wrong(i, "expected a table of fields, got " .. native.describe(sample)) end
    if not spec then return sample end
    local element = {}
    for _, name in ipairs(names) do
      local value, rule = sample[name], rules[name]
      if value ~= nil then element[name] = checked(value, rule) end
      if element[name] == nil then
        wrong(i, ("%s is %s; the spec says %s"):format(name, value == nil and "missing" or native.describe(value),
              rule.text))
      end
    end
    for name in pairs(sample) do
      if not rules[name] then wrong(i, ("%s is not in the spec"):format(tostring(name))) end
    end
    return element
  end
end

local read_generator = native.signature(WHERE, {
  { "fn", "function", required = true, type = "fun()", doc = "yields samples: coroutine.yield{x=..., y=...}" },
  { "spec", "table", named = true, type = "table<string, any>",
    doc = "fields: a dtype, {dtype, shape={3, -1}} (-1: any size), or \"string\", \"number\", \"boolean\"" } })
---Samples that a function yields, one after the other; it begins anew for each pass, and its length is unknown. With a
---spec, each must have these fields and no others: numbers and tables become tensors of their dtype, and what does not
---fit is an error that names the field. The function runs on the script's thread when an element is wanted, and later
---stages beside it where they have threads; what it draws by pg depends on (seed, epoch) alone.
---@return perigee.Dataset
local function from_generator(...)
  local o = read_generator(...)
  local info = debug.getinfo(o.fn, "S")
  local check = checker(o.spec, ("%s:%d"):format((info.source:gsub("^[@=]%.?/?", "")), info.linedefined))
  local what = pipeline.of_function("from_generator", { o.fn, o.spec or false })
  return pipeline.source { name = "from_generator", what = what, pull = function(epoch)
    local thread, draw, i = coroutine.create(o.fn), native.data.own_draws(epoch), 0
    return function()
      if not thread then return nil end
      local ok, sample = draw(coroutine.resume, thread)
      if not ok then
        thread = nil
        error(sample, 0)
      end
      if coroutine.status(thread) == "dead" then
        thread = nil
        if sample ~= nil then
          refuse("the function returned " .. native.describe(sample), "coroutine.yield a sample")
        end
        return nil
      end
      i = i + 1
      return check(i, sample)
    end, function() thread = nil end
  end }
end

return from_generator
