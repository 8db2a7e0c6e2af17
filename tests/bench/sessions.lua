-- SPDX-License-Identifier: Apache-2.0
-- Sessions against the same code run eagerly, by turns in one process: processor time a node or a step, the best of
-- several rounds, and the ratio. `perigee tests/bench/sessions.lua [ROUNDS]`.

local pg = require "perigee"
local nn, optim = pg.nn, pg.optim

local rounds = tonumber(arg[1]) or 7

local function seconds(count, run)
  collectgarbage()
  local start = os.clock()
  for _ = 1, count do run() end
  collectgarbage() -- what the loop left over is paid for by the loop
  return os.clock() - start
end

-- Nanoseconds of `nodes` operators, eagerly and in a session.
local function compare(name, count, nodes, eager, session)
  local least = { math.huge, math.huge }
  for _ = 1, rounds + 1 do
    for side, run in ipairs { eager, session } do least[side] = math.min(least[side], seconds(count, run)) end
  end
  local scale = 1e9 / count / nodes
  print(("%-34s eager %8.0f ns  session %8.0f ns  ratio %.2f"):format(name, least[1] * scale, least[2] * scale,
                                                                      least[2] / least[1]))
end

-- `fn` records or runs 1000 operators on a tensor.
local function chain(name, x, fn)
  local session = pg.Session { pg.graph(function(g) return { y = fn(g:placeholder { "x", shape = { "n", 4 } }) } end) }
  local feeds = { x = x }
  compare(name, 100, 1000, function() pg.no_grad(fn, x) end, function() session:run("y", feeds) end)
end

local x, b = pg.rand { 4, 4 }, pg.rand { 4 }
chain("chain of tensors and numbers", x, function(y)
  for _ = 1, 500 do y = (y + 1) * 0.5 end
  return y
end)
chain("chain of tensors", x, function(y)
  for _ = 1, 500 do y = (y + b) * b end
  return y
end)
chain("views and reductions", x, function(y)
  for _ = 1, 250 do y = y:t() + y:sum(1):unsqueeze(1) end
  return y
end)

-- The step of hot_path.lua's tiny network, with Adam.
local function tiny_step()
  local input, labels = pg.rand { 2, 4 }, pg.tensor({ 0, 1 }, { dtype = "int64" })
  local model = nn.Sequential { nn.Linear { 4, 8 }, nn.ReLU {}, nn.Linear { 8, 2 } }
  local optimizer = optim.Adam { model:parameters(), lr = 1e-3 }
  local session = pg.Session { pg.graph(function(g)
    local rows, target = g:placeholder { "x", shape = { 2, 4 } }, g:placeholder { "y", shape = { 2 }, dtype = "int64" }
    local held, first, second = {}, {}, {}
    for i, shape in ipairs { { 8, 4 }, { 8 }, { 2, 8 }, { 2 } } do
      held[i] = g:variable { "p" .. i, shape = shape, init = "uniform" }
      first[i], second[i] = g:variable { "m" .. i, shape = shape }, g:variable { "v" .. i, shape = shape }
      first[i].requires_grad, second[i].requires_grad = false, false
    end
    local hidden = pg.linear(rows, held[1], held[2]):relu()
    local loss = nn.cross_entropy(pg.linear(hidden, held[3], held[4]), target)
    local gradients = { pg.grad(loss, held) }
    pg.no_grad(function() pg.adam(held, gradients, first, second, { lr = 1e-3, step = 1 }) end)
    return { loss = loss, train = held[1] }
  end) }
  local fetches, feeds = { "loss", "train" }, { x = input, y = labels }
  compare("training step of a tiny network", 1000, 1, function()
    optimizer:zero_grad()
    nn.cross_entropy(model(input), labels):backward()
    optimizer:step()
  end, function() session:run(fetches, feeds) end)
end
tiny_step()

-- One node of many costs what it costs alone.
local function one_of_many(count)
  local session = pg.Session { pg.graph(function(g)
    local y = g:placeholder { "x", shape = { 4, 4 } }
    local one = y + 1
    for _ = 1, count do y = y + 1 end
    return { one = one, all = y }
  end) }
  local feeds = { x = x }
  return function() session:run("one", feeds) end
end
compare("one of 10,001 nodes (eager: of 2)", 5000, 1, one_of_many(1), one_of_many(10000))

-- Building, in nanoseconds a node.
local function built(fn)
  return function()
    pg.graph(function(g)
      local y = g:placeholder { "x", shape = { 4, 4 } }
      for _ = 1, 10000 do y = fn(y) end
      return { y = y }
    end)
  end
end
for name, fn in pairs { ["y + 1"] = function(y) return y + 1 end,
                        ["y:sum{axis=1, keepdim=true}"] = function(y) return y:sum { axis = 1, keepdim = true } end } do
  local least = math.huge
  for _ = 1, rounds do least = math.min(least, seconds(1, built(fn))) end
  print(("10,000 nodes of %-30s %6.1f ms"):format(name, least * 1e3))
end
