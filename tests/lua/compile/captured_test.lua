-- SPDX-License-Identifier: Apache-2.0
-- Compiled functions whose plans are captured by their device: the bits of eager code, captured once while numbers
-- change, and what fails is named.

local tests = (debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or ".") .. "/../.."
package.path = tests .. "/?.lua;" .. package.path

local pg = require "perigee"
local nn, optim = pg.nn, pg.optim

local DEVICE = pg.device() ~= "cpu" and pg.device() or "sim:0"
local STEPS = 10

local function numbers(x) return x:detach():cpu():totable() end

-- make(): a function of a step's number, and tensors to look at after each.
local function trace(make, compiled)
  pg.manual_seed(11)
  return pg.device(DEVICE, function()
    local f, watched = make()
    local step = compiled and pg.compile(f, { fuse = false }) or f -- joined: captured_regions_test.lua
    local seen = {}
    for i = 1, STEPS do
      local row = { numbers(step(i)) }
      for _, w in ipairs(watched or {}) do
        row[#row + 1] = numbers(w)
        row[#row + 1] = w.grad and numbers(w.grad) or "no gradient"
      end
      seen[i] = row
    end
    return seen, step
  end)
end

local same = require("steps").same_by(test, trace, STEPS)

local function once(t, s, step)
  t.equal(s.captures, 1, step:explain())
  t.ok(s.captured > 0 and s.pieces > 0, step:explain())
  t.ok(s.hits >= STEPS - 3, step:explain())
end

local function training(model, options)
  return function()
    local net = model()
    local opt = (options.optimizer or optim.Adam)(net:parameters(), options.settings or { lr = 0.01 })
    local schedule = options.schedule and options.schedule(opt)
    local scaler = options.scaler and pg.amp.GradScaler(options.scaler)
    return function()
      local x, y = pg.randn { 6, 5 }, pg.randint(0, 3, { 6 })
      opt:zero_grad()
      local loss = pg.cross_entropy(net(x), y)
      if scaler then
        scaler:scale(loss):backward()
        scaler:step(opt)
        scaler:update()
      else
        loss:backward()
        opt:step()
      end
      if schedule then schedule:step() end
      return loss:detach()
    end, net:parameters()
  end
end

local function mlp() return nn.Sequential { nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 3) } end
local function dropped()
  return nn.Sequential { nn.Linear(5, 8), nn.GELU(), nn.Dropout(0.4), nn.Linear(8, 3) }
end

same("Adam, whose step and bias corrections change", training(mlp, {}), once)
for _, name in ipairs { "SGD", "AdamW", "RMSprop", "Adagrad", "NAdam", "RAdam", "Lion" } do
  if optim[name] then
    same(name, training(mlp, { optimizer = optim[name] }), once)
  end
end
same("Adam with a schedule", training(mlp, {
  schedule = function(opt) return optim.sched.Cosine(opt, STEPS) end,
}), once)
same("Adam, a schedule and dropout", training(dropped, {
  schedule = function(opt) return optim.sched.Step(opt, 2, 0.5) end,
}), once)
same("Adam with a scaler, whose scale grows", training(dropped, { scaler = { init_scale = 4, growth_interval = 2 } }),
     function(t, s, step) t.ok(s.hits > 0 and s.captures <= 1, step:explain()) end)

same("numbers of operators", function()
  local w = pg.randn { 4, 5 }
  return function(i)
    local y = (w * (i * 0.5) + i):clamp(-i, i * 2)
    y = pg.where(y:gt(i - 2), y, 1.0 / i)
    return (y + pg.rand { 4, 5 } * i + pg.randn { 4, 5 }):exp()
  end
end, once)

same("a number that no kernel reads on the device is captured around", function()
  local w = pg.randn { 4, 5 }
  return function(i)
    local full = pg.full({ 4, 5 }, i * 0.25)
    return ((w + full) * 2):exp() - 1
  end
end, function(t, s, step)
  t.ok(s.captures >= 1 and s.captures <= 3, step:explain())
  t.ok(s.captured > 0, step:explain())
end)

same("arguments that lie elsewhere each time are copied", function()
  local batches = {}
  for k = 1, STEPS do batches[k] = pg.randn { 3, 4 } end
  return function(i) return (batches[i] * 2 + 1):sum { 2 } end
end, function(t, s, step)
  once(t, s, step)
  t.ok(s.copied > 0, step:explain())
end)

test("results that are kept are not overwritten by the next call", function(t)
  pg.device(DEVICE, function()
    local x = pg.randn { 3, 4 }
    local function plain(i) return (x * i + 1):exp() end
    local f, all = pg.compile(plain, { fuse = false }), {}
    for i = 1, STEPS do all[i] = f(i) end
    for i = 1, STEPS do t.equal(numbers(all[i]), numbers(plain(i))) end
    t.equal(f:stats().captures, 1, f:explain())
  end)
end)

test("what has changed its place is captured anew, and in the end not at all", function(t)
  pg.device(DEVICE, function()
    local w = pg.zeros { 8 }
    local f = pg.compile(function() pg.no_grad(function() w:mul_(2):add_(1) end) end, { fuse = false })
    for i = 1, 6 do f() end
    t.equal(f:stats().captures, 1, f:explain())
    t.equal(numbers(w), numbers(pg.full({ 8 }, 63)))
    w = pg.ones { 8 }
    for i = 1, 3 do f() end
    t.equal(f:stats().captures, 2, f:explain())
    t.ok(f:stats().capture_why:find("lies elsewhere", 1, true), f:explain())
    t.equal(numbers(w), numbers(pg.full({ 8 }, 15)))
    local many = {}
    for i = 1, 24 do
      w = pg.ones { 8 }
      many[i] = w
      f()
    end
    for i = 1, 24 do t.equal(numbers(many[i]), numbers(pg.full({ 8 }, 3))) end
    t.ok(f:stats().capture_why:find("captured 16 times", 1, true), f:explain())
  end)
end)

test("without capture there is none", function(t)
  pg.device(DEVICE, function()
    local x = pg.ones { 4 }
    local f = pg.compile(function() return (x * 2):exp():sum() end, { capture = false })
    for _ = 1, 5 do f() end
    t.equal(f:stats().captures, 0)
    t.ok(f:stats().hits > 0)
  end)
end)

test("a fault in what is captured names operator and line, and the next call is right", function(t)
  pg.device(DEVICE, function()
    local weight = pg.arange(6, { dtype = "float32" }):reshape { 3, 2 }
    local index = pg.tensor { 0, 2, dtype = "int64" }
    local line
    local f = pg.compile(function()
      local x = weight * 2 + 1
      line = debug.getinfo(1, "l").currentline + 1
      local y = pg.embedding(x, index)
      return y * 3
    end)
    pg.config.set { origins = true }
    local ok, problem = pcall(function()
      for _ = 1, 4 do t.equal(numbers(f()), { { 3, 9 }, { 27, 33 } }) end
      t.equal(f:stats().captures, 1, f:explain())
      index:copy_(pg.tensor({ 0, 7 }, { dtype = "int64" }))
      pg.synchronize(DEVICE)
      f()
      local done, text = pcall(pg.synchronize, DEVICE)
      t.ok(not done, "no error")
      t.ok(tostring(text):find("embedding (number ", 1, true), tostring(text))
      t.ok(tostring(text):find("captured_test.lua:" .. line, 1, true), tostring(text))
      pcall(pg.synchronize, DEVICE)
      index:copy_(pg.tensor({ 1, 1 }, { dtype = "int64" }))
      t.equal(numbers(f()), { { 15, 21 }, { 15, 21 } })
    end)
    pg.config.set { origins = false }
    if not ok then error(problem, 0) end
  end)
end)
