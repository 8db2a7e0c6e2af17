-- SPDX-License-Identifier: Apache-2.0
-- Walks tables for code that is compiled. LuaJIT up to April 2022, Debian 12's among them, compiles next() to code that
-- now and then loses half of an address (where registers are few; its issue 829), so next() stands in no function on
-- the way of a call. What walks a table here is interpreted; compiled code reaches it through a function of C, for
-- which a trace is left and gone on with behind it: table.sort, which of two elements compares once.

local M = {}

local sort = table.sort
local two = { 1, 2 }
local subject, limit, into, count, last -- of the walk

local function walk()
  local n, most, keys = 0, limit, into
  for key in pairs(subject) do
    n = n + 1
    if keys then keys[n] = key end
    last = key
    if n >= most then break end
  end
  count = n
  return false
end
jit.off(walk)

-- How many entries there are, up to `most`; their keys go into `keys` where it is given.
local function walk_over(t, most, keys)
  subject, limit, into, last = t, most, keys, nil
  sort(two, walk)
  subject, into = nil, nil
  return count
end

---How many entries a table has; those beyond `most` are not counted.
---@param t table
---@param most? number
---@return integer
function M.count(t, most) return walk_over(t, most or math.huge) end

---The first key of a table in the order of pairs; nil: it is empty.
---@param t table
function M.first(t)
  walk_over(t, 1)
  return last
end

---The keys of a table, in the order of pairs, and how many they are.
---@param t table
---@return any[] keys, integer count
function M.keys(t)
  local keys = {}
  return keys, walk_over(t, math.huge, keys)
end

return M
