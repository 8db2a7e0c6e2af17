-- SPDX-License-Identifier: Apache-2.0
-- One sample through quantised models, against float32's of Perigee, PyTorch's dynamic int8 and onnxruntime's:
-- perigee tests/bench/quantised.lua [PYTHON [ROUNDS [PATTERN]]]. All take turns, with one thread each; a row is a model
-- whose name has PATTERN in it: microseconds of processor time a call, medians of the rounds, and medians of the
-- rounds' ratios, of which those to others say how many times their time Perigee's dynamic int8 takes (below 1: less).

local pg = require "perigee"
local nn = pg.nn
pg.config.set { threads = 1 }
local python, rounds, pattern = arg[1] or "/usr/bin/python3", tonumber(arg[2] or 5), arg[3] or ""
local folder = arg[0]:match("^(.*)/[^/]*$") or "."

-- Sizes from the input on; ReLU between. quantised_torch.py has the same.
local MODELS = { { "mlp 784-512-256-10", 784, 512, 256, 10 }, { "mlp 64-2048-2048-10", 64, 2048, 2048, 10 },
                 { "block 1024-4096-1024", 1024, 4096, 1024 }, { "head 1024-16384", 1024, 16384 } }
local KINDS = { { "float32" }, { "int8 weights", { dtype = "int8" } }, { "int4 weights", { dtype = "int4" } },
                { "dynamic", { dtype = "int8", mode = "dynamic" } }, { "static", { dtype = "int8" } } }
local SECONDS = 0.3

pg.manual_seed(1)
local function build(sizes)
  local layers = {}
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

local OTHERS = { "torch float32", "torch dynamic", "onnxruntime float32", "onnxruntime dynamic" }
for _, sizes in ipairs(MODELS) do
  if sizes[1]:find(pattern, 1, true) then
    local model, x, times, ratios = build(sizes), pg.randn { 1, sizes[2] }, {}, {}
    local models = {}
    for i, kind in ipairs(KINDS) do
      local o = kind[2]
      if kind[1] == "static" then o = { dtype = "int8", data = pg.randn { 64, sizes[2] } } end
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
        if now[name] then ratios[name][#ratios[name]] = now.dynamic / now[name] end
      end
    end
    print(sizes[1])
    for _, kind in ipairs(KINDS) do
      print(("  %-20s %9.1f us  %5.2f times as fast as float32"):format(kind[1], median(times[kind[1]]),
            median(ratios[kind[1]])))
    end
    for _, name in ipairs(OTHERS) do
      if #times[name] > 0 then
        print(("  %-20s %9.1f us  ratio of dynamic %5.2f"):format(name, median(times[name]), median(ratios[name])))
      end
    end
  end
end
