-- SPDX-License-Identifier: Apache-2.0
-- What each device of a strategy has one of: parameters and buffers. A script's own handles show those of the first
-- device; while another one computes, they show its twins.

local native = require "perigee.native"

local Twins = {}
Twins.__index = Twins

local function pg() return require "perigee" end

---Takes a tensor in. It must lie on the first device.
---@param where string
---@param t perigee.Tensor
---@param what string what messages call it
function Twins:add(where, t, what)
  if self.of[t] then return end
  if t.device ~= self.devices[1] then
    native.raise("failed_precondition", where, ("%s is on %s, and the first device of the strategy is %s"):format(
                   what, t.device, self.devices[1]), "make the model inside of strategy:scope(function() ... end)")
  end
  self.of[t] = {}
end

local function copy_to_twins(self, t, twins)
  for k = 2, #self.devices do
    local twin, copy = twins[k], t:detach():to(self.devices[k])
    self.has_empty = self.has_empty or copy:numel() == 0
    if not twin then
      twins[k] = pg().keep(copy)
    elseif twin.dtype == copy.dtype and twin.shape == copy.shape then
      twin:copy_(copy)
    else
      native.assign(twin, copy)
    end
  end
end

-- Whether a tensor and its twins are there, alike, and dense: then an engine can carry the one to the others.
local function is_ready(self, t, twins)
  if t:numel() == 0 or not t:is_contiguous() then return false end
  for k = 2, #self.devices do
    local twin = twins[k]
    if not twin or twin.dtype ~= t.dtype or twin.shape ~= t.shape or not twin:is_contiguous() then return false end
  end
  return true
end

-- Twins of one tensor, where it is another one than it was, or has been written to. `rows`: where it is put in place of
-- copying it, with its twins behind it, for an engine.
local function follow(self, t, twins, rows)
  local storage, version = native.storage(t), native.version_of(t)
  if twins.storage ~= storage or twins.version ~= version then
    if rows and is_ready(self, t, twins) then
      rows[#rows + 1] = { t, twins = twins, unpack(twins, 2, #self.devices) }
    else
      copy_to_twins(self, t, twins)
    end
    twins.storage, twins.version = storage, version
  end
  local wanted = t.requires_grad
  for k = 2, #self.devices do
    if twins[k].requires_grad ~= wanted then twins[k].requires_grad = wanted end
  end
end

-- fn(rows), and then what it has put there goes from the first device to the others.
local function with_rows(self, fn)
  local group = #self.devices > 1 and native.dist.device_group(self.numbers)
  local rows = group and {} or nil
  fn(rows)
  if not rows or not rows[1] then return end
  local ok, problem = pcall(native.dist.on_devices, group, "broadcast", "sum", 0, rows, rows)
  if ok then return end
  for _, row in ipairs(rows) do row.twins.version = nil end -- they have not got it
  error(problem, 0)
end

---Brings all devices to what the first one has: all tensors, or those of a list.
---@param list? perigee.Tensor[]
function Twins:follow(list)
  pg().no_grad(with_rows, self, function(rows)
    if list then
      for _, t in ipairs(list) do follow(self, t, self.of[t], rows) end
    else
      for t, twins in pairs(self.of) do
        if t.ptr ~= nil then follow(self, t, twins, rows) end
      end
    end
  end)
end

---Says that all devices have what the first one has, since each has done the same.
---@param list perigee.Tensor[]
function Twins:has_followed(list)
  for _, t in ipairs(list) do
    local twins = self.of[t]
    twins.storage, twins.version = native.storage(t), native.version_of(t)
  end
end

---Twins of what was empty and has got its size since, which layers give it that wait for their first input.
function Twins:fill()
  if not self.has_empty then return end
  self.has_empty = false
  pg().no_grad(function()
    for t, twins in pairs(self.of) do
      if twins[2] and twins[2]:numel() == 0 and t:numel() > 0 then follow(self, t, twins) end
      self.has_empty = self.has_empty or t:numel() == 0
    end
  end)
end

---Handles show the tensors of device k; called again, those of the first.
---@param k integer from 2
function Twins:exchange(k)
  for t, twins in pairs(self.of) do
    if twins[k] then native.handles.exchange(t, twins[k]) end
  end
end

---A list's tensors on device k.
---@param list perigee.Tensor[]
---@param k integer
---@return perigee.Tensor[]
function Twins:on(list, k)
  if k == 1 then return list end
  local found = {}
  for i, t in ipairs(list) do found[i] = self.of[t][k] end
  return found
end

---The number of the first tensor in a list that has no twins, or nil.
---@param list perigee.Tensor[]
---@return integer?
function Twins:missing(list)
  for i, t in ipairs(list) do
    if not self.of[t] then return i end
  end
end

---@param devices string[]
---@param numbers integer[] of the devices
return function(devices, numbers)
  return setmetatable({ devices = devices, numbers = numbers, of = setmetatable({}, { __mode = "k" }) }, Twins)
end
