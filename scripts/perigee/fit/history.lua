-- SPDX-License-Identifier: Apache-2.0
-- What a training gave: a list with an entry an epoch, { epoch, loss, val_loss, seconds, a field a metric }.

---@class perigee.History
---@field [integer] {epoch: integer, loss: number, val_loss: number?, seconds: number, [string]: number}
local History = {}
History.__index = History
History.__perigee_history = true -- what pg.plot knows it by

local function columns(self)
  local seen, names = {}, {}
  for _, entry in ipairs(self) do
    for name in pairs(entry) do
      if not seen[name] and name ~= "epoch" and name ~= "seconds" then
        seen[name] = true
        names[#names + 1] = name
      end
    end
  end
  table.sort(names)
  return names
end

---One line an epoch.
function History.__tostring(self)
  local names = columns(self)
  local lines = { "epoch" }
  for _, name in ipairs(names) do lines[1] = lines[1] .. ("  %12s"):format(name) end
  for i, entry in ipairs(self) do
    local line = ("%5d"):format(entry.epoch)
    for _, name in ipairs(names) do
      local v = entry[name]
      line = line .. "  " .. (type(v) == "number" and ("%12.6g"):format(v) or ("%12s"):format(v == nil and "-" or
                                                                                            tostring(v)))
    end
    lines[i + 1] = line
  end
  return table.concat(lines, "\n")
end

return function() return setmetatable({}, History) end
