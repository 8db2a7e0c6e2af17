-- SPDX-License-Identifier: Apache-2.0
-- Learning-rate schedules: a factor on each group's first rate, as a function of how many steps are done. :step() after
-- each epoch, or each batch: whatever the numbers count.

local native = require "perigee.native"

local Schedule = {}
Schedule.__index = Schedule

local function apply(self)
  for i, group in ipairs(self.optimizer.groups) do group.lr = self.base[i] * self.factor(self.done, self.options) end
end

---Counts one more step and sets the rates that follow.
function Schedule:step()
  self.done = self.done + 1
  apply(self)
end

function Schedule:state() return { done = self.done, base = { unpack(self.base) } } end

function Schedule:load_state(saved)
  self.done, self.base = saved.done, { unpack(saved.base) }
  apply(self)
  return self
end

-- name -> { parameters of the call grammar behind the optimizer, factor(done, options) }
local kinds = {
  Step = { { { "every", "integer", required = true }, { "gamma", "number", default = 0.1 } },
    function(done, o) return o.gamma ^ math.floor(done / o.every) end },
  MultiStep = { { { "milestones", "list", required = true }, { "gamma", "number", default = 0.1 } },
    function(done, o)
      local passed = 0
      for _, milestone in ipairs(o.milestones) do
        if done >= milestone then passed = passed + 1 end
      end
      return o.gamma ^ passed
    end },
  Exponential = { { { "gamma", "number", required = true } }, function(done, o) return o.gamma ^ done end },
  Polynomial = { { { "total", "integer", required = true }, { "power", "number", default = 1 } },
    function(done, o) return (1 - math.min(done, o.total) / o.total) ^ o.power end },
  Cosine = { { { "total", "integer", required = true }, { "minimum", "number", default = 0 } },
    function(done, o)
      local part = math.min(done, o.total) / o.total
      return o.minimum + (1 - o.minimum) * (1 + math.cos(math.pi * part)) / 2
    end },
}

local sched = {}
for name, kind in pairs(kinds) do
  local params = { { "optimizer", "any", required = true } }
  for _, param in ipairs(kind[1]) do params[#params + 1] = param end
  local read
  ---`optim.sched.Cosine{optimizer, total=100}`
  sched[name] = function(...)
    read = read or native.signature("optim.sched." .. name, params)
    local o = read(...)
    local optimizer = o.optimizer
    if type(optimizer) ~= "table" or type(optimizer.groups) ~= "table" or #optimizer.groups == 0 then
      native.raise("invalid_argument", "optim.sched." .. name, "the first argument must be a bound optimizer")
    end
    local base = {}
    for i, group in ipairs(optimizer.groups) do base[i] = group.lr end
    local self = setmetatable({ optimizer = optimizer, options = o, factor = kind[2], done = 0, base = base }, Schedule)
    apply(self)
    return self
  end
end

return sched
