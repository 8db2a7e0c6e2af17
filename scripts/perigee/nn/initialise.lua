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

local function refuse(where, message) native.raise("invalid_argument", where, message) end

local function fans(where, t)
  local shape = t.shape
  if #shape < 2 then refuse(where, "needs a tensor of two axes or more, got " .. tostring(shape)) end
  local window = 1
  for i = 3, #shape do window = window * shape[i] end
  return shape[2] * window, shape[1] * window
end

local T = { "t", "tensor", required = true, doc = "what is filled" }

---@class perigee.nn.init
local init = {}
initialise.functions = init

-- What reads the arguments of init[name].
local function reader(name, ...) return native.signature("nn.init." .. name, { T, ... }) end

local NONLINEARITIES = { "leaky_relu", "relu", "selu", "tanh", "sigmoid", "linear", "conv1d", "conv2d", "conv3d",
                         "conv_transpose1d", "conv_transpose2d", "conv_transpose3d" }
local gains = { linear = 1, conv1d = 1, conv2d = 1, conv3d = 1, conv_transpose1d = 1, conv_transpose2d = 1,
                conv_transpose3d = 1, sigmoid = 1, tanh = 5 / 3, relu = math.sqrt(2), selu = 3 / 4 }

local function gain_of(nonlinearity, slope)
  return gains[nonlinearity] or math.sqrt(2 / (1 + slope ^ 2)) -- leaky_relu's
end

local read_gain = native.signature("nn.init.calculate_gain", {
  { "nonlinearity", "string", required = true, choices = NONLINEARITIES, doc = "what stands behind the weights" },
  { "param", "number", default = 0.01, doc = "leaky_relu's slope for negative numbers" } })
---How much larger weights are to be for what a nonlinearity takes away: sqrt(2) for ReLU, and so on (He et al., 2015).
---@return number
function init.calculate_gain(...)
  local o = read_gain(...)
  return gain_of(o.nonlinearity, o.param)
end

local read_constant = reader("constant_", { "val", "number", alias = "value", required = true, doc = "also `val`" })
---Fills t with a value.
---@return perigee.Tensor
function init.constant_(...)
  local o = read_constant(...)
  return fill(o.t, { init = "constant", a = o.val })
end

local read_zeros, read_ones = reader "zeros_", reader "ones_"
---Fills t with zeros.
---@return perigee.Tensor
function init.zeros_(...) return fill(read_zeros(...).t, { init = "constant", a = 0 }) end
---Fills t with ones.
---@return perigee.Tensor
function init.ones_(...) return fill(read_ones(...).t, { init = "constant", a = 1 }) end

local function uniform(t, low, high) return fill(t, { init = "uniform", a = low, b = high }) end
local function normal(t, mean, std) return fill(t, { init = "normal", a = mean, b = std }) end

local read_uniform = reader("uniform_", { "a", "number", alias = "low", default = 0, doc = "least number; also `a`" },
                            { "b", "number", alias = "high", default = 1, doc = "end, excluded; also `b`" })
---Fills t with uniform random numbers in [low, high).
---@return perigee.Tensor
function init.uniform_(...)
  local o = read_uniform(...)
  return uniform(o.t, o.a, o.b)
end

local read_normal = reader("normal_", { "mean", "number", default = 0 }, { "std", "number", default = 1 })
---Fills t with normal random numbers.
---@return perigee.Tensor
function init.normal_(...)
  local o = read_normal(...)
  return normal(o.t, o.mean, o.std)
end

local read_truncated = reader("trunc_normal_", { "mean", "number", default = 0 }, { "std", "number", default = 1 },
                              { "a", "number", alias = "low", default = -2, doc = "least number; also `a`" },
                              { "b", "number", alias = "high", default = 2, doc = "greatest number; also `b`" })
---Fills t with normal random numbers, those outside [low, high] drawn again.
---@return perigee.Tensor
function init.trunc_normal_(...)
  local o, pg = read_truncated(...), require "perigee"
  if o.a >= o.b then refuse("nn.init.trunc_normal_", ("low %g must lie below high %g"):format(o.a, o.b)) end
  if o.std <= 0 then refuse("nn.init.trunc_normal_", ("std must be positive, got %g"):format(o.std)) end
  -- Uniform numbers where the distribution function has them between its values at low and high, put through its
  -- inverse.
  local scale = o.std * math.sqrt(2)
  local ends = pg.tensor({ (o.a - o.mean) / scale, (o.b - o.mean) / scale }, { dtype = "float64" }):erf()
  local low, high = ends[1]:item(), ends[2]:item()
  return pg.no_grad(function()
    local u = pg.rand(o.t.shape, { dtype = "float64" }) * (high - low) + low
    return o.t:copy_((u:erfinv() * scale + o.mean):clamp(o.a, o.b):to(o.t.dtype):to(o.t.device))
  end)
end

local GAIN = { "gain", "number", default = 1, doc = "factor, as calculate_gain gives it" }
local read_xavier_uniform, read_xavier_normal = reader("xavier_uniform_", GAIN), reader("xavier_normal_", GAIN)
---Uniform numbers in +-gain sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio, 2010).
---@return perigee.Tensor
function init.xavier_uniform_(...)
  local o = read_xavier_uniform(...)
  local fan_in, fan_out = fans("nn.init.xavier_uniform_", o.t)
  local bound = o.gain * math.sqrt(6 / (fan_in + fan_out))
  return uniform(o.t, -bound, bound)
end
---Normal numbers of mean 0 and standard deviation gain sqrt(2 / (fan_in + fan_out)) (Glorot and Bengio, 2010).
---@return perigee.Tensor
function init.xavier_normal_(...)
  local o = read_xavier_normal(...)
  local fan_in, fan_out = fans("nn.init.xavier_normal_", o.t)
  return normal(o.t, 0, o.gain * math.sqrt(2 / (fan_in + fan_out)))
