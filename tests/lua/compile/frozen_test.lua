-- SPDX-License-Identifier: Apache-2.0
-- pg.compile(fn, { frozen = true }): calls that do without their function, and those that may not.

local pg = require "perigee"
local nn = pg.nn

local function same(t, a, b, what)
  t.equal(a.shape, b.shape, what)
  t.equal(a.dtype, b.dtype, what)
  t.equal(a:totable(), b:totable(), what)
end

-- A frozen function, and how often fn has run.
local function freeze(t, fn, options)
  t.uncompiled()
  local runs = { n = 0 }
  options = options or {}
  options.frozen = true
  return pg.compile(function(...)
    runs.n = runs.n + 1
    return fn(...)
  end, options), runs
end

local function raises(t, f, text, ...)
  local ok, err = pcall(f, ...)
  t.ok(not ok and tostring(err):find(text, 1, true), tostring(err))
  t.equal(err.code, "not_supported")
end

test("frozen: the function runs twice, its results are those of eager code and stay", function(t)
  local model = nn.Sequential { nn.Linear { 8, 16 }, nn.ReLU {}, nn.LayerNorm { 16 }, nn.Linear { 16, 4 } }:eval()
  local f, runs = freeze(t, function(x) return model(x) end)
  local results, expected = {}, {}
  for i = 1, 8 do
    local x = pg.randn { 3, 8 }
    results[i], expected[i] = f(x), model(x)
    t.equal(results[i].requires_grad, false)
  end
  for i = 1, 8 do same(t, results[i], expected[i], i) end
  t.equal(runs.n, 2)
  local s = f:stats()
  t.equal({ s.calls, s.hits, s.plans }, { 8, 6, 1 })
end)

test("frozen: other arguments are noted anew, and found again", function(t)
  local f, runs = freeze(t, function(x, y) return (x * 2 + y):relu() end)
  local function check(x, y) same(t, f(x, y), (x * 2 + y):relu()) end
  for _ = 1, 3 do check(pg.randn { 3 }, pg.randn { 3 }) end
  t.equal(runs.n, 2)
  for _ = 1, 3 do check(pg.randn { 4, 3 }, pg.randn { 3 }) end
  t.equal(runs.n, 3)
  for _ = 1, 3 do check(pg.randn { 3, 4 }:t(), pg.randn { 3 }) end -- another order
  t.equal(runs.n, 4)
  for _ = 1, 3 do check(pg.randn { 3, dtype = "float64" }, pg.randn { 3, dtype = "float64" }) end
  t.equal(runs.n, 5)
  local x = pg.randn { 3 }
  for _ = 1, 3 do check(x, x) end -- one memory
  t.equal(runs.n, 6)
  check(pg.randn { 3 }, pg.randn { 3 })
  check(x, x)
  check(pg.randn { 0 }, pg.randn { 0 })
  check(pg.randn { 0 }, pg.randn { 0 })
  t.equal(runs.n, 7)
end)

test("frozen: values among the arguments tell calls apart, and tables are read", function(t)
  local f, runs = freeze(t, function(o, k, name)
    local y = o.x * k
    if name == "relu" then y = y:relu() end
    return { y = y, n = k, x = o.x, list = o.more[1] + 1 }, k, o.x
  end)
  local function check(k, name)
    local x, z = pg.randn { 5 }, pg.randn { 2 }
    local r, number, given = f({ x = x, more = { z } }, k, name)
    local y = x * k
    same(t, r.y, name == "relu" and y:relu() or y)
    same(t, r.list, z + 1)
    t.equal({ r.n, number }, { k, k })
    t.ok(rawequal(given, x) and rawequal(r.x, x))
  end
  for _ = 1, 4 do check(2) end
  t.equal(runs.n, 2)
  for _ = 1, 4 do check(3) check(3, "relu") end
  t.equal(runs.n, 4)
  check(2)
  t.equal(runs.n, 4)
end)

test("frozen: branches, numbers and objects stay as they were, tensors are read as they are", function(t)
  local model = nn.Linear { 3, 2 }
  local scale, other = 2, pg.ones { 2 }
  local f, runs = freeze(t, function(x) return model(x) * scale + other end)
  local x = pg.randn { 4, 3 }
  for _ = 1, 3 do f(x) end
  scale = 5
  same(t, f(x), model(x) * 2 + other)
  pg.no_grad(function() model.weight:mul_(0.5) end)
  other:add_(7)
  same(t, f(x), model(x) * 2 + other)
  t.equal(runs.n, 2)
end)

test("frozen: views, writes into arguments and results that are arguments", function(t)
  local f, runs = freeze(t, function(x, y)
    x:add_(y)
    local v = x[1]
    return v, x, v * 1, v
  end)
  for _ = 1, 4 do
    local x, y = pg.randn { 2, 3 }, pg.randn { 3 }
    local expected = x + y
    local v, given, product, again = f(x, y)
    same(t, x, expected)
    t.ok(rawequal(given, x) and rawequal(v, again))
    same(t, product, expected[1])
    x:zero_()
    t.equal(v:totable(), { 0, 0, 0 })
  end
  t.equal(runs.n, 2)
end)

