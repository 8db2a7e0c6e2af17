-- SPDX-License-Identifier: Apache-2.0
-- Pipelines, fit, evaluate, predict.

local pg = require "perigee"
local nn, optim, data = pg.nn, pg.optim, pg.data

local function numbers(ds)
  local list = {}
  for _, s in ds:each() do list[#list + 1] = s.value end
  return list
end

test("pipelines: take, skip, map, shard, repeated, split, counts", function(t)
  local ds = data.range(10)
  t.equal(#ds, 10)
  t.equal(numbers(ds:take(3)), { 0, 1, 2 })
  t.equal(numbers(ds:skip(8)), { 8, 9 })
  t.equal(numbers(ds:skip(20)), {})
  t.equal(numbers(ds:map(function(s) return { value = s.value * 2 } end):take(2)), { 0, 2 })
  t.equal(numbers(ds:shard { 3, 1 }), { 1, 4, 7 })
  t.equal(#ds:repeated(3), 30)
  local a, b = ds:split { 0.8, 0.2 }
  t.equal({ #a, numbers(b) }, { 8, { 8, 9 } })
  t.raises(function() ds:split { 0.8, 0.4 } end, "sum")
end)

test("shuffling draws a new, repeatable order each epoch", function(t)
  local function make() return data.range(50):shuffle { seed = 3 } end
  local a, b = make(), make()
  local first, second = numbers(a), numbers(a)
  t.equal(numbers(b), first)
  t.equal(numbers(b), second)
  local changed, sorted = false, {}
  for i, v in ipairs(first) do
    changed = changed or v ~= second[i]
    sorted[i] = v
  end
  t.ok(changed)
  table.sort(sorted)
  t.equal(sorted, numbers(data.range(50)))
  for i, v in ipairs(numbers(data.range(50):shuffle { 5, seed = 1 })) do t.ok(v < i + 5) end
  local fixed = data.range(20):shuffle { seed = 1, every_epoch = false }
  t.equal(numbers(fixed), numbers(fixed))
end)

test("batches of slices and of samples", function(t)
  local ds = data.from_slices { x = pg.arange(5):reshape(5, 1), y = pg.arange(5) }
  local shapes = {}
  for step, b in ds:batch(2):each() do shapes[step] = { b.x.shape[1], b.y:totable()[1] } end
  t.equal(shapes, { { 2, 0 }, { 2, 2 }, { 1, 4 } })
  t.equal(#ds:batch { 2, drop_last = true }, 2)
  local mapped = ds:map(function(s) return { x = s.x * 2, n = 1, name = "a" } end):batch(5)
  for _, b in mapped:each() do
    t.equal(b.x:totable(), { { 0 }, { 2 }, { 4 }, { 6 }, { 8 } })
    t.ok(b.n:has_shape { 5 })
    t.equal(b.name[5], "a")
  end
  t.raises(function() data.from_slices { x = pg.zeros { 2 }, y = pg.zeros { 3 } } end, "samples")
  t.raises(function() ds:batch { 0 } end, "at least 1")
  t.raises(function() ds:batch { 2, drop_lst = true } end, "drop_last")
end)

-- Two separable clouds.
local function clouds(n)
  pg.manual_seed(5)
  local y = pg.arange(n):remainder(2)
  local x = pg.randn { n, 2 } * 0.3 + (y:to("float32") * 2 - 1):unsqueeze(2)
  return x, y
end

local function classifier()
  pg.manual_seed(1)
  return nn.Sequential { nn.Linear { 2, 8 }, nn.ReLU {}, nn.Linear { 2 } }
end

test("fit learns, and keeps a history", function(t)
  local x, y = clouds(64)
  local model = classifier()
  local history = model:fit { x = x, y = y, validation_split = 0.25, loss = "cross_entropy", metrics = { "accuracy" },
                              optimizer = optim.Adam { lr = 0.05 }, epochs = 5, batch_size = 16, verbose = 0 }
  t.equal(#history, 5)
  t.ok(history[5].loss < history[1].loss)
  t.ok(history[5].val_accuracy > 0.9)
  t.equal(model.training, true)
  local result = model:evaluate { x = x, y = y }
  t.ok(result.accuracy > 0.9 and result.loss < history[1].loss)
  local scores = model:predict(x)
  t.ok(scores:has_shape { 64, 2 } and not scores.requires_grad)
  t.close(model:predict { x, batch_size = 10 }, scores)
  t.ok(tostring(history):find("val_accuracy"))
end)

test("the same seed gives the same bits", function(t)
  local x, y = clouds(32)
  local function train()
    local model = classifier()
    model:fit { x = x, y = y, loss = "cross_entropy", epochs = 2, batch_size = 8, verbose = 0 }
    return model[1].weight:totable()
  end
  t.equal(train(), train())
end)

test("accumulated batches are one large batch", function(t)
  local x, y = clouds(32)
  local function train(batch, accumulate)
    local model = classifier()
    model:fit { x = x, y = y, loss = "cross_entropy", optimizer = optim.SGD { lr = 0.1 }, epochs = 2, verbose = 0,
                shuffle = false, batch_size = batch, accumulate = accumulate }
    return model[1].weight:totable()
  end
  t.close(train(8, 4), train(32, 1), 1e-5)
end)

test("losses and metrics as functions, callbacks, clipping", function(t)
  local x, y = clouds(16)
  local events = {}
  local model = nn.Linear { 2, 1 }
  local history = model:fit {
    data = data.from_slices { x = x, y = y:to("float32"):unsqueeze(2) }:batch(8),
    loss = nn.MSELoss {}, metrics = { "mae", far = function(p, target) return (p - target):abs():max() end },
    clip_norm = 0.5, epochs = 10, verbose = 0,
    callbacks = { { on_epoch_end = function(_, job, entry)
      events[#events + 1] = entry.loss
      if job.epoch == 2 then job.stop = true end
    end } },
  }
  t.equal(#history, 2)
  t.equal(#events, 2)
  t.ok(history[1].far >= history[1].mae)
end)

test("what fit refuses", function(t)
  local x, y = clouds(8)
  local model = classifier()
  local function fit(o)
    return function()
      o.verbose = 0
      model:fit(o)
    end
  end
  t.raises(fit { x = x, y = y, loss = "cross_entrpy" }, "cross_entropy")
  t.raises(fit { x = x, y = y, loss = "cross_entropy", metrics = { "acuracy" } }, "accuracy")
  t.raises(fit { x = x, y = y, loss = "cross_entropy", epoch = 3 }, "epochs")
  t.raises(fit { x = x, loss = "cross_entropy" }, "both x= and y=")
  t.raises(fit { x = x, y = y }, "loss")
  t.raises(fit { data = 3, loss = "mse" }, "dataset")
  t.raises(fit { x = x, y = y, loss = "cross_entropy", epochs = 0 }, "at least 1")
  t.raises(fit { x = x, y = y, loss = function(p) return p end }, "0%-dim")
  t.raises(fit { x = x, y = y, loss = "cross_entropy", validation = 0.2 }, "validation must be a dataset")
  t.raises(fit { x = x, y = y, loss = "cross_entropy", validation = { x } }, '"y" is missing')
  t.raises(function() model:fit(x, y) end, "by name: x=, y=, loss=")
  t.raises(function() nn.Linear { 2, 2 }:evaluate { x = x, y = y } end, "loss")
end)

test("validation as tensors", function(t)
  local x, y = clouds(8)
  for _, validation in ipairs { { x = x, y = y }, { x, y }, data.from_slices { x = x, y = y } } do
    local model = classifier()
    local history = model:fit { x = x, y = y, loss = "cross_entropy", verbose = 0, validation = validation }
    t.close(history[1].val_loss, model:evaluate { x = x, y = y }.loss, 1e-6)
  end
end)

-- ---- accumulation, clipping, mixed precision ----

local function trained(options)
  local x, y = clouds(options.samples or 24)
  local model = classifier()
  local o = { x = x, y = y, shuffle = false, loss = "cross_entropy", optimizer = optim.SGD { lr = 0.3, momentum = 0.9 },
              epochs = 3, verbose = 0 }
  for key, value in pairs(options) do o[key] = value end
  o.samples = nil
  local history = model:fit(o)
  local list = {}
  for _, p in ipairs(model:parameters()) do
    for _, v in ipairs(p:flatten():totable()) do list[#list + 1] = v end
  end
  return list, history
end

test("k micro-batches equal one batch, ragged tails included", function(t)
  t.close(trained { batch_size = 4, accumulate = 3 }, trained { batch_size = 12 }, 1e-6)
  t.close(trained { batch_size = 8, accumulate = 3 }, trained { batch_size = 24 }, 1e-6)
  -- 26 samples: the last group of 12 is one short batch, the last batch of it shorter still
  t.close(trained { samples = 26, batch_size = 4, accumulate = 3 }, trained { samples = 26, batch_size = 12 }, 1e-6)
  t.close(trained { samples = 31, batch_size = 4, accumulate = 3 }, trained { samples = 31, batch_size = 12 }, 1e-6)
  t.close(trained { samples = 26, batch_size = 4, accumulate = 100 }, trained { samples = 26, batch_size = 26 }, 1e-6)
  local _, a = trained { samples = 31, batch_size = 4, accumulate = 3 }
  local _, b = trained { samples = 31, batch_size = 12 }
  for epoch = 1, 3 do t.close(a[epoch].loss, b[epoch].loss, 1e-5) end
  -- with limits, which look at the gradient of the whole group
  t.close(trained { samples = 31, batch_size = 4, accumulate = 3, clip_norm = 0.1 },
          trained { samples = 31, batch_size = 12, clip_norm = 0.1 }, 1e-6)
  t.close(trained { samples = 31, batch_size = 4, accumulate = 3, clip_value = 0.01 },
          trained { samples = 31, batch_size = 12, clip_value = 0.01 }, 1e-6)
end)

test("fit in mixed precision", function(t)
  local amp = pg.amp
  local wide, reference = trained { batch_size = 8 }
  for _, given in ipairs { "bfloat16", "float16", "mixed_bfloat16" } do
    local low, history = trained { batch_size = 8, amp = given }
    t.ok(low[1] ~= wide[1])
    t.close(history[3].loss, reference[3].loss, 0.02)
  end
  t.equal((trained { batch_size = 8, amp = "float32" }), wide)
  local scaler = amp.GradScaler { init_scale = 256, growth_interval = 4 }
  trained { batch_size = 8, amp = { dtype = "float16", scaler = scaler } }
  t.equal(scaler:get_scale(), 1024) -- 9 steps
  local policy = amp.policy("mixed_bfloat16", trained, { batch_size = 8 })
  t.equal(policy, (trained { batch_size = 8, amp = "bfloat16" }))
  t.raises(function() trained { amp = "int8" } end, "bfloat16, float16 or float32")
  t.raises(function() trained { amp = { dtype = "float16", scaler = 3 } } end, "GradScaler")
end)

test("an optimizer of another model is refused", function(t)
  local function fit(model, optimizer)
    model:fit { x = pg.ones { 4, 2 }, y = pg.zeros { 4, 1 }, loss = "mse", optimizer = optimizer, verbose = 0 }
  end
  local recipe, a, b = pg.optim.SGD { lr = 0.1 }, pg.nn.Linear { 2, 1 }, pg.nn.Linear { 2, 1 }
  fit(a, recipe)
  fit(a, recipe) -- goes on
  t.equal(recipe.groups[1].steps[1], 2)
  t.raises(function() fit(b, recipe) end, "none of the model's parameters is in the optimizer")
  t.raises(function() fit(b, pg.optim.SGD { a:parameters() }) end, "none of the model's parameters")
  fit(b, pg.optim.SGD { { b.bias } }) -- a part of them
end)

test("only the optimizer's parameters have a part in limits of gradients", function(t)
  local x, y = clouds(24)
  local function head(freeze, amp)
    local model = classifier()
    model(x) -- sizes
    if freeze then model[1]:freeze() end
    model:fit { x = x, y = y, loss = "cross_entropy", optimizer = optim.SGD { model[3]:parameters(), lr = 0.5 },
                clip_norm = 0.1, epochs = 4, batch_size = 8, verbose = 0, amp = amp }
    return model[3].weight:totable()
  end
  t.equal(head(false), head(true))
  t.equal(head(false, "float16"), head(true, "float16"))
end)

test("a stop waits for the optimizer's step", function(t)
  local x, y = clouds(24)
  local done, whole
  local model = classifier()
  model(x)
  model:fit { x = x, y = y, loss = "cross_entropy", batch_size = 4, accumulate = 4, verbose = 0,
              callbacks = { on_batch_end = function(_, job)
                if job.done == 2 then job.stop = true end
                done, whole = job.done, job.whole
              end } }
  t.equal({ done, whole }, { 4, true })
end)

test("fit shuffles x and y, and refuses what does nothing", function(t)
  local x, y = clouds(24)
  local ds = data.from_slices { x = x, y = y }
  local function refused(options, text)
    options.loss, options.verbose = options.loss or "cross_entropy", 0
    t.raises(function() classifier():fit(options) end, text)
  end
  refused({ data = ds, shuffle = true }, "shuffle and seed are for x and y")
  refused({ data = ds, seed = 5 }, "shuffle and seed are for x and y")
  refused({ data = ds:batch(8), batch_size = 4 }, "batched already")
  t.raises(function() classifier():evaluate { data = ds:batch(8), batch_size = 4, loss = "cross_entropy" } end,
           "batched already")
  t.raises(function() classifier():evaluate { data = ds, batch_size = 0, loss = "cross_entropy" } end, "at least 1")
  refused({ x = x, y = y, amp = { dtyp = "float16" } }, "dtype")
  refused({ x = x, y = y, clip_norm = -1 }, "clip_norm must be a number from 0")
  refused({ x = x, y = y, clip_value = 0 / 0 }, "clip_value must be a number from 0")
  refused({ x = x, y = y, callbacks = { stop = pg.callbacks.EarlyStopping {} } }, 'has the name "stop"')
  refused({ x = x, y = y, callbacks = { on_epoch_ends = print } }, "on_epoch_end")
  refused({ x = x, y = y, callbacks = 3 }, "callback 1 must be a function or a table")
  refused({ x = x, y = y, validation = { x = x } }, 'fit: validation: argument "y" is missing')
  refused({ x = x, y = y, validation = { x = x, z = y } }, 'fit: validation: unknown option "z"')
  refused({ x = x, y = y, validation = { x = x, y = 3 } }, "y must be a tensor")
end)

test("one callback needs no list; validation may be tensors", function(t)
  local x, y = clouds(24)
  local calls = 0
  local function count() calls = calls + 1 end
  for _, callbacks in ipairs { count, { on_epoch_end = count }, { count } } do
    local history = classifier():fit { x = x, y = y, validation = { x = x, y = y }, loss = "cross_entropy",
                                       verbose = 0, callbacks = callbacks }
    t.ok(history[1].val_loss)
  end
  t.equal(calls, 3)
  local log = os.tmpname()
  classifier():fit { x = x, y = y, loss = "cross_entropy", verbose = 0, callbacks = pg.callbacks.CSVLogger { log } }
  t.ok(io.open(log):read("*a"):find("^epoch,loss"))
  os.remove(log)
end)

test("predict takes no samples, and checks its batches", function(t)
  local model = nn.Linear { 4, 3 }
  t.ok(model:predict(pg.zeros { 0, 4 }):has_shape { 0, 3 })
  t.ok(model:predict { pg.zeros { 5, 4 }, batch_size = 5 }:has_shape { 5, 3 })
  for _, size in ipairs { 0, -3 } do
    t.raises(function() model:predict { pg.zeros { 2, 4 }, batch_size = size } end, "batch_size must be at least 1")
  end
  t.raises(function() model:predict(data.range(3)) end, "Dataset%(3 samples%)")
end)
