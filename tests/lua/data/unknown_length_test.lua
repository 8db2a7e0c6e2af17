-- SPDX-License-Identifier: Apache-2.0
-- Pipelines whose length nobody knows before the end: filters, generators, interleaved ones; and stages on the script's
-- thread behind threads.

local pg = require "perigee"
local native = require "perigee.native"
local data = pg.data

local function plain(v)
  if native.is_tensor(v) then return v:totable() end
  if type(v) ~= "table" then return v end
  local list = {}
  for key, field in pairs(v) do list[key] = plain(field) end
  return list
end

local function all(ds, from)
  local list = {}
  for _, element in ds:each { from = from } do list[#list + 1] = plain(element) end
  return list
end

local function even(s) return s.value % 2 == 0 end
local function tenfold(s) return { value = s.value * 10 } end
local function counter(n)
  return function()
    for i = 0, n - 1 do coroutine.yield { value = i } end
  end
end

---The same elements in all the ways in which they can be computed.
local function ways(n)
  return {
    script = data.range(n):filter(even),
    workers = data.range(n):filter { even, workers = 2 },
    one = data.range(n):filter { even, workers = 1 },
    ahead = data.range(n):filter(even):prefetch(2),
    index = data.from_index { n, function(i) return { value = i - 1 } end }:filter { even, workers = 2 },
    generator = data.from_generator(counter(n)):filter { even, workers = 2 },
    fed = data.from_generator { counter(n), spec = { value = "number" } }:filter(even):prefetch(3),
  }
end

local STAGES = {
  same = function(ds) return ds end,
  batch = function(ds) return ds:batch(4) end,
  drop = function(ds) return ds:batch { 4, drop_last = true } end,
  shuffle = function(ds) return ds:shuffle { 5, seed = 3 }:batch(2) end,
  large = function(ds) return ds:shuffle { 1000, seed = 3 } end,
  take = function(ds) return ds:take(7):batch(3) end, none = function(ds) return ds:take(0) end,
  skip = function(ds) return ds:skip(3):batch(2) end, far = function(ds) return ds:skip(100) end,
  repeated = function(ds) return ds:repeated(3):batch(5) end,
  shard = function(ds) return ds:shard { 3, 1 } end,
  map = function(ds) return ds:map { tenfold, workers = 2 }:batch(3) end,
  script = function(ds) return ds:map(tenfold):batch(3):prefetch(2) end,
  zip = function(ds) return ds:zip(ds:skip(1), data.range(9)) end,
  mixed = function(ds) return ds:shuffle { 4, seed = 1 }:repeated(2):skip(2):shard { 2, 0 }:batch(3):prefetch(2) end,
  twice = function(ds) return ds:filter(function(s) return s.value % 3 == 0 end):batch(2) end,
}

test("all ways of computing give the same elements in the same order", function(t)
  -- What they are is known where positions are.
  local known = data.from_index { 11, function(i) return { value = 2 * i - 2 } end }
  for name, stage in pairs(STAGES) do
    local expected = {}
    for epoch = 1, 2 do
      local ds = stage(known)
      ds:epoch(epoch - 1)
      expected[epoch] = all(ds)
    end
    for way, ds in pairs(ways(21)) do
      local made = stage(ds)
      if name ~= "none" then t.equal(made.size, nil) end
      for epoch = 1, 2 do t.equal({ way, name, all(made) }, { way, name, expected[epoch] }) end
    end
  end
end)

test("a state goes on in the middle of an epoch", function(t)
  for way, ds in pairs(ways(40)) do
    local made = ds:shuffle { 6, seed = 2 }:batch(3)
    made:each()()
    local it = made:each()
    it()
    it()
    local state, rest = it:state(), {}
    t.equal({ state.epoch, state.position, state.size }, { 2, 2, nil })
    for _, b in it do rest[#rest + 1] = plain(b) end
    t.equal({ way, all(made, state) }, { way, rest })
    t.equal(#rest, 5)
    t.raises(function() all(made, { epoch = 1, position = 99 }) end, "from is")
    t.raises(function() made:each { from = { epoch = 1, position = 1, size = 3 } } end, "unknown length")
  end
end)

test("what a generator and workers draw comes again with the state", function(t)
  local function draws()
    for i = 1, 12 do coroutine.yield { value = i, x = pg.rand { 2 } } end
  end
  local function noise(s) return { value = s.value, x = s.x + pg.rand { 2 } } end
  pg.manual_seed(5)
  local ds = data.from_generator(draws):map { noise, workers = 2 }:filter { even, workers = 2 }:batch(2)
  local it, rest = ds:each(), {}
  it()
  local state = it:state()
  for _, b in it do rest[#rest + 1] = plain(b) end
  pg.rand { 3 }
  t.equal(all(ds, state), rest)
  local again = data.from_generator(draws):map { noise, workers = 1 }:filter { even, workers = 1 }:batch(2)
  t.equal(all(again, state), rest)
  t.ok(rest[1].x[1][1] ~= rest[2].x[1][1])
  t.ok(plain(all(ds)[2]).x[1][1] ~= rest[1].x[1][1]) -- another epoch
end)

test("lengths that are unknown are said to be", function(t)
  local ds = data.range(4):filter(even)
  t.raises(function() return #ds end, "unknown before its end.*ds.size is nil")
  t.raises(function() return ds[1] end, "come one after the other, and have no positions")
  t.raises(function() ds:split { 0.5, 0.5 } end, "split: the length of this pipeline is unknown")
  t.raises(function() ds:shuffle() end, "needs a buffer")
  t.raises(function() ds:bucket_by_length { "value", boundaries = { 1 }, size = 2 } end, "by position")
  t.equal({ tostring(ds), tostring(ds:batch(2)) },
          { "Dataset(unknown number of samples)", "Dataset(unknown number of batches)" })
  t.equal(#ds:take(0), 0)
  local it = ds:each()
  it()
  t.equal(it:is_last(), false)
  t.equal(select(2, it()).value, 2)
  t.equal({ it:is_last(), it:state().position }, { true, 2 })
  t.equal(it(), nil)
  local known = data.range(2):each()
  known()
  t.equal(known:is_last(), false)
  known()
  t.equal(known:is_last(), true)
end)

test("a generator's elements are checked against the spec", function(t)
  local spec = { x = { "float32", shape = { 2, -1 } }, y = "int64", name = "string", ok = "boolean" }
  local good = { x = pg.ones { 2, 3 }, y = 4, name = "a", ok = false }
  local function of(change, value)
    return data.from_generator { function()
      coroutine.yield(good)
      local bad = {}
      for key, v in pairs(good) do bad[key] = v end
      bad[change] = value
      coroutine.yield(bad)
    end, spec = spec }
  end
  local one = select(2, of("y", 5):each()())
  t.equal({ one.y.dtype, one.y:dim(), one.y:item(), one.ok, one.name }, { "int64", 0, 4, false, "a" })
  t.equal(all(of("x", { { 1 }, { 2 } }))[2].x, { { 1 }, { 2 } })
  local function refused(change, value, text)
    for _, ds in ipairs { of(change, value), of(change, value):prefetch(2) } do
      local it = ds:each()
      t.equal((it()), 1)
      t.raises(function() it() end, "data.from_generator: element 2 of the generator at .*unknown_length_test.lua:%d+: "
               .. text)
    end
  end
  refused("x", pg.ones { 3, 3 }, "x is tensor float32 {3, 3}; the spec says tensor float32 {2, any}")
  refused("x", pg.ones { 2, 3, dtype = "int32" }, "x is tensor int32 {2, 3}; the spec says")
  refused("y", "four", 'y is string "four"; the spec says tensor int64')
  refused("name", 3, "name is number 3; the spec says a string")
  refused("z", 3, "z is not in the spec")
  local function missing() coroutine.yield { y = 1, name = "a", ok = true } end
  t.raises(function() all(data.from_generator { missing, spec = spec }) end, "x is missing; the spec says")
  t.raises(function() all(data.from_generator { function() coroutine.yield(3) end, spec = spec }) end,
           "expected a table of fields, got number 3")
  t.raises(function() all(data.from_generator { function() return { y = 1 } end }) end, "coroutine.yield a sample")
  t.raises(function() data.from_generator { missing, spec = { x = "float33" } } end, "float33")
  local function unfit(x, text) t.raises(function() data.from_generator { missing, spec = { x = x } } end, text) end
  unfit({ "float32", sizes = {} }, 'no option "sizes"')
  unfit({ "float32", shape = { 0.5 } }, "or %-1 for any")
end)

---Threads count themselves off a moment after their loop was left.
local function no_threads(t)
  collectgarbage()
  collectgarbage()
  local until_ = native.clock() + 5
  while native.data.run_threads() > 0 and native.clock() < until_ do collectgarbage() end
  t.equal(native.data.run_threads(), 0)
end

test("errors come on the consumer's next step, with the script's line", function(t)
  local function broken()
    for i = 0, 4 do coroutine.yield { value = i } end
    error "no more"
  end
  for _, ds in ipairs { data.from_generator(broken), data.from_generator(broken):prefetch(2),
                        data.from_generator(broken):map { tenfold, workers = 2 } } do
    local count = 0
    t.raises(function() for _ in ds:each() do count = count + 1 end end, "unknown_length_test.lua:%d+: no more")
    t.equal(count, 5)
  end
  local function bad(s) return s.value < 3 and true or s.value end
  local text = "filter: the function must return true or false"
  t.raises(function() all(data.range(9):filter(bad)) end, text .. ", got number 3")
  t.raises(function() all(data.range(9):filter { bad, workers = 2 }) end, text)
  local function stops(s) if s.value == 3 then error "three" end return true end
  local count = 0
  t.raises(function()
    for _ in data.range(9):filter { stops, workers = 2 }:each() do count = count + 1 end
  end, "unknown_length_test.lua:%d+: three")
  t.equal(count, 3)
  t.raises(function() all(data.from_index { 3, function() return { f = print } end }:prefetch(2)) end,
           "f is a function; expected tensors")
  no_threads(t)
end)

test("loops that were left keep no thread, and generators can go on for ever", function(t)
  local ended = false
  local function endless()
    local i = 0
    while true do
      coroutine.yield { value = i }
      i = i + 1
    end
  end
  for _, ds in ipairs { data.from_generator(endless):filter { even, workers = 2 }:batch(4):prefetch(2),
                        data.from_generator(endless):map { tenfold, workers = 2 }:map(tenfold):batch(2) } do
    for step in ds:each() do if step == 5 then break end end
    for step in ds:each() do if step == 3 then break end end
    local it = ds:each()
    it()
    it:close()
    t.equal(it(), nil)
    t.equal(#all(ds:take(3)), 3)
  end
  no_threads(t)
  t.equal(ended, false)
end)

test("a function of the script behind workers leaves them their threads", function(t)
  local main = coroutine.running()
  local seen = {}
  local function here(s)
    seen[#seen + 1] = s.value
    t.equal(coroutine.running(), main)
    return { value = s.value + 1 }
  end
  local ds = data.range(8):map { tenfold, workers = 2 }:map(here)
  t.equal(#ds, 8)
  local it = ds:each()
  it()
  t.ok(native.data.run_threads() > 0)
  t.equal(#seen, 1)
  it:close()
  no_threads(t)
  local expected = {}
  for i = 1, 8 do expected[i] = { value = (i - 1) * 10 + 1 } end
  t.equal(all(ds), expected)
  t.equal(ds[3], { value = 21 })
  t.equal(#ds:batch(3), 3)
  t.equal(all(ds:shuffle { 3, seed = 1 }),
          all(data.range(8):map(tenfold):map(function(s) return { value = s.value + 1 } end):shuffle { 3, seed = 1 }))
  local state = { epoch = 1, position = 1, size = 3 }
  t.equal(all(ds:batch(3):prefetch(2), state), { { value = { 31, 41, 51 } }, { value = { 61, 71 } } })
  t.equal(all(ds:repeated(2):batch(16))[1].value[9], 1)
  t.raises(function() ds:shuffle() end, "needs a buffer")
  local padded = data.range(4):map { function(s) return { x = pg.ones { s.value + 1 } } end, workers = 2 }
    :batch { 2, pad = { x = 0 } }:prefetch(2)
  t.equal(all(padded)[1].x, { { 1, 0 }, { 1, 1 } })
  no_threads(t)
end)

test("pipelines of samples are taken in turn", function(t)
  local function part(s) return data.range(s.value):map(function(v) return { value = 10 * s.value + v.value } end) end
  local function values(ds)
    local list = {}
    for _, s in ds:each() do list[#list + 1] = s.value end
    return list
  end
  local ds = data.range(5):interleave { part, cycle = 2, block = 2 }
  t.equal(values(ds), { 10, 20, 21, 30, 31, 40, 41, 32, 42, 43 })
  t.equal(values(data.range(4):interleave { part, cycle = 3 }), { 10, 20, 30, 21, 31, 32 })
  t.equal(values(data.range(5):interleave { part, cycle = 2, block = 2 }:prefetch(2)), values(ds))
  local it = data.range(5):interleave { function(s) return part(s):prefetch(2) end, cycle = 2, block = 2 }:each()
  it()
  it:close()
  no_threads(t)
  local three = data.range(2):interleave(function() return 3 end)
  t.raises(function() values(three) end, "must return a dataset, got number 3")
  t.raises(function() data.range(2):interleave { part, cycle = 0 } end, "cycle must be at least 1")
end)

test("files that fit a pattern", function(t)
  local folder = os.tmpname()
  os.remove(folder)
  for _, name in ipairs { "b.csv", "a.csv", "c.txt", ".hidden.csv", "in/x1.csv", "in/deep/x2.csv" } do
    native.make_folder(folder .. "/" .. (name:match "^(.*)/" or ""))
    native.write_text(folder .. "/" .. name, name)
  end
  local function names(pattern)
    local list = {}
    for _, s in data.files(pattern):each() do list[#list + 1] = s.path:sub(#folder + 2) end
    return list
  end
  t.equal(names(folder .. "/*.csv"), { "a.csv", "b.csv" })
  t.equal(names(folder .. "/[!a].*"), { "b.csv", "c.txt" })
  t.equal(names(folder .. "/**/*.csv"), { "a.csv", "b.csv", "in/deep/x2.csv", "in/x1.csv" })
  t.equal(names(folder .. "/in/x?.csv"), { "in/x1.csv" })
  t.equal(names(folder .. "/.hid*"), { ".hidden.csv" })
  t.equal(names { folder .. "/c.txt", folder .. "/*.txt", folder .. "/a.csv" }, { "a.csv", "c.txt" })
  t.equal(#data.files(folder .. "/*"):map { function(s) return { n = #s.path } end, workers = 2 }:batch(2), 2)
  t.raises(function() data.files(folder .. "/*.png") end, "no file fits")
  t.raises(function() data.files { folder .. "/*.csv", 3 } end, "pattern 2 must be a string")
  os.execute("rm -r '" .. folder .. "'")
end)

test("fit trains on a pipeline of unknown length", function(t)
  local x = pg.rand { 20, 3 }
  local y = x:sum(2):reshape { 20, 1 }
  local known = data.from_slices { x = x, y = y }:take(18)
  local function stays(s) return s.x:dim() == 1 end
  local function trained(ds, options)
    pg.manual_seed(1)
    local model = pg.nn.Sequential { pg.nn.Linear { 3, 1 } }
    options.data, options.loss, options.verbose, options.epochs = ds, "mse", 0, 3
    options.optimizer = pg.optim.SGD { lr = 0.1 }
    local history = model:fit(options)
    return { history[3].loss, model:evaluate { data = ds }.loss }
  end
  for _, accumulate in ipairs { 1, 2 } do
    local expected = trained(known:batch(4), { accumulate = accumulate })
    for _, ds in ipairs { known:filter(stays):batch(4), known:filter(stays):batch(4):prefetch(2),
                          known:filter { stays, workers = 2 }:batch(4) } do
      t.equal(trained(ds, { accumulate = accumulate }), expected)
    end
  end
  t.raises(function() trained(known:filter(function() return false end), {}) end, "no samples to train on")
end)
