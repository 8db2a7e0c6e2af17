-- SPDX-License-Identifier: Apache-2.0
-- What goes into layers while a model sees data, and the scales that fit it.

local native = require "perigee.native"
local pipeline = require "perigee.data.pipeline"
local Module = require "perigee.nn.module"
local places = require "perigee.nn.places"

local calibration = {}

local function pg() return require "perigee" end

local WHERE = "quant.ptq"
local KEPT = 8192 -- numbers of a call that are kept at most, for percentiles and errors
local STEPS = 100 -- ranges that are tried for the least error

---@class perigee.QuantObserver: perigee.Layer
local Observer = Module.class "QuantObserver"

function Observer:init(layer, seen)
  self.layer = layer
  self.seen = { seen } -- in a list of its own: it is no part of the model
end

function Observer:forward(...)
  local seen, x = self.seen[1], (...)
  if x:numel() > 0 then
    local flat = x:detach():to("float32"):reshape(-1)
    local low, high = flat:amin():item(), flat:amax():item()
    if not (math.abs(low) < math.huge and math.abs(high) < math.huge) then
      native.raise("failed_precondition", WHERE, ("NaN or infinite values go into %s"):format(seen.name))
    end
    seen.low, seen.high = math.min(seen.low, low), math.max(seen.high, high)
    local step = math.max(1, math.ceil(flat:numel() / KEPT))
    seen.kept[#seen.kept + 1] = flat[{ { 1, -1, step } }]:cpu():clone()
  end
  return self.layer(...)
end

local function call(model, batch)
  if native.is_tensor(batch) then return model(batch) end
  local x = batch.x or batch
  if native.is_tensor(x) then return model(x) end
  return model(unpack(x))
end

-- Runs body with every batch of `data`: a dataset, a tensor, or a list of inputs.
local function each(data, body)
  if pipeline.is_dataset(data) then
    for _, batch in (data.batched and data or data:batch(32)):each() do body(batch) end
  elseif native.is_tensor(data) then
    body(data)
  elseif native.is_plain(data) then
    for _, batch in ipairs(data) do body(batch) end
  else
    native.raise("invalid_argument", WHERE, "data must be a dataset, a tensor or a list of inputs, got " ..
                 native.describe(data))
  end
end

---What goes into the layers of some places while the model sees data: the least and largest number, and a part of all.
---@param list table[] places, whose layers are as before afterwards
---@return table<perigee.Layer, {low: number, high: number, kept: perigee.Tensor[]}>
function calibration.observe(model, list, data)
  local seen, observers = {}, {}
  for _, place in ipairs(list) do
    local layer = place.layer
    if not seen[layer] then
      seen[layer] = { low = 0, high = 0, kept = {}, name = place.path == "" and "the model" or place.path }
      observers[layer] = Observer(layer, seen[layer])
      observers[layer]:train(false)
    end
    if place.parent then places.put(place, observers[layer]) else model = observers[layer] end
  end
  local was = model.training
  local batches = 0
  local ok, err = pcall(function()
    model:train(false)
    each(data, function(batch)
      call(model, batch)
      batches = batches + 1
    end)
  end)
  model:train(was)
  for _, place in ipairs(list) do
    if place.parent then places.put(place, place.layer) end
  end
  if not ok then error(err, 0) end
  if batches == 0 then
    native.raise("invalid_argument", WHERE, "data holds no inputs to calibrate with", "some batches of training data")
  end
  return seen
end

-- The range that leaves out what is beyond a percentage of the magnitudes (or of each side).
local function percentile(seen, percent, symmetric)
  local all = pg().cat(seen.kept)
  if symmetric then
    local top = all:abs():quantile(percent / 100):item()
    return -top, top
  end
  return math.min(0, all:quantile(1 - percent / 100):item()), math.max(0, all:quantile(percent / 100):item())
end

local function parameters(low, high, dtype)
  if dtype == "int8" then
    local scale = math.max(-low, high) / 127
    return scale > 0 and scale or 1, 0
  end
  local scale = (high - low) / 255
  scale = scale > 0 and scale or 1
  return scale, math.floor(-low / scale + 0.5)
end

-- The range, of those that shrink step by step, whose whole numbers are nearest in the mean of squares.
local function least_error(seen, dtype)
  local all = pg().cat(seen.kept)
  local best, low, high = math.huge, seen.low, seen.high
  for i = STEPS, math.ceil(STEPS / 5), -1 do
    local scale, zero = parameters(seen.low * i / STEPS, seen.high * i / STEPS, dtype)
    local o = dtype == "int8" and { low = -127, high = 127 } or { low = 0, high = 255 }
    local whole = native.call("fake_quantize", { all, pg().tensor { scale }, pg().tensor { zero } }, o)
    local off = (whole - all):square():mean():item()
    if off < best then best, low, high = off, seen.low * i / STEPS, seen.high * i / STEPS end
  end
  return low, high
end

---The scale and the zero point of what went into a layer.
---@param o {activations: string, observer: string, percentile: number}
---@return number scale
---@return integer zero_point
function calibration.parameters(seen, o)
  if #seen.kept == 0 then
    native.raise("failed_precondition", WHERE, ("nothing of data goes into %s"):format(seen.name),
                 "data that reaches it, or targets without it")
  end
  local low, high = seen.low, seen.high
  if o.observer == "percentile" then
    low, high = percentile(seen, o.percentile, o.activations == "int8")
  elseif o.observer == "mse" then
    low, high = least_error(seen, o.activations)
  end
  return parameters(low, high, o.activations)
end

return calibration
