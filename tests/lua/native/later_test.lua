-- SPDX-License-Identifier: Apache-2.0
-- Modules of the native layer that are loaded when a name of theirs is asked for: native/init.lua has the names.

local native = require "perigee.native"

-- What only this layer itself uses.
local inner = { start = true, array = true, go_on = true }

test("native gives all that modules which are loaded later have", function(t)
  local missing = {}
  for _, module in ipairs { "gradients", "layers", "files", "precision", "prepared", "update_plan", "layer_call" } do
    for name, value in pairs(require("perigee.native." .. module)) do
      if not inner[name] and not rawequal(native[name], value) then missing[#missing + 1] = module .. "." .. name end
    end
  end
  t.equal(missing, {})
end)

test("modules that stand in native as they are, and names that nothing has", function(t)
  for _, module in ipairs { "host", "custom", "graphs", "json" } do
    t.ok(rawequal(native[module], require("perigee.native." .. module)), module)
  end
  for _, name in ipairs { "no_such_name", "rea", "", "read write" } do t.equal(native[name], nil) end
  t.equal(native[1], nil)
end)
