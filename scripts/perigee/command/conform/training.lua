-- SPDX-License-Identifier: Apache-2.0
-- What `perigee conform` asks of a device as a whole: a small training whose losses are the CPU's, failures that say
-- what they are and leave the device usable, every allocation of a computation failing in turn.

local pg = require "perigee"
local native = require "perigee.native"
local nn = pg.nn

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

return checks
