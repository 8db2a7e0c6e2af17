-- SPDX-License-Identifier: Apache-2.0
-- The strategy of many processes, each of which is one replica.

local native = require "perigee.native"
local gradients = require "perigee.dist.gradients"
local shares = require "perigee.dist.shares"
local partial = require "perigee.nn.partial"
local trees = require "perigee.dist.trees"
local world = require "perigee.dist.world"
local reducers = require "perigee.dist.reducer"
local new_strategy = require "perigee.dist.strategy"

local kind = {}

local function pg() return require "perigee" end

-- From here on every process draws numbers of its own, from another part of the one sequence that all of them share.
local PART = 2 ^ 40
local function part_draws(self)
  if self._parted or self.num_replicas_in_sync == 1 then return end
  self._parted = true
  local seed, offset = native.rng_state()
  native.set_rng_state(seed, offset % PART + self.rank * PART)
end

-- Rank 0's random state on all.
local function share_draws(self)
  local seed, offset = native.rng_state()
  local text = ("%s %.0f"):format(seed, offset)
  local bytes = { text:byte(1, -1) }
  for i = #bytes + 1, 64 do bytes[i] = 32 end
  local got = pg().dist.broadcast(pg().tensor(bytes, { dtype = "uint8" }), { group = self._everybody }):totable()
  local state = string.char(unpack(got))
  native.set_rng_state(state:match "^%d+", tonumber(state:match " (%d+)"))
end

function kind.begin_scope(self)
  if self._everybody.size > 1 and not self._parted then share_draws(self) end
end
function kind.scope(_, fn, ...) return fn(...) end
kind.end_scope = part_draws

local function check_nan(self, params)
  if not world.debugs() then return end -- a handle to a gradient keeps it from becoming a bucket's part
  local list = {}
  for i, p in ipairs(params) do list[i] = p.grad end
  gradients.check_nan("all_reduce", list, #params, function(i)
    return self._names_of[params[i]] or tostring(i)
  end, self._group)
end

-- Sums gradients of an optimizer's, or fit's, parameters; `key` is what they are asked for by.
local function sum(self, key, params, weight)
  params = gradients.whole_ones(params, self._group) -- of parts each process has the sum already
  if self.num_replicas_in_sync == 1 then
    local any = {}
    for i, p in ipairs(params) do any[i] = p.grad ~= nil end
    self._last = { params = params, any = any }
    return
  end
  check_nan(self, params)
  local reducer = self._reducers[key]
  if not reducer or not reducer:is_for(params) then
    reducer = reducers.of_processes(self, params)
    self._reducers[key] = reducer
  end
  reducer:sum({ weight }, true)
  for _, p in ipairs(params) do
    local stretch = partial.stretch_of(p)
    if stretch then stretch.summed = true end
  end
  self._last = { params = params, any = reducer.any }
end

-- From here on gradients count so much and may be sent; nil: none are.
local function send(self, weight)
  self._sending = weight
  for _, reducer in pairs(self._reducers) do reducer:send(weight and { weight }) end
end

-- What a gradient of this process counts in strategy:run.
local function weight_of(self) return self._weight or 1 / self.num_replicas_in_sync end

local function reduce(self, optimizer)
  if self._reduced[optimizer] then return end
  local params = gradients.params_of(optimizer)
  if not self._known[optimizer] then
    gradients.check_parameters("strategy", params, self._group)
    self._known[optimizer] = true
  end
  sum(self, optimizer, params, weight_of(self))
  self._reduced[optimizer] = true
end
kind.reduce_gradients = reduce

-- What layers ask that work over replicas (nn/sync_norm.lua).
local function replicas(self, weight, empty)
  if self.num_replicas_in_sync == 1 then return nil end
  local size, group = self.num_replicas_in_sync, self._group
  return { weight = weight, empty = empty,
           gather = function(t) return pg().dist.all_gather(t:reshape(1, -1), { group = group }) end,
           scatter_sum = function(t)
             return pg().dist.reduce_scatter(t:reshape(size, -1), { group = group }):reshape(-1)
           end }
end

