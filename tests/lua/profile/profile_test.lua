-- SPDX-License-Identifier: Apache-2.0
-- pg.profile, pg.range, pg.bench_compare.

local pg = require "perigee"

local function by_name(profile)
  local rows = {}
  for _, row in ipairs(profile.rows) do rows[row.name] = row end
  return rows
end

-- As long as that, without an operator.
local function idle(seconds)
  local clock = require("perigee.native").clock
  local stop = clock() + seconds
  while clock() < stop do end
end

local function on_cpu(t)
  if t.device and t.device ~= "cpu" then t.skip("of the processor") end
end

test("profile: operators, kernels, their shapes, lines and layers", function(t)
  on_cpu(t)
  local model = pg.nn.Sequential { pg.nn.Linear { 3, 2 } }
  local x = pg.rand { 4, 3 }
  model(x) -- what a first call makes is not of interest
  local p = pg.profile(function()
    for _ = 1, 5 do x:exp() end
    model(x):sum():backward()
  end)
  local row = by_name(p).exp
  t.equal(row.calls, 5)
  t.ok(row.total > 0 and row.kernel > 0 and row.kernel <= row.total)
  t.close(row.mean, row.total / 5)
  t.equal(row.bytes, 5 * 2 * 4 * 12)
  local seen = {}
  for _, r in ipairs(p.records) do
    t.ok(r.from >= 0 and r.to >= r.from and r.to <= p.seconds + p.noting + 1)
    seen[r.kind .. " " .. r.name] = r
  end
  t.equal(seen["op exp"].shapes, "float32 [4, 3] -> [4, 3]")
  t.ok(seen["op exp"].line:find "profile_test.lua:%d+$", seen["op exp"].line)
  t.equal(seen["op exp"].layer, nil)
  t.ok(seen["kernel exp"].from >= seen["op exp"].from and seen["kernel exp"].to <= seen["op exp"].to)
  t.ok(seen["backward linear"] and seen["backward linear"].to > seen["backward linear"].from)
  t.ok(seen["op linear"].line:find "profile_test.lua:%d+$", seen["op linear"].line)
  t.equal(seen["op linear"].layer, "Sequential.0 (Linear)")
  t.ok(seen["backward backward"], "the whole pass")
  t.equal(p.lost, 0)
end)

test("profile: lines of loops, of layers in Lua, of calls deep below the script, and in coroutines", function(t)
  on_cpu(t)
  local Net = pg.nn.class "Net"
  function Net:init() self.fc = pg.nn.Linear { 3, 3 } end
  function Net:forward(x)
    local y = self.fc(x):tanh()
    return y:exp()
  end
  local function line() return debug.getinfo(2, "l").currentline end
  local here = line()
  local nets, x, lines = pg.nn.Sequential { Net {}, Net {} }, pg.rand { 2, 3 }, {}
  nets(x)
  local p = pg.profile(function()
    for _ = 1, 3 do
      nets(x)
      x:sin(); lines.sin = line()
      x:cos(); lines.cos = line()
    end
    local co = coroutine.wrap(function()
      for _ = 1, 2 do coroutine.yield(x:neg()) end
    end)
    co()
    co()
    local function deep(n) if n == 0 then return (x:abs()) end return (deep(n - 1)) end
    deep(80)
    table.foreachi({ 1 }, function() x:sigmoid() end)
  end)
  local found = {}
  for _, r in ipairs(p.records) do
    if r.kind == "op" then
      local key = r.name .. " " .. (r.layer or "-")
      found[key] = found[key] or {}
      local number = tonumber(r.line:match ":(%d+)$")
      found[key][number and number - here or r.line:match ":(%d+%-%d+)$"] = true
    end
  end
  t.equal({ found["sin -"], found["cos -"] }, { { [lines.sin - here] = true }, { [lines.cos - here] = true } })
  for i = 0, 1 do
    t.equal(found[("tanh Sequential.%d (Net)"):format(i)], { [-4] = true })
    t.equal(found[("linear Sequential.%d.fc (Linear)"):format(i)], { [-4] = true })
    local whole = ("%d-%d"):format(here - 5, here - 2) -- a tail call leaves the stack
    t.equal(found[("exp Sequential.%d (Net)"):format(i)], { [whole] = true })
  end
  t.equal(found["neg -"], { [lines.cos - here + 3] = true })
  t.equal(found["abs -"], { [lines.cos - here + 7] = true })
  t.equal(found["sigmoid -"], { [lines.cos - here + 9] = true })
end)

