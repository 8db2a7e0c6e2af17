-- SPDX-License-Identifier: Apache-2.0
-- What an expression surely is. Nothing is guessed: what is set to several kinds of things, comes from outside or is
-- answered by functions that nobody knows has no type, and rules keep silent.

local known = require "perigee.lint.known"
local walk = require "perigee.lint.walk"

---@class perigee.lint.Type
---@field is string "tensor", "number", "boolean", "string", "nil", "table", "function" of the script, "fn" of Perigee,
---"package", "class", "layer", "optimizer", "dataset", "schedule", "shape", "module"
---@field name? string of packages and functions: "nn", "pg.zeros"
---@field node? table of tables: their constructor
---@field mask? boolean of tensors: booleans that a comparison or its kin gave
---@field places? boolean of tensors and numbers: they count from 0 what a tensor holds
---@field fresh? boolean of tensors: made where it stands, and so no other object
---@field optional? boolean it may be nil

local types = {}
types.__index = types

local MASKS, PLACES, KEEPS_PLACES, SAME, FRESH = {}, {}, {}, {}, {}
local function names(text, into)
  for name in text:gmatch "%S+" do into[name] = true end
end
names([[gt lt ge le eq ne any all isnan isinf isfinite isposinf isneginf isclose isin logical_and logical_or logical_not
logical_xor]], MASKS)
names("argmax argmin argsort multinomial nonzero searchsorted bucketize randperm", PLACES)
names([[squeeze unsqueeze reshape view flatten select t transpose permute contiguous clone detach cpu flip narrow
expand index_select]], KEEPS_PLACES)
names("to cpu contiguous keep Parameter expand view reshape detach", SAME) -- may answer the very object
-- As may methods that are no operators, but for these.
names("max min median nanmedian norm argmax argmin clamp where quantile", FRESH)

-- Operators of two results, of which the second counts from 0; the first ones have two only with an axis.
local WITH_AXIS = { max = true, min = true, median = true, nanmedian = true }
local PAIRS = { topk = true, sort = true, kthvalue = true, mode = true, cummax = true, cummin = true }

local NUMBER, BOOLEAN, STRING = { is = "number" }, { is = "boolean" }, { is = "string" }
local SIMPLE = { number = NUMBER, string = STRING, ["true"] = BOOLEAN, ["false"] = BOOLEAN, ["nil"] = { is = "nil" },
                 ["function"] = { is = "function" } }
local PENDING = {} -- of a variable whose type is being found
local PACKAGES = { pg = true, nn = true, optim = true, data = true, amp = true }

---@param program table of parser.parse
function types.new(program) return setmetatable({ program = program, pending = 0, of_node = {} }, types) end

-- A number that stands in the text.
function types.literal(node)
  if not node then return nil end
  node = walk.bare(node)
  if node.kind == "number" then return tonumber(node.text) end
  if node.kind == "unary" and node.op == "-" and node.operand.kind == "number" then
    local v = tonumber(node.operand.text)
    return v and -v
  end
end

---Whether only tensors have a method of this name, in a program that has to do with them and defines none of its own.
function types:is_distinct(name)
  return self.program.is_ours and not self.program.defined[name] and known.is_distinct(name)
end

-- Whether max, min and their kin are told an axis.
local function has_axis(args, first)
  local given = args[first]
  if not given then return false end
  if given.kind ~= "table" then return types.literal(given) ~= nil end
  for _, item in ipairs(given.items) do
    if item.name == "axis" or not item.name and not item.key and types.literal(item.value) then return true end
  end
  return false
end

---Whether a call has two results, values and indices, and so spills both at the end of a list.
function types:gives_two(node)
  local name, first = nil, 1
  if node.kind == "method" then
    local object = self:of(node.object)
    name = (not object and not self.program.defined[node.name] or object and object.is == "tensor") and node.name
    if not object and not self:is_distinct(node.name) and not WITH_AXIS[node.name] then return false end
  elseif node.kind == "call" then
    local fn = self:of(node.callee)
    name, first = fn and fn.is == "fn" and fn.name:match "^pg%.([%w_]+)$", 2
    if name and WITH_AXIS[name] and node.args[1] and node.args[1].kind == "table" then first = 1 end
  end
  if not name then return false end
  return PAIRS[name] or WITH_AXIS[name] and has_axis(node.args, first) or false
