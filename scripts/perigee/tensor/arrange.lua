-- SPDX-License-Identifier: Apache-2.0
-- Arranging tensors: joining and cutting under PyTorch's other names, turning, diagonals, grids, and products that are
-- a few views and one operator. What can be a view is one.

return function(pg, native)
  local tensor, call, define = native.tensor, native.call, native.tensor.define
  local rank, size, differ, axis_of = tensor.rank, tensor.size, tensor.sizes_differ, tensor.axis_of

  local function bad(where, message, hint) native.raise("invalid_argument", where, message, hint) end

  -- Defines pg[name] and the method, whose first argument is the tensor x.
  local function both(name, params, f)
    table.insert(params, 1, { "x", "tensor", required = true })
    local read = native.signature(name, params)
    pg[name] = function(...) return f(read(...)) end
    native.methods[name] = pg[name]
  end
  local function alias(name, of) pg[name], native.methods[name] = pg[of] or native.methods[of], native.methods[of] end

  local function need_rank(where, x, least)
    if rank(x) < least then
      bad(where, ("x is %s; expected at least %d %s"):format(tostring(x.shape), least, least == 1 and "axis" or "axes"))
    end
  end

  -- ---- axes and shapes ----

  alias("swapaxes", "transpose")
  alias("moveaxis", "movedim")

  ---x as one axis: a view where its strides allow one.
  ---@param x perigee.Tensor
  ---@return perigee.Tensor picked [n]
  define("ravel", function(x) return x:reshape(-1) end)
  pg.ravel = native.methods.ravel

  ---One axis as several of the given sizes, of which one may be -1.
  ---@param x perigee.Tensor
  ---@param axis integer
  ---@param sizes integer[]
  ---@return perigee.Tensor
  both("unflatten", { { "axis", "axis", required = true }, { "sizes", "list", required = true } }, function(o)
    local x, axis, shape = o.x, axis_of("unflatten", o.x, o.axis), {}
    local n, known, hole = size(x, axis), 1, nil
    for i, d in ipairs(o.sizes) do
      if type(d) == "string" then bad("unflatten", ("there is no size %q"):format(d)) end
      if d == -1 then hole = i else known = known * d end
    end
    local left = native.size.is(known) and type(n) == "number" -- to be found out by the run
    if not left and (hole and (known == 0 or differ(n % known, 0)) or not hole and differ(n, known)) then
      bad("unflatten", ("axis %d of %s has %s elements, which %s do not make"):format(
            axis, tostring(x.shape), tostring(n), tostring(native.shape(o.sizes))))
    end
    for i = 1, rank(x) do
      if i ~= axis then
        shape[#shape + 1] = size(x, i)
      else
        for k, d in ipairs(o.sizes) do
          shape[#shape + 1] = k == hole and not left and n / known or d
        end
      end
    end
    return x:reshape(shape)
  end)

  ---x repeated to a shape, without a copy.
  ---@param x perigee.Tensor
  ---@param shape integer[]
  ---@return perigee.Tensor
  both("broadcast_to", { { "shape", "list", required = true } }, function(o) return o.x:expand(o.shape) end)

  -- The shape that several broadcast to.
  local function common_shape(where, list)
    local shape = {}
    for k, x in ipairs(list) do
      local own = x.shape
      for _ = #shape + 1, #own do table.insert(shape, 1, 1) end
      for i = 1, #own do
        local at = #shape - #own + i
        if shape[at] == 1 then
          shape[at] = own[i]
        elseif own[i] ~= 1 and differ(own[i], shape[at]) then
          bad(where, ("tensor %d is %s and does not broadcast with those before it"):format(k, tostring(own)))
        end
      end
    end
    return shape
  end

  local read_list = {}
  for _, name in ipairs { "broadcast_tensors", "hstack", "vstack", "dstack", "column_stack", "block_diag",
                          "cartesian_prod" } do
    local joined = name ~= "broadcast_tensors" and name ~= "cartesian_prod"
    read_list[name] = native.signature(name, { { "tensors", "tensors", required = true, joined = joined } })
  end
  -- pg[name](a, b, ...) or pg[name]{a, b, ...}
  local function on_list(name, f)
    pg[name] = function(...)
      local list = read_list[name](...).tensors
      if #list == 0 then bad(name, "needs at least one tensor") end
      return f(list)
    end
  end

  ---Views of the tensors in the shape that they broadcast to, as several results.
  ---@param ... perigee.Tensor|perigee.Tensor[]
  ---@return perigee.Tensor ...
  on_list("broadcast_tensors", function(list)
    local shape, views = common_shape("broadcast_tensors", list), {}
    for i, x in ipairs(list) do views[i] = x:expand(shape) end
    return unpack(views)
  end)

  -- ---- joining and cutting ----

  local function with_axes(x, least, behind)
    for k = rank(x) + 1, least do x = x:unsqueeze(behind and k > 1 and k or 1) end
    return x
  end
  local function joined(list, axis, make)
    local all = {}
    for i, x in ipairs(list) do all[i] = make(x) end
    return call("cat", { all }, { axis = axis })
  end

  ---Beside each other: along axis 2, or 1 for tensors of one axis.
  ---@param ... perigee.Tensor|perigee.Tensor[]
  ---@return perigee.Tensor
  on_list("hstack", function(list)
    return joined(list, rank(list[1]) <= 1 and 1 or 2, function(x) return with_axes(x, 1) end)
  end)
  ---Below each other: along axis 1; tensors of one axis are rows.
  ---@param ... perigee.Tensor|perigee.Tensor[]
  ---@return perigee.Tensor
  on_list("vstack", function(list) return joined(list, 1, function(x) return with_axes(x, 2) end) end)
  pg.row_stack = pg.vstack
  ---Behind each other: along axis 3.
  ---@param ... perigee.Tensor|perigee.Tensor[]
  ---@return perigee.Tensor
  on_list("dstack", function(list)
    return joined(list, 3, function(x) return with_axes(with_axes(x, 2), 3, true) end)
  end)
  ---Beside each other; tensors of one axis are columns.
  ---@param ... perigee.Tensor|perigee.Tensor[]
  ---@return perigee.Tensor
  on_list("column_stack", function(list)
    return joined(list, 2, function(x) return rank(x) < 2 and x:reshape(-1, 1) or x end)
  end)

  ---Parts along an axis, as views: as equal as can be where `parts` is their number, else cut behind the numbers of
  ---elements in the list `parts`.
  ---@param x perigee.Tensor
  ---@param parts integer|integer[]
  ---@param axis? integer
  ---@return perigee.Tensor[]
  both("tensor_split", { { "parts", "counts", required = true }, { "axis", "axis", default = 1 } }, function(o)
    local x, axis, ends = o.x, axis_of("tensor_split", o.x, o.axis), {}
    local n = size(x, axis)
    if type(o.parts) == "number" then
      if o.parts < 1 then
        bad("tensor_split", "parts must be a whole number from 1, got " .. native.describe(o.parts))
      end
      tensor.check_parts("tensor_split", o.parts)
      local more = n % o.parts
      local least = (n - more) / o.parts
      for i = 1, o.parts do ends[i] = i * least + (i + more - native.size.max(i, more)) end -- the lesser of i and more
    else
      for i, e in ipairs(o.parts) do
        ends[i] = e < 0 and n + e or e
        if type(ends[i]) == "number" then ends[i] = math.max(0, ends[i]) end
      end
      ends[#ends + 1] = n
    end
    local list, at = {}, 0
    for i, e in ipairs(ends) do
      list[i] = tensor.part(x, axis, at, e)
      at = e
    end
    return list
  end)

  -- ---- turning ----

  ---The columns in reverse order (axis 2).
  ---@param x perigee.Tensor
  ---@return perigee.Tensor
  define("fliplr", function(x)
    need_rank("fliplr", x, 2)
    return x:flip { 2 }
  end)
  ---The rows in reverse order (axis 1).
  ---@param x perigee.Tensor
  ---@return perigee.Tensor
  define("flipud", function(x)
    need_rank("flipud", x, 1)
    return x:flip { 1 }
  end)
  pg.fliplr, pg.flipud = native.methods.fliplr, native.methods.flipud

  ---Turned by `times` quarter turns from the first towards the second of two axes.
  ---@param x perigee.Tensor
  ---@param times? integer
  ---@param axes? integer[]
  ---@return perigee.Tensor
  both("rot90", { { "times", "integer", default = 1 }, { "axes", "axes", default = { 1, 2 } } }, function(o)
    need_rank("rot90", o.x, 2)
    if #o.axes ~= 2 then bad("rot90", ("axes lists %d; expected two"):format(#o.axes)) end
    local a, b = axis_of("rot90", o.x, o.axes[1]), axis_of("rot90", o.x, o.axes[2])
    if a == b then bad("rot90", ("axes are both %d; expected two"):format(a)) end
    local turn = o.times % 4
    if turn == 0 then return o.x:clone() end
    if turn == 2 then return o.x:flip { a, b } end
    if turn == 1 then return o.x:flip { b }:transpose(a, b) end
    return o.x:transpose(a, b):flip { b }
  end)

  -- ---- diagonals ----

  ---The sum of the main diagonal of a matrix.
  ---@param x perigee.Tensor [n, m]
  ---@return perigee.Tensor
  define("trace", function(x)
    if rank(x) ~= 2 then bad("trace", ("x is %s; expected a matrix"):format(tostring(x.shape))) end
    return x:diagonal():sum()
  end)
  pg.trace = native.methods.trace

  ---Matrices, along two new axes, with the last axis of x on diagonal number `offset`, and zeros.
  ---@param x perigee.Tensor [..., n]
  ---@param offset? integer
  ---@param axis1? integer of the result
  ---@param axis2? integer of the result
  ---@return perigee.Tensor
  both("diag_embed", { { "offset", "integer", default = 0 }, { "axis1", "axis", default = -2 },
                       { "axis2", "axis", default = -1 } }, function(o)
    local x, off = o.x, o.offset
    need_rank("diag_embed", x, 1)
    local n = size(x, rank(x))
    local shape = x.shape
    shape[#shape] = n + math.abs(off)
    shape[#shape + 1] = n + math.abs(off)
    local whole = pg.zeros { shape, dtype = x.dtype, device = x.device }
    local last = #shape
    local y = call("diagonal_scatter", { whole, x }, { offset = off, axis1 = last - 1, axis2 = last })
    local a, b = axis_of("diag_embed", y, o.axis1), axis_of("diag_embed", y, o.axis2)
    if a == b then bad("diag_embed", ("axis1 and axis2 are both %d; expected two"):format(a)) end
    return y:movedim({ last - 1, last }, { a, b })
  end)

  ---The matrices (or vectors, as rows, and numbers) along the diagonal of one, which is zero elsewhere.
  ---@param ... perigee.Tensor|perigee.Tensor[]
  ---@return perigee.Tensor
  on_list("block_diag", function(list)
    local columns, blocks, dtype = 0, {}, nil
    for i, x in ipairs(list) do
      if rank(x) > 2 then
        bad("block_diag", ("tensor %d is %s; expected at most 2 axes"):format(i, tostring(x.shape)))
      end
      blocks[i] = with_axes(x, 2)
      columns = columns + size(blocks[i], 2)
      dtype = dtype and (pg.zeros { 0, dtype = dtype } + pg.zeros { 0, dtype = x.dtype }).dtype or x.dtype
    end
    local rows, before = {}, 0
    for i, block in ipairs(blocks) do
      local n, m = size(block, 1), size(block, 2)
      local function zeros(width) return pg.zeros { n, width, dtype = dtype, device = list[1].device } end
      rows[i] = pg.cat { zeros(before), block:to(dtype), zeros(columns - before - m), axis = 2 }
      before = before + m
    end
    return pg.cat(rows)
  end)

  -- ---- grids ----

  local read_grid = native.signature("meshgrid", {
    { "tensors", "tensors", required = true },
    { "indexing", "string", default = "ij", named = true, choices = { "ij", "xy" } } })
  ---The coordinates of a grid, a view a tensor: with "ij" tensor k runs along axis k, with "xy" the first along axis 2.
  ---@param ... perigee.Tensor|perigee.Tensor[] of one axis
  ---@return perigee.Tensor ...
  function pg.meshgrid(...)
    local o = read_grid(...)
    local list, shape, views = o.tensors, {}, {}
    if #list == 0 then bad("meshgrid", "needs at least one tensor") end
    for i, x in ipairs(list) do
      if rank(x) > 1 then bad("meshgrid", ("tensor %d is %s; expected one axis"):format(i, tostring(x.shape))) end
      list[i] = rank(x) == 0 and x:reshape(1) or x
      shape[i] = size(list[i], 1)
    end
    for i, x in ipairs(list) do
      local own = {}
      for k = 1, #list do own[k] = k == i and shape[i] or 1 end
      views[i] = x:reshape(own):expand(shape)
      if o.indexing == "xy" and #list > 1 then views[i] = views[i]:transpose(1, 2) end
    end
    return unpack(views)
  end

  ---Every combination of an element of each: [product of their sizes, number of them].
  ---@param ... perigee.Tensor|perigee.Tensor[] of one axis
  ---@return perigee.Tensor
  on_list("cartesian_prod", function(list)
    for i, x in ipairs(list) do
      if rank(x) ~= 1 then
        bad("cartesian_prod", ("tensor %d is %s; expected one axis"):format(i, tostring(x.shape)))
      end
    end
    if #list == 1 then return list[1] end
    local columns = { pg.meshgrid(list) }
    for i, x in ipairs(columns) do columns[i] = x:reshape(-1) end
    return pg.stack(columns, 2)
  end)

  -- ---- products ----

  ---Every element of x times the whole of y (Kronecker's product); missing axes count as 1 in front.
  ---@param x perigee.Tensor
  ---@param y perigee.Tensor
  ---@return perigee.Tensor
  both("kron", { { "y", "tensor", required = true } }, function(o)
    local n = math.max(rank(o.x), rank(o.y))
    local x, y = with_axes(o.x, n), with_axes(o.y, n)
    local shape, xs, ys = {}, {}, {}
    for i = 1, n do
      shape[i] = size(x, i) * size(y, i)
      xs[2 * i - 1], xs[2 * i], ys[2 * i - 1], ys[2 * i] = size(x, i), 1, 1, size(y, i)
    end
    if 2 * n <= 8 then return (x:reshape(xs) * y:reshape(ys)):reshape(shape) end
    bad("kron", ("x is %s; more than 4 axes are not served"):format(tostring(o.x.shape)))
  end)

  ---Products summed over pairs of axes: over the last `axes` of x with the first of y where it is a number, else over
  ---those that its two lists name, pair by pair.
  ---@param x perigee.Tensor
  ---@param y perigee.Tensor
  ---@param axes? integer|integer[][]
  ---@return perigee.Tensor
  both("tensordot", { { "y", "tensor", required = true }, { "axes", "any", default = 2 } }, function(o)
    local x, y, ours, theirs = o.x, o.y, {}, {}
    if type(o.axes) == "number" then
      if o.axes < 0 or o.axes > rank(x) or o.axes > rank(y) then
        bad("tensordot", ("%s axes of x %s and y %s"):format(tostring(o.axes), tostring(x.shape), tostring(y.shape)))
      end
      for i = 1, o.axes do ours[i], theirs[i] = rank(x) - o.axes + i, i end
    else
      if not native.is_plain(o.axes) then bad("tensordot", "axes must be a number or two lists of as many") end
      local a, b = o.axes[1], o.axes[2]
      a, b = type(a) == "number" and { a } or a, type(b) == "number" and { b } or b
      if type(a) ~= "table" or type(b) ~= "table" or #a ~= #b then
        bad("tensordot", "axes must be a number or two lists of as many")
      end
      for i = 1, #a do ours[i], theirs[i] = axis_of("tensordot", x, a[i]), axis_of("tensordot", y, b[i]) end
    end
    local taken_x, taken_y, inner = {}, {}, 1
    for i, a in ipairs(ours) do
      local n, m = size(x, a), size(y, theirs[i])
      if differ(n, m) then
        bad("tensordot", ("axis %d of x %s and axis %d of y %s have %s and %s elements"):format(
              a, tostring(x.shape), theirs[i], tostring(y.shape), tostring(n), tostring(m)))
      end
      taken_x[a], taken_y[theirs[i]], inner = true, true, inner * n
    end
    local order_x, order_y, shape, rows, columns = {}, {}, {}, 1, 1
    for i = 1, rank(x) do
      if not taken_x[i] then
        order_x[#order_x + 1], shape[#shape + 1], rows = i, size(x, i), rows * size(x, i)
      end
    end
    for _, a in ipairs(ours) do order_x[#order_x + 1] = a end
    for _, a in ipairs(theirs) do order_y[#order_y + 1] = a end
    for i = 1, rank(y) do
      if not taken_y[i] then
        order_y[#order_y + 1], shape[#shape + 1], columns = i, size(y, i), columns * size(y, i)
      end
    end
    return x:permute(order_x):reshape(rows, inner):matmul(y:permute(order_y):reshape(inner, columns)):reshape(shape)
  end)

  ---The cross products of vectors of 3 elements along an axis (by default the first that has 3); other axes broadcast.
  ---@param x perigee.Tensor
  ---@param y perigee.Tensor
  ---@param axis? integer
  ---@return perigee.Tensor
  both("cross", { { "y", "tensor", required = true }, { "axis", "axis" } }, function(o)
    local x, y = pg.broadcast_tensors(o.x, o.y)
    local axis = o.axis and axis_of("cross", x, o.axis)
    for i = 1, axis and 0 or rank(x) do axis = axis or (size(x, i) == 3 and i or nil) end
    if not axis or differ(size(x, axis), 3) then
      bad("cross", ("x is %s; expected an axis of 3 elements"):format(tostring(x.shape)))
    end
    return x:roll(-1, { axis = axis }) * y:roll(1, { axis = axis }) -
      x:roll(1, { axis = axis }) * y:roll(-1, { axis = axis })
  end)

  ---One position of an axis written anew in a copy of x.
  ---@param x perigee.Tensor
  ---@param src perigee.Tensor
  ---@param axis integer
  ---@param index integer
  ---@return perigee.Tensor
  both("select_scatter", { { "src", "tensor", required = true }, { "axis", "axis", required = true },
                           { "index", "integer", required = true } }, function(o)
    local y = o.x:clone()
    y:select(axis_of("select_scatter", y, o.axis), o.index):copy_(o.src)
    return y
  end)

  -- ---- classes ----

  ---A new last axis that is 1 at the index and 0 elsewhere: class c stands at position c + 1. Without `classes` there
  ---are as many as the largest index asks for.
  ---@param index perigee.Tensor from 0
  ---@param classes? integer
  ---@return perigee.Tensor hot int64 [..., classes]
  both("one_hot", { { "classes", "size" } }, function(o)
    local classes, one_hot = o.classes, native.op("one_hot")
    if native.size.is(classes) then
      local shape = o.x.shape
      shape[#shape + 1] = classes
      return pg.zeros({ shape, dtype = "int64", device = o.x.device }):scatter(o.x:unsqueeze(-1), 1, -1)
    end
    if not classes or classes == -1 then
      native.host.need_contents("one_hot", o.x, "give classes=")
      if native.host.numel(o.x) == 0 then
        bad("one_hot", "the number of classes does not follow from an index without elements", "give classes=")
      end
      if not native.dtypes.by_name[o.x.dtype].integer then return one_hot(o.x, 1) end -- says what is wrong
      local least, most = pg.no_grad(pg.aminmax, o.x)
      least, classes = least:item(), most:item() + 1
      if least < 0 then bad("one_hot", ("index %d is negative; classes count from 0"):format(least)) end
    end
    return one_hot(o.x, classes)
  end)
end
