-- SPDX-License-Identifier: Apache-2.0
-- Pipelines as users have them: elements by position, passes, and what names them. Their stages are in files of their
-- own.

local native = require "perigee.native"
local kept = rawget(native, "data.pipeline") -- a script that clears package.loaded gets the same again
if kept then return kept end
local pass = require "perigee.data.passes"
local base = require "perigee.data.dataset"
local positions = require "perigee.data.positions"
require "perigee.data.elements"
require "perigee.data.groups"
require "perigee.data.buckets"
require "perigee.data.cache"
require "perigee.data.benchmark"
require "perigee.data.advice"
local Dataset, fields_of = base.Dataset, base.fields_of

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

---Element i of the pipeline, from 1, or from the end where negative, in the order of the current epoch: `ds[i]`.
---@param i integer
---@return table
function Dataset:at(i)
  local own = fields_of(self)
  if not own.stage or not own.size then
    native.raise("not_supported", "data", "its elements come one after the other, and have no positions",
                 "for step, element in ds:take(n):each() do")
  end
  local at = type(i) == "number" and i < 0 and own.size + 1 + i or i
  if type(i) ~= "number" or i ~= math.floor(i) or at < 1 or at > own.size then
    native.raise("invalid_argument", "data", ("there is no element %s of %d"):format(tostring(i), own.size),
                 "they count from 1")
  end
  local epoch = math.max(own.epoch, 1)
  if own.seen_epoch ~= epoch then own.seen_epoch, own.seen_stage = epoch, own.stage(epoch) end
  return native.without_device(own.seen_stage.get, at)
end

local function check_position(own, from)
  for _, key in ipairs { "epoch", "position", "size" } do
    local count = from[key]
    if count == nil and (key ~= "size" or own.size) then
      native.raise("invalid_argument", "each", "from must be what state() returned: it has no " .. key)
    end
    if count ~= nil and (type(count) ~= "number" or count < 0 or count ~= math.floor(count)) then
      native.raise("invalid_argument", "each", ("from must be what state() returned: its %s is %s"):format(key,
                   native.describe(count)))
    end
  end
  if from.size ~= own.size then
    native.raise("invalid_argument", "each", ("from is a position in a pipeline of %d; this one has %s"):format(
                   from.size, own.size or "an unknown length"))
  end
  if from.size and from.position > from.size then
    native.raise("invalid_argument", "each", ("from is at position %d of %d"):format(from.position, from.size))
  end
end

local read_each = native.signature("each", { { "from", "table", named = true, doc = "what state() returned" } })
---`for step, element in ds:each() do`. Each call draws a new epoch's order. What it returns has :state() and :close();
---`ds:each{from=state}` goes on behind that state, in the same order: by position where that is possible, else elements
---before it are made again.
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
  return pass(own, from and from.position or 0, own.epoch)
end

---How many orders have been drawn: each() takes the next. Set it to go on where another process was.
---@param set? integer
---@return integer
function Dataset:epoch(set)
  local own = fields_of(self)
  if set ~= nil then
    positions.check_count("epoch", set)
    own.epoch = set
  end
  return own.epoch
end

---Whether v is a data set.
---@param v any anything
---@return boolean
local function is_dataset(v) return base.is_dataset(v) end

native.checked.class(Dataset, { noun = "a dataset", call = "ds", is = is_dataset, open = true })

-- The pipeline, which says how its classes are called.
local function named(ds, classes)
  fields_of(ds).classes = classes
  return ds
end

local pipeline = { source = base.source, of_function = base.of_function, is_dataset = is_dataset, named = named }
rawset(native, "data.pipeline", pipeline)
return pipeline
