-- SPDX-License-Identifier: Apache-2.0
-- Optimizer steps by their formulas, and the collective of one device.

local array = require "cases.array"
local S = require "cases.specs"
local F = S.F

local function positive(shape) return F(shape, 0.1, 1) end
local function lists(make)
  return { make { 3, 4 }, make {}, make { 0 }, make { 19 } }
end

local rows = {}

-- A rule on one element: rule(x, g, s, o) -> x, with its state s changed in place; s[k] is nil where the k-th state is
-- not kept. o: attributes over the defaults. g: the gradient, scaled and with weight decay in it.
local function update_ref(defaults, states, rule)
  return function(a, given)
    local o = { lr = 1e-3, weight_decay = 0, step = 1, grad_scale = 1 }
    for k, v in pairs(defaults) do o[k] = v end
    for k, v in pairs(given) do o[k] = v end
    local found = a[3 + states]
    local out = { {} }
    for k = 1, states do out[1 + k] = {} end
    for t, param in ipairs(a[1]) do
      for k = 0, states do
        if k == 0 or a[2 + k][t] then out[1 + k][t] = array.new(param.shape) end
      end
      for i, x in ipairs(param.data) do
        local s, g = {}, a[2][t].data[i] / o.grad_scale * (o.maximize and -1 or 1)
        for k = 1, states do s[k] = a[2 + k][t] and a[2 + k][t].data[i] end
        if not found or found.data[1] == 0 then x = rule(x, o.decoupled and g or g + o.weight_decay * x, s, o, g) end
        out[1][t].data[i] = x
        for k = 1, states do
          if out[1 + k][t] then out[1 + k][t].data[i] = s[k] end
        end
      end
    end
    return out
  end
end

