-- SPDX-License-Identifier: Apache-2.0
-- What pg.profile makes of records: verdicts, busy times, gaps, the roofline. First on records that are written here,
-- so that they do not depend on the machine, then on what runs, also on the simulated device.

local pg = require "perigee"
local analysis = require "perigee.profile.analysis"
local verdict = require "perigee.profile.verdict"
local flops = require "perigee.profile.flops"

local function on_cpu(t)
  if t.device and t.device ~= "cpu" then t.skip("of the processor") end
end

-- As long as that, without an operator.
local function idle(seconds)
  local clock = require("perigee.native").clock
  local stop = clock() + seconds
  while clock() < stop do end
end

-- ---- records that are written here ----

local CPU, DEVICE = 0, 1
local MS = 1e-3

-- kind, name, from, to in milliseconds, and more fields. On the script's thread unless `thread` says otherwise.
local function record(kind, name, from, to, more)
  local r = { kind = kind, name = name, from = from * MS, to = to * MS, thread = "script", device = CPU, bytes = 0,
              stream = 0 }
  for key, v in pairs(more or {}) do r[key] = v end
  if more and more.told then r.thread, r.device = nil, DEVICE end
  return r
end
local function told(kind, name, from, to, more)
  more = more or {}
  more.told = true
  return record(kind, name, from, to, more)
end

-- A device of 100 GFLOP/s and 10 GB/s.
local roofline = { flops = function() return 1e11 end, bytes = function() return 1e10 end }

local function analysed(milliseconds, records)
  table.sort(records, function(a, b) return a.to < b.to end)
  local p = { records = records, lost = 0, seconds = milliseconds * MS, noting = 0 }
  analysis(p, { [CPU] = { name = "cpu", bytes = 0 }, [DEVICE] = { name = "sim:0", bytes = 0 } }, roofline)
  p.verdict = verdict(p)
  return p
end

local function sum(parts)
  local total = 0
  for _, v in pairs(parts) do total = total + v end
  return total
end

