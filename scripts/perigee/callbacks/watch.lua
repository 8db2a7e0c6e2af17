-- SPDX-License-Identifier: Apache-2.0
-- Values that callbacks watch: which way is better, and where to find them.

local native = require "perigee.native"

-- The option of callbacks that says which way is better.
local watch = { MODE = { "mode", "string", named = true, choices = { "min", "max" },
                         doc = "whether less (min) or more (max) is better; by the value's name if not given" } }

-- What ends in these is better when it is larger.
local larger = { "accuracy", "acc", "auc", "f1", "precision", "recall", "r2" }

---"min" or "max": as given, or by the value's name.
function watch.mode(mode, name)
  if mode then return mode end
  for _, ending in ipairs(larger) do
    if name and name:sub(-#ending) == ending then return "max" end
  end
  return "min"
end

---The value of an epoch's entry.
function watch.value(where, entry, name)
  local value = entry[name]
  if type(value) == "number" then return value end
  local names = {}
  for key, v in pairs(entry) do
    if type(v) == "number" and key ~= "epoch" and key ~= "seconds" then names[#names + 1] = key end
  end
  table.sort(names)
  native.raise("invalid_argument", where, ("there is no %q to monitor; there are %s"):format(name,
               table.concat(names, ", ")), name:find("^val_") and "fit needs validation=" or nil)
end

---Whether a value is better than another by more than `delta`. NaN never is.
function watch.better(mode, value, best, delta)
  if value ~= value then return false end
  if best == nil then return true end
  if mode == "min" then return value < best - (delta or 0) end
  return value > best + (delta or 0)
end

return watch
