-- SPDX-License-Identifier: Apache-2.0
-- Memory that ends in the middle of a step: parameters and state are as they were, and the step can be made again.

local pg = require "perigee"

local function contents(params, optimizer)
  local values, state = {}, optimizer:state().groups[1]
  for i, p in ipairs(params) do values[i] = p:detach():to("float64"):totable() end
  for name, list in pairs(state.slots) do
    values[name] = {}
    for i, slot in ipairs(list) do values[name][i] = slot and slot:totable() end
  end
  return { values, state.steps }
end

for _, name in ipairs { "LAMB", "Adafactor", "Muon" } do
  test(name .. ": a step is made as a whole or not at all", function(t)
    t.uncompiled()
    local device = t.device or "cpu"
    pg.manual_seed(5)
    local params = {}
    for i, shape in ipairs { { 160, 170 }, { 180, 400 } } do
      params[i] = pg.randn(shape, { device = device, requires_grad = true })
      params[i].grad = pg.randn(shape, { device = device })
    end
    local optimizer = pg.optim[name] { params, lr = 0.01 }
    optimizer:step()
    local before = contents(params, optimizer)
    local refused, ok = 0, false
    for room = 0, 2 ^ 22, 2 ^ 16 do
      collectgarbage()
      pg.memory.collect()
      pg.memory.empty_cache(device)
      pg.config.memory_limit(device, math.max(1, pg.memory.stats(device).live + room))
      local problem
      ok, problem = pcall(optimizer.step, optimizer)
      pg.config.memory_limit(device, 0)
      if ok then break end
      refused = refused + 1
      t.equal(problem.code, "out_of_memory")
      t.equal(contents(params, optimizer), before)
    end
    t.ok(ok and refused > 3, ("%d steps were refused"):format(refused))
  end)
end
