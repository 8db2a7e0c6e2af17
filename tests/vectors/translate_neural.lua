-- SPDX-License-Identifier: Apache-2.0
-- Functions of torch.nn.functional other than losses.

local pg = require "perigee"
local axes = require "vectors.axes"

local rows = {}

local function row(name, params, call, outputs)
  rows["nn.functional." .. name] = { needs = name, params = params, call = call, outputs = outputs }
end

row("batch_norm", { "running_mean", "running_var", "weight", "bias", "training", "momentum", "eps" }, function(x, a)
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

-- Functions of x and a few numbers, which have PyTorch's names.
for name, params in pairs {
  elu = { "alpha" }, celu = { "alpha" }, gelu = { "approximate" }, leaky_relu = { "negative_slope" },
  softplus = { "beta", "threshold" }, hardshrink = { "lambd" }, softshrink = { "lambd" },
  hardtanh = { "min_val", "max_val" }, threshold = { "threshold", "value" }, hardswish = {}, mish = {},
  logsigmoid = {}, tanhshrink = {}, relu6 = {}, selu = {}, hardsigmoid = {}, softsign = {},
} do
  row(name, params, function(x, a)
    local options = {}
    for _, param in ipairs(params) do options[param] = a[param] end
    return x[name](x, options)
  end)
end

row("glu", { "dim" }, function(x, a) return x:glu(axes.axis(a.dim or -1)) end)
row("prelu", { "weight" }, function(x, a) return x:prelu(a.weight) end)

return rows
