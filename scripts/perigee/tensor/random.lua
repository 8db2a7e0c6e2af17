-- SPDX-License-Identifier: Apache-2.0
-- Drawing into tensors that are there, and draws whose parameters are tensors. Which bits are drawn is the same on
-- every device (perigee/kernels/philox.hpp).

return function(pg, native)
  local call, methods, is_tensor = native.call, native.methods, native.is_tensor

  local function bad(where, message, hint) native.raise("invalid_argument", where, message, hint) end

  -- The largest and smallest number of each integer dtype; floats hold whole numbers up to a size.
  local limits = {
    int64 = { -2 ^ 63, 2 ^ 63 }, int32 = { -2 ^ 31, 2 ^ 31 - 1 }, int16 = { -32768, 32767 }, int8 = { -128, 127 },
    uint8 = { 0, 255 }, bool = { 0, 1 }, float64 = { -2 ^ 53, 2 ^ 53 }, float32 = { -2 ^ 24, 2 ^ 24 },
    float16 = { -2 ^ 11, 2 ^ 11 }, bfloat16 = { -2 ^ 8, 2 ^ 8 },
  }
  ---Raises unless a dtype holds the whole numbers from low to high - 1.
  function native.tensor.check_limits(where, low, high, dtype)
    for _, v in ipairs { low, high } do
      if type(v) ~= "number" or v ~= math.floor(v) then
        bad(where, ("limits must be whole numbers, got %s"):format(native.describe(v)))
      end
    end
    local range = limits[native.dtypes.find(dtype, where).name]
    if range and high > low and (low < range[1] or high - 1 > range[2]) then
      bad(where, ("%s does not hold all whole numbers from %.0f to %.0f"):format(dtype, low, high - 1))
    end
  end

  -- A method that fills a tensor with draws of an operator in its shape and dtype; integers get rounded ones.
  local function filler(name, operator, params, check)
    local read = native.signature(name, params)
    methods[name] = function(x, ...)
      native.tensor.check_open(x, name)
      local o = read(...)
      if check then check(o, x) end
      local dtype = native.dtypes.by_name[x.dtype]
      if not dtype.floating and operator ~= "randint" then
        bad(name, ("x is %s; expected a floating dtype"):format(x.dtype))
      end
      local attrs = { shape = x.shape, dtype = x.dtype }
      for _, param in ipairs(params) do attrs[param[1]] = o[param[1]] end
      x:copy_(pg.device(x.device, function() return call(operator, {}, attrs) end))
      return x
    end
  end
  ---Uniform draws from [low, high), into x.
  ---@param x perigee.Tensor
  ---@param low? number
  ---@param high? number
  ---@return perigee.Tensor x
  filler("uniform_", "uniform", { { "low", "number", default = 0 }, { "high", "number", default = 1 } }, function(o)
    if o.low > o.high then bad("uniform_", ("low %g is above high %g"):format(o.low, o.high)) end
  end)
  ---Normal draws, into x.
  ---@param x perigee.Tensor
  ---@param mean? number
  ---@param std? number
  ---@return perigee.Tensor x
  filler("normal_", "normal", { { "mean", "number", default = 0 }, { "std", "number", default = 1 } }, function(o)
    if o.std < 0 then bad("normal_", ("std is %g; expected at least 0"):format(o.std)) end
  end)
  ---Exponential draws of density rate exp(-rate x), into x.
  ---@param x perigee.Tensor
  ---@param rate? number
  ---@return perigee.Tensor x
  filler("exponential_", "exponential", { { "rate", "number", default = 1 } })
  ---Whole numbers from low to high - 1, into x.
  ---@param x perigee.Tensor
  ---@param low integer
  ---@param high integer
  ---@return perigee.Tensor x
  filler("random_", "randint", { { "low", "integer", required = true }, { "high", "integer", required = true } },
         function(o, x) native.tensor.check_limits("random_", o.low, o.high, x.dtype) end)

  ---1 with probability p (a number, or a tensor that broadcasts to x), else 0, into x.
  ---@param x perigee.Tensor
  ---@param p? number|perigee.Tensor
  ---@return perigee.Tensor
  function methods.bernoulli_(x, p)
    native.tensor.check_open(x, "bernoulli_")
    p = p == nil and 0.5 or p
    if type(p) == "table" and not is_tensor(p) then p = p.p or p[1] end
    if type(p) == "number" then p = pg.full({ {}, p, dtype = "float64", device = x.device }) end
    if not is_tensor(p) then bad("bernoulli_", "p must be a number or a tensor, got " .. native.describe(p)) end
    return x:copy_(call("bernoulli", { p:expand(x.shape) }))
  end

  local read_normal = native.signature("normal", {
    { "mean", "any", default = 0 }, { "std", "any", default = 1 }, { "shape", "list" },
    { "dtype", "dtype", named = true }, { "device", "device", named = true } })
  ---Normal draws: of numbers `mean` and `std` in a shape, or of tensors of them, which broadcast.
  ---@param mean? number|perigee.Tensor
  ---@param std? number|perigee.Tensor
  ---@param shape? integer[]
  ---@return perigee.Tensor
  function pg.normal(...)
    local o = read_normal(...)
    for _, name in ipairs { "mean", "std" } do
      if not is_tensor(o[name]) and type(o[name]) ~= "number" then
        bad("normal", ("%s must be a number or a tensor, got %s"):format(name, native.describe(o[name])))
      end
    end
    if is_tensor(o.mean) or is_tensor(o.std) then
      if o.shape then bad("normal", "a shape is for numbers; tensors bring their own") end
      local like = o.mean + o.std
      if not is_tensor(o.mean) or not is_tensor(o.std) then like = is_tensor(o.mean) and o.mean or o.std end
      local z = pg.device(like.device, function()
        return call("normal", {}, { shape = like.shape, dtype = o.dtype or like.dtype })
      end)
      return z * o.std + o.mean
    end
    if not o.shape then bad("normal", "argument \"shape\" is missing") end
    if o.std < 0 then bad("normal", ("std is %g; expected at least 0"):format(o.std)) end
    local function make()
      return call("normal", {}, { shape = o.shape, mean = o.mean, std = o.std,
                                  dtype = o.dtype or native.default_dtype() })
    end
    return o.device and pg.device(o.device, make) or make()
  end

  local read_like = native.signature("randint_like", {
    { "x", "tensor", required = true }, { "low", "integer", required = true }, { "high", "integer" },
    { "dtype", "dtype", named = true }, { "device", "device", named = true } })
  ---Whole numbers from low (0 where only one limit is given) to high - 1 in the shape, dtype and device of x.
  ---@param x perigee.Tensor
  ---@param low integer
  ---@param high? integer
  ---@return perigee.Tensor
  function pg.randint_like(...)
    local o = read_like(...)
    if not o.high then o.low, o.high = 0, o.low end
    return pg.randint(o.low, o.high, o.x.shape, { dtype = o.dtype or o.x.dtype, device = o.device or o.x.device })
  end
  methods.randint_like = pg.randint_like
end
