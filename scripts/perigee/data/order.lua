-- SPDX-License-Identifier: Apache-2.0
-- Orders of an epoch: drawn from (seed, epoch) alone, so that no other use of random numbers changes them.

local native = require "perigee.native"

local order = {}

---What the core draws an order from: seed, epoch, buffer.
function order.keys(seed, epoch, buffer) return seed % 2 ^ 32, epoch * 0x9e3779b9 % 2 ^ 32, buffer end

---Positions 1 .. n in a random order (Fisher and Yates), as an array from 1 of 64-bit numbers. With a buffer, position
---i of the result comes from the first i + buffer elements, as if elements passed through a buffer of that size.
function order.shuffled(n, seed, epoch, buffer)
  return native.data.draw_order(n, order.keys(seed, epoch, buffer or n))
end

---The same step by step: a function of the step, from 0, and of how many elements are in the buffer, which answers the
---one that goes, from 0.
function order.steps(seed, epoch)
  local low, high = order.keys(seed, epoch)
  return function(i, reach) return native.data.draw_step(low, high, i, reach) end
end

return order
