-- SPDX-License-Identifier: Apache-2.0
-- Stages that choose among elements, or order them.

local native = require "perigee.native"
local order = require "perigee.data.order"
local base = require "perigee.data.dataset"
local Dataset, fields_of, derive = base.Dataset, base.fields_of, base.derive

local M = {}

-- As a core function: elements step * k + offset of the parent, which begins again after `modulo`.
local FAR = 2 ^ 53
local function window(count, modulo, step, offset)
  return function(stage) return native.data.window(stage, count, modulo, step, offset) end
end

function M.check_count(where, n)
  if type(n) ~= "number" or n ~= math.floor(n) or n < 0 or n == math.huge then
    native.raise("invalid_argument", where, "needs a count of 0 or more, got " .. native.describe(n))
  end
end
local check_count = M.check_count

-- The stage seen through a list or function of positions.
local function through(stage, count, position)
  local gather = stage.gather and function(positions)
    local mapped = {}
    for i, p in ipairs(positions) do mapped[i] = position(p) end
    return stage.gather(mapped)
  end
  return { count = count, get = function(i) return stage.get(position(i)) end, gather = gather }
end

-- Elements offset + 1, offset + 1 + step, ... as they come, at most `count`.
local function every(next_, count, step, offset)
  local given = 0
  return function()
    if given == count then return nil end
    for _ = 1, given == 0 and offset or step - 1 do
      if next_() == nil then
        count = given
        return nil
      end
    end
    given = given + 1
    return next_()
  end
end

-- `count` elements of a parent: number step * k + offset, from 0.
local function chosen(name, parent, count, step, offset, size)
  local what = ("elements %.0f + %.0f i, %.0f of them"):format(offset, step, count)
  return derive(parent, { name = name, size = size, what = what, native = window(count, FAR, step, offset),
    stage = function(stage) return through(stage, count, function(k) return (k - 1) * step + offset + 1 end) end,
    pull = function(next_) return every(next_, count, step, offset) end })
end

---The first n elements.
---@param n integer
---@return perigee.Dataset
function Dataset:take(n)
  check_count("take", n)
  local count = math.min(n, self.size or n)
  return chosen("take", self, count, 1, 0, (self.size or n == 0) and count or nil)
end

---All but the first n elements.
---@param n integer
---@return perigee.Dataset
function Dataset:skip(n)
  check_count("skip", n)
  local size = self.size and math.max(self.size - n, 0)
  return chosen("skip", self, size or FAR, 1, math.min(n, self.size or n), size)
end

---The pipeline n times over; an order that is drawn by epoch stays the same within one pass.
---@param n integer
---@return perigee.Dataset
function Dataset:repeated(n)
  check_count("repeated", n)
  if n == 0 then return self:take(0) end
  local size, in_order = self.size, fields_of(self).in_order
  local all = size and size * n
  return derive(self, { name = "repeated", size = all, what = ("repeated %d"):format(n),
    stage = function(stage) return through(stage, all, function(i) return (i - 1) % size + 1 end) end,
    pull = function(next_, _, restart)
      local left, some = n - 1, false
      return function()
        local element = next_()
        while element == nil and left > 0 and some do
          left, some, next_ = left - 1, false, restart()
          element = next_()
        end
        some = true
        return element
      end
    end,
    native = in_order and function(stage) return native.data.repeated(stage, n) end or window(all, size, 1, 0) })
end

local read_shard = native.signature("shard", {
  { "n", "integer", required = true, doc = "how many shards" },
  { "i", "integer", required = true, doc = "which one, from 0" } })
---Every n-th element, beginning with element i, which counts from 0.
---@return perigee.Dataset
function Dataset:shard(...)
  local o = read_shard(...)
  if o.n < 1 or o.i < 0 or o.i >= o.n then
    native.raise("invalid_argument", "shard", ("shard %d of %d does not exist"):format(o.i, o.n), "shards count from 0")
  end
  local size = self.size and math.max(math.ceil((self.size - o.i) / o.n), 0)
  return chosen("shard", self, size or FAR, o.n, o.i, size)
end

