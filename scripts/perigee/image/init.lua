-- SPDX-License-Identifier: Apache-2.0
-- pg.image: pictures as tensors, from and to files.

---@class perigee.image
local image = {}
for _, file in ipairs { "files", "geometry", "colour", "random", "batch", "show" } do
  for name, value in pairs(require("perigee.image." .. file)) do image[name] = value end
end

return image
