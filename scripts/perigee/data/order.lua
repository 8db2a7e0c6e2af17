-- SPDX-License-Identifier: Apache-2.0
-- Orders of an epoch: drawn from (seed, epoch) alone, so that no other use of random numbers changes them.

local native = require "perigee.native"

local order = {}

---Positions 1 .. n in a random order (Fisher and Yates), as an array from 1 of 64-bit numbers. With a buffer, position
---i of the result comes from the first i + buffer elements, as if elements passed through a buffer of that size.
function order.shuffled(n, seed, epoch, buffer)
  return native.data.draw_order(n, seed % 2 ^ 32, epoch * 0x9e3779b9 % 2 ^ 32, buffer or n)
end

return order
