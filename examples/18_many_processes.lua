-- SPDX-License-Identifier: Apache-2.0
-- The digits again, on one device, on several of one process, or by several processes, which share every batch; the
-- result is the same but for rounding.
--   perigee examples/18_many_processes.lua [--short] [--epochs 6] [--batch 64] [--seed 1] [--devices gpu:0,gpu:1]
--   perigee launch -n 4 examples/18_many_processes.lua
--   PERIGEE_SIM_DEVICES=4 perigee examples/18_many_processes.lua --devices sim:0,sim:1,sim:2,sim:3

local pg = require "perigee"
local nn, optim, data = pg.nn, pg.optim, pg.data

local folder = arg[0]:match("^(.*/)") or "./"
package.path = folder .. "?.lua;" .. package.path
local digits = require "digits"
local options = require "options"({ epochs = 6, batch = 64, seed = 1, devices = "" }, { epochs = 1 })

pg.manual_seed(options.seed)
local train, test = digits.load(folder, 0.2)
local devices = {}
for name in options.devices:gmatch "[^,]+" do devices[#devices + 1] = name end
local strategy = #devices > 0 and pg.dist.mirrored { devices = devices } or pg.dist.multi_worker()

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

-- All replicas have the same parameters, to the bit.
strategy:run(function()
  for name, p in model:named_parameters() do
    local lowest, highest = strategy:reduce("min", p), strategy:reduce("max", p)
    if not lowest:eq(highest):all():item() then error(name .. " differs between replicas", 0) end
  end
end)
local last = history[#history]
if strategy.rank == 0 then
  print(("%d replica(s): loss %.4f, accuracy on held-out digits %.2f %%, %d seconds"):format(
          strategy.num_replicas_in_sync, last.loss, 100 * last.val_accuracy, os.time() - clock))
end
if last.val_accuracy < (options.epochs > 3 and 0.9 or 0.3) then error("it has learnt too little", 0) end
