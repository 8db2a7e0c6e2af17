-- SPDX-License-Identifier: Apache-2.0
-- The strategy of one process with many devices, each of which is one replica. They take turns (lockstep.lua), which
-- keeps all of them busy where devices are asynchronous.
--
-- Gradients are summed in the order of devices: by the engine of their type of device (core/docs/decisions/0027) where
-- there is one, while backward computes (device_reducer.lua), else by copies behind it. Each device updates its own
-- parameters where all do the same (updates.lua); else the first one does, and the others copy what it has.

local native = require "perigee.native"
local gradients = require "perigee.dist.gradients"
local lockstep = require "perigee.dist.lockstep"
local new_reducer = require "perigee.dist.device_reducer"
local new_twins = require "perigee.dist.twins"
local new_updates = require "perigee.dist.updates"
local shares = require "perigee.dist.shares"
local new_strategy = require "perigee.dist.strategy"

local kind = {}

local function pg() return require "perigee" end

-- ---- what strategy:run returns ----

local Values = {}
function Values.__index(_, key)
  native.raise("invalid_argument", "strategy:run", ("what it returns of several devices is a list of values, one a " ..
               "device, and has no %q"):format(tostring(key)), "values[1], or strategy:reduce(\"mean\", values)")
end
function Values.__tostring(self)
  local parts = {}
  for i = 1, rawget(self, "count") do parts[i] = tostring(rawget(self, i)) end
  return "values {" .. table.concat(parts, ", ") .. "}"
end

local function collect(self, results)
  local most, list, count = 0, {}, self.num_replicas_in_sync
  for k = 1, count do most = math.max(most, results[k].n) end
  for j = 1, most do
    local values, any = { count = count }, false
    for k = 1, count do
      local v = results[k][j]
      if native.is_tensor(v) then v = v:detach() end
      values[k], any = v, any or v ~= nil
    end
    if any then list[j] = count == 1 and values[1] or setmetatable(values, Values) end
  end
  return unpack(list, 1, most)
end

-- ---- a replica's turn ----

local PART = 2 ^ 40 -- random numbers that a replica may draw

-- Random numbers of a step: each replica draws from another part of the sequence; behind the step the process goes on
-- behind what was drawn.
local function begin_draws(self)
  local seed, offset = native.rng_state()
  self._draws = { seed = seed, base = offset }
  for k = 1, self.num_replicas_in_sync do self._draws[k] = offset + (k - 1) * PART end
end

local function end_draws(self)
  local draws, drawn = self._draws, 0
  for k = 1, self.num_replicas_in_sync do drawn = math.max(drawn, draws[k] - (k - 1) * PART - draws.base) end
  native.set_rng_state(draws.seed, draws.base + drawn)
end

-- What is in force while replica k computes: a pair for native.with.
local function turn(self, k)
  local number, twins, draws = self._numbers[k], self._twins, self._draws
  local function enter()
    local outer = { device = native.set_device(number), work = rawget(native, "strategy"), rank = self.rank,
                    replicas = rawget(native, "replicas") }
    native.strategy, native.replicas, self.rank = self._at_work, self._asking[k], k - 1
    if k > 1 then twins:exchange(k) end
    native.set_rng_state(draws.seed, draws[k])
    return outer
  end
  local function leave(outer)
    draws[k] = select(2, native.rng_state())
    if k > 1 then twins:exchange(k) end
    native.strategy, native.replicas, self.rank = outer.work, outer.replicas, outer.rank
    native.set_device(outer.device)
  end
  return enter, leave
end

local function in_turn(self, k, fn, ...)
  if k > 1 then self._twins:fill() end
  local enter, leave = turn(self, k)
  return native.with(enter, leave, fn, ...)
end

-- fn(), in which replicas take turns.
local function with_turns(self, fn)
  for _, reducer in pairs(self._reducers) do reducer:begin() end
  self._twins:follow()
  begin_draws(self)
  return native.with(function() end, function()
    end_draws(self)
    self._sending = nil
  end, fn)
