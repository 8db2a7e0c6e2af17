-- SPDX-License-Identifier: Apache-2.0
-- Losses: torch.nn.functional.* and pg.nn.*. Their options have PyTorch's names.

local pg = require "perigee"

local rows = {}

-- Loss `name` of PyTorch is pg.nn[ours]; `options` are PyTorch's arguments after the target.
-- `tensors`: the names of the tensors after the first, if there are more than the target.
local function row(name, ours, options, tensors)
  tensors = tensors or { "target" }
  local params = { unpack(tensors) }
  for _, option in ipairs(options) do params[#params + 1] = option end
  rows["nn.functional." .. name] = { needs = "nn." .. ours, params = params, call = function(x, a)
    local given, others = {}, {}
    for _, option in ipairs(options) do
      if option ~= "size_average" and option ~= "reduce" then given[option] = a[option] end
    end
    for i, tensor in ipairs(tensors) do others[i] = a[tensor] end
    others[#others + 1] = given
    return pg.nn[ours](x, unpack(others))
  end }
end

row("binary_cross_entropy", "bce", { "weight", "size_average", "reduce", "reduction" })
row("binary_cross_entropy_with_logits", "bce_with_logits",
    { "weight", "size_average", "reduce", "reduction", "pos_weight" })
row("cross_entropy", "cross_entropy",
    { "weight", "size_average", "ignore_index", "reduce", "reduction", "label_smoothing" })
row("huber_loss", "huber", { "reduction", "delta" })
row("kl_div", "kl_div", { "size_average", "reduce", "reduction", "log_target" })
row("l1_loss", "l1", { "size_average", "reduce", "reduction" })
row("mse_loss", "mse", { "size_average", "reduce", "reduction" })
row("nll_loss", "nll", { "weight", "size_average", "ignore_index", "reduce", "reduction" })
row("smooth_l1_loss", "smooth_l1", { "size_average", "reduce", "reduction", "beta" })
row("poisson_nll_loss", "poisson_nll",
    { "log_input", "full", "size_average", "eps", "reduce", "reduction" })
row("gaussian_nll_loss", "gaussian_nll", { "full", "eps", "reduction" }, { "target", "var" })
row("hinge_embedding_loss", "hinge_embedding", { "margin", "size_average", "reduce", "reduction" })
row("soft_margin_loss", "soft_margin", { "size_average", "reduce", "reduction" })
row("cosine_embedding_loss", "cosine_embedding", { "margin", "size_average", "reduce", "reduction" },
    { "input2", "target" })
row("margin_ranking_loss", "margin_ranking", { "margin", "size_average", "reduce", "reduction" },
    { "input2", "target" })
row("triplet_margin_loss", "triplet_margin",
    { "margin", "p", "eps", "swap", "size_average", "reduce", "reduction" }, { "positive", "negative" })
row("ctc_loss", "ctc", { "blank", "reduction", "zero_infinity" }, { "targets", "input_lengths", "target_lengths" })

return rows
