-- SPDX-License-Identifier: Apache-2.0
-- Mixed precision: autocast, policies, loss scaling.

local pg = require "perigee"
local amp, nn, optim = pg.amp, pg.nn, pg.optim

local INF = 1 / 0

local function leaf(shape)
  local x = pg.randn(shape)
  x.requires_grad = true
  return x
end

test("numeric classes: products low, exponentials and sums wide, the rest as given", function(t)
  local x, w = pg.randn { 4, 8 }, pg.randn { 3, 8 }
  amp.autocast({ dtype = "bfloat16" }, function()
    local y = pg.linear(x, w)
    t.equal(y.dtype, "bfloat16")
    t.equal(x:matmul(w:transpose(1, 2)).dtype, "bfloat16")
    t.equal(y:exp().dtype, "float32")
    t.equal(y:sum().dtype, "float32")
    t.equal(y:softmax(2).dtype, "float32")
    t.equal(nn.cross_entropy(y, pg.tensor({ 0, 1, 2, 0 }, { dtype = "int64" })).dtype, "float32")
    t.equal(y:relu().dtype, "bfloat16")
    t.equal(nn.mse(y, y).dtype, "float32")
    t.equal(nn.MSELoss {}(y, y).dtype, "float32")
    t.equal((y + x[{ {}, { 1, 3 } }]).dtype, "float32")
    t.equal((y + y).dtype, "bfloat16")
    t.equal(pg.cat({ y, x }, { axis = 2 }).dtype, "float32")
    t.equal(x.dtype, "float32")
    local index = pg.zeros { 4, 3, dtype = "int64" }
    t.equal(x:scatter_add { index, y, axis = 1 }.dtype, "float32")
    t.equal(y:scatter_add { index, x[{ {}, { 1, 3 } }], axis = 1 }.dtype, "float32")
  end)
  t.equal(pg.linear(x, w).dtype, "float32")
  t.equal(nn.mse(x:to("bfloat16"), x:to("bfloat16")).dtype, "bfloat16")
  amp.autocast({ dtype = "float16" }, function() t.equal(pg.linear(x, w).dtype, "float16") end)
  amp.autocast("bf16", function() t.equal(pg.linear(x, w).dtype, "bfloat16") end)
end)

test("float64 and integers are left as they are", function(t)
  local x = pg.randn({ 3, 3 }, { dtype = "float64" })
  amp.autocast({}, function()
    t.equal(x:matmul(x).dtype, "float64")
    t.equal(pg.ones { 2, 2, dtype = "int64" }:matmul(pg.ones { 2, 2, dtype = "int64" }).dtype, "int64")
    t.equal(x:exp().dtype, "float64")
  end)
end)

test("in-place forms keep their dtype", function(t)
  amp.autocast({}, function()
    local x = pg.ones({ 3 }, { dtype = "bfloat16" })
    x:exp_()
    t.equal(x.dtype, "bfloat16")
  end)
end)

test("scopes nest, by device type, and enabled = false switches off", function(t)
  local function dtype() -- of a product on the processor, whatever device is in force
    return pg.device("cpu", function()
      local x = pg.randn { 4, 4 }
      return x:matmul(x).dtype
    end)
  end
  amp.autocast({ device = "cuda" }, function() t.equal(dtype(), "float32") end)
  amp.autocast({ device = "cpu" }, function()
    t.equal(dtype(), "bfloat16")
    t.ok(amp.is_autocast_enabled "cpu")
    amp.autocast({ enabled = false }, function()
      t.equal(dtype(), "float32")
      t.ok(not amp.is_autocast_enabled "cpu")
      amp.autocast({ device = "cpu:0", dtype = "f16" }, function() t.equal(dtype(), "float16") end)
      t.equal(dtype(), "float32")
    end)
    amp.autocast({ device = "cuda", dtype = "float16" }, function() t.equal(dtype(), "bfloat16") end)
    amp.autocast({ device = "cpu", enabled = false }, function() t.equal(dtype(), "float32") end)
    t.equal(amp.get_autocast_dtype "cpu", "bfloat16")
  end)
  t.equal(dtype(), "float32")
  t.equal(amp.get_autocast_dtype "cpu", nil)
end)

