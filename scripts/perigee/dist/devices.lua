-- SPDX-License-Identifier: Apache-2.0
-- The strategy of one process with many devices, each of which is one replica. They take turns (lockstep.lua), which
-- keeps all of them busy where devices are asynchronous.
--
-- Gradients are summed in the order of devices (device_sums.lua). Each device updates its own parameters where all do
-- the same (updates.lua); else the first one does, and the others copy what it has.

local native = require "perigee.native"
local gradients = require "perigee.dist.gradients"
local lockstep = require "perigee.dist.lockstep"
local new_fit = require "perigee.dist.device_fit"
local sums = require "perigee.dist.device_sums"
local turns = require "perigee.dist.device_turns"
local values_of = require "perigee.dist.device_values"
local new_twins = require "perigee.dist.twins"
local new_updates = require "perigee.dist.updates"
local shares = require "perigee.dist.shares"
local new_strategy = require "perigee.dist.strategy"

local kind = {}

local function pg() return require "perigee" end

-- ---- scope ----

function kind.begin_scope() end

function kind.scope(self, fn, ...)
  return native.with(function() return native.set_device(self._numbers[1]) end, native.set_device, fn, ...)
end

local function add_model(self, where, model)
  for name, t in model:named_parameters() do self._twins:add(where, t, "parameter " .. name) end
  for name, t in model:named_buffers() do self._twins:add(where, t, "buffer " .. name) end
end

local function add_optimizer(self, where, optimizer)
  for i, p in ipairs(gradients.params_of(optimizer)) do
    self._twins:add(where, p, ("parameter %d of %s"):format(i, optimizer.name))
  end
end

function kind.end_scope(self, made)
  for _, object in ipairs(made) do
    if object.groups then
      add_optimizer(self, "strategy:scope", object)
    else
      add_model(self, "strategy:scope", object)
    end
  end
end

-- ---- gradients ----

-- Whether each device takes an optimizer's steps for itself.
local function steps_alike(self, optimizer) return sums.has_engine(self) and self._updates:suits(optimizer) end

local function params_of(self, optimizer)
  local params = gradients.params_of(optimizer)
  local missing = self._twins:missing(params)
  if missing then
    native.raise("failed_precondition", "strategy:run", ("parameter %d of %s was not made inside of strategy:scope")
      :format(missing, optimizer.name), "strategy:scope(function() model = ... optimizer = ... end)")
  end
  return params
end

local function reduce(self, optimizer, to_all)
  if self._reduced[optimizer] then return end
  local lists = sums.sum(self, optimizer, params_of(self, optimizer), self._weights, to_all)
  if to_all then self._updates:note(optimizer, lists) end
  self._reduced[optimizer] = true
end

function kind.reduce_gradients(self, optimizer) lockstep.ask("strategy:reduce_gradients()", optimizer, "all") end

-- ---- values ----

function kind.reduce(self, op, value, inside)
  if values_of.is_list(value) then return values_of.reduce(op, value, self._devices) end
  if inside then return lockstep.ask("strategy:reduce()", op, value) end
  if #self._devices == 1 then return values_of.reduce(op, { value }, self._devices) end
  native.raise("invalid_argument", "strategy:reduce", "needs what strategy:run has returned, got " ..
               native.describe(value), "inside of strategy:run it takes numbers and tensors")
end

-- ---- run ----

-- Rows of all replicas, on each; or of what each has for all, the sum of what is for one.
local function exchange(self, questions, answers)
  for k, device in ipairs(self._devices) do
    local rows = {}
    for j, q in ipairs(questions) do rows[j] = q[2]:to(device) end
    if questions[1][1] == "gather" then
      for j, t in ipairs(rows) do rows[j] = t:reshape(1, -1) end
      answers[k] = { n = 1, pg().cat(rows, { axis = 1 }) }
    else
      local total = rows[1][k]
      for j = 2, #rows do total = total + rows[j][k] end
      answers[k] = { n = 1, total }
    end
  end
end

-- What layers ask that work over replicas (nn/sync_norm.lua), for each. `parts`: what each has of the batch.
local function ask_for_layers(self, parts, weights)
  self._asking = {}
  if #self._devices == 1 then return end
  for k = 1, #self._devices do
    self._asking[k] = { weight = weights and weights[k] or 1, empty = parts[k] ~= nil and parts[k].count == 0,
                        gather = function(t) return lockstep.ask("SyncBatchNorm", "gather", t) end,
                        scatter_sum = function(t) return lockstep.ask("SyncBatchNorm", "scatter_sum", t) end }
  end
end

-- Answers what all replicas ask for.
local function serve(self, questions)
  local first, answers = questions[1], {}
  for k = 1, #questions do answers[k] = { n = 0 } end
  if first.what == "SyncBatchNorm" then
    pg().no_grad(exchange, self, questions, answers)
  elseif first.what == "strategy:reduce()" then
    local values = {}
    for k = 1, #questions do values[k] = questions[k][2] end
    local result = values_of.reduce(first[1], values, self._devices)
    for k = 1, #questions do
      answers[k] = { n = 1, native.is_tensor(result) and result:to(self._devices[k]) or result }
    end
  elseif first[1] then
    reduce(self, first[1], first[2] == "all" or first[2] == "own" and steps_alike(self, first[1]))
  end
  return answers
end

