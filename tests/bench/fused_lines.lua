-- SPDX-License-Identifier: Apache-2.0
-- Reductions, softmax and norms with what is elementwise around them, as one kernel:
-- perigee tests/bench/fused_lines.lua [ROUNDS [PYTHON [PATTERN]]]. In each round a row runs compiled, compiled with
-- fuse=false, and eagerly, by turns; with
-- PYTHON (that has PyTorch) also eagerly and by torch.compile in its process. One thread; medians of milliseconds of
-- processor time, the medians of the rounds' ratios, and of the first ratio the least and the most.

local pg = require "perigee"

local rounds, python, pattern = tonumber(arg[1]) or 5, arg[2], arg[3] or ""
local folder = arg[0]:match "^(.*)/[^/]*$" or "."
pg.config.set { threads = 1 }

local ROWS = {
  { "sum of products", function(x, y) return (x * y):sum() end },
  { "mean of squares", function(x, y) return (x - y):square():mean() end },
  { "line sums of exp(x - max)", function(x) return (x - x:amax { axis = -1, keepdim = true }):exp():sum(-1) end },
  { "scale, mask, softmax, weigh", function(x, y) return (x * 0.125 + y):softmax(-1) * y end },
  { "add, layer_norm, relu", function(x, y, w) return pg.layer_norm(x + y, { w:numel() }, w, w):relu() end },
  { "add, rms_norm, mul", function(x, y, w) return pg.rms_norm(x + y, { w:numel() }, w) * y end },
  { "mean of squares over rows", function(x, y) return (x - y):square():mean(1) end },
  { "relu of products, sum over rows", function(x, y) return (x * y):relu():sum(1) end },
  { "log_softmax, weigh, line sums", function(x, y) return (x:log_softmax(-1) * y):sum(-1):neg() end },
}
local SHAPES = { { 4096, 1024 }, { 65536, 64 } }

local function median(list)
  table.sort(list)
  return list[math.floor(#list / 2) + 1] or 0 / 0
end
local function measure(fn)
  local best = math.huge
  for _ = 1, 5 do
    local begin = os.clock()
    local result = fn()
    best = math.min(best, (os.clock() - begin) * 1e3)
    result:free()
  end
  return best
end
local function torch_times()
  local found = {}
  if not python then return found end
  local pipe = assert(io.popen(("%s %s/fused_lines_torch.py '%s' 2>/dev/null"):format(python, folder, pattern)))
  for line in pipe:lines() do
    local name, eager, compiled = line:match "^(.-)\t(%S+)\t(%S+)$"
    if name then found[name] = { tonumber(eager), tonumber(compiled) } end
  end
  pipe:close()
  return found
end

local items = {}
for _, dtype in ipairs { "float32", "bfloat16" } do
  for _, shape in ipairs(SHAPES) do
    local x, y = pg.randn(shape):to(dtype), pg.randn(shape):to(dtype)
    local w = pg.randn({ shape[2] }):to(dtype)
    for _, row in ipairs(ROWS) do
      local name = ("%s, %dx%d, %s"):format(row[1], shape[1], shape[2], dtype)
      if name:find(pattern, 1, true) then
        local function eager() return row[2](x, y, w) end
        local fused, apart = pg.compile(eager), pg.compile(eager, { fuse = false })
        for _ = 1, 3 do fused():free() apart():free() end
        items[#items + 1] = { name = name, { fused }, { apart }, { eager }, {}, {}, step = fused }
      end
    end
  end
end
for i = 1, rounds do
  local torch = torch_times()
  for _, item in ipairs(items) do
    for k = 1, 3 do item[k][i + 1] = measure(item[k][1]) end
    local theirs = torch[item.name]
    if theirs then item[4][#item[4] + 1], item[5][#item[5] + 1] = theirs[1], theirs[2] end
  end
end

print(("%-52s %8s %8s %8s %8s %8s   %-17s %7s %7s %s"):format("", "fused", "apart", "eager", "torch", "compile",
                                                             "fused/eager", "/torch", "/compile", "kernels"))
for _, item in ipairs(items) do
  local ratios, torch, compiled = {}, {}, {}
  for i = 1, rounds do
    local mine = item[1][i + 1]
    ratios[i] = mine / item[3][i + 1]
    torch[i], compiled[i] = item[4][i] and mine / item[4][i], item[5][i] and mine / item[5][i]
  end
  local times = {}
  for k = 1, 3 do times[k] = median { unpack(item[k], 2) } end
  local s, ratio = item.step:stats(), median(ratios)
  print(("%-52s %8.3f %8.3f %8.3f %8.3f %8.3f   %.2f (%.2f-%.2f)  %7.2f %7.2f %d of %d"):format(
    item.name, times[1], times[2], times[3], median { unpack(item[4]) }, median { unpack(item[5]) }, ratio, ratios[1],
    ratios[#ratios], median(torch), median(compiled), s.kernels, s.launches))
end