test("profile: a line that a layer's call reaches and that others reach too is told apart by coroutines", function(t)
  on_cpu(t)
  local function shared(x) return (x:sqrt()) end
  local Net = pg.nn.class "Net"
  function Net:forward(x)
    coroutine.yield()
    return (shared(x))
  end
  local net, x = Net {}, pg.rand { 2, 3 }
  local p = pg.profile(function()
    for _ = 1, 2 do
      local co = coroutine.wrap(function() return net(x) end)
      co()
      shared(x) -- the layer's call is under way, but not here
      co()
      shared(x)
    end
  end)
  local seen = {}
  for _, r in ipairs(p.records) do
    if r.kind == "op" then seen[#seen + 1] = r.name .. " " .. (r.layer or "-") end
  end
  t.equal(seen, { "sqrt -", "sqrt Net", "sqrt -", "sqrt -", "sqrt Net", "sqrt -" })
end)

test("profile: an error in a layer that the script catches leaves no layer behind", function(t)
  on_cpu(t)
  local x = pg.rand { 2, 3 }
  local p = pg.profile(function()
    local model = pg.nn.Sequential { pg.nn.Linear { 4, 1 } }
    t.raises(function() model(x) end, "Linear")
    x:exp()
  end)
  for _, r in ipairs(p.records) do
    if r.name == "exp" then t.equal(r.layer, nil) end
  end
end)

test("profile: optimizer steps, and ranges around them", function(t)
  on_cpu(t)
  local model = pg.nn.Linear { 3, 2 }
  local opt = pg.optim.Adam { model:parameters(), lr = 0.1 }
  local function step()
    opt:zero_grad()
    model(pg.ones { 4, 3 }):sum():backward()
    opt:step()
  end
  step()
  local p, count = pg.profile(step), 0
  for _, r in ipairs(p.records) do
    if r.kind == "optimizer" then
      count = count + 1
      t.ok(r.name:lower():find "adam" and r.to > r.from, r.name)
    end
  end
  t.equal(count, 1)
end)

test("profile: stages of pipelines, on threads too", function(t)
  on_cpu(t)
  local set = pg.data.from_slices { x = pg.arange(64) }:map { function(e) return { x = e.x + 1 } end, workers = 2 }
                :batch { 8 }:prefetch { 2 }
  local p = pg.profile(function()
    local sum = 0
    for _, b in set:each() do sum = sum + b.x:sum():item() end
    t.equal(sum, 64 * 65 / 2)
  end)
  local by = {}
  for _, s in ipairs(p.stages) do by[s.name] = s end
  t.equal({ by.map.elements, by.batch.elements }, { 64, 8 })
  t.ok(by.map.seconds > 0 and by.map.line:find "profile_test.lua:%d+$", by.map.line)
  for _, name in ipairs(by.map.threads) do t.ok(name:find "^worker %d$", name) end
  local added = 0
  for _, r in ipairs(p.records) do
    if r.kind == "op" and r.name == "add" and r.thread ~= "script" then added = added + 1 end
  end
  t.equal(added, 64)
  t.ok(tostring(p):find "stage of the pipeline")
  local plain = pg.profile(function() -- without threads
    for _ in pg.data.from_index { 4, get = function(i) return { x = i } end }:batch { 2 }:each() do end
  end)
  t.equal({ plain.stages[1].threads, #plain.stages > 1 }, { { "script" }, true })
end)

test("profile: time is counted once", function(t)
  on_cpu(t)
  local x = pg.rand { 64, 64 }
  local p = pg.profile(function()
    for _ = 1, 20 do pg.nn.cross_entropy(x, pg.zeros { 64, dtype = "int64" }) end
    idle(0.01)
  end, { origins = false })
  local sum = 0
  for _, part in pairs(p.parts) do sum = sum + part end
  t.close(sum, p.seconds, 1e-3 * p.seconds)
  local rows = 0
  for _, row in ipairs(p.rows) do rows = rows + row.total end
  t.close(rows, p.parts.kernels + p.parts.dispatch + p.parts.copies + p.parts.waits, 1e-9)
  t.ok(p.busy > 0 and p.busy < 1)
  t.ok(p.gaps[1].seconds >= 0.009)
end)

test("profile: memory, and who held most", function(t)
  on_cpu(t)
  local before = pg.memory.stats("cpu").live
  local p = pg.profile(function()
    local a = pg.ones { 1000 }
    local b = pg.zeros { 250000 }
    b:free()
    return a
  end)
  local m = p.memory.cpu
  -- A block that was kept may be larger than what is asked for.
  t.ok(m.peak >= before + 1000000 and m.peak < before + 1500000, tostring(m.peak - before))
  t.equal(m.before, before)
  t.ok(m.holders[1].bytes >= 1000000 and m.holders[1].name:find "profile_test.lua:%d+", m.holders[1].name)
  t.ok(m.holders[2].bytes >= 4000 and m.holders[2].bytes < 10000)
  local most, last = 0, -1
  for _, point in ipairs(m.curve) do
    most = math.max(most, point.bytes)
    t.ok(point.at > last)
    last = point.at
  end
  t.equal(most, m.peak)
end)

test("profile: graphs' runs, and what an older record's room was given to", function(t)
  on_cpu(t)
  local g = pg.graph(function(g) return { y = g:placeholder { "x", shape = { 2 } }:exp():tanh() } end)
  local x = pg.ones { 2 }
  local function profiled(fuse)
    local session = pg.Session { g, fuse = fuse }
    session:run("y", { x = x })
    return by_name(pg.profile(function()
      for _ = 1, 4 do session:run("y", { x = x }) end
    end))
  end
  local apart, joined = profiled(false), profiled(true)
  t.equal({ apart.exp.calls, apart.tanh.calls, apart.region }, { 4, 4, nil })
  t.equal({ joined.region.calls, joined.exp, joined.tanh }, { 4, nil, nil })
  local last = pg.profile(function()
    for _ = 1, 100 do x:exp() end
    x:tanh()
  end, { capacity = 16 })
  t.equal(#last.records, 16)
  t.ok(last.lost > 100)
  t.ok(by_name(last).tanh.calls == 1 and by_name(last).exp.calls < 10)
  t.ok(tostring(last):find("earlier records had no room", 1, true))
end)

test("range: answers what the function returns, in a profile and without", function(t)
  t.equal({ pg.range("a", function(...) return ... end, 1, nil, 3) }, { 1, nil, 3 })
  local values
  local p = pg.profile(function()
    values = { pg.range("outer", function(...) return pg.range("inner", function(v) return v, 2 end, ...) end, 1) }
    pcall(pg.range, "failed", error, "no")
  end)
  t.equal(values, { 1, 2 })
  local names = {}
  for _, r in ipairs(p.records) do
    if r.kind == "range" then names[#names + 1] = r.name end
  end
  t.equal(names, { "inner", "outer", "failed" })
end)

test("profile: an error ends it, and the next one begins anew", function(t)
  t.raises(function() pg.profile(function() error("in the middle", 0) end) end, "in the middle")
  t.raises(function() pg.profile(function() pg.profile(function() end) end) end, "a profile is under way")
  t.raises(function() pg.profile(3) end, "fn")
  t.raises(function() pg.profile(function() end, { capacity = 0 }) end, "capacity must be at least 1, got 0")
  t.raises(function() pg.range(1, function() end) end, "range: name must be a string, got number 1")
  t.raises(function() pg.range("a", 1) end, "range: needs a function, got number 1")
  t.raises(function() pg.profile(function() end, { roofline = 1 }) end, "roofline")
  local p = pg.profile(function() end)
  for _, row in ipairs(p.rows) do t.ok(row.name ~= "in the middle", "what the one before did") end
  t.ok(p.seconds >= 0 and #tostring(p) > 0)
  t.equal(pg.config.get().origins, false)
end)

test("profile: the time line is what Perfetto reads", function(t)
  on_cpu(t)
  local path = os.tmpname()
  local p = pg.profile(function()
    pg.range("step \"1\"", function() return pg.rand { 8 }:to("float64"):sum():item() end)
  end, { trace = path })
  local trace = pg.json.load(path)
  os.remove(path)
  local names, threads, complete, counters = {}, {}, 0, 0
  for _, e in ipairs(trace.traceEvents) do
    t.ok(type(e.name) == "string" and type(e.pid) == "number")
    if e.ph == "X" then
      complete = complete + 1
      t.ok(e.ts >= 0 and e.dur >= 0 and type(e.tid) == "number" and type(e.cat) == "string")
      names[e.name] = e
    elseif e.ph == "C" then
      counters = counters + 1
      t.ok(e.ts >= 0 and e.args.bytes >= 0)
    else
      t.equal(e.ph, "M")
      if e.name == "thread_name" then threads[e.tid] = e.args.name end
    end
  end
  t.ok(complete > 4 and counters > 2)
  t.equal({ names['step "1"'].cat, threads[names['step "1"'].tid] }, { "range", "ranges" })
  t.ok(names.sum and names.sum.args.shapes:find("float64 [8] -> []", 1, true))
  t.equal(threads[1000], "cpu")
  t.ok(#p.records >= complete)
end)

test("fit's ranges stand in a profile", function(t)
  on_cpu(t)
  local model, x = pg.nn.Linear { 2, 1 }, pg.rand { 8, 2 }
  local p = pg.profile(function()
    model:fit { x = x, y = x:sum { axis = 2, keepdim = true }, loss = "mse", epochs = 2, batch_size = 4, verbose = 0,
                validation_split = 0.5, optimizer = pg.optim.SGD { lr = 0.1 } }
  end)
  local counts = {}
  for _, r in ipairs(p.records) do
    if r.kind == "range" then counts[r.name] = (counts[r.name] or 0) + 1 end
  end
  t.equal({ counts.epoch, counts.backward, counts.optimizer, counts.validation }, { 2, 2, 2, 2 })
  t.equal(counts.forward, 4)
  t.equal(counts.input, 8) -- and one call each that says that there is no more
end)

test("bench_compare says which function is faster, and when none is", function(t)
  local function work(seconds)
    return function() idle(seconds) end
  end
  local function compare(verdict, a, b)
    local c
    for _ = 1, 5 do -- a machine that is busy with something else makes the rounds differ
      c = pg.bench_compare(a, b, { rounds = 5, seconds = 1e-3 })
      if c.verdict == verdict then break end
    end
    t.equal(c.verdict, verdict, tostring(c))
    return c
  end
  local c = compare("a is faster", work(1e-4), work(4e-4))
  t.ok(c.ratio > 1.01 and c.low <= c.ratio and c.ratio <= c.high, tostring(c))
  compare("b is faster", work(4e-4), work(1e-4))
  t.ok(tostring(c):find "^a is faster: a [%d.]+ us, b [%d.]+ us, b/a [%d.]+ %(quartiles [%d.]+ to [%d.]+, 5 rounds%)$")
  t.raises(function() pg.bench_compare(1, 2) end, "a")
  t.raises(function() pg.bench_compare(function() end, function() end, { rounds = 0 }) end,
           "rounds must be at least 1, got 0")
end)
