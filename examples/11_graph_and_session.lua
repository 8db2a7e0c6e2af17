-- SPDX-License-Identifier: Apache-2.0
-- The network of 01_digits.lua as a graph that is built once and a session that runs it, and the same training eagerly.
--   perigee examples/11_graph_and_session.lua [--short] [--device sim:0] [--epochs 12] [--seed 1] [--compare yes]

local pg = require "perigee"
local nn, optim, data = pg.nn, pg.optim, pg.data

local folder = arg[0]:match("^(.*/)") or "./"
package.path = folder .. "?.lua;" .. package.path
local digits = require "digits"
local options = require "options"({ device = "cpu", epochs = 12, seed = 1, compare = "yes" }, { epochs = 1 })

pg.manual_seed(options.seed)
local train, test = digits.load(folder, 0.2)
local function batches() return data.from_slices(train):shuffle { seed = options.seed }:batch(32) end

local model = nn.Sequential {
  nn.Conv2d { 1, 32, 3, padding = 1 }, nn.BatchNorm2d { 32 }, nn.ReLU {},
  nn.Conv2d { 32, 32, 3, padding = 1 }, nn.BatchNorm2d { 32 }, nn.ReLU {}, nn.MaxPool2d { 2 },
  nn.Conv2d { 32, 64, 3, padding = 1 }, nn.BatchNorm2d { 64 }, nn.ReLU {}, nn.MaxPool2d { 2 },
  nn.Flatten {}, nn.Dropout { 0.3 }, nn.Linear { 1024 / 4, 10 },
}:to(options.device)
local twin = model:clone()

-- Training and prediction share the model's weights, which are variables of the graph.
local graph = pg.graph(function(g)
  local x = g:placeholder { "x", shape = { "batch", 1, 8, 8 } }
  local y = g:placeholder { "y", shape = { "batch" }, dtype = "int64" }
  local loss = nn.cross_entropy(model:train()(x), y)
  local predicted = model:eval()(x):argmax { axis = 2 }
  return { loss = loss, train = optim.Adam { lr = 2e-3 }:minimize(loss), predicted = predicted,
           accuracy = predicted:eq(y):to("float32"):mean() }
end)
local session = pg.Session { graph, commit = model }

local batch_source = batches()
pg.manual_seed(options.seed)
for epoch = 1, options.epochs do
  local sum, count = 0, 0
  for _, batch in batch_source:each() do
    sum, count = sum + session:run({ "loss", "train" }, { x = batch.x, y = batch.y }).loss:item(), count + 1
  end
  print(("epoch %2d: loss %.4f, accuracy on held-out digits %.2f %%"):format(
          epoch, sum / count, 100 * session:run("accuracy", test):item()))
end
digits.print_confusion(test.y, session:run("predicted", test):cpu())
local accuracy = session:run("accuracy", test):item()
session:close() -- writes what was learnt into the model

local function eager_accuracy(net)
  return net:eval()(test.x:to(options.device)):argmax { axis = 2 }:cpu():eq(test.y):to("float32"):mean():item()
end
print(("accuracy of the session: %.2f %%, of the model that it was written into: %.2f %%"):format(
        100 * accuracy, 100 * eager_accuracy(model)))

if options.compare == "yes" then
  local optimizer = optim.Adam { twin:train():parameters(), lr = 2e-3 }
  batch_source = batches() -- the same order again
  pg.manual_seed(options.seed)
  for _ = 1, options.epochs do
    for _, batch in batch_source:each() do
      optimizer:zero_grad()
      nn.cross_entropy(twin(batch.x:to(options.device)), batch.y:to(options.device)):backward()
      optimizer:step()
    end
  end
  local eager = eager_accuracy(twin)
  local same = true
  for name, value in pairs(model:state()) do same = same and value:eq(twin:state()[name]):all():item() end
  print(("the same training eagerly: %.2f %%; the same weights to the last bit: %s"):format(
          100 * eager, same and "yes" or "no"))
  if accuracy < eager - 0.01 then error("the session has learnt less", 0) end
end
if not options.is_short and accuracy < 0.95 then error("it has learnt too little", 0) end
