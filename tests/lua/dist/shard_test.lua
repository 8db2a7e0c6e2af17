-- SPDX-License-Identifier: Apache-2.0
-- pg.dist.shard: training is that of one process at every level; what a process has falls to its part, to the byte.

local tests = (debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or ".") .. "/../.."
package.path = tests .. "/?.lua;" .. package.path
local launched = require "launched"
local pg = require "perigee"

local COMMON = [[
local nn, optim = pg.nn, pg.optim
local function same_models(model, whole)
  local state = d.whole_state(model)
  for name, p in whole:named_parameters() do near(name, state[name], p:detach()) end
end
local function build()
  return nn.Sequential { nn.Embedding { 10, 8 }, nn.TransformerEncoderLayer { 8, 2, 16, dropout = 0 },
                         nn.Linear { 8, 5 }, nn.Tanh {}, nn.Linear { 5, 1 } }:to "float64"
end
local function data(n)
  pg.manual_seed(5)
  local x = pg.randint(0, 10, { n, 4 })
  return pg.data.from_slices { x = x, y = x:to("float64"):unsqueeze(3) }:batch(4)
end
]]

test("every level trains as one process does: clipping, passes, recomputing, frozen and tied parameters", function(t)
  for _, n in ipairs { 2, 3 } do
    launched.well(t, n, COMMON .. [[
      local ds = data(10)
      local Tied = nn.class "Tied"
      function Tied:init(weight) self.weight = weight end
      function Tied:forward(x) return pg.linear(x, self.weight:reshape(1, 8)) end
      for level = 1, 3 do
        local strategy = d.multi_worker()
        local model, optimizer, alone, alone_optimizer
        pg.manual_seed(rank)
        strategy:scope(function()
          alone = build()
          alone[2].norm2:freeze()
          alone[2].linear1:freeze()
          alone[6] = nn.Linear { 1, 8 }:to "float64"
          alone[7] = Tied(alone[6].weight)
          alone_optimizer = optim.SGD { alone:parameters(), lr = 0.05, momentum = 0.9 }
          model = d.shard(alone:clone(), { level = level, prefetch = size ~= 2 })
          optimizer = optim.SGD { model:parameters(), lr = 0.05, momentum = 0.9 }
        end)
        for epoch = 1, 2 do
          for step, b in ds:each() do
            alone_optimizer:zero_grad()
            for pass = 1, 2 do nn.mse(alone(b.x), b.y):backward() end
            optim.clip_grad_norm_(alone:parameters(), 0.5)
            alone_optimizer:step()
          end
          for step, b in strategy:distribute(ds):each() do
            strategy:run(function(b)
              optimizer:zero_grad()
              for pass = 1, 2 do
                local y = pass == 1 and model(b.x) or pg.recompute(model, b.x)
                nn.mse(y, b.y):backward()
              end
              strategy:reduce_gradients(optimizer)
              optim.clip_grad_norm_(model:parameters(), 0.5)
              optimizer:step()
            end, b)
          end
        end
        same_models(model, alone)
        local x = pg.randint(0, 10, { 2, 4 })
        near("evaluation", pg.no_grad(function() return model(x) end), pg.no_grad(function() return alone(x) end))
      end
    ]])
  end
end)

test("fit with a strategy: all levels, as one process", function(t)
  launched.well(t, 2, COMMON .. [[
    pg.manual_seed(2)
    local x = pg.randn({ 20, 5 }, { dtype = "float64" })
    local options = { x = x, y = x:sum { axis = 2, keepdim = true }, loss = "mse", epochs = 3, batch_size = 8,
                      verbose = 0, seed = 4, clip_norm = 0.5 }
    local function trained(level)
      pg.manual_seed(1)
      local model = nn.Sequential { nn.Linear { 5, 7 }, nn.Tanh {}, nn.Linear { 7, 1 } }:to "float64"
      local o = { optimizer = optim.Adam { lr = 0.01 }, strategy = level and d.multi_worker() }
      for k, v in pairs(options) do o[k] = v end
      if level then d.shard(model, { level = level }) end
      return model, model:fit(o)
    end
    local alone, expected = trained()
    for level = 1, 3 do
      local model, history = trained(level)
      same_models(model, alone)
      for epoch = 1, 3 do
        if math.abs(history[epoch].loss - expected[epoch].loss) > 1e-9 then error "losses differ" end
      end
    end
  ]])
end)

