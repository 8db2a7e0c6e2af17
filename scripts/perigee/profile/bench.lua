-- SPDX-License-Identifier: Apache-2.0
-- pg.bench: how long a function takes, the device's work included.

local native = require "perigee.native"
local pg = require "perigee"

local read = native.signature("bench", {
  { "fn", "function", required = true }, { "warmup", "integer", default = 3 },
  { "iterations", "integer", default = 20 }, { "items", "number", default = 1 } })

---Runs fn and measures each iteration with the devices synchronised. Times in seconds, throughput in items a second.
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
  return { mean = sum / #times, p50 = quantile(0.5), p99 = quantile(0.99), min = times[1],
           throughput = o.items * #times / sum, iterations = #times }
end

return { bench = bench }
