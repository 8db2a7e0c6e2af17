-- SPDX-License-Identifier: Apache-2.0
-- What quantised layers share: weights of rows of numbers that are small, and scales.

local native = require "perigee.native"

local weights = {}

local function pg() return require "perigee" end

local LARGEST = { int8 = 127, int4 = 7, float8_e4m3fn = 448, float8_e5m2 = 57344 }

---Scales of a weight's groups, of [out, ...]: the largest magnitude becomes the largest number. They have the weight's
---dtype, and the numbers are of what they are once they have been rounded to it.
function weights.scales(weight, groups, dtype)
  local wide = weight.dtype == "float64" and weight or weight:to("float32")
  local largest = wide:abs():reshape(weight.shape[1], groups, -1):amax { axis = 3 }
  local scale = (largest / LARGEST[dtype]):to(weight.dtype)
  return pg().where(scale:eq(0), 1, scale) -- of zeros alone any number would do
end

---A weight [out, ...] as rows of small numbers, their scales, and the weight that they are, in its shape and dtype.
function weights.whole(weight, o)
  local rows = weight:reshape(weight.shape[1], -1)
  local scale = weights.scales(rows, o.columns / o.group_size, o.dtype)
  local whole = native.call("quantize", { rows, scale }, { format = o.dtype })
  return whole, scale, native.call("dequantize", { whole, scale }, { format = o.dtype }):reshape(weight.shape)
end

---The layer of a class in the place of one of these options; and its weight as it is now, in the old one's dtype.
function weights.replace(class, layer, o, bias)
  local whole, scale, weight = weights.whole(layer.weight:detach(), o)
  local made = class(o, whole, scale, bias)
  made:train(layer.training)
  return made, weight
end

---Gives a layer what it computes with, under the names that states have.
function weights.hold(self, o, whole, scale, bias)
  self.options = o
  if o.input then
    self:buffer("input_scale", pg().tensor({ o.input[1] }, { dtype = scale.dtype, device = scale.device }))
    if o.activations == "uint8" then
      self:buffer("input_zero_point", pg().tensor({ o.input[2] }, { dtype = scale.dtype, device = scale.device }))
    end
  end
  self:buffer("weight_" .. o.dtype, whole)
  self:buffer("weight_scale", scale)
  if bias then self.bias = bias end
end

local calls = setmetatable({}, { __mode = "k" }) -- of layers, once they have been called

---The operator's result for a layer that `hold` filled and that has not changed since. `more`: attributes beside those
---that all operators have.
function weights.call(self, name, x, more)
  local call = calls[self]
  if not call then
    local o = self.options
    local given = { format = o.dtype, activations = o.activations,
                    activation = o.activation == "relu" and "relu" or "none" }
    for _, key in ipairs(more or {}) do given[key] = o[key] end
    call = { run = native.prepare_with(name, 6, given), weight = "weight_" .. o.dtype }
    calls[self] = call
  end
  return call.run(x, self[call.weight], self.weight_scale, self.bias, self.input_scale, self.input_zero_point)
end

---What printing shows of a layer, behind its sizes.
function weights.describe(self)
  local o = self.options
  local text = (", dtype=%s, group_size=%d"):format(o.dtype, o.group_size)
  if o.activations ~= "floating" then
    text = text .. (", activations=%s, %s"):format(o.activations, (o.input or o.static) and "static" or "dynamic")
  end
  if not self.bias then text = text .. ", bias=false" end
  return o.activation == "none" and text or text .. ", activation=" .. o.activation
end

return weights
