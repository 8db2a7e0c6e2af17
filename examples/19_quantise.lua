-- SPDX-License-Identifier: Apache-2.0
-- A network that reads digits with weights of eight and of four bits, and with whole numbers between its layers: the
-- file, the accuracy and the time of one digit, each beside float32.
--   perigee examples/19_quantise.lua [--short] [--device cpu] [--epochs 6] [--seed 1] [--width 2048]

local pg = require "perigee"
local nn, optim, data = pg.nn, pg.optim, pg.data

local folder = arg[0]:match("^(.*/)") or "./"
package.path = folder .. "?.lua;" .. package.path
local digits = require "digits"
local options = require "options"({ device = "cpu", epochs = 6, seed = 1, width = 2048 }, { epochs = 3, width = 512 })

pg.manual_seed(options.seed)
local train, test = digits.load(folder, 0.2)
local model = nn.Sequential {
  nn.Flatten {}, nn.Linear { 64, options.width, activation = "relu" },
  nn.Linear { options.width, options.width, activation = "relu" }, nn.Linear { options.width, 10 },
}:to(options.device)
model:fit { data = data.from_slices(train):shuffle { seed = options.seed }:batch(32), loss = "cross_entropy",
            optimizer = optim.Adam { lr = 1e-3 }, epochs = options.epochs, verbose = 0 }
model:eval()

-- Calibration needs a part of the training data only, and no labels.
local some = train.x[{ { 1, 256 } }]:to(options.device)
local kinds = {
  { "int8 weights", { dtype = "int8" } },
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

local bytes, right = file_size(model), accuracy(model)
print(("%-27s %8s %7s %9s %9s"):format("", "bytes", "of it", "accuracy", "one digit"))
print(("%-27s %8d %6.1f%% %8.2f%% %9s"):format("float32", bytes, 100, 100 * right, ""))
for _, kind in ipairs(kinds) do
  local small = pg.quant.ptq(model, kind[2])
  local long, short
  for _ = 1, options.is_short and 1 or 20 do long, short = seconds(model, long), seconds(small, short) end
  local size, now = file_size(small), accuracy(small)
  print(("%-27s %8d %6.1f%% %8.2f%% %5.1f times as fast"):format(kind[1], size, 100 * size / bytes, 100 * now,
        long / short))
  if size > 0.27 * bytes then error(kind[1] .. ": the file did not get small", 0) end
  if now < right - 0.01 then error(kind[1] .. ": too much was forgotten", 0) end
end
print(select(2, pg.quant.ptq(model, { dtype = "int4", group_size = 32 })))
