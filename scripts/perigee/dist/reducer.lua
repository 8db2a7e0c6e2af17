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
local DIRECT = 2 ^ 18 -- of a gradient that is worth a message of its own

local Reducer = {}
Reducer.__index = Reducer

local function pg() return require "perigee" end
local same_list = gradients.same_list

-- ---- while a pass runs ----

-- Begins to sum a bucket, whose gradients count so much. Only once: of a device's memory it is called again.
local function begin(self, bucket, weight)
  if weight ~= 1 and not bucket.weighed then bucket.flat:mul_(weight) end
  bucket.weighed = true
  bucket.begun = native.dist.begin_sum(self.group, bucket.flat)
end

-- Starts the buckets that are full, in their order. One of a device's memory starts before the step.
local function start_full(self)
  local bucket = self.buckets[self.started + 1]
  while bucket and bucket.waiting == 0 do
    begin(self, bucket, self.weight)
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
  place.part:copy_(gradient)
  place.sent, self.weight = gradients.expect(own, shown), weight
  place.bucket.waiting = place.bucket.waiting - 1
  start_full(self)
  keep_going(self)
end

-- Hooks know the reducer weakly: they live as long as the parameters, which it holds. One bucket alone starts when all
-- has been computed: then there are none.
local function hook(self)
  local count = #self.buckets + (#self.direct > 0 and 1 or 0)
  if self.hooked or not self.strategy._overlap or count < 2 then return end
  self.hooked = true
  local box = setmetatable({ self }, { __mode = "v" })
  for i, p in ipairs(self.params) do
    self.seen[i] = p.grad and 1 or 0
    if p.requires_grad then
      native.custom.hook(p, function(gradient)
        local reducer = box[1]
        if reducer and native.grad_enabled() then -- where gradients of gradients are wanted
          pg().no_grad(take, reducer, i, gradient)
        elseif reducer then
          take(reducer, i, gradient)
        end
        gradient:free() -- nobody else has it: the pass need not copy it
      end)
    end
  end
end

-- ---- before a step ----

local function largest(self, numbers)
  return pg().dist.all_reduce(pg().tensor(numbers, { dtype = "int32" }), { op = "max", group = self.among }):totable()
end

-- What all processes know together: which parameters have a gradient, whether anything was sent too early, how many
-- buckets have been started. Most steps are as the one before, for all of them.
local function exchange(self, grads)
  local differs, here = false, self.here
  for i = 1, #grads do differs = differs or here[i] ~= (grads[i] and 1 or 0) end
  local all = largest(self, { differs and 1 or 0, self.stale and 1 or 0, self.started })
  if all[1] == 0 then return self.any, all[2] == 1, all[3] end
  here = {}
  for i = 1, #grads do here[i] = grads[i] and 1 or 0 end
  local any = largest(self, here)
  for i = 1, #any do any[i] = any[i] == 1 end
  self.here = here
  return any, all[2] == 1, all[3]
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
    bucket.waiting, bucket.begun, bucket.over, bucket.weighed = #bucket.index, nil, false, false
    for _, i in ipairs(bucket.index) do self.places[i].sent = false end
  end
end

