-- SPDX-License-Identifier: Apache-2.0
-- perigee.data: where samples come from. Every source is a pipeline (pipeline.lua): a number of samples, and a way to
-- get them by position.

local native = require "perigee.native"
local pipeline = require "perigee.data.pipeline"
local plugins = require "perigee.data.plugins"
local stage_of = plugins.parts.stage_of

---@class perigee.data
---@field text perigee.data.text text as numbers
local data = { is_dataset = pipeline.is_dataset }

local function check_slices(tensors)
  local count, first
  for name, t in pairs(tensors) do
    if type(name) ~= "string" or not native.is_tensor(t) then
      native.raise("invalid_argument", "data.from_slices", ("%s must be a tensor under a name, got %s"):format(
                     tostring(name), native.describe(t)), native.is_plain(t) and "pg.tensor makes one of a table")
    end
    if t:dim() == 0 then
      native.raise("invalid_argument", "data.from_slices", name .. " has no axes to slice")
    end
    if count and #t ~= count then
      native.raise("invalid_argument", "data.from_slices", ("%s has %d samples, %s has %d"):format(first, count, name,
                   #t))
    end
    count, first = #t, name
  end
  if not count then native.raise("invalid_argument", "data.from_slices", "needs at least one tensor") end
  return count
end

-- Whether the core takes slices of them: those of other devices, and of graphs, are made by operators.
local function all_here(tensors)
  for _, t in pairs(tensors) do
    if native.is_graph_tensor(t) or t.device:sub(1, 3) ~= "cpu" then return false end
  end
  return true
end

---Samples are slices of tensors along their first axis: data.from_slices{ x=images, y=labels }. Nothing is copied
---before a batch is made. Those on a device are sliced there, by the script's thread.
---@param tensors table<string, perigee.Tensor>
---@return perigee.Dataset
function data.from_slices(tensors, ...)
  local more = select("#", ...) > 0
  if type(tensors) ~= "table" or more then
    native.raise("invalid_argument", "data.from_slices", ("needs a table of tensors, got %s%s"):format(
                   native.describe(tensors), more and " and more" or ""), more and "data.from_slices{ x=..., y=... }")
  end
  local count, own = check_slices(tensors), {}
  for name, t in pairs(tensors) do own[name] = t:detach() end
  local slices = all_here(own) and stage_of("data.from_slices", "slices", { tensors = own }, "from_slices")
  return pipeline.source {
    count = count, name = "from_slices",
    what = function() return "from_slices " .. native.fingerprint.value(own) end,
    native = slices and function() return slices end,
    get = function(i)
      local sample = {}
      for name, t in pairs(own) do sample[name] = t[i] end
      return sample
    end,
    -- Many at once: one gather a tensor in place of a copy a sample.
    gather = function(positions)
      local contents = {}
      for i, position in ipairs(positions) do contents[i] = position - 1 end
      local batch = {}
      for name, t in pairs(own) do
        local index = require("perigee").tensor(contents, { dtype = "int64", device = t.device })
        batch[name] = native.call("index_select", { t, index }, { axis = 1 })
      end
      return batch
    end,
  }
end

local read_index = native.signature("data.from_index", {
  { "n", "integer", required = true, doc = "how many samples" },
  { "get", "function", required = true, type = "fun(i: integer): any", doc = "makes sample i, from 1" } })
---`n` samples by number: get(i), i from 1, returns a table.
---@return perigee.Dataset
function data.from_index(...)
  local o = read_index(...)
  if o.n < 0 then native.raise("invalid_argument", "data.from_index", "n must not be negative") end
  local what = pipeline.of_function("from_index", o.get, o.n)
  return pipeline.source { name = "from_index", count = o.n, what = what, get = function(i)
    local sample = o.get(i)
    if sample == nil then
      native.raise("invalid_argument", "data.from_index", ("get(%d) returned nil"):format(i))
    end
    return sample
  end }
end

local read_range = native.signature("data.range", { { "n", "integer", required = true, doc = "how many" } })
---The numbers 0 .. n - 1, as samples { value = number }.
---@return perigee.Dataset
function data.range(...)
  local n = read_range(...).n
  if n < 0 then native.raise("invalid_argument", "data.range", "needs a count of 0 or more, got " .. n) end
  return pipeline.source { name = "range", count = n, what = "range " .. n,
                           native = function()
                             return stage_of("data.range", "range", { n = n }, "range")
                           end,
                           get = function(i) return { value = i - 1 } end }
end

local records = require "perigee.data.records"
data.records, data.write_records = records.records, records.write_records
data.source, data.decode, data.encode = plugins.source, plugins.decode, plugins.encode
data.from_generator, data.files = require "perigee.data.generator", require "perigee.data.files"
data.csv = require "perigee.data.csv"

-- These are loaded when they are asked for.
local LATER = { text = "perigee.data.text", image_folder = "perigee.data.images", mnist = "perigee.data.sets",
                cifar10 = "perigee.data.sets" }
return setmetatable(data, { __index = function(_, name)
  if not LATER[name] then
    local names = {}
    for later in pairs(LATER) do names[#names + 1] = later end
    require("perigee.names.package").refuse(data, "data", name, "data", names)
  end
  local module = require(LATER[name])
  data[name] = LATER[name] == "perigee.data.sets" and module[name] or module
  return data[name]
end })
