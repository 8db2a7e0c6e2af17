-- SPDX-License-Identifier: Apache-2.0
-- What stands in the place of nn.Conv2d: the same map by filters of small numbers and scales.

local Module = require "perigee.nn.module"
local common = require "perigee.nn.layers_common"
local weights = require "perigee.quant.weights"

local conv = {}

local function pg() return require "perigee" end

local ATTRIBUTES = { "kernel", "stride", "padding", "dilation", "groups" }

local Quantized = Module.class "QuantizedConv2d"
conv.class = Quantized

function Quantized:init(...) weights.hold(self, ...) end

-- What is in front of both: another padding than zeros, and an image without a batch.
local function around(o, x, compute)
  local single = x:dim() == 3
  if single then x = x:unsqueeze(1) end
  if o.pad and x:dim() == 4 then x = x:pad(o.pad.widths, { mode = o.pad.mode }) end
  local y = compute(x)
  return single and y:squeeze(1) or y
end

local function product(self, images)
  return weights.call(self, "quantized_conv2d", images, ATTRIBUTES)
end

function Quantized:forward(x)
  local o = self.options
  local y = not o.pad and x:dim() == 4 and product(self, x) or
            around(o, x, function(images) return product(self, images) end)
  return o.activation == "gelu_tanh" and pg().gelu(y, { approximate = "tanh" }) or y
end
common.check_input(Quantized)

local function text(list) return type(list) == "table" and "{" .. table.concat(list, ", ") .. "}" or tostring(list) end

function conv.describe(self)
  local o = self.options
  return ("inputs=%d, out=%d, kernel=%s, stride=%s, padding=%s"):format(o.inputs, o.out, text(o.kernel), text(o.stride),
                                                                        text(o.padding)) ..
           (o.groups ~= 1 and (", groups=%d"):format(o.groups) or "") .. weights.describe(self)
end

Quantized.describe = conv.describe

---What a quantised layer of an nn.Conv2d is made by, beside what the caller chose.
function conv.options(attributes, pad)
  local o = { pad = pad }
  for _, name in ipairs { "inputs", "out", "kernel", "stride", "padding", "dilation", "groups", "activation" } do
    o[name] = attributes:get(name)
  end
  local kernel = o.kernel
  o.columns = o.inputs / o.groups * kernel[1] * (kernel[2] or kernel[1])
  return o
end

---The layer in place of an nn.Conv2d of these options; and its weight as it is now, in the old one's dtype.
function conv.make(layer, o, bias) return weights.replace(Quantized, layer, o, bias) end

---The same map of filters that are floating, while a model learns to be quantised.
function conv.compute(o, x, weight, bias)
  local y = around(o, x, function(images)
    return pg().conv2d(images, weight, bias, { stride = o.stride, padding = o.padding, dilation = o.dilation,
                                               groups = o.groups })
  end)
  if o.activation == "relu" then return y:relu() end
  return o.activation == "gelu_tanh" and pg().gelu(y, { approximate = "tanh" }) or y
end

conv.row_axes = { -3, -2, -1 } -- of x, along which dynamic finds a scale

return conv