test("frozen: what cannot be done without the function is an error", function(t)
  local x = pg.randn { 3 }
  local function refuses(fn, text)
    local f = freeze(t, fn)
    f(x)
    raises(t, f, text, x)
    raises(t, f, text, x)
  end
  refuses(function(v) if v:sum():item() > 0 then return v * 2 end return v * 3 end, "it reads a value before its end")
  refuses(function(v) return pg.dropout(v, 0.5, true) end, "draws random numbers")
  refuses(function(v) return v * pg.randn { 3 } end, "draws random numbers")
  refuses(function(v) return v:nonzero() end, "nonzero")
  refuses(function() return 7 end, "it computes nothing")
  local w = pg.randn({ 3 }):requires_grad_(true)
  refuses(function(v) return pg.enable_grad(function() return w * v end) end, "gradients")
  refuses(function(v)
    pg.enable_grad(function() (w * v):sum():backward() end)
    return v * 1
  end, "gradients")
  t.raises(function() pg.compile(function() end, { frozen = 1 }) end, "frozen")
end)

test("frozen: an error of the function is the script's, and the next call works", function(t)
  local fails = true
  local f, runs = freeze(t, function(x)
    if fails then error("not yet", 0) end
    return x + 1
  end)
  local x = pg.ones { 2 }
  for _ = 1, 3 do t.raises(function() f(x) end, "not yet") end
  fails = false
  for _ = 1, 3 do same(t, f(x), x + 1) end
  t.ok(runs.n <= 5)
  t.raises(function() f("x") end, "")
  same(t, f(x), x + 1)
end)

test("frozen: calls within other compiled functions, graphs and scopes", function(t)
  local f = freeze(t, function(x) return (x * 3):tanh() end)
  for _ = 1, 3 do f(pg.randn { 4 }) end
  local outer = pg.compile(function(x) return f(x) + 1 end)
  for _ = 1, 4 do
    local x = pg.randn { 4 }
    same(t, outer(x), (x * 3):tanh() + 1)
  end
  local g = pg.graph(function(g) return { y = f(g:placeholder { "x", shape = { 4 } }) } end)
  local x = pg.randn { 4 }
  same(t, pg.Session { g }:run("y", { x = x }), (x * 3):tanh())
  local inside
  local kept = pg.scope(function()
    inside = f(x)
    return f(x)
  end)
  same(t, kept, (x * 3):tanh())
  t.raises(function() return inside:sum() end, "scope")
  pg.detect_anomaly(function()
    t.raises(function() f(pg.tensor { 1, 2, 3, 4 }):div(0) end, "div")
    same(t, f(x), (x * 3):tanh())
  end)
end)

test("frozen: autocast, and mixed precision of its own", function(t)
  local model = nn.Linear { 16, 8 }
  local f, runs = freeze(t, function(x) return model(x) end, { amp = "bfloat16" })
  for _ = 1, 4 do
    local x = pg.randn { 2, 16 }
    same(t, f(x), pg.no_grad(pg.amp.autocast, { dtype = "bfloat16" }, function() return model(x) end))
    pg.no_grad(function() model.weight:mul_(0.5) end) -- whose cast is kept until then
  end
  t.equal(runs.n, 2)
end)

test("inference under autocast is planned, with the casts of weights that are kept", function(t)
  t.uncompiled()
  local model = nn.Sequential { nn.Linear { 16, 8 }, nn.GELU {}, nn.Linear { 8, 4 } }
  local function run(x) return pg.no_grad(pg.amp.autocast, { dtype = "bfloat16" }, function() return model(x) end) end
  local f = pg.compile(run)
  for i = 1, 8 do
    local x = pg.randn { 2, 16 }
    same(t, f(x), run(x), i)
    if i % 3 == 0 then pg.no_grad(function() model[1].weight:mul_(0.5) end) end
  end
  t.ok(f:stats().hits >= 5, f:explain())
end)

test("frozen: calls with ever other arguments are bounded, memory is flat", function(t)
  local f, runs = freeze(t, function(x) return (x * 2):exp():sum() end)
  for n = 1, 40 do for _ = 1, 2 do f(pg.ones { n }) end end
  t.ok(f:stats().plans <= 16, f:stats().plans)
  local before = runs.n
  for n = 30, 40 do f(pg.ones { n }) end
  t.equal(runs.n, before)
  f(pg.ones { 1 })
  t.equal(runs.n, before + 1)
  collectgarbage()
  local x, live = pg.ones { 1000 }, nil
  for i = 1, 60 do
    f(x):free()
    if i == 10 then live = pg.memory.stats().live end
  end
  t.ok(pg.memory.stats().live <= live)
end)

test("frozen: memory that runs out is an error, and the next call works", function(t)
  if pg.device() ~= "cpu" then t.skip "of the processor's limit" end
  local f = freeze(t, function(x) return (x * 2):exp() end)
  local x = pg.ones { 1000000 }
  for _ = 1, 3 do f(x):free() end
  local expected = f(x)
  pg.config.memory_limit("cpu", 9000000) -- x and what was expected, which are 8 MB; whatever else goes makes no room
  local ok, err = pcall(f, x)
  pg.config.memory_limit("cpu", "1TB")
  t.ok(not ok and err.code == "out_of_memory", tostring(err))
  same(t, f(x), expected)
end)
