-- SPDX-License-Identifier: Apache-2.0
-- perigee.callbacks: what fit calls while it trains.

---What model:fit{callbacks={...}} takes: a table with any of these methods; the job that they are given has
---`model optimizer epoch step done history stop values()`. `job.stop = true` ends the training with the optimizer's
---next step; inside of an epoch on_interrupt comes before on_epoch_end, and fit{resume=true} goes on with the next
---batch.
---@class perigee.Callback
---@field last? boolean true: behind the others
---@field rank_zero? boolean true: of several processes that share a training, rank 0 alone has it
---@field on_train_begin? fun(self: perigee.Callback, job: table)
---@field on_epoch_begin? fun(self: perigee.Callback, job: table, epoch: integer)
---@field on_batch_end? fun(self: perigee.Callback, job: table, step: integer)
---@field on_interrupt? fun(self: perigee.Callback, job: table, step: integer)
---@field on_epoch_end? fun(self: perigee.Callback, job: table, entry: table)
---@field on_train_end? fun(self: perigee.Callback, job: table, history: perigee.History)
---@field state? fun(self: perigee.Callback): table what checkpoints carry
---@field load_state? fun(self: perigee.Callback, saved: table, job: table)

---@class perigee.callbacks
local callbacks = {}
for _, name in ipairs { "checkpoint", "stopping", "rates", "records", "board" } do
  for key, value in pairs(require("perigee.callbacks." .. name)) do callbacks[key] = value end
end
return callbacks