test("what a process has falls to its part, to the byte", function(t)
  launched.well(t, 2, [[
    local nn, optim = pg.nn, pg.optim
    local W = 256
    local layer = W * W * 4
    local function live()
      collectgarbage()
      collectgarbage()
      pg.memory.collect()
      return pg.memory.stats("cpu").live
    end
    local function measure(level, prefetch)
      local x = pg.ones { 1, W }
      local strategy = d.multi_worker { overlap = false }
      local base, model, optimizer = live(), nil, nil
      strategy:scope(function()
        model = nn.Sequential { nn.Linear { W, W, bias = false }, nn.Linear { W, W, bias = false },
                                nn.Linear { W, W, bias = false }, nn.Linear { W, W, bias = false } }
        d.shard(model, { level = level, prefetch = prefetch })
        optimizer = optim.Adam { model:parameters(), lr = 0.01 }
      end)
      local parameters, most, forward = live() - base, 0, 0
      for step = 1, 3 do
        strategy:run(function()
          optimizer:zero_grad()
          local before = live()
          pg.memory.reset_peak()
          pg.no_grad(function() model(x) end)
          forward = pg.memory.stats("cpu").peak - before
          local loss = model(x):sum()
          loss:backward()
          loss = nil
          most = pg.memory.stats("cpu").peak - before
          optimizer:step()
        end)
      end
      return { parameters, live() - base, forward, most }
    end
    local little = 64 * W -- activations of one sample
    local function check(level, prefetch, parameters, state, forward, most)
      local got = measure(level, prefetch)
      same({ got[1], got[2] }, { parameters * layer, state * layer }, ("level %d: parameters, state"):format(level))
      if got[3] > forward * layer + little then error("level " .. level .. ": forward takes " .. got[3] / layer) end
      if got[4] > most * layer + little then error("level " .. level .. ": a step takes " .. got[4] / layer) end
    end
    -- in layers: parameters, gradients, two states of Adam
    check(1, false, 4, 4 + 4 + 8 / 2, 0, 4)
    check(2, false, 4, 4 + 4 / 2 + 8 / 2, 1 / 2, 4 / 2 + 2)
    check(3, false, 4 / 2, 4 / 2 + 4 / 2 + 8 / 2, 1, 4 / 2 + 2) -- a whole layer, and its gradient
    check(3, true, 4 / 2, 4 / 2 + 4 / 2 + 8 / 2, 2, 4 / 2 + 3)
  ]])
end)

test("what is refused, on all", function(t)
  launched.well(t, 2, COMMON .. [[
    local model = nn.Sequential { nn.Linear { 4, 6 }, nn.Linear { 6, 2 } }
    raises(function() d.shard(model, { level = 4 }) end, "level must be 1, 2 or 3, got number 4")
    raises(function() d.shard(nn.Sequential { nn.Linear { 3 } }, { level = 3 }) end, "not known before its first input")
    raises(function() d.shard(nn.utils.weight_norm(nn.Linear { 4, 4 }), { level = 3 }) end, "is computed by")
    d.shard(model, { level = 3 })
    same(model[1].weight.shape, { 12 })
    raises(function() d.shard(model, { level = 3 }) end, "0.weight is spread already")
    raises(function() model:state() end, "0.weight is the part of a parameter {6, 4}")
    raises(function() model:clone() end, "0.weight is spread over processes")
    raises(function() model:to "float64" end, "0.weight is spread over processes")
    raises(function() optim.Adafactor { model:parameters() } end, "Adafactor looks at whole ones")
    -- a view of a whole parameter that a layer has kept
    local kept
    local Keeps = nn.class "Keeps"
    function Keeps:init() self.weight = nn.Parameter(pg.ones { 2, 4 }) end
    function Keeps:forward(x)
      kept = self.weight:detach()
      return pg.linear(x, self.weight)
    end
    d.shard(Keeps(), { level = 3 })(pg.ones { 1, 4 })
    raises(function() return kept + 1 end, "the memory of this tensor has been given back")
    raises(function() return kept:totable() end, "the memory of this tensor has been given back")
    raises(function() return kept:t():clone() end, "the memory of this tensor has been given back")
    local first = d.shard(nn.Linear { 4, 2 }, { level = 1 })
    local step = optim.SGD { first:parameters(), lr = 0.1 }
    first(pg.ones { 1, 4 }):sum():backward()
    raises(function() step:step() end, "have not been summed over the processes")
  ]])
end)

test("a process alone keeps what it has", function(t)
  local layer = pg.nn.Linear { 3, 2 }
  t.equal(pg.dist.shard(layer, { level = 3 }), layer)
  t.equal(layer.weight.shape, { 2, 3 })
end)
