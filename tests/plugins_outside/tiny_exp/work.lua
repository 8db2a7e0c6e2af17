-- SPDX-License-Identifier: Apache-2.0
-- The device comes from one plugin, the kernel from another.
local pg = require "perigee"

local x = pg.tensor { { 0, 1 }, { -1, 2 } }
local y = x:to("tiny"):exp()
assert(y.device == "tiny:0")
assert(pg.allclose(y:cpu(), x:exp()))
-- Asked of a slice, the address has an offset.
assert(pg.allclose(x:to("tiny")[2]:exp():cpu(), x[2]:exp()))
print("exp on tiny:0, by tiny_exp: " .. tostring(y:cpu()):gsub("%s+", " "))
