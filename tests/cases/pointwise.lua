-- SPDX-License-Identifier: Apache-2.0
-- Losses of two tensors, element by element.

local array = require "cases.array"
local S = require "cases.specs"
local F, V = S.F, S.V

local log, exp, abs, max = math.log, math.exp, math.abs, math.max
local function softplus(x) return max(x, 0) + log(1 + exp(-abs(x))) end
local function sigmoid(x) return 1 / (1 + exp(-x)) end
local function sign(x) return x > 0 and 1 or x < 0 and -1 or 0 end
local function clamped(x) return x == 0 and -100 or max(log(x), -100) end
local function stirling(y) return y > 1 and y * log(y) - y + log(2 * math.pi * y) / 2 or 0 end
local function positive(y) return y > 0 and y or 1 end

-- By operator: what an element costs, and the derivative of that by x. o: the attributes.
local formulas = {
  mse_loss = { function(x, y) return (x - y) ^ 2 end, function(x, y) return 2 * (x - y) end },
  l1_loss = { function(x, y) return abs(x - y) end, function(x, y) return sign(x - y) end },
  huber_loss = { function(x, y, o)
    local d, delta = abs(x - y), o.delta or 1
    return d < delta and d * d / 2 or delta * (d - delta / 2)
  end, function(x, y, o)
    local delta = o.delta or 1
    return max(-delta, math.min(delta, x - y))
  end },
  smooth_l1_loss = { function(x, y, o)
    local d, beta = abs(x - y), o.beta or 1
    return d < beta and d * d / 2 / beta or d - beta / 2
  end, function(x, y, o)
    local d, beta = x - y, o.beta or 1
    return abs(d) < beta and d / beta or sign(d)
  end },
  binary_cross_entropy = { function(p, y) return -(y * clamped(p) + (1 - y) * clamped(1 - p)) end,
    function(p, y) return (p - y) / max(p * (1 - p), 1e-12) end },
  binary_cross_entropy_with_logits = {
    function(x, y, _, a) return (1 - y) * x + (1 + ((a or 1) - 1) * y) * softplus(-x) end,
    function(x, y, _, a) return (1 - y) - (1 + ((a or 1) - 1) * y) * sigmoid(-x) end },
  kl_div = { function(x, y, o)
    if o.log_target then return exp(y) * (y - x) end
    return y * log(positive(y)) - y * x
  end, function(_, y, o) return -(o.log_target and exp(y) or y) end },
  poisson_nll_loss = { function(x, y, o)
    local some = exp(x) - y * x
    if o.log_input == false then some = x - y * log(x + (o.eps or 1e-8)) end
    return some + (o.full and stirling(y) or 0)
  end, function(x, y, o)
    if o.log_input == false then return 1 - y / (x + (o.eps or 1e-8)) end
    return exp(x) - y
  end },
  gaussian_nll_loss = { function(x, y, o, var)
    local v = max(var, o.eps or 1e-6)
    return (log(v) + (x - y) ^ 2 / v) / 2 + (o.full and log(2 * math.pi) / 2 or 0)
  end, function(x, y, o, var) return (x - y) / max(var, o.eps or 1e-6) end },
  hinge_loss = { function(x, y) return max(0, 1 - x * y) end, function(x, y) return x * y > 1 and 0 or -y end },
  soft_margin_loss = { function(x, y) return softplus(-x * y) end, function(x, y) return -y * sigmoid(-x * y) end },
  hinge_embedding_loss = { function(x, y, o)
    return (y ~= 1 and max(0, (o.margin or 1) - x) or 0) + (y ~= -1 and x or 0)
  end, function(x, y, o)
    return (y ~= 1 and x <= (o.margin or 1) and -1 or 0) + (y ~= -1 and 1 or 0)
  end },
}
local has_third = { binary_cross_entropy_with_logits = true, gaussian_nll_loss = true }
local weighed = { mse_loss = true, l1_loss = true, huber_loss = true, smooth_l1_loss = true,
                  binary_cross_entropy = true, binary_cross_entropy_with_logits = true }

-- f(x, y, o, a) times the weight, over the shape that x and y broadcast to.
local function each(f, name, a, o)
  local x, y, third = a[1], a[2], has_third[name] and a[3] or nil
  local weight = weighed[name] and a[has_third[name] and 4 or 3] or nil
  local list = { x, y, third or x, weight or x }
  return array.map(function(u, v, p, w)
    return f(u, v, o, third and p or nil) * (weight and w or 1)
  end, unpack(list))
end