end

local function tensor(callable, name, object)
  local places = PLACES[name] or KEEPS_PLACES[name] and object and object.places or nil
  local makes = not object or callable.is_operator or FRESH[name]
  return { is = "tensor", mask = MASKS[name], places = places, fresh = makes and not SAME[name] and not name:find "_$" }
end

-- The k-th result of something that is called.
function types:result(callable, name, k, object, node)
  local is = callable.results[k]
  if k > 1 and (PAIRS[name] or WITH_AXIS[name]) then return { is = "tensor", places = true, fresh = true } end
  if k == 1 and WITH_AXIS[name] and not callable.results[1] then is = "tensor" end
  if name == "item" and object and object.is == "tensor" then
    return object.places and { is = "number", places = true } or not object.mask and NUMBER or BOOLEAN
  end
  if name == "size" and node and #node.args == 0 then return nil end
  if is == "tensor" then return tensor(callable, name, object) end
  return is and { is = is, name = name } or nil
end

-- One type for two values of a variable, or of a function, or nil.
local function both(a, b)
  if a == nil or b == nil then return nil end
  if a.is == "nil" then return { is = b.is, name = b.name, mask = b.mask, places = b.places, optional = true } end
  if b.is == "nil" then return both(b, a) end
  if a.is ~= b.is or a.name ~= b.name then return nil end
  return { is = a.is, name = a.name, node = a.node == b.node and a.node or nil, mask = a.mask and b.mask,
           places = a.places and b.places, fresh = a.fresh and b.fresh, optional = a.optional or b.optional }
end

