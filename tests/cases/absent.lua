-- SPDX-License-Identifier: Apache-2.0
-- Operators without a kernel (and without a decomposition that a kernel serves), by type of device: holes that are
-- known. Their cases are skipped on such a device, and coverage_test.lua fails where a hole has been filled and still
-- stands here.

local absent = {
  cuda = { "adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d", "adaptive_avg_pool3d", "avg_pool3d",
           "avg_pool3d_grad", "conv3d", "conv3d_activation", "conv3d_grad", "conv3d_grad_input", "conv3d_grad_weight",
           "conv_transpose3d", "max_pool3d", "max_pool3d_gather", "max_pool3d_grad",
           "ctc_loss", "ctc_loss_grad",
           "median", "nanmedian", "mode", "unique_rows", "multinomial",
  },
}

for device, names in pairs(absent) do
  local set = {}
  for _, name in ipairs(names) do set[name] = true end
  absent[device] = set
end

return absent
