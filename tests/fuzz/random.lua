-- SPDX-License-Identifier: Apache-2.0
-- Random choices that are the same on every machine, given a seed and the number of a call: a call is drawn without
-- those before it.

local bit = require "bit"

local R = {}
local state = 1

-- a * b modulo 2^32, of numbers that a double cannot multiply exactly.
local function multiply(a, b)
  local low, high = a % 65536, math.floor(a / 65536) % 65536
  return (low * b + (high * b) % 65536 * 65536) % 2 ^ 32
end

-- Marsaglia's xorshift of 32 bits.
local function step()
  local x = state
  x = bit.bxor(x, bit.lshift(x, 13))
  x = bit.bxor(x, bit.rshift(x, 17))
  x = bit.bxor(x, bit.lshift(x, 5))
  state = x
  return x % 2 ^ 32
end

---Begins the choices of a call.
function R.start(seed, number)
  local mixed = multiply(seed % 2 ^ 32, 2654435761) + multiply(number % 2 ^ 32, 2246822519) + 1
  state = bit.tobit(bit.bxor(mixed % 2 ^ 32, bit.rshift(bit.tobit(mixed % 2 ^ 32), 15)))
  if state == 0 then state = 1 end
  for _ = 1, 6 do step() end
end

---A whole number from low to high.
function R.int(low, high) return low + step() % (high - low + 1) end

---In [0, 1).
function R.real() return step() / 2 ^ 32 end

---True in so many of 100 cases.
function R.percent(n) return step() % 100 < n end

function R.pick(list) return list[step() % #list + 1] end

---One of a list of { weight, value }.
function R.weighted(list)
  local total = 0
  for _, entry in ipairs(list) do total = total + entry[1] end
  local at = step() % total
  for _, entry in ipairs(list) do
    at = at - entry[1]
    if at < 0 then return entry[2] end
  end
end

return R