test("results pass through, errors restore, coroutines carry their own scope", function(t)
  local x = pg.randn { 2, 2 }
  t.equal({ select("#", amp.autocast({}, function(a, b) return nil, a, b, nil end, 1, 2)) }, { 4 })
  local ok, e = pcall(amp.autocast, {}, function() error({ mine = true }) end)
  t.ok(not ok and e.mine)
  t.equal(x:matmul(x).dtype, "float32")
  local co = coroutine.wrap(function()
    amp.autocast({}, function()
      coroutine.yield(x:matmul(x).dtype)
      coroutine.yield(x:matmul(x).dtype)
    end)
  end)
  t.equal(co(), "bfloat16")
  t.equal(x:matmul(x).dtype, "float32")
  amp.autocast({ dtype = "float16" }, function()
    t.equal(co(), "bfloat16")
    t.equal(x:matmul(x).dtype, "float16")
  end)
  co()
  t.equal(x:matmul(x).dtype, "float32")
end)

test("mistakes are named", function(t)
  t.raises(function() amp.autocast({ dtype = "float32" }, function() end) end, "bfloat16 or float16")
  t.raises(function() amp.autocast({ dtyp = "f16" }, function() end) end, "dtyp")
  t.raises(function() amp.autocast({ device = "tpu" }, function() end) end, "tpu")
  t.raises(function() amp.autocast({}) end, "needs a function")
  t.raises(function() amp.autocast(pg.ones { 1 }, function() end) end, "options")
  t.raises(function() amp.policy "mixed_bfloat" end, "mixed_bfloat16")
end)

test("gradients come back in the parameter's dtype, and are those of the low precision", function(t)
  pg.manual_seed(1)
  local x, w, b = leaf { 5, 8 }, leaf { 3, 8 }, leaf { 3 }
  local function run(scoped)
    for _, p in ipairs { x, w, b } do p:zero_grad() end
    local function forward() return (pg.linear(x, w, b) * 2):square():sum() end
    local loss = scoped and amp.autocast({}, forward) or forward()
    loss:backward()
    return loss:item(), { x.grad, w.grad, b.grad }
  end
  local exact, wide = run(false)
  wide = { wide[1]:clone(), wide[2]:clone(), wide[3]:clone() }
  local loss, low = run(true)
  t.ok(loss ~= exact)
  t.close(loss, exact, 0.02 * math.abs(exact))
  for i, g in ipairs(low) do
    t.equal(g.dtype, "float32")
    local error = (g - wide[i]):abs():max():item() / wide[i]:abs():max():item()
    t.ok(error > 0 and error < 0.03, "relative error " .. error)
  end
end)

test("backward inside of the scope gives the same as outside", function(t)
  pg.manual_seed(2)
  local x, w = leaf { 4, 6 }, leaf { 3, 6 }
  local function loss() return pg.linear(x, w):softmax(2):square():mean() end
  amp.autocast({}, function() loss():backward() end)
  local inside = { x.grad:totable(), w.grad:totable() }
  x:zero_grad()
  w:zero_grad()
  amp.autocast({}, loss):backward()
  t.equal({ x.grad:totable(), w.grad:totable() }, inside)
end)

-- How many nodes of a graph are casts.
local function casts_of(text)
  local n = 0
  for line in text:gmatch("[^\n]+") do
    if line:find(" = cast(", 1, true) then n = n + 1 end
  end
  return n
end

