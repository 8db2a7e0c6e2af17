-- SPDX-License-Identifier: Apache-2.0
-- A gradient of one's own: a network whose hidden units are either -1 or 1. The step has the gradient 0 everywhere, so
-- nothing in front of it would learn; the straight-through estimator (Bengio, Leonard, Courville 2013) passes the
-- gradient on as if the step had not been there.
--   perigee examples/06_straight_through.lua [--short] [--device cpu] [--epochs 15] [--seed 1]

local pg = require "perigee"
local nn, optim, data = pg.nn, pg.optim, pg.data

local folder = arg[0]:match("^(.*/)") or "./"
package.path = folder .. "?.lua;" .. package.path
local digits = require "digits"
local options = require "options"({ device = "cpu", epochs = 15, seed = 1 }, { epochs = 3 })

local function step(x) return x:ge(0):to(x.dtype) * 2 - 1 end

-- forward is computed as it is, and not recorded; what backward returns is the gradient of x.
local straight_through = pg.custom_grad {
  forward = function(ctx, x)
    ctx.x = x
    return step(x)
  end,
  backward = function(ctx, dy) return dy * ctx.x:abs():le(1):to(dy.dtype) end, -- none from units that are far off
}

local Net = nn.class "Net"
function Net:init(binary)
  self.first, self.norm, self.last = nn.Linear { 64, 128 }, nn.BatchNorm1d { 128 }, nn.Linear { 128, 10 }
  self.binary = binary
end
function Net:code(x) return self.binary(self.norm(self.first(x))) end
function Net:forward(x) return self.last(self:code(x)) end

pg.manual_seed(options.seed)
local train, test = digits.load(folder, 0.2)
for _, part in ipairs { train, test } do part.x = part.x:flatten { 2 } end

local function accuracy_with(binary, name)
  pg.manual_seed(options.seed)
  local model = Net(binary):to(options.device)
  local before = model.first.weight:detach():clone()
  local history = model:fit {
    data = data.from_slices(train):shuffle { seed = options.seed }:batch(32), loss = "cross_entropy",
    optimizer = optim.Adam { lr = 2e-3 }, epochs = options.epochs, verbose = 0,
  }
  local result = model:evaluate { data = data.from_slices(test):batch(256), metrics = { "accuracy" } }
  local moved = (model.first.weight:detach() - before):abs():max():item()
  print(("%-18s loss %.3f to %.3f, accuracy %.2f %%; the first layer's weights moved by up to %.3f"):format(name,
        history[1].loss, history[#history].loss, 100 * result.accuracy, moved))
  return result.accuracy, moved, model
end

local plain, plain_moved = accuracy_with(step, "step")
local learnt, moved, model = accuracy_with(straight_through, "straight-through")

model:eval()
local codes = pg.no_grad(function() return model:code(test.x:to(options.device)):cpu() end)
for i = 1, 5 do
  local text = ""
  for k, bit in ipairs(codes[{ i, { 1, 64 } }]:totable()) do
    assert(bit == 1 or bit == -1)
    text = text .. (bit > 0 and "1" or "0") .. (k % 8 == 0 and " " or "")
  end
  print(("a %d is %s..."):format(test.y[i]:item(), text))
end
if not (plain_moved == 0 and moved > 0 and learnt > plain) then error("the gradient does not pass through", 0) end