-- Launches and what they begin: `each` milliseconds of the host, `long` of the device, one every `period`.
local function launches(count, period, each, long, more)
  local list, free = {}, 0
  for i = 0, count - 1 do
    local begin = i * period
    list[#list + 1] = record("op", "work", begin, begin + each, { device = DEVICE })
    list[#list + 1] = record("launch", "work", begin + each / 2, begin + each, { device = DEVICE, sequence = i + 1 })
    free = math.max(free, begin + each) + long
    local r = { sequence = i + 1, bytes = 1000, shapes = "float32 [10] -> [10]" }
    for key, v in pairs(more or {}) do r[key] = v end
    list[#list + 1] = told("kernel", "work", free - long, free, r)
  end
  return list, free
end

test("verdict of records: compute-bound and memory-bound, by what the device can do", function(t)
  local dense, stop = launches(10, 0.1, 0.05, 5, { bytes = 12 * 2 ^ 20, shapes =
                               "float32 [1024, 1024], [1024, 1024] -> [1024, 1024]", name = "matmul" })
  dense[#dense + 1] = record("wait", "synchronize", 1, stop, { device = DEVICE })
  local p = analysed(stop, dense)
  t.equal(p.verdict.kind, "compute-bound", p.verdict.text)
  local row
  for _, each in ipairs(p.rows) do if each.name == "matmul" then row = each end end
  t.equal(row.bound, "compute")
  t.close(row.roofline, 10 * 2 * 2 ^ 30 / 1e11 / 0.05, 1e-9)
  t.close(row.kernel, 0.05, 1e-9)
  t.close(p.devices["sim:0"].busy, 50 / stop, 1e-9)
  t.close(sum(p.parts), p.seconds, 1e-9)
  t.ok(p.parts.waits < 1e-9, "what the device computes meanwhile is no waiting")

  local sparse
  sparse, stop = launches(10, 0.1, 0.05, 5, { bytes = 4e7, shapes = "float32 [5000000] -> [5000000]", name = "add" })
  sparse[#sparse + 1] = record("wait", "synchronize", 1, stop, { device = DEVICE })
  p = analysed(stop, sparse)
  t.equal(p.verdict.kind, "memory-bound", p.verdict.text)
  for _, each in ipairs(p.rows) do if each.name == "add" then row = each end end
  t.equal(row.bound, "memory")
  t.close(row.roofline, 4e7 / 1e10 / 5e-3, 1e-9)
end)

test("verdict of records: launch-bound, where the device waits for the host's calls", function(t)
  local list = launches(100, 0.1, 0.09, 0.001)
  local p = analysed(10, list)
  t.equal(p.verdict.kind, "launch-bound", p.verdict.text)
  t.ok(p.devices["sim:0"].busy < 0.02)
  t.close(p.devices["sim:0"].kernels, 100 * 1e-6, 1e-9)
end)

test("verdict of records: host-bound, where the script does something else", function(t)
  local p = analysed(100, (launches(10, 10, 0.1, 0.5)))
  t.equal(p.verdict.kind, "host-bound", p.verdict.text)
  t.equal(#p.devices["sim:0"].gaps, 3)
  t.close(p.devices["sim:0"].gaps[1].seconds, 9.5 * MS, 1e-6)
  t.equal(p.devices["sim:0"].gaps[1].after, "work")
end)

test("verdict of records: input-bound, but not where the device computes meanwhile", function(t)
  local function steps(long)
    local list = launches(10, 10, 0.1, long, { bytes = 1e6 })
    for i = 0, 9 do list[#list + 1] = record("range", "input", i * 10 + 0.2, i * 10 + 9.9, { device = -1 }) end
    return analysed(100, list)
  end
  local p = steps(0.5)
  t.equal(p.verdict.kind, "input-bound", p.verdict.text)
  t.close(sum(p.parts), p.seconds, 1e-9)
  p = steps(9.5)
  t.ok(p.verdict.kind ~= "input-bound", p.verdict.text)
  -- What a stage does on the script's thread is input, with no range around it.
  p = analysed(100, { record("stage", "map", 0, 90, { device = -1 }), record("op", "add", 10, 20) })
  t.equal(p.verdict.kind, "input-bound", p.verdict.text)
  t.close(p.parts.input, 0.09, 1e-9)
end)

test("verdict of records: copy-bound, on the device or on the host", function(t)
  local list = {}
  for i = 0, 9 do
    list[#list + 1] = record("upload", "upload", i * 10, i * 10 + 1, { device = DEVICE, bytes = 1e6 })
    list[#list + 1] = record("launch", "upload", i * 10 + 0.5, i * 10 + 1, { device = DEVICE, sequence = i + 1 })
    list[#list + 1] = told("upload", "upload", i * 10 + 1, i * 10 + 9, { bytes = 1e6, sequence = i + 1 })
    list[#list + 1] = told("kernel", "work", i * 10 + 9, i * 10 + 9.5, { bytes = 1e6 })
  end
  local p = analysed(100, list)
  t.equal(p.verdict.kind, "copy-bound", p.verdict.text)
  t.close(p.parts.copies, 0.09, 1e-9)
  t.equal(p.devices["sim:0"].bytes, 1e7)
  t.close(p.devices["sim:0"].copies, 0.08, 1e-9)
  t.close(p.devices["sim:0"].kernels, 0.005, 1e-9)
end)

test("what runs on several streams at once is counted once", function(t)
  local p = analysed(10, { told("kernel", "a", 0, 4), told("kernel", "b", 2, 6, { stream = 1 }),
                           told("upload", "upload", 5, 8, { stream = 2, bytes = 10 }) })
  local d = p.devices["sim:0"]
  t.close(d.kernels, 0.006, 1e-12)
  t.close(d.copies, 0.002, 1e-12)
  t.close(d.busy, 0.8, 1e-9)
  t.close(p.parts.kernels + p.parts.copies, 0.008, 1e-12)
end)

test("operations are estimated from shapes", function(t)
  local function is(name, shapes, expected) t.close(flops(name, shapes), expected, expected * 1e-9, name) end
  is("matmul", "float32 [8, 3], [3, 5] -> [8, 5]", 2 * 8 * 3 * 5)
  is("matmul", "float32 [7, 8, 3], [7, 3, 5] -> [7, 8, 5]", 7 * 2 * 8 * 3 * 5)
  is("linear", "bfloat16 [8, 3], [5, 3], none -> [8, 5]", 2 * 8 * 3 * 5)
  local x, w, y = "[2, 3, 8, 8]", "[5, 3, 3, 3]", "[2, 5, 6, 6]"
  local forward = 2 * 2 * 5 * 6 * 6 * 27
  is("conv2d", ("float32 %s, %s, none -> %s"):format(x, w, y), forward)
  is("conv2d_grad_input", ("float32 %s, %s, %s -> %s"):format(y, w, x, x), forward)
  is("conv2d_grad_weight", ("float32 %s, %s, %s -> %s"):format(y, x, w, w), forward)
  is("conv2d_grad", ("float32 %s, %s, %s -> %s, %s"):format(y, x, w, x, w), 2 * forward)
  is("conv_transpose2d", "float32 [2, 5, 6, 6], [5, 3, 3, 3] -> [2, 3, 8, 8]", forward)
  is("scaled_dot_product_attention", "float32 [2, 4, 16, 8], [2, 4, 20, 8], [2, 4, 20, 8] -> [2, 4, 16, 8]",
     2 * 2 * 4 * 16 * 20 * 16)
  is("sum", "float32 [100, 10] -> []", 1000)
  is("exp", "float32 [0] -> [0]", 0)
  t.equal(flops("exp", nil), 0)
end)

-- ---- what runs ----

local function verdict_of(fn) return pg.profile(fn, { origins = false }).verdict end
local function check(t, kind, fn)
  fn(true) -- what the first call makes
  local v
  for _ = 1, 10 do -- the machine may have been busy with something else
    v = verdict_of(fn)
    if v.kind == kind then break end
  end
  t.equal(v.kind, kind, v.text)
  t.ok(#v.advice > 20)
end

test("verdict: input-bound", function(t)
  on_cpu(t)
  local set = pg.data.from_index { 64, get = function(i)
    idle(1e-4)
    return { x = pg.full({ 4 }, i), y = pg.zeros { 1 } }
  end }:batch { 8 }
  local model = pg.nn.Linear { 4, 1 }
  local optimizer = pg.optim.SGD { lr = 1e-4 }
  check(t, "input-bound", function()
    model:fit { data = set, loss = "mse", optimizer = optimizer, verbose = 0 }
  end)
end)

test("verdict: host-bound", function(t)
  on_cpu(t)
  local x = pg.rand { 1000 }
  check(t, "host-bound", function()
    for _ = 1, 10 do
      x:exp()
      idle(1e-3)
    end
  end)
end)

test("verdict: launch-bound", function(t)
  on_cpu(t)
  check(t, "launch-bound", function()
    local x = pg.rand { 4 }
    for _ = 1, 20000 do x = x + 1 end
  end)
end)

test("verdict: memory-bound", function(t)
  on_cpu(t)
  local x = pg.rand { 2 ^ 22 }
  check(t, "memory-bound", function()
    for _ = 1, 4 do x:add(1) end
  end)
end)

test("verdict: compute-bound", function(t)
  on_cpu(t)
  local x = pg.rand { 512, 512 }
  check(t, "compute-bound", function()
    for _ = 1, 4 do x:matmul(x) end
  end)
end)

-- ---- on the simulated device, which tells what it does ----

local function need_sim(t)
  on_cpu(t)
  if not pcall(pg.zeros, { 1, device = "sim:0" }) then t.skip("no sim:0") end
end

test("a simulated device tells of its kernels and copies", function(t)
  need_sim(t)
  local host = pg.rand { 64, 64 }
  local x = host:to "sim:0"
  x:matmul(x):to "cpu" -- so that it is over when the profile begins
  local p = pg.profile(function()
    local y = host:to "sim:0"
    for _ = 1, 3 do y = y:matmul(x) end
    y:exp():to "cpu"
  end)
  local counts, launched = {}, {}
  for _, r in ipairs(p.records) do
    if r.kind == "launch" then launched[r.sequence] = r.from end
  end
  for _, r in ipairs(p.records) do
    if not r.block and not r.thread then
      counts[r.kind .. " " .. r.name] = (counts[r.kind .. " " .. r.name] or 0) + 1
      t.ok(r.to >= r.from and r.from > 0 and r.sequence, r.name)
      t.ok(launched[r.sequence] and launched[r.sequence] <= r.to, r.name)
      if r.name == "matmul" then
        t.equal(r.shapes, "float32 [64, 64], [64, 64] -> [64, 64]")
        t.ok(r.line:find "verdict_test.lua:%d+$", r.line)
        t.equal(r.bytes, 3 * 64 * 64 * 4)
      end
    end
  end
  t.equal({ counts["kernel matmul"], counts["kernel exp"], counts["upload upload"], counts["download download"] },
          { 3, 1, 1, 1 })
  local d = p.devices["sim:0"]
  t.ok(d.kernels > 0 and d.busy > 0 and d.busy <= 1)
  t.equal(d.bytes, 2 * 64 * 64 * 4)
  local text = tostring(p)
  t.ok(text:find "sim:0: busy %d+ %%, kernels", text)
end)

test("the time line has arrows from launches to what they began", function(t)
  need_sim(t)
  local path, x = os.tmpname(), pg.rand({ 256, 256 }):to "sim:0"
  for _ = 1, 20 do x = x:matmul(x) end -- the device is still at it when the profile begins
  pg.profile(function() x:exp():sin() end, { trace = path })
  local trace = pg.json.load(path)
  os.remove(path)
  local starts, ends, lines = {}, {}, {}
  for _, e in ipairs(trace.traceEvents) do
    if e.ph == "s" then starts[e.id] = e end
    if e.ph == "f" then ends[e.id] = e end
    if e.ph == "M" and e.name == "thread_name" then lines[e.args.name] = e.tid end
  end
  local count = 0
  for id, e in pairs(ends) do
    count = count + 1
    t.ok(starts[id] and starts[id].tid ~= e.tid)
    t.equal(e.tid, lines["sim:0 stream 0"])
  end
  t.equal(count, 2)
end)

local function check_sim(t, kind, fn)
  need_sim(t)
  check(t, kind, function()
    fn()
    pg.synchronize "sim:0"
  end)
end

test("verdict on sim: input-bound", function(t)
  check_sim(t, "input-bound", function()
    for _ = 1, 10 do
      local x = pg.range("input", function()
        idle(2e-3)
        return pg.ones { 16, device = "sim:0" }
      end)
      x:add(1)
    end
  end)
end)

test("verdict on sim: host-bound", function(t)
  local x
  check_sim(t, "host-bound", function()
    x = x or pg.ones { 16, device = "sim:0" }
    for _ = 1, 10 do
      x:add(1)
      idle(2e-3)
    end
  end)
end)

test("verdict on sim: launch-bound", function(t)
  local x
  check_sim(t, "launch-bound", function()
    x = x or pg.ones { 1, device = "sim:0" }
    for _ = 1, 2000 do x:add(1) end
  end)
end)

test("verdict on sim: memory-bound", function(t)
  local x
  check_sim(t, "memory-bound", function()
    x = x or pg.ones { 2 ^ 18, device = "sim:0" }
    for _ = 1, 4 do x:add(1) end
  end)
end)

test("verdict on sim: compute-bound", function(t)
  local x
  check_sim(t, "compute-bound", function()
    x = x or pg.rand({ 128, 128 }):to "sim:0"
    for _ = 1, 4 do x:matmul(x) end
  end)
end)

test("verdict on sim: copy-bound", function(t)
  local x = pg.rand { 2 ^ 20 }
  check_sim(t, "copy-bound", function()
    for _ = 1, 4 do x:to("sim:0"):to("cpu") end
  end)
end)
