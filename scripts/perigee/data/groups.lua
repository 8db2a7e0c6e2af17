-- SPDX-License-Identifier: Apache-2.0
-- Stages that put elements together, and pipelines: batch, zip, interleave.

local native = require "perigee.native"
local base = require "perigee.data.dataset"
local collate = require "perigee.data.collate"
local padding = require "perigee.data.padding"
local Dataset, fields_of, derive = base.Dataset, base.fields_of, base.derive

local read_batch = native.signature("batch", {
  { "size", "integer", required = true, doc = "elements in a batch" },
  { "drop_last", "boolean", named = true, default = false, doc = "whether a smaller last one is left out" },
  { "pad", "table", named = true, type = "table<string, number|boolean>",
    doc = "fields whose tensors may differ in size, each with the value that fills the smaller ones" } })

-- Batches of what comes one after the other.
local function grouped(next_, o, pad)
  local done = 0
  return function()
    local samples, positions = {}, {}
    while #samples < o.size do
      local sample = next_()
      if sample == nil then break end
      samples[#samples + 1], positions[#samples + 1] = sample, done + #samples + 1
    end
    done = done + #samples
    if #samples == 0 or o.drop_last and #samples < o.size then return nil end
    return collate(samples, positions, pad)
  end
end

---Groups of `size` elements; the last may be smaller. Tensors and numbers of samples are stacked, field by field, also
---in tables with names inside of samples; everything else becomes a list. Tensors of fields that `pad` names are filled
---behind their ends to the largest of the batch along each axis, on the script's thread: `pad={x=0, ["y.ids"]=-1}`.
---@return perigee.Dataset
function Dataset:batch(...)
  local o = read_batch(...)
  if o.size < 1 then native.raise("invalid_argument", "batch", "size must be at least 1, got " .. o.size) end
  local pad, elements = o.pad and padding.read(o.pad), self.size
  local count = elements and (o.drop_last and math.floor or math.ceil)(elements / o.size)
  local what = ("batch %d %s"):format(o.size, tostring(o.drop_last))
  if pad then what = base.of_function(what .. " pad", pad) end
  return derive(self, { name = "batch", size = count, batched = true, what = what,
    stage = function(stage)
      return { count = count, get = function(i)
        local positions, samples = {}, {}
        for k = (i - 1) * o.size + 1, math.min(i * o.size, elements) do positions[#positions + 1] = k end
        if stage.gather and not pad then return stage.gather(positions) end
        for k, position in ipairs(positions) do samples[k] = stage.get(position) end
        return collate(samples, positions, pad)
      end }
    end,
    pull = function(next_) return grouped(next_, o, pad) end,
    native = not pad and function(stage) return native.data.batch(stage, o.size, o.drop_last) end or nil })
end

local function check_parents(parents)
  for i, parent in ipairs(parents) do
    if not base.is_dataset(parent) then
      native.raise("invalid_argument", "zip", ("argument %d must be a dataset, got %s"):format(i - 1,
                   native.describe(parent)))
    end
  end
  if #parents == 1 then native.raise("invalid_argument", "zip", "needs another dataset") end
end

-- What several pipelines have together.
local function merged(parents)
  local all = { size = fields_of(parents[1]).size, pure = true, stage = true, native = true }
  for _, parent in ipairs(parents) do
    local own = fields_of(parent)
    all.size = all.size and own.size and math.min(all.size, own.size)
    all.pure, all.stage = all.pure and own.pure, all.stage and own.stage and true
    all.in_order = all.in_order or own.in_order
    for k, f in pairs(own.functions or {}) do
      all.functions = all.functions or {}
      all.functions[k] = f
    end
    all.workers = own.workers and math.max(all.workers or 0, own.workers) or all.workers
    for key, v in pairs(own.tunes or {}) do
      all.tunes = all.tunes or {}
      all.tunes[key] = v
    end
    all.ahead = own.ahead and math.max(all.ahead or 0, own.ahead) or all.ahead
  end
  return all
end

---Elements of several pipelines side by side, { a, b }: as many as the shortest has.
---@param ... perigee.Dataset
---@return perigee.Dataset
function Dataset:zip(...)
  local parents = { self, ... }
  check_parents(parents)
  local own = merged(parents)
  own.name, own.line = "zip", native.script_line()
  own.batched, own.what, own.parents = self.batched, ("zip of %d"):format(#parents), {}
  for i, parent in ipairs(parents) do own.parents[i] = fields_of(parent) end
  own.stage = own.stage and function(epoch)
    local stages = {}
    for i, parent in ipairs(parents) do stages[i] = fields_of(parent).stage(epoch) end
    return { count = own.size, get = function(i)
      local element = {}
      for k, stage in ipairs(stages) do element[k] = stage.get(i) end
      return element
    end }
  end or nil
  own.pull = own.in_order and function(epoch)
    local nexts, closes = {}, {}
    for i, parent in ipairs(parents) do nexts[i], closes[i] = base.pull(fields_of(parent), epoch) end
    return function()
      local element = {}
      for i, next_ in ipairs(nexts) do
        element[i] = next_()
        if element[i] == nil then return nil end
      end
      return element
    end, function()
      for _, close in ipairs(closes) do close() end
    end
  end
  own.native = function(epoch, feeds)
    local stages = {}
    for i, parent in ipairs(parents) do stages[i] = base.core(fields_of(parent), epoch, feeds) end
    return native.data.zip(stages)
  end
  return base.new(own)
end

local read_interleave = native.signature("interleave", {
  { "fn", "function", required = true, type = "fun(sample: any): perigee.Dataset",
    doc = "makes a pipeline of a sample" },
  { "cycle", "integer", named = true, default = 4, doc = "pipelines that are open at a time" },
  { "block", "integer", named = true, default = 1, doc = "elements of one before the next has its turn" } })

-- Elements of the pipelines that fn makes, `block` of each in turn.
local function taken_in_turn(next_, o, epoch)
  local slots, at, left = {}, 1, o.block
  local function open(slot)
    local sample = next_()
    if sample == nil then return nil end
    local ds = o.fn(sample)
    if not base.is_dataset(ds) then
      native.raise("invalid_argument", "interleave", "the function must return a dataset, got " .. native.describe(ds))
    end
    slots[slot] = { base.pull(fields_of(ds), epoch) }
    return slots[slot]
  end
  local function advance() at, left = at % o.cycle + 1, o.block end
  return function()
    local idle = 0 -- turns without an element
    while idle < o.cycle do
      local slot = slots[at] or open(at)
      local element
      if slot then element = slot[1]() end
      if element ~= nil then
        left = left - 1
        if left == 0 then advance() end
        return element
      elseif slot then -- the next pipeline takes its place, at once
        slot[2]()
        slots[at], left = nil, o.block
      else
        advance()
        idle = idle + 1
      end
    end
    return nil
  end, function()
    for _, slot in pairs(slots) do slot[2]() end
  end
end

---Elements of the pipelines that fn(sample) answers, taken in turn: `block` of each, of `cycle` pipelines at a time.
---One that has ended gives its place to the next. How many there are, nobody knows before the end; the order is always
---the same. It runs on the script's thread, and threads of these pipelines beside it.
---@return perigee.Dataset
function Dataset:interleave(...)
  local o = read_interleave(...)
  for _, name in ipairs { "cycle", "block" } do
    if o[name] < 1 then
      native.raise("invalid_argument", "interleave", ("%s must be at least 1, got %d"):format(name, o[name]))
    end
  end
  local what = base.of_function("interleave", o.fn, o.cycle, o.block)
  return derive(self, { name = "interleave", in_order = true, what = what,
    pull = function(next_, epoch) return taken_in_turn(next_, o, epoch) end })
end