-- What a function of the script answers first, where it ends in a return and all of them are of one type.
function types:of_function(fn)
  if fn.type ~= nil then return fn.type or nil end
  fn.type = false -- what calls itself has no type
  local last = fn.body[#fn.body]
  if not last or last.kind ~= "return" then return nil end
  local type, several
  walk.all(fn.body, function(node)
    if node.kind == "return" then
      local value = node.values[1]
      local one = value and self:of(value) or not value and SIMPLE["nil"] or nil
      if several then type = type and both(type, one) else type, several = one, true end
    end
    return node.kind ~= "function"
  end, fn)
  fn.type = type or false
  return type
end

function types:of_call(node, k)
  local callee = walk.bare(node.callee)
  local argument = node.args[1]
  if callee.kind == "name" and not callee.variable and callee.name == "require" and argument then
    return argument.text and argument.text:find "^[\"']perigee[\"']$" and { is = "package", name = "pg" } or
           { is = "module" }
  end
  local own = callee.variable and #callee.variable.values == 1 and callee.variable.values[1]
  if own and own.kind == "function" then return k == 1 and self:of_function(own) or nil end
  local fn = self:of(callee)
  if not fn then return nil end
  if fn.is == "class" then return { is = "layer" } end
  local callable = fn.is == "fn" and known.fn(fn.name)
  return callable and self:result(callable, fn.name:match "[%w_]+$", k) or nil
end

local CLASSES = { tensor = true, layer = true, optimizer = true, dataset = true, schedule = true }

-- The class whose methods an object of a type has, surely or by a name that only tensors have.
function types:class_by(type, object, name)
  if type then return CLASSES[type.is] and type.is or nil end
  local bare = walk.bare(object)
  if bare.kind == "name" and bare.name == "self" then return nil end
  return self:is_distinct(name) and "tensor" or nil
end

---The class of the object that a method of this name is called on, or nil.
---@return string?
function types:class_of(object, name) return self:class_by(self:of(object), object, name) end

function types:of_method(node, k)
  local object, name = self:of(node.object), node.name -- asked for once: chains of calls are long
  if object == PENDING then -- x = x:relu()
    local own = known.method("tensor", name)
    return own and own.results[1] == "tensor" and PENDING or nil
  end
  if object and object.is == "package" then -- by a colon, which is another finding
    local fn = known.fn(object.name .. "." .. name)
    return fn and self:result(fn, name, k) or nil
  end
  local class = self:class_by(object, node.object, name)
  local callable = class and known.method(class, name)
  return callable and self:result(callable, name, k, object or { is = class }, node) or nil
end

function types:of_field(node)
  local object = self:of(node.object)
  if not object then return nil end
  if object == PENDING then return not node.dot and PENDING or nil end
  if object.is == "package" and node.dot then
    local path = object.name == "pg" and "" or object.name .. "."
    if known.is_package(path .. node.name) then return { is = "package", name = path .. node.name } end
    return { is = "fn", name = object.name .. "." .. node.name }
  end
  if object.is ~= "tensor" then return nil end
  if not node.dot then return { is = "tensor", places = object.places, mask = object.mask, fresh = true } end
  if node.name == "shape" then return { is = "shape" } end
  if node.name == "dtype" or node.name == "device" then return STRING end
end

local COMPARES = { ["=="] = true, ["~="] = true, ["<"] = true, ["<="] = true, [">"] = true, [">="] = true }

function types:of_binary(node)
  if COMPARES[node.op] then return BOOLEAN end
  if node.op == ".." then return STRING end
  local a, b = self:of(node.left), self:of(node.right)
  if node.op == "and" or node.op == "or" then
    if not a or not b or a.is ~= b.is or a.is == "table" then return nil end
    return { is = a.is, name = a.name == b.name and a.name or nil, optional = a.optional or b.optional }
  end
  if a and a.is == "tensor" or b and b.is == "tensor" then return { is = "tensor", fresh = true } end
  if a == PENDING or b == PENDING then return a and b and PENDING end -- x = x * 2
  return a and b and a.is == "number" and b.is == "number" and NUMBER or nil
end

function types:of_unary(node)
  if node.op == "not" then return BOOLEAN end
  if node.op == "#" then return NUMBER end
  local type = self:of(node.operand)
  if type and type.is == "tensor" then return { is = "tensor", fresh = true } end
  return type and type.is == "number" and NUMBER or nil
end

-- Something of its own is called on it that only tensors have.
function types:used_as_tensor(variable)
  for name in pairs(variable.name ~= "self" and variable.methods or {}) do
    if self:is_distinct(name) then return true end
  end
end

function types:of_variable(variable)
  if variable.type ~= nil then return variable.type or nil end
  variable.type, self.pending = PENDING, self.pending + 1
  local type, unknown, conflict
  for _, value in ipairs(variable.values) do
    local one = value.call and self:of(value.call, value.result) or value.kind and self:of(value)
    if not one then
      unknown = true
    elseif one ~= PENDING then
      local first = type == nil
      type = first and one or type and both(type, one)
      conflict = conflict or not type
    end
  end
  if unknown and not conflict then
    local may_be = not type or type.is == "tensor"
    type = may_be and self:used_as_tensor(variable) and { is = "tensor", optional = true } or nil
  end
  variable.type, self.pending = not conflict and type or false, self.pending - 1
  return variable.type or nil
end

-- By the kind of a node, what finds its type.
local OF = {
  paren = function(self, node) return self:of(node.inner) end,
  table = function(_, node) return { is = "table", node = node } end,
  name = function(self, node)
    if node.variable then return self:of_variable(node.variable) end
    return PACKAGES[node.name] and not self.program.globals[node.name] and { is = "package", name = node.name } or nil
  end,
  index = types.of_field, call = types.of_call, method = types.of_method, binary = types.of_binary,
  unary = types.of_unary,
}

---What an expression surely is, or nil. `k`: the k-th result of a call.
---@return perigee.lint.Type?
function types:of(node, k)
  local simple, find = SIMPLE[node.kind], OF[node.kind]
  if simple or not find then return simple end
  k = k or 1
  if self.pending > 0 or k > 1 then return find(self, node, k) end
  local found = self.of_node[node] -- what is found while a variable's type is looked for holds for that variable alone
  if found == nil then
    found = find(self, node, k) or false
    self.of_node[node] = found
  end
  return found or nil
end

return types
