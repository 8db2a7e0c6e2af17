-- SPDX-License-Identifier: Apache-2.0
-- Inference with few samples: eager, compiled and frozen calls by turns in one process with one thread, and with PYTHON
-- (that has PyTorch) its eager calls (inference_mode) and torch.compile's. A row has the least microseconds of each,
-- and the median of the rounds' ratios of frozen calls' times to the quicker of PyTorch's two, with least and most.
--
--   perigee tests/bench/frozen.lua [ROUNDS [PYTHON]]

local pg = require "perigee"
local native = require "perigee.native"
local nn = pg.nn

local rounds = tonumber(arg[1]) or 7
pg.config.set { threads = 1 }

local ROWS = {
  { "MLP 4-8-2, 2 samples", { 2, 4 }, nn.Sequential { nn.Linear { 4, 8 }, nn.ReLU {}, nn.Linear { 8, 2 } } },
  { "MLP 256-256-10, 1 sample", { 1, 256 },
    nn.Sequential { nn.Linear { 256, 256 }, nn.ReLU {}, nn.Linear { 256, 256 }, nn.ReLU {}, nn.Linear { 256, 10 } } },
  { "linear, GELU, norm, linear, 64", { 1, 64 },
    nn.Sequential { nn.Linear { 64, 64 }, nn.GELU {}, nn.LayerNorm { 64 }, nn.Linear { 64, 64 } } },
  { "transformer layer, 16 x 64", { 1, 16, 64 },
    nn.TransformerEncoderLayer { 64, 4, feedforward = 256, dropout = 0 } },
  { "convolutions, 1 x 16 x 16", { 1, 1, 16, 16 },
    nn.Sequential { nn.Conv2d { 1, 8, 3, padding = 1 }, nn.ReLU {}, nn.MaxPool2d { 2 },
                    nn.Conv2d { 8, 16, 3, padding = 1 }, nn.ReLU {}, nn.MaxPool2d { 2 }, nn.Flatten {},
                    nn.Linear { 256, 10 } } },
}

local function time(fn, x)
  local count = 200
  local begin = native.clock()
  for _ = 1, count do fn(x):free() end
  return (native.clock() - begin) / count * 1e6
end

local function torch_times(python)
  local found = {}
  if not python then return found end
  local folder = arg[0]:match "^(.*)/[^/]*$" or "."
  local pipe = assert(io.popen(python .. " " .. folder .. "/frozen_torch.py"))
  for line in pipe:lines() do
    local row, eager, compiled = line:match "^(%d+)\t(%S+)\t(%S+)$"
    if row then found[tonumber(row)] = { tonumber(eager), tonumber(compiled) } end
  end
  pipe:close()
  return found
end

local KINDS = { "eager", "compiled", "frozen" }
local least, ratios = {}, {}
local calls = {}
for i, row in ipairs(ROWS) do
  local model, x = row[3]:eval(), pg.randn(row[2])
  least[i], ratios[i] = { math.huge, math.huge, math.huge, math.huge, math.huge }, {}
  calls[i] = { x = x, function(v) return pg.no_grad(function() return model(v) end) end,
               pg.compile(function(v) return pg.no_grad(function() return model(v) end) end),
               pg.compile(function(v) return model(v) end, { frozen = true }) }
  for k = 1, #KINDS do for _ = 1, 5 do calls[i][k](x) end end
end
for _ = 1, rounds do
  local theirs = torch_times(arg[2])
  for i, call in ipairs(calls) do
    local now = {}
    for k = 1, #KINDS do now[k] = time(call[k], call.x) end
    if theirs[i] then
      now[4], now[5] = theirs[i][1], theirs[i][2]
      table.insert(ratios[i], now[3] / math.min(now[4], now[5]))
    end
    for k, us in pairs(now) do least[i][k] = math.min(least[i][k], us) end
  end
end
local form = "%-32s %9s %9s %9s %12s %12s %7s"
print(form:format("us a call", "eager", "compiled", "frozen", "torch eager", "torch.compile", "ratio"))
for i, row in ipairs(ROWS) do
  local l, r = least[i], ratios[i]
  table.sort(r)
  local text = #r > 0 and ("%7.2f (%.2f to %.2f)"):format(r[math.ceil(#r / 2)], r[1], r[#r]) or ""
  print(("%-32s %9.1f %9.1f %9.1f %12.1f %12.1f %s"):format(row[1], l[1], l[2], l[3], l[4], l[5], text))
end
