-- SPDX-License-Identifier: Apache-2.0
-- A denoising autoencoder: digits through a bottleneck of 16 numbers, from noisy input to clean output.
--   perigee examples/04_autoencoder.lua [--short] [--device cpu] [--epochs 60] [--noise 0.4] [--seed 1]

local pg = require "perigee"
local nn, optim, data = pg.nn, pg.optim, pg.data

local folder = arg[0]:match("^(.*/)") or "./"
package.path = folder .. "?.lua;" .. package.path
local digits = require "digits"
local options = require "options"({ device = "cpu", epochs = 60, noise = 0.4, seed = 1 }, { epochs = 5 })

-- Encoder and decoder are layers of their own, so that either can be used alone.
local Autoencoder = nn.class "Autoencoder"
function Autoencoder:init(o)
  self.encoder = nn.Sequential { nn.Linear { 64, 128 }, nn.ReLU {}, nn.Linear { 128, o.code } }
  self.decoder = nn.Sequential { nn.Linear { o.code, 128 }, nn.ReLU {}, nn.Linear { 128, 64 } } -- logits of pixels
end
function Autoencoder:forward(x) return self.decoder(self.encoder(x)) end

pg.manual_seed(options.seed)
local train, test = digits.load(folder, 0.2)
local images, held_out = train.x:flatten { 2 }:to(options.device), test.x:flatten { 2 }:to(options.device)

-- Pixels lie in 0 .. 1, also the noisy ones.
local function disturb(x) return (x + pg.randn(x.shape, { device = x.device }) * options.noise):clamp(0, 1) end

local model = Autoencoder { code = 16 }:to(options.device)
local optimizer = optim.Adam { model:parameters(), lr = 2e-3 }
local schedule = optim.sched.Cosine { optimizer, t_max = options.epochs, eta_min = 1e-4 }
local noisy = disturb(held_out)

local function error_of(x) return nn.mse(x, held_out):item() end

for epoch = 1, options.epochs do
  local total, count = pg.zeros({}, { device = options.device }), 0
  for _, b in data.from_slices { x = images }:shuffle { seed = options.seed + epoch }:batch(32):each() do
    optimizer:zero_grad()
    local loss = nn.bce_with_logits(model(disturb(b.x)), b.x) -- other noise each time
    loss:backward()
    optimizer:step()
    total, count = total + loss:detach(), count + 1
  end
  schedule:step()
  if epoch % 10 == 0 or epoch == options.epochs then
    print(("epoch %2d/%d  loss %.4f  held-out squared error %.4f (of the noisy images: %.4f)"):format(epoch,
          options.epochs, total:item() / count, error_of(model:predict(noisy):sigmoid()), error_of(noisy)))
  end
end

-- Four held-out digits: as they are, with noise, and what the model makes of the noisy ones.
local shades = { [0] = "  ", "░░", "▒▒", "▓▓", "██" }
local function lines_of(image)
  local lines = {}
  for row = 1, 8 do
    local line = ""
    for column = 1, 8 do line = line .. shades[math.floor(image[(row - 1) * 8 + column] * 4 + 0.5)] end
    lines[row] = line
  end
  return lines
end
local cleaned = model:predict(noisy):sigmoid()
print(("%-18s%-18s%-18s"):format("a digit", "with noise", "cleaned"))
for i = 1, 4 do
  local rows = {}
  for k, t in ipairs { held_out, noisy, cleaned } do rows[k] = lines_of(t[i]:cpu():totable()) end
  for row = 1, 8 do print(rows[1][row] .. "  " .. rows[2][row] .. "  " .. rows[3][row]) end
  print()
end

local before, after = error_of(noisy), error_of(cleaned)
print(("16 numbers a digit take %.0f %% of the squared error away"):format(100 * (1 - after / before)))
if after > 0.7 * before then error("the autoencoder takes too little noise away", 0) end
