-- SPDX-License-Identifier: Apache-2.0
-- pg.metrics. Values are counted by hand; the means over classes are those of scikit-learn's average="macro".

local pg = require "perigee"
local nn, metrics = pg.nn, pg.metrics

-- Fed in two batches of different sizes.
local function value(metric, prediction, target)
  local n = #target
  local first = math.floor(n / 3)
  metric:update(prediction[{ { 1, first } }], target[{ { 1, first } }])
  metric:update(prediction[{ { first + 1, n } }], target[{ { first + 1, n } }])
  return metric:value()
end

local LOGITS = pg.tensor { 2.0, -1.0, 0.5, -0.2, 1.5, -3.0, 0.1, 0.5 }
local TRUTH = pg.tensor { 1, 0, 0, 1, 1, 0, 1, 1 }
local SCORES = pg.tensor { -- of four classes
  { 3, 1, 2, 0 }, { 0, 2, 1, 3 }, { 1, 5, 4, 0 },
  { 2, 1, 3, 0 }, { 4, 3, 1, 2 }, { 0, 1, 9, 3 } }
local LABELS = pg.tensor({ 0, 1, 2, 2, 0, 1 }, { dtype = "int64" })

test("metrics of yes and no", function(t)
  for _, shape in ipairs { { 8 }, { 8, 1 } } do
    local p, y = LOGITS:reshape(shape), TRUTH:reshape(shape)
    t.close(value(metrics.BinaryAccuracy {}, p, y), 6 / 8, 1e-6)
    t.close(value(metrics.Accuracy {}, p, y), 6 / 8, 1e-6)
    t.close(value(metrics.ErrorRate {}, p, y), 2 / 8, 1e-6)
    t.close(value(metrics.Precision {}, p, y), 4 / 5)
    t.close(value(metrics.Recall {}, p, y), 4 / 5)
    t.close(value(metrics.F1 {}, p, y), 4 / 5)
    t.close(value(metrics.Precision { threshold = 1 }, p, y), 1)
    t.close(value(metrics.Recall { threshold = 1 }, p, y), 2 / 5)
    t.close(value(metrics.F1 { threshold = 1 }, p, y), 4 / 7)
    t.close(value(metrics.AUC {}, p, y), 12.5 / 15)                       -- one tie of a pair
    t.close(value(metrics.AUC {}, p:sigmoid(), y:to("bool")), 12.5 / 15)
  end
  t.close(value(metrics.BinaryAccuracy {}, LOGITS:reshape(4, 2), TRUTH:reshape(4, 2)), 6 / 8, 1e-6)
  t.equal(value(metrics.Precision { threshold = 9 }, LOGITS, TRUTH), 0)
  local one_kind = metrics.AUC {}
  one_kind:update(LOGITS, pg.ones { 8 })
  t.ok(one_kind:value() ~= one_kind:value())
end)

test("metrics of several classes", function(t)
  t.close(value(metrics.Accuracy {}, SCORES, LABELS), 3 / 6, 1e-6)
  t.close(value(metrics.TopKAccuracy { 2 }, SCORES, LABELS), 5 / 6, 1e-6)
  t.close(value(metrics.TopKAccuracy { k = 3 }, SCORES, LABELS), 1, 1e-6)
  -- called: 0, 3, 1, 2, 0, 2; class 3 is called once and never there
  t.close(value(metrics.Precision {}, SCORES, LABELS), (1 + 0 + 0.5 + 0) / 4)
  t.close(value(metrics.Recall {}, SCORES, LABELS), (1 + 0 + 0.5 + 0) / 4)
  t.close(value(metrics.F1 {}, SCORES, LABELS), (1 + 0 + 0.5 + 0) / 4)
  -- a class that is neither there nor called has no part in the mean
  t.close(value(metrics.Recall {}, pg.cat({ SCORES, pg.full({ 6, 1 }, -1) }, { axis = 2 }), LABELS), 1.5 / 4)
  -- places of an image, [N, C, H] against [N, H]
  local pixels = SCORES:reshape(3, 2, 4):transpose(2, 3)
  t.close(value(metrics.Accuracy {}, pixels, LABELS:reshape(3, 2)), 3 / 6, 1e-6)
  t.close(value(metrics.F1 {}, pixels, LABELS:reshape(3, 2)), 1.5 / 4)
  t.close(value(metrics.TopKAccuracy { 2 }, pixels, LABELS:reshape(3, 2)), 5 / 6, 1e-6)
end)

test("mse and mae", function(t)
  t.close(value(metrics.MSE {}, pg.tensor { 1, 2, 4 }, pg.tensor { 1, 4, 1 }), 13 / 3, 1e-6)
  t.close(value(metrics.MAE {}, pg.tensor { 1, 2, 4 }, pg.tensor { 1, 4, 1 }), 5 / 3, 1e-6)
end)

test("AUC is the part of pairs in order, for any scores", function(t)
  pg.manual_seed(4)
  local p, y = pg.randint(0, 20, { 200 }):to("float32"), pg.rand { 200 }:gt(0.6)
  local scores, real, right, pairs_seen = p:totable(), y:totable(), 0, 0
  for i = 1, 200 do
    for k = 1, 200 do
      if real[i] and not real[k] then
        pairs_seen = pairs_seen + 1
        right = right + (scores[i] > scores[k] and 1 or scores[i] == scores[k] and 0.5 or 0)
      end
    end
  end
  t.close(value(metrics.AUC {}, p, y), right / pairs_seen, 1e-12)
end)

