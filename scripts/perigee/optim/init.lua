-- SPDX-License-Identifier: Apache-2.0
-- perigee.optim: optimizers. optim.NAME is made from a plugin's optimizer at first use.

local native = require "perigee.native"
local Optimizer = require "perigee.optim.optimizer"

local average = require "perigee.optim.average"

---@class perigee.optim
---@field sched perigee.optim.sched
local optim = { sched = require "perigee.optim.sched", EMA = average.EMA, SWA = average.SWA }
for name, value in pairs(require "perigee.optim.clip") do optim[name] = value end

---Whether v is an optimizer.
---@param v any anything
---@return boolean
function optim.is_optimizer(v) return getmetatable(v) == Optimizer end

local function unknown(name)
  require("perigee.names.package").refuse(optim, "optim", name, "optim", native.optimizer_names(),
                                          native.unavailable "optimizers")
end

for name, construct in pairs(require "perigee.optim.large") do optim[name] = construct end
optim.LBFGS = require("perigee.optim.lbfgs").LBFGS

setmetatable(optim, { __index = function(_, name)
  if type(name) ~= "string" then return nil end
  if not native.optimizer(name) then unknown(name) end
  local function construct(...) return Optimizer.new(name, ...) end
  rawset(optim, name, construct)
  return construct
end })

return optim
