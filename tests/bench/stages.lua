-- SPDX-License-Identifier: Apache-2.0
-- perigee tests/bench/stages.lua [ROUNDS]: what an element of a source costs, and what stages of pipelines add to it;
-- batches of small slices beside a plain indexed copy of the same rows; a cache in a file beside a plain read of the
-- file, from the disk both; a step of 5 ms behind an input of 5 ms; memory over 100 epochs. Medians, least and most;
-- each round measures both sides of a ratio, one after the other.

local pg = require "perigee"
local native = require "perigee.native"
local data, clock = pg.data, native.clock
local rounds = tonumber(arg[1]) or 7

local function spread(values)
  table.sort(values)
  return values[math.ceil(#values / 2)], values[1], values[#values]
end

local function seconds_of(ds)
  local begin = clock()
  for _ in ds:each() do end -- luacheck: ignore 542
  return clock() - begin
end

-- Microseconds an element that `stage`, applied `times` times, adds to a pipeline of n.
local function overhead(name, n, times, make, stage)
  local added = {}
  for round = 0, rounds do
    local plain, more = make(n), make(n)
    for _ = 1, times do more = stage(more) end
    local without, with = seconds_of(plain), seconds_of(more)
    if round > 0 then added[round] = (with - without) / n / times * 1e6 end
  end
  print(("%-34s %6.2f us an element (%.2f to %.2f)"):format(name, spread(added)))
end

-- Microseconds an element of a pipeline of n.
local function alone(name, n, make)
  local times = {}
  for round = 0, rounds do
    local ds = make(n)
    local seconds = seconds_of(ds)
    if round > 0 then times[round] = seconds / n * 1e6 end
  end
  print(("%-34s %6.2f us an element (%.2f to %.2f)"):format(name, spread(times)))
end

local function same(s) return s end
local function fields(s) return { x = s.x, y = s.y } end
local function all() return true end
local function ahead(n) return data.range(n):prefetch(64) end
local tensors = { x = pg.rand { 20000, 16 }, y = pg.arange(20000) }
local function rows_ahead() return data.from_slices(tensors):prefetch(64) end

alone("range", 20000, data.range)
alone("from_slices, of two tensors", 20000, function() return data.from_slices(tensors) end)
alone("range and batch, of 100", 20000, function(n) return data.range(n):batch(100) end)
alone("range, map on a worker, batch", 20000, function(n) return data.range(n):map { same, workers = 1 }:batch(100) end)
overhead("take, in the core", 20000, 8, data.range, function(ds) return ds:take(20000) end)
overhead("shuffle, in the core", 20000, 8, data.range, function(ds) return ds:shuffle { seed = 1 } end)
overhead("map, on the script's thread", 20000, 4, function(n) return data.range(n):map(same) end,
         function(ds) return ds:map(same) end)
overhead("filter, on the script's thread", 20000, 4, function(n) return data.range(n):map(same) end,
         function(ds) return ds:filter(all) end)
overhead("prefetch", 20000, 1, data.range, function(ds) return ds:prefetch(64) end)
overhead("map, on a worker", 20000, 3, ahead, function(ds) return ds:map { same, workers = 1 } end)
overhead("map of two tensors, on a worker", 20000, 3, rows_ahead,
         function(ds) return ds:map { fields, workers = 1 } end)
overhead("filter, on a worker", 20000, 3, ahead, function(ds) return ds:filter { all, workers = 1 } end)
overhead("cache, what is kept", 20000, 1, ahead, function(ds)
  ds = ds:cache()
  seconds_of(ds)
  return ds
end)

local function slices()
  local x, size = pg.rand { 20000, 16 }, 256
  local ds = data.from_slices { x = x }:shuffle { seed = 1 }:batch(size)
  local order, ratios = pg.randperm(20000), {}
  local function copied()
    local begin = clock()
    for i = 1, 20000 - size + 1, size do
      local _ = { x = x:index_select(order:narrow(1, i, size), 1) }
    end
    return clock() - begin
  end
  local least, least_copy = math.huge, math.huge
  for round = 0, 5 * rounds do
    local pipeline, copy = seconds_of(ds), copied()
    least, least_copy = math.min(least, pipeline), math.min(least_copy, copy)
    if round > 0 then ratios[round] = pipeline / copy end
  end
  local middle, low, high = spread(ratios)
  print(("%-34s %6.2f times an indexed copy (%.2f to %.2f), the best of each %.2f"):format(
        "batches of 256 rows of 16", middle, low, high, least / least_copy))
end
slices()

-- The file leaves the system's memory before each of the two reads it.
local function disk_cache()
  local path, ratios, speeds = os.tmpname(), {}, {}
  os.remove(path)
  local x = pg.rand { 64, 2 ^ 20 }
  local function cached() return data.from_slices { x = x }:cache(path) end
  seconds_of(cached())
  local function forget()
    os.execute(("sync '%s'; dd if='%s' iflag=nocache count=0 status=none"):format(path, path))
  end
  for round = 0, rounds do
    forget()
    local begin = clock()
    os.execute(("dd if='%s' of=/dev/null bs=1M status=none"):format(path))
    local plain = clock() - begin
    forget()
    local ds = cached()
    local seconds = seconds_of(ds)
    if round > 0 then ratios[round], speeds[round] = seconds / plain, 2 ^ 28 / seconds / 1e9 end
  end
  os.remove(path)
  print(("%-34s %6.2f times a plain read (%.2f to %.2f), at %.2f GB/s"):format("a cache on the disk, 256 MB",
        (spread(ratios)), ratios[1], ratios[#ratios], (spread(speeds))))
end
disk_cache()

-- Both only wait, so that the processors' number does not matter.
local function overlap()
  local function input(s)
    require("perigee.native").sleep(0.005)
    return s
  end
  local steps, times = 100, {}
  for round = 1, rounds do
    local ds = data.range(steps + 10):map { input, workers = 1 }:prefetch(4)
    local begin
    for step in ds:each() do
      if step == 10 then begin = clock() end
      native.sleep(0.005)
    end
    times[round] = (clock() - begin) / steps * 1e3
  end
  print(("%-34s %6.2f ms a step (%.2f to %.2f)"):format("5 ms of input, 5 ms of computation", spread(times)))
end
overlap()

local function resident()
  local file = io.open "/proc/self/statm"
  local pages = tonumber((select(2, file:read("*n", "*n"))))
  file:close()
  return pages * 4096 / 2 ^ 20
end

local function memory()
  local function noisy(s)
    local own = require "perigee"
    return { x = s.x + own.rand { 64, 64, 3 }, y = s.y }
  end
  local ds = data.from_slices { x = pg.rand { 128, 64, 64, 3 }, y = pg.arange(128) }:shuffle { seed = 1 }
    :map { noisy, workers = 2 }:batch(16):prefetch(4)
  local at = {}
  for epoch = 1, 100 do
    seconds_of(ds)
    if epoch == 10 or epoch == 50 or epoch == 100 then
      collectgarbage()
      at[#at + 1] = ("%.0f MB after %d"):format(resident(), epoch)
    end
  end
  print(("%-34s %s"):format("memory over epochs", table.concat(at, ", ")))
end
memory()
