-- SPDX-License-Identifier: Apache-2.0
-- Sums gradients over devices of one process, in buckets, on a stream of its own, while backward passes compute the
-- others.
--
-- Hooks of the tape put each device's gradients into its buckets as they come; a bucket starts when those of its
-- parameters have come on all devices, and all buckets before it have started. Which pass is a parameter's last is
-- guessed by the step before: what was guessed wrong, or has changed since, is summed again.
--
-- Devices are given their work one after the other, so a bucket starts when the last one's is given to it: by then
-- streams of the others have been given all of their pass. Marks (native.dist.mark_done) say how far they must be.

local native = require "perigee.native"
local gradients = require "perigee.dist.gradients"

-- Streams of their own: of what puts gradients into buckets, and of sums, which are behind each other.
local FILLING, SUMMING = 30, 31

local Reducer = {}
Reducer.__index = Reducer

local function pg() return require "perigee" end
local same_list = gradients.same_list

-- What replica k has put into a bucket is what it gives.
local function close(self, bucket, k)
  local flat = bucket.flats[k]
  if self.weights[k] ~= 1 then flat:mul_(self.weights[k]) end
  self.marked = true
  native.dist.mark_done(flat)
end

local function add_up(self, bucket)
  local rows = { bucket.flats }
  pg().stream(SUMMING, native.dist.on_devices, native.dist.device_group(self.numbers),
              self.to_all and "all_reduce" or "reduce", "sum", 0, rows, rows)
  for _, flat in ipairs(bucket.flats) do native.dist.mark_done(flat) end
end

-- Starts the buckets that are full, in their order.
local function start_full(self)
  local bucket = self.buckets[self.started + 1]
  while bucket and bucket.open == 0 do
    self.started = self.started + 1
    add_up(self, bucket)
    bucket = self.buckets[self.started + 1]
  end
end

-- In the turn of replica k, whose tensors handles show.
local function take(self, k, i, gradient)
  local place, weights, seen = self.places[i], self.strategy._sending, self.seen[k]
  seen[i] = seen[i] + 1
  local guessed = weights and place and seen[i] == self.expected[k][i] and self.strategy.rank == k - 1
  if guessed and not self.sending then self.weights, self.sending = weights, true end
  if not guessed or not same_list(self.weights, weights) then
    if place and place.sent[k] then self.stale = true end
    return
  end
  local own, bucket = self.params[i].grad, place.bucket
  place.sent[k] = gradients.expect(own, gradient)
  place.parts[k]:copy_(own and own + gradient or gradient)
  bucket.waiting[k] = bucket.waiting[k] - 1
  if bucket.waiting[k] > 0 then return end
  close(self, bucket, k)
  bucket.open = bucket.open - 1
  start_full(self)
end

-- Hooks know the reducer weakly: they live as long as the parameters, which it holds.
local function hook(self)
  local box = setmetatable({ self }, { __mode = "v" })
  for k = 1, #self.numbers do
    for i, p in ipairs(self.strategy._twins:on(self.params, k)) do
      if p.requires_grad then
        native.custom.hook(p, function(gradient)
          local reducer = box[1]
          if reducer then pg().no_grad(pg().stream, FILLING, take, reducer, k, i, gradient) end
          gradient:free() -- nobody else has it: the pass need not copy it
        end)
      end
    end
  end
end

-- ---- before a step ----

local function unmark(self)
  for _, bucket in ipairs(self.marked and self.buckets or {}) do
    for _, flat in ipairs(bucket.flats) do native.dist.mark_done(flat, false) end
  end
  self.marked = false
end

local function forget(self)
  unmark(self)
  self.started, self.stale, self.sending = 0, false, false
  for _, bucket in ipairs(self.buckets) do
    bucket.open, bucket.waiting = #self.numbers, {}
    for k = 1, #self.numbers do bucket.waiting[k] = #bucket.index end
    for _, i in ipairs(bucket.index) do self.places[i].sent = {} end
  end
end

