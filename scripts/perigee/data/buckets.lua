-- SPDX-License-Identifier: Apache-2.0
-- Batches of samples of about one length.

local native = require "perigee.native"
local order = require "perigee.data.order"
local collate = require "perigee.data.collate"
local padding = require "perigee.data.padding"
local base = require "perigee.data.dataset"
local Dataset, fields_of = base.Dataset, base.fields_of

local function refuse(text, hint) native.raise("invalid_argument", "bucket_by_length", text, hint) end

local function check_boundaries(boundaries)
  local last = 0
  for i, b in ipairs(boundaries) do
    if type(b) ~= "number" or b ~= math.floor(b) or b <= last or b == math.huge then
      refuse(("boundary %d must be an integer above %d, got %s"):format(i, last, native.describe(b)))
    end
    last = b
  end
  if #boundaries == 0 then refuse("needs boundaries", "boundaries={16, 32, 64}") end
end

-- Elements in a batch, by bucket.
local function read_sizes(size, buckets)
  local sizes = {}
  local list = type(size) == "table"
  if list and #size ~= buckets then
    refuse(("size has %d counts, and there are %d buckets: one more than boundaries"):format(#size, buckets))
  end
  for b = 1, buckets do
    local n = size
    if list then n = size[b] end
    if type(n) ~= "number" or n ~= math.floor(n) or n < 1 or n == math.huge then
      refuse("size must be a count of 1 or more, or a list of them, got " .. native.describe(n))
    end
    sizes[b] = n
  end
  return sizes
end

-- The length of sample i, by the name of a field or a function.
local function length_of(sample, by, i)
  local length
  if type(by) == "string" then
    local value = type(sample) == "table" and sample[by]
    if value == nil or value == false then
      refuse(("sample %d has no %q"):format(i, by))
    elseif native.is_tensor(value) and value:dim() > 0 then
      length = value:size(1)
    elseif native.is_plain(value) or type(value) == "string" then
      length = #value
    else
      refuse(("%s of sample %d is %s, which has no length"):format(by, i, native.describe(value)))
    end
  else
    length = by(sample)
    if type(length) ~= "number" or length ~= length then
      refuse(("the function must return a length, got %s of sample %d"):format(native.describe(length), i))
    end
  end
  return length
end

local function reordered(list, seed, epoch)
  if #list < 2 then return list end
  local positions, mixed = order.shuffled(#list, seed, epoch), {}
  for i = 1, #list do mixed[i] = list[tonumber(positions[i])] end
  return mixed
end

local read_bucket = native.signature("bucket_by_length", {
  { "by", "any", required = true, type = "string|fun(sample: any): integer",
    doc = "the field whose length counts (its first axis), or a function that answers the length" },
  { "boundaries", "table", required = true, named = true, type = "integer[]",
    doc = "rising: the longest that a bucket takes; a last bucket takes what is longer than all" },
  { "size", "any", required = true, named = true, type = "integer|integer[]",
    doc = "elements in a batch, of all buckets or of each" },
  { "pad", "table", named = true, type = "table<string, number|boolean>", doc = "as batch has it" },
  { "drop_last", "boolean", named = true, default = false, doc = "whether a bucket's smaller last batch is left out" },
  { "shuffle", "boolean", named = true, default = true, doc = "whether each epoch has an order of its own" },
  { "seed", "integer", named = true, default = 0, doc = "of the order" } })

---Batches of samples whose lengths are alike, so that little is padded:
---`ds:bucket_by_length{"ids", boundaries={16, 64}, size={64, 16, 4}, pad={ids=0}}`. A sample goes to the first bucket
---whose boundary its length does not exceed. All samples are read once for their lengths; a shuffle before keeps its
---first order, as in split. Each epoch mixes the samples of a bucket, and the batches of all. Runs on the script's
---thread.
---@return perigee.Dataset
function Dataset:bucket_by_length(...)
  local o, own = read_bucket(...), fields_of(self)
  if type(o.by) ~= "string" and type(o.by) ~= "function" then
    refuse("by must be a field's name or a function, got " .. native.describe(o.by))
  end
  if own.in_order or base.has_threads(own) then
    native.raise("not_supported", "bucket_by_length", "it reads elements by position on the script's thread, and " ..
                 "stages before it run on workers or give them one after the other",
                 "map without workers, no filter, and no prefetch before it")
  end
  check_boundaries(o.boundaries)
  local boundaries, pad = { unpack(o.boundaries) }, o.pad and padding.read(o.pad)
  local sizes, members, count = read_sizes(o.size, #boundaries + 1), {}, 0
  for b = 1, #sizes do members[b] = {} end
  local stage = own.stage(1)
  local function length_at(i) return length_of(stage.get(i), o.by, i) end
  for i = 1, self.size do
    local length, b = native.without_device(length_at, i), 1
    while boundaries[b] and length > boundaries[b] do b = b + 1 end
    members[b][#members[b] + 1] = i
  end
  for b, list in ipairs(members) do
    count = count + (o.drop_last and math.floor or math.ceil)(#list / sizes[b])
  end
  local what = base.of_function("bucket_by_length", { o.by, boundaries, sizes, o.pad or false, o.shuffle, o.seed })
  local fixed = { batched = own.batched, classes = own.classes, parents = { own }, what = "in its first order",
                  stage = function() return own.stage(1) end }
  local forms = { name = "bucket_by_length", size = count, batched = true, what = what }
  function forms.stage(parent, epoch)
    local batches = {}
    for b, list in ipairs(members) do
      local mixed = o.shuffle and reordered(list, o.seed + b, epoch) or list
      for first = 1, #mixed, sizes[b] do
        local batch = { unpack(mixed, first, math.min(first + sizes[b] - 1, #mixed)) }
        if #batch == sizes[b] or not o.drop_last then batches[#batches + 1] = batch end
      end
    end
    if o.shuffle then batches = reordered(batches, o.seed, epoch) end
    return { count = count, get = function(i)
      local samples = {}
      for k, position in ipairs(batches[i]) do samples[k] = parent.get(position) end
      return collate(samples, batches[i], pad)
    end }
  end
  return base.derive(fixed, forms)
end
