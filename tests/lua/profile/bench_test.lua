-- SPDX-License-Identifier: Apache-2.0
-- pg.bench: what it counts, and what it prints.

local pg = require "perigee"

test("bench: figures of as many calls as were asked for", function(t)
  local calls, x = 0, pg.ones { 4 }
  local figures = pg.bench(function() calls, x = calls + 1, x * 1 end, { warmup = 2, iterations = 7, items = 10 })
  t.equal({ calls, figures.iterations }, { 9, 7 })
  t.ok(figures.min > 0 and figures.min <= figures.p50 and figures.p50 <= figures.p99 and figures.min <= figures.mean)
  t.ok(math.abs(figures.throughput * figures.mean - 10) < 1e-6)
end)

test("bench: printed as text, with units", function(t)
  local native = require "perigee.native"
  local clock, now, step = native.clock, 0, 0
  native.clock = function() now = now + step; return now end
  local function text(seconds, items)
    step = seconds
    return tostring(pg.bench(function() end, { warmup = 0, iterations = 2, items = items }))
  end
  local ok, problem = pcall(function()
    t.equal(text(2, 1), "mean 2 s, median 2 s, p99 2 s, min 2 s of 2; 0.5 items/s")
    t.equal(text(0.25, 64), "mean 250 ms, median 250 ms, p99 250 ms, min 250 ms of 2; 256 items/s")
    t.equal(text(2 ^ -20, 1), "mean 954 ns, median 954 ns, p99 954 ns, min 954 ns of 2; 1.05 Mitems/s")
    t.ok(text(2 ^ -10, 2 ^ 20):find("977 us, .*; 1.07 Gitems/s"))
  end)
  native.clock = clock
  if not ok then error(problem, 0) end
end)
