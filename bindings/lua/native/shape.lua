-- SPDX-License-Identifier: Apache-2.0
-- Shapes: lists that compare by value and print as {2, 3}. What only a run tells is a perigee.Size ("batch").

local errors = require "perigee.native.errors"

local Shape = { __perigee_list = true, __name = "perigee.shape" }

function Shape.__index(self, key)
  local found = type(key) == "number" and key < 0 and rawget(self, #self + 1 + key) or nil
  if found or errors.is_own_source(debug.getinfo(2, "S").source) then return found end -- own code broadcasts shapes
  if key == 0 then
    errors.raise("invalid_argument", "shape", "position 0, but positions count from 1", "the first axis is shape[1]")
  elseif type(key) == "number" then
    errors.raise("invalid_argument", "shape", ("there is no position %s in %s"):format(tostring(key), tostring(self)))
  end
  errors.raise("not_found", "shape", ("a shape has no %q"):format(tostring(key)), "it is a list: shape[1], #shape")
end

function Shape.__call()
  errors.raise("invalid_argument", "shape", "shape is a field, not a method", "t.shape, or t:size(axis) for one size")
end

function Shape.__eq(a, b)
  if #a ~= #b then return false end
  for i = 1, #a do
    if a[i] ~= b[i] then return false end
  end
  return true
end

function Shape.__tostring(self)
  local parts = {}
  for i = 1, #self do parts[i] = tostring(self[i]) end
  return "{" .. table.concat(parts, ", ") .. "}"
end

function Shape.__concat(a, b) return tostring(a) .. tostring(b) end

---Makes a shape of a list, which it takes over.
---@param list (integer|perigee.Size)[]
return function(list)
  local shape = setmetatable(list, Shape)
  return shape
end
