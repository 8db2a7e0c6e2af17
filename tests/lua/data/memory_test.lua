-- SPDX-License-Identifier: Apache-2.0
-- Memory over many passes: bounded by what waits, what is being made, and what garbage each Lua state may keep.

local pg = require "perigee"
local native = require "perigee.native"
local data = pg.data

local MB = 2 ^ 20
local SCRIPT, CALL = 64, 16 -- megabytes of garbage that the script and a worker may keep
local BATCH, EPOCHS = 8, 40 -- megabytes

-- Megabytes that passes over a pipeline have held at most, over what was alive before and a quarter of it as garbage.
local function peak_of(ds)
  collectgarbage()
  native.handles.reclaim()
  pg.memory.reset_peak "cpu"
  local before = pg.memory.stats("cpu").live
  for _ = 1, EPOCHS do
    for _ in ds:each() do end -- luacheck: ignore 542
  end
  return (pg.memory.stats("cpu").peak - before * 5 / 4) / MB
end

test("functions of workers leave no garbage for each other", function(t)
  local function one(s) return { x = require("perigee").full({ 512, 512 }, s.value) } end
  local function twice(b) return { x = b.x * 2 } end
  local ds = data.range(32):map { one, workers = 2 }:batch(BATCH):map { twice, workers = 2 }:prefetch(2)
  -- Ahead are twice as many as workers. Each of those holds a batch, a product, and what it has not collected yet: up
  -- to CALL, and what one more call takes. The script shows one batch, and may drop one more before it looks.
  local most = 4 * BATCH + 2 * (2 * BATCH + CALL + 2 * BATCH) + SCRIPT + 2 * BATCH
  local peak = peak_of(ds)
  t.ok(peak <= most, ("%d MB at most, expected at most %d"):format(peak, most))
end)

test("what threads make ahead makes no room for the script's garbage", function(t)
  local ahead = 4
  local ds = data.from_slices { x = pg.zeros { 32, 512, 512, device = "cpu" } }:batch(BATCH):prefetch(ahead)
  local peak, most = peak_of(ds), (ahead + 1) * BATCH + SCRIPT + 2 * BATCH
  t.ok(peak <= most, ("%d MB at most, expected at most %d"):format(peak, most))
end)

test("passes leave nothing behind in the script's state", function(t)
  local ds = data.range(8):batch(4):prefetch(2)
  local function kilobytes()
    collectgarbage()
    native.handles.reclaim()
    collectgarbage()
    return collectgarbage "count"
  end
  local function passes(n)
    for _ = 1, n do
      for _ in ds:each() do end -- luacheck: ignore 542
    end
  end
  passes(200)
  local before = kilobytes()
  passes(800)
  local after = kilobytes()
  t.ok(after <= before + 200, ("%d KB, then %d"):format(before, after))
end)

test("passes leave nothing behind in Lua", function(t)
  local ds = data.range(3):map(function(s) return s end):prefetch(2)
  local function heap_after(passes)
    for _ = 1, passes do
      for _ in ds:each() do end -- luacheck: ignore 542
    end
    collectgarbage()
    collectgarbage()
    return collectgarbage "count"
  end
  local before = heap_after(100)
  local after = heap_after(1500)
  t.ok(after < before + 40, ("%.0f KB, then %.0f"):format(before, after))
end)