local function loss(name)
  return function(a, o)
    local costs, total = each(formulas[name][1], name, a, o), 0
    if o.reduction == "none" then return costs end
    for _, v in ipairs(costs.data) do total = total + v end
    return array.new({}, { o.reduction == "sum" and total or total / #costs.data })
  end
end
local function slope(name)
  return function(a, o)
    local d, rest = a[1], {}
    for i = 1, 4 do rest[i] = a[i + 1] end
    local dx = each(formulas[name][2], name, rest, o)
    if o.reduction == "none" then return array.map(function(p, q) return p * q end, dx, d) end
    local share = d.data[1] / (o.reduction == "sum" and 1 or #dx.data)
    return array.map(function(p) return p * share end, dx)
  end
end

-- Predictions and targets whose differences keep away from multiples of 1/10, where kinks are.
local function shifted(shape) return V(shape, { 0.1, -1.4, 1.9, 0.8, -0.6, 2.4, -2.1, 0.3 }) end
local function near(shape) return V(shape, { 0.437, -1.263, -0.863, 0.737, 0.537, 1.237, -1.137 }) end
local function share(shape) return F(shape, 0.1, 0.9, { 0, 1 }) end
local function sides(shape) return V(shape, { 1, -1, -1, 1, 1 }) end
local function counts(shape) return F(shape, 0.2, 3, { 1, 4 }) end

-- A case with more.third, what makes a tensor of a shape, behind the prediction and the target.
local function completed(case, more)
  if more.third then case[3] = more.third(case[1].shape) end
  return case
end

local rows = {}
local function row(name, x, y, more)
  local cases = {
    { x { 3, 5 }, y { 3, 5 } }, { x { 3, 5 }, y { 3, 5 }, attrs = { reduction = "sum" } },
    { x { 2, 3, 4 }, y { 2, 3, 4 }, attrs = { reduction = "none" } }, { x {}, y {} },
    { x { 0 }, y { 0 }, attrs = { reduction = "sum" } }, { x { 4, 3 }, y { 3 } }, { x { 70 }, y { 70 } },
    { x { 2, 1 }, y { 1, 3 }, attrs = { reduction = "none" } },
  }
  for _, attrs in ipairs(more.attrs or {}) do
    cases[#cases + 1] = { x { 4, 3 }, (more.y or y) { 4, 3 }, attrs = attrs }
  end
  if weighed[name] then
    local w, third = F({ 3 }, 0.5, 2, { 1, 3 }), has_third[name] and false or nil
    local function with(weight, attrs)
      local case = { x { 4, 3 }, y { 4, 3 }, attrs = attrs }
      case[third == nil and 3 or 4] = weight
      if third ~= nil then case[3] = false end
      return case
    end
    cases[#cases + 1] = with(w)
    cases[#cases + 1] = with(F({ 4, 3 }, 0.5, 2, { 1, 3 }), { reduction = "none" })
  end
  for _, case in ipairs(cases) do completed(case, more) end
  for _, case in ipairs(more.cases or {}) do cases[#cases + 1] = case end
  rows[name] = { class = "composed", ref = function(a, o) return { loss(name)(a, o) } end, cases = cases,
                 grad = more.grad, integers = false, bools = false,
                 bad = { { completed({ F { 2, 3 }, F { 2 } }, more), nil, nil },
                         { completed({ F { 2 }, F { 2 } }, more), { reduction = "men" }, "mean" },
                         { { F { 2 } }, nil, "missing" } } }
  for _, extra in ipairs(more.bad or {}) do table.insert(rows[name].bad, extra) end

  local back, both = {}, completed({ F { 3 }, F { 3 } }, more)
  for i, case in ipairs(cases) do
    local d, copy = F {}, { attrs = case.attrs, grad = case.grad, special = case.special, second = false }
    if case.attrs and case.attrs.reduction == "none" then
      d = F(i == 8 and { 2, 3 } or case[1].shape)
    end
    copy[1] = d
    for k = 1, 4 do copy[k + 1] = case[k] end
    if not case.forward_only then back[#back + 1] = copy end
  end
  rows[name .. "_grad"] = { class = "composed", ref = function(a, o) return { slope(name)(a, o) } end, cases = back,
                            grad = more.grad and { true, more.grad[1], more.grad[2] }, second = false,
                            integers = false, bools = false,
                            bad = { { { F { 2 }, unpack(both) }, nil, nil },
                                    { { F { 2 }, unpack(both) }, { reduction = "none" }, "does not fit" } } }
end

row("mse_loss", F, F, {})
row("l1_loss", shifted, near, {})
row("huber_loss", shifted, near, { attrs = { { delta = 0.5 }, { delta = 3, reduction = "sum" } } })
row("smooth_l1_loss", shifted, near, { attrs = { { beta = 0.5 }, { beta = 0, reduction = "none" } } })
row("binary_cross_entropy", share, share, {
  bad = { { { V({ 2 }, { 0.5, 1.5 }), F({ 2 }, 0, 1) }, nil, "p is 1.5 at position %[2%]; expected 0 to 1",
            not_on = "cuda, sim" } },
  cases = { { V({ 4 }, { 1, 0, 1, 0 }), V({ 4 }, { 1, 0, 0, 1 }), attrs = { reduction = "none" }, grad = false,
      forward_only = true } } }) -- float16 divides by more
row("binary_cross_entropy_with_logits", F, share, {
  cases = { { F { 4, 3 }, share { 4, 3 }, F({ 3 }, 0.5, 2, { 1, 3 }) },
    { F { 4, 3 }, share { 4, 3 }, F({ 3 }, 0.5, 2, { 1, 3 }), F({ 4, 1 }, 0.5, 2, { 1, 3 }),
      attrs = { reduction = "none" } },
    { V({ 4 }, { 1000, -1000, 30, -30 }), V({ 4 }, { 1, 0, 0, 1 }), attrs = { reduction = "none" },
      special = true } } })
row("kl_div", F, share, { attrs = { { log_target = true }, { log_target = true, reduction = "sum" } }, cases = {
  { F { 3 }, V({ 3 }, { 0, 0.5, 0 }), attrs = { reduction = "sum" }, grad = false } } })
row("poisson_nll_loss", counts, counts, { attrs = { { full = true }, { log_input = false },
  { log_input = false, full = true, eps = 0.25, reduction = "none" } } })
local function variances(shape) return F(shape, 0.2, 3, { 1, 4 }) end
local lifted = V({ 4 }, { 0, 0.1, 1, 2 })
local gaussian = { { F { 4, 3 }, F { 4, 3 }, variances { 4, 1 } },
  { F { 4, 3 }, F { 4, 3 }, variances { 3 }, attrs = { reduction = "none", full = true } },
  { F { 4 }, F { 4 }, lifted, attrs = { eps = 0.5, reduction = "sum" }, grad = { true, true, false } } }
row("gaussian_nll_loss", F, F, { third = variances, cases = gaussian,
  attrs = { { full = true }, { eps = 0.1 }, { reduction = "sum" }, { full = true, reduction = "none" } },
  bad = { { { F { 2 }, F { 2 }, V({ 2 }, { 0.5, -1.5 }) }, nil, "%-1.5 at position %[2%]; expected 0",
            not_on = "cuda, sim" },
          { { F { 2 }, F { 2 }, F { 2, 2 } }, nil, "does not fit" } } })
row("hinge_loss", shifted, sides, {})
row("soft_margin_loss", F, sides, {})
row("hinge_embedding_loss", shifted, sides, { grad = { true, false }, attrs = { { margin = 2.5 } } })

rows.bce_odds = {
  class = "composed", ref = function(a)
    return { array.map(function(p) return clamped(1 - p) - clamped(p) end, a[1]) }
  end,
  cases = { { share { 3, 4 } }, { share {} }, { share { 0 } }, { V({ 2 }, { 0, 1 }), grad = false } },
  integers = false, bools = false, bad = { { { "text" }, nil, "tensor" } },
}

rows.at_least = {
  class = "exact", ref = function(a, o)
    return { array.map(function(v) return v < (o.eps or 0) and (o.eps or 0) or v end, a[1]) }
  end,
  cases = { { variances { 3, 4 }, attrs = { eps = 0.1 } }, { variances {} }, { variances { 0 } },
            { V({ 4 }, { -1, 0.25, 0.5, 3 }), attrs = { eps = 0.5 }, grad = false } },
  integers = false, bools = false, bad = { { { "text" }, nil, "tensor" } },
}
rows.gaussian_nll_by_var = {
  class = "composed", ref = function(a, o)
    return { array.map(function(x, y, var)
      local v = max(var, o.eps or 1e-6)
      return (1 - (x - y) ^ 2 / v) / (2 * v)
    end, a[1], a[2], a[3]) }
  end,
  cases = { { F { 3, 4 }, F { 3, 4 }, variances { 3, 4 } }, { F { 3, 4 }, F { 4 }, variances { 3, 1 } },
            { F {}, F {}, variances {} }, { F { 0 }, F { 0 }, variances { 0 } },
            { F { 2 }, F { 2 }, V({ 2 }, { 0, 0.25 }), attrs = { eps = 0.5 }, grad = false } },
  integers = false, bools = false, bad = { { { F { 2 }, F { 3 }, F { 2 } }, nil, nil } },
}

return rows
