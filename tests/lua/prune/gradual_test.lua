-- SPDX-License-Identifier: Apache-2.0
-- pg.prune.Gradual: the schedule's numbers, by hand and in fit, and after a checkpoint.

local pg = require "perigee"
local nn, optim, prune = pg.nn, pg.optim, pg.prune

local function zeros(layer) return layer.weight_mask:logical_not():sum():item() end

-- Zhu and Gupta's formula.
local function part(o, step)
  local t = step - (o.begin or 0)
  if t < 0 then return 0 end
  if t > o.steps then t = o.steps end
  return o.amount + ((o.initial or 0) - o.amount) * (1 - t / o.steps) ^ 3
end

test("sparsity follows the cube, exactly, and ends at the amount", function(t)
  for _, o in ipairs { { amount = 0.9, steps = 10 }, { amount = 0.5, steps = 7, begin = 3, every = 2, initial = 0.1 },
                       { amount = 1, steps = 1 }, { amount = 0.8, steps = 5, every = 100 } } do
    local model = nn.Sequential { nn.Linear { 16, 8 }, nn.ReLU {}, nn.Linear { 8, 3 } }
    local gradual = prune.Gradual { model, amount = o.amount, steps = o.steps, begin = o.begin, every = o.every,
                                    initial = o.initial }
    t.equal({ zeros(model[1]), zeros(model[3]) }, { 0, 0 })
    local due = 0
    for step = 1, (o.begin or 0) + o.steps + 3 do
      local now = gradual:step()
      t.close(now, part(o, step), 1e-12)
      local since = step - (o.begin or 0)
      if since == o.steps or since >= 0 and since < o.steps and since % (o.every or 1) == 0 then due = part(o, step) end
      t.equal({ zeros(model[1]), zeros(model[3]) }, { math.floor(due * 128 + 0.5), math.floor(due * 24 + 0.5) })
    end
    t.close(due, o.amount, 1e-12)
  end
end)

test("of all layers together; at random", function(t)
  local model = nn.Sequential { nn.Linear { 16, 8 }, nn.Linear { 8, 3 } }
  pg.no_grad(function() model[1].weight:mul_(0.01) end)
  local gradual = prune.Gradual { model, amount = 0.5, steps = 2, together = true }
  gradual:step()
  gradual:step()
  t.equal(zeros(model[1]) + zeros(model[2]), 76)
  t.ok(zeros(model[1]) > 70)
  local layer = nn.Linear { 10, 10 }
  prune.Gradual { layer, amount = 0.3, steps = 1, method = "random" }:step()
  t.equal(zeros(layer), 30)
  prune.remove(layer)
  local other = prune.Gradual { layer, amount = 0.4, steps = 1 }
  prune.remove(layer)
  t.raises(function() other:step() end, "weight of Linear is not pruned any more")
end)

local x = pg.rand { 64, 6 }
local y = x:sum { axis = 2, keepdim = true }

local function model_of(seed)
  pg.manual_seed(seed)
  return nn.Sequential { nn.Linear { 6, 16 }, nn.Tanh {}, nn.Linear { 16, 1 } }
end

local function fit(model, gradual, more)
  local o = { x = x, y = y, batch_size = 16, loss = "mse", optimizer = optim.Adam { lr = 1e-2, weight_decay = 0.01 },
              epochs = 4, verbose = 0, shuffle = false, callbacks = { gradual } }
  for key, value in pairs(more or {}) do o[key] = value end
  return model:fit(o)
end

test("in fit: pruned while it trains, and it learns all the same", function(t)
  local model = model_of(1)
  local gradual = prune.Gradual { model, amount = 0.75, steps = 8, every = 2 }
  local history = fit(model, gradual)
  t.equal({ gradual.done, zeros(model[1]), zeros(model[3]) }, { 16, 72, 12 })
  t.equal(model[1].weight:eq(0):sum():item(), 72)
  t.ok(history[#history].loss < history[1].loss)
end)

test("a training that goes on from a checkpoint prunes as the one that was not cut off", function(t)
  local whole = model_of(2)
  fit(whole, prune.Gradual { whole, amount = 0.75, steps = 12 })

  local folder = os.tmpname() .. ".d"
  local function part_of(epochs)
    local model = model_of(2)
    local gradual = prune.Gradual { model, amount = 0.75, steps = 12 }
    fit(model, gradual, { epochs = epochs, resume = true,
                          callbacks = { gradual, pg.callbacks.ModelCheckpoint { folder } } })
    return model, gradual
  end
  part_of(2)
  local model, gradual = part_of(4)
  t.equal(gradual.done, 16)
  for name, value in pairs(whole:state()) do t.ok(model:state()[name]:equal(value), name) end
  os.execute("rm -rf '" .. folder .. "'")
end)

test("state: how far it is", function(t)
  local layer = nn.Linear { 4, 4 }
  local gradual = prune.Gradual { layer, amount = 0.5, steps = 4 }
  gradual:step()
  local other = prune.Gradual { layer, amount = 0.5, steps = 4 }
  other:load_state(gradual:state())
  t.equal(other:step(), gradual:step())
  t.raises(function() other:load_state {} end, "needs what state%(%) returned")
  t.equal(tostring(other), "Gradual(0 to 0.5, step 2 of 4, 1 layers)")
end)
