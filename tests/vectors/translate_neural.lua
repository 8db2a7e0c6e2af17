-- SPDX-License-Identifier: Apache-2.0
-- Functions of torch.nn.functional other than losses.

local pg = require "perigee"
local axes = require "vectors.axes"

local rows = {}

local function row(name, params, call, outputs)
  rows["nn.functional." .. name] = { needs = name, params = params, call = call, outputs = outputs }
end

-- PyTorch takes one image without a batch; Perigee wants the batch axis.
local function batched(x, rank, f)
  if x:dim() == rank then return f(x) end
  return f(x:unsqueeze(1)):squeeze(1)
end

local function pair(v) return type(v) == "table" and (v[2] and v or { v[1], v[1] }) or { v, v } end

-- "valid" is no padding; "same" keeps the size, with the odd one behind.
local function pad_as_named(x, a)
  if a.padding == "valid" then return x, 0 end
  if a.padding ~= "same" then return x, a.padding end
  local dilation, widths = pair(a.dilation or 1), {}
  for i = 2, 1, -1 do
    local all = dilation[i] * (a.weight.shape[2 + i] - 1)
    widths[#widths + 1], widths[#widths + 2] = math.floor(all / 2), math.ceil(all / 2)
  end
  return x:pad(widths), 0
end

row("conv2d", { "weight", "bias", "stride", "padding", "dilation", "groups" }, function(x, a)
  return batched(x, 4, function(image)
    local y, padding = pad_as_named(image, a)
    return pg.conv2d(y, a.weight, a.bias, { stride = a.stride and pair(a.stride), padding = padding,
                                            dilation = a.dilation, groups = a.groups })
  end)
end)

-- The positions of the maxima stay inside: the gradient shows whether they are right.
row("max_pool2d", { "kernel_size", "stride", "padding", "dilation", "ceil_mode", "return_indices" }, function(x, a)
  return batched(x, 4, function(y)
    return pg.max_pool2d(y, { kernel = pair(a.kernel_size), stride = a.stride and pair(a.stride),
                              padding = a.padding and pair(a.padding), dilation = a.dilation and pair(a.dilation),
                              ceil_mode = a.ceil_mode })
  end)
end, 1)

row("avg_pool2d", { "kernel_size", "stride", "padding", "ceil_mode", "count_include_pad", "divisor_override" },
  function(x, a)
    if a.divisor_override then axes.lacks("avg_pool2d with a divisor of one's own") end
    return batched(x, 4, function(y)
      return pg.avg_pool2d(y, { kernel = pair(a.kernel_size), stride = a.stride and pair(a.stride),
                                padding = a.padding and pair(a.padding), ceil_mode = a.ceil_mode,
                                count_include_pad = a.count_include_pad })
    end)
  end)

row("batch_norm", { "running_mean", "running_var", "weight", "bias", "training", "momentum", "eps" }, function(x, a)
  if x:dim() < 2 then axes.lacks("batch_norm of less than two axes") end
  return pg.batch_norm { x, weight = a.weight, bias = a.bias, running_mean = a.running_mean,
                         running_var = a.running_var, training = a.training or false, momentum = a.momentum,
                         eps = a.eps }
end)

row("layer_norm", { "normalized_shape", "weight", "bias", "eps" }, function(x, a)
  return pg.layer_norm { x, weight = a.weight, bias = a.bias, dims = #a.normalized_shape, eps = a.eps }
end)

-- The samples put the weights first.
row("embedding", { "index", "padding_idx", "max_norm", "norm_type", "scale_grad_by_freq", "sparse" }, function(w, a)
  if a.max_norm or a.scale_grad_by_freq then error("max_norm and scale_grad_by_freq have no translation", 0) end
  local padding = a.padding_idx
  if padding and padding < 0 then padding = w.shape[1] + padding end
  return pg.embedding(w, a.index, { padding_idx = padding })
end)

row("linear", { "weight", "bias" }, function(x, a) return pg.linear(x, a.weight, a.bias) end)

row("dropout", { "p", "training" }, function(x, a) return pg.dropout(x, { p = a.p, training = a.training }) end)

row("elu", { "alpha" }, function(x, a) return x:elu { alpha = a.alpha } end)
row("gelu", { "approximate" }, function(x, a) return x:gelu { approximate = a.approximate } end)
row("leaky_relu", { "negative_slope" }, function(x, a) return x:leaky_relu { negative_slope = a.negative_slope } end)

-- PyTorch's is softplus(beta x) / beta, and x itself where beta x > threshold.
row("softplus", { "beta", "threshold" }, function(x, a)
  local beta, threshold = a.beta or 1, a.threshold or 20
  local scaled = x * beta
  return pg.where(scaled:gt(threshold), x, scaled:softplus() / beta)
end)

return rows
