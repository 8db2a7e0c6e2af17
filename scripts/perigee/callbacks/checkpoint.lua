-- SPDX-License-Identifier: Apache-2.0
-- ModelCheckpoint: saves a training as it goes, for fit{resume=true} and for the best model.

local native = require "perigee.native"
local checkpoint = require "perigee.checkpoint"
local resume = require "perigee.fit.resume"
local watch = require "perigee.callbacks.watch"

local callbacks = {}

---@class perigee.callbacks.ModelCheckpoint: perigee.Callback
---@field manager? perigee.CheckpointManager what saves, once the training has begun
local ModelCheckpoint = {}
ModelCheckpoint.__index = ModelCheckpoint
ModelCheckpoint.last = true -- behind the others, whose state it saves

local read = native.signature("ModelCheckpoint", {
  { "dir", "string", required = true, doc = "folder of the checkpoints" },
  { "keep", "integer", named = true, default = 3, doc = "how many of the newest are kept" },
  { "monitor", "string", named = true, doc = "name of the value by which one is the best" },
  watch.MODE,
  { "every", "integer", named = true, default = 1, doc = "epochs between two checkpoints" },
  { "steps", "integer", named = true, doc = "batches between two checkpoints inside of an epoch; none if not given" } })

---A checkpoint at the end of every `every`-th epoch, where job.stop ends the training and, with `steps`, after every so
---many batches (not between accumulated ones). `monitor` names the value by which one is the best; that one is kept
---too. `callback.manager` is what saves.
---@return perigee.callbacks.ModelCheckpoint
function callbacks.ModelCheckpoint(...)
  local o = read(...)
  for _, name in ipairs { "every", "steps" } do
    if o[name] and o[name] < 1 then
      native.raise("invalid_argument", "ModelCheckpoint", ("%s must be at least 1, got %d"):format(name, o[name]))
    end
  end
  o.mode = watch.mode(o.mode, o.monitor)
  return setmetatable({ options = o }, ModelCheckpoint)
end

function ModelCheckpoint:on_train_begin(job)
  local o = self.options
  self.manager = checkpoint.CheckpointManager { o.dir, keep = o.keep, mode = o.mode, model = job.model,
                                                optimizer = job.optimizer }
end

-- Of several processes, all give what they have for themselves to rank 0, which writes.
local function save(self, job, metric)
  local state = resume.state(job)
  if job.strategy and job.strategy.rank > 0 then return end
  self.path = self.manager:save { step = job.done, metric = metric, fit = state }
end

function ModelCheckpoint:on_batch_end(job)
  local steps = self.options.steps
  if not steps then return end
  self.due = self.due or job.done % steps == 0
  local batches = job.train.size or math.huge
  if self.due and job.whole and job.step < batches then -- the epoch's end has a checkpoint of its own
    self.due = false
    save(self, job)
  end
end

function ModelCheckpoint:on_interrupt(job) save(self, job) end

function ModelCheckpoint:on_epoch_end(job, entry)
  local o = self.options
  if job.interrupted then return end -- to go on from there, the epoch is not done
  if entry.epoch % o.every ~= 0 and entry.epoch ~= job.epochs and not job.stop then return end
  self.due = false
  save(self, job, o.monitor and watch.value("ModelCheckpoint", entry, o.monitor))
end

---For fit: loads the newest checkpoint into the job's objects.
---@return table? state as perigee.fit.resume made it
function ModelCheckpoint:restore()
  local values = self.manager:restore()
  return values and values.fit
end

return callbacks
