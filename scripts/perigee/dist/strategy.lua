-- SPDX-License-Identifier: Apache-2.0
-- Data parallelism: every process holds the whole model and computes a part of each batch; gradients are summed before
-- a step, so that all take the same one.

local native = require "perigee.native"
local gradients = require "perigee.dist.gradients"
local shares = require "perigee.dist.shares"
local trees = require "perigee.dist.trees"

---How a training is spread. `num_replicas_in_sync` is how many compute at once, `rank` which one this process is.
---@class perigee.Strategy
---@field num_replicas_in_sync integer
---@field rank integer
local Strategy = { __name = "perigee.Strategy" }

local function pg() return require "perigee" end

-- Of a strategy in scope or at work, which none may be inside of.
local active

local function enter(self, where, fn, ...)
  native.checked.need_function(where, fn)
  if active then
    native.raise("failed_precondition", where, active == self and "is called inside of " .. self._inside or
                   "a strategy is at work already: one inside of another makes no sense")
  end
  local function begin()
    active, self._inside = self, where
  end
  local function back() active = nil end
  return native.with(begin, back, fn, ...)
end

-- From here on every process draws numbers of its own, from another part of the one sequence that all of them share.
local PART = 2 ^ 40
local function part_draws(self)
  if self._parted or self.num_replicas_in_sync == 1 then return end
  self._parted = true
  local seed, offset = native.rng_state()
  native.set_rng_state(seed, offset % PART + self.rank * PART)
end

-- Rank 0's random state on all.
local function share_draws()
  local seed, offset = native.rng_state()
  local text = ("%s %.0f"):format(seed, offset)
  local bytes = { text:byte(1, -1) }
  for i = #bytes + 1, 64 do bytes[i] = 32 end
  local got = pg().dist.broadcast(pg().tensor(bytes, { dtype = "uint8" })):totable()
  local state = string.char(unpack(got))
  native.set_rng_state(state:match "^%d+", tonumber(state:match " (%d+)"))
end

---Runs fn(...), which makes the model and its optimizer: with the same random numbers on all processes, so that all
---begin with the same parameters. Behind it each draws its own, for dropout.
---@param fn function
---@param ... any
---@return any ... what fn returns
function Strategy:scope(fn, ...)
  if active == nil and self.num_replicas_in_sync > 1 and not self._parted then share_draws() end
  local function finish(...)
    part_draws(self)
    return ...
  end
  return finish(enter(self, "strategy:scope", fn, ...))
end

-- The optimizer's parameters, in their order.
local function params_of(optimizer)
  local list = {}
  for _, group in ipairs(optimizer.groups) do
    for _, p in ipairs(group.params) do list[#list + 1] = p end
  end
  return list
end

local function reduce(self, optimizer)
  local params = params_of(optimizer)
  if not self._known[optimizer] then
    gradients.check_parameters("strategy", params)
    self._known[optimizer] = true
  end
  gradients.sum(params, self._weight or 1 / self.num_replicas_in_sync)
  self._reduced[optimizer] = true
end

---Sums the gradients of an optimizer's parameters over all replicas now, inside of strategy:run: before they are
---clipped or looked at. Each counts by its part of the batch. step() of the optimizer does it where it was not done.
---@param optimizer perigee.Optimizer
function Strategy:reduce_gradients(optimizer)
  if active ~= self or self._inside ~= "strategy:run" then
    native.raise("failed_precondition", "strategy:reduce_gradients", "is for functions that strategy:run calls")
  end
  if not self._reduced[optimizer] then reduce(self, optimizer) end
end

---Calls fn(...), a step of a training, on every replica with its part of a batch (strategy:distribute). An optimizer's
---step in it uses the gradients of all replicas: the mean over all samples of the batch, whose parts may differ in
---size.
---@param fn function
---@param ... any a batch of strategy:distribute, and what fn needs besides
---@return any ... what fn returns on this replica
function Strategy:run(fn, ...)
  native.checked.need_function("strategy:run", fn)
  part_draws(self)
  self._weight = shares.weight(...)
  local function begin() native.strategy = self._work end
  local function back()
    native.strategy = nil
    for optimizer in pairs(self._reduced) do self._reduced[optimizer] = nil end
  end
  return enter(self, "strategy:run", function(...) return native.with(begin, back, fn, ...) end, ...)
end

---The sum ("mean", "max", "min") of a number or a tensor over all replicas.
---@param op string
---@param value number|perigee.Tensor
---@return any reduced a number of a number, a tensor of a tensor
function Strategy:reduce(op, value)
  if type(value) == "number" then
    return pg().dist.all_reduce(pg().tensor(value, { dtype = "float64" }), { op = op }):item()
  end
  if not native.is_tensor(value) then
    native.raise("invalid_argument", "strategy:reduce", "needs a number or a tensor, got " .. native.describe(value))
  end
  return pg().dist.all_reduce(value:detach(), { op = op })
end

---Each batch's part for this replica: rows behind each other, as equal as they can be. The batch size is that of all
---replicas together. Every process goes through the whole data set, in the same order, and keeps its parts.
---@param dataset perigee.Dataset of batches
---@return perigee.Dataset
function Strategy:distribute(dataset)
  if type(dataset) ~= "userdata" or not dataset.batched then
    native.raise("invalid_argument", "strategy:distribute", "needs a dataset of batches, got " ..
                 native.describe(dataset), "ds:batch(n), where n counts the samples of all replicas")
  end
  return dataset:map(function(batch)
    return shares.cut("strategy:distribute", batch, self.rank, self.num_replicas_in_sync)
  end)
end

function Strategy:__tostring() return ("strategy(rank %d of %d)"):format(self.rank, self.num_replicas_in_sync) end

local function buffers_of(model)
  local list = {}
  for _, t in model:named_buffers() do list[#list + 1] = t end
  return list
end

-- What fit does of it (fit/replicas.lua).
Strategy._fit = {
  begin = function(self, model, params, batches)
    gradients.check_models("fit", params)
    local all = gradients.exchange { batches }
    for i = 2, #all do
      if all[i][1] ~= all[1][1] then
        native.raise("failed_precondition", "fit", ("ranks have different data: rank 0 has %d batches, rank %d has %d")
          :format(all[1][1], i - 1, all[i][1]))
      end
    end
    gradients.spread(model:parameters())
    gradients.spread(buffers_of(model))
    part_draws(self)
  end,
  sum = function(params) gradients.sum(params, 1) end,
  spread_buffers = function(model) gradients.spread(buffers_of(model)) end,
  share = shares.of,
  gather = trees.gather,
  rows = trees.rows,
  exchange = gradients.exchange,
  wrap = function(self, fn, ...) return enter(self, "fit", fn, ...) end,
}

native.checked.class(Strategy, { noun = "a strategy", call = "strategy", open = true,
  kinds = { reduce = { { "op", "string", required = true }, { "value", "any", required = true } },
            distribute = { { "dataset", "any", required = true } } } })
Strategy.__index = Strategy

-- What optimizers and scalers ask while a step of the strategy runs (native.strategy).
local function work_of(self)
  return {
    before_step = function(optimizer)
      if not self._reduced[optimizer] then reduce(self, optimizer) end
      self._reduced[optimizer] = nil
    end,
    before_unscale = function(optimizer) self:reduce_gradients(optimizer) end,
  }
end

return function(rank, size)
  local self = setmetatable({ num_replicas_in_sync = size, rank = rank, _known = setmetatable({}, { __mode = "k" }),
                              _reduced = setmetatable({}, { __mode = "k" }) }, Strategy)
  self._work = work_of(self)
  return self
end
