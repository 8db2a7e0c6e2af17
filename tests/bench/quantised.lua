-- SPDX-License-Identifier: Apache-2.0
-- One sample through quantised models, against float32's of Perigee, PyTorch's int8 (dynamic, of convolutions static)
-- and onnxruntime's: perigee tests/bench/quantised.lua [PYTHON [ROUNDS [PATTERN]]]. All take turns, with one thread
-- each; a row is a model whose name has PATTERN in it: microseconds of processor time a call, medians of the rounds,
-- and medians of the rounds' ratios, of which those to others say how many times their time Perigee's of the same kind
-- takes, dynamic int8 beside float32's (below 1: less). A lesser processor: with PERIGEE_CPU_ISA=avx2 and, for oneDNN's
-- float32, DNNL_MAX_CPU_ISA=AVX2 in the environment.

local pg = require "perigee"
local nn = pg.nn
pg.config.set { threads = 1 }
local python, rounds, pattern = arg[1] or "/usr/bin/python3", tonumber(arg[2] or 5), arg[3] or ""
local folder = arg[0]:match("^(.*)/[^/]*$") or "."

-- Sizes from the input on; ReLU between. Of convolutions of 3x3: the side of the image, then channels; "/" halves the
-- image. quantised_torch.py has the same.
local MODELS = { { "mlp 784-512-256-10", 784, 512, 256, 10 }, { "mlp 64-2048-2048-10", 64, 2048, 2048, 10 },
                 { "block 1024-4096-1024", 1024, 4096, 1024 }, { "head 1024-16384", 1024, 16384 },
                 { "conv 8: 1-64-64/128", image = 8, 1, 64, 64, "/", 128 },
                 { "conv 32: 3-32-32/64-64/128-128", image = 32, 3, 32, 32, "/", 64, 64, "/", 128, 128 },
                 { "conv 56: 64-64-64", image = 56, 64, 64, 64 } }
local KINDS = { { "float32" }, { "int8 weights", { dtype = "int8" } }, { "int4 weights", { dtype = "int4" } },
                { "dynamic", { dtype = "int8", mode = "dynamic" } }, { "static", { dtype = "int8" } } }
local SECONDS = 0.3

pg.manual_seed(1)
local function build(sizes)
  local layers = {}
  if sizes.image then
    local channels = sizes[2]
    for i = 3, #sizes do
      if sizes[i] == "/" then
        layers[#layers + 1] = nn.MaxPool2d { 2 }
      else
        layers[#layers + 1] = nn.Conv2d { channels, sizes[i], 3, padding = 1, activation = "relu" }
        channels = sizes[i]
      end
    end
    return nn.Sequential(layers):eval()
  end
  for i = 2, #sizes - 1 do
    layers[#layers + 1] = nn.Linear { sizes[i], sizes[i + 1], activation = i < #sizes - 1 and "relu" or "none" }
  end
  return nn.Sequential(layers):eval()
end

local function median(list)
  local sorted = { unpack(list) }
  table.sort(sorted)
  return sorted[math.ceil(#sorted / 2)] or 0 / 0
end

local function measure(model, x)
  local best, begin = math.huge, os.clock()
  pg.no_grad(function()
    for _ = 1, 3 do model(x) end
    while os.clock() - begin < SECONDS do
      local start = os.clock()
      for _ = 1, 4 do model(x) end
      best = math.min(best, (os.clock() - start) / 4)
    end
  end)
  return best * 1e6
end

local function theirs(name)
  local pipe = assert(io.popen(("%s %s/quantised_torch.py %q"):format(python, folder, name)))
  local times = {}
  for line in pipe:lines() do
    local kind, us = line:match("^(.*)\t([%d.]+)$")
    if kind then times[kind] = tonumber(us) end
  end
  pipe:close()
  return times
end

local OTHERS = { "torch float32", "torch dynamic", "torch static", "onnxruntime float32", "onnxruntime dynamic",
                 "onnxruntime static" }
for _, sizes in ipairs(MODELS) do
  if sizes[1]:find(pattern, 1, true) then
    local function inputs(n)
      return sizes.image and pg.randn { n, sizes[2], sizes.image, sizes.image } or pg.randn { n, sizes[2] }
    end
    local model, x, times, ratios = build(sizes), inputs(1), {}, {}
    local models = {}
    for i, kind in ipairs(KINDS) do
      local o = kind[2]
      if kind[1] == "static" then o = { dtype = "int8", data = inputs(16) } end
      models[i] = o and pg.quant.ptq(model, o) or model
      times[kind[1]], ratios[kind[1]] = {}, {}
    end
    for _, name in ipairs(OTHERS) do times[name], ratios[name] = {}, {} end
    for _ = 1, rounds do
      local now = theirs(sizes[1])
      for i, kind in ipairs(KINDS) do now[kind[1]] = measure(models[i], x) end
      for name, us in pairs(now) do
        table.insert(times[name], us)
        table.insert(ratios[name], now.float32 / us)
      end
      for _, name in ipairs(OTHERS) do
        local own = name:find "static" and now.static or now.dynamic
        if now[name] then ratios[name][#ratios[name]] = own / now[name] end
      end
    end
    print(sizes[1])
    for _, kind in ipairs(KINDS) do
      print(("  %-20s %9.1f us  %5.2f times as fast as float32"):format(kind[1], median(times[kind[1]]),
            median(ratios[kind[1]])))
    end
    for _, name in ipairs(OTHERS) do
      if #times[name] > 0 then
        print(("  %-20s %9.1f us  ratio of %s %5.2f"):format(name, median(times[name]),
              name:find "static" and "static" or "dynamic", median(ratios[name])))
      end
    end
  end
end
