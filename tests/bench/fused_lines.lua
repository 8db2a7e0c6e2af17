-- SPDX-License-Identifier: Apache-2.0
-- Reductions, softmax and norms with what is elementwise around them, as one kernel:
-- perigee tests/bench/fused_lines.lua [ROUNDS [PYTHON [PATTERN]]]. In each round a row runs compiled, compiled with
-- fuse=false, and eagerly, by turns; with
-- PYTHON (that has PyTorch) also eagerly and by torch.compile in its process. One thread; medians of milliseconds of
-- processor time, the medians of the rounds' ratios, and of the first ratio the least and the most.

local pg = require "perigee"

local rounds, python, pattern = tonumber(arg[1]) or 5, arg[2], arg[3] or ""
local folder = arg[0]:match "^(.*)/[^/]*$" or "."
package.path = folder .. "/?.lua;" .. package.path
local turns = require "fused_turns"
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

local items = {}
for _, dtype in ipairs { "float32", "bfloat16" } do
  for _, shape in ipairs(SHAPES) do
    local x, y = pg.randn(shape):to(dtype), pg.randn(shape):to(dtype)
    local w = pg.randn({ shape[2] }):to(dtype)
    for _, row in ipairs(ROWS) do
      local name = ("%s, %dx%d, %s"):format(row[1], shape[1], shape[2], dtype)
      if name:find(pattern, 1, true) then
        local function eager() return row[2](x, y, w) end
        items[#items + 1] = turns.item(name, eager)
      end
    end
  end
end
turns.measure(items, rounds, 5,
              python and ("%s %s/fused_lines_torch.py '%s'"):format(python, folder, pattern))

print(("%-52s %8s %8s %8s %8s %8s   %-17s %7s %7s %s"):format("", "fused", "apart", "eager", "torch", "compile",
                                                             "fused/eager", "/torch", "/compile", "kernels"))
for _, item in ipairs(items) do
  local times, ratios = turns.results(item, rounds)
  local s, eager = item.step:stats(), ratios[2]
  print(("%-52s %8.3f %8.3f %8.3f %8.3f %8.3f   %.2f (%.2f-%.2f)  %7.2f %7.2f %d of %d"):format(
    item.name, times[1], times[2], times[3], times[4], times[5], turns.median(eager), eager[1], eager[#eager],
    turns.median(ratios[3]), turns.median(ratios[4]), s.kernels, s.launches))
end
