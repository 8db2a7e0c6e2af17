-- SPDX-License-Identifier: Apache-2.0
-- What stands in the place of nn.Linear and nn.Conv2d while a model learns to be quantised: its weight and what goes in
-- are rounded as whole numbers would be, and gradients pass straight through.

local native = require "perigee.native"
local Module = require "perigee.nn.module"
local common = require "perigee.nn.layers_common"
local weights = require "perigee.quant.weights"

local training = {}

local function pg() return require "perigee" end

local RANGE = { int8 = { low = -127, high = 127 }, int4 = { low = -8, high = 7 }, uint8 = { low = 0, high = 255 } }
local MOMENTUM = 0.1 -- of the extremes of what goes in

local function fake(x, scale, zero, dtype)
  return native.call("fake_quantize", { x, scale, zero or false }, RANGE[dtype])
end

local function rounded_weight(self)
  local o = self.options
  local groups = o.columns / o.group_size
  local scale = weights.scales(self.weight:detach(), groups, o.dtype):unsqueeze(3)
  return fake(self.weight:reshape(o.out, groups, o.group_size), scale, nil, o.dtype):reshape(self.weight.shape)
end

local function see(range, x)
  if x:numel() == 0 then return end
  local now = pg().stack({ x:amin():minimum(0), x:amax():maximum(0), pg().ones_like(x:amax()) }):to(range.dtype)
  local seen = range[{ { 3, 3 } }]
  range:copy_(range + (now - range) * pg().where(seen:eq(0), 1, MOMENTUM))
end

local function rounded_input(self, x, axes)
  local o = self.options
  if o.activations == "floating" or x:numel() == 0 then return x end
  local scale, zero = pg().no_grad(function()
    local low, high
    if o.static then
      if self.training then see(self.input_range, x:detach()) end
      low, high = self.input_range[{ { 1, 1 } }]:to(x.dtype), self.input_range[{ { 2, 2 } }]:to(x.dtype)
    else
      low, high = x:detach():amin { axis = axes, keepdim = true }:minimum(0),
                  x:detach():amax { axis = axes, keepdim = true }:maximum(0)
    end
    local step = o.activations == "int8" and pg().maximum(-low, high) / 127 or (high - low) / 255
    step = pg().where(step:eq(0), 1, step)
    return step, o.activations == "uint8" and (-low / step):round() or nil
  end)
  return fake(x, scale, zero, o.activations)
end

local classes = {}

-- The class for layers of a kind: linear.lua or conv.lua.
local function class_for(kind, name)
  local Trained = Module.class(name)
  function Trained:init(o, layer, bias)
    self.options = o
    self.weight = layer.weight
    if bias then self.bias = bias end
    if o.static then -- least, largest, and whether they have been seen
      self:buffer("input_range", pg().zeros { 3, dtype = layer.weight.dtype, device = layer.weight.device })
    end
  end
  function Trained:forward(x)
    return kind.compute(self.options, rounded_input(self, x, kind.row_axes), rounded_weight(self), self.bias)
  end
  common.check_input(Trained)
  Trained.describe = kind.describe
  classes[Trained] = kind
  return Trained
end

local made = { Linear = class_for(require "perigee.quant.linear", "QuantTrainedLinear"),
               Conv2d = class_for(require "perigee.quant.conv", "QuantTrainedConv2d") }

---Whether a layer is one of these.
function training.is_trained(layer) return classes[getmetatable(layer)] ~= nil end

---The layer in place of an nn.Linear or nn.Conv2d of these options.
function training.make(layer, o, bias)
  local new = made[getmetatable(layer).__name](o, layer, bias)
  new:train(layer.training)
  return new
end

---What linear.lua or conv.lua needs to make a quantised layer of one that was trained, which of them it is; nil: the
---layer has not seen an input.
function training.options(layer)
  local o, kind = {}, classes[getmetatable(layer)]
  for key, value in pairs(layer.options) do o[key] = value end
  if not o.static then return o, kind end
  local low, high, seen = unpack(layer.input_range:to("float64"):cpu():totable())
  if seen == 0 then return nil end
  local scale = o.activations == "int8" and math.max(-low, high) / 127 or (high - low) / 255
  if scale == 0 then scale = 1 end
  o.input = { scale, o.activations == "int8" and 0 or math.floor(-low / scale + 0.5) }
  return o, kind
end

return training
