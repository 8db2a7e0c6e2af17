-- SPDX-License-Identifier: Apache-2.0
-- Values and indices that one call gave and that then stand at the end of a list of tensors to be joined: of
-- `pg.stack{x:max{axis=2}}` Lua makes a list of both results, which promotion would join without a word.
--
-- Joining floating tensors with integers is nobody's mistake as such. What is: the last two tensors of a list are the
-- two results of the call before, in order. Whoever writes such a list evaluates that call last, so only the latest
-- pair is remembered, weakly, by calls that are not among the cheap ones; and looked for only where tensors are joined.
-- Functions of two tensors (`pg.add(x:max{axis=2})`) look for nothing, as each of their calls would pay for it.

local errors = require "perigee.native.errors"

local M = {}

local pair = setmetatable({}, { __mode = "v" })
local maker
local alone = { max = "amax", min = "amin" }

---Remembers the two results of a call, and answers them. `name` is what made them.
function M.note(name, values, indices)
  maker, pair[1], pair[2] = name, values, indices
  return values, indices
end

---Raises where tensors that are to be joined end in values and indices of different dtypes that the last call gave.
---@param where string
---@param list perigee.Tensor[]
---@param n integer
function M.check(where, list, n)
  local indices = pair[2]
  if n < 2 or indices == nil or not rawequal(list[n], indices) or not rawequal(list[n - 1], pair[1]) then return end
  local of, to = list[n - 1].dtype, indices.dtype
  if to ~= "int64" or of == to then return end
  errors.raise("invalid_argument", where,
               ("tensors %d and %d have different dtypes %s and %s: they are the two results of one %s"):format(
                 n - 1, n, of, to, maker),
               ("a call at the end of a list gives all its results: put it in parentheses, (x:%s{...})%s"):format(
                 maker, alone[maker] and (", or use %s"):format(alone[maker]) or ""))
end

return M
