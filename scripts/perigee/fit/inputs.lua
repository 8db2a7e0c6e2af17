-- SPDX-License-Identifier: Apache-2.0
-- Batches for fit, evaluate and predict: from datasets, or from tensors x and y.

local native = require "perigee.native"
local pipeline = require "perigee.data.pipeline"

local inputs = {}
local BATCH = 32

local function check_dataset(where, name, value)
  if not pipeline.is_dataset(value) then
    native.raise("invalid_argument", where, ("%s must be a dataset, got %s"):format(name, native.describe(value)),
                 "data.from_slices{ x=..., y=... }")
  end
end

-- Batches of a dataset that may have been batched already.
local function batched(dataset, size)
  if dataset.batched then return dataset end
  return dataset:batch(size or BATCH)
end

-- Those of a dataset that was given as data=, beside which options must not say what nothing heeds.
local function batches_of(where, o)
  check_dataset(where, "data", o.data)
  if o.x ~= nil or o.y ~= nil or o.validation_split then
    native.raise("invalid_argument", where, "x, y and validation_split do not go with data")
  end
  if o.shuffle ~= nil or o.seed ~= nil then
    native.raise("invalid_argument", where, "shuffle and seed are for x and y, not for data",
                 "data=ds:shuffle{seed=1}:batch(32)")
  end
  if o.data.batched and o.batch_size then
    native.raise("invalid_argument", where, "batch_size does not go with data that is batched already")
  end
  return batched(o.data, o.batch_size)
end

local function from_tensors(where, x, y)
  for _, row in ipairs { { "x", x }, { "y", y } } do
    local name, t = row[1], row[2]
    if t ~= nil and not native.is_tensor(t) then
      native.raise("invalid_argument", where, ("%s must be a tensor, got %s"):format(name, native.describe(t)),
                   native.is_plain(t) and "pg.tensor makes one of a table")
    end
  end
  if not x or not y then native.raise("invalid_argument", where, "needs data=, or both x= and y=") end
  return require("perigee.data").from_slices { x = x, y = y }
end

local read_pair = native.signature("fit: validation", {
  { "x", "any", required = true }, { "y", "any", required = true } })

-- A dataset, or { x =, y = } of tensors.
local function validation_data(where, given)
  if native.is_plain(given) then
    local pair = read_pair(given)
    return from_tensors(where, pair.x, pair.y)
  end
  check_dataset(where, "validation", given)
  return given
end

---Training and validation batches as fit's options say. The validation part of x and y is their end.
function inputs.training(where, o)
  local train, validation
  if o.data ~= nil then
    train = batches_of(where, o)
  else
    train = from_tensors(where, o.x, o.y)
    if o.validation_split then
      if not (o.validation_split > 0 and o.validation_split < 1) then
        native.raise("invalid_argument", where, "validation_split must lie between 0 and 1, got " .. o.validation_split)
      end
      train, validation = train:split { 1 - o.validation_split, o.validation_split }
    end
    if o.shuffle ~= false then train = train:shuffle { seed = o.seed } end
  end
  if o.validation ~= nil then validation = validation_data(where, o.validation) end
  if train.size == 0 then native.raise("invalid_argument", where, "there are no samples to train on") end
  return batched(train, o.batch_size), validation and batched(validation, o.batch_size)
end

---Batches for evaluate.
function inputs.evaluation(where, o)
  if o.data ~= nil then return batches_of(where, o) end
  return batched(from_tensors(where, o.x, o.y), o.batch_size)
end

---Where the model computes: the device of its first parameter, or nil.
function inputs.device_of(model)
  local first = model:parameters()[1]
  return first and first.device
end

local function move(t, device)
  if not native.is_tensor(t) or not device or t.device == device then return t end
  return t:to(device)
end

---x, y and the number of samples of a batch, on the model's device.
function inputs.unpack(where, batch, device)
  local x, y = batch.x or batch[1], batch.y or batch[2]
  if not native.is_tensor(x) or not native.is_tensor(y) then
    local names = {}
    for name in pairs(batch) do names[#names + 1] = tostring(name) end
    table.sort(names)
    native.raise("invalid_argument", where, "a batch must hold tensors x and y; it holds " .. table.concat(names, ", "),
                 "rename with ds:map")
  end
  return move(x, device), move(y, device), #x
end

return inputs
