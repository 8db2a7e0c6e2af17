-- SPDX-License-Identifier: Apache-2.0
-- Normalisation and softmax.

local array = require "cases.array"
local S = require "cases.specs"
local F, V = S.F, S.V

local rows = {}

local function softmax(list)
  local m, s, out = -1 / 0, 0, {}
  for _, x in ipairs(list) do m = math.max(m, x) end
  for _, x in ipairs(list) do s = s + math.exp(x - m) end
  for i, x in ipairs(list) do out[i] = math.exp(x - m) / s end
  return out
end
local function softmax_row(finish, special)
  return {
    class = "composed",
    ref = function(a, o)
      return array.along(a[1], o.axis or -1, function(list)
        local out = softmax(list)
        for i, v in ipairs(out) do out[i] = finish(v) end
        return out
      end)
    end,
    cases = { { F { 3, 4 } }, { F { 3, 4 }, attrs = { axis = 1 } }, { F { 3, 2, 4 }, attrs = { axis = 2 } },
      { F { 40 } }, { F {} },
              { F { 3, 0 } }, { F { 0, 4 } }, { V({ 2, 2 }, { 1000, 1000, -1000, -1001 }), grad = false,
                special = true }, special },
    bad = { { { F { 2, 3 } }, { axis = 3 }, "axis 3 is out of range.*1%.%.2" },
      { { F { 2, 3 } }, { axis = 0 }, "count from 1" },
            { { S.I({ 2 }, 0, 3) }, nil, "int64" } },
  }
end
rows.softmax = softmax_row(function(v) return v end)
rows.log_softmax = softmax_row(math.log)
table.remove(rows.log_softmax.cases, 8) -- the reference's own logarithm underflows there

-- weigh(y) dy, added up along the axis, is what `slope` takes besides y and dy themselves.
local function softmax_grad_row(weigh, slope)
  return {
    class = "composed", grad = { true, true },
    ref = function(a, o)
      local y, dy, axis = a[1], a[2], o.axis or -1
      if axis < 0 then axis = axis + #y.shape + 1 end
      return array.build(y.shape, function(ix)
        local at, total, place = array.at(y, ix), 0, { unpack(ix) }
        for i = 1, y.shape[axis] or 1 do
          place[axis] = #ix > 0 and i - 1 or nil
          local p = array.at(y, place)
          total = total + weigh(y.data[p]) * dy.data[p]
        end
        return slope(y.data[at], dy.data[at], total)
      end)
    end,
    cases = { { F { 3, 4 }, F { 3, 4 } }, { F { 3, 4 }, F { 3, 4 }, attrs = { axis = 1 } },
              { F { 3, 2, 4 }, F { 3, 2, 4 }, attrs = { axis = 2 } }, { F { 40 }, F { 40 } }, { F {}, F {} },
              { F { 9, 3 }, F { 9, 3 } }, { F { 3, 0 }, F { 3, 0 } }, { F { 0, 4 }, F { 0, 4 } } },
    bad = { { { F { 2, 3 }, F { 2, 3 } }, { axis = 3 }, "axis 3 is out of range" },
            { { F { 2, 3 }, F { 2 } }, nil, "shape" } },
  }
end
rows.softmax_grad = softmax_grad_row(function(y) return y end, function(y, dy, s) return y * (dy - s) end)
rows.log_softmax_grad = softmax_grad_row(function() return 1 end,
                                         function(y, dy, s) return dy - math.exp(y) * s end)

-- x normalised over groups of elements; group(index) names the group.
local function statistics(x, group)
  local n, sum, square = {}, {}, {}
  for p, v in ipairs(x.data) do
    local g = group(array.index(x.shape, p))
    n[g], sum[g] = (n[g] or 0) + 1, (sum[g] or 0) + v
  end
  for p, v in ipairs(x.data) do
    local g = group(array.index(x.shape, p))
    square[g] = (square[g] or 0) + (v - sum[g] / n[g]) ^ 2
  end
  local mean, var = {}, {}
  for g in pairs(n) do mean[g], var[g] = sum[g] / n[g], square[g] / n[g] end
  return mean, var, n
end

local function channel(ix) return ix[2] + 1 end

local function affine(x, group, inner, mean, var, weight, bias, eps)
  return array.build(x.shape, function(ix)
    local g, at = group(ix), inner(ix)
    local y = (x.data[array.at(x, ix)] - mean[g]) / math.sqrt(var[g] + (eps or 1e-5))
    return y * (weight and weight.data[at] or 1) + (bias and bias.data[at] or 0)
  end)
end

local function batch_norm(a, o)
  local x, mean, var, n = a[1], a[4] and a[4].data, a[5] and a[5].data, nil
  if o.training then mean, var, n = statistics(x, channel) end
  local out = { affine(x, channel, channel, mean, var, a[2], a[3], o.eps) }
  if a[4] then
    local m = o.momentum or 0.1
    local function moved(old, new)
      return array.fill(old.shape, function(c) return o.training
        and (1 - m) * old.data[c] + m * new(c) or old.data[c] end)
    end
    out[2] = moved(a[4], function(c) return mean[c] end)
    out[3] = moved(a[5], function(c) return var[c] * n[c] / (n[c] - 1) end)
  end
  return out
