-- SPDX-License-Identifier: Apache-2.0
-- pg.cond, pg.scan and pg.while_loop in eager code: what they answer, their gradients, and what they refuse.

local pg = require "perigee"

local F64 = { dtype = "float64" }
local function leaf(...) return pg.randn({ ... }, F64):requires_grad_() end

test("cond: only the function that is taken runs, with what follows them", function(t)
  local ran = {}
  local function note(name)
    return function(x, k)
      ran[#ran + 1] = name
      return x * k
    end
  end
  local x = pg.tensor { 1, 2 }
  t.equal(pg.cond(x:sum():gt(2), note "a", note "b", x, 10), { 10, 20 })
  t.equal(pg.cond(x:sum():gt(5):reshape(1, 1), note "a", note "b", x, 3), { 3, 6 })
  t.equal(pg.cond(true, note "c", note "d", x, 1), { 1, 2 })
  t.equal(table.concat(ran), "abc")
end)

test("cond: tables, numbers, layers and gradients", function(t)
  local x = pg.tensor({ 1, 2 }, F64):requires_grad_()
  local y = pg.cond(x:sum():gt(0), function() return { a = x * x, { x:sum(), 5 } } end, function() return x end)
  t.equal(y[1][2]:item(), 5)
  y.a:sum():backward()
  t.equal(x.grad, { 2, 4 })
  local layer = pg.nn.Linear { 2, 3 }
  t.equal(pg.cond(false, layer, layer, pg.ones { 4, 2 }).shape, { 4, 3 })
end)

test("scan: sums, in both directions, with and without outputs", function(t)
  local function add(sum, x) return sum + x, sum + x end
  local last, sums = pg.scan { init = 0, xs = pg.tensor { 1, 2, 3 }, body = add }
  t.equal(last:item(), 6)
  t.equal(sums, { 1, 3, 6 })
  last, sums = pg.scan { init = pg.tensor(10), xs = pg.tensor { 1, 2, 3 }, body = add, reverse = true }
  t.equal(last:item(), 16)
  t.equal(sums, { 16, 15, 13 })
  local doubled, none = pg.scan { init = 1, length = 5, body = function(c, x)
    t.equal(x, nil)
    return c * 2
  end }
  t.equal(doubled:item(), 32)
  t.equal(none, nil)
  local carry, squares = pg.scan { init = {}, xs = pg.arange(4), body = function(c, x) return c, x * x end }
  t.equal(next(carry), nil)
  t.equal(squares, { 0, 1, 4, 9 })
  t.equal(squares.dtype, "int64")
end)

test("scan: tables by position and name", function(t)
  local carry, ys = pg.scan { init = { c = pg.zeros { 2 }, n = 0 }, xs = { pg.ones { 3, 2 }, s = pg.arange(3) },
    body = function(carry, x)
      return { c = carry.c + x[1], n = carry.n + 1 }, { x.s, { carry.c } }
    end }
  t.equal(carry.c, { 3, 3 })
  t.equal(carry.n:item(), 3)
  t.equal(ys[1], { 0, 1, 2 })
  t.equal(ys[2][1], { { 0, 0 }, { 1, 1 }, { 2, 2 } })
end)

test("scan: no steps give outputs of the right shapes", function(t)
  local w, ran = pg.ones { 3, 5 }, 0
  local function body(h, x)
    ran = ran + 1
    return h + x, { (h + x):unsqueeze(1):matmul(w), n = x:gt(0) }
  end
  local last, ys = pg.scan { init = pg.ones { 3 }, xs = pg.zeros { 0, 3 }, body = body }
  t.equal(last, { 1, 1, 1 })
  t.equal(ys[1].shape, { 0, 1, 5 })
  t.equal(ys.n.shape, { 0, 3 })
  t.equal(ys.n.dtype, "bool")
  t.equal(select("#", pg.scan { init = 1, length = 0, body = function(c) return c end }), 2)
  t.raises(function()
    pg.scan { init = 0, length = 0, body = function(c) return c, pg.tensor(c:item()) end }
  end, "scan: there are no steps, .* recording it, which failed: .*item")
end)

local function gru(w, h, x) return (x:matmul(w.x) + h:matmul(w.h)):tanh() * h:sigmoid() end

test("scan and while_loop: gradients are those of the loop written out", function(t)
  pg.manual_seed(3)
  local w, xs, h0 = { x = leaf(3, 4), h = leaf(4, 4) }, leaf(5, 2, 3), leaf(2, 4)
  local leaves = { w.x, w.h, xs, h0 }
  local function by_hand()
    local h, list = h0, {}
    for i = 1, 5 do
      h = gru(w, h, xs[i])
      list[i] = h
    end
    return h:square():sum() + (pg.stack { list }):sin():sum()
  end
  local function by_scan()
    local h, hs = pg.scan { init = h0, xs = xs, body = function(h, x)
      h = gru(w, h, x)
      return h, h
    end }
    return h:square():sum() + hs:sin():sum()
  end
  local function by_while()
    local s = pg.while_loop { state = { h = h0, n = pg.tensor(1), total = pg.tensor(0, F64) },
      cond = function(s) return s.n:le(5) end,
      body = function(s)
        local h = gru(w, s.h, xs[s.n:item()])
        return { h = h, n = s.n + 1, total = s.total + h:sin():sum() }
      end }
    return s.h:square():sum() + s.total
  end
  local want = { pg.grad(by_hand(), leaves) }
  for name, f in pairs { scan = by_scan, while_loop = by_while } do
    local got = { pg.grad(f(), leaves) }
    for i = 1, 4 do t.ok(pg.allclose(got[i], want[i], { rtol = 1e-12, atol = 1e-12 }), name .. i) end
  end
  t.ok(pg.gradcheck(function(a, b, c, d)
    local h, hs = pg.scan { init = d, xs = c, reverse = true, body = function(h, x)
      h = gru({ x = a, h = b }, h, x)
      return h, { h * 2 }
    end }
    return h, hs[1]
  end, leaves))
  local function first(f) return pg.grad(f(), { xs }, { create_graph = true }):square():sum() end
  t.ok(pg.allclose(pg.grad(first(by_scan), { w.h }), pg.grad(first(by_hand), { w.h }), { rtol = 1e-10 }))
end)

test("scan: the gradient of steps that nobody used is zero", function(t)
  local x = pg.ones({ 3, 2 }, F64):requires_grad_()
  local n = 0
  local last = pg.scan { init = pg.zeros({ 2 }, F64), xs = x, body = function(c, v)
    n = n + 1
    return n == 2 and c + v or c * 1
  end }
  last:sum():backward()
  t.equal(x.grad, { { 0, 0 }, { 1, 1 }, { 0, 0 } })
end)

test("while_loop: numbers, booleans, and how long it may go on", function(t)
  local s = pg.while_loop { state = { x = 100, n = 0 }, cond = function(s) return s.x:gt(1) end,
    body = function(s) return { x = s.x / 2, n = s.n + 1 } end }
  t.equal(s.x:item(), 0.78125)
  t.equal(s.n:item(), 7)
  local function twice(x) return x * 2 end
  t.equal(pg.while_loop { state = 1, cond = function() return true end, body = twice, max_iterations = 4 }:item(), 16)
  t.equal(pg.while_loop { state = 1, cond = function() return false end, body = twice }:item(), 1)
  t.equal(pg.while_loop { state = 1, cond = function() return true end, body = twice, max_iterations = 0 }:item(), 1)
end)

local function same(x) return x end

test("cond refuses", function(t)
  local x = pg.tensor { 1, 2 }
  t.raises(function() pg.cond(x:gt(0), same, same) end,
           "eager_test.lua:%d+: cond: the condition must have one element, got {2}")
  t.raises(function() pg.cond(x:sum(), same, same) end, "must be a bool tensor, got float32 %(x:ne")
  t.raises(function() pg.cond(1, same, same) end, "must be a bool tensor of one element, got number 1")
  t.raises(function() pg.cond(true, x, same) end, "the second argument, .* must be a function, got tensor")
  t.raises(function() pg.cond(true, same) end, "the third argument, .* must be a function, got nil")
  t.raises(function() pg.cond(true, function() return x, x end, same) end, "returned 2 values; expected one %(return a")
  t.raises(function() pg.cond(true, function() end, same) end, "cond: the first function returned nothing; expected")
  t.raises(function() pg.cond(false, same, function() return { a = "x" } end) end,
           "what the second function returned%.a is string \"x\"; expected a tensor")
  t.raises(function() pg.cond(false, same, function() return { 1, nil, 3 } end) end, "returned has a hole")
end)

test("scan refuses", function(t)
  local x = pg.tensor { 1, 2 }
  local function keep(c, v) return c, v end
  t.raises(function() pg.scan { init = 0, body = keep } end, "scan: needs xs, .* or length")
  t.raises(function() pg.scan { xs = x, body = keep } end, "scan: argument \"init\" is missing")
  t.raises(function() pg.scan { init = 0, xss = x, body = keep } end, "unknown option \"xss\" %(did you mean \"xs\"")
  t.raises(function() pg.scan { init = 0, length = -1, body = keep } end, "length must be 0 or more, got %-1")
  t.raises(function() pg.scan { init = 0, xs = x, length = 3, body = keep } end, "xs has 2 steps; expected 3")
  t.raises(function() pg.scan { init = 0, xs = { x, a = pg.ones { 3 } }, body = keep } end,
           "xs.a has 3 steps; expected 2")
  t.raises(function() pg.scan { init = 0, xs = x:sum(), body = keep } end, "xs has no axes")
  t.raises(function() pg.scan { init = 0, xs = x, body = function(c) return { c } end } end,
           "eager_test.lua:%d+: scan: the carry that the body returned is {tensor}; expected tensor")
  t.raises(function() pg.scan { init = { h = 0 }, xs = x, body = function(c) return { g = c.h } end } end,
           "the body returned is {g}; expected {h}")
  t.raises(function() pg.scan { init = 0, xs = x, body = function(_, v) return v:eq(0) end } end,
           "the body returned is bool {}; expected float32 {} %(what is handed on keeps")
  t.raises(function() pg.scan { init = 0, xs = x, body = function() return x end } end,
           "is float32 {2}; expected float32 {}")
  local n = 0
  t.raises(function()
    pg.scan { init = 0, xs = x, body = function(c)
      n = n + 1
      return c, pg.ones { n }
    end }
  end, "the output that the body returned is float32 {2}; expected float32 {1} %(each step gives the same")
  n = 0
  t.raises(function()
    pg.scan { init = 0, xs = x, body = function(c)
      n = n + 1
      return c, n == 1 and x or nil
    end }
  end, "returned no output in step 2, but one in the first")
end)

test("while_loop refuses", function(t)
  local function yes() return true end
  t.raises(function() pg.while_loop { state = 0, body = same } end, "argument \"cond\" is missing")
  t.raises(function() pg.while_loop { state = 0, cond = function() return 1 end, body = same } end,
           "eager_test.lua:%d+: while_loop: what cond returned must be a bool tensor of one element, got number 1")
  t.raises(function() pg.while_loop { state = 0, cond = yes, body = function() end } end, "the body returned nothing")
  t.raises(function() pg.while_loop { state = 0, cond = yes, body = function() return pg.ones { 2 } end } end,
           "the body returned is float32 {2}; expected float32 {} %(the state keeps")
  t.raises(function() pg.while_loop { state = 0, cond = yes, body = same, max_iterations = -1 } end,
           "0 or more, got %-1")
end)
