-- SPDX-License-Identifier: Apache-2.0
-- What of a training must be saved beside model, optimizer and random numbers, so that one that was interrupted ends in
-- the same bits as one that was not.

local native = require "perigee.native"
local replicas = require "perigee.fit.replicas"

local resume = {}

---The place of a job as a plain table. That it was to stop is no part of it: the next call may go on.
---Within an epoch, call it where no gradients wait (`job.whole`). Of several processes all call it, and what rank 0
---gets is to be saved.
function resume.state(job)
  local state = { epoch = job.epoch, done = job.done, history = {}, callbacks = {}, means = nil,
                  train = job.train:epoch(), validation = job.validation and job.validation:epoch() or nil,
                  scaler = job.scaler and job.scaler:state() or nil }
  for i, entry in ipairs(job.history) do state.history[i] = entry end
  for i, callback in ipairs(job.callbacks) do
    state.callbacks[i] = type(callback) == "table" and callback.state and callback:state() or false
  end
  if job.batches then state.data, state.means = job.batches:state(), replicas.state_of_passes(job) end
  return replicas.gather(job, state)
end

local function is_count(v) return type(v) == "number" and v >= 0 and v % 1 == 0 and v < 2 ^ 53 end

-- What of a checkpoint is not what `state` gives is an error before anything is changed.
local function check(state)
  local function need(condition, name)
    if not condition then native.raise("data_loss", "fit", "the checkpoint has no " .. name .. " of a training") end
  end
  need(type(state) == "table" and not native.is_tensor(state), "state")
  for _, name in ipairs { "epoch", "done", "train" } do need(is_count(state[name]), name) end
  need(state.validation == nil or is_count(state.validation), "validation")
  for _, name in ipairs { "history", "callbacks" } do need(type(state[name]) == "table", name) end
  for _, name in ipairs { "data", "means", "scaler", "ranks" } do
    need(state[name] == nil or type(state[name]) == "table", name)
  end
  need(state.data == nil or is_count(state.data.position) and type(state.means) == "table", "data")
  for i = 1, #state.history do
    local entry = state.history[i]
    need(type(entry) == "table" and is_count(entry.epoch), "history")
    for name in pairs(entry) do need(type(name) == "string", "history") end
  end
end

local function load_callbacks(job, saved)
  if #saved ~= #job.callbacks then
    native.raise("invalid_argument", "fit", ("the checkpoint has %d callbacks, this call %d"):format(#saved,
                 #job.callbacks))
  end
  for i, callback in ipairs(job.callbacks) do
    if saved[i] and type(callback) == "table" and callback.load_state then callback:load_state(saved[i], job) end
  end
end

---Puts a job where its newest checkpoint was taken.
---@return integer epoch the one to go on with
function resume.restore(job)
  local found
  for _, callback in ipairs(job.callbacks) do
    if type(callback) == "table" and callback.restore then found = callback end
  end
  if not found then
    native.raise("invalid_argument", "fit", "resume=true needs a callback that saves",
                 "callbacks={ pg.callbacks.ModelCheckpoint{dir} }")
  end
  local state = found:restore(job)
  if state then check(state) end
  replicas.agree(job, state and state.done)
  if not state then return 1 end
  replicas.adopt(job, state)
  for i, entry in ipairs(state.history) do job.history[i] = entry end
  job.epoch, job.done = state.epoch, state.done
  job.train:epoch(state.train)
  if job.validation and state.validation then job.validation:epoch(state.validation) end
  if job.scaler and state.scaler then job.scaler:load_state(state.scaler) end
  load_callbacks(job, state.callbacks)
  if not state.data then return state.epoch + 1 end
  job.position = state
  return state.epoch
end

---The batches of an epoch, from the first or from where a checkpoint stood.
function resume.begin_epoch(job, passes)
  local position = job.position
  job.passes, job.position = passes, nil
  job.batches = job.train:each { from = position and position.data }
  if position and position.means then replicas.load_passes(job, position.means) end
end

function resume.end_epoch(job) job.batches, job.passes = nil, nil end

return resume
