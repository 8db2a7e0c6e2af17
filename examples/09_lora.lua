-- SPDX-License-Identifier: Apache-2.0
-- A network that reads the digits 0 to 4 learns 5 to 9 with adapters (LoRA): a part of its weights is trained, saved
-- alone, and merged in the end.
--   perigee examples/09_lora.lua [--short] [--device cpu] [--epochs 15] [--rank 4] [--seed 1] [--save FILE]

local pg = require "perigee"
local nn, optim, data = pg.nn, pg.optim, pg.data

local folder = arg[0]:match("^(.*/)") or "./"
package.path = folder .. "?.lua;" .. package.path
local digits = require "digits"
local options = require "options"({ device = "cpu", epochs = 15, rank = 4, seed = 1, save = "adapters.safetensors" },
                                  { epochs = 3 })

pg.manual_seed(options.seed)
local train, test = digits.load(folder, 0.2)

-- The images of five digits, which count from 0 there.
local function five(set, first)
  local chosen = set.y:ge(first):logical_and(set.y:lt(first + 5))
  return { x = set.x[chosen], y = set.y[chosen] - first }
end

local function fit(model, set, epochs, rate)
  model:train():fit { data = data.from_slices(set):shuffle { seed = options.seed }:batch(32), loss = "cross_entropy",
                      optimizer = optim.Adam { lr = rate }, epochs = epochs, verbose = 0 }
  return model:eval()
end

local function accuracy(model, set)
  return model:evaluate { x = set.x, y = set.y, loss = "cross_entropy", metrics = { "accuracy" } }.accuracy
end

local base = nn.Sequential {
  nn.Flatten {}, nn.Linear { 64, 128 }, nn.ReLU {}, nn.Linear { 128, 128 }, nn.ReLU {}, nn.Linear { 128, 5 },
}:to(options.device)
fit(base, five(train, 0), options.epochs, 2e-3)
local before = accuracy(base, five(test, 5))
print(("digits 0 to 4: %.2f %%; 5 to 9 with the same weights: %.2f %%"):format(100 * accuracy(base, five(test, 0)),
      100 * before))

local model = base:clone()
local adapters = nn.lora(model, { rank = options.rank, alpha = 2 * options.rank, dropout = 0.05, train = { "5" } })
print(adapters)
fit(model, five(train, 5), options.epochs, 5e-3)
local after = accuracy(model, five(test, 5))
print(("5 to 9 with adapters: %.2f %%"):format(100 * after))

-- The adapters alone, put onto the base again.
pg.save(options.save, adapters:state())
local again = base:clone()
nn.lora(again, { rank = options.rank, alpha = 2 * options.rank, dropout = 0.05, train = { "5" } })
nn.adapters(again):load_state((pg.load(options.save)))
again:eval()

local x = five(test, 5).x:to(options.device)
local y = pg.no_grad(model.forward, model, x)
local loaded = pg.no_grad(again.forward, again, x):equal(y)
adapters:merge()
local off = (pg.no_grad(model.forward, model, x) - y):abs():max():item()
print(("saved %s; loaded onto the base it gives the same: %s; merged it differs by %.1e"):format(options.save,
      loaded and "yes" or "no", off))
print(model)
if not loaded or off > 1e-3 then error("the adapters give something else", 0) end
if after < before + (options.is_short and 0.1 or 0.5) then error("it has learnt too little", 0) end
