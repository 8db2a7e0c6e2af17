-- SPDX-License-Identifier: Apache-2.0
-- pg.tune: settings of a training, found by trying.

local native = require "perigee.native"
local fit = require "perigee.fit"
local inputs = require "perigee.fit.inputs"

---@class perigee.tune
local tune = {}

local WHERE = "tune.batch_size"

---@class perigee.BatchSizes
---@field batch_size integer the smallest whose samples a second are within 5 percent of the most
---@field largest integer the largest that was tried and had room
---@field full boolean whether a larger one had no room
---@field rows { batch_size: integer, seconds: number, per_second: number, bytes: integer }[] a step, and memory at most
local Sizes = { __name = "perigee.BatchSizes" }
Sizes.__index = Sizes
function Sizes:__tostring()
  local lines = {}
  for i, row in ipairs(self.rows) do
    lines[i] = ("%6d  %10.3f ms  %12.1f samples/s  %8.1f MB%s"):format(row.batch_size, row.seconds * 1e3,
               row.per_second, row.bytes / 2 ^ 20, row.batch_size == self.batch_size and "  <" or "")
  end
  if self.full then lines[#lines + 1] = ("%6d  no room"):format(2 * self.largest) end
  return table.concat(lines, "\n")
end

local function rows_of(t, count, device)
  local pg = require "perigee"
  local index = pg.arange(count, { dtype = "int64", device = device }):remainder(#t)
  return (t.device == device and t or t:to(device))[index]
end

-- A step's time, its least of several; raises where there is no room for it.
local function measure(job, count)
  local pg = require "perigee"
  local x, y = rows_of(job.x, count, job.device), rows_of(job.y, count, job.device)
  local function step()
    local gradients = pg.grad(job.loss(job.model(x), y), job.params)
    pg.synchronize(job.device)
    return gradients
  end
  step()
  local least, begin = math.huge, native.clock()
  repeat
    local before = native.clock()
    step()
    least = math.min(least, native.clock() - before)
  until native.clock() - begin >= job.seconds
  return { batch_size = count, seconds = least, per_second = count / least, bytes = pg.memory.stats(job.device).peak }
end

-- Goes up by twos until the limit, or until there is no room.
local function search(job, limit)
  local pg, sizes, count = require "perigee", setmetatable({ rows = {}, full = false }, Sizes), 1
  while count <= limit do
    pg.memory.reset_peak(job.device)
    local ok, row = pcall(measure, job, count)
    if not ok then
      local no_room = type(row) == "table" and row.code == "out_of_memory"
      local single = count == 1 and limit > 1 and not no_room -- statistics of a batch need more than one sample
      if not single and not (no_room and sizes.largest) then error(row, 0) end
      if not single then
        sizes.full = true
        break
      end
    else
      sizes.rows[#sizes.rows + 1], sizes.largest = row, count
    end
    count = count * 2
  end
  pg.memory.empty_cache(job.device)
  return sizes
end

local read = native.signature(WHERE, {
  { "model", "any", required = true, type = "perigee.Layer", doc = "what is trained" },
  { "x", "tensor", required = true, named = true, doc = "samples [N, ...], one or more: batches repeat them" },
  { "y", "tensor", required = true, named = true, doc = "their targets [N, ...]" },
  { "loss", "any", required = true, named = true, type = "perigee.LossName|function|perigee.Layer",
    doc = "as fit has it" },
  { "limit", "integer", named = true, default = 1024, doc = "the largest batch that is tried" },
  { "seconds", "number", named = true, default = 0.1, doc = "that each is measured for, at least" } })
---Which batch size trains most samples a second: 1, 2, 4, ... are tried, forward and backward, up to `limit` or until
---the device has no room. Answers the smallest that is within 5 percent of the best, and all that was measured. What an
---optimizer keeps comes on top of the memory. The model, its gradients and the random numbers stay as they were.
---@param model perigee.Layer
---@param options { x: perigee.Tensor, y: perigee.Tensor, loss: any, limit: integer?, seconds: number? }
---@return perigee.BatchSizes
function tune.batch_size(...)
  local o = read(...)
  if not require("perigee.nn").is_layer(o.model) then
    native.raise("invalid_argument", WHERE, "model must be a layer, got " .. native.describe(o.model))
  elseif o.x:dim() == 0 or o.y:dim() == 0 or #o.x ~= #o.y or #o.x == 0 then
    native.raise("invalid_argument", WHERE, ("x and y must have the same samples, one or more, got %s and %s"):format(
                   tostring(o.x.shape), tostring(o.y.shape)))
  elseif o.limit < 1 then
    native.raise("invalid_argument", WHERE, "limit must be at least 1, got " .. o.limit)
  elseif not (o.seconds >= 0 and o.seconds < math.huge) then
    native.raise("invalid_argument", WHERE, "seconds must be 0 or more, got " .. o.seconds)
  end
  local pg = require "perigee"
  local job = { model = o.model, x = o.x:detach(), y = o.y:detach(), loss = fit.resolve_loss(WHERE, o.loss),
                device = inputs.device_of(o.model) or o.x.device, seconds = o.seconds, params = {} }
  for _, p in ipairs(o.model:parameters()) do if p.requires_grad then job.params[#job.params + 1] = p end end
  if #job.params == 0 then native.raise("invalid_argument", WHERE, "the model has no parameters to train") end
  local buffers, seed, offset = {}, native.rng_state()
  for name, t in o.model:named_buffers() do buffers[name] = t:clone() end
  local ok, sizes = pcall(fit.in_mode, o.model, true, search, job, o.limit)
  pg.no_grad(function() for name, t in o.model:named_buffers() do t:copy_(buffers[name]) end end)
  native.set_rng_state(seed, offset)
  if not ok then error(sizes, 0) end
  local best = 0
  for _, row in ipairs(sizes.rows) do best = math.max(best, row.per_second) end
  for _, row in ipairs(sizes.rows) do
    if row.per_second >= 0.95 * best then
      sizes.batch_size = row.batch_size
      break
    end
  end
  return sizes
end

return tune
