-- SPDX-License-Identifier: Apache-2.0
-- Devices: scopes, copies, mixing, the same bits everywhere, late failures, memory limits and the way out of them.
-- The second device is what PERIGEE_TEST_SECOND names, the device in force, or the simulated accelerator
-- (PERIGEE_SIM_DEVICES=2 adds another).

local pg = require "perigee"

local function find_sims()
  local names = {}
  for _, d in ipairs(pg.devices("sim")) do names[#names + 1] = d.name end
  return names
end

local sims = find_sims()
local named = os.getenv("PERIGEE_TEST_SECOND") or pg.device()
if named ~= "cpu" and named ~= sims[1] then table.insert(sims, 1, named) end
local SECOND = sims[1]

local function device_test(name, fn)
  test(name, function(t)
    if not SECOND then t.skip("there is no second device") end
    fn(t)
  end)
end

device_test("scopes and options place tensors", function(t)
  pg.device("cpu", function()
    pg.device(SECOND, function()
      t.equal(pg.zeros { 1 }.device, SECOND)
      t.equal(pg.arange(3).device, SECOND)
      t.equal(pg.device("cpu", function() return pg.zeros { 1 }.device end), "cpu")
      t.equal(pg.tensor { 1 }.device, SECOND)
      t.equal(pg.ones({ 1 }, { device = "cpu" }).device, "cpu")
    end)
    t.equal(pg.zeros { 1 }.device, "cpu")
    t.equal(pg.zeros({ 1 }, { device = SECOND }).device, SECOND)
    t.raises(function() pg.device(SECOND, function() error("mine") end) end, "mine")
    t.equal(pg.zeros { 1 }.device, "cpu")
    t.equal(pg.zeros_like(pg.ones { 2, device = SECOND }).device, SECOND)
  end)
end)

device_test("copies keep contents, whatever the strides", function(t)
  local x = pg.device("cpu", function() return pg.arange(12):reshape(3, 4) end)
  t.equal(x:to(SECOND), x)
  t.equal(x:t():to(SECOND), x:t())
  t.equal(x:t()[{ { 2, 3 } }]:to(SECOND)[{ {}, -1 }]:cpu(), { 9, 10 })
  t.equal(x:to(SECOND):t()[{ { 1, -1, 2 } }]:cpu(), x:t()[{ { 1, -1, 2 } }])
  t.equal(pg.zeros { 0, 3 }:to(SECOND).device, SECOND)
  t.ok(rawequal(x:to("cpu"), x) or x:to("cpu"):has_shape { 3, 4 })
  local y = pg.zeros({ 2, 2 }, { device = SECOND })
  y:copy_(pg.tensor({ { 1, 2 }, { 3, 4 } }, { device = "cpu" }))
  t.equal(y, { { 1, 2 }, { 3, 4 } })
  y[1] = pg.tensor({ 5, 6 }, { device = "cpu" })
  y[{ {}, 2 }] = 9
  t.equal(y, { { 5, 9 }, { 3, 9 } })
  t.equal(x:to(SECOND):to("float16"):to("cpu"):to("int64"), x)
end)

device_test("inputs on different devices are refused by name", function(t)
  if t.device then t.skip("a device scope moves them") end
  local a, b = pg.ones({ 2 }, { device = SECOND }), pg.ones({ 2 }, { device = "cpu" })
  local err = t.raises(function() return a + b end, "add: inputs are on different devices: x on " .. SECOND)
  t.ok(err:find(":to(", 1, true))
  t.raises(function() a:add_(b) end, "different devices")
  err = t.raises(function() return pg.lerp(1, a, b) end)
  local text = ('y on %s, weight on cpu:0; move one with :to("%s")'):format(SECOND, SECOND)
  t.ok(err:find(text, 1, true), err)
  t.equal(a + pg.tensor(3, { device = "cpu" }), { 4, 4 }, "a 0-dim CPU tensor goes with any device")
end)

device_test("gradients cross devices", function(t)
  local w = pg.tensor({ 1, 2, 3 }, { device = "cpu", requires_grad = true })
  local y = w:to(SECOND) * 2;
  (y * y):sum():cpu():backward()
  t.equal(w.grad, { 8, 16, 24 })
  t.equal(w.grad.device, "cpu")
end)

device_test("every device draws the same bits", function(t)
  local function draw()
    return { pg.rand { 37 }, pg.randn { 37 }, pg.randn({ 9 }, { dtype = "float64" }),
             pg.rand({ 9 }, { dtype = "float16" }), pg.randn({ 9 }, { dtype = "bfloat16" }), pg.randint(0, 100, { 9 }),
             pg.randperm(23), pg.dropout(pg.ones { 33 }, 0.3), pg.bernoulli(pg.full({ 17 }, 0.5)) }
  end
  pg.manual_seed(7)
  local expected = pg.device("cpu", draw)
  for _, name in ipairs(sims) do
    pg.manual_seed(7)
    for i, x in ipairs(pg.device(name, draw)) do t.ok(pg.equal(x:cpu(), expected[i]), "draw " .. i) end
  end
end)

device_test("an index out of bounds surfaces once, by name, and poisons nothing", function(t)
  local index = pg.tensor({ 1, 9 }, { dtype = "int64", device = SECOND })
  local weight = pg.ones({ 4, 2 }, { device = SECOND })
  for _, fn in ipairs {
    function() return pg.embedding(weight, index) end, function() return weight[index] end,
    function() return pg.cross_entropy(weight[{ { 1, 2 } }], index) end, function() return pg.one_hot(index, 4) end } do
    t.raises(function()
      local y = fn()
      pg.synchronize(SECOND)
      return y
    end, "9 at position %[2%] is out of range.*; expected 0 to [13]")
    t.equal(weight + 1, { { 2, 2 }, { 2, 2 }, { 2, 2 }, { 2, 2 } })
  end
end)

device_test("a network trains as on the CPU", function(t)
  local function train(device)
    pg.manual_seed(1)
    local nn = pg.nn
    local model = nn.Sequential { nn.Conv2d { 1, 4, 3, padding = 1 }, nn.BatchNorm2d { 4 }, nn.ReLU {},
                                  nn.MaxPool2d { 2 }, nn.Flatten {}, nn.Dropout { 0.2 },
                                  nn.Linear { 16, 3 } }:to(device)
    local optimizer = pg.optim.Adam { model:parameters(), lr = 0.01 }
    local x = pg.randn { 6, 1, 4, 4 }:to(device)
    local labels = pg.tensor({ 0, 1, 2, 0, 1, 2 }, { dtype = "int64", device = device })
    local losses = {}
    for i = 1, 8 do
      optimizer:zero_grad()
      local loss = nn.cross_entropy(model(x), labels)
      loss:backward()
      optimizer:step()
      losses[i] = loss:item()
    end
    return losses
  end
  if t.device then t.skip("a device scope moves what it computes with") end
  t.close(train(SECOND), train("cpu"), 1e-4)
end)

device_test("a graph over devices copies where it must", function(t)
  local g = pg.graph(function(g)
    local x = pg.device("cpu", function() return g:placeholder { "x", shape = { "n", 2 } } end)
    local y = pg.device(SECOND, function() return x * 2 end)
    return { y = y, z = pg.device("cpu", function() return (y + 1):sum() end) }
  end)
  t.ok(g:text():find("transfer", 1, true))
  local s = pg.Session { g }
  local x = pg.ones({ 3, 2 }, { device = "cpu" })
  local r = s:run({ "y", "z" }, { x = x })
  t.equal(r.y.device, SECOND)
  t.equal(r.z.device, "cpu")
  t.equal(r.z, 18)
  t.equal(s:run("z", { x = pg.ones({ 3, 2 }, { device = SECOND }) }), 18, "feeds are moved")
end)

-- Runs fn with so little memory that garbage must be collected now and then.
local function with_limit(device, size, fn)
  pg.memory.collect() -- what earlier tests dropped holds parts of what is reserved
  pg.memory.empty_cache(device)
  local limit = pg.memory.stats(device).live + size
  pg.config.memory_limit(device, limit)
  local ok, err = pcall(pg.device, device, fn)
  pg.config.memory_limit(device, 0)
  if not ok then error(err, 0) end
end

for _, device in ipairs { "cpu", SECOND } do -- SECOND may be nil
  test("memory limit on " .. device .. ": an error with numbers, and the process goes on", function(t)
    with_limit(device, 2 ^ 20, function()
      local keep = {}
      local err = t.raises(function()
        for i = 1, 1000 do keep[i] = pg.zeros { 65536 } end
      end, "tried to allocate 256.0 KiB.*live.*limit")
      t.equal(err.code, "out_of_memory")
      t.ok(#keep >= 2 and #keep <= 4, #keep)
      keep = nil -- luacheck: ignore
      t.equal((pg.zeros { 65536 } + 1)[1], 1)
    end)
  end)

  test("memory limit on " .. device .. ": garbage is collected and the call goes through", function(t)
    local lists = {}
    for i = 1, 60000 do lists[i] = i end
    local parameter = pg.device(device, function() return pg.zeros { 30000 }:requires_grad_() end)
    local optimizer = pg.optim.Adam { { parameter }, lr = 0.1 }
    local s = pg.device(device, function()
      return pg.Session { pg.graph(function(g) return { y = (g:placeholder { "x", shape = { "n" } } + 1) * 2 } end) }
    end)
    local source = pg.device("cpu", function() return pg.ones { 60000 } end)
    with_limit(device, 2 ^ 20, function()
      local function many(fn) for _ = 1, 25 do fn() end end
      many(function() return pg.zeros { 65536 } + 1 end)
      many(function() return pg.rand { 60000 } end)
      many(function() return pg.tensor(lists) end)
      many(function() return source:to(device):clone() end)
      many(function() return pg.cat { pg.zeros { 20000 }, pg.ones { 20000 } }:mul(2) end)
      many(function() return s:run("y", { x = source }) end)
      many(function()
        optimizer:zero_grad();
        (parameter * 2 - 1):pow(2):sum():backward()
        optimizer:step()
      end)
      local w = pg.ones { 10000 }:requires_grad_()
      many(function() (w * w):sum():backward() end)
      t.equal(w.grad[1], 50)
    end)
  end)
end

test("running out of memory names who holds most of it: operators, their layers, lines under origins", function(t)
  with_limit("cpu", 3 * 2 ^ 20, function()
    local nn = pg.nn
    local model = nn.Sequential { nn.Sequential { nn.Conv2d { 1, 4, 3, padding = 1 } }, nn.ReLU {} }
    local x = pg.zeros { 4, 1, 64, 64 }
    local err = t.raises(function()
      local kept = {}
      for i = 1, 100 do kept[i] = model[1](x) end
      return kept
    end, "most is held by %d%.%d MiB in %d+ tensors of conv2d %(Sequential%.0 %(Conv2d%)%)")
    t.equal(err.code, "out_of_memory")
    pg.config.set { origins = true }
    local line = debug.getinfo(1, "l").currentline + 3
    err = t.raises(function()
      local kept = {}
      for i = 1, 100 do kept[i] = x + i end
      return kept
    end, "most is held by.*tensors of add %(.*device_test%.lua:" .. line .. "%)")
    pg.config.set { origins = false }
    t.equal(err.code, "out_of_memory")
  end)
end)

test("a lower limit gives back what is cached above it, at once; peaks can begin anew", function(t)
  pg.memory.empty_cache("cpu")
  local before = pg.memory.stats("cpu")
  local x = pg.device("cpu", function() return pg.zeros { 2 ^ 24 } end)
  x:free()
  t.ok(pg.memory.stats("cpu").reserved >= before.reserved + 2 ^ 26)
  pg.config.memory_limit("cpu", before.reserved + 2 ^ 25)
  t.ok(pg.memory.stats("cpu").reserved <= before.reserved + 2 ^ 25)
  pg.config.memory_limit("cpu", 0)
  t.ok(pg.memory.stats("cpu").peak >= before.live + 2 ^ 26)
  pg.memory.reset_peak("cpu")
  t.ok(pg.memory.stats("cpu").peak < before.live + 2 ^ 25)
  t.raises(function() pg.memory.reset_peak("quantum:3") end, "quantum")
end)

test("pg.reset takes back the policy of layers and the default dtype", function(t)
  pg.amp.policy("mixed_bfloat16")
  pg.set_default_dtype("float64")
  pg.reset()
  t.equal(pg.amp.policy(), "float32")
  t.equal(pg.zeros { 1 }.dtype, "float32")
end)

test("statistics", function(t)
  local before = pg.memory.stats("cpu")
  local x = pg.device("cpu", function() return pg.zeros { 2 ^ 18 } end)
  local after = pg.memory.stats("cpu")
  t.ok(after.live >= before.live + 2 ^ 20 and after.reserved >= after.live and after.peak >= after.live)
  x:free()
  t.ok(pg.memory.stats("cpu").live <= after.live - 2 ^ 20)
  t.raises(function() pg.config.memory_limit("cpu", "10 bananas") end, "10GB")
  t.raises(function() pg.memory.stats("quantum:3") end, "quantum")
end)