function kind.run(self, fn, ...)
  part_draws(self)
  self._weight = shares.weight(...)
  local weight = weight_of(self)
  local function begin()
    native.strategy, native.replicas = self._work, replicas(self, weight, weight == 0)
    send(self, weight)
    shares.sending = weight
  end
  local function back()
    native.strategy, native.replicas, shares.sending = nil, nil, nil
    send(self, nil)
    for optimizer in pairs(self._reduced) do self._reduced[optimizer] = nil end
  end
  return native.with(begin, back, fn, ...)
end

function kind.reduce(self, op, value)
  if type(value) == "number" then
    return pg().dist.all_reduce(pg().tensor(value, { dtype = "float64" }), { op = op, group = self._group }):item()
  end
  if not native.is_tensor(value) then
    native.raise("invalid_argument", "strategy:reduce", "needs a number or a tensor, got " .. native.describe(value))
  end
  return pg().dist.all_reduce(value:detach(), { op = op, group = self._group })
end

function kind.distributor(self)
  return function(batch) return shares.cut("strategy:distribute", batch, self.rank, self.num_replicas_in_sync) end
end

function kind.describe(self) return ("strategy(rank %d of %d)"):format(self.rank, self.num_replicas_in_sync) end

-- fn(...), whose own steps are no steps of replicas.
local function apart(self, fn, ...)
  return native.with(function() native.strategy = nil end, function() native.strategy = self._work end, fn, ...)
end

function kind.work(self)
  return {
    step = function(optimizer, fn, ...)
      reduce(self, optimizer)
      self._reduced[optimizer] = nil
      return apart(self, fn, ...)
    end,
    change = function(optimizer, fn, ...)
      reduce(self, optimizer)
      return apart(self, fn, ...)
    end,
    once = function(_, fn, ...) return fn(...) end,
  }
end

local function buffers_of(model)
  local list = {}
  for _, t in model:named_buffers() do list[#list + 1] = t end
  return list
end

kind.fit = {
  begin = function(self, model, params, batches)
    gradients.check_models("fit", params, self._group)
    local all = gradients.exchange({ batches }, self._group)
    for i = 2, #all do
      if all[i][1] ~= all[1][1] then
        native.raise("failed_precondition", "fit", ("ranks have different data: rank 0 has %d batches, rank %d has %d")
          :format(all[1][1], i - 1, all[i][1]))
      end
    end
    gradients.spread(model:parameters(), self._group)
    gradients.spread(buffers_of(model), self._group)
    part_draws(self)
  end,
  processes = function(self) return self.num_replicas_in_sync end,
  devices = function() end,
  sum = function(self, params) sum(self, params, params, 1) end,
  change = function(_, _, fn) fn() end,
  step = function(_, optimizer) optimizer:step() end,
  spread_parameters = function() end,
  spread_buffers = function(self, model) gradients.spread(buffers_of(model), self._group) end,
  each = function(self, batch, device, fn)
    local share = shares.of(batch)
    local function begin()
      native.replicas = replicas(self, 1, share ~= nil and share.count == 0)
      send(self, 1)
      shares.sending = 1
    end
    local function back()
      native.replicas, shares.sending = nil, nil
      send(self, nil)
    end
    native.with(begin, back, fn, batch, device, 1)
  end,
  merge = function(self, metric_kind, seen)
    return metric_kind.merge(seen[1], function(op, value) return kind.reduce(self, op, value) end,
                             function(t) return trees.rows(t, self._group) end)
  end,
  gather = trees.gather,
  exchange = gradients.exchange,
}

---@param group perigee.Group of the replicas
---@param everybody perigee.Group those with whom the first random numbers are shared
---@param overlap boolean
return function(group, everybody, overlap)
  return new_strategy(kind, { num_replicas_in_sync = group.size, rank = group.rank, _overlap = overlap,
                              _group = group, _everybody = everybody,
                              _beside = group.rank == 0 and everybody.rank > 0 or nil,
                              _known = setmetatable({}, { __mode = "k" }),
                              _reducers = setmetatable({}, { __mode = "k" }) })
end
