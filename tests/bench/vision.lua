-- SPDX-License-Identifier: Apache-2.0
-- The convolutional bench models: items for model_step.lua. vision_torch.py has the same for PyTorch (in channels-last
-- where that is faster there).

local pg = require "perigee"
local nn, optim = pg.nn, pg.optim

local function convnet()
  return nn.Sequential {
    nn.Conv2d { 1, 32, 3, padding = 1 }, nn.ReLU {}, nn.Conv2d { 32, 64, 3, padding = 1 }, nn.ReLU {},
    nn.MaxPool2d { 2 }, nn.Flatten {}, nn.Linear { 12544, 128 }, nn.ReLU {}, nn.Linear { 128, 10 },
  }
end

-- He and others, "Deep residual learning for image recognition", 2016.
local Block = nn.class("Block")
function Block:init(o)
  self.main = nn.Sequential { nn.Conv2d { o.inputs, o.out, 3, stride = o.stride, padding = 1, bias = false },
                              nn.BatchNorm2d { o.out }, nn.ReLU {},
                              nn.Conv2d { o.out, o.out, 3, padding = 1, bias = false }, nn.BatchNorm2d { o.out } }
  if o.stride ~= 1 or o.inputs ~= o.out then
    self.short = nn.Sequential { nn.Conv2d { o.inputs, o.out, 1, stride = o.stride, bias = false },
                                 nn.BatchNorm2d { o.out } }
  end
end
function Block:forward(x) return self.main(x):add_(rawget(self, "short") and self.short(x) or x):relu_() end

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

return function(train, infer)
  return {
    convnet_step = function()
      local model = convnet()
      return train(model, pg.rand { 64, 1, 28, 28 }, pg.randint(0, 10, { 64 }),
                   optim.Adam { model:parameters(), lr = 1e-3 })
    end,
    convnet_infer = function() return infer(convnet(), pg.rand { 1, 1, 28, 28 }) end,
    resnet_step = function()
      local model = resnet18()
      return train(model, pg.rand { 16, 3, 224, 224 }, pg.randint(0, 1000, { 16 }),
                   optim.SGD { model:parameters(), lr = 0.1, momentum = 0.9 })
    end,
    resnet_infer = function() return infer(resnet18(), pg.rand { 1, 3, 224, 224 }) end,
  }
end
