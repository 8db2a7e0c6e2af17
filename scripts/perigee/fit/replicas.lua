-- SPDX-License-Identifier: Apache-2.0
-- fit{strategy=}: what a training does besides where several processes share it. The strategy is of pg.dist, a room
-- that this one does not know: all is asked of the object.

local native = require "perigee.native"

local M = {}

local function check(strategy)
  local meta = getmetatable(strategy)
  if type(meta) == "table" and rawget(meta, "__name") == "perigee.Strategy" then return end
  native.raise("invalid_argument", "fit", "strategy must be one of pg.dist, got " .. native.describe(strategy),
               "pg.dist.multi_worker(), pg.dist.mirrored{devices={...}}")
end

-- Of several processes that hold parts of the first replica, one.
local function is_first(strategy) return strategy.rank == 0 and rawget(strategy, "_beside") == nil end

local function check_metrics(job)
  for _, metric in ipairs(job.metrics) do
    if not metric.kind.merge then
      native.raise("not_supported", "fit", ("the metric %s cannot be put together from parts, which a strategy needs")
        :format(metric.name))
    end
  end
end

---What stands for a job's training. Nothing happens where there is no strategy.
function M.prepare(job, strategy)
  if strategy == nil then return end
  check(strategy)
  check_metrics(job)
  job.strategy = strategy
  -- Launchers give each process a terminal of its own, and pass on what it prints: a bar would be drawn over and over.
  if strategy.num_replicas_in_sync > 1 and job.verbose == 1 then job.verbose = 2 end
  if not is_first(strategy) then job.verbose = 0 end
end

