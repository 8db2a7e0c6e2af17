-- SPDX-License-Identifier: Apache-2.0
-- An entry as it is called: "softmax(x, axis=-1)". Names behind a colon have their first argument in front of it.

local reference = require "perigee.reference"

---@param entry perigee.Entry
---@return string
return function(entry)
  local parts = {}
  for i, input in ipairs(entry.kind == "operator" and entry.inputs or {}) do
    parts[i] = input.optional and "[" .. input.name .. "]" or input.name
  end
  for _, p in ipairs(entry.parameters) do
    local text = p.name
    if p.default ~= nil and not p.required then text = text .. "=" .. reference.literal(p.default) end
    parts[#parts + 1] = (p.required or p.default ~= nil) and text or "[" .. text .. "]"
  end
  local open, close = "(", ")"
  if entry.kind == "layer" or entry.kind == "optimizer" then open, close = "{", "}" end
  return entry.name .. open .. table.concat(parts, ", ") .. close
end
