-- SPDX-License-Identifier: Apache-2.0
-- A variational autoencoder (Kingma, Welling 2013): digits become points of a plane, and points of the plane digits.
-- What lies between two digits is drawn as well.
--   perigee examples/14_vae.lua [--short] [--device cpu] [--epochs 60] [--seed 1]

local pg = require "perigee"
local nn, optim, data = pg.nn, pg.optim, pg.data

local folder = arg[0]:match("^(.*/)") or "./"
package.path = folder .. "?.lua;" .. package.path
local digits = require "digits"
local options = require "options"({ device = "cpu", epochs = 60, seed = 1 }, { epochs = 6 })
local CODE = 2

local VAE = nn.class "VAE"
function VAE:init()
  self.encoder = nn.Sequential { nn.Linear { 64, 128 }, nn.ReLU {}, nn.Linear { 128, 2 * CODE } }
  self.decoder = nn.Sequential { nn.Linear { CODE, 128 }, nn.ReLU {}, nn.Linear { 128, 64 } } -- logits of pixels
end

-- Images [n, 64] -> mean and logarithm of the variance of their codes, [n, CODE] each
function VAE:encode(x)
  local both = self.encoder(x)
  return both[{ {}, { 1, CODE } }], both[{ {}, { CODE + 1, -1 } }]
end

-- The code is drawn as mean + deviation * noise, so that the gradient passes through the drawing.
function VAE:forward(x)
  local mean, log_variance = self:encode(x)
  local code = mean + (0.5 * log_variance):exp() * pg.randn_like(mean)
  return self.decoder(code), mean, log_variance
end

-- The negative of the bound on log p(x), an image: what the pixels cost, and how far codes lie from the normal
-- distribution that will be drawn from.
local function costs_of(x, logits, mean, log_variance)
  local pixels = nn.bce_with_logits(logits, x, { reduction = "sum" }) / #x
  local distance = -0.5 * (1 + log_variance - mean:pow(2) - log_variance:exp()):sum() / #x
  return pixels, distance
end

pg.manual_seed(options.seed)
local train, test = digits.load(folder, 0.2)
local images, held_out = train.x:flatten { 2 }:to(options.device), test.x:flatten { 2 }:to(options.device)
local model = VAE {}:to(options.device)
local optimizer = optim.Adam { model:parameters(), lr = 2e-3 }
local schedule = optim.sched.Cosine { optimizer, t_max = options.epochs, eta_min = 1e-4 }

local function bound()
  return pg.no_grad(function()
    pg.manual_seed(options.seed) -- the same noise each time
    local pixels, distance = costs_of(held_out, model(held_out))
    return (pixels + distance):item(), distance:item()
  end)
end

local before = bound()
for epoch = 1, options.epochs do
  pg.manual_seed(options.seed + epoch)
  for _, b in data.from_slices { x = images }:shuffle { seed = options.seed + epoch }:batch(32):each() do
    optimizer:zero_grad()
    local pixels, distance = costs_of(b.x, model(b.x))
    local loss = pixels + distance
    loss:backward()
    optimizer:step()
  end
  schedule:step()
  if epoch % 10 == 0 or epoch == options.epochs then
    print(("epoch %2d/%d  held-out bound %.2f nats an image, of which the codes take %.2f"):format(epoch,
          options.epochs, bound()))
  end
end

-- The plane, at the places that cut the normal distribution into equal parts.
local SIDE, shades = 4, { [0] = " ", "░", "▒", "▓", "█" }
local parts = (pg.arange(SIDE):to("float32") + 0.5) / SIDE
local places = (2 * parts - 1):erfinv() * math.sqrt(2)
local codes = pg.stack({ places:repeat_interleave(SIDE), places:tile { SIDE } }, 2)
local drawn = pg.no_grad(function() return model.decoder(codes:to(options.device)):sigmoid():cpu() end)
local grid = drawn:reshape(SIDE, SIDE, 8, 8)
for row = 1, SIDE do
  for line = 1, 8 do
    local text = {}
    for column = 1, SIDE do
      for pixel = 1, 8 do
        local shade = shades[math.floor(grid[{ row, column, line, pixel }]:item() * 4 + 0.5)]
        text[#text + 1] = shade .. shade
      end
    end
    print(table.concat(text))
  end
end

-- Digits of a kind lie together though nobody said which is which: the nearest neighbours' labels.
local mean = pg.no_grad(function() return (model:encode(images)) end)
local asked = pg.no_grad(function() return (model:encode(held_out)) end)
local nearest = pg.cdist(asked, mean):argmin(2):cpu()
local together = train.y[nearest]:eq(test.y):to("float32"):mean():item()

local after = bound()
print(("bound: %.2f before, %.2f after; %.0f %% of held-out digits have a digit of their kind next to them"):format(
      before, after, 100 * together))
if after > (options.is_short and 0.9 or 0.62) * before or together < (options.is_short and 0.2 or 0.5) then
  error("the model has learnt too little", 0)
end
