-- SPDX-License-Identifier: Apache-2.0
-- Gradients that Lua computes: pg.custom_grad and pg.recompute; and pg.detect_anomaly.

local pg = require "perigee"
local native = require "perigee.native"
local nn = pg.nn

local cube = pg.custom_grad {
  forward = function(ctx, x) ctx.x = x return x * x * x end,
  backward = function(ctx, dy) return dy * ctx.x * ctx.x * 3 end,
}

-- fn raises, and the message holds the text.
local function raises(t, fn, text)
  local err = t.raises(fn)
  t.ok(err:find(text, 1, true), ("%q is not in: %s"):format(text, tostring(err)))
end

local function f64(list) return pg.tensor(list, { dtype = "float64", requires_grad = true }) end

test("custom_grad: forward is not recorded, backward is what was given", function(t)
  local x = f64 { 1, 2, 3 }
  local y = cube(x)
  t.equal(y:totable(), { 1, 8, 27 })
  t.equal(y.requires_grad, true)
  y:sum():backward()
  t.equal(x.grad:totable(), { 3, 12, 27 })
  local wrong = pg.custom_grad {
    forward = function(_, a) return a * 1 end, backward = function(_, dy) return dy * 5 end,
  }
  t.equal(pg.grad(wrong(x):sum(), x):totable(), { 5, 5, 5 })
end)

test("custom_grad: gradients of gradients, to the third order", function(t)
  pg.gradcheck(cube, { f64 { 0.5, -1.5 } })
  local x = f64 { 2 }
  local first = pg.grad(cube(x):sum(), x, { create_graph = true })
  local second = pg.grad(first:sum(), x, { create_graph = true })
  local third = pg.grad(second:sum(), x)
  t.equal({ first:item(), second:item(), third:item() }, { 12, 12, 6 })
end)

test("custom_grad: an output kept in ctx has its history in gradients of gradients", function(t)
  local exp = pg.custom_grad {
    forward = function(ctx, x) ctx.y = x:exp() return ctx.y end,
    backward = function(ctx, dy) return dy * ctx.y end,
  }
  local x = f64 { 0.5 }
  local g = pg.grad(exp(x):sum(), x, { create_graph = true })
  local h = pg.grad(g:sum(), x, { create_graph = true })
  t.equal(math.abs(pg.grad(h:sum(), x):item() - math.exp(0.5)) < 1e-12, true)
end)

test("custom_grad: several inputs and outputs, arguments of other kinds, ctx.needed", function(t)
  local seen
  local f = pg.custom_grad {
    forward = function(ctx, a, factor, b)
      ctx.a, ctx.b, ctx.factor = a, b, factor
      return a * factor, a * b
    end,
    backward = function(ctx, d1, d2)
      seen = { ctx.needed[1], ctx.needed[2] or false, ctx.needed[3] }
      return d1 * ctx.factor + d2 * ctx.b, nil, d2 * ctx.a
    end,
  }
  local a, b = f64 { 2, 3 }, f64 { 5, 7 }
  local y1, y2 = f(a, 10, b)
  local da, db = pg.grad((y1 + y2 * 2):sum(), { a, b })
  t.equal({ da:totable(), db:totable() }, { { 20, 24 }, { 4, 6 } })
  -- The second output unused: zeros flow there.
  local again = f(a, 10, b)
  t.equal(pg.grad(again:sum(), a):totable(), { 10, 10 })
  t.equal(seen, { true, false, false })
end)

test("custom_grad: leaves no node and no context behind", function(t)
  native.handles.reclaim()
  local before = native.custom.alive()
  for _ = 1, 50 do
    local x = f64 { 1 }
    cube(x):sum():backward()
  end
  t.equal(native.custom.alive() - before, 0) -- a backward pass without retain_graph releases what was saved
  for _ = 1, 50 do cube(f64 { 1 }) end
  native.handles.reclaim()
  t.equal(native.custom.alive() - before, 0)
end)

test("custom_grad: no_grad, and inputs that need no gradient, are not recorded", function(t)
  local x = f64 { 1 }
  t.equal(pg.no_grad(cube, x).requires_grad, false)
  t.equal(cube(x:detach()).requires_grad, false)
end)

test("custom_grad: errors name what is wrong", function(t)
  local x = f64 { 1, 2 }
  local function with(backward)
    return pg.custom_grad { forward = function(_, a) return a * 2 end, backward = backward }
  end
  raises(t, function()
    local f = with(function() return pg.zeros({ 3 }, { dtype = "float64" }) end)
    f(x):sum():backward()
  end, "gradient of custom_grad: input 1 got float64 [3]; expected float64 [2]")
  raises(t, function() with(function(_, dy) return dy, dy end)(x):sum():backward() end,
           "backward returned 2 gradients for 1 arguments")
  raises(t, function() with(function() return 1 end)(x):sum():backward() end,
           "backward returned number 1 for argument 1; expected a tensor or nil")
  raises(t, function() pg.custom_grad { forward = function() return 1 end, backward = function() end } (x) end,
           "forward returned number 1; expected tensors")
  raises(t, function() with(function() error("mine", 0) end)(x):sum():backward() end, "mine")
  local y = cube(x)
  y:sum():backward()
  raises(t, function() y:sum():backward() end, "retain_graph=true")
  raises(t, function() pg.custom_grad { forward = function() end } end, "backward")
  -- After an error the pass is gone, and the next one works.
  x.grad = nil
  cube(x):sum():backward()
  t.equal(x.grad:totable(), { 3, 12 })
end)

