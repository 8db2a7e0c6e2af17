-- SPDX-License-Identifier: Apache-2.0
-- Shapes: lists that compare by value and print as {2, 3}. A symbolic dimension is a string ("batch").

local Shape = { __perigee_list = true, __name = "perigee.shape" }

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
---@param list (integer|string)[]
return function(list) return setmetatable(list, Shape) end
