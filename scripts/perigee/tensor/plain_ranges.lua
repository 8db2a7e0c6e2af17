-- SPDX-License-Identifier: Apache-2.0
-- pg.arange(5), pg.linspace(0, 1, 5), pg.eye(3): calls without options, of numbers alone, in code that compiles. All
-- others, and every one that is wrong, go to creation.lua.

local plain = require "perigee.tensor.plain_sizes"

return function(pg, native)
  local dtypes, ceil, max = native.dtypes, math.ceil, math.max
  local is_whole, is_size, default_code = plain.is_whole, plain.is_size, plain.default_code

  local make_range, range = plain.maker("arange", "arange")
  range.count.count = 1
  local any_arange = plain.any "arange"
  function pg.arange(...)
    local n, start, stop, step = select("#", ...), ...
    if n == 1 then start, stop, step = 0, start, 1 elseif n == 2 then step = 1 end
    if n < 1 or n > 3 or not (is_whole(start) and is_whole(stop) and is_whole(step)) or step == 0 then
      return any_arange(...)
    end
    range.start[0], range.stop[0], range.step[0] = start, stop, step
    range.count.value[0], range.dtype[0] = max(0, ceil((stop - start) / step)), dtypes.by_name.int64.code
    return make_range()
  end

  local make_line, line = plain.maker("spaced", "linspace")
  line.count.count = 1
  local any_linspace = plain.any "linspace"
  function pg.linspace(...)
    local first, last, count = ...
    if select("#", ...) ~= 3 or type(first) ~= "number" or type(last) ~= "number" or not is_size(count) then
      return any_linspace(...)
    end
    line.first[0], line.last[0], line.count.value[0], line.dtype[0] = first, last, count, default_code()
    return make_line()
  end

  local any_eye, run_cast, cast = plain.any "eye", plain.maker("cast", "eye")
  function pg.eye(...)
    local n = ...
    if select("#", ...) ~= 1 or not is_size(n) then return any_eye(...) end
    local places = pg.arange(n)
    cast.dtype[0] = default_code()
    return run_cast(places:unsqueeze(2):eq(places))
  end
end
