-- SPDX-License-Identifier: Apache-2.0
-- Functions that make tensors, in every form of their calls. Calls of numbers alone end in the plain_ files, which come
-- here with all others.

local OPTIONS = { { "dtype", "dtype", named = true }, { "device", "device", named = true },
                  { "requires_grad", "boolean", named = true } }

jit.off(true, true) -- walks option tables with next, which cannot be compiled; attempts at it thrash

return function(pg, native)
  local call, creators = native.call, {}
  native.tensor.creators = creators

  -- Runs fn(...) with `device` (a name or nil) in force.
  local function on(device, where, fn, ...)
    if not device then return fn(...) end
    local number = native.place_device(device, where)
    return native.with(function() return native.set_device(number) end, native.set_device, fn, ...)
  end

  local function finish(t, o)
    if o.requires_grad then t.requires_grad = true end
    return t
  end

  -- Defines a function: parameters, then the common options; make(o) gives the tensor.
  local function creator(name, params, make)
    for _, option in ipairs(OPTIONS) do params[#params + 1] = option end
    local read = native.signature(name, params)
    creators[name] = function(...)
      local o = read(...)
      return finish(on(o.device, name, make, o), o)
    end
  end

  local function default(o) return o.dtype or native.default_dtype() end

  local function check_sizes(where, shape)
    for i, d in ipairs(shape) do
      if type(d) == "number" and d < 0 then
        native.raise("invalid_argument", where, ("size %d of axis %d is negative"):format(d, i))
      end
    end
    return shape
  end

  local function fill(where, shape, value, dtype)
    return call("fill", {}, { shape = check_sizes(where, shape), value = value, dtype = dtype }, false, where)
  end

  local function shape_param() return { "shape", "list", required = true } end

  ---Zeros: `pg.zeros(2, 3)`, `pg.zeros{2, 3, dtype="int64"}`.
  ---@param ... integer|integer[]|{dtype: string?, device: string?, requires_grad: boolean?}
  ---@return perigee.Tensor
  creator("zeros", { shape_param() }, function(o) return fill("zeros", o.shape, 0, default(o)) end)
  ---Ones: `pg.ones{2, 3}`.
  ---@return perigee.Tensor
  creator("ones", { shape_param() }, function(o) return fill("ones", o.shape, 1, default(o)) end)
  ---Memory whose contents mean nothing yet. (It is zeroed.)
  ---@return perigee.Tensor
  creator("empty", { shape_param() }, function(o) return fill("empty", o.shape, 0, default(o)) end)

  -- A value of a script's, of which a dtype must be able to say it.
  local function filled(where, shape, value, dtype)
    if type(value) == "boolean" then value = value and 1 or 0 end
    if native.size.is(value) then return fill(where, shape, 0, dtype) + value end
    if type(value) ~= "number" and not native.is_whole(value) then
      native.raise("invalid_argument", where, "value must be a number or a boolean, got " .. native.describe(value))
    end
    native.dtypes.check_number(where, value, native.dtypes.find(dtype, where))
    return fill(where, shape, value, dtype)
  end

  ---Every element `value`: `pg.full({2, 3}, 7)`. A boolean gives bool.
  ---@return perigee.Tensor
  creator("full", { shape_param(), { "value", "any", required = true, type = "number|boolean" } }, function(o)
    return filled("full", o.shape, o.value, o.dtype or type(o.value) == "boolean" and "bool" or default(o))
  end)

  local formats = require "perigee.native.formats"

  -- A tensor of x's shape that lies as x does.
  local function lying_like(x, dtype, device, t)
    local made = x:detach():clone():to(dtype)
    if device ~= made.device then made = made:to(device) end
    return made:copy_(t)
  end

  -- ..._like: the shape, and unless given the dtype, the device and the order of axes of another tensor. Random numbers
  -- are row-major unless told otherwise: the number at a place does not depend on how x lies.
  local function like(name, make, drawn)
    local params = { { "x", "tensor", required = true }, { "value", "any" } }
    if name ~= "full_like" then params[2] = nil end
    params[#params + 1] = { "memory_format", "string", named = true, default = drawn and "contiguous" or "preserve",
                            choices = formats.ALL }
    creator(name, params, function(o)
      local x, format, device, dtype = o.x, o.memory_format, o.device or o.x.device, o.dtype or o.x.dtype
      formats.check(name, x, format)
      local made = on(device, name, make, x.shape, dtype, o.value)
      if native.is_graph_tensor(made) then return made end
      if format ~= "preserve" then return formats.arrange(name, made, format) end
      if native.is_graph_tensor(x) or native.tensor.is_dense(x) then return made end
      return pg.no_grad(lying_like, x, dtype, made.device, made)
    end)
  end
  ---Zeros in x's shape, in x's dtype and on its device if not told otherwise.
  ---@param x perigee.Tensor
  ---@param options? {dtype?: perigee.Dtype, device?: string, requires_grad?: boolean, memory_format?: string}
  ---@return perigee.Tensor
  like("zeros_like", function(shape, dtype) return fill("zeros_like", shape, 0, dtype) end)
  ---Ones in x's shape, in x's dtype and on its device if not told otherwise.
  ---@param x perigee.Tensor
  ---@param options? {dtype?: perigee.Dtype, device?: string, requires_grad?: boolean, memory_format?: string}
  ---@return perigee.Tensor
  like("ones_like", function(shape, dtype) return fill("ones_like", shape, 1, dtype) end)
  ---A tensor of x's shape whose contents do not matter, in x's dtype and on its device if not told otherwise.
  ---@param x perigee.Tensor
  ---@param options? {dtype?: perigee.Dtype, device?: string, requires_grad?: boolean, memory_format?: string}
  ---@return perigee.Tensor
  like("empty_like", function(shape, dtype) return fill("empty_like", shape, 0, dtype) end)
  ---A tensor of x's shape filled with `value`, in x's dtype and on its device if not told otherwise.
  ---@param x perigee.Tensor
  ---@param value number|boolean
  ---@param options? {dtype?: perigee.Dtype, device?: string, requires_grad?: boolean, memory_format?: string}
  ---@return perigee.Tensor
  like("full_like", function(shape, dtype, value)
    if value == nil then native.raise("invalid_argument", "full_like", "argument \"value\" is missing") end
    return filled("full_like", shape, value, dtype)
  end)
  ---Uniform random numbers in [0, 1) in x's shape, in x's dtype and on its device if not told otherwise.
  ---@param x perigee.Tensor
  ---@param options? {dtype?: perigee.Dtype, device?: string, requires_grad?: boolean, memory_format?: string}
  ---@return perigee.Tensor
  like("rand_like", function(shape, dtype)
    return call("uniform", {}, { shape = shape, dtype = dtype }, false, "rand_like")
  end)
  ---Normal random numbers, of mean 0 and variance 1, in x's shape, in x's dtype and on its device if not told
  ---otherwise.
  ---@param x perigee.Tensor
  ---@param options? {dtype?: perigee.Dtype, device?: string, requires_grad?: boolean, memory_format?: string}
  ---@return perigee.Tensor
  like("randn_like", function(shape, dtype)
    return call("normal", {}, { shape = shape, dtype = dtype }, false, "randn_like")
  end)

  ---Uniform random numbers in [0, 1): `pg.rand{2, 3}`.
  ---@return perigee.Tensor
  creator("rand", { shape_param() }, function(o)
    return call("uniform", {}, { shape = check_sizes("rand", o.shape), dtype = default(o) }, false, "rand")
  end)
  ---Normal random numbers, of mean 0 and variance 1: `pg.randn{2, 3}`.
  ---@return perigee.Tensor
  creator("randn", { shape_param() }, function(o)
    return call("normal", {}, { shape = check_sizes("randn", o.shape), dtype = default(o) }, false, "randn")
  end)

  ---Whole numbers from low (included) to high (excluded): `pg.randint(0, 10, {2, 3})`, `pg.randint(10, {2, 3})`.
  ---@return perigee.Tensor
  creator("randint", { { "low", "any", required = true, type = "integer" },
                       { "high", "any", required = true, type = "integer|integer[]" }, { "shape", "list" } },
    function(o)
      if type(o.high) == "table" and not o.shape then o.low, o.high, o.shape = 0, o.low, o.high end
      if not o.shape then native.raise("invalid_argument", "randint", "argument \"shape\" is missing") end
      native.tensor.check_limits("randint", o.low, o.high, o.dtype or "int64")
      return call("randint", {}, { low = o.low, high = o.high, shape = check_sizes("randint", o.shape),
                                   dtype = o.dtype or "int64" })
    end)
  ---The numbers 0 to n-1 in random order.
  ---@return perigee.Tensor
  creator("randperm", { { "n", "size", required = true } }, function(o)
    if native.size.is(o.n) then
      return call("uniform", {}, { shape = { o.n }, dtype = "float64" }):argsort():to(o.dtype or "int64")
    end
    native.tensor.check_limits("randperm", 0, o.n, o.dtype or "int64")
    return call("randperm", {}, { n = o.n, dtype = o.dtype or "int64" })
  end)

  -- A range from or to a size of a graph. Both are whole, and so must the step be.
  local function symbolic_range(start, stop, step, dtype)
    if step ~= math.floor(step) or type(start) == "number" and start ~= math.floor(start) then
      native.raise("invalid_argument", "arange", "start and step must be whole numbers where stop is a size of a graph")
    end
    local length = step > 0 and stop - start or start - stop
    local count = native.size.max((length + (math.abs(step) - 1)) / math.abs(step), 0)
    local offsets = call("arange", {}, { start = 0, stop = 0, step = step, count = { count }, dtype = dtype })
    return start == 0 and offsets or offsets + start
  end

  ---`pg.arange(5)`, `pg.arange(0, 10, 2)`: from start, step by step, stop excluded. int64 if all are whole.
  ---@return perigee.Tensor
  creator("arange", { { "start", "bound", required = true }, { "stop", "bound" }, { "step", "number", default = 1 } },
    function(o)
      local start, stop, step = o.start, o.stop, o.step
      if not stop then start, stop = 0, start end
      if step == 0 then native.raise("invalid_argument", "arange", "step is 0") end
      if native.size.is(start) or native.size.is(stop) then
        return symbolic_range(start, stop, step, o.dtype or "int64")
      end
      local whole = start == math.floor(start) and stop == math.floor(stop) and step == math.floor(step)
      local count = math.max(0, math.ceil((stop - start) / step))
      return call("arange", {}, { start = start, stop = stop, step = step, count = { count },
                                  dtype = o.dtype or (whole and "int64") or native.default_dtype() })
    end)

  ---`count` numbers from first to last, both included. Computed in float64 and rounded once.
  ---@return perigee.Tensor
  creator("linspace", { { "first", "number", required = true }, { "last", "number", required = true },
                        { "count", "size", required = true } }, function(o)
    if native.size.is(o.count) then
      local part = pg.arange(o.count):to("float64") / native.size.max(o.count - 1, 1)
      return (part * (o.last - o.first) + o.first):to(default(o))
    end
    if o.count < 0 then native.raise("invalid_argument", "linspace", "count is negative") end
    return call("spaced", {}, { count = { o.count }, first = o.first, last = o.last, dtype = default(o) }, false,
                "linspace")
  end)

  ---The identity matrix, [n, m] (m defaults to n).
  ---@return perigee.Tensor
  creator("eye", { { "n", "size", required = true }, { "m", "size" } }, function(o)
    local n, m = o.n, o.m or o.n
    if type(n) == "number" and n < 0 or type(m) == "number" and m < 0 then
      native.raise("invalid_argument", "eye", ("sizes must be at least 0, got [%s, %s]"):format(
                     tostring(n), tostring(m)))
    end
    local rows, columns = pg.arange(n), pg.arange(m)
    return call("cast", { rows:unsqueeze(2):eq(columns) }, { dtype = default(o) })
  end)

  for _, name in ipairs { "randint", "rand_like", "randn_like" } do pg[name] = creators[name] end
  for _, name in ipairs { "rand_like", "randn_like" } do native.methods[name] = creators[name] end
end
