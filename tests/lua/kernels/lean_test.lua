-- SPDX-License-Identifier: Apache-2.0
-- What only a gradient reads is made where there will be a gradient, and nowhere else: max pooling's indices, on the
-- device in force, or else the simulated one, and on the CPU.

local pg = require "perigee"

local DEVICE = pg.device() ~= "cpu" and pg.device() or "sim:0"
local C, H, W = 3, 9, 10

local function image()
  return pg.tensor(pg.arange(C * H * W):mul(7):remainder(113):to("float32")):reshape(1, C, H, W)
end
local function plain(x) return (pg.max_pool2d(x, { 2 })) end
-- The gradient of the sum: one where each window's maximum stands.
local function slope(x)
  x = x:detach():requires_grad_()
  local y = plain(x)
  local d = pg.grad({ y:sum() }, { x })
  return y:detach(), d
end

for _, device in ipairs { "cpu", DEVICE } do
  local function on(fn) return pg.device(device, fn) end

  test("max pooling without gradients, with them, and again: " .. device, function(t)
    on(function()
      for _, first in ipairs { "without", "with" } do
        local x = first == "without" and image() or image():narrow(3, 1, H - 1):clone() -- a shape of its own
        local lean, full, d
        if first == "without" then
          lean = plain(x)
          full, d = slope(x)
        else
          full, d = slope(x)
          lean = pg.no_grad(function() return plain(x) end)
        end
        t.equal(lean, full)
        t.equal(plain(x), full)
        t.equal((x * d):sum():item(), full:sum():item()) -- the gradient stands at the maxima
        t.equal(d:sum():item(), full:numel())
        local again, d2 = slope(x)
        t.equal(again, full)
        t.equal(d2, d)
      end
    end)
  end)

  test("what is left out takes no memory: " .. device, function(t)
    on(function()
      local x = pg.ones { 1, 64, 64, 64 }
      local function grown(fn)
        collectgarbage()
        collectgarbage()
        pg.memory.empty_cache()
        local before = pg.memory.stats(device).live
        local y = fn()
        local bytes = pg.memory.stats(device).live - before
        y:free()
        return bytes
      end
      local y = 4 * 64 * 32 * 32 -- bytes
      t.ok(grown(function() return plain(x) end) < 1.5 * y, "without gradients")
      t.ok(grown(function() return pg.no_grad(function() return plain(x:detach():requires_grad_()) end) end) < 1.5 * y,
           "under no_grad")
      t.ok(grown(function() return plain(x:detach():requires_grad_()) end) >= 3 * y, "with gradients")
    end)
  end)

  test("a session makes indices that are read: " .. device, function(t)
    on(function()
      local x = image()
      local g = pg.graph(function(g)
        local p = g:placeholder { "x", shape = { 1, C, H, W } }
        p.requires_grad = true
        local y = plain(p)
        return { y = y, loss = y:sum() }
      end)
      local y, d = slope(x)
      local dx = g:gradients("loss", { g:find("x") })[1]
      local indices = g:find("max_pool2d.indices")
      local session = pg.Session { g }
      t.equal(session:run("y", { x = x }), y)
      t.equal(session:run(dx, { x = x }), d)
      t.equal(session:run(indices, { x = x }).shape, y.shape)
      t.equal(session:run("y", { x = x }), y)
    end)
  end)
end

test("max pooling without indices has the bits that it has with them, in every dtype", function(t)
  local sizes = { { 1, 1, 16, 16 }, { 2, 3, 9, 18 }, { 3, 5, 8, 40 }, { 1, 2, 7, 17 }, { 1, 2, 2, 19 }, { 2, 2, 3, 14 },
                  { 2, 70, 28, 28 } }
  local windows = { { kernel = 2 }, { kernel = { 3, 2 }, stride = 2 }, { kernel = 2, ceil_mode = true },
                    { kernel = 2, padding = { 1, 0 } }, { kernel = 2, padding = 1 },
                    { kernel = { 1, 2 }, stride = { 3, 2 } }, { kernel = 3, stride = 2, padding = 1 },
                    { kernel = 2, stride = 1 }, { kernel = 2, dilation = { 2, 1 } } }
  for _, dtype in ipairs { "bfloat16", "float16", "float32", "float64" } do
    for i, size in ipairs(sizes) do
      pg.manual_seed(i)
      local x = pg.randn(size):mul(3):round():to(dtype) -- with equal ones, 0 and -0
      x[{ 1, 1, 1 }] = -1 / 0
      x[{ 1, 1, 2, 3 }] = 0 / 0
      x[{ 1, 1, 2, 9 }] = 1 / 0
      local views = { x, x:permute(1, 3, 4, 2):contiguous():permute(1, 4, 2, 3) }
      for _, options in ipairs(windows) do
        local fits = size[3] >= 3 or type(options.kernel) == "table" and options.kernel[1] == 1
        for _, v in ipairs(fits and views or {}) do
          local full = (pg.max_pool2d(v:detach():requires_grad_(), options)):detach()
          local lean = pg.no_grad(function() return (pg.max_pool2d(v, options)) end)
          t.equal(lean.dtype, dtype)
          t.ok(lean.shape == full.shape)
          local same = lean:eq(full):logical_and(lean:signbit():eq(full:signbit()))
          t.ok(same:logical_or(lean:isnan():logical_and(full:isnan())):all():item(),
               ("%s, size %d, kernel %s"):format(dtype, i, tostring(options.kernel)))
        end
      end
    end
  end
end)
