-- SPDX-License-Identifier: Apache-2.0
-- A small residual network (He et al. 2016) on the digits, with an augmentation written in tensor operators: each image
-- is turned and shifted a little, another way each time it is seen.
--   perigee examples/05_resnet.lua [--short] [--device cpu] [--epochs 12] [--seed 1]

local pg = require "perigee"
local nn, optim, data = pg.nn, pg.optim, pg.data

local folder = arg[0]:match("^(.*/)") or "./"
package.path = folder .. "?.lua;" .. package.path
local digits = require "digits"
local options = require "options"({ device = "cpu", epochs = 12, seed = 1 }, { epochs = 1 })

-- ---- augmentation ----

-- x [n, 1, 8, 8]. Every pixel of the result is read from where it came from: turned by up to 15 degrees, shifted by up
-- to one pixel, between four pixels in proportion. What comes from outside is black.
local function augment(x)
  local n, device = #x, x.device
  local function random(width) return (pg.rand({ n, 1 }, { device = device }) * 2 - 1) * width end
  local angle, right, down = random(math.rad(15)), random(1), random(1)
  local place = pg.arange(64, { dtype = "float32", device = device })
  local row = (place / 8):floor()
  local column = place - row * 8
  row, column = row - 3.5, column - 3.5 -- from the middle
  local from_row = row * angle:cos() - column * angle:sin() + down + 4.5 -- in the image with its border of one pixel
  local from_column = row * angle:sin() + column * angle:cos() + right + 4.5
  from_row, from_column = from_row:clamp(0, 8.999), from_column:clamp(0, 8.999)
  local top, left = from_row:floor(), from_column:floor()
  local lower, later = from_row - top, from_column - left
  local pixels = x:pad { 1, 1, 1, 1 }:flatten { 2 } -- [n, 100]
  local function at(r, c) return pixels:gather(2, (r * 10 + c):to("int64")) end
  local upper_line = at(top, left) * (1 - later) + at(top, left + 1) * later
  local lower_line = at(top + 1, left) * (1 - later) + at(top + 1, left + 1) * later
  return (upper_line * (1 - lower) + lower_line * lower):reshape(x.shape)
end

-- ---- the network ----

local function conv(from, to, size, stride)
  return nn.Conv2d { from, to, size, stride = stride, padding = math.floor(size / 2), bias = false }
end

-- Two convolutions whose result is added to their input; where the shape changes, to a 1x1 convolution of it.
local Block = nn.class "Block"
function Block:init(o)
  self.first, self.norm1 = conv(o.from, o.to, 3, o.stride), nn.BatchNorm2d { o.to }
  self.second, self.norm2 = conv(o.to, o.to, 3, 1), nn.BatchNorm2d { o.to }
  if o.from ~= o.to or o.stride ~= 1 then
    self.shortcut = nn.Sequential { conv(o.from, o.to, 1, o.stride), nn.BatchNorm2d { o.to } }
  end
end
function Block:forward(x)
  local y = self.norm2(self.second(self.norm1(self.first(x)):relu()))
  return (y + (self.shortcut and self.shortcut(x) or x)):relu()
end

local function build()
  return nn.Sequential {
    conv(1, 32, 3, 1), nn.BatchNorm2d { 32 }, nn.ReLU {},
    Block { from = 32, to = 32, stride = 1 },
    Block { from = 32, to = 64, stride = 2 },
    Block { from = 64, to = 64, stride = 1 },
    nn.AvgPool2d { 4 }, nn.Flatten {}, nn.Linear { 64, 10 },
  }
end

-- ---- training ----

pg.manual_seed(options.seed)
local train, test = digits.load(folder, 0.2)
local model = build():to(options.device)
local optimizer = optim.SGD { model:parameters(), lr = 0.05, momentum = 0.9, nesterov = true, weight_decay = 5e-4 }
local batches = data.from_slices(train):shuffle { seed = options.seed }:batch { 32, drop_last = true }
local schedule = optim.sched.Cosine { optimizer, total = options.epochs * #batches }
print(("%d parameters, %d training images"):format(model:count_parameters(), #train.y))

for epoch = 1, options.epochs do
  model:train()
  local total = pg.zeros({}, { device = options.device })
  for _, b in batches:each() do
    optimizer:zero_grad()
    local x = pg.no_grad(augment, b.x:to(options.device))
    local loss = nn.cross_entropy(model(x), b.y:to(options.device), { label_smoothing = 0.1 })
    loss:backward()
    optimizer:step()
    schedule:step()
    total = total + loss:detach()
  end
  local result = model:evaluate { data = data.from_slices(test):batch(256), loss = "cross_entropy",
                                  metrics = { "accuracy" } }
  print(("epoch %2d/%d  loss %.4f  held-out loss %.4f, accuracy %.2f %%"):format(epoch, options.epochs,
        total:item() / #batches, result.loss, 100 * result.accuracy))
end

local predicted = model:predict(test.x):argmax { axis = 2 }:cpu()
digits.print_confusion(test.y, predicted)
local accuracy = predicted:eq(test.y):to("float32"):mean():item()
print(("accuracy on %d held-out digits: %.2f %%"):format(#test.y, 100 * accuracy))
if accuracy < (options.is_short and 0.6 or 0.97) then error("the network has learnt too little", 0) end
