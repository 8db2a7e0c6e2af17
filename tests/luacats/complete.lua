-- SPDX-License-Identifier: Apache-2.0
-- What an editor offers, from annotations alone: the type of an expression, and the names behind its dot or colon.

local types = require "luacats.types"

local complete = {}

local Completer = {}
Completer.__index = Completer

---@param file table what luacats.read answers
---@param variables? table<string, string> types of names; pg is what the file returns
function complete.new(file, variables)
  local self = setmetatable({ file = file, variables = { pg = { kind = "name", name = file.result.name } } }, Completer)
  for name, text in pairs(variables or {}) do self.variables[name] = types.read(text) end
  return self
end

-- Calls fn(part) for what a type may be, one after the other, until it answers something.
function Completer:each(tree, fn)
  if not tree then return nil end
  if tree.kind == "union" then
    for _, part in ipairs(tree) do
      local found = self:each(part, fn)
      if found then return found end
    end
    return nil
  end
  if tree.kind == "optional" then return self:each(tree.of, fn) end
  if tree.kind == "name" and self.file.aliases[tree.name] then return self:each(self.file.aliases[tree.name], fn) end
  return fn(tree)
end

-- The same for a class and those it extends.
function Completer:ancestors(tree, fn)
  local class = tree.kind == "name" and self.file.classes[tree.name]
  if not class then return nil end
  local found = fn(class)
  for i = 1, found and 0 or #class.parents do
    found = found or self:ancestors({ kind = "name", name = class.parents[i] }, fn)
  end
  return found
end

---The names behind the dot of a type, private ones apart: name = "field" or "function".
function Completer:members(tree)
  local set = {}
  self:each(tree, function(part)
    for _, f in ipairs(part.kind == "table" and part.fields or {}) do
      if f.name then set[f.name] = "field" end
    end
    self:ancestors(part, function(class)
      for name in pairs(class.fields) do set[name] = set[name] or "field" end
      for name in pairs(class.methods) do set[name] = set[name] or "function" end
    end)
  end)
  return set
end

function Completer:field(tree, name)
  return self:each(tree, function(part)
    for _, f in ipairs(part.kind == "table" and part.fields or {}) do
      if f.name == name then return f.type end
    end
    return self:ancestors(part, function(class)
      return class.fields[name] and class.fields[name].type or class.methods[name]
    end)
  end)
end

-- What stands at an index: of a number, or of a name that no field has.
function Completer:index(tree, kind)
  return self:each(tree, function(part)
    if part.kind == "array" then return part.of end
    if part.kind == "generic" and part.name == "table" then return part[2] end
    return self:ancestors(part, function(class)
      for _, entry in ipairs(class.keys) do
        if entry.key.name == kind then return entry.type end
      end
    end)
  end)
end

function Completer:result(tree)
  return self:each(tree, function(part)
    if part.kind == "function" then return part.returns[1] end
    local class = part.kind == "name" and self.file.classes[part.name] -- calls and operators are not inherited
    return class and class.calls[1] and class.calls[1].returns[1]
  end)
end

local EVENTS = { ["+"] = "add", ["-"] = "sub", ["*"] = "mul", ["/"] = "div", ["^"] = "pow", ["%"] = "mod" }

---The type of an expression: names, fields, methods, indices, calls, and one operator between two of them; nil where
---the annotations do not say. They never say it of an index that is a table literal: its type is not looked up.
---@param text string "pg.nn.Linear{3, 2}(x):relu()"
function Completer:type_of(text)
  local inner, rest = text:match("^(%b())(.*)$")
  local tree
  if inner then tree = self:type_of(inner:sub(2, -2))
  else
    local name
    name, rest = text:match("^([%a_][%w_]*)(.*)$")
    tree = self.variables[name]
  end
  while tree and rest ~= "" do
    local name, behind = rest:match("^[.:]([%a_][%w_]*)(.*)$")
    local operator = rest:match("^ ([-+*/^%%]) ")
    if name then tree = self:field(tree, name) or self:index(tree, "string")
    elseif operator then
      return self:each(tree, function(part)
        local class = part.kind == "name" and self.file.classes[part.name]
        return class and class.operators[EVENTS[operator]]
      end)
    else
      local arguments
      arguments, behind = rest:match("^ ?(%b())(.*)$")
      if not arguments then arguments, behind = rest:match("^ ?(%b{})(.*)$") end
      if not arguments then arguments, behind = rest:match('^ ?("[^"]*")(.*)$') end
      if arguments then tree = self:result(tree)
      else
        arguments, behind = rest:match("^(%b[])(.*)$")
        if not arguments then error("no expression that this reads: " .. text) end
        local first = arguments:sub(2, 2)
        tree = first ~= "{" and self:index(tree, first == '"' and "string" or "integer") or nil
      end
    end
    rest = behind
  end
  return tree
end

---A type as its annotation has it, for classes and built-in types: "perigee.Tensor".
function Completer:name_of(tree)
  return tree and self:each(tree, function(part) return part.kind == "name" and part.name or part.kind end)
end

return complete
