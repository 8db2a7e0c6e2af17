-- SPDX-License-Identifier: Apache-2.0
-- perigee.callbacks: what fit calls while it trains.

local callbacks = {}
for _, name in ipairs { "checkpoint", "stopping", "rates", "records" } do
  for key, value in pairs(require("perigee.callbacks." .. name)) do callbacks[key] = value end
end
return callbacks
