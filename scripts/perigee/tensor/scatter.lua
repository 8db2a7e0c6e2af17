-- SPDX-License-Identifier: Apache-2.0
-- Writing at the contents of index tensors (from 0) along an axis, and taking and putting in flat tensors.
-- The functions leave x as it is; their forms with a trailing _ write into it.

return function(pg, native)
  local tensor, call = native.tensor, native.call
  local rank, size, axis_of = tensor.rank, tensor.size, tensor.axis_of
  local is_tensor = native.is_tensor

  -- Defines pg[name] and the methods name and name_: f(o, in_place), whose first argument is the tensor x.
  local function both(name, params, f)
    table.insert(params, 1, { "x", "tensor", required = true })
    local read, read_ = native.signature(name, params), native.signature(name .. "_", params)
    pg[name] = function(...) return f(read(...), name, false) end
    native.methods[name] = pg[name]
    native.methods[name .. "_"] = function(...) return f(read_(...), name .. "_", true) end
  end

  local function want_tensor(where, name, v)
    if not is_tensor(v) then
      native.raise("invalid_argument", where, ("%s must be a tensor, got %s"):format(name, native.describe(v)))
    end
    tensor.check_open(v, where)
    return v
  end

  -- Index, source and axis, which may also come as axis, index, source.
  local function along(where, o)
    if type(o.index) == "number" and is_tensor(o.src) then o.axis, o.index, o.src = o.index, o.src, o.axis end
    if o.axis == nil or o.src == nil then
      native.raise("invalid_argument", where, ("argument %q is missing"):format(o.axis == nil and "axis" or "source"))
    end
    want_tensor(where, "index", o.index)
    local zero_dim = rank(o.x) == 0 and (o.axis == 1 or o.axis == -1) -- as one of size 1
    o.axis = zero_dim and 1 or axis_of(where, o.x, o.axis)
  end

  local function number(x, v) return pg.full { {}, v, dtype = x.dtype, device = x.device } end

  -- ---- single elements along an axis ----

  -- The part of src that index names the places of.
  local function source(where, o)
    local src, index = o.src, o.index
    if not is_tensor(src) then
      if type(src) ~= "number" and type(src) ~= "boolean" then want_tensor(where, "src", src) end
      return number(o.x, src):expand(index.shape)
    end
    tensor.check_open(src, where)
    if rank(src) ~= rank(index) then return src end -- the operator says what is wrong
    for axis = 1, rank(src) do
      local have, want = size(src, axis), size(index, axis)
      if type(have) == "number" and type(want) == "number" and have > want then src = src:narrow(axis, 1, want) end
    end
    return src
  end

  local function scatter(name, operator, more)
    local params = { { "index", "any", required = true }, { "src", "any" }, { "axis", "any" } }
    for _, param in ipairs(more or {}) do params[#params + 1] = param end
    both(name, params, function(o, where, in_place)
      along(where, o)
      local attrs = { axis = o.axis }
      for _, param in ipairs(more or {}) do attrs[param[1]] = o[param[1]] end
      return call(operator, { o.x, o.index, source(where, o) }, attrs, in_place)
    end)
  end

  ---x with `y[index[i][j]][j] = src[i][j]` for axis 1, `y[i][index[i][j]] = src[i][j]` for axis 2, and likewise for
  ---other ranks; src is a tensor at least as large as index, or a number. Of equal places the last one stays.
  ---`x:scatter(index, src, axis)` or, as in PyTorch, `x:scatter(axis, index, src)`.
  ---@param x perigee.Tensor
  ---@param index perigee.Tensor int64 or int32, from 0
  ---@param src perigee.Tensor|number
  ---@param axis integer
  ---@return perigee.Tensor
  scatter("scatter", "scatter")
  ---The same, adding to what stands there; equal places add up.
  ---@param x perigee.Tensor
  ---@param index perigee.Tensor from 0
  ---@param src perigee.Tensor|number
  ---@param axis integer
  ---@return perigee.Tensor
  scatter("scatter_add", "scatter_add")
  ---The same, reducing with what stands there: `reduce` is "sum", "prod", "mean", "amax" or "amin". With
  ---`include_self=false` x's own elements take no part where src's come.
  ---@param x perigee.Tensor
  ---@param index perigee.Tensor from 0
  ---@param src perigee.Tensor|number
  ---@param axis integer
  ---@param reduce "sum"|"prod"|"mean"|"amax"|"amin"
  ---@param include_self? boolean
  ---@return perigee.Tensor
  scatter("scatter_reduce", "scatter_reduce", {
    { "reduce", "string", required = true, choices = { "sum", "prod", "mean", "amax", "amin" } },
    { "include_self", "boolean", default = true } })

  -- ---- slices along an axis ----

  local function slices(name, f)
    local params = { { "index", "any", required = true }, { "src", "any", alias = "source" }, { "axis", "any" } }
    if name == "index_add" then params[4] = { "alpha", "number", default = 1 } end
    both(name, params, function(o, where, in_place)
      along(where, o)
      if rank(o.index) > 1 then
        native.raise("invalid_argument", where, ("index is %s; expected one axis"):format(tostring(o.index.shape)))
      end
      local x, axis = o.x, o.axis
      local index = rank(o.index) == 0 and o.index:reshape(1) or o.index
      if rank(x) == 0 then -- as one of size 1
        local y = (in_place and x or x:clone()):unsqueeze(1)
        call("index_put", { y, { index }, f(o, where, y, index) }, { axis = 1, accumulate = name == "index_add" }, true)
        return in_place and x or y:squeeze(1)
      end
      return call("index_put", { x, { index }, f(o, where, x, index) },
                  { axis = axis, accumulate = name == "index_add" }, in_place)
    end)
  end

  local function slices_of(o, where, x, index)
    local src = want_tensor(where, "source", o.src)
    local want = x.shape
    want[o.axis] = size(index, 1)
    if rank(src) == 0 and rank(x) == 1 and want[1] == 1 then src = src:unsqueeze(1) end
    if native.tensor.shapes_differ(src.shape, want) then
      native.raise("invalid_argument", where, ("source is %s; expected %s, an entry of index a slice"):format(
                     tostring(src.shape), tostring(want)))
    end
    return src
  end

  ---x with `alpha` times each slice of source added at its index along an axis; equal indices add up.
  ---`x:index_add(index, source, axis)` or, as in PyTorch, `x:index_add(axis, index, source)`.
  ---@param x perigee.Tensor
  ---@param index perigee.Tensor [n], from 0
  ---@param source perigee.Tensor x with n slices along the axis
  ---@param axis integer
  ---@param alpha? number
  ---@return perigee.Tensor
  slices("index_add", function(o, where, x, index)
    local src = slices_of(o, where, x, index)
    return o.alpha == 1 and src or (src * o.alpha):to(x.dtype)
  end)
  ---x with each slice of source written at its index along an axis; of equal indices the last one stays.
  ---@param x perigee.Tensor
  ---@param index perigee.Tensor [n], from 0
  ---@param source perigee.Tensor x with n slices along the axis
  ---@param axis integer
  ---@return perigee.Tensor
  slices("index_copy", slices_of)
  ---x with a number (or 0-dim tensor) written in the slices at the indices along an axis.
  ---@param x perigee.Tensor
  ---@param index perigee.Tensor [n], from 0
  ---@param value number|perigee.Tensor
  ---@param axis integer
  ---@return perigee.Tensor
  slices("index_fill", function(o, where, x)
    if not is_tensor(o.src) then return number(x, o.src) end
    if rank(o.src) > 0 then
      native.raise("invalid_argument", where, ("the value is %s; expected a number"):format(tostring(o.src.shape)))
    end
    return o.src:to(x.dtype)
  end)

  -- ---- flat ----

  local read_take = native.signature("take", { { "x", "tensor", required = true },
                                               { "index", "tensor", required = true } })
  ---The elements at the indices of flat x, in the shape of index.
  ---@param x perigee.Tensor
  ---@param index perigee.Tensor from 0
  ---@return perigee.Tensor
  function pg.take(...)
    local o = read_take(...)
    return call("index_select", { o.x:reshape(-1), o.index:reshape(-1) }, { axis = 1 }):reshape(o.index.shape)
  end
  native.methods.take = pg.take

  ---x with values written (or added) at the indices of flat x.
  ---@param x perigee.Tensor
  ---@param index perigee.Tensor from 0
  ---@param values perigee.Tensor|number as many as index has
  ---@param accumulate? boolean
  ---@return perigee.Tensor
  both("put", { { "index", "tensor", required = true }, { "values", "any", required = true },
                { "accumulate", "boolean", default = false } }, function(o, where, in_place)
    local values = is_tensor(o.values) and o.values:reshape(-1) or number(o.x, o.values)
    if is_tensor(o.values) and tensor.sizes_differ(o.values:numel(), o.index:numel()) then
      native.raise("invalid_argument", where, ("values are %s and index %s; expected as many"):format(
                     tostring(o.values.shape), tostring(o.index.shape)))
    end
    local flat = o.x:reshape(-1)
    local direct = in_place and o.x:is_contiguous()
    local y = call("index_put", { flat, { o.index:reshape(-1) }, values }, { axis = 1, accumulate = o.accumulate },
                   direct)
    if direct then return o.x end
    y = y:reshape(o.x.shape)
    return in_place and o.x:copy_(y) or y
  end)

  ---x with the elements of source, in row-major order, where mask (which broadcasts to x) is true. source has at least
  ---as many elements as the mask selects.
  ---@param x perigee.Tensor
  ---@param mask perigee.Tensor bool
  ---@param source perigee.Tensor
  ---@return perigee.Tensor
  both("masked_scatter", { { "mask", "tensor", required = true }, { "source", "tensor", required = true } },
    function(o, _, in_place)
      local x, mask, from = o.x, o.mask, o.source:reshape(-1)
      if mask.dtype ~= "bool" then
        native.raise("invalid_argument", "masked_scatter", ("mask is %s; expected bool"):format(mask.dtype))
      end
      mask = mask:expand(x.shape)
      local y = x
      if x:numel() ~= 0 and (size(from, 1) ~= 0 or mask:any():item()) then
        local flat = mask:reshape(-1)
        local place = pg.where(flat, flat:cumsum(1) - 1, 0)
        y = pg.where(mask, call("index_select", { from, place }, { axis = 1 }):reshape(x.shape), x)
      end
      return in_place and x:copy_(y) or y
    end)
end
