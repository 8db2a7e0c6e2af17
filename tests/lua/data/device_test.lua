-- SPDX-License-Identifier: Apache-2.0
-- Pipelines while a device is in force: functions of the script see what they see on workers, so that elements are made
-- on the processor and go to a device by prefetch{device=}.

local pg = require "perigee"
local native = require "perigee.native"
local data = pg.data

local sim = pg.devices("sim")[1]
local other = pg.device() ~= "cpu" and pg.device() or os.getenv "PERIGEE_TEST_SECOND" or sim and sim.name

-- Both ways to put a device in force.
local function in_force(name, fn)
  local function with(way, call)
    test(name .. ": " .. way, function(t)
      if not other then t.skip("there is no second device") end
      call(t)
    end)
  end
  with("a scope's", function(t) pg.device(other, fn, t) end)
  with("the default", function(t)
    local before = native.default_device()
    pg.set_default_device(other)
    local ok, err = pcall(fn, t)
    native.set_default_device(before or -1)
    if not ok then error(err, 0) end
  end)
end

in_force("what functions make is made on the processor, on each way", function(t)
  local function made() return { x = pg.ones { 2 } } end
  local function placed(s) return { x = s.x + pg.ones { 2 }, y = pg.tensor { 1, 2 }, z = 3 } end
  local function generated() for _ = 1, 3 do coroutine.yield(made()) end end
  local source = data.from_index { 3, made }
  local ways = { source:map(placed), source:map { placed, workers = 2 }, data.from_generator(generated):map(placed),
                 data.from_generator(generated):map { placed, workers = 1 }:prefetch(2),
                 source:map { placed, on_error = "skip" }, source:map(placed):filter(function(s)
                   return (s.x + pg.ones { 2 }).device == "cpu"
                 end), source:map(placed):cache(), data.range(3):interleave(function() return source:map(placed) end) }
  for way, ds in ipairs(ways) do
    local count = 0
    for _, b in ds:batch(2):each() do
      count = count + 1
      t.equal({ way, b.x.device, b.y.device, b.z.device }, { way, "cpu", "cpu", "cpu" })
    end
    t.ok(count >= 2, way)
  end
  t.equal(source:map(placed)[2].x.device, "cpu")
  t.equal(pg.device(), other) -- and the script is where it was
  t.raises(function() return data.from_index { 1, function() error "mine" end }[1] end, "mine")
  t.equal(pg.device(), other)
end)

in_force("from inside of a coroutine", function(t)
  local ds = data.from_index { 4, function(i) return { x = pg.full({ 2 }, i) } end }:batch(2)
  local pass = coroutine.wrap(function()
    for _, b in ds:each() do coroutine.yield(b) end
  end)
  t.equal(pass().x.device, "cpu")
  t.equal(pg.device(), other)
  t.equal(pass().x, { { 3, 3 }, { 4, 4 } })
end)

in_force("behind prefetch tensors stay on its device", function(t)
  local ds = data.from_index { 4, function(i) return { x = pg.full({ 2 }, i) } end }:batch(2)
    :prefetch { 2, device = other }:map(function(b) return { x = b.x * 2 + 1 } end)
  local sum = 0
  for _, b in ds:each() do
    t.equal(b.x.device, other)
    sum = sum + b.x:sum():item()
  end
  t.equal(sum, 48)
end)

local tests = (debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or ".") .. "/../.."
package.path = tests .. "/?.lua;" .. package.path
local process = require "process"

-- Staged, a batch of 12 MB goes up in pieces of 4 MB. PERIGEE_SIM_RACES finds memory that is written before it is read.
test("a batch is made where its device copies from: one upload, whatever its size", function(t)
  local perigee = process.need_perigee(t)
  local path = process.file [[
    local pg = require "perigee"
    local source = pg.data.from_index { 14, function(i) return { x = pg.full({ 1500000 }, i), n = i } end }
    local function uploads(ds)
      local sums = {}
      local profile = pg.profile(function()
        for _, b in ds:each() do sums[#sums + 1] = (b.x[{ {}, 7 }] + b.x[{ {}, -1 }] + b.n):sum():item() end
        pg.synchronize()
      end, { roofline = false, origins = false })
      local count = 0
      for _, r in ipairs(profile.records) do
        if r.name == "upload" and not r.thread and not r.block then count = count + 1 end
      end
      return ("%d: %s"):format(count, table.concat(sums, " "))
    end
    print(uploads(source:batch(2):prefetch { 3, device = "sim:0" }))
    print(uploads(source:batch(2):cache():prefetch { 3, device = "sim:0" }))
    print(uploads(source:map { function(s) return s end, workers = 2 }:batch(5):prefetch { 3, device = "sim:0" }))
    pg.memory.empty_cache()
    local function resident() return tonumber(io.open("/proc/self/status"):read "*a":match "VmHWM:%s+(%d+)") / 1024 end
    local before = resident()
    for _, b in pg.data.from_index { 160, function(i) return { x = pg.full({ 1500000 }, i) } end }:batch(2)
      :prefetch { 2, device = "sim:0" }:each() do b.x:free() end
    print(resident() - before < 640 and "memory that has been read is used again" or resident() - before)
  ]]
  local text, status = process.run(("PERIGEE_SIM_DEVICES=1 PERIGEE_SIM_RACES=1 PERIGEE_SIM_JITTER=500 '%s' '%s'")
    :format(perigee, path))
  os.remove(path)
  t.equal(status, 0, text)
  -- Numbers go up by themselves: one upload a batch more. What is kept is staged, in three pieces.
  t.equal(text, "14: 9 21 33 45 57 69 81\n28: 9 21 33 45 57 69 81\n6: 45 120 150\n" ..
                "memory that has been read is used again\n")
end)
