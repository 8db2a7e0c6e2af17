-- SPDX-License-Identifier: Apache-2.0
-- Pipelines: a chain of stages over a source with random access. A stage is { count, get(i), gather(positions) }; the
-- order of an epoch is drawn when each() begins. Where all stages are known to the core it runs them (native.data), on
-- threads of its own if workers or prefetch ask for some; otherwise all runs on the script's thread, when the next
-- element is wanted. Both give the same.

local native = require "perigee.native"
local kept = rawget(native, "data.pipeline") -- a script that clears package.loaded gets the same again
if kept then return kept end
local order = require "perigee.data.order"
local collate = require "perigee.data.collate"
local padding = require "perigee.data.padding"
local pass = require "perigee.data.passes"

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
---`native(epoch)`, if there, makes the core's stage for the same.
local function source(stage)
  return new { stage = function() return stage end, native = stage.native or nil, size = stage.count, epoch = 0 }
end

-- `core(stage, epoch)` makes the core's stage over the parent's.
local function derive(parent, size, make, core, batched)
  if type(parent) == "userdata" then parent = fields_of(parent) end
  local below = core and parent.native
  return new { size = size, epoch = 0, batched = batched or parent.batched, functions = parent.functions,
               workers = parent.workers, ahead = parent.ahead, classes = parent.classes,
               stage = function(epoch) return make(parent.stage(epoch), epoch) end,
               native = below and function(epoch) return core(below(epoch), epoch) end }
end

-- As a core function: elements step * k + offset of the parent, which begins again after `modulo`.
local FAR = 2 ^ 53
local function window(count, modulo, step, offset)
  return function(stage) return native.data.window(stage, count, modulo, step, offset) end
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
  return derive(self, count, function(stage) return through(stage, count, function(i) return i end) end,
                window(count, FAR, 1, 0))
end

---All but the first n elements.
---@param n integer
---@return perigee.Dataset
function Dataset:skip(n)
  check_count("skip", n)
  local count = math.max(self.size - n, 0)
  return derive(self, count, function(stage) return through(stage, count, function(i) return i + n end) end,
                window(count, FAR, 1, math.min(n, self.size)))
end

---The pipeline n times over; an order that is drawn by epoch stays the same within one pass.
---@param n integer
---@return perigee.Dataset
function Dataset:repeated(n)
  check_count("repeated", n)
  local size = self.size
  return derive(self, size * n, function(stage)
    return through(stage, size * n, function(i) return (i - 1) % size + 1 end)
  end, window(size * n, size, 1, 0))
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
  end, window(count, FAR, o.n, o.i))
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
  local function drawn(epoch) return order.shuffled(size, o.seed, o.every_epoch and epoch or 1, o.buffer) end
  return derive(self, size, function(stage, epoch)
    local positions = drawn(epoch)
    return through(stage, size, function(i) return tonumber(positions[i]) end)
  end, function(stage, epoch) return native.data.order(stage, drawn(epoch), size) end)
end

local function check_native(where, dataset, what)
  if fields_of(dataset).native then return end
  native.raise("not_supported", where, what .. " need a pipeline that threads can read, and a stage before this " ..
               "one runs on the script's thread",
               "data.from_slices of tensors of the cpu, data.range; every map with workers=; batch without pad=")
end

local last_function = 0 -- numbers of worker functions

local function on_workers(self, fn, workers)
  check_native("map", self, "workers")
  native.workers.pack { fn } -- what cannot go to a worker is told here
  last_function = last_function + 1
  local number, functions = last_function, { [last_function] = fn }
  for k, f in pairs(fields_of(self).functions or {}) do functions[k] = f end
  return number, functions, math.max(fields_of(self).workers or 0, workers)
end

---The name of a class of a pipeline that data.image_folder began.
---@param id integer from 0, as in `y`
---@return string
function Dataset:class_name(id)
  local classes = fields_of(self).classes
  if not classes then
    native.raise("failed_precondition", "class_name", "the pipeline's source has no names of classes")
  end
  if type(id) ~= "number" or not classes[id + 1] then
    native.raise("invalid_argument", "class_name", ("class must be from 0 to %d, got %s"):format(#classes - 1,
                 native.describe(id)))
  end
  return classes[id + 1]
end

local read_map = native.signature("map", {
  { "fn", "function", required = true, type = "fun(sample: any): any", doc = "makes one sample of another" },
  { "workers", "any", named = true, type = "integer|\"auto\"",
    doc = "threads that run it, each in a Lua state of its own; on the script's thread if not given" } })
---fn(sample) -> sample, for each element. With workers it runs in Lua states of their own, on threads: what it refers
---to is copied once (nil, booleans, numbers, strings, plain tables, Lua functions; tensors of the cpu share their
---memory; modules are required again), and random draws in it depend on (seed, epoch, element) alone.
---@return perigee.Dataset
function Dataset:map(...)
  local o = read_map(...)
  local fn, workers, number, functions = o.fn, o.workers, nil, nil
  if workers == "auto" then workers = native.workers.automatic() end
  if workers ~= nil then
    if type(workers) ~= "number" or workers ~= math.floor(workers) or workers < 1 or workers > 1024 then
      native.raise("invalid_argument", "map", "workers must be a count of 1 or more, or \"auto\", got " ..
                   native.describe(workers))
    end
    number, functions, workers = on_workers(self, fn, workers)
  end
  local made = derive(self, self.size, function(stage)
    return { count = stage.count, get = function(i)
      local sample = fn(stage.get(i))
      if sample == nil then native.raise("invalid_argument", "map", "the function returned nil") end
      return sample
    end }
  end, workers and function(stage, epoch) return native.data.map(stage, number, epoch) end)
  if workers then
    local own = fields_of(made)
    own.functions, own.workers = functions, workers
  end
  return made
