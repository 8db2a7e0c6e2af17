-- SPDX-License-Identifier: Apache-2.0
-- What stands in the place of nn.Linear: the same map by a weight of small whole numbers and scales.

local native = require "perigee.native"
local Module = require "perigee.nn.module"
local common = require "perigee.nn.layers_common"

local linear = {}

local function pg() return require "perigee" end

local LARGEST = { int8 = 127, int4 = 7 }

local Quantized = Module.class "QuantizedLinear"

function Quantized:init(o, weight, scale, bias)
  self.options = o
  if o.input then
    self:buffer("input_scale", pg().tensor({ o.input[1] }, { dtype = scale.dtype, device = scale.device }))
    if o.activations == "uint8" then
      self:buffer("input_zero_point", pg().tensor({ o.input[2] }, { dtype = scale.dtype, device = scale.device }))
    end
  end
  self:buffer("weight_" .. o.dtype, weight)
  self:buffer("weight_scale", scale)
  if bias then self.bias = bias end
end

function Quantized:forward(x)
  local o = self.options
  local y = native.call("quantized_linear", { x, self["weight_" .. o.dtype], self.weight_scale, self.bias or false,
                                              self.input_scale or false, self.input_zero_point or false },
                        { format = o.dtype, activations = o.activations })
  if o.activation == "relu" then return y:relu() end
  return o.activation == "gelu_tanh" and pg().gelu(y, { approximate = "tanh" }) or y
end
common.check_input(Quantized)

---What printing shows of a layer with these options.
function linear.describe(self)
  local o = self.options
  local text = ("inputs=%d, out=%d, dtype=%s, group_size=%d"):format(o.inputs, o.out, o.dtype, o.group_size)
  if o.activations ~= "floating" then
    text = text .. (", activations=%s, %s"):format(o.activations, (o.input or o.static) and "static" or "dynamic")
  end
  if not self.bias then text = text .. ", bias=false" end
  return o.activation == "none" and text or text .. ", activation=" .. o.activation
end

Quantized.describe = linear.describe

---Whether a layer is one of these.
function linear.is_quantized(layer) return getmetatable(layer) == Quantized end

---Scales of a weight's groups: the largest magnitude becomes the largest number. They have the weight's dtype, and the
---numbers are of what they are once they have been rounded to it.
function linear.scales(weight, groups, dtype)
  local out, inputs = weight.shape[1], weight.shape[2]
  local wide = weight.dtype == "float64" and weight or weight:to("float32")
  local largest = wide:abs():reshape(out, groups, inputs / groups):amax { axis = 3 }
  local scale = (largest / LARGEST[dtype]):to(weight.dtype)
  return pg().where(scale:eq(0), 1, scale) -- of zeros alone any number would do
end

---The layer in place of an nn.Linear of these options; and its weight as it is now, in the old one's dtype.
function linear.make(layer, o)
  local weight = layer.weight:detach()
  local scale = linear.scales(weight, o.inputs / o.group_size, o.dtype)
  local whole = native.call("quantize", { weight, scale }, { format = o.dtype })
  local made = Quantized(o, whole, scale, layer.bias)
  made:train(layer.training)
  return made, native.call("dequantize", { whole, scale }, { format = o.dtype })
end

return linear
