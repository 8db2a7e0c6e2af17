-- SPDX-License-Identifier: Apache-2.0
-- Graphs that use eager tensors and sizes of several names: gradients, writes, feeds, fetches.

local pg = require "perigee"
local nn = pg.nn

local function leaf(...) return pg.randn({ ... }, { requires_grad = true }) end

-- The gradients of loss(x) by eager parameters, in a graph and eagerly.
local function check(t, name, loss, x, parameters, shape)
  local g = pg.graph(function(g) return { loss = loss(g:placeholder { "x", shape = shape or x.shape }) } end)
  local queries, session = g:gradients("loss", parameters), pg.Session { g }
  local want = { pg.grad(loss(x), parameters) }
  for i in ipairs(parameters) do
    local got = session:run(queries[i], { x = x })
    t.equal(got.shape, want[i].shape)
    t.ok(pg.allclose(got, want[i], { rtol = 1e-5, atol = 1e-5 }), ("%s, parameter %d"):format(name, i))
  end
end

test("gradients by eager tensors", function(t)
  pg.manual_seed(5)
  local linear, w, b = nn.Linear { 4, 4 }, leaf(4), leaf(1, 2)
  check(t, "Linear", function(x) return linear(x):square():sum() end, pg.randn { 3, 4 }, linear:parameters(),
        { "n", 4 })
  check(t, "broadcast", function(x) return (x * b + x):square():sum() end, pg.randn { 3, 2 }, { b }, { "n", 2 })
  check(t, "reshape", function(x) return (x * w:reshape(2, 2)):sum() end, pg.randn { 2, 2 }, { w })
  check(t, "slice", function(x) return (x * w[{ { 2, 3 } }]):sum() end, pg.randn { 2, 2 }, { w })
  check(t, "made of it", function(x) return (x * (w:exp() * 3):reshape(2, 2):t()):sum() end, pg.randn { 2, 2 }, { w })
  local function of_all(name, layer, x)
    check(t, name, function(y)
      y = layer(y)
      return (y:square() * pg.arange(x:numel()):reshape(x.shape)):sum()
    end, x, layer:parameters())
  end
  of_all("GroupNorm", nn.GroupNorm { 2, 4 }, pg.randn { 2, 4, 3 })
  of_all("InstanceNorm2d", nn.InstanceNorm2d { 4, affine = true }, pg.randn { 2, 4, 3, 2 })
  of_all("MultiheadAttention", nn.MultiheadAttention { 4, 2 }, pg.randn { 2, 3, 4 })
  of_all("TransformerEncoderLayer", nn.TransformerEncoderLayer { 4, 2, 8, dropout = 0 }, pg.randn { 2, 3, 4 })
end)

test("a graph refuses a value that was changed since its gradient needs it", function(t)
  local w, message = leaf(2), "mul.*modified in place"
  t.raises(function()
    pg.graph(function(g)
      local y = w * w
      pg.no_grad(function() w:add_(1) end)
      return { d = pg.grad((g:placeholder { "x", shape = { 2 } } * y):sum(), { w }) }
    end)
  end, message)
end)

test("sizes of two names that meet are equal, or the run is refused", function(t)
  local g = pg.graph(function(g)
    local x, z = g:placeholder { "x", shape = { "n" } }, g:placeholder { "z", shape = { "m" } }
    return { gx = pg.grad((x * z):square():sum(), { x }) }
  end)
  local session = pg.Session { g }
  t.equal(session:run("gx", { x = pg.tensor { 1, 2 }, z = pg.tensor { 3, 4 } }), { 18, 64 })
  t.raises(function() session:run("gx", { x = pg.tensor { 1 }, z = pg.tensor { 3, 4, 5 } }) end,
           "mul: gave %[3%], but n is 1 in this run")
end)

test("a write does not reach another copy on the same device", function(t)
  local other = pg.device() == "cpu" and "sim:0" or "cpu"
  local g = pg.graph(function(g)
    local x = g:placeholder { "x", shape = { 2 } }
    local a = x:to(other)
    a:add_(5)
    return { a = a:cpu(), b = x:to(other):cpu() }
  end)
  local r = pg.Session { g }:run({ "a", "b" }, { x = pg.ones { 2 } })
  t.equal(r.a, { 6, 6 })
  t.equal(r.b, { 1, 1 })
end)

test("one of several outputs is fed", function(t)
  local g = pg.graph(function(g)
    local v, i = g:placeholder { "x", shape = { 4 } }:topk(2)
    return { v = v, i = i, y = v * 10 }
  end)
  local r = pg.Session { g }:run({ "y", "i", "v" }, { x = pg.tensor { 1, 2, 3, 4 }, v = pg.tensor { 7, 8 } })
  t.equal(r.y, { 70, 80 })
  t.equal(r.v, { 7, 8 })
  t.equal(r.i, { 3, 2 })
end)

test("what is fetched twice is there twice", function(t)
  local g = pg.graph(function(g)
    local y = g:placeholder { "x", shape = { 2 } } + 1
    return { a = y, b = y }
  end)
  local r = pg.Session { g }:run({ "a", "b" }, { x = pg.zeros { 2 } })
  r.a:fill_(7)
  t.equal(r.b, { 1, 1 })
end)
