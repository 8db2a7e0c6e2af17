-- SPDX-License-Identifier: Apache-2.0
-- What strategy:run gives of several devices of one process: lists of values, one a device; and what becomes of them.

local native = require "perigee.native"

local M = {}

local function pg() return require "perigee" end

local Values = {}
function Values.__index(_, key)
  native.raise("invalid_argument", "strategy:run", ("what it returns of several devices is a list of values, one a " ..
               "device, and has no %q"):format(tostring(key)), "values[1], or strategy:reduce(\"mean\", values)")
end
function Values.__tostring(self)
  local parts = {}
  for i = 1, rawget(self, "count") do parts[i] = tostring(rawget(self, i)) end
  return "values {" .. table.concat(parts, ", ") .. "}"
end

---Whether it is such a list.
function M.is_list(value) return getmetatable(value) == Values end

---Of what each replica has returned, with the number of its values in `n`: a list for each value, the value itself
---where there is one replica.
---@param results table[]
---@return any ...
function M.collect(results)
  local most, list, count = 0, {}, #results
  for k = 1, count do most = math.max(most, results[k].n) end
  for j = 1, most do
    local values, any = { count = count }, false
    for k = 1, count do
      local v = results[k][j]
      if native.is_tensor(v) then v = v:detach() end
      values[k], any = v, any or v ~= nil
    end
    if any then list[j] = count == 1 and values[1] or setmetatable(values, Values) end
  end
  return unpack(list, 1, most)
end

local function reduce_tensors(op, values, device)
  local total
  for k, v in ipairs(values) do
    v = v:detach():to(device)
    if not total then
      total = v
    elseif v.shape ~= total.shape then
      native.raise("invalid_argument", "strategy:reduce", ("replica 0 has %s, replica %d has %s"):format(
                     tostring(total.shape), k - 1, tostring(v.shape)))
    elseif op == "max" or op == "min" then
      total = pg()[op == "max" and "maximum" or "minimum"](total, v)
    else
      total = total + v
    end
  end
  return op == "mean" and total / #values or total
end

---The sum ("mean", "max", "min") of a number or a tensor of each replica: a number, or a tensor of the first device.
---@param op string
---@param values any[]
---@param devices string[]
---@return any
function M.reduce(op, values, devices)
  local numbers, tensors = 0, 0
  for k = 1, #devices do
    numbers = numbers + (type(values[k]) == "number" and 1 or 0)
    tensors = tensors + (native.is_tensor(values[k]) and 1 or 0)
  end
  if tensors == #devices then return pg().no_grad(reduce_tensors, op, values, devices[1]) end
  if numbers < #devices then
    local strange = values[1]
    for k = 1, #devices do
      if type(values[k]) ~= "number" and not native.is_tensor(values[k]) then strange = values[k] end
    end
    native.raise("invalid_argument", "strategy:reduce", "needs a number or a tensor of each replica, got " ..
                 native.describe(strange))
  end
  local total = values[1]
  for k = 2, #values do
    local v = values[k]
    if op == "max" or op == "min" then
      total = (v ~= v or op == "max" and v > total or op == "min" and v < total) and v or total
    else
      total = total + v
    end
  end
  return op == "mean" and total / #values or total
end

return M