-- `kinds`: what each state's values are drawn from. Cases are attributes; `without` names states that are left out.
local function update_row(kinds, defaults, rule, cases)
  local row = { class = "composed", ref = update_ref(defaults, #kinds, rule), cases = {}, bad = {} }
  local function inputs(case)
    local list = { lists(F), lists(F) }
    for k, kind in ipairs(kinds) do list[2 + k] = case.without and case.without[k] and {} or lists(kind) end
    return list
  end
  for _, case in ipairs(cases) do
    local entry = inputs(case)
    if case.found ~= nil then entry[3 + #kinds] = S.V({}, { case.found }, "bool") end
    entry.attrs = {}
    for key, value in pairs(case) do
      if key ~= "without" and key ~= "found" then entry.attrs[key] = value end
    end
    row.cases[#row.cases + 1] = entry
  end
  local few, other = { { F { 3 } }, {} }, { { F { 3 } }, { F { 2 } } }
  for k = 1, #kinds do few[2 + k], other[2 + k] = { F { 3 } }, { F { 3 } } end
  row.bad = { { few, nil, "one for each parameter" }, { other, nil, "shape of its parameter" } }
  return row
end

rows.sgd = update_row({ F }, { momentum = 0, dampening = 0 }, function(x, g, s, o)
  if s[1] then
    s[1] = o.step == 1 and g or o.momentum * s[1] + (1 - o.dampening) * g
    g = o.nesterov and g + o.momentum * s[1] or s[1]
  end
  return x - o.lr * g
end, {
  { lr = 0.1, without = { true } }, { lr = 0.1, weight_decay = 0.2, maximize = true, without = { true } },
  { lr = 0.1, momentum = 0.9, dampening = 0.1, step = 2 }, { lr = 0.1, momentum = 0.9, nesterov = true, step = 2 },
  { lr = 0.1, momentum = 0.9 }, { lr = 0.1, momentum = 0.9, found = 1 }, { lr = 0.1, momentum = 0.9, found = 0 },
})

rows.adam = update_row({ F, positive, positive }, { beta1 = 0.9, beta2 = 0.999, eps = 1e-8 }, function(x, g, s, o)
  if o.decoupled then x = x * (1 - o.lr * o.weight_decay) end
  s[1] = o.beta1 * s[1] + (1 - o.beta1) * g
  s[2] = o.beta2 * s[2] + (1 - o.beta2) * g * g
  s[3] = s[3] and math.max(s[3], s[2])
  return x - o.lr * (s[1] / (1 - o.beta1 ^ o.step)) / (math.sqrt((s[3] or s[2]) / (1 - o.beta2 ^ o.step)) + o.eps)
end, {
  { lr = 0.1, step = 3, without = { [3] = true } },
  { lr = 0.1, weight_decay = 0.3, beta1 = 0.8, beta2 = 0.9, step = 1, without = { [3] = true } },
  { lr = 0.1, weight_decay = 0.3, decoupled = true, step = 2, without = { [3] = true } },
  { lr = 0.1, grad_scale = 8, eps = 1e-3, step = 1, without = { [3] = true } },
  { lr = 0.1, step = 3, maximize = true }, { lr = 0.1, found = 1 },
})

rows.rmsprop = update_row({ positive, F, F }, { alpha = 0.99, eps = 1e-8, momentum = 0 }, function(x, g, s, o)
  s[1] = o.alpha * s[1] + (1 - o.alpha) * g * g
  local square = s[1]
  if s[3] then
    s[3] = o.alpha * s[3] + (1 - o.alpha) * g
    square = math.max(square - s[3] * s[3], 0)
  end
  local d = g / (math.sqrt(square) + o.eps)
  if s[2] then
    s[2] = o.momentum * s[2] + d
    d = s[2]
  end
  return x - o.lr * d
end, {
  { lr = 0.1, without = { false, true, true } },
  { lr = 0.1, weight_decay = 0.3, momentum = 0.5, eps = 0.1, without = { [3] = true } },
  { lr = 0.1, alpha = 0.9, eps = 0.5, without = { [2] = true } },
  { lr = 0.1, momentum = 0.5, grad_scale = 2, eps = 0.5, maximize = true }, { lr = 0.1, found = 1 },
})

rows.lion = update_row({ F }, { beta1 = 0.9, beta2 = 0.99, decoupled = true }, function(x, g, s, o)
  local mix = o.beta1 * s[1] + (1 - o.beta1) * g
  x = x * (1 - o.lr * o.weight_decay) - o.lr * (mix > 0 and 1 or mix < 0 and -1 or 0)
  s[1] = o.beta2 * s[1] + (1 - o.beta2) * g
  return x
end, { { lr = 0.1 }, { lr = 0.1, weight_decay = 0.3, beta1 = 0.5, maximize = true }, { found = 1 } })

rows.adagrad = update_row({ positive }, { lr_decay = 0, initial_accumulator_value = 0, eps = 1e-10 },
  function(x, g, s, o)
    s[1] = (o.step == 1 and o.initial_accumulator_value or s[1]) + g * g
    return x - o.lr / (1 + (o.step - 1) * o.lr_decay) * g / (math.sqrt(s[1]) + o.eps)
  end, { { lr = 0.1, initial_accumulator_value = 0.1 }, { lr = 0.1, lr_decay = 0.3, step = 4 }, { found = 1 },
         { lr = 0.1, weight_decay = 0.5, eps = 0.1, step = 2, maximize = true } })

rows.adadelta = update_row({ positive, positive }, { rho = 0.9, eps = 1e-6 }, function(x, g, s, o)
  s[1] = o.rho * s[1] + (1 - o.rho) * g * g
  local d = math.sqrt(s[2] + o.eps) / math.sqrt(s[1] + o.eps) * g
  s[2] = o.rho * s[2] + (1 - o.rho) * d * d
  return x - o.lr * d
end, { { lr = 1 }, { lr = 0.5, rho = 0.5, eps = 0.01, weight_decay = 0.1, maximize = true }, { found = 1 } })

rows.adamax = update_row({ F, positive }, { beta1 = 0.9, beta2 = 0.999, eps = 1e-8 }, function(x, g, s, o)
  s[1] = o.beta1 * s[1] + (1 - o.beta1) * g
  s[2] = math.max(o.beta2 * s[2], math.abs(g) + o.eps)
  return x - o.lr / (1 - o.beta1 ^ o.step) * s[1] / s[2]
end, { { lr = 0.1 }, { lr = 0.1, beta2 = 0.5, step = 7, weight_decay = 0.2, maximize = true }, { found = 1 } })

rows.nadam = update_row({ F, positive }, { beta1 = 0.9, beta2 = 0.999, eps = 1e-8, momentum_decay = 4e-3 },
                        function(x, g, s, o)
  s[1] = o.beta1 * s[1] + (1 - o.beta1) * g
  s[2] = o.beta2 * s[2] + (1 - o.beta2) * g * g
  local root = math.sqrt(s[2] / (1 - o.beta2 ^ o.step)) + o.eps
  local function mu(t) return o.beta1 * (1 - 0.5 * 0.96 ^ (t * o.momentum_decay)) end
  local now, following, product = mu(o.step), mu(o.step + 1), 1
  for t = 1, o.step do product = product * mu(t) end
  return x - o.lr * ((1 - now) / (1 - product) * g + following / (1 - product * following) * s[1]) / root
end, { { lr = 0.1 }, { found = 1 }, { lr = 0.1, momentum_decay = 0.5, step = 3 },
       { lr = 0.1, beta1 = 0.5, step = 2, weight_decay = 0.2, maximize = true } })

rows.radam = update_row({ F, positive }, { beta1 = 0.9, beta2 = 0.999, eps = 1e-8 }, function(x, g, s, o)
  s[1] = o.beta1 * s[1] + (1 - o.beta1) * g
  s[2] = o.beta2 * s[2] + (1 - o.beta2) * g * g
  local n = 2 / (1 - o.beta2) - 1
  local k = n - 2 * o.step * o.beta2 ^ o.step / (1 - o.beta2 ^ o.step)
  local rate = 1
  if k > 5 then
    rate = math.sqrt((k - 4) * (k - 2) * n / ((n - 4) * (n - 2) * k)) * math.sqrt(1 - o.beta2 ^ o.step) /
           (math.sqrt(s[2]) + o.eps)
  end
  return x - o.lr * s[1] / (1 - o.beta1 ^ o.step) * rate
end, { { lr = 0.1 }, { lr = 0.1, step = 40, weight_decay = 0.1, maximize = true }, { found = 1 } })

rows.rprop = update_row({ F, positive }, { etaminus = 0.5, etaplus = 1.2, step_min = 1e-6, step_max = 50 },
  function(x, g, s, o)
    local turn = g * (o.step == 1 and 0 or s[1])
    local length = (o.step == 1 and o.lr or s[2]) * (turn > 0 and o.etaplus or turn < 0 and o.etaminus or 1)
    s[2] = math.min(math.max(length, o.step_min), o.step_max)
    if turn < 0 then g = 0 end
    s[1] = g
    return x - (g > 0 and 1 or g < 0 and -1 or 0) * s[2]
  end, { { lr = 0.1 }, { step = 2, weight_decay = 0.1, maximize = true }, { step = 2, step_max = 0.5, step_min = 0.3 },
         { found = 1 } })

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