end
local function positive(shape) return F(shape, 0.5, 2) end
rows.batch_norm = {
  class = "composed", ref = batch_norm, grad = { true, true, true },
  cases = {
    { F { 3, 2, 2, 4 }, F { 2 }, F { 2 }, F { 2 }, positive { 2 }, attrs = { training = true } },
    { F { 3, 2, 2, 4 }, F { 2 }, F { 2 }, F { 2 }, positive { 2 }, attrs = { training = false } },
    { F { 3, 2 }, F { 2 }, F { 2 }, F { 2 }, positive { 2 }, attrs = { training = true, momentum = 0.25, eps = 1e-3 } },
    { F { 3, 2, 5 }, false, false, false, false, attrs = { training = true } },
    { F { 3, 2, 5 }, F { 2 }, false, F { 2 }, positive { 2 }, attrs = { training = true } },
    { F { 3, 2 }, false, false, F { 2 }, positive { 2 }, attrs = {} },
    { F { 0, 2 }, F { 2 }, F { 2 }, F { 2 }, positive { 2 }, attrs = { training = false } },
  },
  bad = { { { F { 3, 2 } }, { training = false }, "running" }, { { F { 1, 2 } }, { training = true }, "no variance" },
          { { F { 3, 2 }, F { 3 } }, { training = true }, "channels" }, { { F { 3 } }, { training = true }, "axes" } },
}

