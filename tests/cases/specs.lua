-- SPDX-License-Identifier: Apache-2.0
-- What a case says of an input: its shape and how its values are drawn. The numbers come from a generator of this file,
-- so that they are the same everywhere.

local array = require "cases.array"

local S = {}

local state = 1
local function uniform() -- minimal standard generator of Park and Miller
  state = state * 48271 % 2147483647
  return state / 2147483647
end

function S.seed(n) state = n % 2147483646 + 1 end

---Floating numbers in [low, high], by default [-2, 2]; where a sweep makes them integers, in `whole`, by default
---[-3, 3].
function S.F(shape, low, high, whole)
  return { shape = shape, kind = "float", low = low or -2, high = high or 2, whole = whole or { -3, 3 } }
end

---Distinct floating numbers at least 0.25 apart and none at 0: no ties and no kinks within reach of a difference.
function S.D(shape) return { shape = shape, kind = "float", distinct = true, whole = { -3, 3 } } end

---Contents of an index tensor: int64 in [low, high].
function S.I(shape, low, high) return { shape = shape, kind = "index", whole = { low, high } } end

---Whole numbers in [low, high], by default [-3, 3]: int64 where the sweep's dtype is a floating one.
function S.W(shape, low, high) return { shape = shape, kind = "whole", whole = { low or -3, high or 3 } } end

---Whole numbers in [low, high] of one dtype, whatever the sweep's is.
function S.N(shape, low, high, dtype)
  return { shape = shape, kind = "fixed", whole = { low, high }, dtype = dtype }
end

function S.B(shape) return { shape = shape, kind = "bool" } end

---The given values; kind is float (default), index or bool. `special`: no dtype sweep makes sense.
function S.V(shape, values, kind) return { shape = shape, kind = kind or "float", values = values } end

---Computed from the arrays of the inputs before it; float32, or float64 beside float64, as statistics are.
function S.statistics(f) return { kind = "statistics", compute = f } end

---An input that is only described, so no gradient is asked of it and no view made.
function S.is_spec(v) return type(v) == "table" and v.kind ~= nil end

local function shuffled(n)
  local order = {}
  for i = 1, n do order[i] = i end
  for i = n, 2, -1 do
    local k = math.floor(uniform() * i) + 1
    order[i], order[k] = order[k], order[i]
  end
  return order
end

local function whole_in(range) return range[1] + math.floor(uniform() * (range[2] - range[1] + 1)) end

---The array that a spec stands for. `whole`: the sweep's dtype is an integer one ("unsigned": without negatives).
function S.draw(spec, whole, before)
  if spec.compute then return spec.compute(before) end
  if spec.values then
    return array.fill(spec.shape, function(i)
      local v = spec.values[(i - 1) % #spec.values + 1]
      if not whole or spec.kind ~= "float" then return v end
      v = v < 0 and math.ceil(v) or math.floor(v)
      return whole == "unsigned" and math.abs(v) or v
    end)
  end
  local order = spec.distinct and shuffled(array.count(spec.shape))
  return array.fill(spec.shape, function(i)
    if spec.kind == "bool" then return uniform() < 0.5 and 1 or 0 end
    local fixed = spec.kind == "index" or spec.kind == "fixed"
    if fixed or (spec.kind == "whole" and not whole) then return whole_in(spec.whole) end
    if whole then
      local v = whole_in(spec.whole)
      return whole == "unsigned" and math.abs(v) or v
    end
    if order then return (order[i] - #order / 2 - 0.37) * 0.25 end
    return spec.low + (spec.high - spec.low) * uniform()
  end)
end

return S
