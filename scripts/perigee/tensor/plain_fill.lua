-- SPDX-License-Identifier: Apache-2.0
-- pg.zeros(2, 3), pg.full({2, 3}, 7), pg.zeros_like(x): calls without options, of numbers alone, in code that compiles.
-- All others, and every one that is wrong, go to creation.lua.

local plain = require "perigee.tensor.plain_sizes"

return function(pg, native)
  local dtypes, set_list = native.dtypes, plain.set_list

  pg.zeros = plain.of_sizes("zeros", "fill", 0)
  pg.ones = plain.of_sizes("ones", "fill", 1)
  pg.empty = plain.of_sizes("empty", "fill", 0)

  local make_full, full = plain.maker("fill", "full")
  local any_full = plain.any "full"
  function pg.full(...)
    local shape, value = ...
    if select("#", ...) ~= 2 or type(value) ~= "number" or not set_list(full.shape, shape) then return any_full(...) end
    local dtype = dtypes.by_name[native.default_dtype()]
    full.value[0], full.dtype[0] = value, dtype.code
    return make_full()
  end

  local cpu
  local function processor()
    cpu = cpu or native.find_device("cpu", "zeros_like")
    return cpu
  end

  -- Numbers in the shape of x, in its dtype and where it is: not for values of graphs, whose sizes have no numbers, nor
  -- in a scope of another device.
  local function like(name, value)
    local make, attrs = plain.maker("fill", name)
    local any, needs = plain.any(name), value == nil and 2 or 1
    pg[name] = function(...)
      local x, number = ...
      if select("#", ...) ~= needs or not native.is_tensor(x) or x.ptr == nil or
        needs == 2 and type(number) ~= "number" or not native.tensor.set_shape_of(x, attrs.shape, processor()) then
        return any(...)
      end
      local dtype = native.tensor.dtype(x)
      if needs == 2 then dtypes.check_number(name, number, dtype) end
      attrs.value[0], attrs.dtype[0] = value or number, dtype.code
      return make()
    end
    native.methods[name] = pg[name]
  end
  like("zeros_like", 0)
  like("ones_like", 1)
  like("empty_like", 0)
  like("full_like")
end
