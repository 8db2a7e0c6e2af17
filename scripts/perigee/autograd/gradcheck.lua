-- SPDX-License-Identifier: Apache-2.0
-- pg.gradcheck: gradients against central differences in float64.

local native = require "perigee.native"
local pg = require "perigee"

local read = native.signature("gradcheck", {
  { "fn", "function", required = true }, { "inputs", "tensors", required = true },
  { "eps", "number", default = 1e-6, named = true }, { "rtol", "number", default = 1e-4, named = true },
  { "atol", "number", default = 1e-6, named = true } })

-- A fixed direction for the outputs, so that one backward pass covers them all.
local function direction(t)
  local n = t:numel()
  return (pg.arange(n, { dtype = "float64" }) * 0.7390851332151607 + 0.25):sin():reshape(t.shape):add(1.5)
end

-- `ways` keeps the directions of the last call's outputs.
local function project(fn, inputs, ways)
  local total = 0
  for i, y in ipairs { fn(unpack(inputs)) } do
    if not native.is_tensor(y) then
      native.raise("invalid_argument", "gradcheck", "the function must return tensors, got " .. native.describe(y))
    end
    if native.dtypes.by_name[y.dtype].floating then
      if not ways[i] or ways[i].shape ~= y.shape then ways[i] = direction(y) end
      total = total + (y:to("float64") * ways[i]):sum()
    end
  end
  return total
end

-- (f(x + eps) - f(x - eps)) / 2 eps for each element of one input. All inputs require gradients: fn may ask for some.
local function numeric(fn, inputs, k, eps, ways)
  local data, n = native.host.flat(inputs[k])
  local slopes = {}
  local function at(i, delta)
    local moved, x = { unpack(inputs) }, inputs[k]:detach():clone()
    x:reshape(-1)[i] = data[i] + delta
    moved[k] = x:requires_grad_()
    return project(fn, moved, ways):item()
  end
  for i = 1, n do slopes[i] = (at(i, eps) - at(i, -eps)) / (2 * eps) end
  return slopes, n
end

---Raises, naming the first element that differs, unless fn's gradients are right. Answers true.
---@param fn fun(...): perigee.Tensor
---@return boolean
local function gradcheck(...)
  local o = read(...)
  local leaves, ways = {}, {}
  for i, t in ipairs(o.inputs) do leaves[i] = t:detach():to("float64"):contiguous():clone():requires_grad_() end
  local gradients = { pg.grad({ project(o.fn, leaves, ways) }, leaves, { allow_unused = true }) }
  for k = 1, #leaves do
    local slopes, n = numeric(o.fn, leaves, k, o.eps, ways)
    local got = gradients[k] and native.host.flat(gradients[k]) or {}
    for i = 1, n do
      local g = got[i] or 0
      local close = math.abs(g - slopes[i]) <= o.atol + o.rtol * math.abs(slopes[i])
      if not close then -- NaN too
        native.raise("failed_precondition", "gradcheck",
                     ("input %d, element %d: the gradient is %.9g, differences give %.9g"):format(k, i, g, slopes[i]))
      end
    end
  end
  return true
end

return { gradcheck = gradcheck }
