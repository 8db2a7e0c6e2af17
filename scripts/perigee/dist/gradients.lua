-- SPDX-License-Identifier: Apache-2.0
-- What replicas share: gradients, summed in buckets; parameters and other state; what each says of itself.

local native = require "perigee.native"
local partial = require "perigee.nn.partial"
local world = require "perigee.dist.world"

local M = {}

-- Bytes that are reduced at once: enough to hide the latency, not too much to copy; and of buckets that shall be many.
local BUCKET, SMALL, PIECES = 25 * 2 ^ 20, 2 ^ 18, 16

M.BUCKET = BUCKET

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

---Whether two lists hold the same values or tensors, one by one.
function M.same_list(a, b)
  for i = 1, math.max(#a, #b) do
    if a[i] ~= b[i] then return false end
  end
  return true
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

local function bytes_of(p) return p:numel() * native.dtypes.find(p.dtype, "dist").bytes end

---Bytes of buckets that are many, so that the last one, which nothing hides, is short beside all.
---@param params perigee.Tensor[]
---@return number
function M.small_buckets(params)
  local total = 0
  for _, p in ipairs(params) do total = total + bytes_of(p) end
  return math.max(SMALL, math.min(BUCKET, math.floor(total / PIECES)))
end

---Lists of parameters of one dtype and device, in their order, of at most so many bytes together, or of one that has
---more: `index` has their numbers. Only those that `any` says have a gradient somewhere.
---@param params perigee.Tensor[]
---@param any boolean[]
---@return table[]
function M.buckets(params, any)
  local open, list = {}, {}
  for i, p in ipairs(params) do
    if any[i] and p:numel() > 0 then
      local kind, bytes = p.dtype .. " " .. p.device, bytes_of(p)
      local bucket = open[kind]
      if not bucket or bucket.bytes + bytes > BUCKET then
        bucket = { bytes = 0, index = {} }
        open[kind], list[#list + 1] = bucket, bucket
      end
      bucket[#bucket + 1], bucket.index[#bucket + 1] = p, i
      bucket.bytes = bucket.bytes + bytes
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

local TEXT = 96 -- bytes

-- A short text of each process, by rank.
local function exchange_texts(text, group)
  local bytes = { text:sub(1, TEXT):byte(1, -1) }
  for i = #bytes + 1, TEXT do bytes[i] = 0 end
  local list = {}
  for rank, got in ipairs(M.exchange(bytes, group)) do list[rank] = string.char(unpack(got)):match "^[^%z]*" end
  return list
end

local function kind_of(p) return ("%s %s"):format(p.dtype, tostring(p.shape)) end

-- A whole number below 2^43 that other texts hardly have.
local function fingerprint(text)
  local h = 0
  for i = 1, #text do h = (h * 31 + text:byte(i)) % 2 ^ 43 end
  return h
end

-- Of numbers by rank: the first rank that has another in some place than the group's first, and the place.
local function find_other(all)
  for rank = 2, #all do
    for i, v in ipairs(all[rank]) do
      if v ~= all[1][i] then return rank, i end
    end
  end
end

---Raises on every process where they have not the same parameters: as many, of the same shapes and dtypes.
function M.check_models(where, params, group)
  local function refuse(...)
    native.raise("failed_precondition", where, "ranks have different models: " .. (...):format(select(2, ...)))
  end
  local total, kinds = 0, {}
  for i, p in ipairs(params) do total, kinds[i] = total + p:numel(), fingerprint(kind_of(p)) end
  local all = M.exchange({ #params, total, fingerprint(table.concat(kinds, " ")) }, group)
  local other, place = find_other(all)
  if not other then return end
  local first, own = all[1], all[other]
  local ranks = group and group.ranks or {}
  local a, b = ranks[1] or 0, ranks[other] or other - 1
  if place < 3 then
    refuse("rank %d has %d parameters with %d elements, rank %d has %d with %d", a, first[1], first[2], b, own[1],
           own[2])
  end
  other, place = find_other(M.exchange(kinds, group))
  local texts = exchange_texts(kind_of(params[place]), group)
  refuse("rank %d has %s as parameter %d, rank %d has %s", a, texts[1], place, ranks[other] or other - 1, texts[other])
end

-- Whether a scaler looks for what is not finite, as it expects some to be.
local function scaler_looks() return native.grad_scaler and native.grad_scaler.scaling end

---In the debug mode, before gradients are summed: raises on every process where one has NaN in some, and names it.
---@param where string the collective that would sum them
---@param gradients table by number, with holes
---@param count integer
---@param names fun(i: integer): string
---@param group perigee.Group
function M.check_nan(where, gradients, count, names, group)
  if not world.debugs() or scaler_looks() then return end
  local found = 0
  pg().no_grad(function()
    for i = count, 1, -1 do
      local g = gradients[i]
      if g and g:numel() > 0 and g:ne(g):any():item() then found = i end
    end
  end)
  for i, own in ipairs(M.exchange({ found }, group)) do
    if own[1] > 0 then
      native.raise("failed_precondition", where,
                   ("is not made: rank %d has NaN in the gradient of parameter %s"):format(group.ranks[i],
                     names(own[1])), "pg.detect_anomaly(fn) names the operator that makes it")
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
