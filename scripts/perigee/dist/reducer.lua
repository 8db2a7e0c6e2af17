-- SPDX-License-Identifier: Apache-2.0
-- Sums gradients over processes, in buckets, which start while a backward pass still computes the others.
--
-- Hooks of the tape put gradients into buckets as they come. A bucket starts when all of its parameters have had as
-- many backward passes as they had in the step before, and all buckets before it have started: all processes start the
-- same ones in the same order, wherever in their passes. Before a step they tell each other which parameters have
-- gradients, and whether one has seen a gradient after it was sent: what was guessed wrong is summed again, on all.

local native = require "perigee.native"
local gradients = require "perigee.dist.gradients"
local world = require "perigee.dist.world"

local FIRST = 2 ^ 20 -- bytes of the first bucket: it starts when little has been computed

local Reducer = {}
Reducer.__index = Reducer

local function pg() return require "perigee" end
local same_list = gradients.same_list

-- ---- while a pass runs ----

-- Starts the buckets that are full, in their order. One of a device's memory starts before the step.
local function start_full(self)
  local bucket = self.buckets[self.started + 1]
  while bucket and bucket.waiting == 0 do
    bucket.begun = native.dist.begin_sum(self.group, bucket.flat)
    if not bucket.begun then return end
    self.started = self.started + 1
    bucket = self.buckets[self.started + 1]
  end
end

local function keep_going(self)
  local bucket = self.buckets[self.looked]
  if bucket and bucket.begun and native.dist.look(bucket.begun) then
    bucket.begun, bucket.over, self.looked = nil, true, self.looked + 1
  end
end

local function take(self, i, gradient)
  local place, weight = self.places[i], self.strategy._sending
  self.seen[i] = self.seen[i] + 1
  if not weight or not place or self.seen[i] ~= self.expected[i] then
    if place and place.sent then self.stale = true end
    return
  end
  local own, shown = self.params[i].grad, gradient
  if own then gradient = own + gradient end
  place.part:copy_(weight == 1 and gradient or gradient * weight)
  place.sent, self.weight = gradients.expect(own, shown), weight
  place.bucket.waiting = place.bucket.waiting - 1
  start_full(self)
  keep_going(self)
end

-- Hooks know the reducer weakly: they live as long as the parameters, which it holds.
local function hook(self)
  local box = setmetatable({ self }, { __mode = "v" })
  for i, p in ipairs(self.params) do
    if p.requires_grad then
      native.custom.hook(p, function(gradient)
        local reducer = box[1]
        if reducer then pg().no_grad(take, reducer, i, gradient) end
        gradient:free() -- nobody else has it: the pass need not copy it
      end)
    end
  end
end

-- ---- before a step ----

-- What all processes know together: which parameters have a gradient, whether anything was sent too early, how many
-- buckets have been started.
local function exchange(self)
  local n, here = #self.params, {}
  for i, p in ipairs(self.params) do here[i] = p.grad and 1 or 0 end
  here[n + 1], here[n + 2] = self.stale and 1 or 0, self.started
  local all = pg().dist.all_reduce(pg().tensor(here, { dtype = "int32" }), { op = "max", group = self.among }):totable()
  local any = {}
  for i = 1, n do any[i] = all[i] == 1 end
  return any, all[n + 1] == 1, all[n + 2]
end

local function finish(bucket)
  if bucket.begun then native.dist.finish(bucket.begun) end
  bucket.begun, bucket.over = nil, true
end

-- Starts and ends what some process has started, for nothing.
local function discard(self, count)
  for b = self.started + 1, count do
    self.buckets[b].begun = native.dist.begin_sum(self.group, self.buckets[b].flat)
  end
  for b = 1, count do finish(self.buckets[b]) end
end

local function forget(self)
  self.started, self.looked, self.stale, self.weight = 0, 1, false, nil
  for _, bucket in ipairs(self.buckets) do
    bucket.waiting, bucket.begun, bucket.over = #bucket.index, nil, false
    for _, i in ipairs(bucket.index) do self.places[i].sent = false end
  end
end

