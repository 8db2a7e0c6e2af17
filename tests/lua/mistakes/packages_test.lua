-- SPDX-License-Identifier: Apache-2.0
-- Names that parts of pg, objects and shapes have not: none is nil. Names of Keras' and PyTorch's.
-- A row is the code and the message behind "script:1: ".

local here = debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or "."
package.path = here .. "/../?.lua;" .. package.path

require("mistakes.check")(test, {
  { "pg.callbacks.EarlyStoping{}",
    'pg.callbacks has no "EarlyStoping" (did you mean pg.callbacks.EarlyStopping?)' },
  { "pg.callbacks.X{}", 'pg.callbacks has no "X" (it has CSVLogger, EarlyStopping, LRScheduler, ModelCheckpoint, ' ..
    "Monitor, ProgressBar, TensorBoard)" },
  { "pg.callbacks.TerminateOnNaN()", 'pg.callbacks has no "TerminateOnNaN" (pg.detect_anomaly(fn))' },
  { "pg.memory.x()", 'pg.memory has no "x" (it has collect, empty_cache, reset_peak, stats)' },
  { "pg.memory.memory_allocated()", 'pg.memory has no "memory_allocated" (pg.memory.stats(device).live)' },
  { "pg.linalg.nrom(x)", 'pg.linalg has no "nrom" (did you mean pg.linalg.norm?)' },
  { "pg.amp.autocst()", 'pg.amp has no "autocst" (did you mean pg.amp.autocast?)' },
  { "nn.init.xavier_normal(x)", 'nn.init has no "xavier_normal" (did you mean nn.init.xavier_normal_?)' },
  { "pg.metrics.SparseCategoricalAccuracy()",
    'pg.metrics has no "SparseCategoricalAccuracy" (metrics.Accuracy{})' },
  { "data.form_slices{x}", 'data has no "form_slices" (did you mean data.from_slices?)' },
  { "pg.sparse_categorical_crossentropy(x, y)",
    'perigee has no "sparse_categorical_crossentropy" (nn.cross_entropy(prediction, target))' },
  { "nn.SparseCategoricalCrossentropy()",
    'nn has no "SparseCategoricalCrossentropy" (nn.CrossEntropyLoss{})' },
  { 'model:fit{x=x, y=x, loss="sparse_categorical_crossentropy", optimizer="adam"}',
    'fit: unknown loss "sparse_categorical_crossentropy" (did you mean "cross_entropy"?)' },
  { 'model:fit{x=x, y=x, loss="mse", optimizer="adam", metrics={"sparse_categorical_accuracy"}}',
    'fit: unknown metric "sparse_categorical_accuracy" (did you mean "accuracy"?)' },
  { "nn.SimpleRNN{3}", "there is no nn.SimpleRNN in this version (nn.RNN{hidden_size})" },
  { "nn.ConvLSTM2D{2, 3}", "there is no nn.ConvLSTM2D in this version" },
  { "nn.MaxUnpool2d{2}", "there is no nn.MaxUnpool2d in this version" },
  { "pg.linalg.inv(x)", "there is no pg.linalg.inv in this version" },
  { "pg.svd(x)", "there is no pg.svd in this version" },
  { "local _ = pg.fft", "there is no pg.fft in this version" },
  { "optim.ASGD{w}", "there is no optim.ASGD in this version" },
  { "data.imagenet()", "there is no data.imagenet in this version" },
  { "x:inverse()", 'a tensor has no field or method "inverse" (there is no x:inverse() in this version)' },
  { "nn.LazyLinear{3}", 'nn has no "LazyLinear" (nn.Linear{out} takes its inputs from the first call)' },
  { "nn.Softmax2d{}", 'nn has no "Softmax2d" (nn.Softmax{axis=2})' },
  { "local _ = opt.param_groups", 'an optimizer has no "param_groups" (optimizer.groups)' },
  { "opt:zerograd()", 'an optimizer has no "zerograd" (did you mean optimizer:zero_grad()?)' },
  { "pg.metrics.MAE{}:valeu()", 'a metric has no "valeu" (did you mean metric:value()?)' },
  { "local _ = x.shape[3] + 1", "shape: there is no position 3 in {2, 3}" },
  { "local _ = x.shape[-3]", "shape: there is no position -3 in {2, 3}" },
  { "local _ = x.shape.size", 'shape: a shape has no "size" (it is a list: shape[1], #shape)' },
})

test("a name of 20,000 letters is looked for in no time", function(t)
  local pg = require "perigee"
  local name, x, clock = ("x"):rep(20000), pg.zeros { 2 }, os.clock
  local start = clock()
  t.raises(function() return pg[name] end, "perigee has no")
  t.raises(function() return pg.nn[name] end, "nn has no")
  t.raises(function() return x[name] end, "no field or method")
  t.raises(function() return x:sum { [name] = 1 } end, "unknown option")
  t.ok(clock() - start < 0.2, ("took %.3f s"):format(clock() - start))
end)
