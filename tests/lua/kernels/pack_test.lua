-- SPDX-License-Identifier: Apache-2.0
-- Weights in a private layout: made once per contents, remade when they change, never seen from outside.

local pg = require "perigee"

-- The direct definition, for a 3x3 kernel with padding 1.
local function reference(x, w)
  local padded = pg.zeros { x.shape[1], x.shape[2], x.shape[3] + 2, x.shape[4] + 2 }
  padded[{ {}, {}, { 2, -2 }, { 2, -2 } }] = x
  local y = pg.zeros { x.shape[1], w.shape[1], x.shape[3], x.shape[4] }
  for i = 1, 3 do
    for j = 1, 3 do
      local window = padded[{ {}, {}, { i, i + x.shape[3] - 1 }, { j, j + x.shape[4] - 1 } }]
      local part = window:permute(1, 3, 4, 2):matmul(w[{ {}, {}, i, j }]:t())
      y = y + part:permute(1, 4, 2, 3)
    end
  end
  return y
end

test("a convolution's weights are packed once and follow their changes", function(t)
  pg.manual_seed(3)
  local x, w = pg.randn { 2, 16, 9, 9 }, pg.randn { 32, 16, 3, 3 }
  local options = { padding = 1 }
  pg.no_grad(function()
    for round = 1, 3 do
      local expected = reference(x, w)
      for _ = 1, 4 do t.close(pg.conv2d(x, w, options), expected, 1e-3) end
      w:mul_(-0.5 * round)
      local change = w[{ { 1, 4 } }]
      change:add_(1) -- through a view of it
    end
  end)
end)

test("views of one storage have packed forms of their own", function(t)
  pg.manual_seed(4)
  local x, all = pg.randn { 1, 16, 6, 6 }, pg.randn { 12 * 32, 16, 3, 3 }
  pg.no_grad(function()
    for round = 1, 3 do
      for part = 1, 12 do -- more of them than forms are kept
        local w = all[{ { (part - 1) * 32 + 1, part * 32 } }]
        t.close(pg.conv2d(x, w, { padding = 1 }), reference(x, w), 1e-3, ("round %d, part %d"):format(round, part))
      end
      local w = all[{ { 33, 64 } }]
      for _ = 1, 3 do t.close(pg.conv2d(x, w, { padding = 1 }), reference(x, w), 1e-3) end
    end
  end)
end)

test("packed forms go with their weights", function(t)
  local function live() pg.memory.collect() return pg.memory.stats("cpu").live end
  local x = pg.randn { 1, 32, 8, 8 }
  local before = live()
  pg.no_grad(function()
    for _ = 1, 5 do
      local w = pg.randn { 64, 32, 3, 3 }
      for _ = 1, 3 do pg.conv2d(x, w, { padding = 1 }) end
    end
  end)
  t.equal(live(), before)
end)

local function is_let_go_of(t)
  local device = "cpu"
  local function live() pg.memory.collect() return pg.memory.stats(device).live end
  local function limited(bytes, fn)
    pg.config.memory_limit(device, bytes)
    local ok, message = pcall(fn)
    pg.config.memory_limit(device, 0)
    t.ok(ok, message)
  end
  pg.manual_seed(5)
  local x, w = pg.randn { 1, 256, 4, 4 }, pg.randn { 512, 256, 3, 3 }
  local weight = w:numel() * 4
  local expected = reference(x, w)
  local function run()
    for _ = 1, 3 do
      pg.scope(function() pg.no_grad(function() t.close(pg.conv2d(x, w, { padding = 1 }), expected, 1e-2) end) end)
    end
  end
  pg.memory.empty_cache() -- also what other tests have kept
  local before = live()
  run()
  t.ok(live() - before >= weight, "packed: " .. live() - before)
  pg.memory.empty_cache()
  t.ok(live() <= before, "empty_cache left " .. live() - before)
  run()

  local piece, pieces = math.floor(weight / 8), {}
  local function beside() return live() - before - piece * #pieces end -- what lives but for the pieces
  limited(pg.memory.stats(device).reserved, function()
    local ok = true
    while ok do
      ok, pieces[#pieces + 1] = pcall(pg.zeros, { piece, dtype = "uint8" })
    end
    pieces[#pieces] = nil
    t.ok(beside() < weight / 2, "still there: " .. beside())
  end)
  pieces = {}
  run()
  t.ok(beside() >= weight, "not packed again: " .. beside())
end

test("packed forms are let go of by empty_cache, and when memory is short", function(t)
  pg.device("cpu", is_let_go_of, t) -- where there are such forms
end)
