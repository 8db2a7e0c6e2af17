-- SPDX-License-Identifier: Apache-2.0
-- What `perigee conform` asks of a device as a whole: a small training whose losses are the CPU's, failures that say
-- what they are and leave the device usable, every allocation of a computation failing in turn.

local pg = require "perigee"
local native = require "perigee.native"
local nn = pg.nn

local function first_line(err) return (tostring(err):match("^[^\n]*")) end

local checks = {}
local function check(level, group, name, fn) checks[#checks + 1] = { level, group, name, fn } end

local function close(got, want, what)
  for i = 1, #want do
    local off = math.abs(got[i] - want[i])
    if off ~= off or off > 1e-3 * math.max(1, math.abs(want[i])) then
      error(("%s, step %d: the loss is %.7g, on the CPU %.7g"):format(what, i, got[i], want[i]), 0)
    end
  end
end

-- The losses of some steps from the same seed.
local function train(device, make, loss_of, x, y)
  pg.manual_seed(1)
  local model = pg.device("cpu", make):to(device)
  local optimizer = pg.optim.SGD { model:parameters(), lr = 0.1, momentum = 0.9 }
  x, y = x:to(device), y:to(device)
  local losses = {}
  for i = 1, 8 do
    optimizer:zero_grad()
    local loss = pg.device(device, function() return loss_of(model(x), y) end)
    loss:backward()
    optimizer:step()
    losses[i] = loss:item()
  end
  return losses
end

check(4, "training", "a perceptron learns as on the CPU", function(d)
  local function make() return nn.Sequential { nn.Linear { 6, 8 }, nn.ReLU {}, nn.Linear { 8, 2 } } end
  local function loss_of(y, want) return (y - want):pow(2):mean() end
  pg.manual_seed(2)
  local x, y = pg.randn { 10, 6 }, pg.randn { 10, 2 }
  close(train(d, make, loss_of, x, y), train("cpu", make, loss_of, x, y), "perceptron")
end)

check(4, "training", "a convolutional net learns as on the CPU", function(d)
  local function make()
    return nn.Sequential { nn.Conv2d { 1, 4, 3, padding = 1 }, nn.BatchNorm2d { 4 }, nn.ReLU {}, nn.MaxPool2d { 2 },
                           nn.Flatten {}, nn.Linear { 16, 3 } }
  end
  pg.manual_seed(2)
  local x, y = pg.randn { 6, 1, 4, 4 }, pg.tensor({ 0, 1, 2, 0, 1, 2 }, { dtype = "int64" })
  close(train(d, make, nn.cross_entropy, x, y), train("cpu", make, nn.cross_entropy, x, y), "convolutional net")
end)

local name = "each allocation of a computation fails in turn, nothing leaks, and the next one is right"
check(5, "errors", name, function(d)
  local index = native.find_device(d)
  local x, w = pg.ones({ 4, 4 }):to(d), pg.full({ 4, 4 }, 2):to(d)
  local function compute() return (x:matmul(w) * w + x):relu() end
  compute():cpu()
  collectgarbage()
  pg.memory.collect()
  local before = pg.memory.stats(d).requested
  for n = 1, 50 do
    native.fail_allocations(index, n)
    local ok, err = pcall(function() return compute():cpu() end)
    native.fail_allocations(index)
    if ok then return end
    if not native.is_error(err) or err.code ~= "out_of_memory" then
      error(("allocation %d: the error is %s"):format(n, tostring(err)), 0)
    end
    err = nil -- luacheck: ignore
    pg.memory.collect()
    if pg.memory.stats(d).requested > before then error(("allocation %d leaves memory behind"):format(n), 0) end
    local y = compute():cpu():max():item()
    if y ~= 17 then error(("after allocation %d failed, 17 comes as %g"):format(n, y), 0) end
  end
end)

check(5, "errors", "an index out of range is an error that names it, and the device goes on", function(d)
  local weight, good = pg.ones({ 4, 2 }):to(d), pg.tensor({ 1, 3 }, { dtype = "int64" }):to(d)
  local bad = pg.tensor({ 1, 9 }, { dtype = "int64" }):to(d)
  pg.embedding(weight, good):cpu() -- there is a kernel
  for _ = 1, 3 do
    local ok, err = pcall(function()
      local y = pg.embedding(weight, bad)
      pg.synchronize(d)
      return y
    end)
    if ok then error("index 9 of 4 is taken", 0) end
    local text = tostring(err)
    if not text:find("embedding", 1, true) or not text:find("9", 1, true) then error("the error is " .. text, 0) end
    local sum = pg.embedding(weight, good):sum():cpu():item()
    if sum ~= 4 then error(("afterwards 4 comes as %g"):format(sum), 0) end
  end
end)

-- make(): a function of a call's number. It is captured, and its results are those of the same calls one by one.
local function captured(d, make)
  local function trace(compiled)
    pg.manual_seed(3)
    return pg.device(d, function()
      local f = make()
      local call, results = compiled and pg.compile(f, { fuse = false }) or f, {}
      for i = 1, 8 do results[i] = call(i):cpu():reshape(-1):totable() end
      return results, compiled and call:stats()
    end)
  end
  local want = trace(false)
  local got, stats = trace(true)
  for i = 1, 8 do
    for k = 1, #want[i] do
      if got[i][k] ~= want[i][k] then
        error(("call %d: element %d is %.9g, launched one by one %.9g"):format(i, k, got[i][k], want[i][k]), 0)
      end
    end
  end
  if stats.captures == 0 and stats.capture_why:find("captures nothing", 1, true) then return end -- not offered
  if stats.captured == 0 then
    error(("captured %d times, %d kernels: %s"):format(stats.captures, stats.captured, stats.capture_why), 0)
  end
end

check(5, "captured", "numbers of operators are those of each call", function(d)
  captured(d, function()
    local x = pg.arange(1, 13, { dtype = "float32" }):reshape(3, 4)
    return function(i) return (x * (0.5 * i) + i):clamp(2, 3 * i) end
  end)
end)

check(5, "captured", "random numbers are those of each call", function(d)
  captured(d, function()
    local x = pg.ones { 8, 8 }
    return function() return pg.dropout(x, 0.5) * 2 + 1 end
  end)
end)

check(5, "captured", "an optimizer's numbers are those of each step", function(d)
  captured(d, function()
    local w = pg.ones { 3, 4 }
    w.requires_grad = true
    local optimizer = pg.optim.Adam { { w }, lr = 0.1 }
    return function(i)
      optimizer.groups[1].lr = 0.1 / i
      optimizer:zero_grad()
      local loss = (w * w):sum()
      loss:backward()
      optimizer:step()
      return w:detach():clone()
    end
  end)
end)

check(5, "captured", "what fails in a plan is told by its number", function(d)
  local weight, index = pg.ones({ 4, 2 }):to(d), pg.tensor({ 1, 3 }, { dtype = "int64" }):to(d)
  local f = pg.compile(function() return pg.embedding(weight * 2, index) + 1 end, { fuse = false })
  for _ = 1, 4 do f():cpu() end
  if f:stats().captured == 0 then return end
  index:copy_(pg.tensor({ 1, 9 }, { dtype = "int64" }))
  pg.synchronize(d)
  local ok, err = pcall(function()
    f()
    pg.synchronize(d)
  end)
  pcall(pg.synchronize, d)
  if ok then error("index 9 of 4 is taken", 0) end
  if not tostring(err):find("embedding (number ", 1, true) then error("the error is " .. first_line(err), 0) end
end)

return checks
