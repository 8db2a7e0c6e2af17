-- SPDX-License-Identifier: Apache-2.0
-- The digits again, by one process or by several that share every batch; the result is the same but for rounding.
--   perigee examples/18_many_processes.lua [--short] [--epochs 6] [--batch 64] [--seed 1]
--   perigee launch -n 4 examples/18_many_processes.lua

local pg = require "perigee"
local nn, optim, data = pg.nn, pg.optim, pg.data

local folder = arg[0]:match("^(.*/)") or "./"
package.path = folder .. "?.lua;" .. package.path
local digits = require "digits"
local options = require "options"({ epochs = 6, batch = 64, seed = 1 }, { epochs = 1 })

pg.manual_seed(options.seed)
local train, test = digits.load(folder, 0.2)
local strategy = pg.dist.multi_worker()

local model, optimizer
strategy:scope(function()
  model = nn.Sequential {
    nn.Conv2d { 1, 16, 3, padding = 1 }, nn.ReLU {}, nn.MaxPool2d { 2 },
    nn.Conv2d { 16, 32, 3, padding = 1 }, nn.ReLU {}, nn.MaxPool2d { 2 },
    nn.Flatten {}, nn.Linear { 32 * 2 * 2, 10 },
  }
  optimizer = optim.Adam { model:parameters(), lr = 2e-3 }
end)

local clock = os.time()
local history = model:fit {
  data = data.from_slices(train):shuffle { seed = options.seed }:batch(options.batch),
  validation = data.from_slices(test):batch(256),
  loss = "cross_entropy", metrics = { "accuracy" },
  optimizer = optimizer, epochs = options.epochs, strategy = strategy,
}

-- All have the same parameters, to the bit.
for name, p in model:named_parameters() do
  local mine = p:detach():reshape(1, -1)
  local all = pg.dist.all_gather(mine)
  for rank = 1, strategy.num_replicas_in_sync do
    if not all[rank]:eq(mine[1]):all():item() then error(name .. " differs between processes", 0) end
  end
end
local last = history[#history]
if strategy.rank == 0 then
  print(("%d process(es): loss %.4f, accuracy on held-out digits %.2f %%, %d seconds"):format(
          strategy.num_replicas_in_sync, last.loss, 100 * last.val_accuracy, os.time() - clock))
end
if last.val_accuracy < (options.epochs > 3 and 0.9 or 0.3) then error("it has learnt too little", 0) end
