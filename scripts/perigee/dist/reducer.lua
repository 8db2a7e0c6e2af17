-- SPDX-License-Identifier: Apache-2.0
-- Sums gradients over replicas, which are processes or devices of one, in buckets, which start while a backward pass
-- still computes the others (core/src/reduce): this says of which parameters, and how large buckets are.

local native = require "perigee.native"
local gradients = require "perigee.dist.gradients"
local world = require "perigee.dist.world"

local M = {}

-- Bytes between processes: of the first bucket, which starts when little has been computed; of others; of a gradient
-- that is worth a message of its own where nothing is left to compute.
local FIRST, OTHERS, DIRECT = 2 ^ 20, gradients.BUCKET, 2 ^ 18

local Reducer = {}
Reducer.__index = Reducer

local function refuse_deterministic()
  native.raise("not_supported", "all_reduce", "adds up as many tensors as there are processes, and " ..
               "deterministic=true lets no result depend on how many there are")
end

---Gradients of the parameters, times their replica's weight, summed over all replicas. A parameter that has one on some
---replica only counts as zero on the others; one that has none anywhere keeps none.
---@param weights number[] of this process's replicas
---@param to_all boolean false: the first replica gets the sums alone
function Reducer:sum(weights, to_all)
  if self.between_processes and native.deterministic() then refuse_deterministic() end
  local any = native.dist.reducer_sum(self._native, weights, to_all)
  for i = 1, #self.params do self.any[i] = any[i - 1] ~= 0 end
end

---Gradients that come from now on count so much and may be sent; nil: none are.
---@param weights number[]?
function Reducer:send(weights) native.dist.reducer_send(self._native, weights) end

---How many buckets have started since the last sum, and how many had before it.
---@return integer, integer
function Reducer:counts() return native.dist.reducer_counts(self._native) end

---Whether it is one for this list.
---@param params perigee.Tensor[]
---@return boolean
function Reducer:is_for(params) return gradients.same_list(self.params, params) end

local function new(options, lists, sending)
  -- `any`: which have a gradient on some replica.
  local self = setmetatable({ params = { unpack(lists[1]) }, any = {}, between_processes = options.among ~= nil,
                              _native = native.dist.reducer(options, lists) }, Reducer)
  self:send(sending)
  return self
end

---@param strategy perigee.Strategy whose `_sending` is the weight of gradients that may be sent now, or nil
---@param params perigee.Tensor[]
function M.of_processes(strategy, params)
  local options = { among = strategy._group.number, gradients = world.gradients(strategy._group), first = FIRST,
                    others = OTHERS, direct = DIRECT, overlaps = strategy._overlap }
  return new(options, { params }, strategy._sending and { strategy._sending })
end

---@param strategy perigee.Strategy whose `_sending` are the weights of gradients that may be sent now, or nil
---@param lists perigee.Tensor[][] the parameters, by device
function M.of_devices(strategy, lists)
  local limit = gradients.small_buckets(lists[1])
  return new({ first = limit, others = limit, overlaps = true }, lists, strategy._sending)
end

return M
