-- SPDX-License-Identifier: Apache-2.0
-- Perigee's half of the benchmark of convolutional models: `perigee vision.lua ITEM` prints nanoseconds a step (or a
-- call), wall and processor time. vision_torch.py has the same items for PyTorch; MEASUREMENTS.md the models.

local pg = require "perigee"
local native = require "perigee.native"
local nn, optim = pg.nn, pg.optim

local function report(warmup, count, step)
  for _ = 1, warmup do step() end
  pg.synchronize()
  collectgarbage("collect")
  local wall, cpu = native.clock(), os.clock()
  for _ = 1, count do step() end
  pg.synchronize()
  collectgarbage("collect")
  wall, cpu = native.clock() - wall, os.clock() - cpu
  print(("%.1f %.1f"):format(wall / count * 1e9, cpu / count * 1e9))
end

local function convnet()
  return nn.Sequential {
    nn.Conv2d { 1, 32, 3, padding = 1 }, nn.ReLU {}, nn.Conv2d { 32, 64, 3, padding = 1 }, nn.ReLU {},
    nn.MaxPool2d { 2 }, nn.Flatten {}, nn.Linear { 12544, 128 }, nn.ReLU {}, nn.Linear { 128, 10 },
  }
end

-- He and others, "Deep residual learning for image recognition", 2016.
local Block = nn.class("Block")
function Block:init(o)
  self.conv1 = nn.Conv2d { o.inputs, o.out, 3, stride = o.stride, padding = 1, bias = false }
  self.bn1 = nn.BatchNorm2d { o.out }
  self.conv2 = nn.Conv2d { o.out, o.out, 3, padding = 1, bias = false }
  self.bn2 = nn.BatchNorm2d { o.out }
  if o.stride ~= 1 or o.inputs ~= o.out then
    self.short = nn.Sequential { nn.Conv2d { o.inputs, o.out, 1, stride = o.stride, bias = false },
                                 nn.BatchNorm2d { o.out } }
  end
end
function Block:forward(x)
  local y = self.bn2(self.conv2(self.bn1(self.conv1(x)):relu()))
  return (y + (rawget(self, "short") and self.short(x) or x)):relu()
end

local function resnet18()
  local layers = { nn.Conv2d { 3, 64, 7, stride = 2, padding = 3, bias = false }, nn.BatchNorm2d { 64 }, nn.ReLU {},
                   nn.MaxPool2d { 3, stride = 2, padding = 1 } }
  local inputs = 64
  for stage, out in ipairs { 64, 128, 256, 512 } do
    for i = 1, 2 do
      layers[#layers + 1] = Block { inputs = inputs, out = out, stride = (stage > 1 and i == 1) and 2 or 1 }
      inputs = out
    end
  end
  layers[#layers + 1] = nn.AdaptiveAvgPool2d { 1 }
  layers[#layers + 1] = nn.Flatten {}
  layers[#layers + 1] = nn.Linear { 512, 1000 }
  return nn.Sequential(layers)
end

local function train(model, x, y, optimizer, warmup, count)
  report(warmup, count, function()
    optimizer:zero_grad()
    nn.cross_entropy(model(x), y):backward()
    optimizer:step()
  end)
end

local function infer(model, x, warmup, count)
  model:eval()
  pg.inference_mode(function() report(warmup, count, function() model(x) end) end)
end

local items = {
  convnet_step = function()
    local model = convnet()
    train(model, pg.rand { 64, 1, 28, 28 }, pg.randint(0, 10, { 64 }), optim.Adam { model:parameters(), lr = 1e-3 },
          10, 40)
  end,
  convnet_infer = function() infer(convnet(), pg.rand { 1, 1, 28, 28 }, 100, 600) end,
  resnet_step = function()
    local model = resnet18()
    train(model, pg.rand { 16, 3, 224, 224 }, pg.randint(0, 1000, { 16 }),
          optim.SGD { model:parameters(), lr = 0.1, momentum = 0.9 }, 2, 4)
  end,
  resnet_infer = function() infer(resnet18(), pg.rand { 1, 3, 224, 224 }, 5, 20) end,
}

local run = items[arg[1] or ""]
if not run then error("vision.lua needs the name of an item; see its end", 0) end
run()
