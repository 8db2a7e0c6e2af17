-- SPDX-License-Identifier: Apache-2.0
-- Gradients of replicas that are devices of one process: summed by the engine of their type of device, while backward
-- computes (reducer.lua), or by copies behind it where there is none.

local native = require "perigee.native"
local gradients = require "perigee.dist.gradients"
local reducer = require "perigee.dist.reducer"

local M = {}

local function pg() return require "perigee" end

---A list of the first device's tensors, by device.
---@param params perigee.Tensor[]
---@return perigee.Tensor[][]
function M.lists_of(self, params)
  local lists = {}
  for k = 1, #self._devices do lists[k] = self._twins:on(params, k) end
  return lists
end

-- Which parameters have a gradient on some device.
local function used(lists)
  local any = {}
  for i = 1, #lists[1] do
    any[i] = false
    for k = 1, #lists do any[i] = any[i] or lists[k][i].grad ~= nil end
  end
  return any
end

---Whether an engine sums over these devices.
function M.has_engine(self) return #self._numbers > 1 and native.dist.device_group(self._numbers) ~= nil end

-- The first device's gradients become the sum of all, each times its weight; with `to_all`, so do the others'.
local function sum_by_copies(self, lists, any, weights, to_all)
  local devices = self._devices
  for _, bucket in ipairs(gradients.buckets(lists[1], any)) do
    local own, total = {}, nil
    for k = 1, #devices do
      own[k] = {}
      for n, i in ipairs(bucket.index) do own[k][n] = lists[k][i] end
      local flat = gradients.flatten(own[k], weights[k]):to(devices[1])
      total = total and total + flat or flat
    end
    for k = 1, to_all and #devices or 1 do gradients.unflatten(own[k], total:to(devices[k])) end
  end
end

local function sum_by_engine(self, key, params, lists, weights, to_all)
  local one = self._reducers[key]
  if not one or not one:is_for(params) then
    one = reducer.of_devices(self, lists)
    self._reducers[key] = one
  end
  one:sum(weights, to_all)
  return one.any
end

---Sums gradients of an optimizer's, or fit's, parameters; `key` is what they are asked for by. Answers them by device.
---With `to_all` all devices get the sums, else the first one.
---@param weights number[] by device
function M.sum(self, key, params, weights, to_all)
  local lists = M.lists_of(self, params)
  local any
  if M.has_engine(self) then
    any = sum_by_engine(self, key, params, lists, weights, to_all)
  else
    any = used(lists)
    pg().no_grad(sum_by_copies, self, lists, any, weights, to_all)
  end
  self._last = { params = params, any = any }
  return lists
end

---The first device's gradients on all.
function M.spread(self, params)
  pg().no_grad(function()
    for k = 2, #self._devices do
      for i, p in ipairs(self._twins:on(params, k)) do
        local gradient = params[i].grad
        if gradient then p.grad = gradient:to(self._devices[k]) end
      end
    end
  end)
end

return M
