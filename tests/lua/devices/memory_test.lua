-- SPDX-License-Identifier: Apache-2.0
-- Memory of devices: growth, limits, shares and parts of a device together; and training steps of which every single
-- allocation fails, eagerly, compiled and in a session: the error says what is needed, nothing leaks, and the next step
-- gives the bits that it would have given.

local pg = require "perigee"
local native = require "perigee.native"
local nn = pg.nn

local MiB = 2 ^ 20
local sim = pg.devices("sim")[1]

local function second(name, fn)
  test(name, function(t)
    if not sim then t.skip("there is no second device") end
    native.without_device(fn, t) -- whatever device the suite runs on
  end)
end

second("without growth the limit is taken at once; both can change while tensors live", function(t)
  local d = sim.name
  pg.memory.collect()
  pg.memory.empty_cache(d)
  t.raises(function() pg.config.memory_growth(d, false) end, "does not say how much memory it has free")
  pg.config.memory_limit(d, 24 * MiB)
  pg.config.memory_growth(d, false)
  t.equal(pg.memory.stats(d).reserved, 24 * MiB)
  t.equal(pg.memory.stats(d).grows, false)
  local x = pg.ones({ 2 ^ 20 }, { device = d })
  t.equal(pg.memory.stats(d).reserved, 24 * MiB)
  t.raises(function() pg.zeros({ 2 ^ 23 }, { device = d }) end, "tried to allocate 32.0 MiB on " .. d)
  pg.config.memory_limit(d, 48 * MiB)
  t.equal(pg.memory.stats(d).reserved, 48 * MiB)
  local y = pg.zeros({ 2 ^ 22 }, { device = d })
  t.equal((x + 1):sum():item(), 2 ^ 21)
  y:free()
  pg.reset()
  t.equal(pg.memory.stats(d).grows, true)
  t.equal(pg.memory.stats(d).limit, 0)
  t.equal(x:sum():item(), 2 ^ 20)
end)

test("what was asked for is counted to the byte", function(t)
  pg.memory.collect()
  local before = pg.memory.stats("cpu").requested
  local list = pg.device("cpu", function()
    return { pg.zeros { 7 }, pg.zeros({ 1001 }, { dtype = "int8" }), pg.zeros({ 3, 5 }, { dtype = "float64" }),
             pg.zeros { 0 } }
  end)
  t.equal(pg.memory.stats("cpu").requested - before, 7 * 4 + 1001 + 15 * 8)
  for _, x in ipairs(list) do x:free() end
  t.equal(pg.memory.stats("cpu").requested, before)
end)

second("a device as several: each with its share, tensors pass between them, all settings go for each", function(t)
  local d = sim.name
  local names = pg.config.logical_devices(d, { { memory_limit = "8MB" }, { memory_limit = 16 * MiB } })
  t.equal(names[1], d)
  t.ok(names[2]:find("^sim:%d+$") and names[2] ~= d, names[2])
  t.equal(pg.memory.stats(names[1]).limit, 8 * MiB)
  t.equal(pg.memory.stats(names[2]).limit, 16 * MiB)
  local listed
  for _, each in ipairs(pg.devices("sim")) do listed = listed or each.name == names[2] end
  t.ok(listed)
  local x = pg.arange(1000, { dtype = "float32" }):to(names[1])
  local y = (x * 2):to(names[2])
  t.equal(y.device, names[2])
  t.equal(pg.device(names[2], function() return (y + 1):to(names[1]) + x end), pg.arange(1000) * 3 + 1)
  t.raises(function() return x + y end, "different devices")
  t.raises(function() pg.zeros({ 3 * 2 ^ 20 }, { device = names[1] }) end, "the limit set for this device is 8.0 MiB")
  t.equal(pg.zeros({ 3 * 2 ^ 20 }, { device = names[2] }):sum():item(), 0)
  pg.config.memory_growth(names[2], false)
  t.equal(pg.memory.stats(names[2]).reserved, 16 * MiB)
  -- Again: other limits, and one more.
  local more = pg.config.logical_devices(d, { { memory_limit = "16MB" }, { memory_limit = "20MB" },
                                              { memory_limit = "4MB" } })
  t.equal({ more[1], more[2] }, names)
  t.equal(pg.memory.stats(names[1]).limit, 16 * MiB)
  t.equal(pg.memory.stats(names[2]).reserved, 20 * MiB)
  t.equal(pg.memory.stats(more[3]).limit, 4 * MiB)
  t.raises(function() pg.config.logical_devices(d, { { memory_limit = 1 } }) end, "cannot be taken away")
  t.raises(function() pg.config.logical_devices(more[2], { { memory_limit = 1 } }) end, "is itself a part of " .. d)
  t.raises(function() pg.config.logical_devices(d, {}) end, "needs a list")
  t.raises(function() pg.config.logical_devices(d, { { memory_limt = 1 } }) end, "must be {memory_limit")
  t.raises(function() pg.config.logical_devices(d, { { memory_limit = 1, name = 2 } }) end, "no option 'name'")
  pg.reset()
end)