do
  local plain = rows.batch_norm
  local bad = { unpack(plain.bad) }
  bad[#bad + 1] = { { F { 3, 2 } }, { training = true, activation = "tanh" }, "relu" }
  local function relu(v) return (v > 0 or v ~= v) and v or 0 end
  rows.batch_norm_activation = {
    class = plain.class, grad = plain.grad, cases = { unpack(plain.cases) }, bad = bad,
    ref = function(a, o)
      local out = batch_norm(a, o)
      out[1] = array.map(relu, out[1])
      return out
    end,
  }
  local cases = rows.batch_norm_activation.cases
  cases[#cases + 1] = { F { 4, 3, 7, 6 }, F { 3 }, F { 3 }, false, false,
                        attrs = { training = true, activation = "relu" } }
  cases[#cases + 1] = { V({ 2, 1 }, { 0 / 0, -1 }), false, false, V({ 1 }, { 0 }), V({ 1 }, { 1 }), attrs = {},
                        grad = false, special = true } -- NaN stays
end

-- Inputs of a gradient: dy, x, weight, mean, invstd; the last two computed from x.
local function inverse(var, eps)
  local out = {}
  for i, v in ipairs(var) do out[i] = 1 / math.sqrt(v + (eps or 1e-5)) end
  return out
end
local function batch_mean(b)
  local mean = statistics(b[2], channel)
  return array.new({ b[2].shape[2] }, mean)
end
local function batch_invstd(b)
  local _, var = statistics(b[2], channel)
  return array.new({ b[2].shape[2] }, inverse(var))
end
local function normal_grads(forward, has_weight, x, weight, dy, parameters)
  local ones = array.fill(parameters, 1)
  local w = has_weight and weight or ones
  return { array.differences(x, dy, function(v) return forward(v, w, nil) end),
           array.differences(w, dy, function(v) return forward(x, v, nil) end),
           array.differences(array.fill(parameters, 0), dy, function(v) return forward(x, w, v) end) }
end
local function fixed(shape)
  return S.statistics(function() return array.fill(shape, function(i) return 0.5 + i / 4 end) end)
end
rows.batch_norm_grad = {
  class = "differences", grad = { true, true, true },
  ref = function(a, o)
    local x = a[2]
    return normal_grads(function(v, weight, bias)
      if o.training then return batch_norm({ v, weight, bias, false, false }, o)[1] end
      local var = {}
      for i, s in ipairs(a[5].data) do var[i] = 1 / s ^ 2 end
      return affine(v, channel, channel, a[4].data, var, weight, bias, 0)
    end, a[3], x, a[3], a[1], { x.shape[2] })
  end,
  cases = {
    { F { 3, 2, 4 }, F { 3, 2, 4 }, F { 2 }, S.statistics(batch_mean), S.statistics(batch_invstd),
      attrs = { training = true } },
    { F { 3, 2, 4 }, F { 3, 2, 4 }, false, S.statistics(batch_mean), S.statistics(batch_invstd),
      attrs = { training = true } },
    { F { 3, 2 }, F { 3, 2 }, F { 2 }, fixed { 2 }, fixed { 2 }, attrs = { training = false } },
  },
  bad = { { { F { 3, 2 }, F { 3, 3 }, false, F { 3 }, F { 3 } }, { training = true }, nil } },
}

local function split(x, o)
  local dims, inner = o.dims or 1, {}
  local outer = #x.shape - dims
  for i = 1, dims do inner[i] = x.shape[outer + i] end
  local frame = array.new(inner)
  local function row(ix)
    local g = 0
    for i = 1, outer do g = g * x.shape[i] + ix[i] end
    return g + 1
  end
  local function place(ix)
    local own = {}
    for i = 1, dims do own[i] = ix[outer + i] end
    return array.at(frame, own)
  end
  local rows_shape = {}
  for i = 1, outer do rows_shape[i] = x.shape[i] end
  return row, place, inner, rows_shape
end
local function layer_norm(x, weight, bias, o)
  local row, place = split(x, o)
  local mean, var = statistics(x, row)
  return affine(x, row, place, mean, var, weight, bias, o.eps)
end
rows.layer_norm = {
  class = "composed", ref = function(a, o) return { layer_norm(a[1], a[2], a[3], o) } end,
  cases = {
    { F { 3, 4 }, F { 4 }, F { 4 } }, { F { 3, 4 } }, { F { 3, 4 }, F { 4 } },
      { F { 3, 2, 4 }, F { 2, 4 }, F { 2, 4 }, attrs = { dims = 2 } },
    { F { 4 }, F { 4 }, F { 4 }, attrs = { eps = 1e-3 } }, { F { 0, 4 }, F { 4 }, F { 4 } },
      { F { 3, 40 }, F { 40 }, F { 40 }, grad = false },
  },
  bad = { { { F { 3, 4 }, F { 3 } }, nil, "weight" }, { { F { 3, 4 } }, { dims = 3 }, "dims" },
    { { F {} }, nil, nil } },
}
local function row_statistics(o, pick)
  return S.statistics(function(b)
    local row, _, _, shape = split(b[2], o)
    local mean, var = statistics(b[2], row)
    return array.new(shape, pick(mean, var))
  end)
end
local function means(o) return row_statistics(o, function(mean) return mean end) end
local function inverses(o) return row_statistics(o, function(_, var) return inverse(var) end) end
rows.layer_norm_grad = {
  class = "differences", grad = { true, true, true },
  ref = function(a, o)
    local _, _, inner = split(a[2], o)
    return normal_grads(function(v, weight, bias) return layer_norm(v, weight, bias, o) end, a[3], a[2], a[3], a[1],
      inner)
  end,
  cases = {
    { F { 3, 4 }, F { 3, 4 }, F { 4 }, means {}, inverses {}, attrs = {} },
    { F { 3, 4 }, F { 3, 4 }, false, means {}, inverses {}, attrs = {} },
    { F { 3, 2, 4 }, F { 3, 2, 4 }, F { 2, 4 }, means { dims = 2 }, inverses { dims = 2 }, attrs = { dims = 2 } },
  },
  bad = { { { F { 3, 4 }, F { 3, 5 }, false, F { 3 }, F { 3 } }, nil, nil } },
}

local function rms_norm(x, weight, o)
  local row, place = split(x, o)
  local eps, squares = o.eps and o.eps > 0 and o.eps or 2 ^ -52, {}
  local _, _, n = statistics(x, row)
  for p, v in ipairs(x.data) do
    local g = row(array.index(x.shape, p))
    squares[g] = (squares[g] or 0) + v * v
  end
  local zero, mean = {}, {}
  for g, s in pairs(squares) do zero[g], mean[g] = 0, s / n[g] end
  return affine(x, row, place, zero, mean, weight, nil, eps), mean, eps
end
rows.rms_norm = {
  class = "composed", ref = function(a, o) return { (rms_norm(a[1], a[2] or nil, o)) } end,
  cases = {
    { F { 3, 4 }, F { 4 } }, { F { 3, 4 } }, { F { 3, 2, 4 }, F { 2, 4 }, attrs = { dims = 2, eps = 1e-3 } },
    { F { 4 }, F { 4 }, attrs = { eps = 1e-5 } }, { F { 0, 4 }, F { 4 } }, { F { 3, 40 }, F { 40 }, grad = false },
  },
  bad = { { { F { 3, 4 }, F { 3 } }, nil, "weight" }, { { F { 3, 4 } }, { dims = 3 }, "dims" } },
}
local function inverse_rms(o)
  return S.statistics(function(b)
    local _, _, _, shape = split(b[2], o)
    local _, mean, eps = rms_norm(b[2], nil, o)
    return array.new(shape, inverse(mean, eps))
  end)
end
rows.rms_norm_grad = {
  class = "differences", grad = { true, true, true },
  ref = function(a, o)
    local _, _, inner = split(a[2], o)
    local ones = array.fill(inner, 1)
    return { array.differences(a[2], a[1], function(v) return (rms_norm(v, a[3] or ones, o)) end),
             array.differences(a[3] or ones, a[1], function(v) return (rms_norm(a[2], v, o)) end) }
  end,
  cases = {
    { F { 3, 4 }, F { 3, 4 }, F { 4 }, inverse_rms {}, attrs = {} },
    { F { 3, 4 }, F { 3, 4 }, false, inverse_rms {}, attrs = {} },
    { F { 3, 2, 4 }, F { 3, 2, 4 }, F { 2, 4 }, inverse_rms { dims = 2, eps = 1e-3 },
      attrs = { dims = 2, eps = 1e-3 } },
  },
  bad = { { { F { 3, 4 }, F { 3, 5 }, false, F { 3 } }, nil, nil } },
}

return rows
