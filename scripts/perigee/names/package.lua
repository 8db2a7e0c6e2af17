-- SPDX-License-Identifier: Apache-2.0
-- Tables of functions that answer every name: one that is not there raises, with what it is called here, the nearest of
-- their own names, or where they have few, all of them.

local native = require "perigee.native"
local absent = require "perigee.names.absent"
local foreign = require "perigee.names.foreign"

local M = {}

local FEW = 12

local function names_of(package, more)
  local names = more or {}
  for name in pairs(package) do
    if type(name) == "string" then names[#names + 1] = name end
  end
  table.sort(names)
  return names
end

---Raises for a name that a package has not.
---@param package table
---@param called string what scripts call it: "pg.linalg"
---@param name any
---@param kind? string whose names from elsewhere are known (names/foreign.lua)
---@param more? string[] names that it has but holds not yet
---@param otherwise? string the hint where no name is near
function M.refuse(package, called, name, kind, more, otherwise)
  local hint = kind and type(name) == "string" and foreign.hint(kind, name)
  local is_absent, way = absent.find(not hint and kind or nil, name)
  if is_absent then
    native.raise("not_found", nil, ("there is no %s.%s in this version"):format(called == "perigee" and "pg" or called,
                 name), way)
  end
  local names = names_of(package, more)
  local near = not hint and native.suggest(tostring(name), names)
  if near then
    hint = ("did you mean %s?"):format(called == "perigee" and ("%q"):format(near) or called .. "." .. near)
  end
  local all = #names <= FEW and "it has " .. table.concat(names, ", ") or nil
  native.raise("not_found", nil, ("%s has no %q"):format(called, tostring(name)),
               hint or otherwise or all)
end

---Reading a name that the package has not raises from now on. Answers the package.
function M.close(package, called, kind)
  return setmetatable(package, { __index = function(_, name) M.refuse(package, called, name, kind) end })
end

return M
