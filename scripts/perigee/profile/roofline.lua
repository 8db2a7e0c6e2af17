-- SPDX-License-Identifier: Apache-2.0
-- How fast a device can be: the most operations in a second, of large products, and the most bytes, of sums of large
-- vectors. Measured once a process for each device and dtype, in some tens of milliseconds. A kernel cannot be over
-- sooner than both allow (Williams, Waterman and Patterson 2009).

local native = require "perigee.native"
local pg = require "perigee"

local roofline = {}

local LONG = 4e-3 -- seconds that a measurement takes at least, if it may grow so far
local ROUNDS = 3

local function seconds_of(fn, device)
  fn()
  pg.synchronize(device)
  local least = math.huge
  for _ = 1, ROUNDS do
    local begin = native.clock()
    fn()
    pg.synchronize(device)
    least = math.min(least, native.clock() - begin)
  end
  return math.max(least, 1e-9)
end

-- The best rate of growing problems. `make(size)` answers what to run, and how much that does.
local function best(device, size, most, grow, make)
  local rate = 0
  repeat
    local fn, amount = make(size)
    local seconds = seconds_of(fn, device)
    rate = math.max(rate, amount / seconds)
    size = size * grow
  until size > most or seconds > LONG
  return rate
end

local function measure_flops(device, dtype)
  return best(device, 64, 1024, 2, function(n)
    local a = pg.ones({ n, n }):to { dtype = dtype, device = device }
    return function() return a:matmul(a) end, 2 * n ^ 3
  end)
end

local function measure_bytes(device)
  return best(device, 2 ^ 14, 2 ^ 24, 4, function(n)
    local a = pg.ones({ n }):to(device)
    return function() return a:add(1) end, 8 * n
  end)
end

-- What is measured is no one's gradient, graph or layer.
local function quietly(fn, ...)
  return pg.no_grad(function(...)
    local ok, value = pcall(pg.scope, fn, ...)
    return ok and value or nil
  end, ...)
end

local flops, bytes = {}, {}
local FLOATS = { float64 = true, float32 = true, float16 = true, bfloat16 = true }

---Operations a second with a floating dtype, others count as float32's; nil where the device cannot say.
---@param device string
---@param dtype string
---@return number?
function roofline.flops(device, dtype)
  if not FLOATS[dtype] then dtype = "float32" end
  local key = device .. " " .. dtype
  if flops[key] == nil then flops[key] = quietly(measure_flops, device, dtype) or false end
  return flops[key] or nil
end

---Bytes a second that a kernel can read and write; nil where the device cannot say.
---@param device string
---@return number?
function roofline.bytes(device)
  if bytes[device] == nil then bytes[device] = quietly(measure_bytes, device) or false end
  return bytes[device] or nil
end

return roofline
