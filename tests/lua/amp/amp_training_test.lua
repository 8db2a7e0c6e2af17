-- SPDX-License-Identifier: Apache-2.0
-- The digits example's network learns in bfloat16, and in float16 with loss scaling, as well as in float32.

local pg = require "perigee"
local nn, optim, data, amp = pg.nn, pg.optim, pg.data, pg.amp

local here = debug.getinfo(1, "S").source:match("^@(.*)tests/lua/[^/]*/[^/]*$")
local file = here and io.open(here .. "examples/data/digits.csv.gz")
if file then file:close() end

local function network()
  return nn.Sequential {
    nn.Conv2d { 1, 16, 3, padding = 1 }, nn.BatchNorm2d { 16 }, nn.ReLU {}, nn.MaxPool2d { 2 },
    nn.Conv2d { 16, 32, 3, padding = 1 }, nn.BatchNorm2d { 32 }, nn.ReLU {}, nn.MaxPool2d { 2 },
    nn.Flatten {}, nn.Linear { 10 },
  }
end

local cache
local function load()
  if not cache then
    local digits = dofile(here .. "examples/digits.lua")
    pg.manual_seed(1)
    cache = { digits.load(here .. "examples/", 0.2) }
  end
  return cache[1], cache[2]
end

local function train(options)
  local training, test = load()
  pg.manual_seed(3)
  local model = network()
  local o = { data = data.from_slices(training):shuffle { seed = 3 }:batch(32),
              validation = data.from_slices(test):batch(256), loss = "cross_entropy", metrics = { "accuracy" },
              optimizer = optim.Adam { lr = 3e-3 }, epochs = 4, verbose = 0 }
  for key, value in pairs(options) do o[key] = value end
  local history = model:fit(o)
  for _, p in ipairs(model:parameters()) do
    if p.dtype ~= "float32" then error("a parameter became " .. p.dtype) end
  end
  return history[#history]
end

test("digits in bfloat16 and in float16 with a scaler", function(t)
  if not file then t.skip("the digits are not beside the tests") end
  for _, d in ipairs(pg.devices()) do -- the simulated accelerator, and the CUDA plugin's emulated one
    local emulated = d.type == "sim" or d.description:find "^Stand%-in"
    if emulated and d.name == pg.device() then t.skip("an emulated device takes minutes to train on") end
  end
  local wide = train {}
  t.ok(wide.val_accuracy > 0.95, "float32 reached " .. wide.val_accuracy)
  local scaler = amp.GradScaler { init_scale = 2 ^ 24, growth_interval = 40 } -- the first steps overflow
  for name, given in pairs { bfloat16 = "bfloat16", float16 = { dtype = "float16", scaler = scaler } } do
    local low = train { amp = given }
    t.ok(low.val_accuracy > wide.val_accuracy - 0.015,
         ("%s reached %g, float32 %g"):format(name, low.val_accuracy, wide.val_accuracy))
    t.close(low.loss, wide.loss, 0.05)
  end
  t.ok(scaler:get_scale() < 2 ^ 24)
end)
