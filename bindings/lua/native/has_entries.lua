-- SPDX-License-Identifier: Apache-2.0
-- What the quick ways of calls ask of a list before they read it by position.

---Whether a table has just n entries. Compiles, where pairs would not.
---@param list table
---@param n integer
---@return boolean
return function(list, n)
  local count, key = 0, next(list)
  while key ~= nil do
    count = count + 1
    if count > n then return false end
    key = next(list, key)
  end
  return count == n
end
