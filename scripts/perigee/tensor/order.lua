-- SPDX-License-Identifier: Apache-2.0
-- Functions over the order of elements: medians and quantiles, distinct elements, counting, searching.

return function(pg, native)
  local tensor, call, define = native.tensor, native.call, native.tensor.define
  local rank, size, axis_of = tensor.rank, tensor.size, tensor.axis_of
  local is_tensor, numel = native.is_tensor, native.host.numel

  local function both(name, params, f)
    table.insert(params, 1, { "x", "tensor", required = true })
    local read = native.signature(name, params)
    pg[name] = function(...) return f(read(...)) end
    native.methods[name] = pg[name]
  end

  local function bad(where, message, hint) native.raise("invalid_argument", where, message, hint) end

  -- ---- medians and quantiles ----

  local function median(name)
    both(name, { { "axis", "axis" }, { "keepdim", "boolean", default = false } }, function(o)
      if o.axis then return call(name, { o.x }, { axis = o.axis, keepdim = o.keepdim }) end
      if o.x:numel() == 0 then bad(name, ("x is %s, which has no elements"):format(tostring(o.x.shape))) end
      return (call(name, { o.x:reshape(-1) }, { axis = 1 }))
    end)
  end
  ---The middle element, the lower one of two, of all or along an axis (then also where it stands); NaN where there is
  ---one.
  ---@param x perigee.Tensor
  ---@param axis? integer
  ---@param keepdim? boolean
  ---@return perigee.Tensor values
  ---@return perigee.Tensor? indices
  median("median")
  ---The median of what is not NaN.
  ---@param x perigee.Tensor
  ---@param axis? integer
  ---@param keepdim? boolean
  ---@return perigee.Tensor values
  ---@return perigee.Tensor? indices
  median("nanmedian")

  -- Where quantile q of n sorted elements lies: two positions from 1, and the share of the second.
  local between = {
    linear = function(at) return math.floor(at), at - math.floor(at) end,
    lower = function(at) return math.floor(at), 0 end,
    higher = function(at) return math.ceil(at), 0 end,
    midpoint = function(at) return math.floor(at), at == math.floor(at) and 0 or 0.5 end,
    nearest = function(at) -- half to even
      local low = math.floor(at)
      local up = at - low > 0.5 or (at - low == 0.5 and low % 2 == 1)
      return up and low + 1 or low, 0
    end,
  }

  -- The same where only a run tells n: three tensors, of which the positions count from 0.
  local function places_at(at, interpolation)
    local low, high = at:floor():to("int64"), at:ceil():to("int64")
    if interpolation == "lower" then return low, low, at * 0 end
    if interpolation == "higher" then return high, high, at * 0 end
    if interpolation == "nearest" then
      local near = at:round():to("int64") -- half to even
      return near, near, at * 0
    end
    return low, high, interpolation == "midpoint" and (high - low) * 0.5 or at - low
  end

  -- Quantile q of what is sorted along an axis of a size that only a run tells.
  local function unsized_quantile(sorted, axis, q, interpolation)
    local last = pg.full { {}, size(sorted, axis) - 1, dtype = "float64", device = sorted.device }
    local low, high, share = places_at(last * q, interpolation)
    local function pick(place) return sorted:index_select(place:reshape(1), axis):squeeze(axis) end
    local y = pick(low)
    return y + (pick(high) - y) * share:to(sorted.dtype)
  end

  local function read_quantiles(q)
    if is_tensor(q) then native.host.need_contents("quantile", q, "give q as numbers") end
    local list = is_tensor(q) and q:reshape(-1):totable() or type(q) == "table" and q or { q }
    for _, v in ipairs(list) do
      if type(v) ~= "number" or not (v >= 0 and v <= 1) then
        bad("quantile", ("q must be numbers from 0 to 1, got %s"):format(native.describe(v)))
      end
    end
    return list, is_tensor(q) and rank(q) > 0 or type(q) == "table"
  end

  ---The elements below which the shares `q` of each line along an axis (of all elements without one) lie. q is a
  ---number, or a list or tensor of them, which then come along a new first axis. Interpolation: linear (definition 7 of
  ---Hyndman and Fan, "Sample quantiles in statistical packages", 1996), lower, higher, midpoint, nearest.
  ---@param x perigee.Tensor floating
  ---@param q number|number[]|perigee.Tensor
  ---@param axis? integer
  ---@param keepdim? boolean
  ---@param interpolation? string
  ---@return perigee.Tensor
  both("quantile", {
    { "q", "any", required = true }, { "axis", "axis" }, { "keepdim", "boolean", default = false },
    { "interpolation", "string", default = "linear",
      choices = { "linear", "lower", "higher", "midpoint", "nearest" } },
  }, function(o)
    local x, place = o.x, between[o.interpolation]
    if not native.dtypes.by_name[x.dtype].floating then bad("quantile", "needs a floating tensor, got " .. x.dtype) end
    local list, several = read_quantiles(o.q)
    local axis, shape = o.axis and rank(x) > 0 and axis_of("quantile", x, o.axis) or nil, x.shape
    local line = axis and x or x:reshape(-1)
    local n = size(line, axis or 1)
    if n == 0 then bad("quantile", ("x is %s; there is nothing to choose from"):format(tostring(shape))) end
    local sorted = line:sort(axis or 1)
    local is_nan, results = sorted:select(axis or 1, n):isnan(), {}
    for i, q in ipairs(list) do
      local y
      if type(n) == "number" then
        local low, share = place(q * (n - 1))
        y = sorted:select(axis or 1, low + 1)
        if share > 0 then y = y + (sorted:select(axis or 1, low + 2) - y) * share end
      else
        y = unsized_quantile(sorted, axis or 1, q, o.interpolation)
      end
      y = pg.where(is_nan, 0 / 0, y)
      if o.keepdim and axis then y = y:unsqueeze(axis) end
      if o.keepdim and not axis then
        for k in ipairs(shape) do shape[k] = 1 end
        y = y:reshape(shape)
      end
      results[i] = y
    end
    return several and pg.stack(results, 1) or results[1]
  end)

  -- ---- distinct elements ----

  local function distinct(name, consecutive)
    local params = { { "axis", "axis" }, { "return_inverse", "boolean", default = false },
                     { "return_counts", "boolean", default = false } }
    if not consecutive then params[4] = { "sorted", "boolean", default = true } end
    both(name, params, function(o)
      local x, axis = o.x, o.axis and axis_of(name, o.x, o.axis)
      local front = axis and x:movedim(axis, 1) or x:reshape(-1)
      local rows = front
      if axis then
        local each = 1
        for i = 2, rank(front) do each = each * size(front, i) end
        rows = front:reshape(size(front, 1), each)
      end
      local first, inverse, counts = call("unique_rows", { rows:detach() }, { consecutive = consecutive })
      local values = call("index_select", { front, first }, { axis = 1 })
      local results = { axis and values:movedim(1, axis) or values }
      if o.return_inverse then results[2] = axis and inverse or inverse:reshape(x.shape) end
      if o.return_counts then results[#results + 1] = counts end
      return unpack(results)
    end)
  end
  ---The distinct elements of x in rising order, or with `axis` its distinct slices; then, where asked for, the kind of
  ---each element (`return_inverse`) and the number of each kind (`return_counts`). NaN equals nothing.
  ---@param x perigee.Tensor
  ---@param axis? integer
  ---@param return_inverse? boolean
  ---@param return_counts? boolean
  ---@return perigee.Tensor values, perigee.Tensor? inverse, perigee.Tensor? counts
  distinct("unique", false)
  ---The same, but only neighbours count as equal, and the order stays.
  ---@param x perigee.Tensor
  ---@param axis? integer
  ---@param return_inverse? boolean
  ---@param return_counts? boolean
  ---@return perigee.Tensor values, perigee.Tensor? inverse, perigee.Tensor? counts
  distinct("unique_consecutive", true)

  -- ---- searching ----

  local function as_tensor(where, name, v, like)
    if is_tensor(v) then return v end
    if type(v) ~= "number" then
      bad(where, ("%s must be a tensor or a number, got %s"):format(name, native.describe(v)))
    end
    local whole = v == math.floor(v) and not native.dtypes.by_name[like.dtype].floating
    return pg.full({ {}, v, dtype = whole and like.dtype or nil, device = like.device })
  end

  local read_search = native.signature("searchsorted", {
    { "sorted", "tensor", required = true }, { "values", "any", required = true },
    { "right", "boolean", default = false }, { "side", "string", choices = { "left", "right" } } })
  ---Where values (a tensor or a number) would be put into rows that are in rising order, as counts of the elements
  ---before them: before equal elements, or behind them with `right=true` or `side="right"`.
  ---@param sorted perigee.Tensor [n], or [..., n]
  ---@param values perigee.Tensor|number any shape, or [..., m]
  ---@param right? boolean
  ---@param side? "left"|"right"
  ---@return perigee.Tensor indices from 0
  function pg.searchsorted(...)
    local o = read_search(...)
    local values = as_tensor("searchsorted", "values", o.values, o.sorted)
    local right = o.right
    if o.side then right = o.side == "right" end
    return call("searchsorted", { o.sorted, values }, { right = right })
  end
  native.methods.searchsorted = pg.searchsorted

  ---In which bucket each element lies, given the buckets' rising boundaries: i where boundaries[i] < x <=
  ---boundaries[i + 1], with `right=true` where boundaries[i] <= x < boundaries[i + 1].
  ---@param x perigee.Tensor
  ---@param boundaries perigee.Tensor [n], rising
  ---@param right? boolean
  ---@return perigee.Tensor buckets int64 from 0 to n
  both("bucketize", {
    { "boundaries", "tensor", required = true }, { "right", "boolean", default = false },
  }, function(o)
    if rank(o.boundaries) ~= 1 then
      bad("bucketize", ("boundaries are %s; expected one axis"):format(tostring(o.boundaries.shape)))
    end
    return call("searchsorted", { o.boundaries, o.x }, { right = o.right })
  end)

  ---Which elements of x are among those of `test` (a tensor or a number).
  ---@param x perigee.Tensor
  ---@param test perigee.Tensor|number
  ---@param invert? boolean
  ---@return perigee.Tensor found bool
  both("isin", { { "test", "any", required = true }, { "invert", "boolean", default = false } }, function(o)
    local test = as_tensor("isin", "test", o.test, o.x):reshape(-1)
    local sorted = test:sort(1)
    local before, up_to = call("searchsorted", { sorted, o.x }), call("searchsorted", { sorted, o.x }, { right = true })
    local found = up_to:gt(before):logical_and(o.x:eq(o.x)) -- NaN is among none
    return o.invert and found:logical_not() or found
  end)

  -- ---- counting ----

  ---How often each of the whole numbers from 0 occurs in x, or the sums of their weights: [largest + 1], or `minlength`
  ---if that is more.
  ---@param x perigee.Tensor integers from 0
  ---@param weights? perigee.Tensor as many
  ---@param minlength? integer
  ---@return perigee.Tensor
  both("bincount", { { "weights", "tensor" }, { "minlength", "integer", default = 0 } }, function(o)
    local x, weights = o.x, o.weights
    if rank(x) ~= 1 or not native.dtypes.by_name[x.dtype].integer then
      bad("bincount", ("x is %s %s; expected one axis of integers"):format(x.dtype, tostring(x.shape)))
    end
    if weights and native.tensor.shapes_differ(weights.shape, x.shape) then
      bad("bincount", ("weights are %s; expected %s"):format(tostring(weights.shape), tostring(x.shape)))
    end
    if weights and not native.dtypes.by_name[weights.dtype].floating then weights = weights:to("float64") end
    native.host.need_contents("bincount", x, "x:one_hot(classes):sum(1) counts a known number of classes")
    local largest = numel(x) > 0 and pg.no_grad(function() return x:amax():item() end) or -1
    local counts = pg.zeros { math.max(largest + 1, o.minlength), dtype = weights and weights.dtype or "int64",
                              device = x.device }
    return counts:index_put(x:to("int64"), weights or 1, { accumulate = true })
  end)

  ---How many elements lie in each of `bins` equal parts of [min, max] (of the range of x where both are 0). Others, and
  ---NaN, are left out.
  ---@param x perigee.Tensor floating
  ---@param bins? integer
  ---@param min? number
  ---@param max? number
  ---@return perigee.Tensor counts [bins]
  both("histc", { { "bins", "integer", default = 100 }, { "min", "number", default = 0 },
                  { "max", "number", default = 0 } }, function(o)
    local x, low, high = o.x:reshape(-1), o.min, o.max
    if not native.dtypes.by_name[x.dtype].floating then bad("histc", "needs a floating tensor, got " .. x.dtype) end
    if o.bins < 1 then bad("histc", "bins must be at least 1") end
    if low > high then bad("histc", ("min %g is above max %g"):format(low, high)) end
    local counts = pg.zeros { o.bins, dtype = x.dtype, device = x.device }
    if x:numel() == 0 then return counts end
    if low == high and low == 0 then native.host.need_contents("histc", x, "give min and max") end
    if low == high and low == 0 then low, high = x:amin():item(), x:amax():item() end
    if low ~= low or high ~= high or high - low == math.huge then bad("histc", "the range of x is not finite") end
    if low == high then low, high = low - 1, high + 1 end
    local inside = x:ge(low):logical_and(x:le(high))
    local place = pg.where(inside, (x - low) * (o.bins / (high - low)), 0):clamp(0, o.bins - 1):to("int64")
    return counts:scatter_add(place, inside:to(x.dtype), 1)
  end)

  ---The elements along axis 1 in rising order.
  ---@param x perigee.Tensor
  ---@return perigee.Tensor
  define("msort", function(x) return (x:sort(1)) end)
  pg.msort = native.methods.msort
end