test("a metric is reset, saved and taken up", function(t)
  for name, class in pairs(metrics) do
    local p, y = LOGITS, TRUTH
    if name == "TopKAccuracy" then p, y = SCORES:repeat_interleave(2, 1), LABELS:repeat_interleave(2, 1) end
    local options = name == "TopKAccuracy" and { 2 } or {}
    local a, b = class(options), class(options)
    local whole = value(class(options), p, y)
    t.ok(a:value() ~= a:value(), name)
    a:update(p[{ { 1, 3 } }], y[{ { 1, 3 } }])
    b:load_state(a:state(), "cpu")
    a:update(p[{ { 4, -1 } }], y[{ { 4, -1 } }])
    b:update(p[{ { 4, -1 } }], y[{ { 4, -1 } }])
    t.close({ a:value(), b:value() }, { whole, whole }, 1e-6) -- in parts, a device may sum in another order
    a:reset()
    t.equal(value(a, p, y), whole, name)
  end
end)

test("fit and evaluate take metrics by name, and as objects", function(t)
  pg.manual_seed(1)
  local x = pg.randn { 50, 3 }
  local y = x:sum { axis = 2, keepdim = true }:gt(0):to("float32")
  local names = { "accuracy", "binary_accuracy", "precision", "recall", "f1", "auc", "error" }
  local model = nn.Linear { 3, 1 }
  local history = model:fit { x = x, y = y, validation = { x = x, y = y }, loss = "bce_with_logits", metrics = names,
                              optimizer = pg.optim.Adam { lr = 0.1 }, epochs = 15, batch_size = 16, verbose = 0 }
  for _, name in ipairs(names) do
    local better = name == "error" and 1 - history[15].val_error or history[15]["val_" .. name]
    t.ok(better > 0.9 and history[15][name], name)
  end
  local auc = metrics.AUC {}
  auc:update(model(x), y)
  t.close(model:evaluate { x = x, y = y }.auc, auc:value())
  -- probabilities are judged at a half
  local result = nn.Sequential { model, nn.Sigmoid {} }:evaluate {
    x = x, y = y, loss = "bce", metrics = { "accuracy", strict = metrics.BinaryAccuracy { threshold = 2 } } }
  t.close(result.accuracy, history[15].val_accuracy, 1e-6)
  t.close(result.strict, 1 - y:mean():item(), 1e-6)
  local top = nn.Linear { 3, 9 }:evaluate { x = x, y = y:flatten():to("int64"), loss = "cross_entropy",
                                            metrics = { "top_k_accuracy", all = metrics.TopKAccuracy { 9 } } }
  t.ok(top.top_k_accuracy <= 1 and top.all == 1)
end)

test("names that histories have for something else are no metric's", function(t)
  local x, y = pg.rand { 8, 2 }, pg.rand { 8, 2 }
  local function evaluate(given)
    return function() return nn.Linear { 2, 2 }:evaluate { x = x, y = y, loss = "mse", metrics = given } end
  end
  local function one() return 1 end
  for _, name in ipairs { "loss", "epoch", "seconds", "lr", "val_loss" } do
    t.raises(evaluate { [name] = one }, "a metric cannot be called")
  end
  t.raises(evaluate { "mse", "mse" }, 'two metrics are called "mse"')
  t.raises(evaluate { "mse", mse = one }, 'two metrics are called "mse"')
  t.raises(evaluate { "precison" }, 'did you mean "precision"')
  t.raises(evaluate { 3 }, "a name, a function or a metric")
  t.equal(evaluate(one)().metric_1, 1)
end)

test("metrics refuse what they cannot judge, by name", function(t)
  local function refused(metric, p, y, text) t.raises(function() metric:update(p, y) end, text) end
  refused(metrics.MSE {}, pg.ones { 4, 1 }, pg.ones { 4 }, "mse: the prediction is")
  refused(metrics.MAE {}, pg.ones { 4, 1 }, pg.ones { 4 }, "reshape one of them")
  refused(metrics.Accuracy {}, pg.ones { 4, 1 }, pg.ones { 4 }, "accuracy: needs scores %[N, C%] and labels %[N%]")
  refused(metrics.Accuracy {}, pg.ones { 4, 3 }, pg.ones { 4, 3 }, "argmax")
  refused(metrics.Accuracy {}, pg.ones { 4, 3 }, pg.ones { 5 }, "accuracy: needs scores")
  refused(metrics.Accuracy {}, pg.ones { 4, 3 }, 3, "needs two tensors")
  refused(metrics.AUC {}, pg.ones { 4, 3 }, pg.ones { 4 }, "auc: the prediction is")
  refused(metrics.F1 {}, pg.ones { 4, 1 }, pg.ones { 4 }, "f1: needs scores")
  refused(metrics.TopKAccuracy {}, pg.ones { 4, 3 }, pg.ones { 4 }, "k is 5, but there are 3 classes")
  t.raises(function() metrics.TopKAccuracy { 0 } end, "at least 1")
  t.raises(function() metrics.F1 { treshold = 1 } end, "threshold")
  local function with(fn)
    return function()
      nn.Linear { 2, 1 }:fit { x = pg.ones { 6, 2 }, y = pg.ones { 6, 1 }, loss = "mse", batch_size = 4, verbose = 0,
                               metrics = { far = fn } }
    end
  end
  t.raises(with(function() end), "far: a metric gives a number or a tensor with one element, got nil")
  t.raises(with(function() return "1" end), "far: .*got string")
  t.raises(with(function(p, y) return p:eq(y) end), "far: .*got tensor.*mean")
end)
