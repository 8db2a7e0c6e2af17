-- SPDX-License-Identifier: Apache-2.0
-- map with workers: Lua functions on Lua states of their own.
-- luacheck: globals another_global

local pg = require "perigee"
local native = require "perigee.native"
local data = pg.data

local function values(ds, field)
  local list = {}
  for _, s in ds:each() do
    local v = s[field or "value"]
    list[#list + 1] = native.is_tensor(v) and v:totable() or v
  end
  return list
end

test("workers give what the script's thread does, in order", function(t)
  local shared = pg.tensor({ 10, 20 }, { device = "cpu" })
  local scale, table_, floor = 3, { add = { 1, 2 } }, math.floor
  table_.self = table_
  local function twice(v) return v * 2 end
  local function fn(s)
    return { value = twice(s.value) * scale + table_.self.add[2] + floor(0.5), t = shared + s.value,
             name = "n" .. s.value, list = { s.value, true } }
  end
  local here = data.range(40):map(fn)
  for workers = 1, 3, 2 do
    local ds = data.range(40):map { fn, workers = workers }
    t.equal(#ds, 40)
    for step, s in ds:each() do
      local e = here[step]
      t.equal({ s.value, s.t:totable(), s.name, s.list }, { e.value, e.t:totable(), e.name, e.list })
    end
    t.equal(values(ds:shuffle { seed = 2 }:batch(7)), values(here:shuffle { seed = 2 }:batch(7)))
    t.equal(values(ds:map { function(s) return { value = s.value + 1 } end, workers = 2 }:skip(3)),
            values(here:map(function(s) return { value = s.value + 1 } end):skip(3)))
    t.equal(values(ds:batch(4):map { function(b) return { value = b.value:sum() } end, workers = 1 }),
            values(here:batch(4):map(function(b) return { value = b.value:sum() } end)))
  end
end)

test("tensors of the script are shared, not copied", function(t)
  local shared = pg.zeros({ 3 }, { device = "cpu" })
  local ds = data.range(3):map { function(s) shared[s.value + 1] = s.value + 5 return s end, workers = 2 }
  for _ in ds:each() do end -- luacheck: ignore 542
  t.equal(shared:totable(), { 5, 6, 7 })
end)

test("random draws depend on seed, epoch and element alone", function(t)
  local function run(workers)
    pg.manual_seed(7)
    local function draw() return { value = pg.rand { 3 }, m = math.random() } end
    local ds = data.range(12):map { draw, workers = workers }
    return { values(ds), values(ds, "m") }
  end
  local one, three = run(1), run(3)
  t.equal(one, three)
  local seen = {}
  for _, m in ipairs(one[2]) do
    t.ok(not seen[m])
    seen[m] = true
  end
end)

test("a worker's error has the script's line and ends the run", function(t)
  local ds = data.range(10):map { function(s)
    if s.value == 4 then error "bad sample" end
    return s
  end, workers = 2 }
  local count = 0
  t.raises(function() for _ in ds:each() do count = count + 1 end end, "workers_test.lua:%d+: bad sample")
  t.equal(count, 4)
  t.raises(function() values(data.range(3):map { function() return nil end, workers = 1 }) end, "returned nil")
  t.raises(function() values(data.range(3):map { function() return { f = print } end, workers = 1 }) end,
           "f is a function; expected tensors")
  local function unequal() return pg.ones { 2 } + pg.ones { 3 } end
  t.raises(function() values(data.range(3):map { unequal, workers = 1 }) end, "workers_test.lua:%d+: add: ")
  collectgarbage()
  collectgarbage()
  local until_ = native.clock() + 5
  while native.data.run_threads() > 0 and native.clock() < until_ do collectgarbage() end
  t.equal(native.data.run_threads(), 0)
end)

test("what cannot go to a worker is refused at map, by name and line", function(t)
  local function refused(fn, text)
    t.raises(function() data.range(3):map { fn, workers = 1 } end, text)
  end
  local count, thread, marked = 0, coroutine.create(function() end), setmetatable({}, {})
  refused(function(s) count = count + 1 return s end, "workers_test.lua:%d+: the function assigns upvalue \"count\"")
  count = 1
  refused(function(s) return { count, s } end, "\"count\" of the function of .*workers_test.lua:%d+ is assigned")
  refused(function() return thread end, "\"thread\" of the function of .* is a thread")
  refused(function() return marked end, "a table with a metatable")
  local sim = pg.devices("sim")[1]
  local elsewhere = sim and pg.zeros({ 1 }, { device = sim.name })
  if sim then refused(function() return elsewhere end, '"elsewhere" of .* is a tensor of sim:%d+ .*:to%("cpu"%)') end
  refused(function() return strange_global end, "uses global \"strange_global\"") -- luacheck: ignore 113
  refused(function(s) return function() another_global = s end end, -- lint: ignore
          "assigns global \"another_global\"")
end)

test("workers are asked for rightly", function(t)
  local function same(s) return s end
  t.raises(function() data.range(3):map { same, workers = 0 } end, "workers must be a count of 1 or more")
  t.raises(function() data.range(3):map { same, workers = "many" } end, 'or "auto", got string "many"')
  t.equal(values(data.range(3):map { same, workers = "auto" }), { 0, 1, 2 })
  local script = data.from_index { 3, function(i) return { value = i } end }
  local mixed = script:map { same, workers = 2 }:shuffle { seed = 1 }
  t.equal(values(mixed:batch(2)), values(script:shuffle { seed = 1 }:batch(2)))
end)
