-- SPDX-License-Identifier: Apache-2.0
-- Methods on tensors that the operators do not give by themselves: asking, moving between devices and dtypes, and the
-- views built on permute and reshape.

return function(pg, native)
  local methods, tensor, call = native.methods, native.tensor, native.call
  local rank, size, define = tensor.rank, tensor.size, tensor.define

  -- Defines a method and the function pg[name].
  local function both(name, f)
    define(name, f)
    pg[name] = methods[name]
  end

  ---An axis from 1, made positive; raises. `extra` allows one beyond the last (unsqueeze, stack).
  local function axis_of(where, t, axis, extra)
    local last = rank(t) + (extra or 0)
    if type(axis) ~= "number" or axis ~= math.floor(axis) then
      native.raise("invalid_argument", where, "axis must be a whole number, got " .. native.describe(axis))
    end
    if axis == 0 then
      native.raise("invalid_argument", where, "axis is 0, but axes count from 1", "the first axis is 1, the last -1")
    end
    if axis > last or axis < -last then
      native.raise("invalid_argument", where,
                   ("axis %d is out of range for a tensor %s; expected 1..%d or -%d..-1"):format(
                     axis, tostring(t.shape), last, last))
    end
    return axis > 0 and axis or last + 1 + axis
  end
  tensor.axis_of = axis_of

  -- ---- asking ----

  ---Number of axes.
  ---@return integer
  define("dim", function(t) return rank(t) end)
  ---How many elements there are.
  ---@return integer
  define("numel", function(t) return native.host.numel(t) end)
  ---The size of an axis, or the shape.
  ---@param axis? integer
  ---@return integer|integer[]
  define("size", function(t, axis)
    if axis == nil then return t.shape end
    return size(t, axis_of("size", t, axis))
  end)
  ---Elements between neighbours along each axis.
  ---@return integer[]
  define("stride", function(t) return tensor.strides(t) end)
  ---The one element as a Lua number or boolean.
  ---@return number|boolean
  define("item", native.host.item)
  ---The one element of an integer tensor as a 64-bit integer.
  ---@return integer
  define("item_int64", native.host.item_int64)

  ---Nested Lua tables of the elements; a number for a 0-dim tensor.
  ---@return any
  define("totable", function(t)
    local shape, flat = t.shape, native.host.flat(t, "totable")
    if #shape == 0 then return flat[1] end
    local at = 0
    local function build(axis)
      local list = {}
      for i = 1, shape[axis] do
        if axis == #shape then
          at = at + 1
          list[i] = flat[at]
        else
          list[i] = build(axis + 1)
        end
      end
      return list
    end
    return build(1)
  end)

  ---Whether the shape is this: `t:has_shape{2, 3}`.
  ---@param ... integer|integer[]
  ---@return boolean
  define("has_shape", function(t, ...)
    local expected = select("#", ...) == 1 and type((...)) == "table" and (...) or { ... }
    if #expected ~= rank(t) then return false end
    for i, d in ipairs(expected) do
      if size(t, i) ~= d then return false end
    end
    return true
  end)

  ---The contents of an index tensor as Lua numbers that count from 1.
  ---@return integer[]
  define("positions", function(t)
    if not native.dtypes.by_name[t.dtype].integer then
      native.raise("invalid_argument", "positions", "needs an integer tensor, got " .. t.dtype)
    end
    local flat, n = native.host.flat(t, "positions")
    for i = 1, n do flat[i] = flat[i] + 1 end
    return flat
  end)

  local formats = require "perigee.native.formats"
  local read_asked = native.signature("is_contiguous", {
    { "memory_format", "string", named = true, default = "contiguous", choices = formats.ORDERS } })
  ---Whether the elements lie in memory one after the other, in the order of the axes or in that of a memory format.
  ---@param options? {memory_format?: "contiguous"|"channels_last"|"channels_last_3d"}
  ---@return boolean
  define("is_contiguous", function(t, ...)
    local format = select("#", ...) > 0 and read_asked(...).memory_format or "contiguous"
    if format == "contiguous" then
      return native.is_graph_tensor(t) or tensor.is_dense(t) -- values of a graph have no layout of their own
    end
    if native.is_graph_tensor(t) then
      native.raise("failed_precondition", "is_contiguous", "the order of axes is not known in a graph")
    end
    return formats.lies_in(t, format)
  end)

  -- ---- moving ----

  local run_cast, cast, cast_struct = native.prepare("cast")

  local read_to = native.signature("to", {
    { "device", "device" }, { "dtype", "dtype" },
    { "memory_format", "string", named = true, choices = formats.ALL } })
  -- Apart: a function with closures is not compiled.
  local function to_any(t, target, second)
    local device, dtype, format
    local function take(v)
      if v == nil then return end
      if native.is_tensor(v) then device, dtype = v.device, v.dtype
      elseif type(v) == "string" and native.dtypes.by_name[v] then dtype = native.dtypes.by_name[v].name
      elseif formats.is_name(v) then
        native.raise("invalid_argument", "to", ("%q is a memory format"):format(v),
                     ("t:to{memory_format=%q}"):format(v))
      elseif type(v) == "string" and (v:find("^torch%.") or not v:find("%d:") and native.dtypes.meant(v)) then
        native.dtypes.find(v, "to")
      elseif type(v) == "string" then device = v
      else native.raise("invalid_argument", "to", "needs a device or a dtype, got " .. native.describe(v)) end
    end
    if type(target) == "table" then
      local o = read_to(target)
      device, dtype, format = o.device, o.dtype, o.memory_format
    else
      take(target)
      take(second)
    end
    if not (device or dtype or format) then
      native.raise("invalid_argument", "to", "needs a device or a dtype, got nothing")
    end
    if format then formats.check("to", t, format) end
    if dtype and dtype ~= t.dtype then t = call("cast", { t }, { dtype = dtype }) end
    if device then
      local number = native.place_device(device, "to")
      if native.device_name(number) ~= t.device then t = call("transfer", { t }, { device = number }) end
    end
    return format and formats.arrange("to", t, format) or t
  end

  ---Another device, dtype or order of axes in memory: `t:to("cuda:0")`, `t:to("bfloat16")`,
  ---`t:to{device="cpu", dtype="float32"}`, `t:to(other)`, `t:to{memory_format="channels_last"}`.
  ---@param target string|perigee.Tensor|{device?: string, dtype?: perigee.Dtype, memory_format?: perigee.MemoryFormat}
  ---@param second? string
  ---@return perigee.Tensor
  define("to", function(t, target, second)
    local known = second == nil and type(target) == "string" and native.dtypes.by_name[target]
    if not known or known.complex then return to_any(t, target, second) end
    if known == tensor.dtype(t) then return t end
    cast.dtype[0] = known.code
    return cast_struct and run_cast(t)
  end)
  ---The same on the processor: x:to("cpu").
  ---@return perigee.Tensor
  define("cpu", function(t)
    if t.device == "cpu:0" then return t end
    return t:to("cpu")
  end)
  ---x:to("float32").
  ---@return perigee.Tensor
  define("float", function(t) return t:to "float32" end)
  ---x:to("float64").
  ---@return perigee.Tensor
  define("double", function(t) return t:to "float64" end)
  ---x:to("float16").
  ---@return perigee.Tensor
  define("half", function(t) return t:to "float16" end)
  ---x:to("int64").
  ---@return perigee.Tensor
  define("long", function(t) return t:to "int64" end)
  ---x:to("int32").
  ---@return perigee.Tensor
  define("int", function(t) return t:to "int32" end)
  local read_wanted = native.signature("contiguous", {
    { "memory_format", "string", named = true, default = "contiguous", choices = formats.ORDERS } })
  ---The tensor itself when its elements lie in row-major order, or in the order of a memory format, else a copy that
  ---does.
  ---@param options? {memory_format?: "contiguous"|"channels_last"|"channels_last_3d"}
  ---@return perigee.Tensor
  define("contiguous", function(t, ...)
    local format = select("#", ...) > 0 and read_wanted(...).memory_format or "contiguous"
    return formats.arrange("contiguous", t, format)
  end)
  ---The same memory without history.
  ---@param t perigee.Tensor
  ---@return perigee.Tensor
  both("detach", native.detach)

  ---Releases the tensor's memory now. Using it afterwards is an error.
  methods.free = function(t)
    tensor.check_open(t, "free")
    native.handles.close(t)
  end

  -- Writes a number or a boolean into all of t.
  local function write_number(where, t, value)
    native.dtypes.check_number(where, value, tensor.dtype(t))
    if type(value) == "boolean" then value = value and 1 or 0 end
    if type(value) ~= "number" then -- a whole one of LuaJIT's own types
      local filled = native.call("filled", { t }, { value = value }, true, where)
      return filled
    end
    tensor.writer.fill(t, value, where)
    return t
  end

  ---Writes a tensor's elements, or a number, into x; the source broadcasts and is converted to x's dtype.
  ---@param source perigee.Tensor|number|boolean
  ---@return perigee.Tensor
  define("copy_", function(t, source)
    if type(source) == "number" or type(source) == "boolean" then return write_number("copy_", t, source) end
    if not native.is_tensor(source) then
      native.raise("invalid_argument", "copy_", "source must be a tensor or a number, got " .. native.describe(source))
    end
    tensor.check_open(source, "copy")
    tensor.writer.copy(t, source, "copy")
    return t
  end)
  ---Writes a number into every element.
  ---@param value number|boolean
  ---@return perigee.Tensor
  define("fill_", function(t, value)
    if type(value) ~= "number" and type(value) ~= "boolean" and not native.is_whole(value) then
      native.raise("invalid_argument", "fill_", "value must be a number, got " .. native.describe(value))
    end
    return write_number("fill_", t, value)
  end)
  ---Writes 0 into every element.
  ---@return perigee.Tensor
  define("zero_", function(t)
    tensor.writer.fill(t, 0, "zero_")
    return t
  end)

  -- ---- views ----

  local OTHER = { { "other", "tensor", required = true } }

  ---As reshape: the same elements in another shape, of which one size may be -1.
  ---@param ... integer|integer[]
  ---@return perigee.Tensor
  define("view", function(t, ...) return t:reshape(...) end)
  ---The same elements in the shape of `other`.
  ---@param other perigee.Tensor
  ---@return perigee.Tensor
  define("reshape_as", function(t, other) return t:reshape(other.shape) end, OTHER)
  ---A view in the shape of `other`, to which x broadcasts.
  ---@param other perigee.Tensor
  ---@return perigee.Tensor
  define("expand_as", function(t, other) return t:expand(other.shape) end, OTHER)
  ---As reshape_as: the same elements in the shape of `other`.
  ---@param other perigee.Tensor
  ---@return perigee.Tensor
  define("view_as", function(t, other) return t:reshape(other.shape) end, OTHER)

  local run_permute, permuted, permute_struct = native.prepare("permute")
  local order = permuted.axes
  -- All eight, for any number of axes: no loop.
  local function put_in_order(value)
    value[0], value[1], value[2], value[3], value[4], value[5], value[6], value[7] = 0, 1, 2, 3, 4, 5, 6, 7
  end

  local read_transpose = native.signature("transpose", {
    { "a", "axis", required = true }, { "b", "axis", required = true } })
  ---Swaps two axes.
  ---@param t perigee.Tensor
  ---@param a integer
  ---@param b integer
  ---@return perigee.Tensor
  both("transpose", function(t, ...)
    local a, b = ...
    if select("#", ...) ~= 2 or type(a) ~= "number" or type(b) ~= "number" then
      local o = read_transpose(...)
      a, b = o.a, o.b
    end
    a, b = axis_of("transpose", t, a), axis_of("transpose", t, b)
    local count = rank(t)
    order.count = count
    put_in_order(order.value)
    order.value[a - 1], order.value[b - 1] = b - 1, a - 1
    return permute_struct and run_permute(t)
  end)

  ---A matrix transposed; tensors of less than two axes as they are.
  ---@param t perigee.Tensor
  ---@return perigee.Tensor
  both("t", function(t)
    if rank(t) > 2 then
      native.raise("invalid_argument", "t", ("needs at most 2 axes, got %s"):format(tostring(t.shape)),
                   "use transpose(a, b)")
    end
    return rank(t) == 2 and t:transpose(1, 2) or t
  end)
  ---The last two axes exchanged, a view.
  ---@return perigee.Tensor
  define("mT", function(t) return t:transpose(-2, -1) end)

  local read_flatten = native.signature("flatten", {
    { "first", "axis", default = 1 }, { "last", "axis", default = -1 } })
  ---Joins the axes from first to last.
  ---@return perigee.Tensor
  both("flatten", function(t, ...)
    local o = read_flatten(...)
    if rank(t) == 0 then return t:reshape(1) end
    local first, last = axis_of("flatten", t, o.first), axis_of("flatten", t, o.last)
    if first > last then
      native.raise("invalid_argument", "flatten", ("first axis %d is behind last axis %d"):format(first, last))
    end
    local shape, joined = {}, 1
    for i = 1, rank(t) do
      local d = size(t, i)
      if i < first or i > last then
        shape[#shape + 1] = d
      else
        joined = (type(d) == "number" and joined ~= -1) and joined * d or -1
        if i == last then shape[#shape + 1] = joined end
      end
    end
    return t:reshape(shape)
  end)

  local read_movedim = native.signature("movedim", {
    { "from", "any", required = true, type = "integer|integer[]" },
    { "to", "any", required = true, type = "integer|integer[]" } })
  ---Moves axes to new places: `x:movedim(1, -1)`, `x:movedim({1, 2}, {2, 1})`.
  ---@param t perigee.Tensor
  ---@param from integer|integer[]
  ---@param to integer|integer[]
  ---@return perigee.Tensor
  both("movedim", function(t, ...)
    local o = read_movedim(...)
    local from, to = o.from, o.to
    from, to = type(from) == "table" and from or { from }, type(to) == "table" and to or { to }
    if #from ~= #to then native.raise("invalid_argument", "movedim", "as many targets as sources are needed") end
    local axes, taken = {}, {}
    for i = 1, #from do
      local source = axis_of("movedim", t, from[i])
      axes[axis_of("movedim", t, to[i])], taken[source] = source, true
    end
    local next_free = 1
    for i = 1, rank(t) do
      if not axes[i] then
        while taken[next_free] do next_free = next_free + 1 end
        axes[i], taken[next_free] = next_free, true
      end
    end
    return call("permute", { t }, { axes = axes })
  end)
end
