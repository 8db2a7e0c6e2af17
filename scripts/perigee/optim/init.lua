-- SPDX-License-Identifier: Apache-2.0
-- perigee.optim: optimizers. optim.NAME is made from a plugin's optimizer at first use.

local native = require "perigee.native"
local Optimizer = require "perigee.optim.optimizer"

local optim = {
  clip_grad_norm_ = require("perigee.optim.clip").clip_grad_norm_,
  clip_grad_value_ = require("perigee.optim.clip").clip_grad_value_,
  sched = require "perigee.optim.sched",
  EMA = require("perigee.optim.average").EMA,
  SWA = require("perigee.optim.average").SWA,
}

function optim.is_optimizer(v) return getmetatable(v) == Optimizer end

local function unknown(name)
  local names = native.optimizer_names()
  for known in pairs(optim) do names[#names + 1] = known end
  local near = native.suggest(name, names)
  native.raise("not_found", nil, ("optim has no %q"):format(name), near and ("did you mean optim.%s?"):format(near))
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
