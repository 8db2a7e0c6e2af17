-- SPDX-License-Identifier: Apache-2.0
-- A convolutional network learns to read handwritten digits.
--   perigee examples/01_digits.lua [--short] [--device sim:0] [--epochs 12] [--seed 1] [--save digits.safetensors]

local pg = require "perigee"
local nn, optim, data = pg.nn, pg.optim, pg.data

local folder = arg[0]:match("^(.*/)") or "./"
package.path = folder .. "?.lua;" .. package.path
local digits = require "digits"
local options = require "options"({ device = "cpu", epochs = 12, seed = 1, save = "digits.safetensors" },
                                  { epochs = 1 })

pg.manual_seed(options.seed)
local train, test = digits.load(folder, 0.2)

local function build()
  return nn.Sequential {
    nn.Conv2d { 1, 32, 3, padding = 1 }, nn.BatchNorm2d { 32 }, nn.ReLU {},
    nn.Conv2d { 32, 32, 3, padding = 1 }, nn.BatchNorm2d { 32 }, nn.ReLU {}, nn.MaxPool2d { 2 },
    nn.Conv2d { 32, 64, 3, padding = 1 }, nn.BatchNorm2d { 64 }, nn.ReLU {}, nn.MaxPool2d { 2 },
    nn.Flatten {}, nn.Dropout { 0.3 }, nn.Linear { 10 }, -- one number: the input's size shows at the first call
  }:to(options.device)
end

local model = build()
local history = model:fit {
  data = data.from_slices(train):shuffle { seed = options.seed }:batch(32),
  validation = data.from_slices(test):batch(256),
  loss = "cross_entropy", metrics = { "accuracy" },
  optimizer = optim.Adam { lr = 2e-3 },
  epochs = options.epochs,
}
print(model)

local predicted = model:predict(test.x):argmax { axis = 2 }:cpu()
digits.print_confusion(test.y, predicted)
print(("accuracy on %d held-out digits: %.2f %%"):format(#test.y, 100 * history[#history].val_accuracy))

pg.save(options.save, model)
local copy = pg.load(options.save, build())
local same = copy:predict(test.x):argmax { axis = 2 }:cpu():eq(predicted):all():item()
print(("saved %s; a fresh model loaded from it predicts the same: %s"):format(options.save, same and "yes" or "no"))
if not same then error("the loaded model predicts something else", 0) end
