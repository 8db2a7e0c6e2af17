-- SPDX-License-Identifier: Apache-2.0
-- Numbers drawn by a seed, for tests that draw what goes wrong: a generator of its own, since scripts' seeds are
-- others'.

local draws = {}

---@param seed integer
---@return fun(low: integer, high?: integer): integer of low..high, or of 1..low
function draws.generator(seed)
  local state = seed * 2654435761 % 2 ^ 31
  return function(low, high)
    if not high then low, high = 1, low end
    for _ = 1, 3 do state = (state * 16807 + 11) % 2147483647 end
    return low + math.floor(state / 2147483647 * (high - low + 1))
  end
end

return draws
