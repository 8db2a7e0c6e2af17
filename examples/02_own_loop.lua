-- SPDX-License-Identifier: Apache-2.0
-- The same task by hand: a layer written in Lua, and the training loop in the open.
--   perigee examples/02_own_loop.lua [--short] [--device sim:0] [--epochs 12] [--seed 1]
--           [--save digits_own.safetensors]

local pg = require "perigee"
local nn, optim, data = pg.nn, pg.optim, pg.data

local folder = arg[0]:match("^(.*/)") or "./"
package.path = folder .. "?.lua;" .. package.path
local digits = require "digits"
local options = require "options"({ device = "cpu", epochs = 12, seed = 1, save = "digits_own.safetensors" },
                                  { epochs = 1 })

-- Two convolutions whose result is added to their input, scaled by a learnt number.
local Block = nn.class "Block"
function Block:init(channels)
  self.first = nn.Conv2d { channels, channels, 3, padding = 1, bias = false }
  self.norm = nn.BatchNorm2d { channels }
  self.second = nn.Conv2d { channels, channels, 3, padding = 1 }
  self.scale = nn.Parameter(pg.full({ 1 }, 0.5))
end
function Block:forward(x) return x + self.second(self.norm(self.first(x)):relu()) * self.scale end

local Net = nn.class "Net"
function Net:init(o)
  self.stem = nn.Conv2d { 1, o.channels, 3, padding = 1 }
  self.blocks = {}
  for i = 1, o.blocks do self.blocks[i] = Block(o.channels) end
  self.pool, self.drop = nn.MaxPool2d { 2 }, nn.Dropout { 0.3 }
  self.head = nn.Linear { o.channels * 2 * 2, 10 }
end
function Net:forward(x)
  x = self.stem(x):relu()
  for _, block in ipairs(self.blocks) do x = self.pool(block(x)) end
  return self.head(self.drop(x:flatten { 2 }))
end

pg.manual_seed(options.seed)
local train, test = digits.load(folder, 0.2)
local function build() return Net { channels = 32, blocks = 2 }:to(options.device) end
local model = build()
local optimizer = optim.AdamW { model:parameters(), lr = 3e-3, weight_decay = 0.01 }
local schedule = optim.sched.Cosine { optimizer, t_max = options.epochs, eta_min = 6e-5 }

local function predict(net, x)
  net:eval()
  return pg.no_grad(function() return net(x:to(options.device)):argmax { axis = 2 }:cpu() end)
end

local batches = data.from_slices(train):shuffle { seed = options.seed }:batch(32)
local predicted
for epoch = 1, options.epochs do
  model:train()
  local total = pg.zeros({}, { device = options.device })
  for _, b in batches:each() do
    optimizer:zero_grad()
    local loss = nn.cross_entropy(model(b.x:to(options.device)), b.y:to(options.device), { label_smoothing = 0.05 })
    loss:backward()
    optim.clip_grad_norm_(model:parameters(), 5)
    optimizer:step()
    total = total + loss:detach()
  end
  schedule:step()
  predicted = predict(model, test.x)
  local accuracy = predicted:eq(test.y):to("float32"):mean():item()
  print(("epoch %d/%d  loss %.4f  held-out accuracy %.2f %%"):format(epoch, options.epochs, total:item() / #batches,
        100 * accuracy))
end

digits.print_confusion(test.y, predicted)
local accuracy = predicted:eq(test.y):to("float32"):mean():item()
print(("accuracy on %d held-out digits: %.2f %%"):format(#test.y, 100 * accuracy))

pg.save(options.save, model)
local same = predict(pg.load(options.save, build()), test.x):eq(predicted):all():item()
print(("saved %s; a fresh model loaded from it predicts the same: %s"):format(options.save, same and "yes" or "no"))
if not same then error("the loaded model predicts something else", 0) end
