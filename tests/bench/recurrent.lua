-- SPDX-License-Identifier: Apache-2.0
-- LSTM, GRU and RNN of two layers of 256 over 100 steps against PyTorch: perigee tests/bench/recurrent.lua [PYTHON
-- [ROUNDS [PATTERN]]]. The two take turns, with one thread each; a row is an item whose name has PATTERN in it, the
-- median processor time of each side in ms for a training step or a call, and the median of the rounds' ratios (below
-- 1: less). In bfloat16 both sides run under autocast.

local pg = require "perigee"
local nn, optim = pg.nn, pg.optim
pg.config.set { threads = 1 }
local python, rounds, pattern = arg[1] or "/usr/bin/python3", tonumber(arg[2] or 3), arg[3] or ""
local folder = arg[0]:match("^(.*)/[^/]*$") or "."
local STEPS, WIDTH = 100, 256

local function median(list)
  table.sort(list)
  return list[math.ceil(#list / 2)]
end

-- Milliseconds a call, the best of some behind the first.
local function measure(fn)
  fn()
  local best, begin = math.huge, os.clock()
  while os.clock() - begin < 1 do
    local start = os.clock()
    fn()
    best = math.min(best, os.clock() - start)
  end
  return best * 1e3
end

pg.manual_seed(1)
local items = {}

local function add(kind, batch)
  local layer = nn[kind] { WIDTH, WIDTH, num_layers = 2 }
  local x, target = pg.randn { batch, STEPS, WIDTH }, pg.randn { batch, STEPS, WIDTH }
  local optimizer = optim.SGD { layer:parameters(), lr = 1e-3 }
  local function step()
    optimizer:zero_grad()
    nn.mse_loss(layer(x), target):backward()
    optimizer:step()
  end
  local function call()
    return pg.no_grad(function() return (layer(x)) end)
  end
  for _, what in ipairs { { "step", step }, { "call", call } } do
    for _, dtype in ipairs { "float32", "bfloat16" } do
      local name, run = ("%s 2x256, %s, batch %d, %s"):format(kind, what[1], batch, dtype), what[2]
      if dtype == "bfloat16" then
        run = function() return pg.amp.autocast({ device = "cpu", dtype = dtype }, what[2]) end
      end
      if name:find(pattern, 1, true) then items[#items + 1] = { name, run } end
    end
  end
end
for _, kind in ipairs { "LSTM", "GRU", "RNN" } do
  for _, batch in ipairs { 32, 1 } do add(kind, batch) end
end

local function theirs()
  local pipe = assert(io.popen(("%s %s/recurrent_torch.py '%s' 2>/dev/null"):format(python, folder, pattern)))
  local times = {}
  for line in pipe:lines() do
    local name, ms = line:match("^(.*)\t([%d.]+)$")
    if name then times[name] = tonumber(ms) end
  end
  pipe:close()
  return times
end

local ours_all, theirs_all, ratios = {}, {}, {}
for k in ipairs(items) do ours_all[k], theirs_all[k], ratios[k] = {}, {}, {} end
for _ = 1, rounds do
  local other = theirs()
  for k, item in ipairs(items) do
    local mine, their = measure(item[2]), other[item[1]]
    table.insert(ours_all[k], mine)
    if their then
      table.insert(theirs_all[k], their)
      table.insert(ratios[k], mine / their)
    end
  end
end
print(("%-36s %10s %10s %7s"):format("", "Perigee", "PyTorch", "ratio"))
for k, item in ipairs(items) do
  local their, ratio = median(theirs_all[k]), median(ratios[k])
  print(("%-36s %10.3f %10s %7s"):format(item[1], median(ours_all[k]), their and ("%.3f"):format(their) or "-",
                                         ratio and ("%.2f"):format(ratio) or "-"))
end
