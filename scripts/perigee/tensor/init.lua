-- SPDX-License-Identifier: Apache-2.0
-- Tensors: making, drawing, taking parts, arranging, comparing, reducing.

local files = { "creation", "plain_creation", "random", "views", "parts", "indexing", "plain_keys", "scatter",
                "compare", "compose", "arrange", "order", "reductions", "pad" }

return function(pg, native)
  for _, file in ipairs(files) do require("perigee.tensor." .. file)(pg, native) end
end
