-- SPDX-License-Identifier: Apache-2.0
-- pg.tune.batch_size: what it finds, what it leaves as it was, what it refuses.

local pg = require "perigee"
local nn = pg.nn

local function model() return nn.Sequential { nn.Linear { 3, 8 }, nn.BatchNorm1d { 8 }, nn.Linear { 8, 1 } } end

test("batch sizes go up to the limit, and the model stays as it was", function(t)
  local net = model():eval()
  local x, y = pg.rand { 5, 3 }, pg.rand { 5, 1 }
  nn.mse_loss(net(x), y):backward()
  pg.manual_seed(3)
  local drawn = pg.rand { 2 }:totable()
  pg.manual_seed(3)
  local grad, mean = net[1].weight.grad:totable(), net[2].running_mean:totable()
  net[1].bias:requires_grad_(false)
  local sizes = pg.tune.batch_size(net, { x = x, y = y, loss = "mse", limit = 40, seconds = 0 })
  local tried = {}
  for i, row in ipairs(sizes.rows) do
    tried[i] = row.batch_size
    t.ok(row.seconds > 0 and row.per_second > 0 and row.bytes > 0)
  end
  t.equal({ tried, sizes.largest, sizes.full }, { { 2, 4, 8, 16, 32 }, 32, false })
  local best = 0
  for _, row in ipairs(sizes.rows) do best = math.max(best, row.per_second) end
  for _, row in ipairs(sizes.rows) do
    if row.batch_size < sizes.batch_size then t.ok(row.per_second < 0.95 * best) end
    if row.batch_size == sizes.batch_size then t.ok(row.per_second >= 0.95 * best) end
  end
  t.equal({ net[1].weight.grad:totable(), net[2].running_mean:totable(), net.training, pg.rand { 2 }:totable() },
          { grad, mean, false, drawn })
  t.ok(tostring(sizes):find "samples/s")
end)

test("a device without room ends the search", function(t)
  -- Samples that are large and quick to compute.
  local net, x, y = nn.Sequential { nn.Linear { 32768, 16 } }, pg.rand { 1, 32768 }, pg.rand { 1, 16 }
  local device = x.device
  pg.memory.empty_cache(device)
  pg.config.memory_limit(device, pg.memory.stats(device).live + 2 ^ 27)
  local ok, sizes = pcall(pg.tune.batch_size, net, { x = x, y = y, loss = "mse", limit = 2 ^ 16, seconds = 0 })
  pg.config.memory_limit(device, 0)
  t.ok(ok, tostring(sizes))
  t.ok(sizes.full and sizes.largest < 2 ^ 14 and sizes.largest >= 1, sizes.largest)
  t.ok(tostring(sizes):find "no room")
end)

test("what cannot be tuned is told", function(t)
  local x, y = pg.rand { 2, 3 }, pg.rand { 2, 1 }
  local function refused(net, o, text)
    t.raises(function() pg.tune.batch_size(net, o) end, "tune.batch_size: .*" .. text)
  end
  refused(3, { x = x, y = y, loss = "mse" }, "model must be a layer, got number 3")
  refused(model(), { x = x, y = pg.rand { 3, 1 }, loss = "mse" }, "the same samples")
  refused(model(), { x = x, y = y, loss = "mes" }, "unknown loss \"mes\"")
  refused(model(), { x = x, y = y, loss = "mse", limit = 0 }, "limit must be at least 1")
  refused(nn.ReLU {}, { x = x, y = x, loss = "mse" }, "no parameters to train")
end)
