-- SPDX-License-Identifier: Apache-2.0
-- Training steps and products in float32, bfloat16 and float16, by turns in one process: perigee mixed_precision.lua
-- [ROUNDS]. The ratio is the low precision's time over float32's; below 1 it is faster.

local pg = require "perigee"
local nn, optim, amp = pg.nn, pg.optim, pg.amp
local clock = require("perigee.native").clock
local rounds = tonumber(arg[1]) or 7

local function median(list)
  table.sort(list)
  return list[math.floor((#list + 1) / 2)]
end

local function seconds(fn, repeats)
  pg.memory.collect()
  local start = clock()
  for _ = 1, repeats do fn() end
  pg.synchronize()
  return (clock() - start) / repeats
end

-- variants: { { name, fn }, ... }, the first is what the others are compared with.
local function compare(label, variants, repeats)
  local times = {}
  for _, v in ipairs(variants) do
    times[v[1]] = {}
    v[2]()
    v[2]()
  end
  for _ = 1, rounds do
    for _, v in ipairs(variants) do table.insert(times[v[1]], seconds(v[2], repeats)) end
  end
  local base, parts = median(times[variants[1][1]]), {}
  for _, v in ipairs(variants) do
    local time = median(times[v[1]])
    parts[#parts + 1] = ("%s %8.3f ms (%.2f)"):format(v[1], time * 1000, time / base)
  end
  print(("%-34s %s"):format(label, table.concat(parts, "  ")))
end

local function products()
  for _, s in ipairs { { 64, 2048, 784 }, { 512, 512, 512 }, { 1024, 1024, 1024 }, { 1, 2048, 784 } } do
    local m, n, k = s[1], s[2], s[3]
    local variants = {}
    for i, dtype in ipairs { "float32", "bfloat16", "float16" } do
      local x, w = pg.randn({ m, k }):to(dtype), pg.randn({ n, k }):to(dtype)
      variants[i] = { dtype, function() pg.no_grad(pg.linear, x, w) end }
    end
    compare(("linear %d x %d x %d"):format(m, n, k), variants, math.max(1, math.floor(2e8 / (m * n * k))))
  end
end

local function mlp(batch)
  local layers, sizes = {}, { 784, 2048, 1024, 512 }
  for i = 1, 3 do
    layers[#layers + 1] = nn.Linear { sizes[i], sizes[i + 1] }
    layers[#layers + 1] = nn.BatchNorm1d { sizes[i + 1] }
    layers[#layers + 1] = nn.ReLU {}
    layers[#layers + 1] = nn.Dropout { 0.2 }
  end
  layers[#layers + 1] = nn.Linear { 512, 10 }
  return nn.Sequential(layers), pg.randn { batch, 784 }
end

local function convolutional(batch)
  return nn.Sequential { nn.Conv2d { 1, 32, 3, padding = 1 }, nn.ReLU {}, nn.Conv2d { 32, 64, 3, padding = 1 },
                         nn.ReLU {}, nn.MaxPool2d { 2 }, nn.Flatten {}, nn.Linear { 12544, 128 }, nn.ReLU {},
                         nn.Linear { 128, 10 } }, pg.randn { batch, 1, 28, 28 }
end

local function steps(label, make, batch, repeats)
  local variants = {}
  local y = pg.randint(0, 10, { batch })
  for i, dtype in ipairs { "float32", "bfloat16", "float16" } do
    local model, x = make(batch)
    local optimizer, scaler = optim.Adam { model:parameters(), lr = 1e-3 }, amp.GradScaler { enabled = i == 3 }
    local function loss() return nn.cross_entropy(model(x), y) end
    variants[i] = { dtype, function()
      optimizer:zero_grad()
      local value = i == 1 and loss() or amp.autocast({ dtype = dtype }, loss)
      scaler:scale(value):backward()
      scaler:step(optimizer)
      scaler:update()
    end }
  end
  compare(label, variants, repeats)
end

-- What autocast itself costs: small operators in a scope against outside of one.
local function overhead()
  local x, w = pg.randn { 2, 4 }, pg.randn { 8, 4 }
  w.requires_grad = true
  local function chain() return pg.linear(x, w):relu():add(1) end
  local function repeated() for _ = 1, 100 do chain() end end
  compare("100 x linear, relu, add (tiny)", { { "float32", repeated },
          { "bfloat16", function() amp.autocast({}, repeated) end } }, 20)
end

products()
steps("MLP step, batch 64", mlp, 64, 2)
steps("MLP step, batch 512", mlp, 512, 1)
steps("convolutional net step, batch 64", convolutional, 64, 1)
overhead()
