-- SPDX-License-Identifier: Apache-2.0
-- Gradient accumulation: the batches of one optimizer step. Their gradients add up to that of the mean over all their
-- samples, whatever the batches' sizes are and however many come.

local native = require "perigee.native"
local ranges = native.profile
local replicas = require "perigee.fit.replicas"

local Group = {}
Group.__index = Group

local function zero(group)
  group.waiting, group.samples, group.first = 0, 0, 0
end

local function step(group)
  local job, scaler = group.job, group.job.scaler
  local optim = require "perigee.optim"
  replicas.sum_gradients(job)
  if scaler then scaler:unscale(job.optimizer) end
  -- Each batch counted as if the group were full of batches like the first.
  local assumed = group.first * job.accumulate
  replicas.change_gradients(job, function()
    if assumed ~= group.samples then optim.scale_grad_(job.params, assumed / group.samples) end
    if job.clip_norm then optim.clip_grad_norm_(job.params, job.clip_norm) end
    if job.clip_value then optim.clip_grad_value_(job.params, job.clip_value) end
  end)
  if scaler then
    scaler:step(job.optimizer)
    scaler:update()
    replicas.spread_parameters(job)
  else
    replicas.step(job)
  end
  zero(group)
end

---Takes a loss of a replica: the mean over its `count` samples of a batch, of `total` that all have together.
function Group:backward(loss, count, total)
  local job = self.job
  if self.waiting == 0 then
    job.optimizer:zero_grad()
    self.first = total
  end
  local weight = count / (self.first * job.accumulate)
  if weight ~= 1 then loss = loss * weight end
  if job.scaler then loss = job.scaler:scale(loss) end
  ranges.range("backward", loss.backward, loss)
end

---A batch of `total` samples is done on all replicas; `last`: no other one follows.
function Group:finish(total, last)
  local job = self.job
  self.waiting, self.samples = self.waiting + 1, self.samples + total
  if last or self.waiting == job.accumulate then ranges.range("optimizer", step, self) end
end

---@param job table with params, optimizer, accumulate, and perhaps scaler, clip_norm, clip_value
return function(job)
  if job.accumulate < 1 then native.raise("invalid_argument", "fit", "accumulate must be at least 1") end
  local group = setmetatable({ job = job }, Group)
  zero(group)
  return group
end
