-- SPDX-License-Identifier: Apache-2.0
-- A generative adversarial network of convolutions (Radford, Metz, Chintala 2015): one network makes digits of noise,
-- another tells them from real ones, and each learns from the other. A third, which has learnt to read, judges both.
--   perigee examples/15_gan.lua [--short] [--device cpu] [--epochs 60] [--seed 1]

local pg = require "perigee"
local nn, optim, data = pg.nn, pg.optim, pg.data

local folder = arg[0]:match("^(.*/)") or "./"
package.path = folder .. "?.lua;" .. package.path
local digits = require "digits"
local options = require "options"({ device = "cpu", epochs = 60, seed = 1 }, { epochs = 2 })
local NOISE, BATCH = 32, 64

pg.manual_seed(options.seed)
local train, test = digits.load(folder, 0.2)

-- ---- the networks ----

-- Convolutions whose weights begin small, as the paper says.
local function begin_small(model)
  model:apply(function(layer)
    if layer.weight and #layer.weight.shape == 4 then nn.init.normal_(layer.weight, 0, 0.02) end
  end)
  return model:to(options.device)
end

local generator = begin_small(nn.Sequential { -- noise [n, NOISE, 1, 1] -> images [n, 1, 8, 8] in -1 .. 1
  nn.ConvTranspose2d { NOISE, 64, 2, bias = false }, nn.BatchNorm2d { 64 }, nn.ReLU {},
  nn.ConvTranspose2d { 64, 32, 4, stride = 2, padding = 1, bias = false }, nn.BatchNorm2d { 32 }, nn.ReLU {},
  nn.ConvTranspose2d { 32, 1, 4, stride = 2, padding = 1 }, nn.Tanh {},
})
local discriminator = begin_small(nn.Sequential { -- images -> logits [n, 1]: is it a real one?
  nn.Conv2d { 1, 32, 4, stride = 2, padding = 1 }, nn.LeakyReLU { 0.2 },
  nn.Conv2d { 32, 64, 4, stride = 2, padding = 1, bias = false }, nn.BatchNorm2d { 64 }, nn.LeakyReLU { 0.2 },
  nn.Flatten {}, nn.Linear { 256, 1 },
})
local function noise(count) return pg.randn(count, NOISE, 1, 1, { device = options.device }) end

-- ---- the judge ----

local judge = nn.Sequential {
  nn.Conv2d { 1, 32, 3, padding = 1 }, nn.ReLU {}, nn.MaxPool2d { 2 }, nn.Flatten {}, nn.Dropout { 0.3 },
  nn.Linear { 512, 10 },
}:to(options.device)
judge:fit {
  data = data.from_slices { x = train.x * 2 - 1, y = train.y }:shuffle { seed = 1 }:batch { 64 },
  loss = "cross_entropy", optimizer = optim.Adam { lr = 3e-3 }, epochs = 10, verbose = 0,
}

-- Of images: in how many the judge sees a digit clearly, how many of the ten kinds there are (the exponential of the
-- entropy of what it sees on the average), and both in one figure, the inception score: 1 at worst, 10 at best.
local function judged(images)
  local seen = judge:predict(images):softmax(-1)
  local clear = seen:max { 2 }:gt(0.9):to("float32"):mean():item()
  local average = seen:mean { 1 }
  local kinds = (-(average * (average + 1e-8):log()):sum()):exp():item()
  local score = (seen * ((seen + 1e-8):log() - (average + 1e-8):log())):sum { 2 }:mean():exp():item()
  return clear, kinds, score
end

-- ---- the game ----

local by_generator = optim.Adam { generator:parameters(), lr = 2e-3, betas = { 0.5, 0.999 } }
local by_discriminator = optim.Adam { discriminator:parameters(), lr = 1e-3, betas = { 0.5, 0.999 } }
local real_ones = (train.x * 2 - 1):to(options.device)
local watched = noise(500)

-- Real ones count as 0.9 only: a discriminator that is too sure teaches nothing.
local function cost(logits, target) return nn.bce_with_logits(logits, pg.full_like(logits, target)) end

local started = os.clock()
for epoch = 1, options.epochs do
  local losses = pg.zeros { 2 }
  local batches = data.from_slices { x = real_ones }:shuffle { seed = epoch }:batch { BATCH, drop_last = true }
  for _, b in batches:each() do
    local made = generator(noise(BATCH))

    by_discriminator:zero_grad()
    local against = cost(discriminator(b.x), 0.9) + cost(discriminator(made:detach()), 0)
    against:backward()
    by_discriminator:step()

    by_generator:zero_grad()
    local for_it = cost(discriminator(made), 1)
    for_it:backward()
    by_generator:step()
    losses:add_(pg.stack { against:detach(), for_it:detach() }:cpu())
  end
  if epoch % 10 == 0 or epoch == options.epochs then
    losses = (losses / #batches):totable()
    local clear, kinds, score = judged(generator:predict(watched))
    print(("epoch %2d  losses %.2f (discriminator) %.2f  clear %3.0f %%  kinds %.1f  score %.2f  (%.0f s)"):format(
          epoch, losses[1], losses[2], 100 * clear, kinds, score, os.clock() - started))
  end
end

-- ---- what it makes ----

local shades = { [0] = "  ", "░░", "▒▒", "▓▓", "██" }
local made = generator:predict(watched):cpu()
for first = 1, 8, 4 do
  for row = 1, 8 do
    local line = {}
    for image = first, first + 3 do
      for _, value in ipairs(made[{ image, 1, row }]:totable()) do
        line[#line + 1] = shades[math.floor((value + 1) * 2 + 0.5)]
      end
      line[#line + 1] = " "
    end
    print(table.concat(line))
  end
  print()
end
local clear, kinds, score = judged(generator:predict(watched))
local _, _, best = judged((test.x * 2 - 1):to(options.device))
print(("%.0f %% of what it makes are clear digits, of %.1f kinds; score %.2f (real ones: %.2f)"):format(100 * clear,
      kinds, score, best))
if score < (options.is_short and 1 or 5) then error("the generator has learnt too little", 0) end
