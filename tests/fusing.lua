-- SPDX-License-Identifier: Apache-2.0
-- Whether the device in force has a compiler that joins operators into kernels. On one without, compiled functions
-- compute the same, and tests leave out what they say of the kernels. A second answer: whether all operators on lines
-- are joined too, as on the processor alone.

local pg = require "perigee"

return function()
  local kind = pg.device():match "^%a+"
  for _, plugin in ipairs(pg.plugins()) do
    if plugin.name:find("^" .. kind) and plugin.kinds:find "compiler" then return true, kind == "cpu" end
  end
  return false, false
end
