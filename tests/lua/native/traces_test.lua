-- SPDX-License-Identifier: Apache-2.0
-- Compiled code keeps no tensor: what a function builds, trains and drops is gone when it is over.
-- luacheck: ignore 122 (jit.flush is replaced to count it)

local pg = require "perigee"
local nn, optim = pg.nn, pg.optim

local function stack(count, width)
  local list = {}
  for i = 1, count do list[2 * i - 1], list[2 * i] = nn.Linear { width, width }, nn.ReLU {} end
  return nn.Sequential(list)
end

local Own = nn.class("Own")
function Own:init() for i = 1, 30 do self["l" .. i] = nn.Linear { 48, 48 } end end
function Own:forward(x)
  for i = 1, 30 do x = self["l" .. i](x):relu() end
  return x
end

local function train(model, optimizer, x, steps)
  for _ = 1, steps do
    optimizer:zero_grad()
    model(x):square():mean():backward()
    optimizer:step()
  end
end

local uses = {
  loads = function()
    local path, model = os.tmpname() .. ".safetensors", stack(30, 64)
    pg.save(path, model)
    for _ = 1, 3 do pg.load(path, model) end
    os.remove(path)
  end,
  ["copies its state"] = function()
    local model = stack(30, 64)
    for _ = 1, 4 do model:load_state(model:clone():state()) end
  end,
  trains = function()
    local model = stack(20, 64)
    train(model, optim.Adam { model:parameters(), lr = 1e-3 }, pg.rand { 8, 64 }, 40)
  end,
  fits = function()
    stack(20, 64):fit { x = pg.rand { 64, 64 }, y = pg.rand { 64, 64 }, loss = "mse",
                        optimizer = optim.AdamW { lr = 1e-3 }, epochs = 3, batch_size = 8, verbose = 0 }
  end,
  ["has layers of a script's own"] = function()
    local model = Own {}
    train(model, optim.SGD { model:parameters(), lr = 1e-3, momentum = 0.9 }, pg.rand { 4, 48 }, 40)
    model:to("float64")
  end,
  ["keeps an average"] = function()
    local model = stack(20, 64)
    local average = optim.EMA { model, decay = 0.9 }
    for _ = 1, 50 do average:update() end
  end,
  ["limits gradients"] = function()
    local model = stack(20, 64)
    for _ = 1, 50 do
      model(pg.rand { 4, 64 }):sum():backward()
      optim.clip_grad_norm_(model:parameters(), 1)
      model:zero_grad()
    end
  end,
  ["is an attention block"] = function()
    local model = nn.TransformerEncoderLayer { 64, 4 }
    for _ = 1, 30 do model(pg.rand { 2, 10, 64 }):sum():backward() end
  end,
  ["is convolutional"] = function()
    local model = nn.Sequential { nn.Conv2d { 3, 32, 3 }, nn.BatchNorm2d { 32 }, nn.ReLU {}, nn.Conv2d { 32, 64, 3 } }
    train(model, optim.RMSprop { model:parameters(), lr = 1e-3 }, pg.rand { 2, 3, 12, 12 }, 40)
  end,
  ["predicts and evaluates"] = function()
    local model, x = stack(20, 64), pg.rand { 64, 64 }
    model:predict(x)
    model:evaluate { x = x, y = x, loss = "mse" }
  end,
  ["goes through a data set"] = function()
    local ds = pg.data.from_slices { x = pg.rand { 256, 64 } }:shuffle {}:batch { 8 }
    for _, batch in ds:each() do local _ = batch.x + 1 end
  end,
}

local function live()
  for _ = 1, 3 do pg.memory.collect() end -- what earlier tests dropped, and what that holds in its turn
  return pg.memory.stats("cpu").live
end

for name, use in pairs(uses) do
  test("nothing is left of a model that " .. name, function(t)
    pg.device("cpu", function()
      use()
      local before = live()
      use()
      t.equal(live() - before, 0)
    end)
  end)

  test("no call leaves more behind where traces stay: a model that " .. name, function(t)
    pg.device("cpu", function()
      local flush = jit.flush
      jit.flush = function() end
      local ok, problem = pcall(function()
        for _ = 1, 4 do use() end
        -- A slot of the stack that compiled code left as it was may hold one dead tensor more, at one time or another;
        -- what calls leave behind is there each time.
        local before, after = live(), math.huge
        for _ = 1, 3 do
          for _ = 1, 4 do use() end
          after = math.min(after, live())
        end
        t.ok(after <= before, ("%d bytes more"):format(after - before))
      end)
      jit.flush = flush
      if not ok then error(problem, 0) end
    end)
  end)
end

test("traces are let go of when memory doubles", function(t)
  local flushes, flush, held = 0, jit.flush, {}
  jit.flush = function() flushes = flushes + 1 end
  local ok, problem = pcall(function()
    pg.memory.collect()
    flushes = 0
    for i = 1, 24 do held[i] = pg.zeros { 4, 1024, 1024 } end -- 16 MiB each
    t.equal(#held, 24)
  end)
  jit.flush, held = flush, nil
  pg.memory.collect()
  if not ok then error(problem, 0) end
  t.equal(flushes, 1)
end)
