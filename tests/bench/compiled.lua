-- SPDX-License-Identifier: Apache-2.0
-- A compiled step against the same step without. The two take turns in one process with one thread; a row has the
-- medians in microseconds a step, the median of the rounds' ratios with the least and the most, and the peaks of
-- memory. With PYTHON (that has PyTorch), its eager step and torch.compile's, but for recurrent nets. PATTERN chooses
-- rows.
--
--   perigee tests/bench/compiled.lua [ROUNDS [PYTHON [PATTERN]]]

local pg = require "perigee"
local nn, optim = pg.nn, pg.optim

local rounds, python, pattern = tonumber(arg[1]) or 7, arg[2], arg[3] or ""
if python == "" then python = nil end
pg.config.set { threads = 1 }

local function mlp(batch, width)
  local model = nn.Sequential { nn.Linear { width, width }, nn.ReLU {}, nn.Linear { width, width }, nn.ReLU {},
                                nn.Linear { width, 10 } }
  local opt = optim.Adam { model:parameters(), lr = 1e-3 }
  local x, y = pg.randn { batch, width }, pg.randint(0, 10, { batch })
  return function()
    opt:zero_grad()
    local loss = pg.cross_entropy(model(x), y)
    loss:backward()
    opt:step()
    return loss:detach()
  end
end

local function transformer(batch, length, width, depth)
  local blocks = {}
  for i = 1, depth do
    blocks[i] = nn.TransformerEncoderLayer { width, 4, feedforward = 4 * width, dropout = 0 }
  end
  local model = nn.Sequential { nn.Embedding { 64, width }, nn.Sequential(blocks), nn.Linear { width, 64 } }
  local opt = optim.AdamW { model:parameters(), lr = 1e-3 }
  local x, y = pg.randint(0, 64, { batch, length }), pg.randint(0, 64, { batch * length })
  return function()
    opt:zero_grad()
    local loss = pg.cross_entropy(model(x):reshape { batch * length, 64 }, y)
    loss:backward()
    opt:step()
    return loss:detach()
  end
end

local function recurrent(kind, batch, length, width)
  local layer = nn[kind] { width, width, num_layers = 2 }
  local model = nn.ModuleList { nn.Embedding { 64, width }, layer, nn.Linear { width, 64 } }
  local opt = optim.Adam { model:parameters(), lr = 1e-3 }
  local x, y = pg.randint(0, 64, { batch, length }), pg.randint(0, 64, { batch * length })
  return function()
    opt:zero_grad()
    local loss = pg.cross_entropy(model[3]((layer(model[1](x)))):reshape { batch * length, 64 }, y)
    loss:backward()
    opt:step()
    return loss:detach()
  end
end

local function call(batch, width)
  local model = nn.Sequential { nn.Linear { width, width }, nn.GELU {}, nn.LayerNorm { width },
                                nn.Linear { width, width } }
  local x = pg.randn { batch, width }
  return function() return pg.no_grad(function() return model(x) end) end
end

local ROWS = {
  { "tiny MLP step", function() return mlp(8, 16) end }, { "MLP step", function() return mlp(64, 256) end },
  { "transformer step", function() return transformer(4, 32, 64, 2) end },
  { "call of a block", function() return call(1, 64) end },
}
for _, sizes in ipairs { { "RNN", 8, 30, 32 }, { "GRU", 8, 30, 32 }, { "LSTM", 8, 30, 32 }, { "GRU", 32, 50, 128 },
                         { "LSTM", 32, 50, 256 } } do
  ROWS[#ROWS + 1] = { ("%s %dx%dx%d step"):format(unpack(sizes)), function() return recurrent(unpack(sizes)) end }
end

local function time(fn, count)
  local begin = os.clock()
  for _ = 1, count do fn():free() end
  return (os.clock() - begin) / count * 1e6
end

local function peak(fn)
  collectgarbage()
  pg.memory.reset_peak "cpu"
  local before = pg.memory.stats("cpu").live
  for _ = 1, 3 do fn():free() end
  return (pg.memory.stats("cpu").peak - before) / 1024
end

local function median(list)
  table.sort(list)
  return list[math.floor(#list / 2) + 1]
end

local function torch_times()
  if not python then return {} end
  local folder, found = arg[0]:match "^(.*)/[^/]*$" or ".", {}
  local pipe = assert(io.popen(python .. " " .. folder .. "/compiled_torch.py"))
  for line in pipe:lines() do
    local name, eager, compiled = line:match "^(.-)\t(%S+)\t(%S+)$"
    if name then found[name] = ("; PyTorch %s us, torch.compile %s us"):format(eager, compiled) end
  end
  pipe:close()
  return found
end

local torch = torch_times()
local function show(row)
  local function scoped(fn) return function() return pg.scope(fn) end end
  local eager, step = scoped(row[2]()), pg.compile(row[2]())
  for _ = 1, 20 do eager():free() step():free() end
  local count = math.max(3, math.floor(0.1e6 / time(eager, 10)))
  local a, b, ratios = {}, {}, {}
  for r = 1, rounds do
    a[r], b[r] = time(eager, count), time(step, count)
    ratios[r] = b[r] / a[r]
  end
  local s = step:stats()
  local middle = median(ratios)
  local without, with = peak(eager), peak(step)
  local text = "%-18s eager %.1f us, compiled %.1f us, ratio %.2f (%.2f to %.2f); peak %.0f and %.0f KB (%.2f); " ..
               "%d kernels, %d of %d hits%s"
  print(text:format(row[1], median(a), median(b), middle, ratios[1], ratios[#ratios], without, with,
                    with / without, s.kernels, s.hits, s.calls, torch[row[1]] or ""))
end
for _, row in ipairs(ROWS) do if row[1]:find(pattern) then show(row) end end
