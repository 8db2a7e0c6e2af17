-- SPDX-License-Identifier: Apache-2.0
-- What stands in the place of nn.Linear while a model learns to be quantised: its weight and what goes in are rounded
-- as whole numbers would be, and gradients pass straight through.

local native = require "perigee.native"
local Module = require "perigee.nn.module"
local common = require "perigee.nn.layers_common"
local linear = require "perigee.quant.linear"

local training = {}

local function pg() return require "perigee" end

local RANGE = { int8 = { low = -127, high = 127 }, int4 = { low = -8, high = 7 }, uint8 = { low = 0, high = 255 } }
local MOMENTUM = 0.1 -- of the extremes of what goes in

local Trained = Module.class "QuantTrainedLinear"

function Trained:init(o, layer)
  self.options = o
  self.weight = layer.weight
  if layer.bias then self.bias = layer.bias end
  if o.static then -- least, largest, and whether they have been seen
    self:buffer("input_range", pg().zeros { 3, dtype = layer.weight.dtype, device = layer.weight.device })
  end
end

local function fake(x, scale, zero, dtype)
  return native.call("fake_quantize", { x, scale, zero or false }, RANGE[dtype])
end

local function rounded_weight(self)
  local o = self.options
  local groups = o.inputs / o.group_size
  local scale = linear.scales(self.weight:detach(), groups, o.dtype):unsqueeze(3)
  return fake(self.weight:reshape(o.out, groups, o.group_size), scale, nil, o.dtype):reshape(o.out, o.inputs)
end

local function see(range, x)
  if x:numel() == 0 then return end
  local now = pg().stack({ x:amin():minimum(0), x:amax():maximum(0), pg().ones_like(x:amax()) }):to(range.dtype)
  local seen = range[{ { 3, 3 } }]
  range:copy_(range + (now - range) * pg().where(seen:eq(0), 1, MOMENTUM))
end

local function rounded_input(self, x)
  local o = self.options
  if o.activations == "floating" or x:numel() == 0 then return x end
  local scale, zero = pg().no_grad(function()
    local low, high
    if o.static then
      if self.training then see(self.input_range, x:detach()) end
      low, high = self.input_range[{ { 1, 1 } }]:to(x.dtype), self.input_range[{ { 2, 2 } }]:to(x.dtype)
    else
      low, high = x:detach():amin { axis = -1, keepdim = true }:minimum(0),
                  x:detach():amax { axis = -1, keepdim = true }:maximum(0)
    end
    local step = o.activations == "int8" and pg().maximum(-low, high) / 127 or (high - low) / 255
    step = pg().where(step:eq(0), 1, step)
    return step, o.activations == "uint8" and (-low / step):round() or nil
  end)
  return fake(x, scale, zero, o.activations)
end

function Trained:forward(x)
  local y = pg().linear(rounded_input(self, x), rounded_weight(self), self.bias)
  local activation = self.options.activation
  if activation == "relu" then return y:relu() end
  return activation == "gelu_tanh" and pg().gelu(y, { approximate = "tanh" }) or y
end
common.check_input(Trained)

Trained.describe = linear.describe

---Whether a layer is one of these.
function training.is_trained(layer) return getmetatable(layer) == Trained end

---The layer in place of an nn.Linear of these options.
function training.make(layer, o)
  local made = Trained(o, layer)
  made:train(layer.training)
  return made
end

---What linear.make needs to make a quantised layer of one that was trained; nil: it has not seen an input.
function training.options(layer)
  local o = {}
  for key, value in pairs(layer.options) do o[key] = value end
  if not o.static then return o end
  local low, high, seen = unpack(layer.input_range:to("float64"):cpu():totable())
  if seen == 0 then return nil end
  local scale = o.activations == "int8" and math.max(-low, high) / 127 or (high - low) / 255
  if scale == 0 then scale = 1 end
  o.input = { scale, o.activations == "int8" and 0 or math.floor(-low / scale + 0.5) }
  return o
end

return training
