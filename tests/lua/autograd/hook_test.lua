-- SPDX-License-Identifier: Apache-2.0
-- Hooks on tensors, t:hook(fn), and gradients that computed tensors keep, t:retain_grad().

local pg = require "perigee"
local native = require "perigee.native"

local function f64(list) return pg.tensor(list, { dtype = "float64", requires_grad = true }) end

-- fn raises, and the message holds every text.
local function raises(t, fn, ...)
  local err = t.raises(fn)
  for _, text in ipairs { ... } do
    t.ok(err:find(text, 1, true), ("%q is not in: %s"):format(text, tostring(err)))
  end
end

test("hook: shown once, when all uses of a computed tensor have been added up", function(t)
  local x, seen = f64 { 1, 2 }, {}
  local y = x * 2
  y:hook(function(g) seen[#seen + 1] = g:totable() end);
  ((y * 3) + y:pow(2) + y):sum():backward()
  t.equal(seen, { { 8, 12 } }) -- 3 + 2 y + 1
  t.equal(x.grad:totable(), { 16, 24 })
end)

test("hook: a leaf's is called before accumulation, and what it returns is added", function(t)
  local x, seen = f64 { 1, 2 }, {}
  x:hook(function(g)
    seen[#seen + 1] = { g:totable(), x.grad and x.grad:totable() or false }
    return g * 10
  end);
  (x * 2 + x * 3):sum():backward();
  (x * 2):sum():backward()
  t.equal(seen, { { { 5, 5 }, false }, { { 2, 2 }, { 50, 50 } } })
  t.equal(x.grad:totable(), { 70, 70 })
end)

test("hook: a leaf's is called behind the oldest of its uses, while older nodes wait", function(t)
  local a, b, x, seen = f64 { 2 }, f64 { 3 }, f64 { 5 }, {}
  local function note(name) return function(g) seen[#seen + 1] = name .. " " .. g:item() end end
  a:hook(note "a")
  b:hook(note "b")
  local y = x * a -- the oldest, and the first of a's two uses
  y:hook(note "y")
  local z = y * b
  z:hook(note "z");
  (z * a):sum():backward()
  t.equal(seen, { "z 2", "b 20", "y 6", "a 60" }) -- 6 x + z
  t.equal(x.grad:item(), 12)
end)

test("hook: several are called in order, each sees what the one before made of it; handles take them away", function(t)
  local x, seen = f64 { 1 }, {}
  local function note(name, factor)
    return function(g)
      seen[#seen + 1] = { name, g:item() }
      return factor and g * factor or nil
    end
  end
  local a, b, c = x:hook(note("a", 2)), x:hook(note("b")), x:hook(note("c", 5));
  (x * 3):sum():backward()
  t.equal(seen, { { "a", 3 }, { "b", 6 }, { "c", 6 } })
  t.equal(x.grad:item(), 30)
  a:remove()
  a:remove() -- once more does nothing
  c.remove()
  seen, x.grad = {}, nil;
  (x * 3):sum():backward()
  t.equal({ seen, x.grad:item() }, { { { "b", 3 } }, 3 })
  b:remove()
  seen = {};
  (x * 3):sum():backward()
  t.equal(seen, {})
end)

test("hook: one may take itself, or the next, away, and set others for the next pass", function(t)
  local x, seen = f64 { 1 }, {}
  local own, second
  own = x:hook(function()
    seen[#seen + 1] = "first"
    own:remove()
    second:remove()
    x:hook(function() seen[#seen + 1] = "late" end)
  end)
  second = x:hook(function() seen[#seen + 1] = "second" end)
  x:hook(function() seen[#seen + 1] = "third" end);
  (x * 2):sum():backward()
  t.equal(seen, { "first", "third" });
  (x * 2):sum():backward()
  t.equal(seen, { "first", "third", "third", "late" })
end)

test("hook: of several outputs, only those that a gradient flows into", function(t)
  local x, seen = f64 { 1, 2, 3, 4 }, {}
  local a, b = unpack((x * 1):split(2))
  a:hook(function(g) seen[#seen + 1] = { "a", g:totable() } end)
  b:hook(function(g) seen[#seen + 1] = { "b", g:totable() } end);
  (a * 3):sum():backward { retain_graph = true }
  t.equal(seen, { { "a", { 3, 3 } } })
  seen = {};
  ((x * 2):sum() * 0 + (a * b):sum()):backward()
  table.sort(seen, function(p, q) return p[1] < q[1] end)
  t.equal(seen, { { "a", { 3, 4 } }, { "b", { 1, 2 } } })
end)

test("hook: in pg.grad, of targets and of what leads to them, and of nothing else", function(t)
  local x, w, seen = f64 { 2 }, f64 { 5 }, {}
  local y = x * w
  x:hook(function() seen[#seen + 1] = "x" end)
  w:hook(function() seen[#seen + 1] = "w" end)
  y:hook(function(g)
    seen[#seen + 1] = "y"
    return g * 10
  end)
  local z = (y * y):sum()
  t.equal(pg.grad(z, x, { retain_graph = true }):item(), 1000) -- 20 * 10 * 5
  t.equal(seen, { "y", "x" })
  seen = {}
  local dy, dx = pg.grad(z, { y, x }, { retain_graph = true })
  t.equal({ dy:item(), dx:item() }, { 200, 1000 })
  t.equal(seen, { "y", "x" })
  seen = {}
  t.equal(pg.grad(z, y):item(), 200)
  t.equal(seen, { "y" })
  t.equal(x.grad == nil and w.grad == nil, true)
end)

test("hook: create_graph differentiates through what it returns", function(t)
  local x = f64 { 3 }
  local y = x * 1
  y:hook(function(g) return g * x end) -- d/dx (y^2) becomes 2 x * x
  local first = pg.grad(y:pow(2):sum(), x, { create_graph = true })
  t.equal(first:item(), 18)
  t.equal(pg.grad(first:sum(), x):item(), 24) -- 6 of the x in the hook, and 6 to y, where it is called again: times 3
  local recorded
  local leaf = f64 { 3 }
  leaf:hook(function(g) recorded = (g * leaf).requires_grad end)
  leaf:pow(2):sum():backward()
  t.equal(recorded, false) -- without create_graph nothing is recorded
end)

test("hook: with retained graphs at each backward, and with pg.tape", function(t)
  local x, calls = f64 { 3 }, 0
  local y = x:exp()
  y:hook(function(g)
    calls = calls + 1
    return g * 2
  end)
  local z = y:pow(2):sum()
  z:backward { retain_graph = true }
  z:backward { retain_graph = true }
  z:backward()
  t.equal(calls, 3)
  raises(t, function() z:backward() end, "retain_graph=true")
  t.equal(calls, 3)
  local got = pg.tape(function(tape)
    local a = x * 2
    a:hook(function(g) return g + 1 end)
    return tape:gradient(a:sum(), { x })[1]
  end)
  t.equal(got:item(), 4)
end)

test("hook: of what was computed in pg.recompute, of its arguments, results and parameters, called once", function(t)
  local x, w, seen = f64 { 2 }, f64 { 3 }, {}
  local function note(name) return function(g) seen[#seen + 1] = { name, g:item() } end end
  x:hook(note "x")
  w:hook(note "w")
  local inner = 0
  local y = pg.recompute(function(a)
    local h = a * w
    h:hook(function(g)
      inner = inner + 1
      return g * 10
    end)
    return h:pow(2)
  end, x)
  y:hook(note "y");
  (y + w):sum():backward()
  t.equal(inner, 1)
  t.equal(seen[1], { "y", 1 })
  table.sort(seen, function(p, q) return p[1] < q[1] end)
  t.equal(seen, { { "w", 241 }, { "x", 360 }, { "y", 1 } }) -- w: 2 h * 10 * x + 1, x: 2 h * 10 * w
  t.equal({ x.grad:item(), w.grad:item() }, { 360, 241 })
end)

test("hook: around pg.custom_grad, and backward inside a hook", function(t)
  local cube = pg.custom_grad {
    forward = function(ctx, x) ctx.x = x return x * x * x end,
    backward = function(ctx, dy) return dy * ctx.x * ctx.x * 3 end,
  }
  local x, seen = f64 { 2 }, {}
  x:hook(function(g) seen[#seen + 1] = g:item() end)
  local y = cube(x)
  y:hook(function(g)
    local inner = f64 { 4 }
    inner:hook(function(h) return h + 1 end)
    pg.enable_grad(function() (inner * 2):sum():backward() end)
    return g * inner.grad
  end)
  y:sum():backward()
  t.equal(seen, { 36 })
  t.equal(x.grad:item(), 36)
end)

test("hook: in a graph it records into g:gradients", function(t)
  local g = pg.graph(function(g)
    local x = g:placeholder { "x", shape = { 2 }, dtype = "float64" }
    local w = g:variable { "w", shape = { 2 }, dtype = "float64", init = "ones" }
    local y = x * w
    y:hook(function(dy) return dy * 10 end)
    w:hook(function(dw) return dw + 1 end)
    return { loss = y:pow(2):sum() }
  end)
  local dw = g:gradients("loss", { "w" })[1]
  t.equal(pg.Session { g }:run(dw, { x = pg.tensor({ 1, 2 }, { dtype = "float64" }) }):totable(), { 21, 81 })
  raises(t, function()
    pg.graph(function(h)
      local w = h:variable { "w", shape = { 2 }, init = "ones" }
      return (w * 2):retain_grad()
    end)
  end, "retain_grad", "tensor of a graph")
end)

test("hook: errors name the hook and the line, and leave nothing behind", function(t)
  local x = f64 { 1, 2 }
  local y = x * 2
  local function with(fn)
    local handle = y:hook(fn)
    return function()
      local ok, err = pcall(function() (y * y):sum():backward() end)
      handle:remove()
      if not ok then error(err, 0) end
    end
  end
  raises(t, with(function() return pg.zeros { 3 } end), "hook_test.lua:", "the hook set at ",
           "returned float32 {3} on " .. pg.device(), "expected float64 {2} on " .. pg.device())
  raises(t, with(function() return pg.zeros { 2 } end),
           ("returned float32 {2} on %s; expected float64 {2} on %s"):format(pg.device(), pg.device()))
  raises(t, with(function() return 1 end), "returned number 1; expected a tensor or nil")
  raises(t, with(function(g) g:mul_(2) end), "modified its gradient in place")
  raises(t, with(function(g) g:free() return g end), "closed by t:free()")
  raises(t, with(function() error("mine") end), "hook_test.lua:", "mine")
  raises(t, with(function(g) return g:matmul(g, g) end), "hook_test.lua:", "matmul")
  t.equal(x.grad, nil)
  t.equal(pg.is_grad_enabled(), true)
  y:sum():backward()
  t.equal(x.grad:totable(), { 2, 2 })
  raises(t, function() pg.zeros { 2 }:hook(print) end, "hook: this tensor does not require gradients")
  raises(t, function() pg.no_grad(function() return x * 2 end):hook(print) end, "does not require gradients")
  raises(t, function() x:hook(1) end, "hook", "function", "number 1")
  raises(t, function() x:hook() end, "hook", "fn")
end)

test("hook: is of the tensor as it was when it was set, before writes into it", function(t)
  local x, seen = f64 { 1, 2 }, {}
  local y = x * 1
  y:hook(function(g) seen[#seen + 1] = { "before", g:totable() } end)
  y:mul_(3)
  y:hook(function(g) seen[#seen + 1] = { "after", g:totable() } end)
  y[1] = 0
  y:sum():backward()
  t.equal(seen, { { "after", { 0, 1 } }, { "before", { 0, 3 } } })
  t.equal(x.grad:totable(), { 0, 3 })
end)

test("hook: parameters keep theirs when their layer moves to another dtype", function(t)
  local layer, calls = pg.nn.Linear { 2, 1 }, 0
  layer.weight:hook(function(g)
    calls = calls + 1
    t.equal(g.dtype, "float64")
  end)
  layer:to("float64")
  layer(pg.ones({ 1, 2 }, { dtype = "float64" })):sum():backward()
  t.equal(calls, 1)
end)

test("hook: a yield in it passes through", function(t)
  local x = f64 { 2 }
  x:hook(function(g)
    coroutine.yield("paused")
    return g * 3
  end)
  local co = coroutine.wrap(function()
    (x * 2):sum():backward()
    return "done"
  end)
  t.equal(co(), "paused")
  t.equal(pg.is_grad_enabled(), true);
  (x:detach():requires_grad_() * 2):sum():backward()
  t.equal(co(), "done")
  t.equal(x.grad:item(), 6)
end)

test("hook: goes with its tensor, and 100,000 on temporaries leave nothing", function(t)
  native.handles.reclaim()
  local before, bytes = native.custom.alive(), pg.memory.stats().live
  local x = f64 { 1, 2 }
  for i = 1, 100000 do
    local y = x * 2
    y:hook(function(g) return g * i end)
    if i % 1000 == 0 then
      local held = y:exp()
      held:hook(function(g) return g + held end) -- holds itself, until backward is through
      held:sum():backward()
    end
  end
  native.handles.reclaim()
  native.handles.reclaim()
  x.grad = nil
  t.equal(native.custom.alive() - before, 0)
  t.ok(pg.memory.stats().live - bytes < 4096)
end)

test("retain_grad: .grad of a computed tensor, added up as a leaf's", function(t)
  local x = f64 { 1, 2 }
  local y = x * 2
  t.equal(y.grad, nil)
  t.ok(y:retain_grad() == y)
  y:retain_grad() -- twice is once
  local z = y:pow(2):sum()
  z:backward { retain_graph = true }
  t.equal(y.grad:totable(), { 4, 8 })
  t.ok(y.grad == y.grad)
  z:backward { retain_graph = true }
  t.equal(y.grad:totable(), { 8, 16 })
  y:zero_grad()
  t.equal(y.grad, nil)
  pg.grad(z, x) -- passes it, too
  t.equal(y.grad:totable(), { 4, 8 })
  y.grad = pg.ones({ 2 }, { dtype = "float64" })
  t.equal(y.grad:totable(), { 1, 1 })
  raises(t, function() y.grad = pg.ones { 3 } end, "expected float64 [2]")
end)

test("retain_grad: after hooks, after writes, of leaves, of views, with histories", function(t)
  local x = f64 { 1, 2 }
  local y = (x * 2):retain_grad()
  y:hook(function(g) return g * 10 end)
  y:pow(2):sum():backward()
  t.equal(y.grad:totable(), { 40, 80 })
  local written = (x * 2):retain_grad()
  written:mul_(3)
  written:pow(2):sum():backward()
  t.equal(written.grad:totable(), { 12, 24 }) -- of what it holds now
  local leaf = f64 { 1 }
  leaf:retain_grad();
  (leaf * 2):sum():backward()
  t.equal(leaf.grad:item(), 2)
  local base = x * 1
  local view = base[{ { 1, 1 } }]:retain_grad();
  (view * 5):sum():backward()
  t.equal(view.grad:totable(), { 5 })
  local kept = (x * x):retain_grad()
  kept:pow(2):sum():backward { create_graph = true }
  t.equal(kept.grad.requires_grad, true)
  t.equal(pg.grad(kept.grad:sum(), x):totable(), { 4, 8 })
  raises(t, function() pg.zeros { 1 }:retain_grad() end, "retain_grad: this tensor does not require gradients")
  raises(t, function() (x * 2).grad = x:detach() end, "retain_grad")
end)