test("a parameter is cast once a scope, and again after a write", function(t)
  local w = leaf { 4, 4 }
  local x = pg.ones({ 2, 4 }, { dtype = "bfloat16" })
  amp.autocast({}, function()
    local before = pg.linear(x, w):to("float32"):totable()
    pg.no_grad(function() w:mul_(2) end)
    local after = pg.linear(x, w):to("float32"):totable()
    for i, row in ipairs(before) do
      for k, v in ipairs(row) do t.equal(after[i][k], 2 * v) end
    end
    -- without gradients first: the cast that was kept must not cut the history of a later one
    pg.no_grad(function() return pg.linear(x, w) end)
    local y = pg.linear(x, w)
    t.ok(y.requires_grad)
    y:sum():backward()
    t.ok(w.grad ~= nil)
  end)
  local g = pg.graph(function(g)
    local p = g:variable { "w", shape = { 4, 4 }, init = "ones" }
    local a = g:placeholder { "a", shape = { 2, 4 }, dtype = "bfloat16" }
    return amp.autocast({}, function() return { y = pg.linear(pg.linear(a, p), p) } end)
  end)
  t.equal(casts_of(g:text()), 1)
end)

test("without gradients a parameter's cast is kept for later scopes, until a write", function(t)
  pg.manual_seed(3)
  local w, x = leaf { 64, 512 }, pg.randn { 2, 512 }
  local function run()
    return pg.no_grad(function() return amp.autocast({}, function() return pg.linear(x, w) end) end)
  end
  local expected = pg.linear(x:to("bfloat16"), w:to("bfloat16"))
  local before = pg.memory.stats(x.device).allocations
  t.equal(run():totable(), expected:totable())
  local first = pg.memory.stats(x.device).allocations - before
  for _ = 1, 4 do t.equal(run():totable(), expected:totable()) end
  before = pg.memory.stats(x.device).allocations
  run()
  t.ok(pg.memory.stats(x.device).allocations - before < first, "the weight was cast again")
  amp.autocast({ dtype = "float16" }, function()
    pg.no_grad(function() t.equal(pg.linear(x, w):totable(), pg.linear(x:to("f16"), w:to("f16")):totable()) end)
  end)
  pg.no_grad(function() w:mul_(2) end)
  for _ = 1, 3 do t.equal(run():totable(), (expected * 2):totable()) end
  pg.no_grad(function() w[1]:fill_(0) end) -- through a view
  t.equal(run()[{ {}, 1 }]:totable(), { 0, 0 })
  -- and with gradients there is a history
  local y = amp.autocast({}, function() return pg.linear(x, w) end)
  t.ok(y.requires_grad)
end)

test("kept casts are let go of by empty_cache, and when memory is short", function(t)
  t.uncompiled()
  local device = "sim:0"
  local function live() return pg.memory.stats(device).live end
  local x = pg.ones({ 2, 1024 }, { device = device })
  local w = pg.full({ 1024, 1024 }, 0.5, { device = device, requires_grad = true })
  local function run()
    return pg.scope(function()
      return pg.no_grad(function() return amp.autocast({}, function() return pg.linear(x, w):sum():item() end) end)
    end)
  end
  run()
  local with = live()
  pg.memory.empty_cache()
  t.ok(with - live() >= 2 ^ 21, "empty_cache let go of " .. with - live())
  t.equal(run(), 2 * 1024 * 512)
  local limit = live() + 2 ^ 20 -- room for half of what the next tensor wants
  pg.config.memory_limit(device, limit)
  local ok, y = pcall(pg.zeros, { 2 ^ 21, dtype = "uint8", device = device })
  pg.config.memory_limit(device, 0)
  t.ok(ok, y)
  t.equal(run(), 2 * 1024 * 512)
end)

test("accumulated over two backward passes in one scope", function(t)
  local w, x = leaf { 3, 4 }, pg.randn { 2, 4 }
  amp.autocast({}, function()
    pg.linear(x, w):sum():backward()
    local once = w.grad:clone()
    pg.linear(x, w):sum():backward()
    t.close(w.grad:totable(), (once * 2):totable(), 1e-6)
  end)
end)

