-- SPDX-License-Identifier: Apache-2.0
-- Sequences of ids laid end to end and cut into rows of one length.

local native = require "perigee.native"
local pipeline = require "perigee.data.pipeline"

local AT_ONCE = 1000 -- tensors that are joined in one call

local function joined(pg, list)
  while #list > 1 do
    local longer = {}
    for first = 1, #list, AT_ONCE do
      longer[#longer + 1] = pg.cat({ unpack(list, first, math.min(first + AT_ONCE - 1, #list)) }, 1)
    end
    list = longer
  end
  return list[1] or pg.zeros({ 0 }, { dtype = "int64" })
end

local function ids_of(pg, value, i)
  if native.is_plain(value) then
    local made, tensor = pcall(pg.tensor, value, { dtype = "int64" })
    if #value == 0 and next(value) == nil then return pg.zeros({ 0 }, { dtype = "int64" }) end
    if not made then
      native.raise("invalid_argument", "data.text.pack", ("sequence %d: %s"):format(i, tostring(tensor)))
    end
    value = tensor
  end
  if not native.is_tensor(value) or value:dim() ~= 1 or not tostring(value.dtype):find "^u?int" then
    native.raise("invalid_argument", "data.text.pack", ("sequence %d must be a list or a tensor of ids, got %s"):format(
                 i, native.describe(value)))
  end
  return value:detach():to { device = "cpu", dtype = "int64" }
end

-- The sequences of a list or pipeline.
local function each_of(o)
  if not pipeline.is_dataset(o.sequences) then
    if not native.is_plain(o.sequences) then
      native.raise("invalid_argument", "data.text.pack", "sequences must be a list or a dataset, got " ..
                   native.describe(o.sequences))
    end
    return #o.sequences, function(i) return o.sequences[i] end
  end
  return #o.sequences, function(i)
    local sample = o.sequences[i]
    if type(sample) ~= "table" or sample[o.field] == nil then
      native.raise("invalid_argument", "data.text.pack", ("sample %d has no %q"):format(i, o.field),
                   "field= names the one with the ids")
    end
    return sample[o.field]
  end
end

---@param o table of data.text.pack
---@return perigee.Dataset
return function(o)
  local pg = require "perigee"
  if o.length < 1 then
    native.raise("invalid_argument", "data.text.pack", "length must be at least 1, got " .. o.length)
  end
  local count, get = each_of(o)
  local ids, numbers, total = {}, {}, 0
  local separator = o.separator and pg.tensor({ o.separator }, { dtype = "int64" })
  for i = 1, count do
    local sequence = ids_of(pg, get(i), i)
    ids[#ids + 1] = sequence
    if separator then ids[#ids + 1] = separator end
    local length = sequence:size(1) + (separator and 1 or 0)
    if o.segments then numbers[i] = pg.full({ length }, i, { dtype = "int64" }) end
    total = total + length
  end
  local rows = o.pad and math.ceil(total / o.length) or math.floor(total / o.length)
  local missing = rows * o.length - total
  local function cut(list, fill)
    local all = joined(pg, list)
    if missing > 0 then all = all:pad({ 0, missing }, { value = fill }) end
    return all:narrow(1, 1, rows * o.length):reshape(rows, o.length)
  end
  local fields = { ids = cut(ids, o.pad or 0) }
  if o.segments then
    local of = cut(numbers, 0)
    fields.segments = rows == 0 and of or pg.where(of:gt(0), of - of:narrow(2, 1, 1) + 1, 0)
  end
  return pg.data.from_slices(fields)
end
