-- SPDX-License-Identifier: Apache-2.0
-- pg.bench_compare: which of two functions is faster, measured by turns.

local native = require "perigee.native"
local pg = require "perigee"

local read = native.signature("bench_compare", {
  { "a", "function", required = true }, { "b", "function", required = true },
  { "rounds", "integer", named = true, default = 15, doc = "how often each is measured" },
  { "warmup", "integer", named = true, default = 2, doc = "calls of each before that" },
  { "seconds", "number", named = true, default = 0.01, doc = "that one measurement takes at least" } })

---@class perigee.Comparison
---@field ratio number the median over the rounds of b's time by a's: 2 says that a is twice as fast
---@field low number a quarter of the rounds' ratios lie below
---@field high number a quarter lies above
---@field a number seconds a call, the median
---@field b number
---@field rounds integer
---@field verdict string which one is faster, or that there is no difference
local Comparison = { __tostring = function(c)
  local function text(seconds) return ("%.4g us"):format(seconds * 1e6) end
  return ("%s: a %s, b %s, b/a %.3f (quartiles %.3f to %.3f, %d rounds)"):format(c.verdict, text(c.a), text(c.b),
           c.ratio, c.low, c.high, c.rounds)
end }

local function measure(fn, calls)
  local start = native.clock()
  for _ = 1, calls do fn() end
  pg.synchronize()
  return (native.clock() - start) / calls
end

-- How many calls take the time that the clock resolves well.
local function calls_for(fn, seconds)
  local calls = 1
  while calls < 2 ^ 24 and measure(fn, calls) * calls < seconds do calls = calls * 2 end
  return calls
end

local function quantile(sorted, q) return sorted[math.max(1, math.min(#sorted, math.ceil(q * #sorted)))] end

local function sorted_copy(list)
  local copy = { unpack(list) }
  table.sort(copy)
  return copy
end

---Measures two functions by turns, in changing order, with the devices' work: what disturbs the machine meanwhile
---disturbs both. The verdict names one as faster where three quarters of the rounds say so, and by more than 1 percent.
---@return perigee.Comparison
local function bench_compare(...)
  local o = read(...)
  for _, name in ipairs { "rounds", "warmup" } do
    if o[name] < (name == "rounds" and 1 or 0) then
      native.raise("invalid_argument", "bench_compare", ("%s must be at least %d, got %d"):format(name,
                   name == "rounds" and 1 or 0, o[name]))
    end
  end
  for _ = 1, o.warmup do
    o.a()
    o.b()
  end
  pg.synchronize()
  local calls = { calls_for(o.a, o.seconds), calls_for(o.b, o.seconds) }
  local times_a, times_b, ratios = {}, {}, {}
  for i = 1, o.rounds do
    if i % 2 == 1 then
      times_a[i], times_b[i] = measure(o.a, calls[1]), measure(o.b, calls[2])
    else
      times_b[i] = measure(o.b, calls[2])
      times_a[i] = measure(o.a, calls[1])
    end
    ratios[i] = times_b[i] / times_a[i]
  end
  ratios = sorted_copy(ratios)
  local low, high = quantile(ratios, 0.25), quantile(ratios, 0.75)
  local said = low > 1.01 and "a is faster" or high < 1 / 1.01 and "b is faster" or "no difference"
  return setmetatable({ ratio = quantile(ratios, 0.5), low = low, high = high, rounds = o.rounds, verdict = said,
                        a = quantile(sorted_copy(times_a), 0.5), b = quantile(sorted_copy(times_b), 0.5) }, Comparison)
end

return { bench_compare = bench_compare }
