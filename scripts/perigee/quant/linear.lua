-- SPDX-License-Identifier: Apache-2.0
-- What stands in the place of nn.Linear: the same map by a weight of small numbers and scales.

local Module = require "perigee.nn.module"
local common = require "perigee.nn.layers_common"
local weights = require "perigee.quant.weights"

local linear = {}

local function pg() return require "perigee" end

local Quantized = Module.class "QuantizedLinear"
linear.class = Quantized

function Quantized:init(...) weights.hold(self, ...) end

function Quantized:forward(x)
  local y = weights.call(self, "quantized_linear", x)
  return self.options.activation == "gelu_tanh" and pg().gelu(y, { approximate = "tanh" }) or y
end
common.check_input(Quantized)

---What a quantised layer of an nn.Linear is made by, beside what the caller chose.
function linear.options(attributes)
  local inputs = attributes:get "inputs"
  return { inputs = inputs, out = attributes:get "out", columns = inputs, activation = attributes:get "activation" }
end

---The layer in place of an nn.Linear of these options; and its weight as it is now, in the old one's dtype.
function linear.make(layer, o, bias) return weights.replace(Quantized, layer, o, bias) end

---The same map of a weight that is floating, while a model learns to be quantised.
function linear.compute(o, x, weight, bias)
  local y = pg().linear(x, weight, bias)
  if o.activation == "relu" then return y:relu() end
  return o.activation == "gelu_tanh" and pg().gelu(y, { approximate = "tanh" }) or y
end

linear.row_axes = { -1 } -- of x, along which dynamic finds a scale
function linear.describe(self)
  return ("inputs=%d, out=%d"):format(self.options.inputs, self.options.out) .. weights.describe(self)
end
Quantized.describe = linear.describe

return linear
