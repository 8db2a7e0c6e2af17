-- SPDX-License-Identifier: Apache-2.0
-- What the quick ways of calls ask of a list before they read it by position.

---Whether a table has just n entries. Compiles, where pairs would not; the first few without a loop, which would end
---the trace of the loop that it is called in.
---@param list table
---@param n integer
---@return boolean
return function(list, n)
  local key = next(list)
  if key == nil then return n == 0 end
  key = next(list, key)
  if key == nil then return n == 1 end
  key = next(list, key)
  if key == nil then return n == 2 end
  key = next(list, key)
  if key == nil then return n == 3 end
  key = next(list, key)
  if key == nil then return n == 4 end
  local count = 4
  while key ~= nil do
    count = count + 1
    if count > n then return false end
    key = next(list, key)
  end
  return count == n
end
