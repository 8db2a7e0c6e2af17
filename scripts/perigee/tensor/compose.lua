-- SPDX-License-Identifier: Apache-2.0
-- Functions that are a few operators each: joining, repeating, reordering and masking of positions, small products.

return function(pg, native)
  local tensor = native.tensor
  local rank, size, axis_of = tensor.rank, tensor.size, tensor.axis_of

  -- Defines pg[name] and the method, whose first argument is the tensor x.
  local function both(name, params, f)
    table.insert(params, 1, { "x", "tensor", required = true })
    local read = native.signature(name, params)
    local function call(...) return f(read(...)) end
    pg[name], native.methods[name] = call, call
  end

  local function positions(x, first, stop, step) return pg.arange(first, stop, step or 1, { device = x.device }) end

  -- 0 to n - 1 for an axis of n; and n.
  local function places(x, axis) return positions(x, 0, size(x, axis)), size(x, axis) end

  -- ---- products ----

  ---Matrix products of [b, n, k] and [b, k, m].
  ---@return perigee.Tensor
  both("bmm", { { "y", "tensor", required = true } }, function(o)
    if rank(o.x) ~= 3 or rank(o.y) ~= 3 or tensor.sizes_differ(size(o.x, 1), size(o.y, 1)) then
      native.raise("invalid_argument", "bmm", ("x is %s and y %s; expected [b, n, k] and [b, k, m]"):format(
                     tostring(o.x.shape), tostring(o.y.shape)), "matmul broadcasts")
    end
    return o.x:matmul(o.y)
  end)

  -- Products of matrices and vectors that take no other ranks: matmul under PyTorch's names.
  local function matrix_product(name, a, b)
    both(name, { { "y", "tensor", required = true } }, function(o)
      if rank(o.x) ~= a or rank(o.y) ~= b then
        native.raise("invalid_argument", name, ("x is %s and y %s; expected %d and %d axes"):format(
                       tostring(o.x.shape), tostring(o.y.shape), a, b), "matmul takes any")
      end
      return o.x:matmul(o.y)
    end)
  end
  ---Product of two matrices, [n, k] and [k, m].
  ---@return perigee.Tensor
  matrix_product("mm", 2, 2)
  ---Product of a matrix [n, k] and a vector [k].
  ---@return perigee.Tensor
  matrix_product("mv", 2, 1)
  ---Sum of the products of two vectors' elements, 0-dim.
  ---@return perigee.Tensor
  matrix_product("dot", 1, 1)

  ---Distances (pg.cdist) of all pairs of rows of a matrix [n, d], those of the first row first: [n (n - 1) / 2].
  ---@return perigee.Tensor
  both("pdist", { { "p", "number", default = 2, doc = "order of the norm, from 0" } }, function(o)
    if rank(o.x) ~= 2 then
      native.raise("invalid_argument", "pdist", ("x is %s; expected 2 axes"):format(tostring(o.x.shape)))
    end
    local n = size(o.x, 1)
    local pairs_of = pg.ones({ n, n }, { dtype = "bool", device = o.x.device }):triu(1)
    local direct = "donot_use_mm_for_euclid_dist" -- as PyTorch's: rows that are close keep their digits
    return pg.cdist(o.x, o.x, { p = o.p, compute_mode = direct })[pairs_of]
  end)

  -- beta * x + alpha * product. Where autocast made the product of another dtype than its operands, x follows.
  local function plus(o, product)
    local x = o.x
    if product.dtype ~= o.a.dtype and product.dtype ~= o.b.dtype then x = x:to(product.dtype) end
    if o.alpha ~= 1 then product = product * o.alpha end
    if o.beta == 0 then return product + pg.zeros_like(x) end -- NaN in x stays out
    return product + (o.beta == 1 and x or x * o.beta)
  end

  ---beta * x + alpha * (a times b), of batches of matrices a [b, n, k] and b [b, k, m].
  ---@return perigee.Tensor
  both("baddbmm", { { "a", "tensor", required = true }, { "b", "tensor", required = true },
                    { "beta", "number", default = 1 }, { "alpha", "number", default = 1 } }, function(o)
    return plus(o, pg.bmm(o.a, o.b))
  end)

  ---beta * x + alpha * (a times b), of matrices a [n, k] and b [k, m].
  ---@return perigee.Tensor
  both("addmm", { { "a", "tensor", required = true }, { "b", "tensor", required = true },
                  { "beta", "number", default = 1 }, { "alpha", "number", default = 1 } }, function(o)
    if rank(o.a) ~= 2 or rank(o.b) ~= 2 then
      native.raise("invalid_argument", "addmm", ("a is %s and b %s; expected two matrices"):format(
                     tostring(o.a.shape), tostring(o.b.shape)))
    end
    return plus(o, o.a:matmul(o.b))
  end)

  ---Products of every element of x [n] with every one of y [m]: [n, m].
  ---@return perigee.Tensor
  both("outer", { { "y", "tensor", required = true } }, function(o)
    if rank(o.x) ~= 1 or rank(o.y) ~= 1 then
      native.raise("invalid_argument", "outer", ("x is %s and y %s; expected one axis each"):format(
                     tostring(o.x.shape), tostring(o.y.shape)))
    end
    return o.x:unsqueeze(2) * o.y
  end)

  ---Sums of products over the last axes: x [..., n] and y [..., n] to [axes of x but the last, those of y but the
  ---last]; a tensor of no axes multiplies.
  ---@return perigee.Tensor
  both("inner", { { "y", "tensor", required = true } }, function(o)
    if rank(o.x) == 0 or rank(o.y) == 0 then return o.x * o.y end
    if tensor.sizes_differ(size(o.x, rank(o.x)), size(o.y, rank(o.y))) then
      native.raise("invalid_argument", "inner", ("x is %s and y %s; expected the same last axis"):format(
                     tostring(o.x.shape), tostring(o.y.shape)))
    end
    return pg.tensordot(o.x, o.y, { { -1 }, { -1 } })
  end)

  ---softmax(-x): exp(-x) / sum(exp(-x)) along an axis.
  ---@return perigee.Tensor
  both("softmin", { { "axis", "axis", default = -1 } }, function(o) return (-o.x):softmax(o.axis) end)

  -- ---- repeating ----

  -- Every block of x along an axis `count` times: the axis itself (after = 0) or each of its positions (after = 1).
  local function repeated(x, axis, count, after)
    local shape, spread = x.shape, x:unsqueeze(axis + after)
    local wide = spread.shape
    wide[axis + after] = count
    shape[axis] = shape[axis] * count
    return spread:expand(wide):reshape(shape)
  end

  local function check_count(where, n)
    if not native.size.is(n) and (type(n) ~= "number" or n < 0 or n ~= math.floor(n)) then
      native.raise("invalid_argument", where, "counts must be whole numbers from 0, got " .. native.describe(n))
    end
  end

  local MAX_RANK = 8

  local run_reshape, reshaped, reshape_struct -- made when they are first asked for
  local run_expand, expanded, expand_struct

  local function fill_shape(into, list)
    local n = #list
    for i = 1, n do into.value[i - 1] = list[i] end
    into.count = n
  end
  -- x:reshape(apart):expand(wide):reshape(shape), of lists of numbers.
  local function spread_out(x, apart, wide, shape)
    if not run_reshape then
      run_reshape, reshaped, reshape_struct = native.prepare "reshape"
      run_expand, expanded, expand_struct = native.prepare "expand"
    end
    fill_shape(reshaped.shape, apart)
    local y = reshape_struct and run_reshape(x)
    fill_shape(expanded.shape, wide)
    y = expand_struct and run_expand(y)
    fill_shape(reshaped.shape, shape)
    return run_reshape(y)
  end

  -- Every position of an axis `count` times in a row, in one copy; nil as below.
  local function interleaved(x, axis, count)
    local apart, wide, shape, n = {}, {}, {}, rank(x)
    if n >= MAX_RANK then return nil end
    for i = 1, n do
      local length = size(x, i)
      if type(length) ~= "number" then return nil end
      apart[#apart + 1], wide[#wide + 1], shape[i] = length, length, length
      if i == axis then apart[#apart + 1], wide[#wide + 1], shape[i] = 1, count, length * count end
    end
    return spread_out(x, apart, wide, shape)
  end

  -- All axes repeated in one copy: an axis of `count` in front of each. Nil where that has too many axes, or where a
  -- size is one that only a run tells.
  local function tiled(x, counts)
    local n, first = rank(x), rank(x) - #counts
    local apart, wide, shape = {}, {}, {}
    for i = 1, n do
      local length, count = size(x, i), i > first and counts[i - first] or 1
      if type(length) ~= "number" or type(count) ~= "number" then return nil end
      if count ~= 1 then apart[#apart + 1], wide[#wide + 1] = 1, count end
      apart[#apart + 1], wide[#wide + 1], shape[i] = length, length, length * count
    end
    if #apart == n then return x:clone() end
    return #apart <= MAX_RANK and spread_out(x, apart, wide, shape) or nil
  end

  local function tile(x, counts)
    for i = 1, #counts do check_count("tile", counts[i]) end
    for _ = rank(x) + 1, #counts do x = x:unsqueeze(1) end
    local result = tiled(x, counts)
    if result then return result end
    result = x
    for i = 1, #counts do
      if counts[i] ~= 1 then result = repeated(result, rank(x) - #counts + i, counts[i], 0) end
    end
    return result
  end
  local read_tile = native.signature("tile", {
    { "x", "tensor", required = true }, { "counts", "list", required = true } })
  ---x again and again: `x:tile(2, 3)` is twice along axis 1 and three times along axis 2. Fewer counts than axes are
  ---for the last axes, more make new axes in front.
  ---@param x perigee.Tensor
  ---@param counts integer|integer[]
  ---@return perigee.Tensor
  function pg.tile(...)
    local x, a, b = ...
    if native.is_tensor(x) and type(a) == "number" and select("#", ...) <= 3 and (b == nil or type(b) == "number") then
      return tile(x, { a, b })
    end
    local o = read_tile(...)
    return tile(o.x, o.counts)
  end
  native.methods.tile = pg.tile

  -- Which position stands at each of the repeated ones, when position i comes counts[i] times.
  local function repeated_places(x, axis, counts)
    local n = size(x, axis)
    if rank(counts) > 1 or (rank(counts) == 1 and tensor.sizes_differ(size(counts, 1), n) and size(counts, 1) ~= 1) then
      native.raise("invalid_argument", "repeat_interleave",
                   ("counts are %s; expected one for each of the %s positions"):format(
                     tostring(counts.shape), tostring(n)))
    end
    if not native.dtypes.by_name[counts.dtype].integer then
      native.raise("invalid_argument", "repeat_interleave", "counts must be integers, got " .. counts.dtype)
    end
    native.host.need_contents("repeat_interleave", counts, "the length of the result depends on the counts; " ..
                                "a number repeats every position as often")
    if rank(counts) == 1 and size(counts, 1) ~= 1 then n = size(counts, 1) end
    if type(n) ~= "number" then
      native.raise("failed_precondition", "repeat_interleave",
                   ("axis %d of %s has no size before the graph runs"):format(axis, tostring(x.shape)),
                   "a number repeats every position as often")
    end
    local ends = counts:to("int64"):expand({ n }):cumsum(1)
    local total = n > 0 and ends[-1]:item() or 0
    if n > 0 and counts:amin():item() < 0 then
      native.raise("invalid_argument", "repeat_interleave", ("%d is negative"):format(counts:amin():item()))
    end
    return native.call("searchsorted", { ends, positions(x, 0, total) }, { right = true })
  end

  local function repeat_interleave(x, count, axis)
    axis = axis_of("repeat_interleave", x, axis)
    if native.is_tensor(count) then return x:index_select(repeated_places(x, axis, count), axis) end
    check_count("repeat_interleave", count)
    return type(count) == "number" and interleaved(x, axis, count) or repeated(x, axis, count, 1)
  end
  local read_repeat = native.signature("repeat_interleave", {
    { "x", "tensor", required = true }, { "count", "any", required = true }, { "axis", "axis" } })
  ---Every position of an axis `count` times in a row, or each as often as an integer tensor says; without an axis, of
  ---the flat tensor.
  ---@param x perigee.Tensor
  ---@param count integer|perigee.Tensor
  ---@param axis? integer
  ---@return perigee.Tensor
  function pg.repeat_interleave(...)
    local x, count, axis = ...
    if select("#", ...) == 3 and native.is_tensor(x) and type(count) == "number" and type(axis) == "number" then
      return repeat_interleave(x, count, axis)
    end
    local o = read_repeat(...)
    if not o.axis then return repeat_interleave(o.x:flatten(), o.count, 1) end
    return repeat_interleave(o.x, o.count, o.axis)
  end
  native.methods.repeat_interleave = pg.repeat_interleave

  -- ---- reordering ----

  local run_roll, rolled, roll_struct = native.prepare("roll_axes", nil, "roll")
  local moves = rolled.shifts

  -- What a shift of an axis of n comes to: between -n and n where n is known.
  local function shift_of(s, n)
    if type(s) ~= "number" or s ~= math.floor(s) or math.abs(s) >= 2 ^ 53 then
      native.raise("invalid_argument", "roll", "shifts must be whole numbers, got " .. native.describe(s))
    end
    return type(n) == "number" and n > 0 and s % n or s
  end

  local read_roll = native.signature("roll", {
    { "x", "tensor", required = true }, { "shifts", "any", required = true, type = "integer|integer[]" },
    { "axes", "axes", alias = "axis" } })
  local function roll(x, shifts, axes)
    if type(shifts) ~= "table" then shifts = { shifts } end
    if #shifts ~= (axes and #axes or 1) then
      native.raise("invalid_argument", "roll", ("%d shifts and %d axes; expected as many"):format(
                     #shifts, axes and #axes or 0))
    end
    local flat = axes and x or x:reshape(-1)
    local count = rank(flat)
    for i = 0, count - 1 do moves.value[i] = 0 end
    moves.count = count
    for i, s in ipairs(shifts) do
      local axis = axes and axis_of("roll", flat, axes[i]) or 1
      local n = size(flat, axis)
      moves.value[axis - 1] = shift_of(tonumber(moves.value[axis - 1]) + shift_of(s, n), n)
    end
    local y = roll_struct and run_roll(flat)
    return axes and y or y:reshape(x.shape)
  end
  ---Moves elements by `shifts` positions; what leaves at one end enters at the other. Without axes, of the flat tensor.
  ---@param x perigee.Tensor
  ---@param shifts integer|integer[]
  ---@param axes? integer|integer[]
  ---@return perigee.Tensor
  function pg.roll(...)
    local x, shifts, axis = ...
    if select("#", ...) == 3 and native.is_tensor(x) and type(shifts) == "number" and type(axis) == "number" then
      return roll(x, shifts, { axis })
    end
    local o = read_roll(...)
    return roll(o.x, o.shifts, o.axes and #o.axes > 0 and o.axes or nil)
  end
  native.methods.roll = pg.roll

  -- ---- diagonals ----

  -- Column minus row of every element of [..., n, m] matrices: [n, m].
  local function distance(x, rows, columns) return (places(x, columns)) - (places(x, rows)):unsqueeze(2) end

  local put_diagonal, put, put_struct -- made when they are first asked for
  local run_diagonal, taken, taken_struct

  local function diag(x, k)
    local n = rank(x) == 1 and size(x, 1)
    if type(n) == "number" and n > 0 then
      local all = n + math.abs(k)
      local wide = k == 0 and x:expand(n, n) or x:narrow(1, 1, 1):expand(all, all) -- only its shape is looked at
      if not put_diagonal then put_diagonal, put, put_struct = native.prepare("diagonal_grad", 2, "diag") end
      put.offset[0] = k
      return put_struct and put_diagonal(x, wide)
    end
    if rank(x) == 1 then
      local line = pg.cat { x, pg.zeros { math.abs(k), dtype = x.dtype, device = x.device } }
      return pg.where(distance(line, 1, 1):eq(k), k >= 0 and line:unsqueeze(2) or line, 0)
    end
    if rank(x) ~= 2 then
      native.raise("invalid_argument", "diag", ("x is %s; expected 1 or 2 axes"):format(tostring(x.shape)))
    end
    if not run_diagonal then run_diagonal, taken, taken_struct = native.prepare("diagonal", nil, "diag") end
    taken.offset[0] = k
    return taken_struct and run_diagonal(x):clone()
  end
  local read_diag = native.signature("diag", {
    { "x", "tensor", required = true }, { "diagonal", "integer", default = 0 } })
  ---Of a vector the matrix with it on diagonal number `diagonal`, else zeros; of a matrix that diagonal.
  ---@param x perigee.Tensor
  ---@param diagonal? integer 0 unless given
  ---@return perigee.Tensor
  function pg.diag(...)
    local x = ...
    if select("#", ...) == 1 and native.is_tensor(x) then return diag(x, 0) end
    local o = read_diag(...)
    return diag(o.x, o.diagonal)
  end
  native.methods.diag = pg.diag

  -- ---- picking ----

  -- The shape that two tensors broadcast to; nil where they do not.
  local function broadcast(a, b)
    local shape, n = {}, math.max(#a, #b)
    for i = 1, n do -- a negative position of a shape counts from its end
      local p = i > n - #a and a[#a - n + i] or 1
      local q = i > n - #b and b[#b - n + i] or 1
      if p ~= 1 and q ~= 1 and tensor.sizes_differ(p, q) then return nil end
      shape[i] = p == 1 and q or p
    end
    return shape
  end

  ---The elements of x at `index` (contents from 0) along an axis; the other axes broadcast. Without an axis, of flat x.
  ---@return perigee.Tensor
  both("take_along", { { "index", "tensor", required = true }, { "axis", "axis" } }, function(o)
    if not o.axis then return o.x:reshape(-1):gather(o.index:reshape(-1), 1) end
    local axis = axis_of("take_along", o.x, o.axis)
    local ours, theirs = o.x.shape, o.index.shape
    ours[axis], theirs[axis] = 1, 1
    local shape = rank(o.x) == rank(o.index) and broadcast(ours, theirs)
    if not shape then
      native.raise("invalid_argument", "take_along", ("index %s does not broadcast with x %s off axis %d"):format(
                     tostring(o.index.shape), tostring(o.x.shape), axis))
    end
    shape[axis] = size(o.index, axis)
    local index = o.index:expand(shape)
    shape[axis] = size(o.x, axis)
    return o.x:expand(shape):gather(index, axis)
  end)

  local function is_open(v) return native.is_tensor(v) and v.ptr ~= nil end
  local function as_number(v)
    if type(v) == "boolean" then return v and 1 or 0 end
    return v
  end

  local function masked_fill(x, mask, given)
    local value = as_number(given)
    tensor.check_open(x, "masked_fill")
    tensor.check_open(mask, "masked_fill")
    if not native.is_tensor(value) then
      native.dtypes.check_number("masked_fill", value, tensor.dtype(x))
      local shape = not tensor.same_sizes(x, mask) and broadcast(x.shape, mask.shape)
      if not shape or x:has_shape(shape) then return native.op("masked_fill")(x, mask, value) end
    end
    return pg.where(mask, given, x)
  end
  local read_masked = native.signature("masked_fill", {
    { "x", "tensor", required = true }, { "mask", "tensor", required = true },
    { "value", "any", required = true, type = "number|boolean|perigee.Tensor" } })
  ---x with `value` (a number, a boolean or a tensor) where mask is true; the mask broadcasts with x.
  ---@return perigee.Tensor
  function pg.masked_fill(...)
    local x, mask, value = ...
    if select("#", ...) == 3 and type(value) == "number" and is_open(x) and is_open(mask) then
      return masked_fill(x, mask, value)
    end
    local o = read_masked(...)
    return masked_fill(o.x, o.mask, o.value)
  end
  native.methods.masked_fill = pg.masked_fill
  local read_fill = native.signature("masked_fill_", {
    { "x", "tensor", required = true }, { "mask", "tensor", required = true }, { "value", "any", required = true } })
  function native.methods.masked_fill_(...)
    local _, mask, value = ...
    if type(value) ~= "boolean" and type(mask) ~= "table" then return native.op("masked_fill_")(...) end
    local o = read_fill(...)
    return native.op("masked_fill_")(o.x, o.mask, as_number(o.value))
  end

  ---The elements of x where mask is true, after broadcasting both, in row-major order: [n].
  ---@return perigee.Tensor
  both("masked_select", { { "mask", "tensor", required = true } }, function(o)
    local x, shape = o.x, broadcast(o.x.shape, o.mask.shape)
    if shape and not x:has_shape(shape) then x = x:expand(shape) end
    return native.call("masked_select", { x, o.mask })
  end)
end
