-- SPDX-License-Identifier: Apache-2.0
-- pg.rand(2, 3), pg.randn{8}, pg.randperm(5): calls without options, of numbers alone, in code that compiles. All
-- others, and every one that is wrong, go to creation.lua.

local plain = require "perigee.tensor.plain_sizes"

return function(pg, native)
  -- Operators are prepared at the first draw: few scripts need all.
  local uniform, normal
  function pg.rand(...)
    uniform = uniform or plain.of_sizes("rand", "uniform")
    return uniform(...)
  end
  function pg.randn(...)
    normal = normal or plain.of_sizes("randn", "normal")
    return normal(...)
  end

  local any_permutation = plain.any "randperm"
  local draw, count
  function pg.randperm(...)
    local n = ...
    if select("#", ...) ~= 1 or not plain.is_size(n) then return any_permutation(...) end
    if not draw then
      local make, attrs = plain.maker "randperm"
      attrs.dtype[0] = native.dtypes.by_name.int64.code
      draw, count = make, attrs.n
    end
    count[0] = n
    return draw()
  end
end