-- Buckets of the parameters that have gradients, the last ones first, since theirs are computed first.
local function lay_out(self, any)
  local params, backwards, index = {}, {}, {}
  for i = #self.params, 1, -1 do
    params[#params + 1], backwards[#backwards + 1], index[#index + 1] = self.params[i], any[i], i
  end
  self.any, self.places, self.buckets = any, {}, gradients.buckets(params, backwards, nil, FIRST)
  for _, bucket in ipairs(self.buckets) do
    local first, total = 1, 0
    for n, at in ipairs(bucket.index) do bucket.index[n] = index[at] end
    for _, p in ipairs(bucket) do total = total + p:numel() end
    bucket.flat = pg().keep(pg().zeros({ total }, { dtype = bucket[1].dtype, device = bucket[1].device }))
    for n, p in ipairs(bucket) do
      local part = bucket.flat[{ { first, first + p:numel() - 1 } }]:reshape(p.shape)
      self.places[bucket.index[n]] = { bucket = bucket, part = pg().keep(part), sent = false }
      first = first + p:numel()
    end
  end
  forget(self)
end

-- What no pass has put into its bucket.
local function fill(self, bucket, weight)
  for n, p in ipairs(bucket) do
    local place = self.places[bucket.index[n]]
    if not place.sent then
      if p.grad then
        place.part:copy_(weight == 1 and p.grad or p.grad * weight)
      else
        place.part:fill_(0)
      end
    end
  end
end

local function sum_rest(self, weight)
  for b = self.started + 1, #self.buckets do
    local bucket = self.buckets[b]
    fill(self, bucket, weight)
    bucket.begun = native.dist.begin_sum(self.group, bucket.flat)
    if not bucket.begun then
      bucket.flat:copy_((native.call("all_reduce", { { bucket.flat } }, { op = "sum", group = self.group })))
    end
  end
  for _, bucket in ipairs(self.buckets) do
    if not bucket.over then finish(bucket) end
    gradients.unflatten(bucket, bucket.flat)
  end
end

-- Whether a parameter has become another tensor than its bucket was made for.
local function moved(self)
  for i, place in pairs(self.places) do
    local p = self.params[i]
    if place.part.dtype ~= p.dtype or place.part.device ~= p.device or place.part.shape ~= p.shape then return true end
  end
  return false
end

-- Whether something was sent that is not the parameter's gradient now.
local function changed(self)
  for i, place in pairs(self.places) do
    if place.sent and not gradients.is_as_expected(self.params[i].grad, place.sent) then return true end
  end
  return false
end

local function refuse_deterministic()
  native.raise("not_supported", "all_reduce", "adds up as many tensors as there are processes, and " ..
               "deterministic=true lets no result depend on how many there are")
end

local function sum(self, weight)
  if native.deterministic() then refuse_deterministic() end
  if self.weight and self.weight ~= weight or moved(self) or changed(self) then self.stale = true end
  local any, stale, started = exchange(self)
  self.early = self.started -- of the last step, for tests
  if stale or not same_list(any, self.any) then
    discard(self, started)
    lay_out(self, any)
  end
  sum_rest(self, weight)
  for i = 1, #self.params do self.expected[i], self.seen[i] = self.seen[i], 0 end
  forget(self)
end

---Gradients of the parameters, times this process's weight, summed over all processes. A parameter that has one on some
---process only counts as zero on the others; one that has none anywhere keeps none.
---@param weight number
function Reducer:sum(weight) pg().no_grad(sum, self, weight) end

---Whether it is one for this list.
---@param params perigee.Tensor[]
---@return boolean
function Reducer:is_for(params) return same_list(self.params, params) end

---@param strategy perigee.Strategy whose `_sending` is the weight of gradients that may be sent now, or nil
---@param params perigee.Tensor[]
return function(strategy, params)
  local self = setmetatable({ strategy = strategy, params = { unpack(params) }, among = strategy._group,
                              group = world.gradients(strategy._group), buckets = {},
                              places = {}, any = {}, seen = {}, expected = {}, started = 0, looked = 1, stale = false },
                            Reducer)
  for i, p in ipairs(params) do self.seen[i], self.expected[i] = p.grad and 1 or 0, 0 end
  if strategy._overlap then hook(self) end
  return self
end
