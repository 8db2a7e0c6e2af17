-- SPDX-License-Identifier: Apache-2.0
-- fit{strategy=}: what a training does besides where several processes share it. The strategy is of pg.dist, a room
-- that this one does not know: all is asked of the object.

local native = require "perigee.native"

local M = {}

local function check(strategy)
  local meta = getmetatable(strategy)
  if type(meta) == "table" and rawget(meta, "__name") == "perigee.Strategy" then return end
  native.raise("invalid_argument", "fit", "strategy must be one of pg.dist, got " .. native.describe(strategy),
               "pg.dist.multi_worker()")
end

local function check_metrics(job)
  for _, metric in ipairs(job.metrics) do
    if not metric.kind.merge then
      native.raise("not_supported", "fit", ("the metric %s cannot be put together from parts, which a strategy needs")
        :format(metric.name))
    end
  end
end

---What stands for a job's training. Nothing happens where there is no strategy.
function M.prepare(job, strategy, o)
  if strategy == nil then return end
  check(strategy)
  if o.resume then
    native.raise("not_supported", "fit", "resume does not go with a strategy yet: random states of the other " ..
                 "processes are not in a checkpoint", "load the model's parameters before fit")
  end
  check_metrics(job)
  job.strategy = strategy
  -- Launchers give each process a terminal of its own, and pass on what it prints: a bar would be drawn over and over.
  if strategy.num_replicas_in_sync > 1 and job.verbose == 1 then job.verbose = 2 end
  if strategy.rank > 0 then job.verbose = 0 end
end

---The callbacks that this process has: files and lines are rank 0's.
function M.callbacks(job, list)
  if not job.strategy or job.strategy.rank == 0 or type(list) ~= "table" then return list end
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
  strategy._fit.begin(strategy, job.model, job.params, #job.train)
  job.train = strategy:distribute(job.train)
  job.validation = job.validation and strategy:distribute(job.validation)
end

---Samples of a batch that this process counts, and those of all.
function M.counts(job, batch, count)
  local share = job.strategy and job.strategy._fit.share(batch)
  if not share then return count, count end
  return share.count, share.total
end

---Before a step: gradients of all, whose losses were weighted.
function M.sum_gradients(job)
  if job.strategy then job.strategy._fit.sum(job.params) end
end

---What was seen of batches on all processes, at a pass's end.
function M.merge(job, means)
  if not job.strategy then return end
  local names = {}
  for name in pairs(means) do names[#names + 1] = name end
  table.sort(names)
  for _, name in ipairs(names) do
    local metric = means[name]
    metric.seen = metric.kind.merge(metric.seen, function(op, value) return job.strategy:reduce(op, value) end)
  end
end

---At an epoch's end: running statistics are rank 0's on all.
function M.end_epoch(job)
  if job.strategy then job.strategy._fit.spread_buffers(job.model) end
end

---Runs a training; another strategy inside of it is an error.
function M.run(job, fn, ...)
  if not job.strategy then return fn(...) end
  return job.strategy._fit.wrap(job.strategy, fn, ...)
end

return M