-- Elements that come one after the other through a buffer: the same order as by positions.
local function mixed(next_, buffer, draw)
  local held, came, gone, ended = {}, 0, 0, false
  return function()
    while not ended and came < gone + buffer do
      local element = next_()
      if element == nil then ended = true else
        held[came % buffer], came = element, came + 1
      end
    end
    if gone == came then return nil end
    local at, chosen_at = gone % buffer, (gone + draw(gone, math.min(came - gone, buffer))) % buffer
    local element = held[chosen_at]
    held[chosen_at], held[at] = held[at], nil
    gone = gone + 1
    return element
  end
end

local read_shuffle = native.signature("shuffle", {
  { "buffer", "integer", doc = "how far an element may travel; as far as it likes if not given" },
  { "seed", "integer", named = true, default = 0, doc = "of the order" },
  { "every_epoch", "boolean", named = true, default = true, doc = "whether each epoch has an order of its own" } })
---A new order at every each(). `buffer` limits how far an element may travel; without it all orders are possible.
---Elements that come one after the other (of a generator, a filter, or behind a function of the script that stands
---behind workers) pass through a buffer in memory, and need its size. What take and skip leave of it is another choice
---at every each(); the parts of split stay apart.
---@param ... any buffer?, seed=, every_epoch=true
---@return perigee.Dataset
function Dataset:shuffle(...)
  local o = read_shuffle(...)
  if o.buffer and o.buffer < 1 then native.raise("invalid_argument", "shuffle", "buffer must be at least 1") end
  local size, in_order = self.size, fields_of(self).in_order
  if in_order and not o.buffer then
    native.raise("invalid_argument", "shuffle", "elements come one after the other here, so that it needs a buffer",
                 "shuffle{10000}, or shuffle before filter and before functions of the script behind workers")
  end
  local function epoch_of(epoch) return o.every_epoch and epoch or 1 end
  local function drawn(epoch) return order.shuffled(size, o.seed, epoch_of(epoch), o.buffer) end
  local what = ("shuffle %s seed %.0f %s"):format(o.buffer or "all", o.seed, tostring(o.every_epoch))
  return derive(self, { name = "shuffle", size = size, what = what,
    stage = function(stage, epoch)
      local positions = drawn(epoch)
      return through(stage, size, function(i) return tonumber(positions[i]) end)
    end,
    pull = function(next_, epoch) return mixed(next_, o.buffer, order.steps(o.seed, epoch_of(epoch))) end,
    native = function(stage, epoch)
      local make = in_order and native.data.mix or native.data.shuffle
      return make(stage, order.keys(o.seed, epoch_of(epoch), o.buffer or math.max(size, 1)))
    end })
end

-- Elements first + 1 .. last, in the order of the first epoch at each.
local function part_of(dataset, first, last)
  return chosen("split", base.first_epoch(fields_of(dataset)), last - first, 1, first, last - first)
end

---Parts by fraction: local train, test = ds:split{0.8, 0.2}. The last takes what rounding leaves. No element is ever in
---two of them: a shuffle that comes before keeps its first order in them; one behind train gives it an order an epoch.
---@param ... number|number[]
---@return perigee.Dataset ...
function Dataset:split(...)
  local fractions = native.is_plain((...)) and (...) or { ... }
  local sum, parts, begin = 0, {}, 0
  for i, f in ipairs(fractions) do
    if type(f) ~= "number" or not (f >= 0 and f <= 1) then
      native.raise("invalid_argument", "split", ("fraction %d must be in [0, 1], got %s"):format(i, native.describe(f)))
    end
    sum = sum + f
  end
  if #fractions == 0 or sum > 1 + 1e-9 then
    native.raise("invalid_argument", "split", ("the fractions sum to %g, expected at most 1"):format(sum))
  end
  local size = self.size
  if not size then
    native.raise("failed_precondition", "split", base.NO_LENGTH, "split before it, or ds:take(n) and ds:skip(n)")
  end
  local reached = 0
  for i, f in ipairs(fractions) do
    reached = reached + f
    local stop = math.min(math.floor(reached * size + 0.5), size)
    if i == #fractions and sum > 1 - 1e-9 then stop = size end
    parts[i] = part_of(self, begin, stop)
    begin = stop
  end
  return unpack(parts)
end

return M
