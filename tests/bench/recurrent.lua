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
package.path = folder .. "/?.lua;" .. package.path

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

require "turns"(items, {
  command = ("%s %s/recurrent_torch.py '%s'"):format(python, folder, pattern), rounds = rounds, seconds = 1,
})