---The callbacks that this process has: files and lines are rank 0's.
function M.callbacks(job, list)
  if not job.strategy or is_first(job.strategy) or type(list) ~= "table" then return list end
  if getmetatable(list) ~= nil then list = { list } end
  local kept = {}
  for key, callback in pairs(list) do
    local files = type(callback) == "table" and callback.rank_zero
    if type(key) ~= "number" then
      kept[key] = callback
    elseif not files then
      kept[#kept + 1] = callback
    end
  end
  return kept
end

function M.begin(job)
  local strategy = job.strategy
  if not strategy then return end
  strategy._fit.note_names(strategy, job.model)
  strategy._fit.begin(strategy, job.model, job.params, job.train.size or -1)
  job.devices = strategy._fit.devices(strategy)
  job.train = strategy:distribute(job.train)
  job.validation = job.validation and strategy:distribute(job.validation)
end

---Samples of a batch that this process counts, and those of all.
function M.counts(job, batch, count)
  local share = job.strategy and job.strategy._fit.share(batch)
  if not share then return count, count end
  return share.count, share.total
end

---fn(part, device, k) for each replica of this process with its part of a batch, the k-th of `begin_passes`.
function M.each(job, batch, fn)
  if not job.strategy then return fn(batch, job.device, 1) end
  job.strategy._fit.each(job.strategy, batch, job.device, fn)
end

---What is seen of batches, for each replica of this process: begin(metrics).
function M.begin_passes(job, begin)
  local passes = { begin(job.metrics) }
  for k = 2, job.devices and #job.devices or 1 do passes[k] = begin(job.metrics) end
  return passes
end

---Before a step: gradients of all, whose losses were weighted.
function M.sum_gradients(job)
  if job.strategy then job.strategy._fit.sum(job.strategy, job.params, job.optimizer, job.scaler ~= nil) end
end

---fn(), which changes gradients as they were summed, wherever the sums are.
function M.change_gradients(job, fn)
  if not job.strategy then return fn() end
  job.strategy._fit.change(job.strategy, job.optimizer, fn)
end

---A step of the optimizer by them, behind which all replicas have the same parameters.
function M.step(job)
  if not job.strategy then return job.optimizer:step() end
  job.strategy._fit.step(job.strategy, job.optimizer, job.params)
end

---Behind a step of a scaler.
function M.spread_parameters(job)
  if job.strategy then job.strategy._fit.spread_parameters(job.strategy, job.params) end
end

---What was seen of batches on all replicas, at a pass's end.
function M.merge(job, passes)
  local means = passes[1]
  if not job.strategy then return means end
  local names = {}
  for name in pairs(means) do names[#names + 1] = name end
  table.sort(names)
  for _, name in ipairs(names) do
    local seen = {}
    for k, pass in ipairs(passes) do seen[k] = pass[name].seen end
    means[name].seen = job.strategy._fit.merge(job.strategy, means[name].kind, seen)
  end
  return means
end

---At an epoch's end: running statistics are rank 0's on all.
function M.end_epoch(job)
  if job.strategy then job.strategy._fit.spread_buffers(job.strategy, job.model) end
end

---What was seen in an epoch so far, for load_passes: by metric, of several devices a list of such.
function M.state_of_passes(job)
  local states = {}
  for k, pass in ipairs(job.passes) do
    states[k] = {}
    for name, mean in pairs(pass) do states[k][name] = mean:state() end
  end
  return #states == 1 and states[1] or states
end

---Puts what was seen in an epoch into its place.
function M.load_passes(job, saved)
  local count = saved[1] and #saved or 1
  if count ~= #job.passes then
    native.raise("failed_precondition", "fit", ("the checkpoint stands in an epoch of a training by %d devices, " ..
                 "this one is by %d"):format(count, #job.passes), "one that stands between epochs suits any number")
  end
  for k, pass in ipairs(job.passes) do
    for name, state in pairs(count > 1 and saved[k] or saved) do
      if pass[name] then pass[name]:load_state(state, job.devices and job.devices[k] or job.device) end
    end
  end
end

-- How many processes share a training.
local function processes_of(job) return job.strategy and job.strategy._fit.processes(job.strategy) or 1 end
local function is_spread(job) return processes_of(job) > 1 end

-- What of a training's state each process has for itself. Running statistics are the same on all between epochs.
local function own_state(job, state)
  local seed, offset = native.rng_state()
  local own = { rng = { seed = seed, offset = offset }, callbacks = state.callbacks, means = state.means }
  if job.batches then
    own.buffers = {}
    for name, t in job.model:named_buffers() do own.buffers[name] = t end
  end
  return own
end

---A job's state, in which `ranks` is what each process has for itself: on rank 0, which saves it. The others' lacks it.
function M.gather(job, state)
  if is_spread(job) then state.ranks = job.strategy._fit.gather(own_state(job, state)) end
  return state
end

---Raises on all processes where they have not found the same checkpoint. `done`: its batches, nil for none.
function M.agree(job, done)
  if not is_spread(job) then return end
  local all = job.strategy._fit.exchange { done or -1 }
  local function found(rank) return all[rank][1] < 0 and "none" or ("one after %d batches"):format(all[rank][1]) end
  for rank = 2, #all do
    if all[rank][1] ~= all[1][1] then
      native.raise("failed_precondition", "fit", ("ranks find different checkpoints: rank 0 %s, rank %d %s"):format(
                     found(1), rank - 1, found(rank)), "the folder must be one that all processes see")
    end
  end
end

local function load_buffers(job, saved, need)
  for name, t in job.model:named_buffers() do
    local v = saved[name]
    need(native.is_tensor(v) and v.shape == t.shape and v.dtype == t.dtype, "buffer " .. name)
  end
  require("perigee").no_grad(function()
    for name, t in job.model:named_buffers() do t:copy_(saved[name]) end
  end)
end

---Puts what a checkpoint has of this process into its place, and into a state of gather's.
function M.adopt(job, state)
  local saved, size = state.ranks and #state.ranks or 1, processes_of(job)
  if saved ~= size then
    native.raise("failed_precondition", "fit", ("the checkpoint is of a training by %d processes, this one is by %d")
      :format(saved, size), saved > 1 and ("perigee launch -n %d, and strategy=pg.dist.multi_worker()"):format(saved) or
      "load the model's parameters before fit")
  end
  if size == 1 then return end
  local rank = job.strategy.rank
  local function need(condition, name)
    if not condition then
      native.raise("data_loss", "fit", ("the checkpoint has no %s of rank %d"):format(name, rank))
    end
  end
  local own = state.ranks[rank + 1]
  need(type(own) == "table" and not native.is_tensor(own), "state")
  local rng = own.rng
  need(type(rng) == "table" and type(rng.seed) == "string" and rng.seed:find "^%d+$" and #rng.seed <= 20 and
         type(rng.offset) == "number" and rng.offset >= 0 and rng.offset % 1 == 0 and rng.offset < 2 ^ 53,
       "random numbers")
  need(type(own.callbacks) == "table", "callbacks")
  need(own.means == nil or type(own.means) == "table", "means")
  need((own.means ~= nil) == (state.data ~= nil) and (own.buffers ~= nil) == (state.data ~= nil), "place in the epoch")
  if own.buffers then load_buffers(job, own.buffers, need) end
  native.set_rng_state(rng.seed, rng.offset)
  state.callbacks, state.means = own.callbacks, own.means
end

---Runs a training; another strategy inside of it is an error.
function M.run(job, fn, ...)
  if not job.strategy then return fn(...) end
  return job.strategy._fit.wrap(job.strategy, fn, ...)
end

return M
