-- SPDX-License-Identifier: Apache-2.0
-- Modules of this layer that are loaded after the others, whatever a script has done to package.loaded by then.

local M = {}

local own = {} -- the modules at work, by name
local lent = setmetatable({}, { __mode = "v" })

---Remembers what has been loaded.
function M.keep()
  for name, module in pairs(package.loaded) do
    if name:find "^perigee%.native%." then own[name] = module end
  end
end

---Whoever requires a module of this layer gets the one that is at work.
function M.put_back()
  for name, module in pairs(own) do package.loaded[name] = module end
end

---The module at work, if it has been loaded.
function M.at_work(name) return own["perigee.native." .. name] end

---A module that is loaded if it is not at work yet.
function M.get(name)
  M.put_back()
  local module = require("perigee.native." .. name)
  M.keep()
  return module
end

---A module that works at the first use of an operator and then rests: nobody keeps it, so that a collector cycle takes
---it along instead of walking through it, and it is loaded again when it is needed again.
function M.lend(name)
  local module = lent[name]
  if not module then
    local full = "perigee.native." .. name
    M.put_back()
    module = require(full)
    package.loaded[full] = nil
    lent[name] = module
  end
  return module
end

---The value of a JSON text: native/json.lua.
function M.json(...) return M.lend "json"(...) end

return M