-- The last bucket would start when all has been computed, so nothing is gained by its copies: what is large in it is
-- summed where it lies. Answers those parameters' numbers.
local function take_direct(buckets)
  local last, direct = buckets[#buckets], {}
  if not last then return direct end
  for n = #last, 1, -1 do
    if gradients.bytes_of(last[n]) >= DIRECT then
      table.insert(direct, 1, last.index[n])
      table.remove(last, n)
      table.remove(last.index, n)
    end
  end
  if #last == 0 then buckets[#buckets] = nil end
  return direct
end

-- Buckets of the parameters that have gradients, the last ones first, since theirs are computed first.
local function lay_out(self, any)
  local params, backwards, index = {}, {}, {}
  for i = #self.params, 1, -1 do
    params[#params + 1], backwards[#backwards + 1], index[#index + 1] = self.params[i], any[i], i
  end
  self.any, self.places, self.buckets = any, {}, gradients.buckets(params, backwards, nil, FIRST)
  for _, bucket in ipairs(self.buckets) do
    for n, at in ipairs(bucket.index) do bucket.index[n] = index[at] end
  end
  self.direct = take_direct(self.buckets)
  for _, bucket in ipairs(self.buckets) do
    local first, total = 1, 0
    for _, p in ipairs(bucket) do total = total + p:numel() end
    bucket.flat = pg().keep(pg().zeros({ total }, { dtype = bucket[1].dtype, device = bucket[1].device }))
    for n, p in ipairs(bucket) do
      local part = bucket.flat[{ { first, first + p:numel() - 1 } }]:reshape(p.shape)
      self.places[bucket.index[n]] = { bucket = bucket, part = pg().keep(part), sent = false }
      first = first + p:numel()
    end
  end
  forget(self)
  hook(self)
end

-- What no pass has put into its bucket.
local function fill(self, bucket, grads)
  local parts, given, count = {}, {}, 0
  for _, i in ipairs(bucket.index) do
    local place = self.places[i]
    if not place.sent then
      if grads[i] then
        count = count + 1
        parts[count], given[count] = place.part, grads[i]
      else
        place.part:fill_(0)
      end
    end
  end
  native.dist.copy_each(parts, given, count)
end

-- The sums become the gradients.
local function hand_out(self, bucket, grads)
  local own, sums, count = {}, {}, 0
  for _, i in ipairs(bucket.index) do
    local part = self.places[i].part
    if grads[i] then
      count = count + 1
      own[count], sums[count] = grads[i], part
    else
      self.params[i].grad = part:clone()
    end
  end
  native.dist.copy_each(own, sums, count)
end

-- Of device memory nothing has begun.
local function sum_here(self, bucket)
  if bucket.begun then return finish(bucket) end
  bucket.flat:copy_((native.call("all_reduce", { { bucket.flat } }, { op = "sum", group = self.group })))
end

-- Sums of what is not copied, which begin here.
local function begin_direct(self, weight, grads)
  local list = {}
  for n, i in ipairs(self.direct) do
    local p = self.params[i]
    if not grads[i] then
      p.grad = pg().zeros(p.shape, { dtype = p.dtype, device = p.device })
      grads[i] = p.grad
    end
    local copied = not grads[i]:is_contiguous()
    list[n] = { own = grads[i], copied = copied, flat = copied and grads[i]:contiguous() or grads[i] }
    begin(self, list[n], weight)
  end
  return list
end

local function end_direct(self, list)
  for _, one in ipairs(list) do
    sum_here(self, one)
    if one.copied then one.own:copy_(one.flat) end
  end
end

local function sum_rest(self, weight, grads)
  for b = self.started + 1, #self.buckets do
    fill(self, self.buckets[b], grads)
    begin(self, self.buckets[b], weight)
  end
  local direct = begin_direct(self, weight, grads)
  for _, bucket in ipairs(self.buckets) do
    if not bucket.over then sum_here(self, bucket) end
    hand_out(self, bucket, grads)
  end
  end_direct(self, direct)
end

-- Whether a parameter has become another tensor than its bucket was made for.
local function moved(self)
  local same_sizes, dtype = native.tensor.same_sizes, native.tensor.dtype
  for i, place in pairs(self.places) do
    local p = self.params[i]
    if dtype(place.part) ~= dtype(p) or place.part.device ~= p.device or not same_sizes(place.part, p) then
      return true
    end
  end
  return false
end

-- Whether something was sent that is not the parameter's gradient now.
local function changed(self, grads)
  for i, place in pairs(self.places) do
    if place.sent and not gradients.is_as_expected(grads[i] or nil, place.sent) then return true end
  end
  return false
end

local function refuse_deterministic()
  native.raise("not_supported", "all_reduce", "adds up as many tensors as there are processes, and " ..
               "deterministic=true lets no result depend on how many there are")
end

local function sum(self, weight)
  if native.deterministic() then refuse_deterministic() end
  local grads = {}
  for i, p in ipairs(self.params) do grads[i] = p.grad or false end
  if self.weight and self.weight ~= weight or moved(self) or changed(self, grads) then self.stale = true end
  local any, stale, started = exchange(self, grads)
  self.early = self.started -- of the last step, for tests
  if stale or not same_list(any, self.any) then
    discard(self, started)
    lay_out(self, any)
  end
  sum_rest(self, weight, grads)
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
                              places = {}, any = {}, here = {}, direct = {}, seen = {}, expected = {}, started = 0,
                              looked = 1, stale = false },
                            Reducer)
  for i, p in ipairs(params) do self.seen[i], self.expected[i] = p.grad and 1 or 0, 0 end
  return self
end
