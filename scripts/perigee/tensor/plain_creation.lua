-- SPDX-License-Identifier: Apache-2.0
-- pg.zeros(2, 3), pg.arange(5), pg.zeros_like(x): calls without options, of numbers alone, in code that compiles. All
-- others, and every one that is wrong, go to creation.lua.

return function(pg, native)
  local dtypes, floor, ceil, max, MOST_AXES = native.dtypes, math.floor, math.ceil, math.max, 8
  local has_entries = native.has_entries
  local FAR = 2 ^ 53
  local structs = {} -- what pointers into attributes need to live

  local function maker(operator, where)
    local make, attrs, struct = native.prepare(operator, nil, where)
    structs[#structs + 1] = struct
    return make, attrs
  end

  local function default_code() return dtypes.by_name[native.default_dtype()].code end
  local function is_whole(v) return type(v) == "number" and v == floor(v) and v > -FAR and v < FAR end
  local function is_size(v) return is_whole(v) and v >= 0 end

  -- Writes a shape that is a plain list; false where it is none.
  local function set_list(target, list)
    if type(list) ~= "table" or getmetatable(list) ~= nil then return false end
    local n = #list
    if n == 0 or n > MOST_AXES or not has_entries(list, n) then return false end
    for i = 1, n do
      if not is_size(list[i]) then return false end
      target.value[i - 1] = list[i]
    end
    target.count = n
    return true
  end

  -- Writes a shape that is a list, or one to three sizes.
  local function set_shape(target, n, a, b, c)
    if n == 1 and type(a) == "table" then return set_list(target, a) end
    if n < 1 or n > 3 or not is_size(a) or n > 1 and not is_size(b) or n > 2 and not is_size(c) then return false end
    target.count, target.value[0] = n, a
    if n > 1 then target.value[1] = b end
    if n > 2 then target.value[2] = c end
    return true
  end

  local function of_sizes(name, operator, value)
    local make, attrs = maker(operator, name)
    local any, shape, dtype = pg[name], attrs.shape, attrs.dtype
    if value then attrs.value[0] = value end
    pg[name] = function(...)
      if not set_shape(shape, select("#", ...), ...) then return any(...) end
      dtype[0] = default_code()
      return make()
    end
  end
  of_sizes("zeros", "fill", 0)
  of_sizes("ones", "fill", 1)
  of_sizes("empty", "fill", 0)
  of_sizes("rand", "uniform")
  of_sizes("randn", "normal")

  local make_full, full = maker("fill", "full")
  local any_full = pg.full
  function pg.full(...)
    local shape, value = ...
    if select("#", ...) ~= 2 or type(value) ~= "number" or not set_list(full.shape, shape) then return any_full(...) end
    local dtype = dtypes.by_name[native.default_dtype()]
    full.value[0], full.dtype[0] = value, dtype.code
    return make_full()
  end

  local make_range, range = maker("arange", "arange")
  range.count.count = 1
  local any_arange = pg.arange
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

  local make_line, line = maker("spaced", "linspace")
  line.count.count = 1
  local any_linspace = pg.linspace
  function pg.linspace(...)
    local first, last, count = ...
    if select("#", ...) ~= 3 or type(first) ~= "number" or type(last) ~= "number" or not is_size(count) then
      return any_linspace(...)
    end
    line.first[0], line.last[0], line.count.value[0], line.dtype[0] = first, last, count, default_code()
    return make_line()
  end

  local cpu
  local function processor()
    cpu = cpu or native.find_device("cpu", "zeros_like")
    return cpu
  end

  -- Numbers in the shape of x, in its dtype and where it is: not for values of graphs, whose sizes have no numbers, nor
  -- in a scope of another device.
  local function like(name, value)
    local make, attrs = maker("fill", name)
    local any, needs = pg[name], value == nil and 2 or 1
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

  local any_eye, run_cast, cast = pg.eye, maker("cast", "eye")
  function pg.eye(...)
    local n = ...
    if select("#", ...) ~= 1 or not is_size(n) then return any_eye(...) end
    local places = pg.arange(n)
    cast.dtype[0] = default_code()
    return run_cast(places:unsqueeze(2):eq(places))
  end
end
