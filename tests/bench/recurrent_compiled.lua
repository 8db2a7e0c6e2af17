-- SPDX-License-Identifier: Apache-2.0
-- Training steps of small recurrent nets (embedding, two recurrent layers, a linear one, Adam), compiled against eager:
-- the two take turns on one thread. A row is a net, the median milliseconds of each, and the median of the rounds'
-- ratios, with least and most (below 1: compiled takes less).
--
--   perigee tests/bench/recurrent_compiled.lua [ROUNDS [PATTERN]]

local pg = require "perigee"
local native = require "perigee.native"
local nn, optim = pg.nn, pg.optim

local rounds, pattern = tonumber(arg[1]) or 9, arg[2] or ""
pg.config.set { threads = 1 }
local TOKENS = 64
local ROWS = { -- kind, samples, steps, width
  { "RNN", 8, 30, 32 }, { "GRU", 8, 30, 32 }, { "LSTM", 8, 30, 32 }, { "GRU", 32, 50, 128 }, { "LSTM", 32, 50, 256 },
}

local function make(row, compile)
  local kind, samples, steps, width = unpack(row)
  local embedding, head = nn.Embedding { TOKENS, width }, nn.Linear { width, TOKENS }
  local layer, parameters = nn[kind] { width, width, num_layers = 2 }, {}
  for _, m in ipairs { embedding, layer, head } do
    for _, p in ipairs(m:parameters()) do parameters[#parameters + 1] = p end
  end
  local optimizer = optim.Adam { parameters, lr = 1e-3 }
  local x, y = pg.randint(0, TOKENS, { samples, steps }), pg.randint(0, TOKENS, { samples * steps })
  local function step()
    optimizer:zero_grad()
    local loss = pg.cross_entropy(head((layer(embedding(x)))):reshape(-1, TOKENS), y)
    loss:backward()
    optimizer:step()
    return loss
  end
  return compile and pg.compile(step) or step
end

local function time(step)
  for _ = 1, 3 do step() end
  local begin, count = native.clock(), 0
  repeat
    step()
    count = count + 1
  until native.clock() - begin > 0.25
  return (native.clock() - begin) / count * 1e3
end

local function median(list)
  table.sort(list)
  return list[math.ceil(#list / 2)]
end

print(("%-24s %12s %12s  ratio"):format("ms a step", "eager", "compiled"))
for _, row in ipairs(ROWS) do
  local name = ("%s %dx%dx%d"):format(unpack(row))
  if name:find(pattern) then
    local eager, compiled = make(row, false), make(row, true)
    local a, b, ratios = {}, {}, {}
    for r = 1, rounds do
      a[r], b[r] = time(eager), time(compiled)
      ratios[r] = b[r] / a[r]
    end
    print(("%-24s %12.3f %12.3f  %.2f (%.2f to %.2f)"):format(name, median(a), median(b), median(ratios), ratios[1],
                                                              ratios[#ratios]))
  end
end
