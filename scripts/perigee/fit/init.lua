-- SPDX-License-Identifier: Apache-2.0
-- model:fit, model:evaluate, model:predict: the training loop that most scripts need, in terms of the public parts.

local native = require "perigee.native"
local foreign = require "perigee.names.foreign"
local inputs = require "perigee.fit.inputs"
local metrics = require "perigee.fit.metrics"
local new_history = require "perigee.fit.history"
local new_progress = require "perigee.fit.progress"
local new_group = require "perigee.fit.group"
local replicas = require "perigee.fit.replicas"
local resume = require "perigee.fit.resume"
local notifier = require "perigee.fit.notify"
local walk = require "perigee.nn.walk"
local policy = require "perigee.nn.policy"
local ranges = native.profile

local fit = {}

local shared = {
  { "data", "any", type = "perigee.Dataset", doc = "batches, or samples, { x =, y = }" },
  { "x", "any", named = true, type = "perigee.Tensor", doc = "inputs [N, ...], in place of `data`" },
  { "y", "any", named = true, type = "perigee.Tensor", doc = "targets [N, ...]" },
  { "loss", "any", named = true, type = "perigee.LossName|function|perigee.Layer",
    doc = "a name of nn, a function or a layer" },
  { "metrics", "any", named = true, type = "(perigee.MetricName|function|perigee.Metric)[]",
    doc = "names, functions, or pg.metrics" },
  { "batch_size", "integer", named = true, doc = "samples in a batch" },
}
local function with_shared(more)
  local list = {}
  for i, param in ipairs(shared) do list[i] = param end
  for _, param in ipairs(more) do list[#list + 1] = param end
  return list
end

local read_fit = native.signature("fit", with_shared {
  { "validation", "any", named = true, type = "perigee.Dataset|table",
    doc = "what is evaluated after each epoch: data as above, or { x =, y = }" },
  { "validation_split", "number", named = true, doc = "part of the data, at its end, that is kept for validation" },
  { "optimizer", "any", named = true, type = "perigee.Optimizer|string",
    doc = "a name of optim, or one with or without parameters" },
  { "epochs", "integer", named = true, default = 1, doc = "how often the data is gone through" },
  { "accumulate", "integer", named = true, default = 1, doc = "batches a step" },
  { "clip_norm", "number", named = true, doc = "limit of the norm of all gradients" },
  { "clip_value", "number", named = true, doc = "limit of each gradient's elements" },
  { "amp", "any", named = true, type = '"bfloat16"|"float16"|"float32"|table',
    doc = '"bfloat16", "float16", or {dtype=..., scaler=...}' },
  { "callbacks", "any", named = true, type = "perigee.Callback[]|perigee.Callback",
    doc = "what is told of epochs and batches" },
  { "verbose", "integer", named = true, default = 1, doc = "0: nothing; 1: a bar on a terminal; 2: lines" },
  { "shuffle", "boolean", named = true,
    doc = "whether x and y have an order of their own in each epoch; true if not given" },
  { "seed", "integer", named = true, doc = "of these orders; 0 if not given" },
  { "strategy", "any", named = true, type = "perigee.Strategy", doc = "how processes or devices share it: pg.dist" },
  { "resume", "boolean", named = true, default = false, doc = "goes on from ModelCheckpoint's newest checkpoint" },
})
local read_evaluate = native.signature("evaluate", with_shared {})
local read_predict = native.signature("predict", {
  { "x", "tensor", required = true, doc = "[N, ...]" },
  { "batch_size", "integer", named = true, default = 256, doc = "samples in a batch" } })

-- What losses may be called.
local function loss_names()
  local names = {}
  for name, value in pairs(require "perigee.nn.losses") do
    if type(value) == "function" then names[#names + 1] = name end
  end
  table.sort(names)
  return names
end
fit.loss_names = loss_names

-- A name of nn, a function, or a layer such as nn.MSELoss{}.
local function resolve_loss(where, loss)
  local nn = require "perigee.nn"
  if type(loss) == "string" then
    local losses = require "perigee.nn.losses"
    if type(losses[loss]) == "function" then return losses[loss] end
    local near = foreign.loss(loss) or native.suggest(loss, loss_names())
    native.raise("invalid_argument", where, ("unknown loss %q"):format(loss),
                 near and ("did you mean %q?"):format(near))
  end
  if type(loss) == "function" or nn.is_layer(loss) then return loss end
  native.raise("invalid_argument", where, "loss must be a name, a function or a layer, got " .. native.describe(loss))
end

-- One of another model would train nothing, and say nothing.
local function check_bound(model, optimizer)
  for _, p in ipairs(model:parameters()) do
    if optimizer.seen[p] then return end
  end
  native.raise("failed_precondition", "fit", ("none of the model's parameters is in the optimizer, %s"):format(
                 optimizer.name), "fit binds a recipe to the first model that it trains: make one for each model")
end

local function resolve_optimizer(model, given)
  local optim = require "perigee.optim"
  if given == nil then given = "Adam" end
  if type(given) == "string" then given = optim[given] {} end
  if not optim.is_optimizer(given) then
    native.raise("invalid_argument", "fit", "optimizer must be an optimizer or a name, got " .. native.describe(given))
  end
  if not given:is_bound() then given:bind(model:parameters()) end
  check_bound(model, given)
  return given
end

-- What the optimizer owns: nothing clears or unscales the gradients of other parameters.
local function params_of(optimizer)
  local list = {}
  for _, group in ipairs(optimizer.groups) do
    for _, p in ipairs(group.params) do list[#list + 1] = p end
  end
  return list
end

local read_amp = native.signature("fit: amp", {
  { "dtype", "any", named = true }, { "scaler", "any", named = true } })

-- The dtype of mixed precision (nil: none) and the scaler that float16 needs.
local function resolve_amp(given)
  local o = type(given) == "table" and read_amp(given) or { dtype = given }
  local dtype = o.dtype
  if dtype == nil then dtype = policy.dtype or "float32" end
  if type(dtype) == "string" then dtype = dtype:gsub("^mixed_", "") end
  dtype = native.dtypes.find(dtype, "fit").name
  if dtype ~= "float32" and dtype ~= "bfloat16" and dtype ~= "float16" then
    native.raise("invalid_argument", "fit", ("amp must be bfloat16, float16 or float32, got %s"):format(dtype))
  end
  local scaling = require "perigee.amp.scaler"
  if o.scaler ~= nil and not scaling.is_scaler(o.scaler) then
    native.raise("invalid_argument", "fit", "amp.scaler must be an amp.GradScaler, got " .. native.describe(o.scaler))
  end
  return dtype ~= "float32" and dtype or nil, o.scaler or dtype == "float16" and scaling.new {} or nil
end

fit.resolve_loss = resolve_loss

-- Runs fn with the model in the given mode and puts every layer's mode back, also after an error.
local function in_mode(model, training, fn, ...)
  local function enter()
    local old = {}
    for _, layer in ipairs(walk.modules(model)) do old[layer] = layer.training end
    model:train(training)
    return old
  end
  local function back(old)
    for layer, mode in pairs(old) do rawset(layer, "training", mode) end
  end
  return native.with(enter, back, fn, ...)
end

fit.in_mode = in_mode

-- { name, number } pairs, the loss first.
local function read_means(job, means, prefix)
  local list = { { prefix .. "loss", means.loss:value() } }
  for _, metric in ipairs(job.metrics) do
    list[#list + 1] = { prefix .. metric.name, means[metric.name]:value() }
  end
  return list
end

local function check_loss(loss)
  if not native.is_tensor(loss) or loss:dim() ~= 0 then
    native.raise("invalid_argument", "fit", "the loss must be a 0-dim tensor, got " .. native.describe(loss))
  end
end

-- The model's output and its loss, in mixed precision where that was asked for.
local function forward(job, x, y)
  local function run()
    local prediction = job.model(x)
    return prediction, job.loss(prediction, y)
  end
  if job.amp then return ranges.range("forward", policy.autocast, job.amp, nil, run) end
  return ranges.range("forward", run)
end

-- One pass over the batches that changes the parameters. `progress` is told of each. A pass that was interrupted goes
-- on where job.position stands.
local function train_epoch(job, progress)
  local passes, total = replicas.begin_passes(job, metrics.begin), job.train.size
  local group, total_count = new_group(job), nil
  resume.begin_epoch(job, passes)
  job.values = function() return read_means(job, passes[1], "") end
  for step, batch in ranges.each("input", job.batches) do
    replicas.each(job, batch, function(part, device, k)
      local x, y, all = inputs.unpack("fit", part, device)
      local count, together = replicas.counts(job, part, all)
      local prediction, loss = forward(job, x, y)
      check_loss(loss)
      group:backward(loss, count, together)
      if count > 0 then metrics.add(passes[k], loss, prediction, y, count) end
      total_count = together
    end)
    local last = step == total
    if not total and job.accumulate > 1 then last = job.batches:is_last() end -- else nothing waits for it
    group:finish(total_count, last)
    job.step, job.done, job.samples, job.whole = step, job.done + 1, total_count, group.waiting == 0
    progress:update(step, total_count, job.values)
    job.notify("on_batch_end", step)
    if job.stop and job.whole then
      if not job.batches:is_last() then
        job.interrupted = true
        job.notify("on_interrupt", step)
      end
      break
    end
  end
  if job.done == 0 then
    native.raise("invalid_argument", "fit", "there are no samples to train on")
  end
  if not job.interrupted then job.seen = job.batches.position end
  resume.end_epoch(job)
  local means = replicas.merge(job, passes)
  replicas.end_epoch(job)
  return read_means(job, means, "")
end

local function evaluate_batches(job, batches)
  local passes = replicas.begin_passes(job, metrics.begin)
  for _, batch in ranges.each("input", batches:each()) do
    replicas.each(job, batch, function(part, device, k)
      local x, y, all = inputs.unpack("evaluate", part, device)
      local count = replicas.counts(job, part, all)
      local prediction, loss = forward(job, x, y)
      if count > 0 then metrics.add(passes[k], loss, prediction, y, count) end
    end)
  end
  return replicas.merge(job, passes)
end

local function evaluate_in_mode(job, batches, prefix)
  local means = in_mode(job.model, false, require("perigee").no_grad, evaluate_batches, job, batches)
  return read_means(job, means, prefix)
end

local function run_epoch(job, epoch)
  job.epoch = epoch
  job.notify("on_epoch_begin", epoch)
  local progress = new_progress(epoch, job.epochs, job.train.size or job.seen, job.verbose)
  local ok, values = pcall(ranges.range, "epoch", train_epoch, job, progress)
  if not ok then
    progress:abort()
    error(values, 0)
  end
  if job.validation then
    local more = ranges.range("validation", evaluate_in_mode, job, job.validation, "val_")
    for _, pair in ipairs(more) do values[#values + 1] = pair end
  end
  progress:finish(values)
  local entry = { epoch = epoch, seconds = progress.elapsed }
  for _, pair in ipairs(values) do entry[pair[1]] = pair[2] end
  job.history[epoch] = entry
  job.notify("on_epoch_end", entry)
end

local function check_batch_size(where, size)
  if size and size < 1 then native.raise("invalid_argument", where, "batch_size must be at least 1, got " .. size) end
end

local function check_counts(o)
  for _, name in ipairs { "epochs", "accumulate" } do
    if o[name] < 1 then
      native.raise("invalid_argument", "fit", ("%s must be at least 1, got %d"):format(name, o[name]))
    end
  end
  check_batch_size("fit", o.batch_size)
  for _, name in ipairs { "clip_norm", "clip_value" } do
    local limit = o[name]
    if limit and (limit < 0 or limit ~= limit) then
      native.raise("invalid_argument", "fit", ("%s must be a number from 0, got %s"):format(name, tostring(limit)))
    end
  end
end

---Trains. Options: data (a dataset of batches or samples x, y) or x= and y=, validation or validation_split, loss and
---metrics (names, functions, pg.metrics), optimizer, epochs, batch_size, shuffle and seed (of x and y: data has the
---order that ds:shuffle gives it), callbacks, verbose (0 nothing, 1 a bar on a terminal, 2 lines); accumulate (batches
---a step: as if they had been one, for a loss that is a mean over samples), clip_norm and clip_value (limits on the
---gradients of the optimizer's parameters, in this order), amp ("bfloat16", or "float16" with a GradScaler of fit's
---own; {dtype=..., scaler=...}; by default as amp.policy says), resume (true: go on, exactly, from the newest
---checkpoint of the callback pg.callbacks.ModelCheckpoint; begin where there is none), strategy
---(pg.dist.multi_worker() and pg.dist.mirrored{}: several processes or devices share each batch, whose size is that of
---all together; files and lines of callbacks are rank 0's; to resume, as many processes must see the folder).
---@return perigee.History history an entry an epoch: history[3].loss, .val_accuracy; #history
function fit.fit(self, ...)
  local o = read_fit(...)
  check_counts(o)
  local job = { model = self, epochs = o.epochs, accumulate = o.accumulate, clip_norm = o.clip_norm,
                clip_value = o.clip_value, done = 0, epoch = 0, verbose = o.verbose, history = new_history(),
                stop = false }
  job.amp, job.scaler = resolve_amp(o.amp)
  job.loss = resolve_loss("fit", o.loss)
  job.metrics = metrics.resolve("fit", o.metrics, job.loss)
  replicas.prepare(job, o.strategy)
  job.train, job.validation = inputs.training("fit", o)
  job.optimizer = resolve_optimizer(self, o.optimizer)
  job.params, job.device = params_of(job.optimizer), inputs.device_of(self)
  local notify
  job.callbacks, notify = notifier(replicas.callbacks(job, o.callbacks or {}))
  job.notify = function(event, argument) notify(job, event, argument) end
  self[walk.META].trained = { loss = job.loss, metrics = job.metrics, amp = job.amp }
  replicas.begin(job)
  replicas.run(job, in_mode, self, true, function()
    job.notify("on_train_begin")
    local first = o.resume and resume.restore(job) or 1
    for epoch = first, job.epochs do
      if job.stop then break end
      run_epoch(job, epoch)
    end
    job.notify("on_train_end")
  end)
  return job.history
end

---Means over a dataset in evaluation mode: { loss=, accuracy= }. Loss and metrics are those of fit unless given.
---@return table<string, number>
function fit.evaluate(self, ...)
  local o = read_evaluate(...)
  check_batch_size("evaluate", o.batch_size)
  local trained = self[walk.META].trained or {}
  local job = { model = self, device = inputs.device_of(self), amp = trained.amp }
  job.loss = o.loss ~= nil and resolve_loss("evaluate", o.loss) or trained.loss
  if not job.loss then native.raise("invalid_argument", "evaluate", "needs loss=, since fit has not been called") end
  job.metrics = o.metrics ~= nil and metrics.resolve("evaluate", o.metrics, job.loss) or trained.metrics or {}
  local result = {}
  for _, pair in ipairs(evaluate_in_mode(job, inputs.evaluation("evaluate", o), "")) do result[pair[1]] = pair[2] end
  return result
end

---The model's output for x [N, ...], computed in batches in evaluation mode, without gradients.
---@return perigee.Tensor
function fit.predict(self, ...)
  local o = read_predict(...)
  check_batch_size("predict", o.batch_size)
  local pg = require "perigee"
  local device = inputs.device_of(self)
  local function forward_part(part) return self(device and part:to(device) or part) end
  local function run()
    local parts, count = {}, #o.x
    if count <= o.batch_size then return forward_part(o.x) end
    for first = 1, count, o.batch_size do
      parts[#parts + 1] = forward_part(o.x[{ { first, math.min(first + o.batch_size - 1, count) } }])
    end
    return pg.cat(parts, { axis = 1 })
  end
  return in_mode(self, false, pg.no_grad, run)
end

return fit
