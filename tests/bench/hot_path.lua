-- SPDX-License-Identifier: Apache-2.0
-- Perigee's half of the benchmark: `perigee hot_path.lua ITEM` measures one item and prints its numbers on one line.
-- Timed items print nanoseconds an operation: wall time, then the processor time of the whole process.
-- torch_reference.py has the same items for PyTorch; driver.lua compares them.

local pg = require "perigee"
local native = require "perigee.native"
local nn, optim = pg.nn, pg.optim

-- What a script has beside its tensors: the collector walks it in every cycle.
local live = {}
for i = 1, 20000 do live[i] = { i } end

local function report(count, run)
  run(math.min(count, 2000)) -- caches, traces, thread pools
  pg.synchronize()
  collectgarbage("collect")
  local wall, cpu = native.clock(), os.clock()
  run(count)
  pg.synchronize()
  collectgarbage("collect") -- what the loop left over is paid for by the loop
  wall, cpu = native.clock() - wall, os.clock() - cpu
  print(("%.1f %.1f"):format(wall / count * 1e9, cpu / count * 1e9))
end

local function small(requires_grad)
  return pg.rand({ 4 }, { requires_grad = requires_grad }), pg.rand { 4 }, pg.rand { 4 }
end

local function add(requires_grad)
  local a, b = small(requires_grad)
  report(1000000, function(count)
    for _ = 1, count do local _ = a + b end
  end)
end

local function chain(requires_grad)
  local a, b, c = small(requires_grad)
  report(300000, function(count)
    for _ = 1, count do local _ = ((a + b) * c):relu() end
  end)
end

-- The step that training loops are made of.
local function train(model, x, y, count, backward, update)
  local optimizer = optim.Adam { model:parameters(), lr = 1e-3 }
  report(count, function(steps)
    for _ = 1, steps do
      if backward then optimizer:zero_grad() end
      local loss = nn.cross_entropy(model(x), y)
      if backward then loss:backward() end
      if update then optimizer:step() end
    end
  end)
end

local function tiny(backward, update)
  local model = nn.Sequential { nn.Linear { 4, 8 }, nn.ReLU {}, nn.Linear { 8, 2 } }
  train(model, pg.rand { 2, 4 }, pg.tensor({ 0, 1 }, { dtype = "int64" }), 20000, backward, update)
end

-- examples/01_digits.lua's network.
local function digits()
  local model = nn.Sequential {
    nn.Conv2d { 1, 32, 3, padding = 1 }, nn.BatchNorm2d { 32 }, nn.ReLU {},
    nn.Conv2d { 32, 32, 3, padding = 1 }, nn.BatchNorm2d { 32 }, nn.ReLU {}, nn.MaxPool2d { 2 },
    nn.Conv2d { 32, 64, 3, padding = 1 }, nn.BatchNorm2d { 64 }, nn.ReLU {}, nn.MaxPool2d { 2 },
    nn.Flatten {}, nn.Dropout { 0.3 }, nn.Linear { 256, 10 },
  }
  train(model, pg.rand { 32, 1, 8, 8 }, pg.randint(0, 10, { 32 }), 100, true, true)
end

local function add_large()
  local a, b = pg.rand { 16777216 }, pg.rand { 16777216 }
  report(20, function(count)
    for _ = 1, count do local _ = a + b end
  end)
end

local function resident(field)
  for line in io.lines("/proc/self/status") do
    local kilobytes = line:match("^" .. field .. ":%s+(%d+)")
    if kilobytes then return kilobytes / 1024 end
  end
end

-- MiB resident: after 100 tensors, after all of them, and the most there ever was.
local function dropped()
  for _ = 1, 100 do pg.zeros { 512, 512 } end
  local before = resident("VmRSS")
  for _ = 1, 100000 do pg.zeros { 512, 512 } end
  print(("%.1f %.1f %.1f"):format(before, resident("VmRSS"), resident("VmHWM")))
end

local items = {
  add = function() add(false) end, add_recorded = function() add(true) end,
  chain = function() chain(false) end, chain_recorded = function() chain(true) end,
  tiny_forward = function() tiny(false, false) end, tiny_backward = function() tiny(true, false) end,
  tiny_step = function() tiny(true, true) end,
  digits_step = digits, add_large = add_large, dropped = dropped,
}

local run = items[arg[1] or ""]
if not run then error("hot_path.lua needs the name of an item; see its end", 0) end
run()
assert(#live == 20000)
