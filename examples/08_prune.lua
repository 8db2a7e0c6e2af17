-- SPDX-License-Identifier: Apache-2.0
-- A network that reads digits is made smaller: single weights taken out while it trains on, whole channels taken out
-- and trained again with what the large network says (distillation), what is left quantised and written into a file
-- that runs without this script: accuracy, bytes and time of each beside the first.
--   perigee examples/08_prune.lua [--short] [--device cpu] [--epochs 8] [--seed 1] [--channels 0.5] [--sparsity 0.9]

local pg = require "perigee"
local nn, optim, data = pg.nn, pg.optim, pg.data

local folder = arg[0]:match("^(.*/)") or "./"
package.path = folder .. "?.lua;" .. package.path
local digits = require "digits"
local options = require "options"({ device = "cpu", epochs = 8, seed = 1, channels = 0.5, sparsity = 0.9 },
                                  { epochs = 2 })

pg.manual_seed(options.seed)
local train, test = digits.load(folder, 0.2)
local batches = data.from_slices(train):shuffle { seed = options.seed }:batch(32)

local function fit(model, epochs, more)
  local o = { data = batches, loss = "cross_entropy", optimizer = optim.Adam { lr = 2e-3 }, epochs = epochs,
              verbose = 0 }
  for key, value in pairs(more or {}) do o[key] = value end
  model:train():fit(o)
  return model:eval()
end

local function measure(name, model, is_whole)
  local result = model:evaluate { x = test.x, y = test.y, loss = "cross_entropy", metrics = { "accuracy" } }
  local row = { accuracy = result.accuracy, bytes = model:size() }
  local text = ("%-26s %6.2f %%  %8d bytes"):format(name, 100 * row.accuracy, row.bytes)
  if not is_whole then
    local report = pg.prune.report(model)
    text = text .. ("  %7d weights that are not 0"):format(report.parameters - report.zeros)
  end
  print(text)
  return row
end

local large = nn.Sequential {
  nn.Conv2d { 1, 32, 3, padding = 1 }, nn.BatchNorm2d { 32 }, nn.ReLU {},
  nn.Residual { nn.Conv2d { 32, 32, 3, padding = 1 }, nn.BatchNorm2d { 32 }, nn.ReLU {} }, nn.MaxPool2d { 2 },
  nn.Conv2d { 32, 64, 3, padding = 1 }, nn.BatchNorm2d { 64 }, nn.ReLU {}, nn.MaxPool2d { 2 },
  nn.Flatten {}, nn.Linear { 256, 64 }, nn.ReLU {}, nn.Linear { 64, 10 },
}:to(options.device)
fit(large, options.epochs)
local first = measure("as trained", large)

-- Single weights, the least ones, more and more of them while the network trains on. Masks hold them at 0.
local sparse = large:clone()
local per_epoch = #batches
local gradual = pg.prune.Gradual { sparse, amount = options.sparsity, steps = math.max(1, per_epoch), every = 5 }
fit(sparse, math.max(2, options.epochs / 2), { callbacks = { gradual }, optimizer = optim.Adam { lr = 1e-3 } })
pg.prune.remove(sparse)
local thin = measure(("%d %% of weights at 0"):format(100 * options.sparsity), sparse)
print(pg.prune.report(sparse))

-- Whole channels: with masks it computes what the smaller network does.
local masked = large:clone()
pg.prune.channels(masked, options.channels)
local small = pg.prune.shrink(masked)
local x = test.x:to(options.device)
local off = pg.no_grad(function() return (small(x) - masked(x)):abs():max():item() end)
measure(("%d %% fewer channels"):format(100 * options.channels), small)
print(("the masked network and the smaller one differ by %.1e"):format(off))

-- Distillation (Hinton, Vinyals and Dean, 2015): beside the labels, what the large network thinks of every digit.
local TEMPERATURE, PART = 4, 0.7
local pairs_of = data.from_slices { x = train.x, y = pg.no_grad(function()
  return pg.cat({ large(train.x:to(options.device)):cpu(), train.y:to("float32"):unsqueeze(2) }, { axis = 2 })
end) }:shuffle { seed = options.seed }:batch(32)
local function distill(logits, both)
  local soft = (both:narrow(2, 1, 10) / TEMPERATURE):softmax(-1)
  local hard = both:narrow(2, 11, 1):squeeze(2):to("int64")
  local kept = nn.kl_div((logits / TEMPERATURE):log_softmax(-1), soft, { reduction = "batchmean" }) * TEMPERATURE ^ 2
  return kept * PART + nn.cross_entropy(logits, hard) * (1 - PART)
end
fit(small, math.max(2, options.epochs / 2), { data = pairs_of, loss = distill, optimizer = optim.Adam { lr = 1e-3 } })
local taught = measure("the same, taught", small)

-- Eight bits a weight, and whole numbers between layers, by scales that 256 digits give.
local whole = pg.quant.ptq(small, { dtype = "int8", data = train.x[{ { 1, 256 } }]:to(options.device) })
local rounded = measure("the same, eight bits", whole, true)

-- A file of its own: `perigee run-graph FILE --feed x=images.npy` computes with it.
local path = os.tmpname() .. ".pgraph"
local graph = pg.graph(function(g)
  return { y = whole(g:placeholder { "x", shape = { "batch", 1, 8, 8 } }) }
end)
pg.save(path, pg.Session { graph }, { inputs = { "x" }, outputs = { "y" }, freeze = true })
local session = pg.Session { pg.load_graph(path) }
local answer = session:run("y", { x = x })
local apart = pg.no_grad(function() return (answer - whole(x)):abs():max():item() end)
local file = assert(io.open(path, "rb"))
print(("the exported file has %d bytes; its answers are apart by %.1e"):format(file:seek("end"), apart))
file:close()
os.remove(path)
os.remove((path:gsub("%.pgraph$", "")))

-- By turns, so that what else the machine does meets all; the shortest is what the network takes.
local function seconds(call, before)
  local result = pg.no_grad(pg.bench, call, { warmup = 2, iterations = 10 })
  return math.min(result.p50, before or math.huge)
end
local calls = { function() return large(x) end, function() return small(x) end, function() return whole(x) end,
                function() return session:run("y", { x = x }) end }
local times = {}
for _ = 1, options.is_short and 1 or 20 do
  for i, call in ipairs(calls) do times[i] = seconds(call, times[i]) end
end
print(("%d digits in %.2f ms, with fewer channels in %.2f ms, with eight bits too in %.2f ms, from the file in %.2f "
       .. "ms: %.1f times as fast, %.1f times as small"):format(#x, 1000 * times[1], 1000 * times[2], 1000 * times[3],
      1000 * times[4], times[1] / times[3], first.bytes / rounded.bytes))
if off > 1e-4 then error("the smaller network computes something else", 0) end
if apart > 1e-4 then error("the file computes something else", 0) end
if first.bytes < 2 * taught.bytes then error("the network did not get smaller", 0) end
local least = options.is_short and first.accuracy - 0.3 or first.accuracy - 0.02
if math.min(taught.accuracy, thin.accuracy, rounded.accuracy) < least then error("too much was forgotten", 0) end
