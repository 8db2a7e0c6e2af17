-- SPDX-License-Identifier: Apache-2.0
-- Chains of elementwise operators as one kernel: perigee tests/bench/fused.lua [ROUNDS [PYTHON [THREADS]]]. A row is a
-- chain over 16M elements; in each round it is run compiled, compiled with fuse=false, and beside one copy of as many
-- elements that is streamed past the caches (clone); with PYTHON (that has PyTorch) also by torch.compile, in its own
-- process. One thread unless THREADS says otherwise; medians in milliseconds of processor time, and the median of the
-- rounds' ratios with the least and the most.

local pg = require "perigee"

local rounds = tonumber(arg[1]) or 7
local count = 16 * 1024 * 1024
pg.config.set { threads = tonumber(arg[3]) or 1 }

local function ten(x)
  local y = ((x * 1.5 + 0.25):relu() - 0.125) * 0.75
  return (y:abs():minimum(4):maximum(0.01) + 1):neg() * 0.5
end
local function two(x, y) return (x + y):relu(), (x - y):abs() * 0.5 end
local function costly(x) return (x * 0.5):tanh() * (x:sigmoid() + 1) end

local ROWS = {
  { "ten cheap operators, float32", ten, "float32", 1 }, { "ten cheap operators, bfloat16", ten, "bfloat16", 1 },
  { "two inputs, two results, float32", two, "float32", 2 }, { "tanh and sigmoid, float32", costly, "float32", 1 },
}

local function median(list)
  table.sort(list)
  return list[math.floor(#list / 2) + 1]
end

local function time(fn)
  local begin = os.clock()
  local results = { fn() }
  local taken = (os.clock() - begin) * 1e3
  for _, r in ipairs(results) do r:free() end
  return taken
end

local function torch_times(python)
  if not python then return {} end
  local folder, found = arg[0]:match "^(.*)/[^/]*$" or ".", {}
  local pipe = assert(io.popen(("%s %s/fused_torch.py %d %d"):format(python, folder, count, pg.config.get().threads)))
  for line in pipe:lines() do
    local name, ms = line:match "^(.-)\t(%S+)$"
    if name then found[name] = tonumber(ms) end
  end
  pipe:close()
  return found
end

local torch = torch_times(arg[2])
print(("%d threads, %d rounds"):format(pg.config.get().threads, rounds))
print(("%-34s %8s %8s %8s %8s   %-18s %s"):format("", "fused", "apart", "copy", "torch", "fused / copy",
                                                  "fused / torch"))
for _, row in ipairs(ROWS) do
  local name, fn, dtype, inputs = unpack(row)
  local x, y = pg.randn({ count }):to(dtype), inputs > 1 and pg.randn({ count }):to(dtype) or nil
  local fused = pg.compile(function() return fn(x, y) end)
  local apart = pg.compile(function() return fn(x, y) end, { fuse = false })
  for _ = 1, 3 do time(fused) time(apart) end
  local a, b, c, ratios = {}, {}, {}, {}
  for i = 1, rounds do
    a[i], b[i] = time(fused), time(apart)
    c[i] = time(function() return x:clone() end)
    ratios[i] = a[i] / c[i]
  end
  assert(fused:stats().kernels == 1, fused:explain())
  local ratio = median(ratios)
  local mine, theirs = median(a), torch[name]
  print(("%-34s %8.2f %8.2f %8.2f %8s   %.2f (%.2f-%.2f)   %s"):format(
    name, mine, median(b), median(c), theirs and ("%.2f"):format(theirs) or "-", ratio, ratios[1], ratios[#ratios],
    theirs and ("%.2f"):format(mine / theirs) or "-"))
end
