-- SPDX-License-Identifier: Apache-2.0
-- Perigee's half of the GPU benchmark: perigee bench.lua DEVICE full|small [ITEM...]. Prints a line an item,
--   ITEM UNIT less|more VALUE...
-- a value a block of calls: the device is synchronised before and after a block and never within. "less" is better or
-- "more" is. bench.py has the same items for PyTorch. `small` is for rehearsals: the sizes mean nothing.

local pg = require "perigee"
local native = require "perigee.native"
local nn, optim = pg.nn, pg.optim

local device, small = arg[1] or "cuda:0", arg[2] == "small"
local BLOCKS, SECONDS = small and 2 or 9, small and 0 or 0.03
local function size(n) return small and math.max(4, math.floor(n / 64)) or n end

-- Seconds a call, a value a block.
local function measure(run)
  for _ = 1, 3 do run() end
  pg.synchronize(device)
  local start = native.clock()
  run()
  pg.synchronize(device)
  local count = math.max(1, math.min(1000, math.floor(SECONDS / (native.clock() - start))))
  local values = {}
  for block = 1, BLOCKS do
    pg.synchronize(device)
    start = native.clock()
    for _ = 1, count do run() end
    pg.synchronize(device)
    values[block] = (native.clock() - start) / count
  end
  return values
end

