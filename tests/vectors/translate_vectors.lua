-- SPDX-License-Identifier: Apache-2.0
-- Functions of torch.nn.functional about vectors and their lengths, groups of channels, bags of embeddings.

local pg = require "perigee"
local axes = require "vectors.axes"

local rows = {}

local function row(name, params, call)
  rows["nn.functional." .. name] = { needs = name, params = params, call = call }
end

row("normalize", { "p", "dim", "eps" }, function(x, a)
  return x:normalize { p = a.p, axis = axes.axis(a.dim), eps = a.eps }
end)
row("cosine_similarity", { "other", "dim", "eps" }, function(x, a)
  return x:cosine_similarity(a.other, { axis = axes.axis(a.dim), eps = a.eps })
end)
row("pairwise_distance", { "other", "p", "eps", "keepdim" }, function(x, a)
  return x:pairwise_distance(a.other, { p = a.p, eps = a.eps, keepdim = a.keepdim })
end)
row("bilinear", { "other", "weight", "bias" }, function(x, a) return x:bilinear(a.other, a.weight, a.bias) end)

row("group_norm", { "num_groups", "weight", "bias", "eps" }, function(x, a)
  return x:group_norm { a.num_groups, weight = a.weight, bias = a.bias, eps = a.eps }
end)
row("instance_norm", { "running_mean", "running_var", "weight", "bias", "use_input_stats", "momentum", "eps" },
    function(x, a)
  return x:instance_norm { running_mean = a.running_mean, running_var = a.running_var, weight = a.weight,
                           bias = a.bias, use_input_stats = a.use_input_stats, momentum = a.momentum, eps = a.eps }
end)

-- The samples put the weights first, as Perigee does.
row("embedding_bag", { "index", "offsets", "max_norm", "norm_type", "scale_grad_by_freq", "mode", "sparse",
                       "per_sample_weights", "include_last_offset", "padding_idx" }, function(w, a)
  if a.max_norm or a.scale_grad_by_freq then axes.lacks("embedding_bag with max_norm or scale_grad_by_freq") end
  local padding = a.padding_idx
  if padding and padding < 0 then padding = w.shape[1] + padding end
  return pg.embedding_bag(w, a.index, { offsets = a.offsets, mode = a.mode, padding_idx = padding,
                                        per_sample_weights = a.per_sample_weights,
                                        include_last_offset = a.include_last_offset })
end)

return rows
