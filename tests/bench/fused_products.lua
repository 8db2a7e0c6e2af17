-- SPDX-License-Identifier: Apache-2.0
-- Linear layers with what is behind them, as one kernel and as they are apart:
-- perigee tests/bench/fused_products.lua [ROUNDS [PYTHON [PATTERN]]]. In each round a row runs compiled, compiled with
-- fuse=false, and eagerly, by turns; with PYTHON (that has PyTorch) also eagerly and by torch.compile in its process.
-- One thread; medians of milliseconds of processor time, and of the rounds' ratios with least and most. The last rows
-- are bench models' layers, whose products are too deep to be joined: there fused is what apart is.

local pg = require "perigee"

local rounds, python, pattern = tonumber(arg[1]) or 5, arg[2], arg[3] or ""
local folder = arg[0]:match "^(.*)/[^/]*$" or "."
pg.config.set { threads = 1 }

local linear = pg.linear
local ROWS = {
  { "linear, relu", function(x, w, b) return linear(x, w, b):relu() end },
  { "linear, sum", function(x, w, b, r) return linear(x, w, b) + r end },
  { "linear, gelu", function(x, w, b) return linear(x, w, b):gelu() end },
  { "linear, scale, silu, gate", function(x, w, b, r) return (linear(x, w, b) * 0.5):silu() * r end },
  { "linear, sum, softmax", function(x, w, b, r) return (linear(x, w, b) + r):softmax(-1) end },
}
-- Rows, depth, columns. The last three: an MLP's layers at batch 64 and 512, GPT's feed-forward.
local SHAPES = { { 65536, 32, 64 }, { 16384, 64, 64 }, { 4096, 64, 256 }, { 4096, 128, 512 }, { 4096, 256, 256 },
                 { 64, 784, 512 }, { 512, 512, 512 }, { 2048, 384, 1536 } }

local function median(list)
  table.sort(list)
  return list[math.floor(#list / 2) + 1] or 0 / 0
end
local function measure(fn)
  local best = math.huge
  for _ = 1, 7 do
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
  local pipe = assert(io.popen(("%s %s/fused_products_torch.py '%s' 2>/dev/null"):format(python, folder, pattern)))
  for line in pipe:lines() do
    local name, eager, compiled = line:match "^(.-)\t(%S+)\t(%S+)$"
    if name then found[name] = { tonumber(eager), tonumber(compiled) } end
  end
  pipe:close()
  return found
end

local items = {}
for _, shape in ipairs(SHAPES) do
  local m, k, n = unpack(shape)
  local x, w, b, r = pg.randn { m, k }, pg.randn { n, k }, pg.randn { n }, pg.randn { m, n }
  for _, row in ipairs(ROWS) do
    local name = ("%s, %dx%dx%d"):format(row[1], m, k, n)
    if name:find(pattern, 1, true) then
      local function eager() return pg.no_grad(function() return row[2](x, w, b, r) end) end
      local fused, apart = pg.compile(eager), pg.compile(eager, { fuse = false })
      for _ = 1, 3 do fused():free() apart():free() end
      items[#items + 1] = { name = name, { fused }, { apart }, { eager }, {}, {}, step = fused }
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

print(("%-44s %8s %8s %8s %8s %8s   %-17s %-17s %7s %7s %s"):format("", "fused", "apart", "eager", "torch", "compile",
                                                                   "fused/apart", "fused/eager", "/torch", "/compile",
                                                                   "kernels"))
for _, item in ipairs(items) do
  local apart, eager, torch, compiled = {}, {}, {}, {}
  for i = 1, rounds do
    local mine = item[1][i + 1]
    apart[i], eager[i] = mine / item[2][i + 1], mine / item[3][i + 1]
    torch[i], compiled[i] = item[4][i] and mine / item[4][i], item[5][i] and mine / item[5][i]
  end
  local times = {}
  for k = 1, 3 do times[k] = median { unpack(item[k], 2) } end
  local s = item.step:stats()
  local function ratio(list) return ("%.2f (%.2f-%.2f)"):format(median(list), list[1], list[#list]) end
  print(("%-44s %8.3f %8.3f %8.3f %8.3f %8.3f   %-17s %-17s %7.2f %7.2f %d of %d"):format(
    item.name, times[1], times[2], times[3], median { unpack(item[4]) }, median { unpack(item[5]) }, ratio(apart),
    ratio(eager), median(torch), median(compiled), s.kernels, s.launches))
end
