-- SPDX-License-Identifier: Apache-2.0
-- pg.bench: how long a function takes, the device's work included.

local native = require "perigee.native"
local pg = require "perigee"

-- A duration in the unit that leaves one to three digits before the point.
local function time_text(seconds)
  if seconds >= 1 then return ("%.3g s"):format(seconds) end
  if seconds >= 1e-3 then return ("%.3g ms"):format(seconds * 1e3) end
  if seconds >= 1e-6 then return ("%.3g us"):format(seconds * 1e6) end
  return ("%.3g ns"):format(seconds * 1e9)
end

local function rate_text(rate)
  for _, unit in ipairs { { 1e12, " T" }, { 1e9, " G" }, { 1e6, " M" }, { 1e3, " k" } } do
    if rate >= unit[1] then return ("%.3g%s"):format(rate / unit[1], unit[2]) end
  end
  return ("%.3g "):format(rate)
end

local Figures = { __tostring = function(f)
  return ("mean %s, median %s, p99 %s, min %s of %d; %sitems/s"):format(time_text(f.mean), time_text(f.p50),
           time_text(f.p99), time_text(f.min), f.iterations, rate_text(f.throughput))
end }

local read = native.signature("bench", {
  { "fn", "function", required = true }, { "warmup", "integer", default = 3 },
  { "iterations", "integer", default = 20 }, { "items", "number", default = 1 } })

---Runs fn and measures each iteration with the devices synchronised. Times in seconds, throughput in items a second;
---tostring tells them.
---@return { mean: number, p50: number, p99: number, min: number, throughput: number, iterations: integer }
local function bench(...)
  local o = read(...)
  for _ = 1, o.warmup do o.fn() end
  pg.synchronize()
  local times, sum = {}, 0
  for i = 1, o.iterations do
    local start = native.clock()
    o.fn()
    pg.synchronize()
    times[i] = native.clock() - start
    sum = sum + times[i]
  end
  table.sort(times)
  local function quantile(q) return times[math.max(1, math.ceil(q * #times))] end
  return setmetatable({ mean = sum / #times, p50 = quantile(0.5), p99 = quantile(0.99), min = times[1],
           throughput = o.items * #times / sum, iterations = #times }, Figures)
end

return { bench = bench }