test("second order under autocast", function(t)
  pg.manual_seed(4)
  local x, w = leaf { 3, 5 }, leaf { 4, 5 }
  local function second(scoped)
    local function loss() return pg.linear(x, w):tanh():square():sum() end
    local value = scoped and amp.autocast({}, loss) or loss()
    local gx, gw = pg.grad(value, { x, w }, { create_graph = true })
    local penalty = gx:square():sum() + gw:square():sum()
    return pg.grad(penalty, { x, w })
  end
  local ax, aw = second(false)
  local bx, bw = second(true)
  for _, pair in ipairs { { ax, bx }, { aw, bw } } do
    t.equal(pair[2].dtype, "float32")
    t.ok((pair[1] - pair[2]):abs():max():item() < 0.05 * pair[1]:abs():max():item())
  end
end)

test("graphs under autocast compute what eager code computes", function(t)
  pg.manual_seed(5)
  local weight, x = pg.randn { 3, 6 }, pg.randn { 4, 6 }
  local kept = leaf { 3, 3 }
  local g = pg.graph(function(g)
    local a = g:placeholder { "a", shape = { "n", 6 }, dtype = "float32" }
    local w = g:variable { "w", shape = { 3, 6 }, init = weight }
    return amp.autocast({}, function()
      local y = pg.linear(a, w):relu()
      return { y = y, z = pg.linear(y, kept), loss = y:exp():mean() }
    end)
  end)
  local session = pg.Session { g }
  local function eager()
    return amp.autocast({}, function()
      local y = pg.linear(x, weight):relu()
      return y, pg.linear(y, kept), y:exp():mean()
    end)
  end
  local y, z, loss = eager()
  local r = session:run({ "y", "z", "loss" }, { a = x })
  t.equal(r.y.dtype, "bfloat16")
  t.equal(r.y:totable(), y:totable())
  t.equal(r.z:totable(), z:totable())
  t.equal(r.loss:totable(), loss:totable())
  -- an eager tensor is taken in by identity: a later run casts what it holds then
  pg.no_grad(function() kept:mul_(3) end)
  local _, again = eager()
  t.equal(session:run("z", { a = x }):totable(), again:totable())
  -- and a run inside of a scope is not cast twice
  amp.autocast({ dtype = "float16" }, function() t.equal(session:run("y", { a = x }).dtype, "bfloat16") end)
  local gradient = g:gradients("loss", { "w" })
  t.ok(gradient ~= nil)
end)

test("policies: layers compute low, keep float32 parameters, losses are wide", function(t)
  local model = nn.Sequential { nn.Linear { 4, 8 }, nn.ReLU {}, nn.Linear { 8, 2 } }
  local x, y = pg.randn { 6, 4 }, pg.tensor({ 0, 1, 0, 1, 0, 1 }, { dtype = "int64" })
  t.equal(amp.policy(), "float32")
  t.equal(amp.policy "mixed_bfloat16", "float32")
  local ok, e = pcall(function()
    local out = model(x)
    t.equal(out.dtype, "bfloat16")
    t.equal(x:matmul(x:transpose(1, 2)).dtype, "float32")
    local loss = nn.cross_entropy(out, y)
    t.equal(loss.dtype, "float32")
    t.equal(nn.CrossEntropyLoss {}(out, y).dtype, "float32")
    loss:backward()
    for _, p in ipairs(model:parameters()) do t.equal({ p.dtype, p.grad.dtype }, { "float32", "float32" }) end
    amp.autocast({ enabled = false }, function() t.equal(model(x).dtype, "float32") end)
    t.equal(amp.policy("float32", function() return model(x).dtype end), "float32")
    t.equal(model(x).dtype, "bfloat16")
  end)
  amp.policy "float32"
  if not ok then error(e, 0) end
  t.equal(model(x).dtype, "float32")
  t.equal(amp.policy("mixed_float16", function() return model(x).dtype end), "float16")
  t.equal(amp.policy(), "float32")
end)

-- ---- loss scaling ----

-- PyTorch's schedule, from its formula.
local function schedule(o, overflows)
  local scale, tracker, list = o.init_scale, 0, {}
  for i, overflow in ipairs(overflows) do
    if overflow then
      scale, tracker = scale * o.backoff_factor, 0
    else
      tracker = tracker + 1
      if tracker == o.growth_interval then scale, tracker = scale * o.growth_factor, 0 end
    end
    list[i] = scale
  end
  return list
end

