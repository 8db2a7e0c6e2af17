-- SPDX-License-Identifier: Apache-2.0
-- What a pipeline tunes by itself, what ds:benchmark measures and what ds:lint advises.

local pg = require "perigee"
local native = require "perigee.native"
local data = pg.data

local function all(ds)
  local list = {}
  for _, s in ds:each() do list[#list + 1] = s.value end
  return list
end

---Threads count themselves off a moment after their loop was left.
local function no_threads(t)
  local until_ = native.clock() + 5
  while native.data.run_threads() > 0 and native.clock() < until_ do collectgarbage() end
  t.equal(native.data.run_threads(), 0)
end

-- By the wall: the processor's clock goes on by what all threads do.
local function busy(s)
  local clock = require("perigee.native").clock
  local begin = clock()
  while clock() - begin < 0.002 do end -- luacheck: ignore 542
  return s
end
local function same(s) return s end

test("auto gives the same elements, and says what it came to", function(t)
  local plain = data.range(60):map(same)
  for _, ds in ipairs {
    data.range(60):map { busy, workers = "auto" }, data.range(60):map { same, workers = "auto" }:prefetch "auto",
    data.range(60):prefetch { "auto", memory = "1MB" }, data.range(60):map { same, workers = 2 }:prefetch { "auto" },
    data.range(60):map { same, workers = "auto" }:map { same, workers = 3 },
    data.range(60):filter { function() return true end, workers = "auto" }:prefetch(),
  } do t.equal(all(ds), all(plain)) end
  local ds = data.from_slices { x = pg.zeros { 64, 1024 } }:batch(1):prefetch { "auto", memory = 4096 * 3 }
  local it = ds:each()
  for _ = 1, 50 do it() end
  local state = native.data.run_state(it.run)
  t.equal(state.element_bytes, 4096)
  t.ok(state.capacity <= 3, state.capacity)
  it:close()
  local function refused(o, text) t.raises(function() data.range(3):prefetch(o) end, text) end
  refused({ "auto", memory = "much" }, 'prefetch: memory must be bytes, or a text such as "512MB", got string "much"')
  refused({ "auto", memory = 0 }, "memory must be bytes")
  refused({ 2, memory = "1GB" }, 'memory= is a limit of "auto"')
end)

test("a benchmark names what takes the time", function(t)
  local function of(ds, o) return ds:benchmark(o or {}) end
  local function row(report, name)
    for _, s in ipairs(report.stages) do if s.name == name then return s end end
  end
  local cases = {
    { data.range(40):map(busy):batch(4), 10, "map at .*look_test.lua:%d+ takes most.*workers=\"auto\"" },
    { data.range(40):map { busy, workers = 2 }:batch(4), 10, "map at .*takes most.*more workers" },
    { data.range(40):map(busy):batch(4):prefetch(2), 10, "map at .*workers=\"auto\"" },
    { data.range(40):map { same, workers = 1 }:map(busy), 40, "map at .*takes most" },
    { data.from_index { 40, busy }:batch(4), 10, "from_index at .*script's thread" },
  }
  for i, case in ipairs(cases) do
    local report = of(case[1])
    t.equal({ i, report.elements }, { i, case[2] })
    t.ok(report.verdict:find(case[3]), i .. report.verdict)
    t.ok(report.total >= 0.08, report.total)
    t.ok(tostring(report):find "stage +line", tostring(report))
  end
  local report = of(cases[1][1])
  t.equal({ row(report, "range").elements, row(report, "map").elements, row(report, "batch").elements }, { 40, 40, 10 })
  t.equal({ row(report, "map").script, report.threads }, { true, 0 })
  t.ok(row(report, "map").seconds > row(report, "range").seconds + row(report, "batch").seconds)
  report = of(cases[2][1])
  t.equal({ row(report, "map").script, report.threads, row(report, "map").elements }, { false, 2, 40 })
  t.ok(report.waited > 0.2, report.waited)
  report = of(data.range(1000):map { same, workers = 1 }:prefetch(8), { elements = 30, step = 0.003 })
  t.equal(report.elements, 30)
  t.ok(report.verdict:find "takes most" or report.verdict:find "keeps up", report.verdict)
  t.equal(#of(data.range(0)).stages, 1)
  local ds = data.range(5):shuffle { seed = 1 }
  of(ds)
  t.equal(ds:epoch(), 0)
  t.raises(function() of(data.range(4):map(function() error "bad" end)) end, "bad")
  t.equal(#all(data.range(4):map(same)), 4) -- no clock is left
  t.equal(of(data.range(4), { step = 1e6, seconds = 0.05 }).elements, 1) -- ends when it is said to
  t.raises(function() ds:benchmark { elements = 0 } end, "at least 1")
  t.raises(function() ds:benchmark { step = -1 } end, "step must be 0 or more")
  no_threads(t)
end)

test("each advice has its line and a remedy, and a good pipeline none", function(t)
  local function advised(ds, ...)
    local advice, found = ds:lint(), {}
    for _, one in ipairs(advice) do
      t.ok(one.line:find "look_test.lua:%d+", one.line)
      found[#found + 1] = one.stage .. ": " .. one.text .. " (" .. one.remedy .. ")"
    end
    t.equal(#found, select("#", ...), table.concat(found, "\n"))
    for i = 1, select("#", ...) do t.ok(found[i]:find((select(i, ...))), found[i]) end
    return advice
  end
  local set = data.from_slices { x = pg.rand { 12, 3 } }
  local good = set:shuffle { seed = 1 }:batch(4):prefetch()
  t.equal(tostring(advised(good)), "nothing to say")
  advised(set:batch(4), "batch: nothing is made ahead.*prefetch%(%) at the end")
  local late = set:batch(4):shuffle { seed = 1 }:prefetch()
  local advice = advised(late, "shuffle: it orders batches.*shuffle before batch")
  t.ok(tostring(advice):find "look_test.lua:%d+: shuffle: it orders batches")
  local function noise(s) return { x = s.x + pg.randn { 3 } } end
  local function through(s) return noise(s) end
  for _, fn in ipairs { noise, through } do
    advised(set:map { fn, workers = 1 }:cache(), "map: it draws by randn before the cache at .*behind cache")
  end
  advised(set:shuffle { seed = 1 }:cache():prefetch(), "shuffle: the cache at .* keeps its first order")
  local large = data.from_index { 2 ^ 40, function() return { x = pg.zeros { 1024 } } end }
  advised(large:cache():prefetch(), "cache: its %d+ elements take about %d+.%d GB, and .* are free")
  local function first(s) return { x = s.x[1] } end
  local one = "map: it works on one element.*makes x {3} of a batch of 4.*before batch"
  advised(set:batch(4):map { first, workers = 1 }, one)
  local function wrong(s) return { x = s.x:reshape { 3 } } end
  advised(set:batch(4):map { wrong, workers = 1 }, "map: it works on one element.*fails on a batch: .*reshape")
  advised(set:batch(4):map { function(s) return { x = s.x * 2 } end, workers = 1 })
  local function wide(s) return { x = s.x:to "float64" } end
  advised(set:map { wide, workers = 1 }:batch(4), "map: x is float64.*float32")
  advised(set:map(through):batch(4):prefetch(), "map: it runs on the script's thread.*map{fn, workers=\"auto\"}")
  advised(set:filter(function() return true end):batch(4):prefetch(), "filter: it runs on the script's thread")
  no_threads(t)
end)
