-- SPDX-License-Identifier: Apache-2.0
-- Functions of networks that are more than one operator: attention, convolutions and pooling, images.

return function(pg, native)
  for _, file in ipairs { "functions", "bags", "windows", "resampling" } do
    require("perigee.neural." .. file)(pg, native)
  end
end
