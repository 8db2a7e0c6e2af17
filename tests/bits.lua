-- SPDX-License-Identifier: Apache-2.0
-- Values as texts that are the same where their bits are, but for which NaN it is: tensors with dtype, shape and
-- numbers, lists of values.

local pg = require "perigee"

local function number_text(x) return x ~= x and "nan" or ("%.17g"):format(tonumber(x)) end
local function text(v)
  if type(v) == "table" and not pg.is_tensor(v) then
    local parts = {}
    for i, x in ipairs(v) do parts[i] = text(x) end
    return "{" .. table.concat(parts, "; ") .. "}"
  elseif not pg.is_tensor(v) then
    return type(v) == "number" and number_text(v) or tostring(v)
  end
  local parts = { v.dtype, table.concat(v.shape, "x") }
  for _, x in ipairs(v:reshape { -1 }:totable()) do
    parts[#parts + 1] = type(x) == "boolean" and tostring(x) or number_text(x)
  end
  return table.concat(parts, " ")
end

return text
