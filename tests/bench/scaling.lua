-- SPDX-License-Identifier: Apache-2.0
-- How a data-parallel training scales, from figures of one device and of the links between them. docs/scaling.md says
-- by which formulas.
--
--   perigee tests/bench/scaling.lua [forward=S] [backward=S] [update=S] [bytes=N] [buckets=K] [latency=S] [bandwidth=B]
--   perigee launch -n 4 tests/bench/scaling.lua measure     latency and bandwidth of the links, from all_reduce
--   PERIGEE_SIM_DEVICES=8 PERIGEE_SIM_CLOCK=linear:1000,matmul:1000 PERIGEE_SIM_LINKS='*:1GB/50'
--     perigee tests/bench/scaling.lua check                 the formulas against simulated devices, on their own clock

local M = {}

---Seconds of an all_reduce of so many bytes on a ring of n: each sends 2 (n - 1) pieces of a n-th to the next.
function M.all_reduce(n, bytes, o)
  return 2 * (n - 1) * (o.latency + bytes / n / o.bandwidth)
end

---Seconds of a step on n devices, each with a batch of its own. Gradients travel in buckets, of which each can start
---when its part of backward is over and the one before it has arrived; overlap=false: when all of backward is over.
function M.step(n, o)
  local sent = o.overlap == false and o.backward or 0
  for k = 1, o.buckets do
    local ready = o.backward * k / o.buckets
    sent = math.max(sent, ready) + (n > 1 and M.all_reduce(n, o.bytes / o.buckets, o) or 0)
  end
  return o.forward + sent + (o.update or 0)
end

---The latency and the bandwidth that explain the times of all_reduce on n devices best: a line through { bytes,
---seconds } by least squares of relative errors.
function M.fit(n, points)
  local s, sx, sy, sxx, sxy = 0, 0, 0, 0, 0
  for _, point in ipairs(points) do
    local x, y = point[1], point[2]
    local w = 1 / (y * y)
    s, sx, sy, sxx, sxy = s + w, sx + w * x, sy + w * y, sxx + w * x * x, sxy + w * x * y
  end
  local slope = (s * sxy - sx * sy) / (s * sxx - sx * sx)
  local constant = math.max((sy - slope * sx) / s, 0)
  return constant / (2 * (n - 1)), 2 * (n - 1) / n / slope
end

local function show(o)
  print(("forward %g s, backward %g s, update %g s, %g MB of gradients in %d buckets; links %g us, %g MB/s"):format(
    o.forward, o.backward, o.update, o.bytes / 1e6, o.buckets, o.latency * 1e6, o.bandwidth / 1e6))
  print(("%8s %14s %14s %11s %16s"):format("devices", "all_reduce s", "step s", "efficiency", "without overlap"))
  local alone = M.step(1, o)
  for _, n in ipairs { 1, 8, 64, 1024 } do
    local apart = setmetatable({ overlap = false }, { __index = o })
    print(("%8d %14.4g %14.4g %10.1f%% %15.1f%%"):format(n, n > 1 and M.all_reduce(n, o.bytes, o) or 0, M.step(n, o),
      100 * alone / M.step(n, o), 100 * alone / M.step(n, apart)))
  end
end

-- The least of some times, for each size: what other work on the machine adds is no property of a link.
local function measure()
  local pg = require "perigee"
  local d, clock = pg.dist, require "perigee.native".clock
  if d.size() < 2 then error "perigee launch -n 4 tests/bench/scaling.lua measure" end
  local points = {}
  for power = 10, 24, 2 do
    local x, least = pg.ones { 2 ^ power / 4 }, math.huge
    for _ = 1, 30 do
      d.barrier()
      local begin = clock()
      d.all_reduce(x):free()
      least = math.min(least, clock() - begin)
    end
    points[#points + 1] = { 2 ^ power, d.all_reduce(pg.tensor(least, { dtype = "float64" }), { op = "max" }):item() }
  end
  if d.rank() > 0 then return end
  local latency, bandwidth = M.fit(d.size(), points)
  for _, point in ipairs(points) do
    local fitted = M.all_reduce(d.size(), point[1], { latency = latency, bandwidth = bandwidth })
    print(("%9d bytes %10.1f us, formula %10.1f us"):format(point[1], point[2] * 1e6, fitted * 1e6))
  end
  print(("latency=%.3g bandwidth=%.4g"):format(latency, bandwidth))
end

-- ---- on simulated devices ----

local LAYERS, WIDTH, LAUNCH = 4, 256, 1e-3

-- Seconds of what devices do in a step of a strategy's, by their own clock.
local function simulated(n, o)
  local pg = require "perigee"
  local devices, model, optimizer = {}, nil, nil
  for k = 1, n do devices[k] = "sim:" .. k - 1 end
  local strategy = pg.dist.mirrored { devices = devices }
  strategy:scope(function()
    local layers = {}
    for i = 1, LAYERS do layers[i] = pg.nn.Linear { WIDTH, WIDTH, bias = false } end
    model = pg.nn.Sequential(layers)
    optimizer = pg.optim.SGD { model:parameters(), lr = 0.01 }
  end)
  local parts = {}
  for k = 1, n do -- with a gradient, that the first layer computes as much as the others
    parts[k] = pg.ones({ 2, WIDTH }, { device = devices[k] }):requires_grad_()
  end
  local function step()
    strategy:run(function()
      optimizer:zero_grad()
      model(parts[strategy.rank + 1]):sum():backward()
      strategy:reduce_gradients(optimizer)
      optimizer:step()
    end)
  end
  step()
  local first, last = math.huge, -math.huge
  for _, r in ipairs(pg.profile(step, { roofline = false, origins = false }).records) do
    if not r.thread and not r.block then first, last = math.min(first, r.from), math.max(last, r.to) end
  end
  return last - first, M.step(n, o)
end

local function check()
  local rate, latency = (os.getenv "PERIGEE_SIM_LINKS" or ""):match "^%*:(%d+)GB/(%d+)$"
  if not rate or os.getenv "PERIGEE_SIM_CLOCK" ~= "linear:1000,matmul:1000" then
    error "PERIGEE_SIM_CLOCK=linear:1000,matmul:1000 PERIGEE_SIM_LINKS='*:1GB/50'"
  end
  local o = { forward = LAYERS * LAUNCH, backward = 2 * LAYERS * LAUNCH, update = 0, buckets = LAYERS,
              bytes = LAYERS * WIDTH * WIDTH * 4, latency = latency * 1e-6, bandwidth = rate * 2 ^ 30 }
  for _, n in ipairs { 2, 4, 8 } do
    local seconds, expected = simulated(n, o)
    print(("%d devices: %.6f s, formula %.6f s, ratio %.4f"):format(n, seconds, expected, seconds / expected))
  end
end

local words, first = { ... }, (...)
if first == "measure" then return measure() end
if first == "check" then return check() end
local o = { forward = 0.05, backward = 0.1, update = 0.005, bytes = 1e8, buckets = 4, latency = 5e-6, bandwidth = 1e10 }
for _, word in ipairs(words) do
  local name, value = word:match "^(%w+)=([%d.e+-]+)$"
  if not name or not o[name] or not tonumber(value) then error(("%s is not like backward=0.1"):format(word)) end
  o[name] = tonumber(value)
end
show(o)
