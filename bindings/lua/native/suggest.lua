-- SPDX-License-Identifier: Apache-2.0
-- The nearest of some names to a misspelt one.

-- Edit distance with transpositions (Damerau, restricted).
local function distance(a, b)
  local before, last = {}, {}
  for j = 0, #b do last[j] = j end
  for i = 1, #a do
    local row = { [0] = i }
    for j = 1, #b do
      local cost = a:byte(i) == b:byte(j) and 0 or 1
      local best = math.min(last[j] + 1, row[j - 1] + 1, last[j - 1] + cost)
      if i > 1 and j > 1 and a:byte(i) == b:byte(j - 1) and a:byte(i - 1) == b:byte(j) then
        best = math.min(best, before[j - 2] + 1)
      end
      row[j] = best
    end
    before, last = last, row
  end
  return last[#b]
end

local LONGEST = 100 -- letters of a name that was meant to be one

---The nearest candidate, or nil when none is near.
---@param name string
---@param candidates string[]
---@return string?
local function suggest(name, candidates)
  local best, best_distance
  if #name > LONGEST then return nil end
  for _, candidate in ipairs(candidates) do
    local d = #candidate > LONGEST and math.huge or distance(name:lower(), candidate:lower())
    -- Of equally near ones that which begins alike: "rlu" is relu, not elu.
    local alike = candidate:sub(1, 1):lower() == name:sub(1, 1):lower() and 0 or 0.5
    if not best or d + alike < best_distance or (d + alike == best_distance and candidate < best) then
      best, best_distance = candidate, d + alike
    end
  end
  if best and math.floor(best_distance) <= math.max(1, math.floor(#name / 3)) then return best end
end

-- What a name from elsewhere is called here. Set by the front end: hint(kind, name), option(name, names).
local foreign = {}

return setmetatable({ foreign = foreign }, { __call = function(_, ...) return suggest(...) end })