end

local function read_kaiming(name)
  local where = "nn.init." .. name
  local read = reader(name, { "a", "number", default = 0, doc = "a leaky ReLU's slope for negative numbers" },
                      { "mode", "string", default = "fan_in", choices = { "fan_in", "fan_out" },
                        doc = "which way keeps its variance: forward or backward" },
                      { "nonlinearity", "string", default = "leaky_relu", choices = NONLINEARITIES,
                        doc = "as of calculate_gain" })
  -- The tensor, and the standard deviation that keeps the variance of what passes.
  return function(...)
    local o = read(...)
    local fan_in, fan_out = fans(where, o.t)
    return o.t, gain_of(o.nonlinearity, o.a) / math.sqrt(o.mode == "fan_in" and fan_in or fan_out)
  end
end
local read_kaiming_uniform, read_kaiming_normal = read_kaiming("kaiming_uniform_"), read_kaiming("kaiming_normal_")

---Uniform numbers in +-gain sqrt(3 / fan) (He et al., 2015).
---@return perigee.Tensor
function init.kaiming_uniform_(...)
  local t, std = read_kaiming_uniform(...)
  return uniform(t, -math.sqrt(3) * std, math.sqrt(3) * std)
end
---Normal numbers of mean 0 and standard deviation gain / sqrt(fan) (He et al., 2015).
---@return perigee.Tensor
function init.kaiming_normal_(...)
  local t, std = read_kaiming_normal(...)
  return normal(t, 0, std)
end

-- Rows [n, m] that are orthonormal, n <= m: Gram and Schmidt's of normal numbers, each row twice for its accuracy.
local function orthonormal(pg, n, m)
  local rows = pg.randn({ n, m }, { dtype = "float64" })
  for i = 1, n do
    local v, before = rows:narrow(1, i, 1), i > 1 and rows:narrow(1, 1, i - 1)
    for _ = 1, before and 2 or 0 do v:sub_(v:matmul(before:t()):matmul(before)) end
    v:div_(v:square():sum():sqrt())
  end
  return rows
end

local read_orthogonal = reader("orthogonal_", GAIN)
---Makes t, its axes from the second on taken as one, a matrix of orthonormal rows, or columns where it has more rows,
---times gain (Saxe et al., 2013).
---@return perigee.Tensor
function init.orthogonal_(...)
  local o, pg = read_orthogonal(...), require "perigee"
  local t, shape = o.t, o.t.shape
  fans("nn.init.orthogonal_", t)
  if t:numel() == 0 then return t end
  return pg.no_grad(pg.scope, function()
    local n, m = shape[1], t:numel() / shape[1]
    local q = n <= m and orthonormal(pg, n, m) or orthonormal(pg, m, n):t()
    t:copy_((q * o.gain):reshape(shape):to(t.dtype):to(t.device))
    return t
  end)
end

local read_eye = reader "eye_"
---Makes the matrix t the identity: ones on the diagonal, zeros elsewhere.
---@return perigee.Tensor
function init.eye_(...)
  local t, pg = read_eye(...).t, require "perigee"
  if t:dim() ~= 2 then refuse("nn.init.eye_", "needs a matrix, got " .. tostring(t.shape)) end
  return pg.no_grad(function() return t:copy_(pg.eye(t:size(1), t:size(2)):to(t.dtype):to(t.device)) end)
end

local read_dirac = reader("dirac_", { "groups", "integer", default = 1, doc = "of the convolution" })
---Makes t [out, in, ...], a convolution's weight, one that passes its input on, as many channels as there are.
---@return perigee.Tensor
function init.dirac_(...)
  local o, pg = read_dirac(...), require "perigee"
  local shape, groups = o.t.shape, o.groups
  if #shape < 3 or #shape > 5 then
    refuse("nn.init.dirac_", "needs a tensor of three to five axes, got " .. tostring(o.t.shape))
  end
  if groups < 1 or shape[1] % groups ~= 0 then
    refuse("nn.init.dirac_", ("%d output channels do not make %d groups"):format(shape[1], groups))
  end
  local each = shape[1] / groups
  return pg.no_grad(function()
    o.t:zero_()
    for i = 0, shape[1] - 1 do
      local at = { i + 1, i % each + 1 }
      for axis = 3, #shape do at[axis] = math.floor(shape[axis] / 2) + 1 end
      if at[2] <= shape[2] then o.t[at] = 1 end
    end
    return o.t
  end)
end

local read_sparse = reader("sparse_", { "sparsity", "number", required = true, doc = "part of each column that is 0" },
                           { "std", "number", default = 0.01, doc = "standard deviation of the others" })
---Fills the matrix t with normal random numbers of mean 0, a part of each column with zeros (Martens, 2010).
---@return perigee.Tensor
function init.sparse_(...)
  local o, pg = read_sparse(...), require "perigee"
  if o.t:dim() ~= 2 then refuse("nn.init.sparse_", "needs a matrix, got " .. tostring(o.t.shape)) end
  if o.sparsity < 0 or o.sparsity > 1 then
    refuse("nn.init.sparse_", ("sparsity must lie in [0, 1], got %g"):format(o.sparsity))
  end
  normal(o.t, 0, o.std)
  local zeros = math.ceil(o.sparsity * o.t:size(1))
  return pg.no_grad(function()
    -- The places of each column's numbers among the others are a random order.
    local order = pg.rand(o.t.shape):argsort(1):argsort(1)
    return o.t:masked_fill_(order:lt(zeros):to(o.t.device), 0)
  end)
end

return initialise
