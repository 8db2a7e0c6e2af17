-- SPDX-License-Identifier: Apache-2.0
-- What Perigee has, for the checker: methods of its classes, functions of its packages, what they answer and which of
-- their arguments are axes. All of it is read off the reference, so that nothing here has to follow a new function.

local native = require "perigee.native"
local reference = require "perigee.reference"

local known = {}

---@class perigee.lint.Callable
---@field results (string|false)[] kinds of what it answers: "tensor", "number", "layer", ...; false: something else
---@field axes table<integer, boolean> positions of arguments that are axes, behind the object of a method
---@field has table<string, boolean> names of its options
---@field is_operator boolean

-- By types of annotations, those of Perigee without its name.
local RESULTS = {
  Tensor = "tensor", Optimizer = "optimizer", Dataset = "dataset", Schedule = "schedule", Layer = "layer",
  LayerClass = "class", ["nn.Sequential"] = "layer", number = "number", integer = "number", boolean = "boolean",
  string = "string",
}
-- Arguments that are axes under other names.
local EVERY = { transpose = 2, movedim = 2, permute = 8, flip = 8, size = 1, squeeze = 1, unsqueeze = 1 }

local function results_of(entry)
  if entry.kind == "layer" or entry.kind == "optimizer" then return { entry.kind } end
  local list = {}
  if entry.op then
    for i = 1, entry.op.visible_outputs do list[i] = "tensor" end
    return list
  end
  for i, text in ipairs(entry.returns or {}) do
    list[i] = RESULTS[text:match "^%S+":gsub("^perigee%.", "")] or false
  end
  return list
end

local function describe(entry, name, is_method)
  local bare = name:match "[%w_]+$"
  local axes, has, at = {}, {}, 0
  if entry.op and not is_method then at = #entry.op.inputs end
  if entry.op and is_method then at = #entry.op.inputs - 1 end
  for i, p in ipairs(entry.parameters) do
    local place = at + i
    if is_method and not entry.op and name ~= entry.name then place = place - 1 end -- pg.f's entry, its tensor first
    local counts_them = bare == "tensordot"
    if (p.name == "axis" or p.name == "axes") and not counts_them then axes[place] = true end
    has[p.name] = true
  end
  for i = 1, EVERY[bare] or 0 do axes[i + (is_method and 0 or 1)] = true end
  return { results = results_of(entry), axes = axes, has = has, is_operator = entry.op ~= nil }
end

local methods, functions = {}, {}

---A method of a class: "tensor", "layer", "optimizer", "dataset", "schedule".
---@return perigee.lint.Callable?
function known.method(class, name)
  local id = class .. ":" .. name
  if methods[id] == nil then
    local all = reference.all()
    local entry = all[id]
    if not entry and class == "tensor" then
      local plain = name:gsub("_$", "")
      if native.operators.is_method(plain) or rawget(native.methods, name) then
        entry = all["pg." .. plain] or all["tensor:" .. plain]
      end
    end
    methods[id] = entry and describe(entry, id, true) or false
  end
  return methods[id] or nil
end

---A function by its dotted name: "pg.zeros", "nn.mse", "optim.Adam".
---@return perigee.lint.Callable?
function known.fn(name)
  if functions[name] == nil then
    local entry = reference.all()[name]
    functions[name] = entry and describe(entry, name, false) or false
  end
  return functions[name] or nil
end

---Whether a dotted name below pg is a table of functions.
function known.is_package(name)
  local value = reference.value_of(name)
  return type(value) == "table" and name:match "[%w_]+$":find "^%l" ~= nil
end

-- What a value answers to a name that it has not; nil: it has the name, or nothing is like it, and then it may be a
-- plugin's that is found elsewhere, or of one that cannot be loaded here, which the message then says.
local function refusal(value, name)
  local ok, problem = pcall(function() return value[name] end)
  if ok then return nil end
  local text = tostring(problem):match "^[^\n]*":gsub("^[^:]*:[%d-]+: ", "")
  if text:find(" is unavailable: ", 1, true) then return nil end
  return (text:find "%)$" or text:find "in this version$") and text or nil
end

---What is said of a name that a package has not, or nil.
---@param package string "pg", "nn"
function known.missing_in_package(package, name)
  local value = package == "pg" and require "perigee" or reference.value_of(package)
  return refusal(value, name)
end

local example

---What is said of a field or method that tensors have not, or nil.
function known.missing_in_tensor(name)
  example = example or require("perigee").zeros { 1 }
  return refusal(example, name)
end

-- Names that objects of users may well have, too.
local COMMON = {}
for name in ([[add sub mul div mod max min sum mean prod std var median mode sort split chunk find count size dim copy
clone fill zero to type index select set get put flip roll norm dot cross diff map apply range pad view tile trace
round floor ceil abs exp log sqrt neg sign free cpu rows format rep reverse lower upper len byte gsub match gmatch
char dump read write close lines seek flush positions draw rand scale lerp bound equal text label t data item outer
inner expand take take_along where gather scatter relu clip uniform_ normal_]]):gmatch "%S+" do COMMON[name] = true end

local others

---Whether only tensors have a method of this name, as far as one can tell.
function known.is_distinct(name)
  if not others then
    others = {}
    for id in pairs(reference.all()) do
      local class, method = id:match "^([%w_]+):([%w_]+)$"
      if class and class ~= "tensor" then others[method] = true end
    end
  end
  return not COMMON[name] and not others[name] and not string[name] and known.method("tensor", name) ~= nil
end

return known
