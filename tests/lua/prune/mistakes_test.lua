-- SPDX-License-Identifier: Apache-2.0
-- Calls of pg.prune that must fail: what they say, and that nothing has changed.

local pg = require "perigee"
local nn, prune = pg.nn, pg.prune

local function frozen()
  return nn.Linear { 4, 2 }:freeze()
end

local function with_nan()
  local layer = nn.Linear { 4, 2 }
  pg.no_grad(function() layer.weight[1] = 0 / 0 end)
  return layer
end

local function linear() return nn.Linear { 4, 2 } end

local CASES = {
  { linear, "l1_unstructured", { amount = 1.5 },
    "amount must lie in [0, 1], got 1.5 (count= is a number of elements)" },
  { linear, "l1_unstructured", { amount = -0.1 }, "amount must lie in [0, 1], got -0.1" },
  { linear, "l1_unstructured", { amount = 0 / 0 }, "amount must lie in [0, 1], got" },
  { linear, "l1_unstructured", {}, "needs amount or count (amount=0.5 prunes half)" },
  { linear, "l1_unstructured", { amount = 0.5, count = 2 }, "amount and count say the same twice" },
  { linear, "l1_unstructured", { count = 9 },
    "count must lie in 0..8, the number of elements that are not pruned, got 9" },
  { linear, "l1_unstructured", { amount = 0.5, name = "wieght" },
    'Linear has no parameter "wieght" (did you mean "weight"?)' },
  { linear, "l1_unstructured", { amonut = 0.5 }, 'unknown option "amonut" (did you mean "amount"?)' },
  { function() return nn.ReLU {} end, "l1_unstructured", 0.5, 'ReLU has no parameter "weight"' },
  { function() return nn.Sequential { nn.ReLU {} } end, "l1_unstructured", 0.5,
    'no layer in Sequential has a parameter "weight" of two axes or more' },
  { function() return nn.Linear { 3 } end, "l1_unstructured", 0.5,
    "the sizes of Linear are not known before the first input" },
  { frozen, "l1_unstructured", 0.5, "weight of Linear is frozen (layer:unfreeze() before it is pruned)" },
  { frozen, "n_of_m", nil, "weight of Linear is frozen" },
  { with_nan, "l1_unstructured", 0.5, "weight of Linear holds NaN or infinite values" },
  { with_nan, "ln_structured", 0.5, "weight of Linear holds NaN or infinite values" },
  { function() return nn.utils.weight_norm(linear()) end, "l1_unstructured", 0.5,
    "weight of Linear is computed by weight_norm already" },
  { linear, "ln_structured", { amount = 0.5, axis = 3 }, "axis 3 is out of range for a tensor {2, 4}" },
  { linear, "ln_structured", { amount = 0.5, axis = 0 }, "axis is 0, but axes count from 1" },
  { linear, "ln_structured", { amount = 0.5, n = 0 / 0 }, "n is NaN" },
  { linear, "ln_structured", { count = 3 }, "count must lie in 0..2, the number of slices" },
  { linear, "n_of_m", { n = 3, m = 2 }, "needs 0 <= n <= m and m >= 1, got n=3, m=2" },
  { linear, "n_of_m", { n = 2, m = 3 }, "weight of Linear {2, 4}: axis 2 is no multiple of m=3" },
  { linear, "custom_from_mask", nil, 'argument "mask" is missing' },
  { linear, "custom_from_mask", pg.ones { 4, 2 },
    "the mask is {4, 2}; expected {2, 4}, the shape of weight of Linear" },
  { linear, "custom_from_mask", pg.full({ 2, 4 }, 0.5), "holds values other than 0 and 1" },
  { function() return nn.Sequential { linear() } end, "custom_from_mask", pg.ones { 2, 4 },
    'Sequential has no parameter "weight" of its own' },
  { function() return pg.ones { 2 } end, "l1_unstructured", 0.5, "needs a layer, a model or a list of them, got" },
  { function() return {} end, "l1_unstructured", { amount = 0.5 }, "the list of layers is empty" },
  { linear, "remove", nil, "Linear is not pruned" },
  { function() return prune.l1_unstructured(linear(), 0.5) end, "remove", "bias", "bias of Linear is not pruned" },
  { function() return 3 end, "is_pruned", nil, "needs a layer, got" },
  { function() return nn.Sequential { nn.Linear { 3 } } end, "report", nil,
    "sizes are not known before the first input" },
  { linear, "Gradual", { amount = 2, steps = 3 }, "amount must lie in [0, 1], got 2" },
  { linear, "Gradual", { amount = 0.5 }, 'argument "steps" is missing' },
  { linear, "Gradual", { amount = 0.5, steps = 0 }, "steps must be at least 1, got 0" },
  { linear, "Gradual", { amount = 0.5, steps = 3, initial = 0.6 }, "initial 0.6 is more than amount 0.5" },
}

test("what cannot be pruned says so and stays as it is", function(t)
  for _, case in ipairs(CASES) do
    local make, name, argument, text = unpack(case, 1, 4)
    local target = make()
    local before = nn.is_layer(target) and prune.is_pruned(target)
    local err = tostring(t.raises(function()
      if argument == nil then prune[name](target) else prune[name](target, argument) end
    end))
    t.ok(err:find(text, 1, true), ("%q is not in: %s"):format(text, err))
    t.ok(err:find("prune." .. name, 1, true) ~= nil, "the function is not named: " .. err)
    if nn.is_layer(target) then t.equal(prune.is_pruned(target), before) end
  end
end)

test("a model of which one layer cannot be pruned stays whole", function(t)
  local model = nn.Sequential { linear(), nn.ReLU {}, nn.Linear { 2, 3 } }
  model[3]:freeze()
  t.raises(function() prune.l1_unstructured(model, 0.5) end, "frozen")
  t.raises(function() prune.n_of_m(nn.Sequential { linear(), nn.Linear { 2, 3 } }) end, "multiple of m=4")
  t.ok(not prune.is_pruned(model))
  model = nn.Sequential { linear(), with_nan() }
  t.raises(function() prune.l1_unstructured(model, 0.5) end, "NaN")
  t.ok(not prune.is_pruned(model))
end)

test("what is pruned is no field to assign to", function(t)
  local layer = prune.l1_unstructured(linear(), 0.5)
  t.raises(function() layer.weight = nn.Parameter(pg.ones { 2, 4 }) end,
           "weight is computed by pruning %(pg.prune.remove%(layer%) makes it a parameter again%)")
  t.raises(function() nn.utils.weight_norm(layer) end, "computed by pruning already")
end)
