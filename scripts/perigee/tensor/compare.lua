-- SPDX-License-Identifier: Apache-2.0
-- Comparing whole tensors, and functions whose result depends on how they are called: max, min, where.

return function(pg, native)
  local call, tensor, define = native.call, native.tensor, native.tensor.define

  local instead = { equal = "a:eq(b):all()", allclose = "a:isclose(b):all()" }
  local function need_contents(where, ...)
    for _, t in ipairs { ... } do
      native.host.need_contents(where, t, instead[where] .. " is a tensor of the graph that says the same")
    end
  end

  local read_equal = native.signature("equal", {
    { "a", "tensor", required = true }, { "b", "tensor", required = true } })
  ---Whether shapes, dtypes and all elements are the same.
  ---@param a perigee.Tensor
  ---@param b perigee.Tensor
  ---@return boolean
  function pg.equal(...)
    local o = read_equal(...)
    local a, b = o.a, o.b
    tensor.check_open(a, "equal")
    tensor.check_open(b, "equal")
    need_contents("equal", a, b)
    if a.shape ~= b.shape or a.dtype ~= b.dtype then return false end
    return pg.no_grad(function() return a:eq(b):all():item() end)
  end

  local read_close = native.signature("isclose", {
    { "a", "tensor", required = true }, { "b", "tensor", required = true }, { "rtol", "number", default = 1e-5 },
    { "atol", "number", default = 1e-8 }, { "equal_nan", "boolean", default = false } })

  local function close(o)
    local a, b = o.a:to("float64"), o.b:to("float64")
    local off = (a - b):abs()
    local near = off:le(b:abs() * o.rtol + o.atol):logical_and(off:isfinite()):logical_or(a:eq(b))
    if o.equal_nan then near = near:logical_or(a:isnan():logical_and(b:isnan())) end
    return near
  end

  ---Whether |a - b| <= atol + rtol * |b|, element by element, after broadcasting; infinities only equal themselves.
  ---@param a perigee.Tensor
  ---@param b perigee.Tensor
  ---@param options? { rtol?: number, atol?: number, equal_nan?: boolean }
  ---@return perigee.Tensor close bool
  function pg.isclose(...)
    local o = read_close(...)
    return pg.no_grad(function() return close(o) end)
  end

  local read_allclose = native.signature("allclose", {
    { "a", "tensor", required = true }, { "b", "tensor", required = true }, { "rtol", "number", default = 1e-5 },
    { "atol", "number", default = 1e-8 }, { "equal_nan", "boolean", default = false } })

  ---Whether `isclose` holds everywhere.
  ---@return boolean
  function pg.allclose(...)
    local o = read_allclose(...)
    need_contents("allclose", o.a, o.b)
    return pg.no_grad(function() return close(o):all():item() end)
  end

  native.methods.equal, native.methods.allclose, native.methods.isclose = pg.equal, pg.allclose, pg.isclose

  -- Positions of largest and smallest; of booleans those of 1 and 0. `axis` from 1, or nil: of all elements; `kept`: 1
  -- or 0.
  local function finder(operator, where)
    local find, attributes, struct = native.prepare(operator, nil, where)
    return function(x, axis, kept)
      if x.dtype == "bool" then x = x:to("uint8") end
      if axis then axis = tensor.axis_of(where, x, axis) - 1 end
      attributes.axis[0], attributes.flat[0], attributes.keepdim[0] = axis or 0, axis and 0 or 1, kept
      return struct and find(x)
    end
  end

  -- max(x) over all; max(x, axis) values and positions (contents from 0); max(x, y) elementwise.
  local note = native.note_results
  local function extreme(name, reduce, position, elementwise)
    local read = native.signature(name, { { "axis", "any", type = "integer|perigee.Tensor" },
                                          { "keepdim", "boolean", default = false } })
    local run_all, _, all = native.prepare(reduce, nil, name)
    local run, attributes, struct = native.prepare(reduce, nil, name)
    local find = finder(position, name)
    -- Along one axis, from 1, which is kept (1) or not (0).
    local function along(x, axis, kept)
      attributes.axes.count, attributes.keepdim[0] = 1, kept
      attributes.axes.value[0] = tensor.axis_of(name, x, axis) - 1
      local values = struct and run(x)
      return note(name, values, find(x, axis, kept))
    end
    define(name, function(x, ...)
      local axis = ...
      local count = select("#", ...)
      if count == 0 then return all and run_all(x) end
      if type(axis) == "number" and count == 1 then return along(x, axis, 0) end
      local o = read(...)
      if native.is_tensor(o.axis) then return call(elementwise, { x, o.axis }) end
      if o.axis == nil then return call(reduce, { x }, nil, false, name) end
      return along(x, o.axis, o.keepdim and 1 or 0)
    end)
    pg[name] = native.methods[name]
  end
  ---The largest element of all; with an axis, the values along it and their positions, contents from 0; of two tensors,
  ---the larger elements.
  ---@param x perigee.Tensor
  ---@param ... any an axis, another tensor, or {axis=, keepdim=}
  ---@return perigee.Tensor values
  ---@return perigee.Tensor? positions where an axis was given
  extreme("max", "amax", "argmax", "maximum")
  ---The least element of all; with an axis, the values along it and their positions, contents from 0; of two tensors,
  ---the smaller elements.
  ---@param x perigee.Tensor
  ---@param ... any an axis, another tensor, or {axis=, keepdim=}
  ---@return perigee.Tensor values
  ---@return perigee.Tensor? positions where an axis was given
  extreme("min", "amin", "argmin", "minimum")

  -- A size of a graph as a tensor that bounds x.
  local function as_bound(v, x)
    return native.size.is(v) and pg.full({ {}, v, dtype = x.dtype, device = x.device }) or v
  end

  -- clamp: the operator, which would take no bounds at all, and bounds that are tensors.
  local function clamp(name)
    local read = native.signature(name, {
      { "x", "tensor", required = true }, { "min", "single" }, { "max", "single" } })
    local in_place, run = name == "clamp_", nil
    local function f(...)
      local _, min, max = ...
      if type(min) == "number" and (max == nil or type(max) == "number") then
        run = run or native.op(name)
        return run(...)
      end
      local o = read(...)
      o.min, o.max = as_bound(o.min, o.x), as_bound(o.max, o.x)
      if o.min == nil and o.max == nil then
        native.raise("invalid_argument", name, "needs min, max or both", "x:clamp(0, 1), x:clamp{min=0}")
      end
      if not native.is_tensor(o.min) and not native.is_tensor(o.max) then
        return call("clamp", { o.x }, { min = o.min, max = o.max }, in_place)
      end
      local y = o.x
      if o.min ~= nil then y = pg.maximum(y, o.min) end
      if o.max ~= nil then y = pg.minimum(y, o.max) end
      return in_place and o.x:copy_(y) or y
    end
    native.methods[name] = f
    if not in_place then pg[name] = f end
  end
  ---x limited to [min, max], either of which may be left out, and be a tensor that broadcasts with x.
  ---@param x perigee.Tensor
  ---@param min? number|perigee.Tensor
  ---@param max? number|perigee.Tensor
  ---@return perigee.Tensor
  clamp("clamp")
  clamp("clamp_")

  -- The operator wants `flat` beside an axis; users give an axis or none.
  local function arg_extreme(name)
    local read = native.signature(name, { { "axis", "axis" }, { "keepdim", "boolean", default = false } })
    local find = finder(name, name)
    define(name, function(x, ...)
      local axis = ...
      if type(axis) == "number" and select("#", ...) == 1 then return find(x, axis, 0) end
      local o = read(...)
      return find(x, o.axis, o.keepdim and 1 or 0)
    end)
    pg[name] = native.methods[name]
  end
  ---Where the largest element stands along an axis, or in the flattened tensor: contents from 0, int64.
  ---@return perigee.Tensor
  arg_extreme("argmax")
  ---Where the least element stands along an axis, or in the flattened tensor: contents from 0, int64.
  ---@return perigee.Tensor
  arg_extreme("argmin")

  -- Numbers beside each other, and booleans, as tensors: of the default dtype, or bool.
  local function is_scalar(v) return type(v) == "number" or type(v) == "boolean" end
  local function scalar(v, condition)
    return is_scalar(v) and pg.tensor(v, { device = condition.device }) or v
  end

  local run_where -- the operator's function, once it has been asked for
  local VALUE = "perigee.Tensor|number|boolean"
  local read_where = native.signature("where", {
    { "condition", "tensor", required = true }, { "x", "single", type = VALUE, doc = "where it is true" },
    { "y", "single", type = VALUE, doc = "where it is false" } })
  ---`condition:where(x, y)`: x where the condition is true, else y. `condition:where()`: positions of the true
  ---elements, [n, rank], contents from 0.
  ---@return perigee.Tensor
  define("where", function(...)
    local count, condition, x, y = select("#", ...), ...
    if count == 1 then return condition:nonzero() end
    run_where = run_where or native.op("where")
    if count == 2 and native.is_plain(x) then
      local o = read_where(condition, x)
      return condition:where(o.x, o.y)
    end
    if native.is_tensor(x) and condition.dtype ~= "bool" and x.dtype == "bool" then
      native.raise("invalid_argument", "where", ("condition is %s; expected bool"):format(condition.dtype),
                   "condition:where(x, y): the condition comes first")
    end
    if count == 3 and (type(x) == "boolean" or type(y) == "boolean" or is_scalar(x) and is_scalar(y)) then
      return run_where(condition, scalar(x, condition), scalar(y, condition))
    end
    return run_where(...)
  end)
  ---`where(condition, x, y)`: x where true, else y. `where(condition)`: positions of the true elements, [n, rank],
  ---contents from 0.
  ---@param condition perigee.Tensor bool
  ---@return perigee.Tensor
  function pg.where(...) return native.methods.where(...) end
end
