-- SPDX-License-Identifier: Apache-2.0
-- Pipelines: a chain of stages over a source with random access. A stage is { count, get(i), gather(positions) }; the
-- order of an epoch is drawn when each() begins. All runs on the script's thread, when the next element is wanted.

local native = require "perigee.native"
local kept = rawget(native, "data.pipeline") -- a script that clears package.loaded gets the same again
if kept then return kept end
local order = require "perigee.data.order"
local collate = require "perigee.data.collate"

---@class perigee.Dataset
---@field size integer how many elements, as #
---@field batched boolean? whether elements are batches
---@field [integer] any an element, as at()
---@operator len: integer
local Dataset = {}

-- Lua 5.1 asks no metamethod for # of a table, but does so for a userdata: a dataset is a proxy of its fields, which
-- are its environment. (A weak table of them would keep what fields refer to: a parent, and its data.)
local template = newproxy(true)
local meta = getmetatable(template)
local fields_of, set_fields = debug.getfenv, debug.setfenv

function meta.__index(self, key)
  local method = Dataset[key]
  if method ~= nil then return method end
  if type(key) == "number" then return Dataset.at(self, key) end
  local value = fields_of(self)[key]
  if value == nil and type(key) == "string" and key ~= "batched" then
    local names = {}
    for name in pairs(Dataset) do names[#names + 1] = name end
    local near = native.suggest(key, names)
    native.raise("not_found", nil, ("a dataset has no %q"):format(key), near and ("did you mean %q?"):format(near))
  end
  return value
end
function meta.__call()
  native.raise("invalid_argument", "data", "a dataset is no iterator", "for step, batch in ds:each() do")
end
function meta.__newindex(_, key)
  native.raise("invalid_argument", "data", ("a dataset has no settable field %q"):format(tostring(key)))
end
function meta.__len(self) return fields_of(self).size end
function meta.__tostring(self) return ("Dataset(%d %s)"):format(self.size, self.batched and "batches" or "samples") end

local function new(own)
  local self = newproxy(template)
  set_fields(self, own)
  return self
end

---A pipeline over { count, get, gather }; gather(positions), if there, gets many elements as one batch.
local function source(stage) return new { stage = function() return stage end, size = stage.count, epoch = 0 } end

local function derive(parent, size, make, batched)
  return new { size = size, epoch = 0, batched = batched or parent.batched,
               stage = function(epoch) return make(parent.stage(epoch), epoch) end }
end

local function check_count(where, n)
  if type(n) ~= "number" or n ~= math.floor(n) or n < 0 or n == math.huge then
    native.raise("invalid_argument", where, "needs a count of 0 or more, got " .. native.describe(n))
  end
end

-- The stage seen through a list or function of positions.
local function through(stage, count, position)
  local gather = stage.gather and function(positions)
    local mapped = {}
    for i, p in ipairs(positions) do mapped[i] = position(p) end
    return stage.gather(mapped)
  end
  return { count = count, get = function(i) return stage.get(position(i)) end, gather = gather }
end

---The first n elements.
---@param n integer
---@return perigee.Dataset
function Dataset:take(n)
  check_count("take", n)
  local count = math.min(n, self.size)
  return derive(self, count, function(stage) return through(stage, count, function(i) return i end) end)
end

---All but the first n elements.
---@param n integer
---@return perigee.Dataset
function Dataset:skip(n)
  check_count("skip", n)
  local count = math.max(self.size - n, 0)
  return derive(self, count, function(stage) return through(stage, count, function(i) return i + n end) end)
end

---The pipeline n times over; an order that is drawn by epoch stays the same within one pass.
---@param n integer
---@return perigee.Dataset
function Dataset:repeated(n)
  check_count("repeated", n)
  local size = self.size
  return derive(self, size * n, function(stage)
    return through(stage, size * n, function(i) return (i - 1) % size + 1 end)
  end)
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
  local count = math.max(math.ceil((self.size - o.i) / o.n), 0)
  return derive(self, count, function(stage)
    return through(stage, count, function(k) return (k - 1) * o.n + o.i + 1 end)
  end)
end

local read_shuffle = native.signature("shuffle", {
  { "buffer", "integer", doc = "how far an element may travel; as far as it likes if not given" },
  { "seed", "integer", named = true, default = 0, doc = "of the order" },
  { "every_epoch", "boolean", named = true, default = true, doc = "whether each epoch has an order of its own" } })
---A new order at every each(). `buffer` limits how far an element may travel; without it all orders are possible. What
---take and skip leave of it is another choice at every each(); the parts of split stay apart.
---@param ... any buffer?, seed=, every_epoch=true
---@return perigee.Dataset
function Dataset:shuffle(...)
  local o = read_shuffle(...)
  if o.buffer and o.buffer < 1 then native.raise("invalid_argument", "shuffle", "buffer must be at least 1") end
  local size = self.size
  return derive(self, size, function(stage, epoch)
    local positions = order.shuffled(size, o.seed, o.every_epoch and epoch or 1, o.buffer)
    return through(stage, size, function(i) return positions[i] end)
  end)
end

local read_map = native.signature("map", {
  { "fn", "function", required = true, type = "fun(sample: any): any", doc = "makes one sample of another" } })
---fn(sample) -> sample, for each element, on the script's thread.
---@return perigee.Dataset
function Dataset:map(...)
  local fn = read_map(...).fn
  return derive(self, self.size, function(stage)
    return { count = stage.count, get = function(i)
      local sample = fn(stage.get(i))
      if sample == nil then native.raise("invalid_argument", "map", "the function returned nil") end
      return sample
    end }
  end)
end

local read_batch = native.signature("batch", {
  { "size", "integer", required = true, doc = "elements in a batch" },
  { "drop_last", "boolean", named = true, default = false, doc = "whether a smaller last one is left out" } })
---Groups of `size` elements; the last may be smaller. Tensors and numbers of samples are stacked, field by field, also
---in tables with names inside of samples; everything else becomes a list.
---@return perigee.Dataset
function Dataset:batch(...)
  local o = read_batch(...)
  if o.size < 1 then native.raise("invalid_argument", "batch", "size must be at least 1, got " .. o.size) end
  local elements = self.size
  local count = o.drop_last and math.floor(elements / o.size) or math.ceil(elements / o.size)
  return derive(self, count, function(stage)
    return { count = count, get = function(i)
      local positions, samples = {}, {}
      for k = (i - 1) * o.size + 1, math.min(i * o.size, elements) do positions[#positions + 1] = k end
      if stage.gather then return stage.gather(positions) end
      for k, position in ipairs(positions) do samples[k] = stage.get(position) end
      return collate(samples, positions[1])
    end }
  end, true)
end

---Element i of the pipeline, from 1, or from the end where negative, in the order of the current epoch: `ds[i]`.
---@param i integer
---@return table
function Dataset:at(i)
  local own = fields_of(self)
  local at = type(i) == "number" and i < 0 and own.size + 1 + i or i
  if type(i) ~= "number" or i ~= math.floor(i) or at < 1 or at > own.size then
    native.raise("invalid_argument", "data", ("there is no element %s of %d"):format(tostring(i), own.size),
                 "they count from 1")
  end
  local epoch = math.max(own.epoch, 1)
  if own.seen_epoch ~= epoch then own.seen_epoch, own.seen_stage = epoch, own.stage(epoch) end
  return own.seen_stage.get(at)
end

-- Elements first + 1 .. last, in the order of the first epoch at each.
local function part_of(dataset, first, last)
  local own = fields_of(dataset)
  return derive({ batched = own.batched, stage = function() return own.stage(1) end }, last - first, function(stage)
    return through(stage, last - first, function(i) return first + i end)
  end)
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
  local reached = 0
  for i, f in ipairs(fractions) do
    reached = reached + f
    local stop = math.min(math.floor(reached * self.size + 0.5), self.size)
    if i == #fractions and sum > 1 - 1e-9 then stop = self.size end
    parts[i] = part_of(self, begin, stop)
    begin = stop
  end
  return unpack(parts)
end

---What ds:each() returns: call it for the next step and element.
---@class perigee.Iterator
---@field epoch integer whose order it has
---@field position integer how many elements it has given
---@field size integer
---@overload fun(): integer?, any
local Iterator = {}
Iterator.__index = Iterator
function Iterator:__call()
  local stage = self.stage
  if not stage or self.position >= stage.count then return nil end
  local position = self.position + 1
  local element = stage.get(position)
  self.position = position
  return position, element
end

---Where it stands, as a plain table: for `ds:each{from=state}`.
---@return { epoch: integer, position: integer, size: integer }
function Iterator:state() return { epoch = self.epoch, position = self.position, size = self.size } end

---Ends it: further calls answer nil.
function Iterator:close() self.stage = nil end

local function check_position(own, from)
  for _, key in ipairs { "epoch", "position", "size" } do
    local count = from[key]
    if count == nil then
      native.raise("invalid_argument", "each", "from must be what state() returned: it has no " .. key)
    end
    if type(count) ~= "number" or count < 0 or count ~= math.floor(count) then
      native.raise("invalid_argument", "each", ("from must be what state() returned: its %s is %s"):format(key,
                   native.describe(count)))
    end
  end
  if from.size ~= own.size then
    native.raise("invalid_argument", "each", ("from is a position in a pipeline of %d; this one has %d"):format(
                   from.size, own.size))
  end
  if from.position > from.size then
    native.raise("invalid_argument", "each", ("from is at position %d of %d"):format(from.position, from.size))
  end
end

native.checked.class(Iterator, { noun = "an iterator of a dataset", call = "iterator", open = true })

local read_each = native.signature("each", { { "from", "table", named = true, doc = "what state() returned" } })
---`for step, element in ds:each() do`. Each call draws a new epoch's order. What it returns has :state() and :close();
---`ds:each{from=state}` goes on behind that state, in the same order.
---@param ... { from: table? }
---@return perigee.Iterator|fun(): integer?, any
function Dataset:each(...)
  local own = fields_of(self)
  local from = select("#", ...) > 0 and read_each(...).from or nil
  if from then
    check_position(own, from)
    own.epoch = from.epoch
  else
    own.epoch = own.epoch + 1
  end
  return setmetatable({ stage = own.stage(own.epoch), epoch = own.epoch, size = own.size,
                        position = from and from.position or 0 }, Iterator)
end

---How many orders have been drawn: each() takes the next. Set it to go on where another process was.
---@param set? integer
---@return integer
function Dataset:epoch(set)
  local own = fields_of(self)
  if set ~= nil then
    check_count("epoch", set)
    own.epoch = set
  end
  return own.epoch
end

---Whether v is a data set.
---@param v any anything
---@return boolean
local function is_dataset(v) return type(v) == "userdata" and debug.getmetatable(v) == meta end

native.checked.class(Dataset, { noun = "a dataset", call = "ds", is = is_dataset, open = true })

local pipeline = { source = source, is_dataset = is_dataset }
rawset(native, "data.pipeline", pipeline)
return pipeline
