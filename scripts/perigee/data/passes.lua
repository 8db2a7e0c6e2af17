-- SPDX-License-Identifier: Apache-2.0
-- Passes over a pipeline: what each() returns.

local native = require "perigee.native"

---What ds:each() returns: call it for the next step and element.
---@class perigee.Iterator
---@field epoch integer whose order it has
---@field position integer how many elements it has given
---@field size integer
---@overload fun(): integer?, any
local Iterator = {}
Iterator.__index = Iterator
local next_element = native.data.next_element
function Iterator:__call()
  local position = self.position + 1
  if self.closed or position > self.size then return nil end
  if self.stage then
    local element = self.stage.get(position)
    self.position = position
    return position, element
  end
  local run = self.run or self:begin()
  local element, again
  repeat element, again = next_element(run) until not again
  self.position = position
  if position == self.size then self.run = nil end -- its threads have left or are about to
  return position, element
end

-- Without threads, which go on from here when they are wanted again.
local function rest(iterator)
  local run = iterator.run
  iterator.run = nil
  while run and not native.data.close_run(run) do end -- luacheck: ignore 542
end

---Where it stands, as a plain table: for `ds:each{from=state}`.
---@return { epoch: integer, position: integer, size: integer }
function Iterator:state() return { epoch = self.epoch, position = self.position, size = self.size } end

---Ends it: further calls answer nil, and its threads have left.
function Iterator:close()
  self.closed = true
  rest(self)
end

native.checked.class(Iterator, { noun = "an iterator of a dataset", call = "iterator", open = true })

-- The pass of own.epoch from a position on. With threads, an earlier pass of the pipeline lets go of its own: a loop
-- that was left by break cannot say so.
---@param own table of the dataset: what its proxy shows
---@param position integer
local function pass(own, position)
  local self = { epoch = own.epoch, size = own.size, position = position }
  if not own.native then
    self.stage = own.stage(own.epoch)
    return setmetatable(self, Iterator)
  end
  local top = own.native(own.epoch)
  local threads = (own.workers or own.ahead) and 1 or 0
  function self.begin(iterator)
    local earlier = own.running and own.running[1]
    if earlier and earlier ~= iterator then rest(earlier) end
    if own.workers and not own.crew then
      own.packed = native.workers.pack(own.functions)
      own.crew = native.workers.create(own.packed, own.workers)
    end
    if threads > 0 then own.running = setmetatable({ iterator }, { __mode = "v" }) end
    local ahead = math.max(own.ahead or 1, 2 * (own.workers or 0))
    iterator.run = native.data.start_run(top, iterator.position, threads, ahead, own.crew)
    return iterator.run
  end
  return setmetatable(self, Iterator)
end

return pass
