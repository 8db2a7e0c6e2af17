-- SPDX-License-Identifier: Apache-2.0
-- Optimizer steps, and the collective of one device.

local array = require "cases.array"
local S = require "cases.specs"
local F = S.F

local function positive(shape) return F(shape, 0.1, 1) end
local function lists(make)
  return { make { 3, 4 }, make {}, make { 0 }, make { 19 } }
end

local rows = {}

rows.adam = {
  class = "composed",
  ref = function(a, o)
    local function get(name, otherwise) return o[name] or otherwise end
    local lr, b1, b2 = get("lr", 1e-3), get("beta1", 0.9), get("beta2", 0.999)
    local eps, decay, step, scale = get("eps", 1e-8), get("weight_decay", 0), get("step", 1), get("grad_scale", 1)
    local p, m, v = {}, {}, {}
    for k, param in ipairs(a[1]) do
      p[k], m[k], v[k] = array.new(param.shape), array.new(param.shape), array.new(param.shape)
      for i, x in ipairs(param.data) do
        local g = a[2][k].data[i] / scale
        if o.decoupled then x = x * (1 - lr * decay) else g = g + decay * x end
        m[k].data[i] = b1 * a[3][k].data[i] + (1 - b1) * g
        v[k].data[i] = b2 * a[4][k].data[i] + (1 - b2) * g * g
        p[k].data[i] = x - lr * (m[k].data[i] / (1 - b1 ^ step)) / (math.sqrt(v[k].data[i] / (1 - b2 ^ step)) + eps)
      end
    end
    return { p, m, v }
  end,
  cases = {
    { lists(F), lists(F), lists(F), lists(positive), attrs = { lr = 0.1, step = 3 } },
    { lists(F), lists(F), lists(F), lists(positive),
      attrs = { lr = 0.1, weight_decay = 0.3, beta1 = 0.8, beta2 = 0.9, step = 1 } },
    { lists(F), lists(F), lists(F), lists(positive),
      attrs = { lr = 0.1, weight_decay = 0.3, decoupled = true, step = 2 } },
    { lists(F), lists(F), lists(F), lists(positive), attrs = { lr = 0.1, grad_scale = 8, eps = 1e-3, step = 1 } },
  },
  bad = { { { { F { 3 } }, {}, { F { 3 } }, { F { 3 } } }, nil, "one for each parameter" },
          { { { F { 3 } }, { F { 2 } }, { F { 3 } }, { F { 3 } } }, nil, "shape of its parameter" } },
}

rows.sgd = {
  class = "composed",
  ref = function(a, o)
    local lr, momentum, decay = o.lr or 1e-3, o.momentum or 0, o.weight_decay or 0
    local p, b = {}, {}
    for k, param in ipairs(a[1]) do
      p[k] = array.new(param.shape)
      b[k] = a[3][k] and array.new(param.shape)
      for i, x in ipairs(param.data) do
        local g = a[2][k].data[i] + decay * x
        if b[k] then
          local v = o.first == 1 and g or momentum * a[3][k].data[i] + (1 - (o.dampening or 0)) * g
          b[k].data[i] = v
          g = o.nesterov and g + momentum * v or v
        end
        p[k].data[i] = x - lr * g
      end
    end
    return { p, b }
  end,
  cases = {
    { lists(F), lists(F), {}, attrs = { lr = 0.1 } },
      { lists(F), lists(F), {}, attrs = { lr = 0.1, weight_decay = 0.2 } },
    { lists(F), lists(F), lists(F), attrs = { lr = 0.1, momentum = 0.9, dampening = 0.1 } },
    { lists(F), lists(F), lists(F), attrs = { lr = 0.1, momentum = 0.9, nesterov = true } },
    { lists(F), lists(F), lists(F), attrs = { lr = 0.1, momentum = 0.9, first = 1 } },
  },
  bad = { { { { F { 3 } }, { F { 3 }, F { 3 } }, {} }, nil, "one for each parameter" } },
}

rows.all_reduce = {
  class = "sum",
  one_size = true, -- its gradient is an ordered effect too: it runs always, with weights of the first size
  ref = function(a, o)
    local kind, out = o.op or "sum", {}
    local y = array.new(a[1][1].shape)
    for i in ipairs(a[1][1].data) do
      local v
      for k, x in ipairs(a[1]) do
        local e = x.data[i]
        if k == 1 then v = e
        elseif kind == "max" then v = math.max(v, e)
        elseif kind == "min" then v = math.min(v, e)
        else v = v + e end
      end
      y.data[i] = kind == "mean" and v / #a[1] or v
    end
    for k in ipairs(a[1]) do out[k] = y end
    return out
  end,
  cases = {
    { { F { 3, 4 }, F { 3, 4 }, F { 3, 4 } } }, { { F { 3 }, F { 3 } }, attrs = { op = "mean" }, integers = false },
    { { F { 3 }, F { 3 } }, attrs = { op = "max" }, grad = false },
      { { F { 3 }, F { 3 } }, attrs = { op = "min" }, grad = false },
    { { F { 3 } } }, { { F {}, F {} } }, { { F { 0 }, F { 0 } } },
  },
  bad = { { { {} }, nil, "at least one" }, { { { F { 3 }, F { 2 } } }, nil, "xs%[2%]" },
    { { { F { 2 } } }, { op = "smu" }, "sum" } },
}

return rows
