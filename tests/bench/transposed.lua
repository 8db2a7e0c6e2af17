-- SPDX-License-Identifier: Apache-2.0
-- Elementwise work and sums on transposed and channels-last operands against the same on row-major ones and against
-- PyTorch: perigee tests/bench/transposed.lua [PYTHON [ROUNDS]]. By turns, one thread each; first PyTorch's rows as
-- order.lua prints them, then Perigee's time on operands that lie otherwise over that on row-major ones (median of the
-- rounds, least, most).

local pg = require "perigee"
pg.config.set { threads = 1 }
local python, rounds = arg[1] or "/usr/bin/python3", tonumber(arg[2] or 3)
local folder = arg[0]:match("^(.*)/[^/]*$") or "."

package.path = folder .. "/?.lua;" .. package.path

pg.manual_seed(1)
local N, M = 2000, 1500
local function pairs_of(dtype)
  local a, b = pg.rand { N, M }:to(dtype), pg.rand { N, M }:to(dtype)
  return { turned = { a:t(), b:t() }, plain = { a:t():contiguous(), b:t():contiguous() } }
end
local single, half, whole = pairs_of "float32", pairs_of "bfloat16", pairs_of "int32"
local image = pg.rand { 8, 64, 56, 56 }
local images = { turned = { image:contiguous { memory_format = "channels_last" } }, plain = { image } }
local bias = pg.rand { 64, 1, 1 }

local kinds = {
  { "x + y", single, function(x, y) return x + y end },
  { "x + y, bfloat16", half, function(x, y) return x + y end },
  { "x + y, int32", whole, function(x, y) return x + y end },
  { "relu", single, function(x) return x:relu() end },
  { "exp", single, function(x) return x:exp() end },
  { "x * 2 + 1", single, function(x) return x * 2 + 1 end },
  { "where", single, function(x, y) return pg.where(x:gt(y), x, y) end },
  { "lerp", single, function(x, y) return x:lerp(y, 0.5) end },
  { "cast to bfloat16", single, function(x) return x:to "bfloat16" end },
  { "add_", single, function(x, y) return x:add_(y) end },
  { "image + bias", images, function(x) return x + bias end },
  { "relu of an image", images, function(x) return x:relu() end },
  { "x.sum()", single, function(x) return x:sum() end },
  { "x.sum(1)", single, function(x) return x:sum(1) end },
  { "x.sum(2)", single, function(x) return x:sum(2) end },
  { "image.sum({1, 3, 4})", images, function(x) return x:sum { axis = { 1, 3, 4 } } end },
}

local items, shares = {}, {}
local function once(fn, x)
  local start = os.clock()
  local y = fn(unpack(x))
  local taken = os.clock() - start
  if not rawequal(y, x[1]) then y:free() end
  return taken
end
for _, kind in ipairs(kinds) do
  local name, data, fn = unpack(kind)
  items[#items + 1] = { name, function()
    local y = fn(unpack(data.turned))
    if not rawequal(y, data.turned[1]) then y:free() end
  end }
  local list = {}
  for _ = 1, rounds do
    local best = { turned = math.huge, plain = math.huge }
    for _ = 1, 12 do
      for _, side in ipairs { "turned", "plain" } do best[side] = math.min(best[side], once(fn, data[side])) end
    end
    list[#list + 1] = best.turned / best.plain
  end
  table.sort(list)
  shares[#shares + 1] = { name, list[math.ceil(#list / 2)], list[1], list[#list] }
end

require "turns"(items, { command = ("%s %s/transposed_torch.py"):format(python, folder), rounds = rounds,
                         seconds = 0.1 })
print(("\n%-24s over row-major"):format "")
for _, share in ipairs(shares) do print(("%-24s %6.2f  (%.2f to %.2f)"):format(unpack(share))) end