end

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

-- Tensors of the first device, by device.
local function lists_of(self, params)
  local lists = {}
  for k = 1, #self._devices do lists[k] = self._twins:on(params, k) end
  return lists
end

-- Which parameters have a gradient on some device.
local function used(lists)
  local any = {}
  for i = 1, #lists[1] do
    any[i] = false
    for k = 1, #lists do any[i] = any[i] or lists[k][i].grad ~= nil end
  end
  return any
end

-- Whether an engine sums over these devices.
local function has_engine(self) return #self._numbers > 1 and native.dist.device_group(self._numbers) ~= nil end

-- Whether each device takes an optimizer's steps for itself.
local function steps_alike(self, optimizer) return has_engine(self) and self._updates:suits(optimizer) end

-- fn() on device k, whose tensors handles show.
local function on_device(self, k, fn)
  local function enter()
    self._twins:exchange(k)
    return native.set_device(self._numbers[k])
  end
  local function leave(device)
    native.set_device(device)
    self._twins:exchange(k)
  end
  native.with(enter, leave, fn)
end

-- The first device's gradients become the sum of all, each times its weight; with `to_all`, so do the others'.
local function sum_by_copies(self, lists, any, weights, to_all)
  local devices = self._devices
  for _, bucket in ipairs(gradients.buckets(lists[1], any)) do
    local own, total = {}, nil
    for k = 1, #devices do
      own[k] = {}
      for n, i in ipairs(bucket.index) do own[k][n] = lists[k][i] end
      local flat = gradients.flatten(own[k], weights[k]):to(devices[1])
      total = total and total + flat or flat
    end
    for k = 1, to_all and #devices or 1 do gradients.unflatten(own[k], total:to(devices[k])) end
  end
end

-- Sums gradients of an optimizer's, or fit's, parameters; `key` is what they are asked for by. Answers them by device.
local function sum(self, key, params, weights, to_all)
  local lists = lists_of(self, params)
  self._last = { params = params, any = used(lists) }
  if has_engine(self) then
    local reducer = self._reducers[key]
    if not reducer or not reducer:is_for(params) then
      reducer = new_reducer(self, params)
      self._reducers[key] = reducer
    end
    reducer:sum(lists, self._last.any, weights, to_all)
  else
    pg().no_grad(sum_by_copies, self, lists, self._last.any, weights, to_all)
  end
  return lists
end

-- The first device's gradients on all.
local function spread(self, params)
  pg().no_grad(function()
    for k = 2, #self._devices do
      for i, p in ipairs(self._twins:on(params, k)) do
        local gradient = params[i].grad
        if gradient then p.grad = gradient:to(self._devices[k]) end
      end
    end
  end)
end

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
  local lists = sum(self, optimizer, params_of(self, optimizer), self._weights, to_all)
  if to_all then self._updates:note(optimizer, lists) end
  self._reduced[optimizer] = true
end

function kind.reduce_gradients(self, optimizer) lockstep.ask("strategy:reduce_gradients()", optimizer, "all") end

-- ---- values ----

local function reduce_tensors(self, op, values)
  local total
  for k, v in ipairs(values) do
    v = v:detach():to(self._devices[1])
    if not total then
      total = v
    elseif v.shape ~= total.shape then
      native.raise("invalid_argument", "strategy:reduce", ("replica 0 has %s, replica %d has %s"):format(
                     tostring(total.shape), k - 1, tostring(v.shape)))
    elseif op == "max" or op == "min" then
      total = pg()[op == "max" and "maximum" or "minimum"](total, v)
    else
      total = total + v
    end
  end
  return op == "mean" and total / #values or total
end

