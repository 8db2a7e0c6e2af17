-- SPDX-License-Identifier: Apache-2.0
-- Parts of tensors along axes: select, narrow, split. Of an axis whose size only a run of a graph tells, positions may
-- be counted from either end.

return function(pg, native)
  local methods, tensor, call = native.methods, native.tensor, native.call
  local size, axis_of, define = tensor.size, tensor.axis_of, tensor.define
  local is_size = native.size.is

  -- Defines a method and the function pg[name].
  local function both(name, f)
    define(name, f)
    pg[name] = methods[name]
  end

  -- Calls with numbers alone are read here, so that they compile: whether a value is a whole one; an axis, or none.
  local function is_whole(v) return type(v) == "number" and v == math.floor(v) and math.abs(v) < 2 ^ 53 end
  local function is_axis(v) return v == nil or is_whole(v) and v ~= 0 end

  -- Size of an axis where a number is needed: a symbolic one has none while a graph is built.
  local function known_size(where, t, axis, hint)
    local n = size(t, axis)
    if type(n) ~= "number" then
      native.raise("failed_precondition", where,
                   ("axis %d of %s has no size before the graph runs"):format(axis, tostring(t.shape)), hint)
    end
    return n
  end

  tensor.TO_END = 2 ^ 52

  local run_slice, slice, slice_struct = native.prepare("slice")
  local starts, stops, steps, drops = slice.starts.value, slice.stops.value, slice.steps.value, slice.drop.value
  tensor.writer = native.writer(slice_struct)

  ---Sets what becomes of an axis (from 1) in the next tensor.slice: from 0, end excluded.
  function tensor.slice_axis(axis, start, stop, step, drop)
    starts[axis - 1], steps[axis - 1], drops[axis - 1] = start, step, drop
    if stop == tensor.TO_END then stops[axis - 1] = 0x7fffffffffffffffLL else stops[axis - 1] = stop end
  end

  ---How many axes slice_axis has told of. Returns nothing.
  function tensor.slice_axes(count)
    slice.starts.count, slice.stops.count, slice.steps.count, slice.drop.count = count, count, count, count
  end

  ---Cuts by what slice_axis said of the first `count` axes.
  function tensor.slice(t, count)
    tensor.slice_axes(count)
    return run_slice(t)
  end

  ---Where position p (from 0) of an axis of n lies, in the numbers of slices: negative ones count from the end, and
  ---TO_END is behind the last. nil where only a run tells.
  function tensor.place(p, n)
    if not is_size(p) then return p end
    local from_end = p - n
    if from_end == 0 then return tensor.TO_END end
    return type(from_end) == "number" and from_end < 0 and from_end or nil
  end

  local function whole_axes(count)
    for i = 1, count do tensor.slice_axis(i, 0, tensor.TO_END, 1, 0) end
  end

  local function picked(t, axis, first, stop)
    return pg.device(t.device, function() -- where it would be as a view
      return call("index_select", { t, pg.arange(first, stop) }, { axis = axis })
    end)
  end

  ---The part first..stop (from 0, end excluded) of one axis, cut off at the axis' end: a view, or a copy where only a
  ---run tells where it lies.
  function tensor.part(t, axis, first, stop)
    if type(first) ~= "number" or type(stop) ~= "number" then
      local n = size(t, axis)
      local from, to = tensor.place(first, n), tensor.place(stop, n)
      if not from or not to then return picked(t, axis, first, stop) end
      first, stop = from, to
    end
    whole_axes(axis - 1)
    tensor.slice_axis(axis, first, stop, 1, 0)
    return tensor.slice(t, axis)
  end

  -- t with this size of an axis, which is an error in a run in which it has another.
  local function with_size(t, axis, n)
    if size(t, axis) == n then return t end
    local shape = t.shape
    shape[axis] = n
    return t:reshape(shape)
  end

  -- A part that has just this length, of an axis of n.
  local function exact(t, axis, n, first, stop)
    if type(n) == "number" and type(stop) == "number" then return tensor.part(t, axis, first, stop) end
    return with_size(tensor.part(t, axis, first, stop), axis, stop - first)
  end

  local read_select = native.signature("select", {
    { "axis", "axis", required = true }, { "index", "size", required = true } })
  ---One position of an axis, which disappears.
  ---@return perigee.Tensor
  both("select", function(t, ...)
    local axis, index = ...
    if not (select("#", ...) == 2 and is_whole(axis) and is_whole(index)) then
      local o = read_select(...)
      axis, index = o.axis, o.index
    end
    return tensor.select(t, axis_of("select", t, axis), index)
  end)

  ---t at one position (from 1) of an axis, checked.
  function tensor.select(t, axis, i)
    local n = size(t, axis)
    if is_size(i) then
      local from_end = tensor.place(i - 1, n)
      if not from_end then return tensor.part(t, axis, i - 1, i):squeeze(axis) end
      i = from_end
    end
    if i ~= math.floor(i) then
      native.raise("invalid_argument", "index", ("position %s is not whole"):format(tostring(i)))
    end
    if i == 0 or (type(n) == "number" and (i > n or i < -n)) then
      native.raise("invalid_argument", "index", i == 0 and "position 0, but positions count from 1" or
                   ("%s is out of range for axis %d of a tensor %s; expected 1..%s or -%s..-1"):format(
                     tostring(i), axis, tostring(t.shape), tostring(n), tostring(n)))
    end
    whole_axes(axis - 1)
    tensor.slice_axis(axis, i > 0 and i - 1 or i, (i == -1) and tensor.TO_END or (i > 0 and i or i + 1), 1, 1)
    return tensor.slice(t, axis)
  end

  local read_narrow = native.signature("narrow", {
    { "axis", "axis", required = true }, { "start", "size", required = true },
    { "length", "size", required = true } })
  ---`length` positions of an axis from position `start` (from 1). In a graph, a copy where start or length is a size
  ---that does not count from an end of the axis, such as another tensor's.
  ---@return perigee.Tensor
  both("narrow", function(t, ...)
    local axis, start, length = ...
    if not (select("#", ...) == 3 and is_whole(axis) and is_whole(start) and is_whole(length)) then
      local o = read_narrow(...)
      axis, start, length = o.axis, o.start, o.length
    end
    axis = axis_of("narrow", t, axis)
    local n = size(t, axis)
    local from_end = type(start) == "number" and start < 0
    local first = from_end and n + start or start - 1
    local last = first + length
    if start == 0 or type(length) == "number" and length < 0 or type(first) == "number" and first < 0 or
      type(last) == "number" and type(n) == "number" and last > n then
      native.raise("invalid_argument", "narrow", ("start %s and length %s do not fit axis %d of a tensor %s"):format(
                     tostring(start), tostring(length), axis, tostring(t.shape)))
    end
    return exact(t, axis, n, first, last)
  end)

  -- Parts of the given sizes along an axis.
  local function cut(t, axis, sizes)
    local parts, at, n = {}, 0, size(t, axis)
    for i, length in ipairs(sizes) do
      parts[i] = exact(t, axis, n, at, at + length)
      at = at + length
    end
    return parts
  end

  -- Parts of `each` positions of an axis of n, at least one.
  local function even(t, axis, n, each)
    local parts = {}
    whole_axes(axis - 1)
    for i = 1, math.max(1, math.ceil(n / each)) do
      tensor.slice_axis(axis, (i - 1) * each, math.min(i * each, n), 1, 0)
      parts[i] = tensor.slice(t, axis)
    end
    return parts
  end

  local read_split = native.signature("split", {
    { "size", "any", required = true, type = "integer|integer[]" }, { "axis", "axis", default = 1 } })
  ---A list of parts of `size` along an axis (the last may be smaller), or of the sizes in a list.
  ---@return perigee.Tensor[]
  both("split", function(t, ...)
    local first, second = ...
    if select("#", ...) == 1 and type(first) == "table" and #first > 1 and type(first[1]) ~= "table" then
      return t:split { first, axis = first.axis } -- a list of sizes alone
    end
    local plain = select("#", ...) < 3 and is_whole(first) and is_axis(second)
    local o = plain and { size = first, axis = second or 1 } or read_split(...)
    local axis = axis_of("split", t, o.axis)
    if type(o.size) == "table" then
      local sum, n = 0, size(t, axis)
      for i, s in ipairs(o.size) do
        if type(s) ~= "number" and not is_size(s) then
          native.raise("invalid_argument", "split", ("size %d must be a whole number, got %s"):format(
                         i, native.describe(s)))
        end
        sum = sum + s
      end
      if tensor.sizes_differ(sum, n) then
        native.raise("invalid_argument", "split", ("the sizes sum to %d, but axis %d of %s has %d"):format(
                       sum, axis, tostring(t.shape), n))
      end
      if is_size(n) or is_size(sum) then t = with_size(t, axis, sum) end
      return cut(t, axis, o.size)
    end
    if type(o.size) ~= "number" or o.size < 1 or o.size ~= math.floor(o.size) then
      native.raise("invalid_argument", "split", "size must be a whole number from 1, got " .. native.describe(o.size))
    end
    local n = known_size("split", t, axis, "a list of sizes, or chunk, tells how many parts there are")
    tensor.check_parts("split", n / o.size)
    return even(t, axis, n, o.size)
  end)

  local read_chunk = native.signature("chunk", {
    { "count", "integer", required = true }, { "axis", "axis", default = 1 } })
  ---A list of at most `count` parts of equal size along an axis; the last may be smaller. In a graph, of an axis whose
  ---size only a run tells, just `count` of one size: the run fails where that cannot be.
  ---@return perigee.Tensor[]
  both("chunk", function(t, ...)
    local count, second = ...
    local plain = select("#", ...) < 3 and is_whole(count) and is_axis(second)
    local o = plain and { count = count, axis = second or 1 } or read_chunk(...)
    if o.count < 1 then native.raise("invalid_argument", "chunk", "count must be at least 1") end
    local axis = axis_of("chunk", t, o.axis)
    local n = size(t, axis)
    tensor.check_parts("chunk", n == 0 and o.count or type(n) == "number" and math.min(o.count, n) or o.count)
    if is_size(n) then
      local parts, list = t:unflatten(axis, { o.count, n / o.count }), {}
      for i = 1, o.count do list[i] = tensor.select(parts, axis, i) end
      return list
    end
    if n == 0 then -- as many empty ones as were asked for, like PyTorch
      local sizes = {}
      for i = 1, o.count do sizes[i] = 0 end
      return cut(t, axis, sizes)
    end
    return even(t, axis, n, math.ceil(n / o.count))
  end)

  local read_unbind = native.signature("unbind", { { "axis", "axis", default = 1 } })
  ---A list of the tensor at each position of an axis.
  ---@return perigee.Tensor[]
  both("unbind", function(t, ...)
    local given = ...
    local plain = select("#", ...) < 2 and is_axis(given)
    local axis = axis_of("unbind", t, plain and (given or 1) or read_unbind(...).axis)
    local list, n = {}, known_size("unbind", t, axis)
    tensor.check_parts("unbind", n)
    whole_axes(axis - 1)
    for i = 1, n do
      tensor.slice_axis(axis, i - 1, i, 1, 1)
      list[i] = tensor.slice(t, axis)
    end
    return list
  end)

  ---for i, row in t:rows() do: the positions of the first axis.
  ---@return fun(): integer?, perigee.Tensor
  define("rows", function(t)
    local n, i = t:dim() == 0 and #t or known_size("rows", t, 1), 0
    return function()
      i = i + 1
      if i <= n then return i, tensor.select(t, 1, i) end
    end
  end)
end
