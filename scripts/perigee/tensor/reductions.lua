-- SPDX-License-Identifier: Apache-2.0
-- Reductions and scans that are a few operators each, or that take more kinds of arguments than their operator.

return function(pg, native)
  local tensor = native.tensor
  local rank, size, axis_of = tensor.rank, tensor.size, tensor.axis_of

  -- Defines pg[name] and the method, whose first argument is the tensor x, or as it is called.
  local function both(name, params, f, first)
    table.insert(params, 1, { first or "x", "tensor", required = true })
    local read = native.signature(name, params)
    local function call(...) return f(read(...)) end
    pg[name], native.methods[name] = call, call
  end
  local function axes_param() return { "axes", "axes", alias = "axis" } end
  local function keepdim_param() return { "keepdim", "boolean", default = false } end

  -- ---- norms ----

  ---The p-norm of all elements or along axes: (sum |x|^p)^(1/p); p = 0 counts elements that are not 0,
  ---`math.huge` is the largest magnitude, "fro" is 2.
  ---@param x perigee.Tensor floating
  ---@param p? number|string default 2
  ---@param axis? integer|integer[] from 1; default all
  ---@param keepdim? boolean
  ---@return perigee.Tensor
  both("norm", { { "p", "single", default = 2 }, axes_param(), keepdim_param() }, function(o)
    local p = o.p
    if p == "fro" then p = 2 end
    if p == "nuc" then
      native.raise("not_supported", "norm", "the nuclear norm needs singular values, which Perigee has not")
    end
    if type(p) ~= "number" then
      native.raise("invalid_argument", "norm", "p must be a number or \"fro\", got " .. native.describe(o.p))
    end
    return native.call("norm", { o.x }, { p = p, axes = o.axes, keepdim = o.keepdim })
  end)

  -- ---- two results at once ----

  ---The smallest and the largest element, of all or along one axis.
  ---@param x perigee.Tensor
  ---@param axis? integer from 1; default all
  ---@param keepdim? boolean
  ---@return perigee.Tensor min
  ---@return perigee.Tensor max
  both("aminmax", { { "axis", "axis" }, keepdim_param() }, function(o)
    local attrs = { axes = o.axis and { o.axis } or nil, keepdim = o.keepdim }
    return native.call("amin", { o.x }, attrs), native.call("amax", { o.x }, attrs)
  end)

  local function with_mean(name, spread)
    both(name, { axes_param(), { "correction", "integer", default = 1 }, keepdim_param() }, function(o)
      local attrs = { axes = o.axes, keepdim = o.keepdim }
      local mean = native.call("mean", { o.x }, attrs)
      attrs.correction = o.correction
      return native.call(spread, { o.x }, attrs), mean
    end)
  end
  ---Variance and mean: `x:var_mean{axis = 2, correction = 1}`.
  ---@return perigee.Tensor variance
  ---@return perigee.Tensor mean
  with_mean("var_mean", "var")
  ---Standard deviation and mean.
  ---@return perigee.Tensor deviation
  ---@return perigee.Tensor mean
  with_mean("std_mean", "std")

  -- ---- neighbours ----

  -- All but the first (last) position of an axis.
  local function without_first(x, axis) return tensor.part(x, axis, 1, size(x, axis)) end
  local function without_last(x, axis) return tensor.part(x, axis, 0, size(x, axis) - 1) end

  local function present_axis(where, x, given)
    if rank(x) == 0 then native.raise("invalid_argument", where, "x has no axes; expected at least one") end
    return axis_of(where, x, given)
  end

  ---Differences of neighbours along an axis, n times over; `prepend` and `append` are put at the ends before.
  ---@param x perigee.Tensor
  ---@param n? integer default 1
  ---@param axis? integer from 1; default -1
  ---@param options? { prepend?: perigee.Tensor, append?: perigee.Tensor }
  ---@return perigee.Tensor
  both("diff", { { "n", "integer", default = 1 }, { "axis", "axis", default = -1 }, { "prepend", "tensor" },
                 { "append", "tensor" } }, function(o)
    if o.n < 0 then native.raise("invalid_argument", "diff", ("n is %d; expected at least 0"):format(o.n)) end
    local x, axis = o.x, present_axis("diff", o.x, o.axis)
    if o.n == 0 then return x:clone() end
    if o.prepend or o.append then
      local parts = { x }
      if o.prepend then table.insert(parts, 1, o.prepend) end
      if o.append then parts[#parts + 1] = o.append end
      parts.axis = axis
      x = pg.cat(parts)
    end
    for _ = 1, o.n do
      if size(x, axis) == 0 then break end
      local high, low = without_first(x, axis), without_last(x, axis)
      x = x.dtype == "bool" and high:logical_xor(low) or high - low
    end
    return x
  end)

  ---The integral of y along an axis by the trapezoidal rule, at points x or `dx` apart.
  ---@param y perigee.Tensor what is integrated, [...]
  ---@param x? perigee.Tensor of y's shape, or of one axis
  ---@param options? { dx?: number, axis?: integer }
  ---@return perigee.Tensor
  both("trapezoid", { { "x", "tensor" }, { "dx", "number", default = 1 },
                      { "axis", "axis", default = -1 } }, function(o)
    local y, points = o.y, o.x
    local axis = present_axis("trapezoid", y, o.axis)
    if size(y, axis) == 0 then return y:sum { axis = axis } end
    local heights = without_first(y, axis) + without_last(y, axis)
    if not points then return heights:sum { axis = axis } * (o.dx / 2) end
    local own = rank(points) == 1 and 1 or axis
    local widths = without_first(points, own) - without_last(points, own)
    if rank(points) == 1 then
      local shape = {}
      for i = 1, rank(y) do shape[i] = i == axis and -1 or 1 end
      widths = widths:reshape(shape)
    end
    return (heights * widths):sum { axis = axis } / 2
  end, "y")
end