-- Buckets of the parameters that have gradients, the last ones first, since theirs are computed first.
local function lay_out(self, lists, any)
  local params, backwards, index = {}, {}, {}
  for i = #self.params, 1, -1 do
    params[#params + 1], backwards[#backwards + 1], index[#index + 1] = lists[1][i], any[i], i
  end
  self.any, self.places = any, {}
  self.buckets = gradients.buckets(params, backwards, gradients.small_buckets(params, backwards))
  for _, bucket in ipairs(self.buckets) do
    local first, total = 1, 0
    bucket.flats = {}
    for n, at in ipairs(bucket.index) do bucket.index[n] = index[at] end
    for _, p in ipairs(bucket) do total = total + p:numel() end
    for k, device in ipairs(self.strategy._devices) do
      bucket.flats[k] = pg().keep(pg().zeros({ total }, { dtype = bucket[1].dtype, device = device }))
    end
    for n, p in ipairs(bucket) do
      local place = { bucket = bucket, parts = {} }
      for k, flat in ipairs(bucket.flats) do
        place.parts[k] = pg().keep(flat[{ { first, first + p:numel() - 1 } }]:reshape(p.shape))
      end
      self.places[bucket.index[n]] = place
      first = first + p:numel()
    end
  end
  forget(self)
end

-- Whether a parameter has become another tensor than its bucket was made for.
local function moved(self, lists)
  for i, place in pairs(self.places) do
    for k, part in ipairs(place.parts) do
      local p = lists[k][i]
      if part.dtype ~= p.dtype or part.device ~= p.device or part.shape ~= p.shape then return true end
    end
  end
  return false
end

-- Whether something was sent that is not the parameter's gradient now.
local function changed(self, lists)
  for i, place in pairs(self.places) do
    for k, expected in pairs(place.sent) do
      if not gradients.is_as_expected(lists[k][i].grad, expected) then return true end
    end
  end
  return false
end

-- What no pass has put into its bucket.
local function fill(self, bucket, lists)
  for _, i in ipairs(bucket.index) do
    local place = self.places[i]
    for k, part in ipairs(place.parts) do
      local gradient = lists[k][i].grad
      if not place.sent[k] and gradient then part:copy_(gradient) end
      if not place.sent[k] and not gradient then part:fill_(0) end
    end
  end
  for k, waiting in ipairs(bucket.waiting) do
    if waiting > 0 then close(self, bucket, k) end
  end
end

local function sum_rest(self, lists)
  for b = self.started + 1, #self.buckets do
    fill(self, self.buckets[b], lists)
    add_up(self, self.buckets[b])
  end
end

local function give(self, lists)
  for _, bucket in ipairs(self.buckets) do
    for _, i in ipairs(bucket.index) do
      local parts = self.places[i].parts
      for k = 1, self.to_all and #self.numbers or 1 do
        local p = lists[k][i]
        if p.grad then p.grad:copy_(parts[k]) else p.grad = parts[k]:clone() end
      end
    end
  end
end

local function sum(self, lists, any, weights, to_all)
  local stale = self.stale or not same_list(any, self.any) or moved(self, lists) or changed(self, lists) or
                self.started > 0 and self.to_all ~= to_all or self.sending and not same_list(self.weights, weights)
  self.early = self.started -- of the last step, for tests
  self.weights, self.to_all = weights, to_all
  if stale then pg().stream(FILLING, lay_out, self, lists, any) end
  pg().stream(FILLING, sum_rest, self, lists)
  give(self, lists)
  for k, seen in ipairs(self.seen) do
    for i = 1, #self.params do self.expected[k][i], seen[i] = seen[i], 0 end
  end
  forget(self)
end

---The gradients of all devices, each times its weight, become their sum: the first device's, and with `to_all` the
---others' too. A parameter that has one on some device only counts as zero on the others; one that has none anywhere
---keeps none.
---@param lists perigee.Tensor[][] the parameters, by device
---@param any boolean[] which have a gradient on some device
---@param weights number[] by device
---@param to_all boolean
function Reducer:sum(lists, any, weights, to_all) pg().no_grad(sum, self, lists, any, weights, to_all) end

---Before a run: what is left of one that failed stays away from this one's streams.
function Reducer:begin() unmark(self) end

---Whether it is one for this list.
---@param params perigee.Tensor[]
---@return boolean
function Reducer:is_for(params) return same_list(self.params, params) end

---@param strategy perigee.Strategy whose `_sending` are the weights of gradients that may be sent now, or nil
---@param params perigee.Tensor[] the first device's
return function(strategy, params)
  local self = setmetatable({ strategy = strategy, numbers = strategy._numbers, params = { unpack(params) },
                              buckets = {}, places = {}, any = {}, seen = {}, expected = {}, weights = {},
                              to_all = false, started = 0, stale = false }, Reducer)
  for k = 1, #self.numbers do
    self.seen[k], self.expected[k] = {}, {}
    for i, p in ipairs(strategy._twins:on(params, k)) do
      self.seen[k][i], self.expected[k][i] = p.grad and 1 or 0, 0
    end
  end
  hook(self)
  return self
end
