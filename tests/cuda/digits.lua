-- SPDX-License-Identifier: Apache-2.0
-- Runs an example on a device and on the processor, unchanged but with few digits, and compares what they have learnt.
--   perigee tests/cuda/digits.lua 01_digits.lua cuda:0

local pg = require "perigee"

local folder = arg[0]:match("^(.*/)") .. "../../examples/"
local example, device = arg[1], arg[2]
local TRAIN, TEST = 40, 16
local TOLERANCE = 0.02 -- of the loss: Adam's first steps amplify the last bits of small gradients

local held -- the test set, and the model that was saved
local digits = dofile(folder .. "digits.lua")
local load, save = digits.load, pg.save

local function first(set, count) return { x = set.x[{ { 1, count } }], y = set.y[{ { 1, count } }] } end
function digits.load(where, held_out)
  local train, test = load(where, held_out)
  held = { test = first(test, TEST) }
  return first(train, TRAIN), held.test
end
function pg.save(path, model)
  held.model = model
  return save(path, model)
end

local function loss_on(name)
  local path = os.tmpname() .. ".safetensors"
  rawset(_G, "arg", { [0] = folder .. example, "--device", name, "--epochs", "1", "--save", path })
  package.loaded.digits = digits
  dofile(folder .. example)
  os.remove(path)
  os.remove((path:gsub("%.safetensors$", "")))
  local model = held.model:to("cpu")
  model:eval()
  return pg.nn.cross_entropy(model(held.test.x), held.test.y):item()
end

local expected, got = loss_on("cpu"), loss_on(device)
print(("%s: loss %.5f on the processor, %.5f on %s"):format(example, expected, got, device))
local near = math.abs(got - expected) <= TOLERANCE * expected -- not, where one is NaN
if not near then error("they have learnt different things", 0) end
