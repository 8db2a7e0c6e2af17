-- SPDX-License-Identifier: Apache-2.0
-- Batch norms over replicas, of processes and of devices.

local tests = (debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or ".") .. "/../.."
package.path = tests .. "/?.lua;" .. package.path
local launched = require "launched"
local process = require "process"

-- Batch norms over three replicas, whose last batch has two samples, are those of one device on whole batches: what is
-- learnt, and running statistics. `strategy` is made by the script before.
local SYNC = [[
  pg.set_default_dtype "float64"
  pg.manual_seed(3)
  local x, y = pg.randn { 20, 3, 4, 4 } * 2 + 1, pg.randn { 20, 2 }
  local function build()
    pg.manual_seed(5)
    return nn.Sequential { nn.Conv2d { 3, 4, 3 }, nn.BatchNorm2d { 4, momentum = 0.2 }, nn.ReLU {}, nn.Flatten {},
                           nn.Linear { 16, 8 }, nn.BatchNorm1d { 8 }, nn.ReLU {}, nn.Linear { 8, 2 } }
  end
  local ds = pg.data.from_slices { x = x, y = y }:batch(9)
  local function sgd(model) return optim.SGD { model and model:parameters(), lr = 0.1, momentum = 0.9 } end
  local alone = build()
  local alone_optimizer = sgd(alone)
  for _ = 1, 4 do
    for _, b in ds:each() do
      alone_optimizer:zero_grad()
      nn.mse(alone(b.x), b.y):backward()
      alone_optimizer:step()
    end
  end
  local function check(model)
    for name, expected in pairs(alone:state()) do
      local got = model:state()[name]:to "cpu"
      local worst = ((got - expected):abs():max() / expected:abs():max()):item()
      if not (worst < 1e-9) then error(("%s differs by %g"):format(name, worst), 2) end
    end
  end
  local model, optimizer = strategy:scope(function()
    local model = d.sync_batchnorm(build())
    return model, sgd(model)
  end)
  same(tostring(model):find "BatchNorm1d", nil)
  for _ = 1, 4 do
    for _, batch in strategy:distribute(ds):each() do
      strategy:run(function(b)
        optimizer:zero_grad()
        nn.mse(model(b.x), b.y):backward()
        optimizer:step()
      end, batch)
    end
  end
  check(model)
  model = strategy:scope(function() return d.sync_batchnorm(build()) end)
  model:fit { data = ds, loss = "mse", optimizer = optim.SGD { lr = 0.1, momentum = 0.9 }, epochs = 4, verbose = 0,
              strategy = strategy }
  check(model)
  -- without batch norms that know of each other it is another training
  model = strategy:scope(build)
  model:fit { data = ds:take(2), loss = "mse", optimizer = optim.SGD { lr = 0.1 }, epochs = 1, verbose = 0,
              strategy = strategy }
  raises(function() check(model) end, "differs by")
]]

local HEAD = "local nn, optim = pg.nn, pg.optim\n"

test("batch norms over processes", function(t)
  launched.well(t, 3, HEAD .. "local strategy = d.multi_worker()\n" .. SYNC)
end)

test("batch norms over devices", function(t)
  local path = process.file(launched.HEAD .. HEAD .. [[
    local strategy = d.mirrored { devices = { "sim:0", "sim:1", "sim:2" } }
  ]] .. SYNC .. "\nprint 'came to its end'")
  os.rename(path, path .. ".lua")
  local text, status = process.run(("PERIGEE_SIM_DEVICES=3 PERIGEE_SIM_JITTER=100 timeout 60 '%s' %s.lua"):format(
    process.need_perigee(t), path))
  os.remove(path .. ".lua")
  t.ok(status == 0 and text:find "came to its end", text)
end)

test("without a strategy it is a plain batch norm; what it is made of stays", function(t)
  local pg = require "perigee"
  local nn = pg.nn
  local x = pg.randn { 6, 3, 2 }
  local plain = nn.BatchNorm1d { 3, momentum = 0.3 }
  local weight = plain.weight
  local sync = pg.dist.sync_batchnorm(plain)
  t.equal(tostring(sync), "SyncBatchNorm(features=3, eps=1e-05, momentum=0.3, affine=true, track_running_stats=true)")
  t.ok(sync.weight == weight)
  local expected = nn.BatchNorm1d { 3, momentum = 0.3 }
  t.equal(sync(x):totable(), expected(x):totable())
  t.equal(sync.running_var:totable(), expected.running_var:totable())
  sync:eval()
  expected:eval()
  t.equal(sync(x):totable(), expected(x):totable())
  local bare = pg.dist.sync_batchnorm(nn.Sequential {
    nn.BatchNorm2d { 2, affine = false, track_running_stats = false } })
  t.equal(bare(pg.ones { 2, 2, 1, 1 }):totable(), pg.zeros({ 2, 2, 1, 1 }):totable())
  t.equal(#bare:parameters(), 0)
  -- one layer at two places stays one
  local norm = nn.BatchNorm1d { 2 }
  local twice = pg.dist.sync_batchnorm(nn.Sequential { norm, nn.ReLU {}, norm })
  t.ok(twice[1] == twice[3])
  t.raises(function() pg.dist.sync_batchnorm(nn.Sequential { nn.BatchNorm1d {} }) end, "0 waits for its first input")
  t.raises(function() pg.dist.sync_batchnorm(5) end, "needs a layer")
  t.raises(function() nn.SyncBatchNorm { 3 }(pg.ones { 2, 4 }) end, "expected %[N, 3, ...%], got {2, 4}")
  t.raises(function() nn.SyncBatchNorm { 0 } end, "features must be positive")
end)
