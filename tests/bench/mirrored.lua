-- SPDX-License-Identifier: Apache-2.0
-- A training step of pg.dist.mirrored over simulated devices, over the same steps of each device for itself: what
-- replicas, sums of gradients and turns cost the one processor thread that gives devices their work, and what devices
-- wait. Least times of a round, medians of the rounds' ratios with the least and the most. With another build's
-- executable the same is measured of it, by turns, and the ratio of steps to its.
--
--   perigee tests/bench/mirrored.lua [OTHER_PERIGEE] [ROUNDS]

local pg = require "perigee"
local native = require "perigee.native"
local nn, optim = pg.nn, pg.optim

local MODELS = { { "20 x 16", {} }, { "784-128-10", { 784, 128, 10 } } } -- simulated kernels are plain loops
for i = 1, 21 do MODELS[1][2][i] = 16 end
local ROWS, REPEATS = 4, 20 -- rows of each device

local function build(sizes)
  local list = {}
  for i = 2, #sizes do
    list[#list + 1] = nn.Linear { sizes[i - 1], sizes[i] }
    if i < #sizes then list[#list + 1] = nn.ReLU {} end
  end
  return nn.Sequential(list)
end

local function timed(devices, fn)
  local function wait()
    for _, device in ipairs(devices) do pg.synchronize(device) end
  end
  for _ = 1, 6 do fn() end
  local least = math.huge
  for _ = 1, REPEATS do
    wait()
    local begin = native.clock()
    fn()
    wait()
    least = math.min(least, native.clock() - begin)
  end
  return least * 1e3
end

local function step_of(model, optimizer, x, y)
  optimizer:zero_grad()
  nn.mse(model(x), y):backward()
  optimizer:step()
end

local function measure()
  for _, case in ipairs(MODELS) do
    for _, count in ipairs { 2, 4 } do
      local sizes, devices, alone = case[2], {}, {}
      for k = 1, count do devices[k] = "sim:" .. k - 1 end
      local x, y = pg.randn { count * ROWS, sizes[1] }, pg.randn { count * ROWS, sizes[#sizes] }
      local ds = pg.data.from_slices { x = x, y = y }:batch(count * ROWS)
      for k, device in ipairs(devices) do
        local model = build(sizes):to(device)
        alone[k] = { model, optim.SGD { model:parameters(), lr = 0.01 }, x[{ { 1, ROWS } }]:to(device),
                     y[{ { 1, ROWS } }]:to(device) }
      end
      local apart = timed(devices, function()
        for _, one in ipairs(alone) do step_of(unpack(one)) end
      end)
      local strategy, model, optimizer, batch = pg.dist.mirrored { devices = devices }, nil, nil, nil
      strategy:scope(function()
        model = build(sizes)
        optimizer = optim.SGD { model:parameters(), lr = 0.01 }
      end)
      for _, b in strategy:distribute(ds):each() do batch = b end
      local function step(b) step_of(model, optimizer, b.x, b.y) end
      local together = timed(devices, function() strategy:run(step, batch) end)
      print(("%s, %d devices\t%.4f\t%.4f"):format(case[1], count, together, apart))
    end
  end
end

if os.getenv "PERIGEE_BENCH_MIRRORED" then return measure() end

local other, rounds = ..., tonumber((select(2, ...))) or 5
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$" or "."
local sides = { native.home .. "/bin/perigee", other }

local function median(list)
  if not list[1] then return "" end
  table.sort(list)
  return ("%.2f (%.2f to %.2f)"):format(list[math.ceil(#list / 2)], list[1], list[#list])
end

local names, rows = {}, {}
for _ = 1, rounds do
  for side, perigee in ipairs(sides) do
    local pipe = assert(io.popen(("PERIGEE_BENCH_MIRRORED=1 PERIGEE_SIM_DEVICES=4 '%s' '%s/mirrored.lua'"):format(
      perigee, here)))
    for line in pipe:lines() do
      local name, together, apart = line:match "^(.-)\t([%d.]+)\t([%d.]+)$"
      if name then
        if not rows[name] then
          names[#names + 1] = name
          rows[name] = { ratios = { {}, {} }, to_other = {}, least = { math.huge, math.huge } }
        end
        local row = rows[name]
        together, apart = tonumber(together), tonumber(apart)
        table.insert(row.ratios[side], together / apart)
        row.least[side] = math.min(row.least[side], together)
        if side == 1 then row.now = together else table.insert(row.to_other, row.now / together) end
      end
    end
    pipe:close()
  end
end
print(("%-28s %9s %23s %9s %23s %23s"):format("", "ms", "over steps apart", "other ms", "over steps apart",
  "to the other"))
for _, name in ipairs(names) do
  local row = rows[name]
  print(("%-28s %9.3f %23s %9s %23s %23s"):format(name, row.least[1], median(row.ratios[1]),
    other and ("%.3f"):format(row.least[2]) or "", median(row.ratios[2]), median(row.to_other)))
end
