-- SPDX-License-Identifier: Apache-2.0
-- Layers as text: print(model).

local walk = require "perigee.nn.walk"

local show = {}
local META = walk.META

local function indent(text) return (text:gsub("\n", "\n  ")) end

---"Sequential(\n  (1): Linear(inputs=3, out=4)\n)": positions from 1, as in model[1].
function show.tree(layer)
  local class = getmetatable(layer)
  local name = class.__name
  if not rawget(layer, META) then return name end
  local lines = {}
  for _, entry in ipairs(walk.entries(layer)) do
    if entry.kind == "layer" then
      local label = tostring(entry.key)
      if entry.position then label = ("%s[%d]"):format(label, entry.position) end
      lines[#lines + 1] = ("  (%s): %s"):format(label, indent(show.tree(entry.value)))
    end
  end
  local own = class.describe and layer:describe() or ""
  if #lines == 0 then return ("%s(%s)"):format(name, own) end
  return ("%s(%s\n%s\n)"):format(name, own, table.concat(lines, "\n"))
end

return show
