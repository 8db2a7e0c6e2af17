-- SPDX-License-Identifier: Apache-2.0
-- divisor_override of average pooling. Operators take 0 for none given; a script that says 0 means to divide by it.

local native = require "perigee.native"

---Raises where the arguments give 0, by name or at `place`.
---@param where string
---@param place integer of divisor_override among the arguments
return function(where, place, ...)
  local n = select("#", ...)
  local last = n > 0 and select(n, ...) or nil
  local given = n >= place and select(place, ...) or nil
  if native.is_plain(last) then given = last.divisor_override or last[place] or given end
  if given == 0 then
    native.raise("invalid_argument", where, "divisor_override is 0", "left out, sums are divided by the window's size")
  end
end
