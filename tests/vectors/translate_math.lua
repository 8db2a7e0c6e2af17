-- SPDX-License-Identifier: Apache-2.0
-- Elementwise functions that take more than tensors, and products of matrices.

local pg = require "perigee"

local rows = {}

-- x + alpha * y.
local function scaled(name)
  return { params = { "other", "alpha" }, call = function(x, a)
    return pg[name](x, a.alpha and a.other * a.alpha or a.other)
  end }
end
rows.add, rows.sub = scaled("add"), scaled("sub")

rows.addmm = { params = { "mat1", "mat2", "beta", "alpha" }, call = function(x, a)
  return x:addmm(a.mat1, a.mat2, { beta = a.beta, alpha = a.alpha })
end }

-- Bounds that are tensors are maximum and minimum.
rows.clamp = { params = { "min", "max" }, call = function(x, a)
  local low, high = a.min, a.max
  if not pg.is_tensor(low) and not pg.is_tensor(high) then return x:clamp { min = low, max = high } end
  if low then x = pg.maximum(x, low) end
  if high then x = pg.minimum(x, high) end
  return x
end }

rows.div = { params = { "other", "rounding_mode" }, call = function(x, a)
  if a.rounding_mode == "floor" then return pg.floor_div(x, a.other) end
  local quotient = pg.div(x, a.other)
  return a.rounding_mode == "trunc" and quotient:trunc() or quotient
end }
rows.true_divide = { needs = "div", params = { "other" }, call = function(x, a) return pg.div(x, a.other) end }
rows.floor_divide = { needs = "floor_div", params = { "other" }, call = function(x, a)
  return pg.floor_div(x, a.other)
end }

rows.einsum = { params = { "equation" }, call = function(list, a) return pg.einsum(a.equation, list) end }

rows.lerp = { params = { "end", "weight" }, call = function(x, a) return x:lerp(a["end"], a.weight) end }

rows.masked_fill = { params = { "mask", "value" }, call = function(x, a) return x:masked_fill(a.mask, a.value) end }

rows.nan_to_num = { params = { "nan", "posinf", "neginf" }, call = function(x, a)
  return x:nan_to_num { nan = a.nan, posinf = a.posinf, neginf = a.neginf }
end }

-- A binary function that may get a number where a tensor stands.
for _, name in ipairs { "mul", "pow", "remainder", "fmod", "maximum", "minimum", "fmax", "fmin",
                        "eq", "ne", "lt", "le", "gt", "ge" } do
  rows[name] = { params = { "other" }, call = function(x, a) return pg[name](x, a.other) end }
end

rows.round = { params = { "decimals" }, call = function(x, a)
  return x:round { decimals = a.decimals }
end }

return rows
