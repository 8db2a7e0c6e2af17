-- SPDX-License-Identifier: Apache-2.0
-- A little of everything that plugins bring: operators, kernels, gradients, layers, an optimizer, the simulated device,
-- a file written and read. Raises where anything is off.
local pg = require "perigee"
local nn, optim = pg.nn, pg.optim

local function network()
  return nn.Sequential{nn.Linear{4, 8}, nn.ReLU{}, nn.Linear{8, 2}}
end

local function train(device)
  pg.manual_seed(1)
  local model = network():to(device)
  local optimizer = optim.Adam{model:parameters(), lr = 0.05}
  local x, y = pg.randn{16, 4}:to(device), pg.randint(0, 2, {16}):to(device)
  local first, last
  for step = 1, 30 do
    local loss = nn.cross_entropy(model(x), y)
    optimizer:zero_grad()
    loss:backward()
    optimizer:step()
    last = loss:item()
    if step == 1 then first = last end
  end
  assert(last < 0.7 * first, ("%s: the loss went from %g to %g"):format(device, first, last))
  return last, model
end

local on_cpu, model = train("cpu")
local on_sim = train("sim:0")
assert(math.abs(on_cpu - on_sim) < 1e-3, ("cpu %g, sim %g"):format(on_cpu, on_sim))

local path = os.tmpname() .. ".safetensors"
local again = network()
pg.save(path, model)
pg.load(path, again)
os.remove(path)
local x = pg.randn{5, 4}
local difference = (model(x) - again(x)):abs():max():item()
assert(difference == 0, "predictions differ after saving and loading")
print(("trained to %.4f on cpu, %.4f on sim; saved and loaded"):format(on_cpu, on_sim))
