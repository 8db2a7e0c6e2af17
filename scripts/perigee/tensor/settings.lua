-- SPDX-License-Identifier: Apache-2.0
-- What holds for all tensors that are made: the seed, the default dtype.

return function(pg, native)
  ---Seeds every random draw that follows. A negative seed is the one of its two's complement: -1 is 2^64 - 1.
  ---@param seed integer
  function pg.manual_seed(seed)
    if type(seed) ~= "number" or seed ~= math.floor(seed) or seed < -2 ^ 63 or seed >= 2 ^ 64 then
      native.raise("invalid_argument", "manual_seed",
                   "seed must be a whole number from -2^63 to 2^64 - 1, got " .. native.describe(seed))
    end
    native.manual_seed(seed)
  end

  ---The float dtype that numbers from Lua get. Answers the one before.
  ---@param name perigee.Dtype
  ---@return perigee.Dtype
  function pg.set_default_dtype(name)
    if not native.dtypes.find(name, "set_default_dtype").floating then
      native.raise("invalid_argument", "set_default_dtype", ("must be a floating dtype, got %q"):format(name))
    end
    return native.set_default_dtype(name)
  end
  ---The dtype of what is made of fractions: float32, if pg.set_default_dtype does not say otherwise.
  ---@return perigee.Dtype
  function pg.get_default_dtype() return native.default_dtype() end
  ---Whether v is a tensor.
  ---@param v any anything
  ---@return boolean
  function pg.is_tensor(v) return native.is_tensor(v) end
end