local function reduce_values(self, op, values)
  local numbers, tensors = 0, 0
  for k = 1, #self._devices do
    numbers = numbers + (type(values[k]) == "number" and 1 or 0)
    tensors = tensors + (native.is_tensor(values[k]) and 1 or 0)
  end
  if tensors == #self._devices then return pg().no_grad(reduce_tensors, self, op, values) end
  if numbers < #self._devices then
    local strange = values[1]
    for k = 1, #self._devices do
      if type(values[k]) ~= "number" and not native.is_tensor(values[k]) then strange = values[k] end
    end
    native.raise("invalid_argument", "strategy:reduce", "needs a number or a tensor of each replica, got " ..
                 native.describe(strange))
  end
  local total = values[1]
  for k = 2, #values do
    local v = values[k]
    if op == "max" or op == "min" then
      total = (v ~= v or op == "max" and v > total or op == "min" and v < total) and v or total
    else
      total = total + v
    end
  end
  return op == "mean" and total / #values or total
end

function kind.reduce(self, op, value, inside)
  if getmetatable(value) == Values then return reduce_values(self, op, value) end
  if inside then return lockstep.ask("strategy:reduce()", op, value) end
  if #self._devices == 1 then return reduce_values(self, op, { value }) end
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
    local result = reduce_values(self, first[1], values)
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
  self._sending = self._weights
  local parts = {}
  for k = 1, count do parts[k] = shares.first(unpack(args[k], 1, args[k].n)) end
  ask_for_layers(self, parts, self._weights)
  for optimizer in pairs(self._reduced) do self._reduced[optimizer] = nil end
  local function start(k) return in_turn(self, k, fn, unpack(args[k], 1, args[k].n)) end
  return collect(self, with_turns(self, function()
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
        return finish(self._updates:step(optimizer, params, lists_of(self, params), fn))
      end, ...)
    end,
    change = function(optimizer, fn, ...)
      lockstep.ask("scaler:unscale()", optimizer)
      return by_first(self, function(...)
        local function finish(...)
          spread(self, params_of(self, optimizer))
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

-- ---- fit ----

kind.fit = {
  begin = function(self, model)
    add_model(self, "fit", model)
    self._twins:follow()
  end,
  processes = function() return 1 end,
  devices = function(self) return self._devices end,
  sum = function(self, params, optimizer, scaled)
    local to_all = not scaled and steps_alike(self, optimizer)
    local lists = sum(self, optimizer, params, self._ones, to_all)
    if to_all then self._updates:note(optimizer, lists) end
  end,
  change = function(self, optimizer, fn)
    fn()
    if self._updates:has_noted(optimizer) then
      for k = 2, #self._devices do on_device(self, k, fn) end
    end
  end,
  step = function(self, optimizer, params)
    self._updates:step(optimizer, params, lists_of(self, params), optimizer.step)
  end,
  spread_parameters = function(self, params) self._twins:follow(params) end,
  spread_buffers = function(self) self._twins:follow() end,
  each = function(self, batch, _, fn)
    self._at_work, self._sending = nil, self._ones
    local parts, counts = {}, {}
    for k = 1, self.num_replicas_in_sync do
      parts[k] = part_of(self, batch, k)
      counts[k] = shares.of(parts[k])
    end
    ask_for_layers(self, counts)
    local function start(k) return in_turn(self, k, fn, parts[k], self._devices[k], k) end
    with_turns(self, function()
      return lockstep.run("fit", self._names, start, function(questions) return serve(self, questions) end)
    end)
  end,
  merge = function(self, metric_kind, seen)
    self._at_work = nil
    local function rows(t) return lockstep.ask("rows", "rows", t) end
    local function reduced(op, value) return lockstep.ask("strategy:reduce()", op, value) end
    local function join(questions)
      local parts, answers = {}, {}
      for k, q in ipairs(questions) do
        if #q[2] > 0 then parts[#parts + 1] = q[2]:to(self._devices[1]) end
      end
      local all = #parts > 0 and pg().cat(parts, { axis = 1 }) or questions[1][2]
      for k = 1, #questions do answers[k] = { n = 1, all } end
      return answers
    end
    local results = lockstep.run("fit", self._names, function(k) return metric_kind.merge(seen[k], reduced, rows) end,
      function(questions) return questions[1].what == "rows" and join(questions) or serve(self, questions) end)
    return results[1][1]
  end,
}

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
