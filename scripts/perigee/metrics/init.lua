-- SPDX-License-Identifier: Apache-2.0
-- perigee.metrics: how good a model's outputs are, over many batches.

---@class perigee.metrics
local metrics = {}
for _, part in ipairs { "means", "counts" } do
  for name, constructor in pairs(require("perigee.metrics." .. part)) do metrics[name] = constructor end
end
return metrics
