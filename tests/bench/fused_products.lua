-- SPDX-License-Identifier: Apache-2.0
-- Linear layers with what is behind them, as one kernel and as they are apart:
-- perigee tests/bench/fused_products.lua [ROUNDS [PYTHON [PATTERN]]]. In each round a row runs compiled, compiled with
-- fuse=false, and eagerly, by turns; with PYTHON (that has PyTorch) also eagerly and by torch.compile in its process.
-- One thread; medians of milliseconds of processor time, and of the rounds' ratios with least and most. The last rows
-- are bench models' layers, whose products are too deep to be joined: there fused is what apart is.

local pg = require "perigee"

local rounds, python, pattern = tonumber(arg[1]) or 5, arg[2], arg[3] or ""
local folder = arg[0]:match "^(.*)/[^/]*$" or "."
package.path = folder .. "/?.lua;" .. package.path
local turns = require "fused_turns"
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

local items = {}
for _, shape in ipairs(SHAPES) do
  local m, k, n = unpack(shape)
  local x, w, b, r = pg.randn { m, k }, pg.randn { n, k }, pg.randn { n }, pg.randn { m, n }
  for _, row in ipairs(ROWS) do
    local name = ("%s, %dx%dx%d"):format(row[1], m, k, n)
    if name:find(pattern, 1, true) then
      local function eager() return pg.no_grad(function() return row[2](x, w, b, r) end) end
      items[#items + 1] = turns.item(name, eager)
    end
  end
end
turns.measure(items, rounds, 7,
              python and ("%s %s/fused_products_torch.py '%s'"):format(python, folder, pattern))

print(("%-44s %8s %8s %8s %8s %8s   %-17s %-17s %7s %7s %s"):format("", "fused", "apart", "eager", "torch", "compile",
                                                                   "fused/apart", "fused/eager", "/torch", "/compile",
                                                                   "kernels"))
local function ratio(list) return ("%.2f (%.2f-%.2f)"):format(turns.median(list), list[1], list[#list]) end
for _, item in ipairs(items) do
  local times, ratios = turns.results(item, rounds)
  local s = item.step:stats()
  print(("%-44s %8.3f %8.3f %8.3f %8.3f %8.3f   %-17s %-17s %7.2f %7.2f %d of %d"):format(
    item.name, times[1], times[2], times[3], times[4], times[5], ratio(ratios[1]), ratio(ratios[2]),
    turns.median(ratios[3]), turns.median(ratios[4]), s.kernels, s.launches))
end
