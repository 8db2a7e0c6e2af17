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

-- ---- ctc: all paths, one by one ----

-- Calls see(t, class, weight) for every step of every path of sequence n that spells its labels; answers their sum.
local function each_path(x, labels, steps, length, n, blank, see)
  local classes, path, sum = x.shape[3], {}, 0
  local function spells()
    local at, before = 0, blank
    for t = 1, steps do
      local c = path[t]
      if c ~= blank and c ~= before then
        at = at + 1
        if at > length or labels.data[n * labels.shape[2] + at] ~= c then return false end
      end
      before = c
    end
    return at == length
  end
  local function go(t, weight)
    if t > steps then
      if not spells() then return end
      sum = sum + weight
      for k = 1, steps do if see then see(k - 1, path[k], weight) end end
      return
    end
    for c = 0, classes - 1 do
      path[t] = c
      go(t + 1, weight * math.exp(x.data[array.at(x, { t - 1, n, c })]))
    end
  end
  go(1, 1)
  return sum
end

local function ctc_loss(a, o)
  return { array.fill({ a[1].shape[2] }, function(i)
    local nll = -math.log(each_path(a[1], a[2], a[3].data[i], a[4].data[i], i - 1, o.blank or 0))
    return o.zero_infinity and nll == math.huge and 0 or nll
  end) }
end
local function index(shape, values) return V(shape, values, "index") end
local function negative(shape) return F(shape, -3, -0.1) end
rows.ctc_loss = {
  class = "composed", ref = ctc_loss, grad = false,
  cases = {
    { negative { 4, 2, 3 }, index({ 2, 2 }, { 1, 2, 1, 1 }), index({ 2 }, { 4, 3 }), index({ 2 }, { 2, 2 }) },
    { negative { 4, 2, 3 }, index({ 2, 3 }, { 0, 1, 0, 0, 9, 9 }), index({ 2 }, { 4, 2 }), index({ 2 }, { 3, 1 }),
      attrs = { blank = 2 } },
    { negative { 3, 2, 3 }, index({ 2, 2 }, { 1, 1, 2, 1 }), index({ 2 }, { 2, 3 }), index({ 2 }, { 2, 0 }),
      attrs = { zero_infinity = true } },
    { negative { 3, 0, 3 }, index({ 0, 2 }, {}), index({ 0 }, {}), index({ 0 }, {}) },
  },
  bad = {
    { { negative { 3, 1, 3 }, index({ 1, 2 }, { 1, 3 }), index({ 1 }, { 3 }), index({ 1 }, { 2 }) }, nil,
      "label" },
    { { negative { 3, 1, 3 }, index({ 1, 2 }, { 1, 2 }), index({ 1 }, { 4 }), index({ 1 }, { 2 }) }, nil, "length" },
    { { negative { 3, 1, 3 }, index({ 1, 2 }, { 1, 2 }), index({ 1 }, { 3 }), index({ 1 }, { 2 }) }, { blank = 3 },
      "blank 3 is out of range" },
    { { negative { 3, 1, 3 }, index({ 2, 2 }, { 1, 2, 1, 2 }), index({ 1 }, { 3 }), index({ 1 }, { 2 }) }, nil,
      "number of sequences" },
  },
}
rows.ctc_loss_grad = {
  class = "differences", grad = false,
  ref = function(a, o)
    local x = a[2]
    local out = array.fill(x.shape, 0)
    for n = 0, x.shape[2] - 1 do
      local share, steps = {}, a[4].data[n + 1]
      local function read(see) return each_path(x, a[3], steps, a[5].data[n + 1], n, o.blank or 0, see) end
      local sum = read(function(t, c, weight) share[t * 100 + c] = (share[t * 100 + c] or 0) + weight end)
      for t = 0, sum > 0 and steps - 1 or -1 do
        for c = 0, x.shape[3] - 1 do
          local p = array.at(x, { t, n, c })
          out.data[p] = (math.exp(x.data[p]) - (share[t * 100 + c] or 0) / sum) * a[1].data[n + 1]
        end
      end
    end
    return { out }
  end,
  cases = {
    { F { 2 }, negative { 4, 2, 3 }, index({ 2, 2 }, { 1, 2, 1, 1 }), index({ 2 }, { 4, 3 }), index({ 2 }, { 2, 2 }) },
    { F { 2 }, negative { 3, 2, 3 }, index({ 2, 2 }, { 1, 1, 2, 1 }), index({ 2 }, { 2, 3 }), index({ 2 }, { 2, 1 }),
      attrs = { zero_infinity = true } },
  },
  bad = { { { F { 3 }, negative { 3, 1, 3 }, index({ 1, 2 }, { 1, 2 }), index({ 1 }, { 3 }), index({ 1 }, { 2 }) }, nil,
            "number of sequences" } },
}

return rows