test("the scale grows and backs off as PyTorch's, and skipped steps change nothing and do not count", function(t)
  local o = { init_scale = 16, growth_factor = 4, backoff_factor = 0.25, growth_interval = 2 }
  local overflows = { false, true, false, false, false, true, true, false, false, false, false }
  local expected = schedule(o, overflows)
  for _, make in ipairs { function(p) return optim.Adam { p, lr = 0.1 } end,
                          function(p) return optim.SGD { p, lr = 0.1, momentum = 0.9 } end } do
    local w, plain = pg.tensor({ 1, 2 }, { requires_grad = true }), pg.tensor({ 1, 2 }, { requires_grad = true })
    local scaler, optimizer, reference = amp.GradScaler(o), make { w }, make { plain }
    for i, overflow in ipairs(overflows) do
      optimizer:zero_grad()
      reference:zero_grad()
      scaler:scale((w * w):sum()):backward()
      if overflow then pg.no_grad(function() w.grad[1] = i % 2 == 0 and INF or 0 / 0 end) end
      scaler:step(optimizer)
      t.equal(scaler:update(), overflow)
      t.equal(scaler:get_scale(), expected[i])
      if not overflow then
        (plain * plain):sum():backward()
        reference:step()
      end
      t.close(w:totable(), plain:totable(), 1e-6)
      t.equal(optimizer.groups[1].steps, reference.groups[1].steps)
    end
  end
end)

test("unscale: once, before clipping; the order of calls is checked", function(t)
  local w = pg.tensor({ 3, 4 }, { requires_grad = true })
  local optimizer, scaler = optim.SGD { { w }, lr = 1 }, amp.GradScaler { init_scale = 1024 }
  t.raises(function() scaler:update() end, "no gradients were checked")
  t.raises(function() scaler:step(optimizer) end, "has a gradient")
  scaler = amp.GradScaler { init_scale = 1024 }
  scaler:scale((w * w):sum() / 2):backward()
  t.equal(w.grad:totable(), { 3072, 4096 })
  scaler:unscale(optimizer)
  t.equal(w.grad:totable(), { 3, 4 })
  t.raises(function() scaler:unscale(optimizer) end, "already been unscaled")
  t.close(optim.clip_grad_norm_({ w }, 1):item(), 5)
  scaler:step(optimizer)
  t.close(w:totable(), { 2.4, 3.2 }, 1e-5)
  t.raises(function() scaler:step(optimizer) end, "already stepped")
  t.raises(function() scaler:unscale(optimizer) end, "already stepped")
  t.equal(scaler:update(), false)
  t.raises(function() scaler:update() end, "no gradients were checked")
  t.raises(function() scaler:step {} end, "needs an optimizer")
  local half = pg.tensor({ 1 }, { dtype = "float16", requires_grad = true })
  local other = optim.SGD { { half }, lr = 1 }
  half:sum():backward()
  t.raises(function() scaler:step(other) end, "float16")
end)

