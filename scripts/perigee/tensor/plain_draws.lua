-- SPDX-License-Identifier: Apache-2.0
-- pg.rand(2, 3), pg.randn{8}, pg.randperm(5): calls without options, of numbers alone, in code that compiles. All
-- others, and every one that is wrong, go to creation.lua.

local plain = require "perigee.tensor.plain_sizes"

return function(pg, native)
  pg.rand = plain.of_sizes("rand", "uniform")
  pg.randn = plain.of_sizes("randn", "normal")

  local any_permutation = plain.any "randperm"
  local draw, attrs = plain.maker "randperm"
  attrs.dtype[0] = native.dtypes.by_name.int64.code
  function pg.randperm(...)
    local n = ...
    if select("#", ...) ~= 1 or not plain.is_size(n) then return any_permutation(...) end
    attrs.n[0] = n
    return draw()
  end
end