test("custom_grad: what was modified since forward is refused", function(t)
  local x = f64 { 1, 2 }
  local a = x * 1
  local y = cube(a)
  pg.no_grad(function() a:add_(1) end)
  raises(t, function() y:sum():backward() end, "ctx.x {2} was modified in place since forward")
end)

test("custom_grad: backward inside backward", function(t)
  local outer = pg.custom_grad {
    forward = function(ctx, x) ctx.x = x return x:pow(2) end,
    backward = function(ctx, dy)
      local inner = ctx.x:detach():requires_grad_()
      return pg.enable_grad(function() return pg.grad(cube(inner):sum(), inner) end) * dy -- a gradient on purpose other
    end,
  }
  local x = f64 { 2 }
  outer(x):sum():backward()
  t.equal(x.grad:item(), 12)
end)

test("custom_grad: in a graph", function(t)
  local g = pg.graph(function(g)
    local x = g:placeholder { "x", shape = { 2 }, dtype = "float64" }
    local w = g:variable { "w", shape = { 2 }, dtype = "float64", init = "ones" }
    return { loss = cube(x * w):sum() }
  end)
  local dw = g:gradients("loss", { "w" })[1]
  local got = pg.Session { g }:run(dw, { x = pg.tensor({ 1, 2 }, { dtype = "float64" }) })
  t.equal(got:totable(), { 3, 24 }) -- 3 (x w)^2 x
end)

