-- SPDX-License-Identifier: Apache-2.0
-- What live objects are in the words of the reference: the classes of an object, the entry of its method, the name of a
-- package.

local reference = require "perigee.reference"

local objects = {}

local by_class

-- Entries of methods: class -> { name -> entry }.
local function methods_by_class()
  if by_class then return by_class end
  by_class = {}
  for name, entry in pairs(reference.all()) do
    local class, method = name:match("^([%w_]+):([%w_]+)$")
    if class and class ~= "tensor" then
      by_class[class] = by_class[class] or {}
      by_class[class][method] = entry
    end
  end
  return by_class
end

local function has_all(object, methods)
  local count = 0
  for method in pairs(methods) do
    local ok, found = pcall(function() return object[method] end)
    if not ok or type(found) ~= "function" then return nil end
    count = count + 1
  end
  return count
end

---The classes that an object is of, by the methods that it has: the one of its own name, and the largest of those whose
---every method is there.
---@param object any
---@return {name: string, methods: table<string, perigee.Entry>}[]
function objects.classes_of(object)
  local meta, own = debug.getmetatable(object), nil
  local name = type(meta) == "table" and rawget(meta, "__name")
  if type(name) == "string" then own = name:gsub("(%l)(%u)", "%1_%2"):lower() end
  local largest, most = nil, 0
  for class, methods in pairs(methods_by_class()) do
    local count = class ~= own and has_all(object, methods)
    if count and (count > most or count == most and class < largest) then largest, most = class, count end
  end
  local list = {}
  for _, class in ipairs { methods_by_class()[own or ""] and own or false, largest or false } do
    if class then list[#list + 1] = { name = class, methods = methods_by_class()[class] } end
  end
  return list
end

---The entry of an object's method.
---@param object any
---@param name string
---@return perigee.Entry?
function objects.find_method(object, name)
  for _, class in ipairs(objects.classes_of(object)) do
    if class.methods[name] then return class.methods[name] end
  end
end

---What stands before the names of a package's members: "pg." of pg itself, "optim.sched." of pg.optim.sched.
---@param value table
---@return string?
function objects.prefix_of(value)
  local pg = require "perigee"
  if rawequal(value, pg) then return "pg." end
  local tried = {}
  for _, name in ipairs(reference.names()) do
    local prefix = name:match("^([%w_.]+)%.[%w_]+$")
    if prefix and prefix ~= "pg" and not tried[prefix] then
      tried[prefix] = true
      if rawequal(reference.value_of((prefix:gsub("^pg%.", ""))), value) then return prefix .. "." end
    end
  end
end

return objects
