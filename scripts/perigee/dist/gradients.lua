-- SPDX-License-Identifier: Apache-2.0
-- What replicas share: gradients, summed in buckets; parameters and other state; what each says of itself.

local native = require "perigee.native"
local partial = require "perigee.nn.partial"

local M = {}

local BUCKET = 25 * 2 ^ 20 -- bytes that are reduced at once: enough to hide the latency, not too much to copy

local function pg() return require "perigee" end

---Numbers of all processes, or of a group's: a list by rank of lists. They are whole, below 2^53, or floats that are to
---be compared.
---@param numbers number[]
---@param group? perigee.Group
function M.exchange(numbers, group)
  local size = group and group.size or pg().dist.size()
  local all = pg().dist.all_gather(pg().tensor(numbers, { dtype = "float64" }), { group = group })
  return all:reshape(size, #numbers):totable()
end

---Those that every process has whole. Of others each has a part, which nobody else has.
function M.whole_ones(tensors, group)
  local list = {}
  for _, t in ipairs(tensors) do
    local part = partial.of(t)
    if not part or part.group.number ~= group.number then list[#list + 1] = t end
  end
  return list
end

---An optimizer's parameters, in their order.
---@param optimizer perigee.Optimizer
---@return perigee.Tensor[]
function M.params_of(optimizer)
  local list = {}
  for _, group in ipairs(optimizer.groups) do
    for _, p in ipairs(group.params) do list[#list + 1] = p end
  end
  return list
end

---Lists of parameters of one dtype and device, in their order, none much larger than BUCKET bytes: `index` has their
---numbers. Only those that `any` says have a gradient somewhere.
---@param params perigee.Tensor[]
---@param any boolean[]
---@param first_limit? number in place of BUCKET for the first one
---@return table[]
function M.buckets(params, any, first_limit)
  local open, list = {}, {}
  for i, p in ipairs(params) do
    if any[i] and p:numel() > 0 then
      local kind = p.dtype .. " " .. p.device
      local bucket = open[kind]
      if not bucket or bucket.bytes >= bucket.limit then
        bucket = { bytes = 0, index = {}, limit = #list == 0 and first_limit or BUCKET }
        open[kind], list[#list + 1] = bucket, bucket
      end
      bucket[#bucket + 1], bucket.index[#bucket + 1] = p, i
      bucket.bytes = bucket.bytes + p:numel() * native.dtypes.find(p.dtype, "dist").bytes
    end
  end
  return list
end

---The gradients of a list of parameters, zeros where there is none, behind each other, times a weight.
---@param list perigee.Tensor[]
---@param weight number
---@return perigee.Tensor # [n]
function M.flatten(list, weight)
  local parts = {}
  for i, p in ipairs(list) do
    parts[i] = p.grad and p.grad:reshape(-1) or pg().zeros({ p:numel() }, { dtype = p.dtype, device = p.device })
  end
  local flat = #parts == 1 and parts[1] or pg().cat(parts)
  return weight == 1 and flat or flat * weight
end

---Gives a list of parameters the gradients that `flatten` has put behind each other.
---@param list perigee.Tensor[]
---@param flat perigee.Tensor [n]
function M.unflatten(list, flat)
  local first = 1
  for _, p in ipairs(list) do
    local n = p:numel()
    local part = flat[{ { first, first + n - 1 } }]:reshape(p.shape)
    if p.grad then p.grad:copy_(part) else p.grad = part:clone() end
    first = first + n
  end
end

---Raises on every process where they have not the same number of parameters, of the same sizes.
function M.check_models(where, params, group)
  local total = 0
  for _, p in ipairs(params) do total = total + p:numel() end
  local all = M.exchange({ #params, total }, group)
  for i = 2, #all do
    if all[i][1] ~= all[1][1] or all[i][2] ~= all[1][2] then
      native.raise("failed_precondition", where, ("ranks have different models: rank 0 has %d parameters with %d " ..
                   "elements, rank %d has %d with %d"):format(all[1][1], all[1][2], i - 1, all[i][1], all[i][2]))
    end
  end
end

---Raises on every process where the parameters are not the same.
function M.check_parameters(where, params, group)
  M.check_models(where, params, group)
  params = M.whole_ones(params, group)
  local sums = {}
  pg().no_grad(function()
    for i, p in ipairs(params) do
      local x = p:to "float64"
      sums[2 * i - 1], sums[2 * i] = x:sum():item(), (x * x):sum():item()
    end
  end)
  if #sums == 0 then return end
  local all = M.exchange(sums, group)
  for rank = 2, #all do
    for i, v in ipairs(all[rank]) do
      local other = all[1][i]
      if v ~= other and not (v ~= v and other ~= other) then
        native.raise("failed_precondition", where, ("parameter %d of rank %d is not that of rank 0"):format(
                       math.ceil(i / 2), rank - 1), "make the model inside of strategy:scope(function() ... end)")
      end
    end
  end
end

---Gives all processes of a group its rank 0's contents of these tensors, other than of parts.
function M.spread(tensors, group)
  pg().no_grad(function()
    for _, t in ipairs(M.whole_ones(tensors, group)) do
      if t:numel() > 0 then t:copy_(pg().dist.broadcast(t:detach(), { group = group })) end
    end
  end)
end

return M
