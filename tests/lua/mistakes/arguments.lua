-- SPDX-License-Identifier: Apache-2.0
-- Mistaken calls of everything public, made from what the reference knows of it: nothing, nil, a value of no fitting
-- type in each place and under each name, one argument more than there are places, an option that is none, methods
-- without their object, and layers called so.

local pg = require "perigee"
local reference = require "perigee.reference"
local fitting = require "mistakes.fitting"

local arguments = {}

-- What no function takes for anything: it is neither a value nor a table that may hold arguments.
local WRONG = coroutine.create(function() end)
local WORD = fitting.folder .. "/a word" -- some functions write where a text says
local objects = fitting.objects

-- Whether WRONG may stand for the parameter.
local function takes_anything(p) return p.name == "..." or p.type == "any" end

local function inferred(info)
  local attribute = info.inferred and info.attributes[info.inferred]
  return attribute and attribute.name
end

-- Whether a call without the parameter says too little. A size that the first input tells may be left out.
local function needed(entry, p)
  return p.required and not takes_anything(p) and not (entry.info and inferred(entry.info) == p.name)
end

-- What may stand without a name.
local function positional(entry)
  local list = {}
  for _, input in ipairs(entry.kind == "operator" and entry.inputs or {}) do
    list[#list + 1] = { name = input.name, type = input.variadic and "perigee.Tensor[]" or "perigee.Tensor",
                        required = not input.optional }
  end
  for _, p in ipairs(entry.parameters) do
    if not p.named then list[#list + 1] = p end
  end
  return list
end

-- A function, on a fresh object where it is a method; and the method as it is, to be called without one.
local function callable(name)
  local kind, method = name:match("^([%w_]+):(.*)$")
  if not kind then
    local value = pg
    for part in name:gsub("^pg%.", ""):gmatch("[^.]+") do value = value[part] end
    return function(...)
      local r = value(...)
      return r
    end
  end
  assert(objects[kind], "there is no object for " .. name)
  return function(...)
    local object = objects[kind]()
    local r = object[method](object, ...)
    return r
  end, function(...)
    local f = objects[kind]()[method]
    local r = f(...)
    return r
  end
end

-- ---- what is tried of a function ----

local function missing(call, entry, places)
  local required = false
  for _, p in ipairs(entry.parameters) do required = required or needed(entry, p) end
  for _, p in ipairs(places) do required = required or needed(entry, p) end
  call("()", required, 0)
  call("(nil)", places[1] and needed(entry, places[1]), 1, nil)
end

local function fits(n) return ("fitting, "):rep(n) end

-- In each place, behind what fits, something that may fit, and what cannot.
local function wrong_places(call, name, places)
  local given = {}
  local others = { 3, WORD, true, { 1, 2 }, { a = 1 }, objects.tensor(), function() end }
  if name:find "^config%." then others = {} end -- a limit of 3 bytes would be in force
  for i, p in ipairs(places) do
    for _, other in ipairs(others) do
      given[i] = other
      call(("(%s%s)"):format(fits(i - 1), type(other)), false, i, unpack(given, 1, i))
    end
    given[i] = WRONG
    call(("(%swrong)"):format(fits(i - 1)), not takes_anything(p), i, unpack(given, 1, i))
    if p.name == "..." then return end
    given[i] = fitting.value(p)
  end
end

local function surplus(call, places)
  local count, given, open = #places, {}, false
  for i, p in ipairs(places) do
    if p.name == "..." then return end
    given[i] = fitting.value(p)
    open = open or p.type:find "%[%]" ~= nil
  end
  given[count + 1] = WRONG
  call(("(%swrong)"):format(fits(count)), true, count + 1, unpack(given, 1, count + 1))
  given[count + 1] = 7
  call(("(%s7)"):format(fits(count)), not open, count + 1, unpack(given, 1, count + 1))
end

-- Options by name behind what must be there.
local function options(call, names, given, count)
  given[count + 1] = { nonsense = 1 }
  call("{nonsense=1}", true, count + 1, unpack(given, 1, count + 1))
  for _, p in ipairs(names) do
    given[count + 1] = { [p.name] = WRONG }
    call(("{%s=wrong}"):format(p.name), not takes_anything(p), count + 1, unpack(given, 1, count + 1))
  end
end

local function wrong_options(call, entry, places)
  local given, count = {}, 0
  for i, p in ipairs(places) do
    if p.type:find "^{[%w_]+%??:" then -- a table of options, whose names its type tells
      local names = {}
      for name, kind in p.type:gmatch "([%w_]+)%??: ([^,}]+)" do names[#names + 1] = { name = name, type = kind } end
      return options(call, names, given, i - 1)
    end
    if not p.required or p.name == "..." then break end
    given[i], count = fitting.value(p), i
  end
  if not entry.grammar and (entry.kind == "function" or entry.kind == "method") then return end
  local names = {}
  for _, p in ipairs(entry.parameters) do
    local place
    for i, other in ipairs(places) do place = place or other == p and i end
    if not place or place > count then names[#names + 1] = p end
  end
  options(call, names, given, count)
end

local function without_object(call)
  call(" without an object", true, 0)
  call(" of a number", true, 1, 3)
  call(" of a table", true, 1, {})
end

-- An operator as a method, and its form that writes into the tensor.
local function methods(visit, name, entry)
  local first = entry.inputs[1]
  if not first or first.variadic then return end
  for _, method in ipairs { name:match "[%w_]+$", entry.in_place and name:match "[%w_]+$" .. "_" or nil } do
    local function call(what, must_fail, n, ...)
      visit(":" .. method .. what, must_fail, function(...)
        local x = objects.tensor()
        local r = x[method](x, ...)
        return r
      end, n, ...)
    end
    call("(wrong)", true, 1, WRONG)
    call("{nonsense=1}", true, 1, { nonsense = 1 })
    for _, other in ipairs { 3, WORD, true, { 1, 2 }, { a = 1 }, objects.tensor(), function() end } do
      call(("(%s)"):format(type(other)), false, 1, other)
    end
    visit("." .. method .. "()", true, function()
      local f = objects.tensor()[method]
      local r = f()
      return r
    end, 0)
  end
end

-- A layer that could be made is called with nothing, and with what is no tensor.
local function called_layer(call, name, entry, places)
  local given = {}
  for i, p in ipairs(places) do given[i] = p.required and fitting.value(p) or nil end
  local made, layer = pcall(callable(name), unpack(given, 1, #places))
  if not made or entry.name:find "^amp%." or name == "nn.Identity" then return end
  for _, other in ipairs { 3, WORD, true, {}, { a = 1 }, function() end, WRONG } do
    call(("(...)(%s)"):format(type(other)), true, 1, other, layer)
    call(("(...)(tensor, %s)"):format(type(other)), false, 2, objects.tensor(), other, layer)
  end
  call("(...)()", true, 0, layer)
end

local function call_layer(n, ...)
  local given = { ... }
  local layer = given[n + 1]
  local r = layer(unpack(given, 1, n))
  return r
end

---Calls visit(what, must_fail, fn, ...) for each mistaken call fn(...) of a name.
---@param name string as reference.names() has it
function arguments.each(name, visit)
  local entry = reference.all()[name]
  local f, bare = callable(name)
  local places = positional(entry)
  local function call(what, must_fail, n, ...)
    visit(what, must_fail, function(...)
      local r = f(...)
      return r
    end, n, ...)
  end
  missing(call, entry, places)
  wrong_places(call, name, places)
  surplus(call, places)
  wrong_options(call, entry, places)
  if bare then without_object(function(what, must_fail, n, ...) visit(what, must_fail, bare, n, ...) end) end
  if entry.kind == "operator" then methods(visit, name, entry) end
  if entry.kind == "layer" then
    called_layer(function(what, must_fail, n, ...)
      visit(what, must_fail, call_layer, select("#", ...) + 1, n, ...)
    end, name, entry, places)
  end
end

return arguments