test("two optimizers and one scaler; state; off", function(t)
  local a, b = pg.tensor({ 1 }, { requires_grad = true }), pg.tensor({ 1 }, { requires_grad = true })
  local first, second = optim.SGD { { a }, lr = 1 }, optim.SGD { { b }, lr = 1 }
  local scaler = amp.GradScaler { init_scale = 8 }
  scaler:scale(a:sum() * 2 + b:sum()):backward()
  pg.no_grad(function() b.grad[1] = INF end)
  scaler:step(first)
  scaler:step(second)
  t.equal(scaler:update(), true)
  t.equal({ a:item(), b:item(), scaler:get_scale() }, { -1, 1, 4 })
  local copy = amp.GradScaler {}:load_state(scaler:state())
  t.equal(copy:state(), scaler:state())
  t.raises(function() copy:load_state {} end, "was off")
  for key, value in pairs { scale = -1, growth_factor = 1, backoff_factor = 2, growth_interval = 0.5,
                            growth_tracker = -1 } do
    local state = scaler:state()
    state[key] = value
    t.raises(function() copy:load_state(state) end, "GradScaler:load_state: " .. key)
  end
  local off = amp.GradScaler { enabled = false }
  local loss = a:sum()
  t.equal({ off:scale(loss) == loss, off:get_scale(), off:update() }, { true, 1, false })
  off:step(first)
  t.raises(function() amp.GradScaler { growth_factor = 1 } end, "above 1")
  t.raises(function() amp.GradScaler { backoff_factor = 1 } end, "between 0 and 1")
  t.raises(function() amp.GradScaler { init_scal = 1 } end, "init_scale")
  scaler:scale(a:sum()):backward()
  scaler:step(first)
  scaler:update(32)
  t.equal(scaler:get_scale(), 32)
  t.equal(#scaler:scale { loss, loss }, 2)
end)

test("optimizers written in Lua: no autocast in a step, and a skipped one changes nothing", function(t)
  local function run(scoped, overflow)
    local w = pg.arange(12):to("float32"):reshape(3, 4) / 10
    w.requires_grad = true
    local optimizer, scaler = optim.Muon { { w }, lr = 0.1 }, amp.GradScaler { init_scale = 4 }
    scaler:scale(w:square():sum()):backward()
    if overflow then pg.no_grad(function() w.grad[{ 1, 1 }] = INF end) end
    if scoped then amp.autocast({}, scaler.step, scaler, optimizer) else scaler:step(optimizer) end
    t.equal(scaler:update(), overflow or false)
    return w:totable()
  end
  t.equal(run(true), run(false))
  t.equal(run(false, true), (pg.arange(12):to("float32"):reshape(3, 4) / 10):totable())
end)

test("on an asynchronous device the flag is read there, and scopes follow the type of device", function(t)
  local there = false
  for _, d in ipairs(pg.devices()) do there = there or d.name == "sim:0" end
  if not there then t.skip("no sim:0") end
  for _, make in ipairs { function(p) return optim.Adam { p, lr = 0.1 } end,
                          function(p) return optim.SGD { p, lr = 0.1, momentum = 0.9 } end } do
    local w = pg.tensor({ 1, 2, 3 }):to("sim:0")
    w.requires_grad = true
    local optimizer, scaler = make { w }, amp.GradScaler { init_scale = 8 }
    local seen = {}
    for i, overflow in ipairs { true, false, true } do
      optimizer:zero_grad()
      scaler:scale(w:square():sum()):backward()
      if overflow then pg.no_grad(function() w.grad[2] = INF end) end
      scaler:unscale(optimizer)
      optim.clip_grad_norm_({ w }, 100)
      scaler:step(optimizer)
      t.equal(scaler:update(), overflow)
      seen[i] = w:cpu():totable()
    end
    t.equal(seen[1], { 1, 2, 3 })
    t.ok(seen[2][1] < 1 and seen[2][2] < 2)
    t.equal(seen[3], seen[2])
    t.equal({ optimizer.groups[1].steps[1], scaler:get_scale() }, { 1, 2 })
  end
  local function dtype_on(device)
    return pg.device(device, function()
      local x = pg.randn { 2, 2 }
      return x:matmul(x).dtype
    end)
  end
  amp.autocast({ device = "sim" }, function()
    t.equal({ dtype_on "sim:0", dtype_on "cpu" }, { "bfloat16", "float32" })
  end)
end)

test("sums onto products follow the product's dtype under autocast", function(t)
  local x, a, b = pg.randn { 2, 3 }, pg.randn { 2, 4 }, pg.randn { 4, 3 }
  pg.amp.autocast("bfloat16", function()
    t.equal({ pg.addmm(x, a, b).dtype, pg.addmm(x, a, b, { beta = 0 }).dtype }, { "bfloat16", "bfloat16" })
    t.equal(pg.baddbmm(x:unsqueeze(1), a:unsqueeze(1), b:unsqueeze(1), { alpha = 2 }).dtype, "bfloat16")
  end)
  t.equal({ pg.addmm(x, a, b).dtype, pg.addmm(x:double(), a, b).dtype }, { "float32", "float64" })
end)
