-- SPDX-License-Identifier: Apache-2.0
-- Initial values of parameters. `nn.init.*` fill an existing tensor; `fans` are those of a weight [out, in, ...].

local native = require "perigee.native"

local initialise = {}

---A tensor as a layer's description wants it: { shape, dtype, init, a, b }.
function initialise.tensor(spec)
  if spec.init == "uniform" then
    return native.call("uniform", {}, { shape = spec.shape, dtype = spec.dtype, low = spec.a, high = spec.b })
  elseif spec.init == "normal" then
    return native.call("normal", {}, { shape = spec.shape, dtype = spec.dtype, mean = spec.a, std = spec.b })
  end
  return native.call("fill", {}, { shape = spec.shape, dtype = spec.dtype, value = spec.a })
end

---A tensor without elements, to be filled in later.
function initialise.empty(dtype) return native.call("fill", {}, { shape = { 0 }, dtype = dtype, value = 0 }) end

local function fill(t, spec)
  local pg = require "perigee"
  spec.shape, spec.dtype = t.shape, t.dtype
  pg.no_grad(function() native.call("copy", { t, pg.device(t.device, initialise.tensor, spec) }) end)
  return t
end

local function fans(t)
  local shape = t.shape
  if #shape < 2 then
    native.raise("invalid_argument", "nn.init", "needs a tensor of two axes or more, got " .. tostring(shape))
  end
  local window = 1
  for i = 3, #shape do window = window * shape[i] end
  return shape[2] * window, shape[1] * window
end

-- sqrt(2) for ReLU and so on: how much a nonlinearity shrinks what passes (He et al., 2015).
local function gain_of(nonlinearity, slope)
  if nonlinearity == nil or nonlinearity == "linear" or nonlinearity == "sigmoid" then return 1 end
  if nonlinearity == "tanh" then return 5 / 3 end
  if nonlinearity == "relu" then return math.sqrt(2) end
  if nonlinearity == "leaky_relu" then return math.sqrt(2 / (1 + (slope or 0.01) ^ 2)) end
  native.raise("invalid_argument", "nn.init", ("unknown nonlinearity %q"):format(tostring(nonlinearity)))
end

---@class perigee.nn.init
local init = {}
initialise.functions = init

---Fills t with a value.
---@param t perigee.Tensor
---@param value number
---@return perigee.Tensor
function init.constant_(t, value) return fill(t, { init = "constant", a = value }) end
---Fills t with zeros.
---@param t perigee.Tensor
---@return perigee.Tensor
function init.zeros_(t) return init.constant_(t, 0) end
---Fills t with ones.
---@param t perigee.Tensor
---@return perigee.Tensor
function init.ones_(t) return init.constant_(t, 1) end
---Fills t with uniform random numbers in [low, high), [0, 1) if not given.
---@param t perigee.Tensor
---@param low? number
---@param high? number
---@return perigee.Tensor
function init.uniform_(t, low, high) return fill(t, { init = "uniform", a = low or 0, b = high or 1 }) end
---Fills t with normal random numbers, of mean 0 and standard deviation 1 if not given.
---@param t perigee.Tensor
---@param mean? number
---@param std? number
---@return perigee.Tensor
function init.normal_(t, mean, std) return fill(t, { init = "normal", a = mean or 0, b = std or 1 }) end

---Glorot and Bengio, 2010.
---@param t perigee.Tensor
---@param gain? number
---@return perigee.Tensor
function init.xavier_uniform_(t, gain)
  local fan_in, fan_out = fans(t)
  local bound = (gain or 1) * math.sqrt(6 / (fan_in + fan_out))
  return init.uniform_(t, -bound, bound)
end
---Normal numbers of mean 0 and standard deviation gain sqrt(2 / (fan_in + fan_out)) (Glorot and Bengio, 2010).
---@param t perigee.Tensor
---@param gain? number
---@return perigee.Tensor
function init.xavier_normal_(t, gain)
  local fan_in, fan_out = fans(t)
  return init.normal_(t, 0, (gain or 1) * math.sqrt(2 / (fan_in + fan_out)))
end

local function read_kaiming(name)
  local read = native.signature(name, {
    { "t", "tensor", required = true }, { "a", "number" }, { "mode", "string" }, { "nonlinearity", "string" } })
  -- The tensor, and the standard deviation that keeps the variance of what passes.
  return function(...)
    local o = read(...)
    local fan_in, fan_out = fans(o.t)
    local mode = o.mode or "fan_in"
    if mode ~= "fan_in" and mode ~= "fan_out" then
      native.raise("invalid_argument", name, ("mode must be \"fan_in\" or \"fan_out\", got %q"):format(mode))
    end
    local gain = gain_of(o.nonlinearity or "leaky_relu", o.a or 0)
    return o.t, gain / math.sqrt(mode == "fan_in" and fan_in or fan_out)
  end
end
local read_kaiming_uniform, read_kaiming_normal = read_kaiming("kaiming_uniform_"), read_kaiming("kaiming_normal_")

---He et al., 2015. `a` is the slope of a leaky ReLU for negative numbers (0: of a ReLU), `mode` "fan_in" (default) or
---"fan_out".
---@param t perigee.Tensor
---@param options? {a?: number, mode?: string, nonlinearity?: string}
---@return perigee.Tensor
function init.kaiming_uniform_(t, options)
  local target, std = read_kaiming_uniform(t, options)
  return init.uniform_(target, -math.sqrt(3) * std, math.sqrt(3) * std)
end
---Normal numbers of mean 0 and standard deviation gain / sqrt(fan) (He et al., 2015); options as of kaiming_uniform_.
---@param t perigee.Tensor
---@param options? {a?: number, mode?: string, nonlinearity?: string}
---@return perigee.Tensor
function init.kaiming_normal_(t, options)
  local target, std = read_kaiming_normal(t, options)
  return init.normal_(target, 0, std)
end

return initialise
