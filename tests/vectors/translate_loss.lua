-- SPDX-License-Identifier: Apache-2.0
-- Losses: torch.nn.functional.* and pg.nn.*. Their options have PyTorch's names.

local pg = require "perigee"

local rows = {}

-- Loss `name` of PyTorch is pg.nn[ours]; `options` are PyTorch's arguments after the target.
local function row(name, ours, options)
  local params = { "target" }
  for i, option in ipairs(options) do params[i + 1] = option end
  rows["nn.functional." .. name] = { needs = "nn." .. ours, params = params, call = function(x, a)
    local given = {}
    for _, option in ipairs(options) do
      if option ~= "size_average" and option ~= "reduce" then given[option] = a[option] end
    end
    return pg.nn[ours](x, a.target, given)
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

return rows