local function move(v, device)
  if native.is_tensor(v) then return v:to(device) end
  if type(v) ~= "table" or getmetatable(v) ~= nil then return v end
  local moved = {}
  for key, field in pairs(v) do moved[key] = move(field, device) end
  return moved
end

-- A batch's part for replica k, on its device; what is no batch is for all.
local function part_of(self, v, k)
  if not shares.is_whole(v) then return v end
  local part = shares.cut("strategy:run", v, k - 1, self.num_replicas_in_sync)
  return shares.like(part, move(part, self._devices[k]))
end

local function weights_of(self, args)
  local weights = {}
  for k = 1, self.num_replicas_in_sync do
    weights[k] = shares.weight(unpack(args[k], 1, args[k].n)) or 1 / self.num_replicas_in_sync
  end
  return weights
end

function kind.run(self, fn, ...)
  local count, args = self.num_replicas_in_sync, {}
  for k = 1, count do
    args[k] = { n = select("#", ...), ... }
    for j = 1, args[k].n do args[k][j] = part_of(self, args[k][j], k) end
  end
  self._weights, self._at_work = weights_of(self, args), self._work
  local parts = {}
  for k = 1, count do parts[k] = shares.first(unpack(args[k], 1, args[k].n)) end
  ask_for_layers(self, parts, self._weights)
  for optimizer in pairs(self._reduced) do self._reduced[optimizer] = nil end
  local function start(k) return turns.call(self, k, fn, unpack(args[k], 1, args[k].n)) end
  return values_of.collect(turns.run(self, self._weights, function()
    return lockstep.run("strategy:run", self._names, start, function(questions) return serve(self, questions) end)
  end))
end

function kind.distributor(self)
  local enough = false -- a pass may end with a batch of a few samples, but not have only such
  return function(batch)
    local rows = shares.mark("strategy:distribute", batch)
    if not enough and rows < self.num_replicas_in_sync then
      native.raise("invalid_argument", "strategy:distribute", ("a batch of %d samples for %d devices"):format(rows,
                   self.num_replicas_in_sync), "the batch size is that of all devices together")
    end
    enough = true
    return batch
  end
end

function kind.describe(self) return "strategy(" .. table.concat(self._devices, ", ") .. ")" end

-- fn(...) by the first replica, once all are there; its results are all replicas'.
local function by_first(self, fn, ...)
  if self.rank == 0 then
    local function off() native.strategy = nil end
    local function on() native.strategy = self._work end
    local function note(...) self._answer = { n = select("#", ...), ... } end
    note(native.with(off, on, fn, ...))
  end
  return unpack(self._answer, 1, self._answer.n)
end

function kind.work(self)
  return {
    step = function(optimizer, fn, ...)
      local plain = ... == optimizer and select("#", ...) == 1 -- its own, and not a scaler's
      lockstep.ask("optimizer:step()", optimizer, plain and "own" or nil)
      return by_first(self, function(...)
        local function finish(...)
          self._reduced[optimizer] = nil
          return ...
        end
        local function follow(params, ...)
          self._twins:follow(params)
          return finish(...)
        end
        local params = params_of(self, optimizer)
        if not plain or #self._devices == 1 then return follow(params, fn(...)) end
        return finish(self._updates:step(optimizer, params, sums.lists_of(self, params), fn))
      end, ...)
    end,
    change = function(optimizer, fn, ...)
      lockstep.ask("scaler:unscale()", optimizer)
      return by_first(self, function(...)
        local function finish(...)
          sums.spread(self, params_of(self, optimizer))
          return ...
        end
        return finish(fn(...))
      end, ...)
    end,
    once = function(what, fn, ...)
      lockstep.ask(what)
      return by_first(self, fn, ...)
    end,
  }
end

kind.fit = new_fit { add_model = add_model, steps_alike = steps_alike, part_of = part_of,
                     ask_for_layers = ask_for_layers, serve = serve }

-- ---- a new one ----

local function all_devices()
  local list = {}
  for _, d in ipairs(pg().devices "gpu") do list[#list + 1] = d.name end
  return #list > 0 and list or { "cpu" }
end

local function resolve(given)
  local where = "dist.mirrored"
  if type(given) ~= "table" or #given == 0 then
    native.raise("invalid_argument", where, "devices must be a list of names, got " .. native.describe(given),
                 "pg.dist.mirrored{devices={\"gpu:0\", \"gpu:1\"}}")
  end
  local numbers, names, taken = {}, {}, {}
  for k, name in ipairs(given) do
    local number = native.find_device(name, where)
    if taken[number] then
      native.raise("invalid_argument", where, ("%s is named twice: devices %d and %d"):format(name, taken[number], k))
    end
    taken[number], numbers[k], names[k] = k, number, native.device_name(number)
  end
  return numbers, names
end

return function(given)
  local numbers, devices = resolve(given == nil and all_devices() or given)
  local names = {}
  for k, device in ipairs(devices) do names[k] = ("replica %d (%s)"):format(k - 1, device) end
  local ones, twins = {}, new_twins(devices, numbers)
  for k = 1, #devices do ones[k] = 1 end
  return new_strategy(kind, { num_replicas_in_sync = #devices, rank = 0, _numbers = numbers, _devices = devices,
                              _names = names, _twins = twins, _updates = new_updates(devices, numbers, twins),
                              _ones = ones, _asking = {}, _reducers = setmetatable({}, { __mode = "k" }) })
end