local function show(name, unit, better, values, convert)
  local words = { name, unit, better }
  for _, v in ipairs(values) do words[#words + 1] = ("%.4g"):format(convert(v)) end
  print(table.concat(words, " "))
  io.stdout:flush()
end
local function bandwidth(name, bytes, run)
  show(name, "GB/s", "more", measure(run), function(s) return bytes / s / 1e9 end)
end
local function time(name, unit, run)
  local scale = ({ ms = 1e3, us = 1e6, ns = 1e9 })[unit]
  show(name, unit, "less", measure(run), function(s) return s * scale end)
end

-- How long the host is busy with an operator: bursts that the device's queue takes without waiting.
local function launches(name, run)
  for _ = 1, 1000 do run() end
  local values, burst = {}, 200
  for block = 1, BLOCKS do
    pg.synchronize(device)
    collectgarbage("collect")
    local start = native.clock()
    for _ = 1, burst do run() end
    values[block] = (native.clock() - start) / burst
  end
  show(name, "ns", "less", values, function(s) return s * 1e9 end)
end

local function rand(shape, dtype, grad)
  local x = pg.rand(shape, { device = device }):to(dtype or "float32")
  return grad and x:requires_grad_() or x
end

local function matmul(name, n, dtype)
  local a, b = rand({ n, n }, dtype), rand({ n, n }, dtype)
  show(name, "TFLOP/s", "more", measure(function() a:matmul(b):free() end),
       function(s) return 2 * n ^ 3 / s / 1e12 end)
end

local function conv2d(name, dtype)
  local n, c, side = size(32), 64, small and 8 or 56
  local x, w = rand({ n, c, side, side }, dtype, true), rand({ c, c, 3, 3 }, dtype, true)
  local dy = rand({ n, c, side, side }, dtype)
  time(name, "ms", function() pg.no_grad(function() pg.conv2d(x, w, nil, { padding = 1 }):free() end) end)
  time(name .. "_backward", "ms", function()
    local y = pg.conv2d(x, w, nil, { padding = 1 })
    local dx, dw = pg.grad({ y }, { x, w }, { grad_outputs = { dy } })
    dx:free()
    dw:free()
  end)
end

-- With and without gradients, of images as they are in the first layers of a network.
local function norm_pool(suffix, dtype)
  local n, c, side = size(32), 64, small and 8 or 56
  local x, dy = rand({ n, c, side, side }, dtype, true), rand({ n, c, side, side }, dtype)
  local weight, bias, mean, var = rand({ c }, nil, true), rand({ c }, nil, true), rand { c }, rand { c }
  local function forward() return (pg.batch_norm(x, weight, bias, mean, var, { training = true })) end
  time("batch_norm_" .. suffix, "ms", function() pg.no_grad(function() forward():free() end) end)
  time("batch_norm_" .. suffix .. "_backward", "ms", function()
    for _, d in ipairs { pg.grad({ forward() }, { x, weight, bias }, { grad_outputs = { dy } }) } do d:free() end
  end)
  time("max_pool_3x3_" .. suffix, "ms", function()
    pg.no_grad(function() (pg.max_pool2d(x, { kernel = 3, stride = 2, padding = 1 })):free() end)
  end)
  local pooled = rand({ n, c, side / 2, side / 2 }, dtype)
  time("avg_pool_2x2_" .. suffix, "ms", function()
    pg.no_grad(function() pg.avg_pool2d(x, { kernel = 2 }):free() end)
  end)
  time("avg_pool_2x2_" .. suffix .. "_backward", "ms", function()
    pg.grad({ pg.avg_pool2d(x, { kernel = 2 }) }, { x }, { grad_outputs = { pooled } }):free()
  end)
end

local function train(name, unit, model, x, y)
  model = model:to(device)
  local optimizer = optim.Adam { model:parameters(), lr = 1e-3 }
  time(name, unit, function()
    optimizer:zero_grad()
    local loss = nn.cross_entropy(model(x), y)
    loss:backward()
    optimizer:step()
  end)
end

local function classes(n, count) return pg.randint(0, n, { count }, { device = device }) end

local items = {
  { "launch_add", function()
    local a, b = rand { 4 }, rand { 4 }
    launches("launch_add", function() local _ = a + b end)
  end },
  { "launch_add_recorded", function()
    local a, b = rand({ 4 }, nil, true), rand { 4 }
    launches("launch_add_recorded", function() local _ = a + b end)
  end },
  { "matmul_bf16_8192", function() matmul("matmul_bf16_8192", size(8192), "bfloat16") end },
  { "matmul_f16_8192", function() matmul("matmul_f16_8192", size(8192), "float16") end },
  { "matmul_f32_4096", function() matmul("matmul_f32_4096", size(4096), "float32") end },
  { "copies", function()
    local n = size(2 ^ 26)
    local here = pg.device("cpu", function() return pg.rand { n } end)
    local there = here:to(device)
    bandwidth("copy_to_device", 4 * n, function() here:to(device):free() end)
    bandwidth("copy_to_host", 4 * n, function() there:cpu():free() end)
    bandwidth("copy_on_device", 8 * n, function() there:clone():free() end)
    bandwidth("copy_transposed", 8 * n, function() there:reshape(-1, 4):t():contiguous():free() end)
  end },
  { "elementwise", function()
    local n = size(2 ^ 26)
    local x, y = rand { n }, rand { n }
    bandwidth("add_64m", 12 * n, function() (x + y):free() end)
    bandwidth("gelu_64m", 8 * n, function() x:gelu():free() end)
    bandwidth("relu_64m", 8 * n, function() x:relu():free() end)
    local rows, row = x:reshape(-1, 4), rand { 4 }
    bandwidth("add_row_64m", 8 * n, function() (rows + row):free() end)
    bandwidth("rand_64m", 4 * n, function() pg.rand({ n }, { device = device }):free() end)
    local half = x:to("bfloat16")
    bandwidth("gelu_bf16_64m", 4 * n, function() half:gelu():free() end)
  end },
  { "reductions", function()
    local side = size(8192)
    local x = rand { side, side }
    bandwidth("sum_all", 4 * side * side, function() x:sum():free() end)
    bandwidth("sum_rows", 4 * side * side, function() x:sum(2):free() end)
    bandwidth("sum_columns", 4 * side * side, function() x:sum(1):free() end)
    bandwidth("softmax_rows", 8 * side * side, function() x:softmax { axis = 2 }:free() end)
  end },
  { "convolution", function()
    conv2d("conv2d_f32", "float32")
    conv2d("conv2d_bf16", "bfloat16")
  end },
  { "norms", function()
    local rows, width = size(8192), size(4096)
    local x, w, b = rand { rows, width }, rand { width }, rand { width }
    bandwidth("layer_norm", 8 * rows * width, function() (pg.layer_norm(x, w, b)):free() end)
    local n, c, side = size(32), 64, small and 8 or 56
    local images = rand { n, c, side, side }
    local weight, bias, mean, var = rand { c }, rand { c }, rand { c }, rand { c }
    bandwidth("batch_norm", 8 * n * c * side * side, function()
      (pg.batch_norm(images, weight, bias, mean, var, { training = true })):free()
    end)
  end },
  { "norm_pool", function()
    for _, dtype in ipairs { "float32", "bfloat16" } do norm_pool(dtype == "float32" and "f32" or "bf16", dtype) end
  end },
  { "adam", function()
    local n = size(25e6)
    local parts = {}
    for i = 1, 10 do
      parts[i] = rand({ math.floor(n / 10) }, nil, true)
      parts[i].grad = rand { math.floor(n / 10) }
    end
    local optimizer = optim.Adam { parts, lr = 1e-3 }
    bandwidth("adam_25m", 28 * n, function() optimizer:step() end)
  end },
  { "training", function()
    train("tiny_step", "us", nn.Sequential { nn.Linear { 4, 8 }, nn.ReLU {}, nn.Linear { 8, 2 } }, rand { 2, 4 },
          classes(2, 2))
    train("digits_step", "ms", nn.Sequential { -- examples/01_digits.lua's
      nn.Conv2d { 1, 32, 3, padding = 1 }, nn.BatchNorm2d { 32 }, nn.ReLU {},
      nn.Conv2d { 32, 32, 3, padding = 1 }, nn.BatchNorm2d { 32 }, nn.ReLU {}, nn.MaxPool2d { 2 },
      nn.Conv2d { 32, 64, 3, padding = 1 }, nn.BatchNorm2d { 64 }, nn.ReLU {}, nn.MaxPool2d { 2 },
      nn.Flatten {}, nn.Dropout { 0.3 }, nn.Linear { 256, 10 },
    }, rand { 32, 1, 8, 8 }, classes(10, 32))
    local wide = nn.Sequential {}
    local widths = { size(784), size(2048), size(1024), size(512) }
    for i = 2, 4 do
      wide:append(nn.Linear { widths[i - 1], widths[i] })
      wide:append(nn.BatchNorm1d { widths[i] })
      wide:append(nn.ReLU {})
      wide:append(nn.Dropout { 0.2 })
    end
    wide:append(nn.Linear { widths[4], 10 })
    train("mlp_step", "ms", wide, rand { 512, widths[1] }, classes(10, 512))
  end },
}

local wanted = {}
for i = 3, #arg do wanted[arg[i]] = true end
for _, item in ipairs(items) do
  if not next(wanted) or wanted[item[1]] then
    local ok, err = pcall(item[2])
    -- One that cannot run says so; the others still do.
    if not ok then print(("%s failed %s"):format(item[1], (tostring(err):gsub("%s+", " ")))) end
    pg.memory.collect()
    pg.memory.empty_cache(device)
  end
end