test("recompute gives the same values and gradients, random numbers included", function(t)
  pg.manual_seed(7)
  local model = nn.Sequential { nn.Linear { 6, 8 }, nn.Tanh {}, nn.Dropout { 0.5 }, nn.Linear { 8, 3 } }
  local x = pg.randn({ 4, 6 }, { requires_grad = true })
  local function run(through)
    pg.manual_seed(11)
    model:zero_grad()
    x.grad = nil
    local loss = through(x):pow(2):sum()
    loss:backward()
    local list = { loss:item(), x.grad:totable() }
    for _, p in ipairs(model:parameters()) do list[#list + 1] = p.grad:totable() end
    list[#list + 1] = pg.rand { 2 }:totable() -- what is drawn afterwards is the same, too
    return list
  end
  t.equal(run(function(a) return pg.recompute(model, a) end), run(model))
end)

test("recompute and custom_grad under autocast", function(t)
  local model = nn.Sequential { nn.Linear { 6, 8 }, nn.Tanh {}, nn.Linear { 8, 3 } }
  local x = pg.randn({ 4, 6 }, { requires_grad = true })
  local function run(through)
    model:zero_grad()
    x.grad = nil
    pg.amp.autocast({ dtype = "bfloat16" }, function() return through(x):to("float32"):pow(2):sum() end):backward()
    local list = { x.grad:totable() }
    for _, p in ipairs(model:parameters()) do list[#list + 1] = p.grad:totable() end
    return list
  end
  t.equal(run(function(a) return pg.recompute(model, a) end), run(model))
  local seen
  local watch = pg.custom_grad {
    forward = function(_, a) return a * 1 end,
    backward = function(_, dy) seen = dy:matmul(dy:transpose(1, 2)).dtype return dy end,
  }
  pg.amp.autocast({ dtype = "bfloat16" }, function() watch(x):sum():backward() end)
  t.equal(seen, "float32")
end)

test("recompute keeps nothing of the way but is nested and differentiated again", function(t)
  local x, w = f64 { 0.3, 0.7 }, f64 { 1.5, -2 }
  local function f(a) return pg.recompute(function(b) return (b * w):sin() * b end, a:exp()) end
  pg.gradcheck(function(a) return f(a) end, { x })
  pg.gradcheck(function(a)
    return (pg.grad(pg.recompute(f, a:requires_grad_()):sum(), a, { create_graph = true }))
  end, { x })
  local direct = pg.grad(((x:exp() * w):sin() * x:exp()):sum(), { w })
  t.equal(pg.grad(f(x):sum(), { w }):totable(), direct:totable())
  t.equal(pg.no_grad(f, x).requires_grad, false)
  raises(t, function() pg.recompute(3) end, "needs a function, got number 3")
end)

test("recompute notices an argument that was written to", function(t)
  local w, x, scale = f64 { 1, 2 }, f64 { 3, 4 }, pg.ones({ 2 }, { dtype = "float64" })
  local inner = x * 1
  local y = pg.recompute(function(a, k) return a * w * k end, inner, scale)
  pg.no_grad(function() inner:add_(1) end)
  raises(t, function() y:sum():backward() end, "recompute: argument 1 {2} was modified in place before backward")
  y = pg.recompute(function(a, k) return a * w * k end, x, scale)
  scale[1] = 5 -- needs no gradient, but takes part
  raises(t, function() y:sum():backward() end, "argument 2 {2} was modified")
  y = pg.recompute(function(a, k) return a * w * k end, x, scale)
  scale:free()
  raises(t, function() y:sum():backward() end, "this tensor was closed by t:free()")
end)

test("custom_grad says that what ctx holds was closed", function(t)
  local kept
  local f = pg.custom_grad {
    forward = function(ctx, x) kept = x + 1; ctx.x = kept; return x * 2 end,
    backward = function(ctx, dy) return dy * ctx.x end,
  }
  local y = f(f64 { 1 })
  kept:free()
  raises(t, function() y:sum():backward() end, "this tensor was closed by t:free()")
end)

test("recompute: memory for time", function(t)
  t.uncompiled()
  local function peak(run)
    local x = pg.ones({ 64, 1024 }, { requires_grad = true })
    native.handles.reclaim()
    pg.synchronize(x.device)
    local before = pg.memory.stats(x.device).live
    local y = run(x)
    pg.synchronize(x.device)
    local kept = pg.memory.stats(x.device).live - before
    y:sum():backward()
    return kept
  end
  local function block(x)
    return pg.scope(function()
      for _ = 1, 6 do x = x:tanh() end
      return x
    end)
  end
  local all, few = peak(block), peak(function(x) return pg.recompute(block, x) end)
  t.equal(few * 3 < all, true)
end)

test("detect_anomaly: what batch norm only reads is no result of its own", function(t)
  local layer = pg.nn.BatchNorm1d { 2 }:eval()
  layer.running_mean:fill_(0 / 0)
  local y = pg.detect_anomaly(function() return layer(pg.ones { 3, 2 }) end)
  t.ok(y:isnan():all():item(), "NaN came in with the statistics")
end)

test("detect_anomaly names the operator that made the first NaN or Inf", function(t)
  local x = pg.tensor { 1, 0, 4 }
  raises(t, function() pg.detect_anomaly(function() local y = (x - 1):log() return y * 2 end) end,
           "log: made NaN of finite numbers: its y float32 [3] has the first at [1]")
  raises(t, function() pg.detect_anomaly(function() local y = 1 / x return y end) end, "made Inf of finite numbers")
  -- What comes from infinities that were put in is not new; what NaN makes of NaN neither.
  pg.detect_anomaly(function()
    local mask = pg.full({ 3 }, -math.huge)
    local y = (x + mask):exp()
    return y, pg.tensor { 0 / 0 } * 2
  end)
  t.equal((1 / x):isfinite():all():item(), false) -- and outside nothing is watched
end)

test("detect_anomaly watches backward, and names the layer", function(t)
  local x = pg.tensor({ 0, 1 }, { requires_grad = true })
  raises(t, function() pg.detect_anomaly(function() x:sqrt():sum():backward() end) end,
           "gradient of sqrt")
  local model = nn.Sequential { nn.Linear { 2, 2 } }
  pg.no_grad(function() model[1].weight:fill_(3e38) end)
  raises(t, function() pg.detect_anomaly(function() local y = model(pg.ones { 1, 2 } * 3) return y end) end,
           "made Inf of finite numbers")
end)

test("backward takes no gradient of a graph; gradients that are asked for may be recorded", function(t)
  local w = pg.ones({ 2 }, { requires_grad = true })
  local given
  local odd = pg.custom_grad {
    forward = function(_, a) return a * 1 end, backward = function() return given end,
  }
  local g = pg.graph(function(g)
    given = g:placeholder { "x", shape = { 2 } }
    raises(t, function() (w * 1):backward(given) end, "the seed is a tensor of a graph")
    for _, options in ipairs { { create_graph = true }, { retain_graph = true } } do
      raises(t, function() odd(w):sum():backward(nil, options) end,
             "gradient of custom_grad: input 1 got a tensor of a graph")
    end
    return { d = pg.grad(w * 3, w, { grad_outputs = given }) }
  end)
  raises(t, function() odd(w):sum():backward() end, "gradient of custom_grad: input 1 got a tensor of a graph")
  t.equal(w.grad, nil)
  t.equal(pg.Session { g }:run("d", { x = pg.tensor { 1, 2 } }), { 3, 6 })
  given = pg.tensor { 5, 7 }
  odd(w):sum():backward()
  t.equal(w.grad, { 5, 7 })
end)