end

-- An element with its tensors on a device (nil: where they are).
local function moved(v, device)
  if not device then return v end
  if native.is_tensor(v) then return v:to(device) end
  if type(v) ~= "table" then return v end
  local there = {}
  for key, field in pairs(v) do there[key] = moved(field, device) end
  return there
end

local read_prefetch = native.signature("prefetch", {
  { "n", "any", default = "auto", type = "integer|\"auto\"", doc = "elements that are ready at most; auto: 2" },
  { "device", "device", named = true, doc = "where their tensors go, beside what the script computes there" } })
---Elements are made ahead of the script, by a thread (or by map's workers), at most n of them.
---@return perigee.Dataset
function Dataset:prefetch(...)
  local o = read_prefetch(...)
  local n = o.n == "auto" and 2 or o.n
  if type(n) ~= "number" or n ~= math.floor(n) or n < 1 or n > 2 ^ 20 then
    native.raise("invalid_argument", "prefetch", "needs a count of 1 or more, or \"auto\", got " ..
                 native.describe(o.n))
  end
  check_native("prefetch", self, "elements made ahead")
  local made = derive(self, self.size, function(stage)
    return { count = stage.count, get = function(i) return moved(stage.get(i), o.device) end }
  end, function(stage) return o.device and native.data.to_device(stage, native.find_device(o.device)) or stage end)
  fields_of(made).ahead = math.max(fields_of(self).ahead or 0, n)
  return made
end

---Elements of several pipelines side by side, { a, b }: as many as the shortest has.
---@param ... perigee.Dataset
---@return perigee.Dataset
function Dataset:zip(...)
  local parents, size, functions, workers, ahead = { self, ... }, self.size, nil, nil, nil
  local threads = true
  for i, parent in ipairs(parents) do
    if not (type(parent) == "userdata" and debug.getmetatable(parent) == meta) then
      native.raise("invalid_argument", "zip", ("argument %d must be a dataset, got %s"):format(i - 1,
                   native.describe(parent)))
    end
    local own = fields_of(parent)
    size, threads = math.min(size, own.size), threads and own.native
    for k, f in pairs(own.functions or {}) do
      functions = functions or {}
      functions[k] = f
    end
    workers, ahead = own.workers and math.max(workers or 0, own.workers) or workers, own.ahead or ahead
  end
  if #parents == 1 then native.raise("invalid_argument", "zip", "needs another dataset") end
  if functions and not threads then
    native.raise("not_supported", "zip", "a pipeline with workers does not go with one on the script's thread")
  end
  return new { size = size, epoch = 0, batched = self.batched, functions = functions, workers = workers, ahead = ahead,
    stage = function(epoch)
      local stages = {}
      for i, parent in ipairs(parents) do stages[i] = fields_of(parent).stage(epoch) end
      return { count = size, get = function(i)
        local element = {}
        for k, stage in ipairs(stages) do element[k] = stage.get(i) end
        return element
      end }
    end,
    native = threads and function(epoch)
      local stages = {}
      for i, parent in ipairs(parents) do stages[i] = fields_of(parent).native(epoch) end
      return native.data.zip(stages)
    end }
end

local read_batch = native.signature("batch", {
  { "size", "integer", required = true, doc = "elements in a batch" },
  { "drop_last", "boolean", named = true, default = false, doc = "whether a smaller last one is left out" },
  { "pad", "table", named = true, type = "table<string, number|boolean>",
    doc = "fields whose tensors may differ in size, each with the value that fills the smaller ones" } })
---Groups of `size` elements; the last may be smaller. Tensors and numbers of samples are stacked, field by field, also
---in tables with names inside of samples; everything else becomes a list. Tensors of fields that `pad` names are filled
---behind their ends to the largest of the batch along each axis, on the script's thread: `pad={x=0, ["y.ids"]=-1}`.
---@return perigee.Dataset
function Dataset:batch(...)
  local o = read_batch(...)
  if o.size < 1 then native.raise("invalid_argument", "batch", "size must be at least 1, got " .. o.size) end
  local pad, own = o.pad and padding.read(o.pad), fields_of(self)
  if pad and (own.workers or own.ahead) then
    native.raise("not_supported", "batch", "pad= runs on the script's thread, and the stages before it on workers",
                 "map without workers, and no prefetch")
  end
  local elements = self.size
  local count = o.drop_last and math.floor(elements / o.size) or math.ceil(elements / o.size)
  return derive(self, count, function(stage)
    return { count = count, get = function(i)
      local positions, samples = {}, {}
      for k = (i - 1) * o.size + 1, math.min(i * o.size, elements) do positions[#positions + 1] = k end
      if stage.gather and not pad then return stage.gather(positions) end
      for k, position in ipairs(positions) do samples[k] = stage.get(position) end
      return collate(samples, positions, pad)
    end }
  end, not pad and function(stage) return native.data.batch(stage, o.size, o.drop_last) end, true)
end

require "perigee.data.buckets"(Dataset, fields_of, derive)

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
  local fixed = { batched = own.batched, functions = own.functions, workers = own.workers, ahead = own.ahead,
                  stage = function() return own.stage(1) end,
                  native = own.native and function() return own.native(1) end }
  return derive(fixed, last - first, function(stage)
    return through(stage, last - first, function(i) return first + i end)
  end, window(last - first, FAR, 1, first))
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
  return pass(own, from and from.position or 0)
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

-- The pipeline, which says how its classes are called.
local function named(ds, classes)
  fields_of(ds).classes = classes
  return ds
end

local pipeline = { source = source, is_dataset = is_dataset, named = named }
rawset(native, "data.pipeline", pipeline)
return pipeline
