-- SPDX-License-Identifier: Apache-2.0
-- Two networks that read digits, one of layers that are wide, one of convolutions, with weights of eight and of four
-- bits, of float8, and with whole numbers between their layers: the file, the accuracy and the time of one digit, each
-- beside float32. What four bits forget, training with them brings back.
--   perigee examples/19_quantise.lua [--short] [--device cpu] [--epochs 6] [--seed 1] [--width 2048] [--channels 64]

local pg = require "perigee"
local nn, optim, data = pg.nn, pg.optim, pg.data

local folder = arg[0]:match("^(.*/)") or "./"
package.path = folder .. "?.lua;" .. package.path
local digits = require "digits"
local options = require "options"({ device = "cpu", epochs = 6, seed = 1, width = 2048, channels = 64 },
                                  { epochs = 2, width = 512, channels = 32 })

pg.manual_seed(options.seed)
local train, test = digits.load(folder, 0.2)

local function wide()
  return nn.Sequential { nn.Flatten {}, nn.Linear { 64, options.width, activation = "relu" },
                         nn.Linear { options.width, options.width, activation = "relu" },
                         nn.Linear { options.width, 10 } }
end

local function convolutional()
  local c = options.channels
  return nn.Sequential { nn.Conv2d { 1, c, 3, padding = 1 }, nn.BatchNorm2d { c }, nn.ReLU {},
                         nn.Conv2d { c, c, 3, padding = 1 }, nn.BatchNorm2d { c }, nn.ReLU {}, nn.MaxPool2d { 2 },
                         nn.Conv2d { c, 2 * c, 3, padding = 1 }, nn.BatchNorm2d { 2 * c }, nn.ReLU {},
                         nn.MaxPool2d { 2 }, nn.Flatten {}, nn.Linear { 8 * c, 10 } }
end

local function fit(model, epochs, lr)
  model:train():fit { data = data.from_slices(train):shuffle { seed = options.seed }:batch(32), loss = "cross_entropy",
                      optimizer = optim.Adam { lr = lr }, epochs = epochs, verbose = 0 }
  return model:eval()
end

-- Calibration needs a part of the training data only, and no labels.
local some = train.x[{ { 1, 256 } }]:to(options.device)
local KINDS = {
  { "int8 weights", { dtype = "int8" } },
  { "float8 weights", { dtype = "float8_e4m3fn" } },
  { "int4 weights, groups", { dtype = "int4", group_size = 32 } },
  { "int8, dynamic", { dtype = "int8", mode = "dynamic" } },
  { "int8, static", { dtype = "int8", data = some } },
  { "uint8, static, percentile", { dtype = "int8", data = some, activations = "uint8", observer = "percentile" } },
  { "int4 by int8, dynamic", { dtype = "int4", mode = "dynamic", group_size = 32 } },
}

local function file_size(m)
  local path = os.tmpname() .. ".safetensors"
  pg.save(path, m)
  local file = assert(io.open(path, "rb"))
  local size = file:seek("end")
  file:close()
  os.remove(path)
  os.remove((path:gsub("%.safetensors$", "")))
  return size
end

local function accuracy(m)
  return m:evaluate { x = test.x, y = test.y, loss = "cross_entropy", metrics = { "accuracy" } }.accuracy
end

-- By turns with float32, so that what else the machine does meets both; the shortest is what a network takes.
local one = test.x[{ { 1, 1 } }]:to(options.device)
local function seconds(m, before)
  local result = pg.no_grad(pg.bench, function() return m(one) end, { warmup = 2, iterations = 20 })
  return math.min(result.p50, before or math.huge)
end

for _, network in ipairs { { "layers that are wide", wide }, { "convolutions", convolutional } } do
  local model = fit(network[2]():to(options.device), options.epochs, 1e-3)
  local bytes, right = file_size(model), accuracy(model)
  print(("%-27s %8s %7s %9s %9s"):format(network[1], "bytes", "of it", "accuracy", "one digit"))
  print(("%-27s %8d %6.1f%% %8.2f%% %9s"):format("float32", bytes, 100, 100 * right, ""))
  local function show(name, small, most)
    local long, short
    for _ = 1, options.is_short and 1 or 20 do long, short = seconds(model, long), seconds(small, short) end
    local size, now = file_size(small), accuracy(small)
    print(("%-27s %8d %6.1f%% %8.2f%% %5.1f times as fast"):format(name, size, 100 * size / bytes, 100 * now,
          long / short))
    if size > most * bytes then error(name .. ": the file did not get small", 0) end
    if now < right - 0.01 then error(name .. ": too much was forgotten", 0) end
  end
  for _, kind in ipairs(KINDS) do
    show(kind[1], (pg.quant.ptq(model, kind[2])), options.is_short and 0.35 or 0.27)
  end
  local learner = fit(pg.quant.qat(model, { dtype = "int4", mode = "static" }), math.ceil(options.epochs / 3), 3e-4)
  local learnt, report = pg.quant.convert(learner)
  show("int4 by int8, trained so", learnt, options.is_short and 0.35 or 0.27)
  print(report)
end
