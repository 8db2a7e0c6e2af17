-- SPDX-License-Identifier: Apache-2.0
-- Cross entropy.

local array = require "cases.array"
local S = require "cases.specs"
local F, I, V = S.F, S.I, S.V

local function log_softmax(x)
  return array.along(x, #x.shape == 1 and 1 or 2, function(list)
    local m, s, out = -1 / 0, 0, {}
    for _, v in ipairs(list) do m = math.max(m, v) end
    for _, v in ipairs(list) do s = s + math.exp(v - m) end
    for i, v in ipairs(list) do out[i] = v - m - math.log(s) end
    return out
  end)
end

-- The loss of given log-probabilities.
local function loss(log_probs, target, weight, o)
  local axis = #log_probs.shape == 1 and 1 or 2
  local classes, smooth, ignore = log_probs.shape[axis], o.label_smoothing or 0, o.ignore_index or -100
  local total, norm = 0, 0
  local each = array.build(target.shape, function(ix)
    local class = target.data[array.at(target, ix)]
    if class == ignore then return 0 end
    local function term(c)
      local at = { unpack(ix) }
      table.insert(at, axis, c)
      return -log_probs.data[array.at(log_probs, at)] * (weight and weight.data[c + 1] or 1)
    end
    local y, spread = term(class), 0
    for c = 0, classes - 1 do spread = spread + term(c) end
    y = (1 - smooth) * y + smooth / classes * spread
    total, norm = total + y, norm + (weight and weight.data[class + 1] or 1)
    return y
  end)
  if o.reduction == "none" then return each end
  return array.new({}, { o.reduction == "sum" and total or total / norm })
end

local function targets(values, shape) return V(shape or { #values }, values, "index") end

local rows = {}
rows.cross_entropy = {
  class = "composed",
  ref = function(a, o) return { loss(log_softmax(a[1]), a[2], a[3], o) } end,
  grad = { true },
  cases = {
    { F { 3, 4 }, targets { 0, 3, 1 } }, { F { 3, 4 }, targets { 0, 3, 1 }, attrs = { reduction = "sum" } },
    { F { 3, 4 }, targets { 0, 3, 1 }, attrs = { reduction = "none" } }, { F { 3, 4 }, targets { 0, -100, 1 } },
    { F { 3, 4 }, targets { 2, 3, 2 }, attrs = { ignore_index = 2 } },
      { F { 3, 4 }, targets { 0, 3, 1 }, attrs = { label_smoothing = 0.1 } },
    { F { 3, 4 }, targets { 0, 3, 1 }, F({ 4 }, 0.5, 2) },
      { F { 3, 4 }, targets { 0, 3, 1 }, F({ 4 }, 0.5, 2), attrs = { label_smoothing = 0.2 } },
    { F { 3, 4, 2 }, I({ 3, 2 }, 0, 3), attrs = { reduction = "none" } }, { F { 3, 4, 2 }, I({ 3, 2 }, 0, 3) },
      { F { 4 }, targets({ 2 }, {}) },
    { F { 0, 4 }, targets({}, { 0 }), attrs = { reduction = "sum" } },
  },
  bad = { { { F { 2, 4 }, targets { 0, 4 } }, nil, "4" }, { { F { 2, 4 }, targets { 0, -1 } }, nil, "%-1" },
    { { F { 2, 4 }, targets { 0 } }, nil, "does not fit" },
          { { F { 2, 4 }, targets { 0, 1 }, F { 3 } }, nil, "number of classes" },
            { { F { 2, 4 }, targets { 0, 1 } }, { reduction = "men" }, "mean" },
          { { F { 2, 4 }, F { 2 } }, nil, "target" } },
}

local function log_probs(shape) return { shape = shape, kind = "float", compute = function()
  return log_softmax(S.draw(F(shape)))
end } end
rows.cross_entropy_grad = {
  class = "differences",
  ref = function(a, o)
    -- The slope by the logits: those that give these log-probabilities are, but for a constant, the same numbers.
    return array.differences(a[2], a[1], function(v) return loss(log_softmax(v), a[3], a[4], o) end)
  end,
  grad = { true, true }, second = false,
  cases = {
    { F {}, log_probs { 3, 4 }, targets { 0, 3, 1 } },
      { F { 3 }, log_probs { 3, 4 }, targets { 0, -100, 1 }, attrs = { reduction = "none" } },
    { F {}, log_probs { 3, 4 }, targets { 0, 3, 1 }, F({ 4 }, 0.5, 2), attrs = { label_smoothing = 0.2 } },
    { F {}, log_probs { 4 }, targets({ 2 }, {}) },
  },
  bad = { { { F {}, F { 2, 4 }, targets { 0 } }, nil, nil } },
}

return rows
