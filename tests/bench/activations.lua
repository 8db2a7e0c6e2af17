-- SPDX-License-Identifier: Apache-2.0
-- Activations, the way back through them, and norms: perigee tests/bench/activations.lua [PYTHON [ROUNDS]]. Perigee and
-- PyTorch take turns; a row is an item, the median time of each side in ms and the median of the rounds' ratios (below
-- 1: faster). The last column is the time of the slope in one pass over that of the same slope as single operators.

local pg = require "perigee"
local clock = require("perigee.native").clock
local python, rounds = arg[1] or "/usr/bin/python3", tonumber(arg[2] or 3)
local folder = arg[0]:match("^(.*)/[^/]*$") or "."

local function median(list)
  table.sort(list)
  return list[math.ceil(#list / 2)]
end

-- Milliseconds a call, the best of some.
local function measure(fn)
  local best, begin = math.huge, clock()
  while clock() - begin < 0.3 do
    local start = clock()
    local y = fn()
    best = math.min(best, clock() - start)
    y:free()
  end
  return best * 1e3
end

pg.manual_seed(1)
local x, d = pg.randn { 1024, 2048 }, pg.randn { 1024, 2048 }
local y = { tanh = x:tanh(), sigmoid = x:sigmoid(), relu = x:relu() }

-- The slopes as single operators.
local apart = {
  relu = function() return pg.where(y.relu:gt(0), d, 0) end,
  tanh = function() return d * (1 - y.tanh:square()) end,
  sigmoid = function() return d * (y.sigmoid * (1 - y.sigmoid)) end,
  silu = function()
    local s = x:sigmoid()
    return d * (s * (x * (1 - s) + 1))
  end,
  gelu = function()
    local area = (pg.erf(x * math.sqrt(0.5)) + 1) * 0.5
    return d * (area + x * (pg.exp(x:square() * -0.5) * (1 / math.sqrt(2 * math.pi))))
  end,
  mish = function()
    local t = x:softplus():tanh()
    return d * (t + x * x:sigmoid() * (1 - t:square()))
  end,
}

local items = {}
for _, name in ipairs { "relu", "tanh", "sigmoid", "silu", "gelu", "mish", "hardswish", "selu", "softplus" } do
  items[#items + 1] = { name, function() return pg[name](x) end }
  local leaf = x:detach():clone():requires_grad_()
  local out = pg[name](leaf)
  items[#items + 1] = { name .. " back", function()
    local g = pg.grad(out, leaf, { grad_outputs = { d }, retain_graph = true })
    return pg.is_tensor(g) and g or g[1]
  end, apart[name] }
end
items[#items + 1] = { "norm", function() return x:norm() end }
items[#items + 1] = { "norm 1", function() return x:norm(1) end }
items[#items + 1] = { "addcmul", function() return pg.addcmul(x, x, d) end }
items[#items + 1] = { "lerp", function() return pg.lerp(x, d, 0.25) end }

local function theirs()
  local pipe = assert(io.popen(("OMP_PROC_BIND=true %s %s/activations_torch.py 2>/dev/null"):format(python, folder)))
  local times = {}
  for line in pipe:lines() do
    local name, ms = line:match("^(.*)\t([%d.]+)$")
    if name then times[name] = tonumber(ms) end
  end
  pipe:close()
  return times
end

local own, other, ratios, passes = {}, {}, {}, {}
for _ = 1, rounds do
  local times = theirs()
  for _, item in ipairs(items) do
    local name, ms = item[1], measure(item[2])
    for _, list in ipairs { own, other, ratios, passes } do list[name] = list[name] or {} end
    table.insert(own[name], ms)
    if item[3] then table.insert(passes[name], ms / measure(item[3])) end
    if times[name] then
      table.insert(other[name], times[name])
      table.insert(ratios[name], ms / times[name])
    end
  end
end
print(("%-16s %9s %9s %7s %9s"):format("2M float32", "Perigee", "PyTorch", "ratio", "one pass"))
local function show(format, list) return #list > 0 and format:format(median(list)) or "" end
for _, item in ipairs(items) do
  local name = item[1]
  print(("%-16s %9s %9s %7s %9s"):format(name, show("%.3f", own[name]), show("%.3f", other[name]),
                                         show("%.2f", ratios[name]), show("%.2f", passes[name])))
end
