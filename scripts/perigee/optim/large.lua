-- SPDX-License-Identifier: Apache-2.0
-- Optimizers that look at a parameter as a whole: LAMB and LARS at its norm, Adafactor at rows and columns, Muon at the
-- matrix. Norms and products are operators a parameter; what is elementwise is one pass over all. A step writes once it
-- has been computed as a whole: memory that ends in it leaves parameters and state as they were.

local native = require "perigee.native"
local rule = require "perigee.optim.rule"
local Optimizer = require "perigee.optim.optimizer"

local large = {}

local BETAS = { { "beta1", 0.9, "decay of the running mean of gradients" },
                { "beta2", 0.999, "decay of the running mean of their squares" } }
local function attributes_of(lr, ...)
  local list = { { "lr", lr, "learning rate" }, { "weight_decay", 0, "part of a weight lost per lr" } }
  for _, attribute in ipairs { ... } do list[#list + 1] = attribute end
  return list
end

local function wide(t) return (t.dtype == "float16" or t.dtype == "bfloat16") and t:to("float32") or t end
local function norm(t) return t:square():sum():sqrt() end

-- A number that is to be multiplied with w: in a graph a tensor.
local function factor(w, number) return native.is_tensor(number) and number:to(w.dtype) or number end
local function root(number) return native.is_tensor(number) and number:sqrt() or math.sqrt(number) end
local function lesser(a, b) return native.is_tensor(b) and native.op "minimum"(a, b) or math.min(a, b) end

-- What a step will have written: later:add(tensor, value), and in the end later:write(), which allocates nothing.
local Later = {}
Later.__index = Later
local function new_later(o) return setmetatable({ skip = o.skip }, Later) end
function Later:add(t, value)
  value = value:to(t.dtype)
  if self.skip then value = native.op "where"(self.skip, t, value) end
  self[#self + 1] = { t:detach(), value }
end
function Later:write()
  for _, pair in ipairs(self) do native.call("copy", pair) end
end

-- a / b where both are above 0, else 1.
local function ratio(a, b)
  return native.op "where"(a:gt(0):logical_and(b:gt(0)), a / b, a:ones_like())
end

-- ---- LAMB ----

rule.define {
  name = "LAMB", attributes = attributes_of(1e-3, BETAS[1], BETAS[2], { "eps", 1e-6, "added to the root" }),
  slots = function() return { "exp_avg", "exp_avg_sq" } end,
  -- A step of Adam from 0 with rate 1 is the direction, for all parameters at once.
  update = function(o, step, params, gradients, state)
    local directions, means, squares, later = {}, {}, {}, new_later(o)
    for i, p in ipairs(params) do
      directions[i] = wide(p:detach()):zeros_like()
      means[i], squares[i] = state.exp_avg[i]:clone(), state.exp_avg_sq[i]:clone()
    end
    rule.call("adam", { directions, gradients, means, squares, {} },
              { lr = 1, beta1 = o.beta1, beta2 = o.beta2, eps = o.eps, step = step })
    for i, p in ipairs(params) do
      local w = wide(p:detach())
      local direction = o.weight_decay * w - directions[i]
      later:add(p, w - direction * (factor(w, o.lr) * ratio(norm(w), norm(direction))))
      later:add(state.exp_avg[i], means[i])
      later:add(state.exp_avg_sq[i], squares[i])
    end
    later:write()
  end,
}
---Adam's direction with the length of the parameter (You et al., 2020, "Large Batch Optimization for Deep Learning"): m
---= beta1 m + (1 - beta1) g, v = beta2 v + (1 - beta2) g^2, u = (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps) +
---weight_decay w, w -= lr |w| / |u| u in step t, the norms being Euclidean ones of a whole parameter.
---@param options? any parameters and options, as above
---@param ... any
---@return perigee.Optimizer
function large.LAMB(...) return Optimizer.new("LAMB", ...) end

-- ---- LARS ----

rule.define {
  name = "LARS", attributes = attributes_of(1e-1, { "momentum", 0.9, "part of the last update that goes on" },
    { "trust", 1e-3, "how far a step may go for the parameter's length" }, { "eps", 1e-8, "added to the norms" },
    { "nesterov", false, "look ahead along the momentum" }),
  slots = function(o) return o.momentum > 0 and { "momentum_buffer" } or {} end,
  update = function(o, step, params, gradients, state)
    local scaled = {}
    for i, p in ipairs(params) do
      local w, g = wide(p:detach()), wide(gradients[i])
      local length, slope = norm(w), norm(g)
      local local_rate = native.op "where"(length:gt(0):logical_and(slope:gt(0)),
                                           o.trust * length / (slope + o.weight_decay * length + o.eps),
                                           length:ones_like())
      scaled[i] = (g + o.weight_decay * w) * local_rate
    end
    rule.call("sgd", { params, scaled, state.momentum_buffer or {}, o.skip },
              { lr = o.lr, momentum = o.momentum, nesterov = o.nesterov, step = step })
  end,
}
---Gradient descent with a rate a parameter (You, Gitman and Ginsburg, 2017): d = trust |w| / (|g| + weight_decay |w| +
---eps) (g + weight_decay w), b = momentum b + d, w -= lr b; nesterov: w -= lr (d + momentum b).
---@param options? any parameters and options, as above
---@param ... any
---@return perigee.Optimizer
function large.LARS(...) return Optimizer.new("LARS", ...) end

-- ---- Adafactor ----

local function epsilon(dtype) return dtype == "float64" and 2 ^ -52 or 2 ^ -23 end

rule.define {
  name = "Adafactor", attributes = attributes_of(1e-2, { "beta2_decay", -0.8, "1 - beta2 is step^beta2_decay" },
    { "eps", 1e-3, "least length of a parameter that the rate is scaled by" },
    { "d", 1, "longest root mean square of a step before the rate" }),
  slots = function() return { "row_var", "col_var", "variance" } end,
  -- Rows and columns of matrices (the last two axes); all elements of vectors; what is of no use to one is empty.
  zeros = function(slot, p)
    local shape, rank = {}, p:dim()
    for i, size in ipairs(p.shape) do shape[i] = size end
    if slot == "variance" then
      if rank > 1 then shape = { 0 } end
    elseif rank < 2 then
      shape = { 0 }
    else
      shape[slot == "row_var" and rank or rank - 1] = 1
    end
    local dtype = wide(p:detach()).dtype
    return require("perigee").zeros { shape, dtype = dtype, device = p.device }
  end,
  update = function(o, step, params, gradients, state)
    local part, rate = step ^ o.beta2_decay, lesser(o.lr, 1 / root(step))
    local later = new_later(o)
    for i, p in ipairs(params) do
      local w, g = wide(p:detach()), wide(gradients[i])
      local count = math.max(w:numel(), 1)
      local least = epsilon(w.dtype)
      local alpha = (norm(w):to("float64") / math.sqrt(count)):clamp { min = o.eps } * rate
      local square = g:square()
      local estimate
      if w:dim() > 1 then
        local row, col = state.row_var[i], state.col_var[i]
        row = row + (square:mean { axis = -1, keepdim = true } - row) * factor(w, part)
        col = col + (square:mean { axis = -2, keepdim = true } - col) * factor(w, part)
        later:add(state.row_var[i], row)
        later:add(state.col_var[i], col)
        estimate = row:matmul(col) / row:mean { axis = -2, keepdim = true }:clamp { min = least }
      else
        local variance = state.variance[i]
        estimate = variance + (square - variance) * factor(w, part)
        later:add(variance, estimate)
      end
      local direction = estimate:clamp { min = least * least }:rsqrt() * g
      local longest = (norm(direction):to("float64") / (math.sqrt(count) * o.d)):clamp { min = 1 }
      local kept = o.weight_decay == 0 and w or w - factor(w, o.lr * o.weight_decay) * w
      later:add(p, kept - direction * (alpha / longest):to(w.dtype))
    end
    later:write()
  end,
}
---Adam's second moment of a matrix kept as a row and a column (Shazeer and Stern, 2018), as PyTorch defines it. In step
---t, with b = t^beta2_decay: r = (1 - b) r + b mean(g^2) over each row, c likewise over each column, v = r c / mean(r)
---(of vectors v = (1 - b) v + b g^2), u = g / sqrt(v), w = (1 - lr weight_decay) w - max(eps, rms(w)) min(lr, 1 /
---sqrt(t)) u / max(1, rms(u) / d).
---@param options? any parameters and options, as above
---@param ... any
---@return perigee.Optimizer
function large.Adafactor(...) return Optimizer.new("Adafactor", ...) end

-- ---- Muon ----

-- Towards the nearest orthogonal matrix, by Newton and Schulz's iteration of odd degree 5 (coefficients: Jordan et al.,
-- 2024); singular values end between about 0.7 and 1.2.
local function orthogonal(m, steps, eps)
  local tall = m.shape[1] > m.shape[2]
  local x = tall and m:transpose(1, 2) or m
  x = x / norm(x):clamp { min = eps }
  for _ = 1, steps do
    local gram = x:matmul(x:transpose(1, 2))
    x = 3.4445 * x + (-4.7750 * gram + 2.0315 * gram:matmul(gram)):matmul(x)
  end
  return tall and x:transpose(1, 2) or x
end

rule.define {
  name = "Muon", attributes = { { "lr", 1e-3, "learning rate" },
    { "weight_decay", 0.1, "part of a weight lost per lr" },
    { "momentum", 0.95, "decay of the running mean of gradients" }, { "nesterov", true, "look ahead along it" },
    { "ns_steps", 5, "steps of the iteration" }, { "eps", 1e-7, "least norm that is divided by" } },
  slots = function() return { "momentum_buffer" } end,
  update = function(o, _, params, gradients, state)
    local later = new_later(o)
    for i, p in ipairs(params) do
      if p:dim() < 2 then
        native.raise("invalid_argument", "Muon", ("parameter %d is %s; only matrices can be made orthogonal"):format(i,
                     tostring(p.shape)), "give vectors to another optimizer, such as optim.AdamW")
      end
      local w, g, mean = wide(p:detach()), wide(gradients[i]), state.momentum_buffer[i]
      mean = mean + (g - mean) * (1 - o.momentum)
      later:add(state.momentum_buffer[i], mean)
      local direction = o.nesterov and g + (mean - g) * o.momentum or mean
      local rows = p.shape[1]
      local columns = p:numel() / math.max(rows, 1)
      if p:numel() > 0 then
        direction = orthogonal(direction:reshape(rows, columns), o.ns_steps, o.eps):reshape(p.shape)
        later:add(p, w * factor(w, 1 - o.lr * o.weight_decay) -
                     direction * factor(w, o.lr * math.sqrt(math.max(1, rows / columns))))
      end
    end
    later:write()
  end,
}
---Momentum made orthogonal (Jordan et al., 2024), for the matrices of hidden layers; axes behind the first count as
---one. Vectors, embeddings and the last layer belong to another optimizer. m = momentum m + (1 - momentum) g, u = m, or
---momentum m + (1 - momentum) g with nesterov; w = (1 - lr weight_decay) w - lr sqrt(max(1, rows / columns)) O(u), O(u)
---being near U V^T of u = U S V^T: x = u / |u|, then ns_steps times x = 3.4445 x + (-4.7750 a + 2.0315 a^2) x with a =
---x x^T.
---@param options? any parameters and options, as above
---@param ... any
---@return perigee.Optimizer
function large.Muon(...) return Optimizer.new("Muon", ...) end

return large
