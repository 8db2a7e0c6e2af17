-- SPDX-License-Identifier: Apache-2.0
-- Pipelines that the core runs: the same elements as on the script's thread, whatever threads take part.

local pg = require "perigee"
local native = require "perigee.native"
local data = pg.data

local function same(t, a, b, path)
  if native.is_tensor(a) then
    t.ok(native.is_tensor(b), path)
    t.equal({ a.dtype, a.shape, a:totable() }, { b.dtype, b.shape, b:totable() })
  elseif type(a) == "table" then
    for key, v in pairs(a) do same(t, v, b[key], path .. "." .. tostring(key)) end
    for key in pairs(b) do t.ok(a[key] ~= nil, path .. "." .. tostring(key)) end
  else
    t.equal(a, b)
  end
end

-- Elements as each() gives them against ds[i], which the script's thread computes.
local function check(t, ds)
  for _ = 1, 2 do
    local count = 0
    for step, element in ds:each() do
      count = count + 1
      t.equal(step, count)
      same(t, ds[step], element, tostring(step))
    end
    t.equal(count, #ds)
  end
end

local function source(n)
  return data.from_slices { x = pg.arange(n * 6):reshape { n, 2, 3 }, y = pg.arange(n):to "int64",
                            turned = pg.arange(n * 6):reshape { 2, n, 3 }:transpose(1, 2),
                            b = pg.arange(n):gt(3), h = pg.arange(n):to "float16" }
end

test("the core's stages give what the script's thread does", function(t)
  local ds = source(11)
  for _, each in ipairs {
    ds, ds:take(4), ds:skip(9), ds:skip(20), ds:take(0):batch(2), ds:repeated(3), ds:repeated(0), ds:shard { 3, 1 },
    ds:shuffle { seed = 3 }, ds:shuffle { 4, seed = -1 }, ds:shuffle { seed = 1, every_epoch = false }:batch(4),
    ds:batch(4), ds:batch { 4, drop_last = true }, source(12):batch(2):batch(2), ds:zip(data.range(5)),
    ds:batch(3):zip(data.range(8):batch(2), ds), ds:zip(data.range(7)):shuffle():batch(3), data.range(0),
    data.range(7):batch(3), ds:shuffle { seed = 5 }:skip(2):take(7):repeated(2):batch(3):prefetch(3),
    ds:batch(4):prefetch(), ds:prefetch(5):batch(2),
  } do check(t, each) end
  local train, rest = ds:shuffle { seed = 2 }:batch(2):split { 0.5, 0.5 }
  check(t, train)
  check(t, rest:prefetch(2))
end)

test("samples share the memory of what they are slices of", function(t)
  local x = pg.zeros { 3, 2 }
  for _, sample in data.from_slices { x = x }:each() do t.equal(native.storage(sample.x), native.storage(x)) end
end)

test("a state goes on in the middle, with threads too", function(t)
  local plain = source(20):shuffle { seed = 1 }:batch(3)
  for _, ds in ipairs { plain, plain:prefetch(2) } do
    local it = ds:each()
    it()
    it()
    local state, left = it:state(), {}
    for _, b in it do left[#left + 1] = b.y:totable() end
    local again = {}
    for _, b in ds:each { from = state } do again[#again + 1] = b.y:totable() end
    t.equal(again, left)
    t.equal(#again, 5)
  end
end)

---Threads count themselves off a moment after their loop was left.
local function come_to_threads(t, n)
  local until_ = native.clock() + 5
  while native.data.run_threads() > n and native.clock() < until_ do collectgarbage() end
  t.equal(native.data.run_threads(), n)
end

test("loops that were left keep no thread", function(t)
  local ds = data.range(1000):prefetch(4)
  for step in ds:each() do if step == 3 then break end end
  local it = ds:each()
  it()
  come_to_threads(t, 1) -- the earlier one's thread is gone
  it:close()
  come_to_threads(t, 0)
  t.equal(it(), nil)
  for step in ds:each() do if step == 2 then break end end
  collectgarbage()
  collectgarbage()
  come_to_threads(t, 0)
  local sums, outer = 0, 0 -- one pass within another
  for _, a in ds:take(3):prefetch(2):each() do
    outer = outer + a.value
    for _, b in ds:take(4):prefetch(2):each() do sums = sums + b.value end
  end
  t.equal({ outer, sums }, { 3, 18 })
  local nested, pairs_ = ds:take(3), {}
  for _, a in nested:each() do
    for _, b in nested:each() do pairs_[#pairs_ + 1] = a.value * 10 + b.value end
  end
  t.equal(pairs_, { 0, 1, 2, 10, 11, 12, 20, 21, 22 })
  come_to_threads(t, 0)
end)

test("no more is made ahead than was asked for, and memory is flat", function(t)
  local ds = data.from_slices { x = pg.zeros { 64, 4096 } }:shuffle { seed = 1 }:batch(4):prefetch(2)
  local function epoch() for _ in ds:each() do end end -- luacheck: ignore 542
  local function live()
    collectgarbage()
    native.handles.reclaim()
    return pg.memory.stats("cpu").live
  end
  epoch()
  local before = live()
  for _ = 1, 100 do epoch() end
  t.ok(live() <= before + 65536, ("%d bytes, then %d"):format(before, live()))
end)

test("elements go to a device beside the script", function(t)
  local sim = pcall(pg.zeros, { 1, device = "sim:0" })
  if not sim then t.skip("no simulated device") end
  local ds = source(12):shuffle { seed = 1 }:batch(5)
  local list = {}
  for step, b in ds:prefetch { 2, device = "sim:0" }:each() do
    t.equal(b.x.device, "sim:0")
    list[step] = (b.x * 2):to("cpu"):totable()
  end
  ds:epoch(0)
  for step, b in ds:each() do t.equal(list[step], (b.x * 2):totable()) end
  t.equal(#list, 3)
end)

test("what prefetch and zip take, and refuse", function(t)
  local script = data.from_index { 3, function(i) return i end }
  local seen = {}
  for step, element in script:prefetch(2):each() do seen[step] = element end
  t.equal(seen, { 1, 2, 3 })
  t.raises(function() data.range(3):prefetch(0) end, "needs a count of 1 or more")
  t.raises(function() data.range(3):zip() end, "needs another dataset")
  t.raises(function() data.range(3):zip(3) end, "argument 1 must be a dataset, got number 3")
  t.equal(script:zip(data.range(2))[2], { 2, { value = 1 } })
end)

test("a clock and what waits by it agree", function(t)
  local begin = native.clock()
  native.sleep(0.02)
  t.ok(native.clock() - begin >= 0.019) -- a signal may end it, but nothing here sends one
end)

test("rows of all sizes are gathered, in an order and with gaps between them", function(t)
  local order = data.from_slices { i = pg.arange(70) }:shuffle { seed = 3 }
  local at = {}
  for step, s in order:each() do at[step] = s.i:item() end
  for _, width in ipairs { 0, 1, 3, 8, 15, 16, 17, 31, 32, 33, 48, 100, 255, 256, 257, 1000 } do
    local wide = pg.arange(70 * (width + 5)):reshape { 70, width + 5 }:remainder(251):to "uint8"
    for _, x in ipairs { wide:narrow(2, 3, width), wide:narrow(2, 3, width):contiguous() } do
      local ds, seen = data.from_slices { x = x }:shuffle { seed = 3 }:batch(33), 0
      for _, b in ds:each() do
        local rows = b.x.shape[1]
        local list = {}
        for k = 1, rows do list[k] = at[seen + k] end
        t.ok(b.x:equal(x:index_select(pg.tensor(list, { dtype = "int64" }), 1)), width .. " bytes")
        seen = seen + rows
      end
      t.equal(seen, 70)
    end
  end
end)
