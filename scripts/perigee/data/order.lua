-- SPDX-License-Identifier: Apache-2.0
-- Orders of an epoch: drawn from (seed, epoch) alone, so that no other use of random numbers changes them.

local bit = require "bit"

local order = {}

-- splitmix32-like mixing of a 32-bit counter: a stream of well spread numbers from any seed.
local function mix(x)
  x = bit.bxor(x, bit.rshift(x, 16))
  x = bit.tobit((x % 2 ^ 32) * 0x21f0 % 2 ^ 32 * 2 ^ 16 + (x % 2 ^ 32) * 0xaaad)
  x = bit.bxor(x, bit.rshift(x, 15))
  x = bit.tobit((x % 2 ^ 32) * 0x735a % 2 ^ 32 * 2 ^ 16 + (x % 2 ^ 32) * 0x2d97)
  return bit.bxor(x, bit.rshift(x, 15))
end

-- Numbers in [0, n), from (seed, epoch).
local function generator(seed, epoch)
  local state = bit.bxor(mix(bit.tobit(seed)), mix(bit.tobit(epoch * 0x9e3779b9 % 2 ^ 32)))
  return function(n)
    state = bit.tobit(state + 0x9e3779b9)
    return math.floor((mix(state) % 2 ^ 32) / 2 ^ 32 * n)
  end
end

---Positions 1 .. n in a random order (Fisher and Yates). With a buffer, position i of the result comes from the first
---i + buffer elements, as if elements passed through a buffer of that size.
function order.shuffled(n, seed, epoch, buffer)
  local draw, list = generator(seed, epoch), {}
  for i = 1, n do list[i] = i end
  for i = 1, n - 1 do
    local reach = math.min(n - i + 1, buffer or n)
    local k = i + draw(reach)
    list[i], list[k] = list[k], list[i]
  end
  return list
end

return order
