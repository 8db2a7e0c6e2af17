-- SPDX-License-Identifier: Apache-2.0
-- Passes over a pipeline: what each() returns.

local native = require "perigee.native"
local watch = require "perigee.data.watch"

---What ds:each() returns: call it for the next step and element.
---@class perigee.Iterator
---@field epoch integer whose order it has
---@field position integer how many elements it has given
---@field size integer? nil where the pipeline's length is unknown
---@overload fun(): integer?, any
local Iterator = {}
Iterator.__index = Iterator
local next_element = native.data.next_element

local AT_ONCE = 32 -- what threads wait for, before somebody looks whether an element is ready

local function serve(feeds, most)
  for _ = 1, most do
    if not feeds:serve() then return end
  end
end

-- Of a run: what its threads wait for is made before its next element is looked for, but not before its first.
local function from_run(self)
  local run = self.run or self:begin()
  local feeds = self.feeds
  if feeds and self.fed then
    serve(feeds, math.huge)
  end
  local element, again
  repeat
    element, again = next_element(run, feeds)
    if again == "asked" then serve(feeds, AT_ONCE) end
  until not again
  self.fed = true
  return element
end

-- The next element, or nil behind the last. Functions of the script see what they see on workers: no device in force.
local function made_next(self)
  if self.peeked ~= nil then
    local element = self.peeked
    self.peeked = nil
    return element
  end
  if self.closed or self.position == self.size then return nil end
  if self.stage then return (self.stage.get(self.position + 1)) end
  if self.next then return self.next() end
  return from_run(self)
end

local function advance(self)
  if native.undisturbed() then return made_next(self) end
  return native.without_device(made_next, self)
end

-- Without threads, which go on from here when they are wanted again.
local function rest(iterator)
  local run, feeds = iterator.run, iterator.feeds
  iterator.run, iterator.feeds = nil, nil
  while run and not native.data.close_run(run) do end -- luacheck: ignore 542
  if feeds then feeds:close() end
end

function Iterator:__call()
  local element = advance(self)
  if element == nil then
    self:close()
    return nil
  end
  local position = self.position + 1
  self.position = position
  if position == self.size then
    if self.feeds then rest(self) end
    self.run = nil -- its threads have left or are about to
  end
  return position, element
end

---Where it stands, as a plain table: for `ds:each{from=state}`.
---@return { epoch: integer, position: integer, size: integer? }
function Iterator:state() return { epoch = self.epoch, position = self.position, size = self.size } end

---Whether no element follows. Where the length is unknown, the next one is made to see that.
---@return boolean
function Iterator:is_last()
  if self.closed then return true end
  if self.size then return self.position == self.size end
  if self.peeked == nil then self.peeked = advance(self) end
  return self.peeked == nil
end

---Ends it: further calls answer nil, and its threads have left.
function Iterator:close()
  self.closed, self.peeked = true, nil
  rest(self)
  if self.stop then self.stop() end
end

native.checked.class(Iterator, { noun = "an iterator of a dataset", call = "iterator", open = true })

-- Elements up to a position are made again, and dropped, where they come one after the other; what functions of the
-- script draw for them has been drawn before.
local function go_to(self, position)
  local seed, offset = native.rng_state()
  for _ = 1, position do
    if native.without_device(self.next) == nil then
      native.raise("invalid_argument", "each", ("from is at position %d, and the pipeline ends before"):format(
                     position))
    end
  end
  if position > 0 then native.set_rng_state(seed, offset) end
end

local MOST_AHEAD, MEMORY = 256, 2 ^ 30 -- of "auto": elements, and bytes of them

-- How a run works: counts that are "auto" begin low and go up while the script waits.
local function pace_of(own, threads)
  local tunes = own.tunes or {}
  local ahead = tunes.ahead and MOST_AHEAD or math.max(own.ahead or 1, 2 * (own.workers or 0))
  return { threads = threads, capacity = ahead, tunes_threads = tunes.workers and 1 or 0,
           tunes_capacity = tunes.ahead and 1 or 0, memory = tunes.memory or MEMORY }
end

-- With threads, an earlier pass of the pipeline lets go of its own: a loop that was left by break cannot say so.
local function begin_run(own, top)
  local threads = (own.workers or own.ahead) and 1 or 0
  return function(iterator)
    local earlier = own.running and own.running[1]
    if earlier and earlier ~= iterator then rest(earlier) end
    if own.workers and not own.crew then
      own.packed = native.workers.pack(own.functions)
      own.crew = native.workers.create(own.packed, own.workers)
    end
    if threads > 0 then own.running = setmetatable({ iterator }, { __mode = "v" }) end
    local stage, feeds = top(iterator.epoch)
    iterator.feeds, iterator.fed = feeds, false
    local begin = iterator.position + (iterator.peeked ~= nil and 1 or 0)
    iterator.run = native.data.start_run(stage, begin, pace_of(own, threads), own.crew, feeds)
    return iterator.run
  end
end

-- Makes the core's stage of an epoch, and what feeds it: one for all times where any position can be asked for.
local function top_of(own, epoch)
  local function make()
    local feeds = not own.pure and native.data.feeds() or nil
    local stage = own.native(epoch, feeds)
    local now = watch.now()
    if now then stage = now:core(own, stage) end
    return { stage, feeds }
  end
  local made = make() -- now: orders and seeds are drawn when each() is called
  return function()
    local one = made or make()
    if own.in_order or not own.pure then made = nil end
    return one[1], one[2]
  end
end

---The pass of an epoch from a position on.
---@param own table of the dataset: what its proxy shows
---@param position integer
---@param epoch integer
return function(own, position, epoch)
  local self = setmetatable({ epoch = epoch, size = own.size, position = position }, Iterator)
  if own.pure or own.workers or own.ahead then
    self.begin = begin_run(own, top_of(own, epoch))
  elseif own.in_order then
    self.next, self.stop = own.pull(epoch)
    go_to(self, position)
  else
    self.stage = own.stage(epoch)
  end
  return self
end