-- ---- every allocation of a step fails ----

-- A model with convolution, normalisation, dropout and Adam: on the device, from the same seed.
local function make(device)
  pg.manual_seed(3)
  local model = nn.Sequential { nn.Conv2d { 1, 4, 3, padding = 1 }, nn.BatchNorm2d { 4 }, nn.ReLU {}, nn.Flatten {},
                                nn.Linear { 64, 3 } }:to(device)
  local x = pg.randn { 6, 1, 4, 4 }:to(device)
  local y = pg.tensor({ 0, 1, 2, 0, 1, 2 }, { dtype = "int64" }):to(device)
  return model, pg.optim.Adam { model:parameters(), lr = 0.01 }, x, y
end

local function eager(device, compiled)
  local model, opt, x, y = make(device)
  local function step()
    opt:zero_grad()
    local loss = nn.cross_entropy(model(x), y)
    loss:backward()
    opt:step()
    return loss
  end
  return compiled and pg.compile(step) or step, model:parameters()
end

local function recurrent(device, compiled)
  pg.manual_seed(3)
  local layer, head = nn.LSTM { 3, 4 }:to(device), nn.Linear { 4, 3 }:to(device)
  local x, parameters = pg.randn { 2, 5, 3 }:to(device), {}
  for _, m in ipairs { layer, head } do for _, p in ipairs(m:parameters()) do parameters[#parameters + 1] = p end end
  local opt = pg.optim.Adam { parameters, lr = 0.01 }
  local function step()
    opt:zero_grad()
    local loss = head((layer(x))):square():mean()
    loss:backward()
    opt:step()
    return loss
  end
  return compiled and pg.compile(step) or step, parameters
end

local function session(device)
  local model, opt, x, y = make(device)
  local g = pg.graph(function(g)
    return pg.device(device, function()
      local inputs = g:placeholder { "x", shape = { 6, 1, 4, 4 } }
      local loss = nn.cross_entropy(model(inputs), g:placeholder { "y", shape = { 6 }, dtype = "int64" })
      return { loss = loss, train = opt:minimize(loss) }
    end)
  end)
  local s = pg.Session { g }
  return function() return (s:run({ "loss", "train" }, { x = x, y = y })).loss end, model:parameters(),
         function() s:commit(model) end
end

local function values(parameters, commit)
  if commit then commit() end
  local list = {}
  for i, p in ipairs(parameters) do list[i] = p:detach():totable() end -- numbers: they take no memory of the device
  return list
end

local function same(t, got, want, what)
  for i = 1, #want do t.equal(got[i], want[i], ("%s, parameter %d"):format(what, i)) end
end

-- begin(device): a step, its parameters, and what makes them current.
local function survives(name, device, begin, warm)
  local function check(t)
    local index = native.find_device(device)
    local function trajectory(steps)
      local step, parameters, commit = begin(device)
      local seen = {}
      for i = 1, steps do
        local loss = step():item()
        seen[i] = { loss, values(parameters, commit) }
      end
      return seen
    end
    local step, parameters, commit = begin(device)
    for _ = 1, warm do step():item() end
    collectgarbage()
    local live
    local done, n, failed = warm, 0, 0
    local reference = {}
    repeat
      n = n + 1
      pg.memory.collect()
      live = live or pg.memory.stats(device).requested
      native.fail_allocations(index, n)
      local ok, err = pcall(function() return step():item() end)
      native.fail_allocations(index)
      if not ok then
        failed = failed + 1
        t.equal(err.code, "out_of_memory", tostring(err))
        t.ok(err:find("tried to allocate %d") and err:find(" live") and err:find("most is held by"), tostring(err))
        err = nil -- luacheck: ignore
        pg.memory.collect()
        local now = pg.memory.stats(device).requested
        t.ok(now <= live, ("allocation %d left %d bytes behind"):format(n, now - live))
        reference[#reference + 1] = { at = done + 1, n = n, loss = step():item(), values = values(parameters, commit) }
      end
      done = done + 1
    until ok or n > 400
    t.ok(failed > 2 and n <= 400, ("%d of %d failed"):format(failed, n))
    local want = trajectory(done)
    for _, r in ipairs(reference) do
      t.equal(r.loss, want[r.at][1], "loss after allocation " .. r.n)
      same(t, r.values, want[r.at][2], "after allocation " .. r.n)
    end
  end
  test(("%s on %s: each allocation of a step fails in turn"):format(name, device), function(t)
    native.without_device(check, t)
  end)
end

for _, device in ipairs { "cpu", sim and sim.name } do
  survives("eagerly", device, eager, 2)
  survives("compiled", device, function(d) return eager(d, true) end, 4)
  survives("in a session", device, session, 3)
  survives("a recurrent net, eagerly", device, recurrent, 2)
  survives("a recurrent net, compiled", device, function(d) return recurrent(d, true) end, 4)
end
