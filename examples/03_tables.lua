-- SPDX-License-Identifier: Apache-2.0
-- Three small classifiers on tables of measurements: standardise, split, train until the validation stops getting
-- better, and look at what was confused with what.
--   perigee examples/03_tables.lua [--short] [--data iris] [--device cpu] [--epochs 200] [--seed 1]

local pg = require "perigee"
local nn, optim, data = pg.nn, pg.optim, pg.data

local folder = arg[0]:match("^(.*/)") or "./"
package.path = folder .. "?.lua;" .. package.path
local options = require "options"({ data = "all", device = "cpu", epochs = 200, seed = 1 }, { epochs = 30 })

-- The first line of a file: rows, columns, and the names of the classes.
local function read(name)
  local path = folder .. "data/" .. name .. ".csv"
  local file = assert(io.open(path))
  local classes, words = {}, file:read("*l"):gmatch("[^,]+")
  local rows, columns = tonumber(words()), tonumber(words())
  for word in words do classes[#classes + 1] = word end
  file:close()
  local all = data.csv { path, skip = 1 }
  assert(all:has_shape { rows, columns + 1 })
  return all[{ {}, { 1, columns } }], all[{ {}, -1 }]:to("int64"), classes
end

-- Shuffled, then 60 % to train on, 20 % to know when to stop, 20 % to be judged by. What the standardisation knows of
-- the data it knows of the training part alone.
local function split(x, y)
  local order, n = pg.randperm(#y), #y
  x, y = x[order], y[order]
  local a, b = math.floor(0.6 * n), math.floor(0.8 * n)
  local mean, std = x[{ { 1, a } }]:mean { axis = 1 }, x[{ { 1, a } }]:std { axis = 1 }
  x = (x - mean) / std
  local function part(first, last) return { x = x[{ { first, last } }], y = y[{ { first, last } }] } end
  return part(1, a), part(a + 1, b), part(b + 1, n)
end

local function print_confusion(labels, predicted, classes)
  local k = #classes
  -- Class c stands at row c + 1, what it was taken for at column.
  local matrix = (labels * k + predicted):one_hot(k * k):sum { axis = 1 }:reshape(k, k):totable()
  for i, row in ipairs(matrix) do
    local hit, column = row[i], 0
    for j = 1, k do column = column + matrix[j][i] end
    local total = 0
    for j = 1, k do total = total + row[j] end
    io.write(("  %-12s"):format(classes[i]))
    for j = 1, k do io.write(("%4d"):format(row[j])) end
    print(("   precision %.2f  recall %.2f"):format(column > 0 and hit / column or 0, hit / total))
  end
end

local function classify(name)
  pg.manual_seed(options.seed)
  local x, y, classes = read(name)
  local train, validation, test = split(x, y)
  local model = nn.Sequential {
    nn.Linear { x.shape[2], 32 }, nn.ReLU {}, nn.Dropout { 0.2 }, nn.Linear { 32, #classes },
  }:to(options.device)
  local history = model:fit {
    data = data.from_slices(train):shuffle { seed = options.seed }:batch(16),
    validation = data.from_slices(validation):batch(256),
    loss = "cross_entropy", metrics = { "accuracy" }, optimizer = optim.AdamW { lr = 3e-3, weight_decay = 0.01 },
    epochs = options.epochs, verbose = 0,
    callbacks = { pg.callbacks.EarlyStopping { patience = 20, restore_best = true } }, -- of val_loss
  }
  local result = model:evaluate { data = data.from_slices(test):batch(256) }
  print(("%s: %d rows of %d numbers, %d classes; %d epochs; held out: %d rows, loss %.3f, accuracy %.1f %%")
        :format(name, #y, x.shape[2], #classes, #history, #test.y, result.loss, 100 * result.accuracy))
  print_confusion(test.y, model:predict(test.x):argmax { axis = 2 }:cpu(), classes)
  return result.accuracy
end

for _, name in ipairs(options.data == "all" and { "iris", "wine", "breast_cancer" } or { options.data }) do
  local accuracy = classify(name)
  local enough = options.is_short and 0.7 or 0.85
  if accuracy < enough then error(("%s: an accuracy of %.2f is too little"):format(name, accuracy), 0) end
end
