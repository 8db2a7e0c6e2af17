-- SPDX-License-Identifier: Apache-2.0
-- Scopes of ambient state, memory, coroutines.

local pg = require "perigee"

test("scopes return everything, nils included", function(t)
  local function results(...) return select("#", ...), ... end
  local n, a, b, c = results(pg.no_grad(function(...) return nil, ..., nil end, 7))
  t.equal(n, 3)
  t.ok(a == nil and b == 7 and c == nil)
  n = results(pg.scope(function() end))
  t.equal(n, 0)
end)

test("no_grad is restored on error", function(t)
  t.raises(function() pg.no_grad(function() pg.zeros { -1 } end) end)
  t.ok(pg.is_grad_enabled())
end)

test("pg.scope closes what was made inside", function(t)
  local inner, kept
  local returned, in_table = pg.scope(function()
    inner = pg.ones { 2 }
    kept = pg.keep(inner + 1)
    return inner * 5, { inner * 6 }
  end)
  t.equal(returned, { 5, 5 })
  t.equal(in_table[1], { 6, 6 })
  t.equal(kept, { 2, 2 })
  local err = t.raises(function() return inner + 1 end, "closed by pg.scope at .*scope_test.lua:%d+")
  t.equal(err.code, "failed_precondition")
  t.raises(function() return inner.shape end, "closed")
  t.raises(function() return inner:sum() end, "closed")
  t.equal(tostring(inner), "<closed tensor>")
end)

test("what optimizers, averages and scalers keep outlives the scope that it was made in", function(t)
  local nn, optim = pg.nn, pg.optim
  local function train(model, optimizer, scope)
    for _ = 1, 3 do
      scope(function()
        local function closure()
          optimizer:zero_grad()
          local loss = model(pg.ones { 1, 2 }):square():sum()
          loss:backward()
          return loss
        end
        optimizer:step(closure)
      end)
    end
    return model.weight:totable()
  end
  local function no_scope(fn) return fn() end
  for _, name in ipairs { "SGD", "Adam", "RMSprop", "Adafactor", "LAMB", "LARS", "Muon", "LBFGS" } do
    local model = nn.Linear { 2, 1, bias = false }
    local copy = model:clone()
    local function make(m)
      return optim[name] { { m.weight }, lr = 0.1, momentum = (name == "SGD" or name == "LARS") and 0.9 or nil }
    end
    local optimizer, other = pg.scope(make, model), make(copy)
    t.equal(train(model, optimizer, pg.scope), train(copy, other, no_scope))
    pg.scope(function() other:load_state(optimizer:state()) end)
    t.equal(train(copy, other, no_scope), train(model, optimizer, pg.scope))
  end
end)

test("what is loaded in a scope, and a scaler's flag, outlive it", function(t)
  local nn, optim, amp = pg.nn, pg.optim, pg.amp
  local folder = os.tmpname()
  os.remove(folder)
  local model = nn.Linear { 2, 1 }
  local optimizer, scaler = optim.Adam { model, lr = 0.1 }, amp.GradScaler {}
  local ema = pg.scope(function() return optim.EMA { model } end)
  local function gradients() scaler:scale(model(pg.ones { 1, 2 }):sum()):backward() end
  pg.scope(function()
    gradients()
    scaler:unscale(optimizer)
  end)
  pg.scope(function() scaler:step(optimizer) end)
  t.equal(scaler:update(), false)
  ema:update()
  local manager = pg.CheckpointManager { folder, model = model, optimizer = optimizer, ema = ema }
  manager:save { step = 1 }
  local saved = ema:state()
  pg.scope(function() manager:restore() end)
  os.execute("rm -rf '" .. folder .. "'")
  gradients()
  optimizer:step()
  pg.scope(function() ema:load_state(saved) end)
  ema:update()
  ema:swap()
  t.equal(ema.updates, 2)
end)

test("nested scopes", function(t)
  local a, b
  pg.scope(function()
    a = pg.scope(function()
      b = pg.ones { 1 }
      return b + 1
    end)
    t.equal(a, { 2 })
    t.raises(function() return b + 1 end, "closed")
  end)
  t.raises(function() return a + 1 end, "closed")
end)

test("free", function(t)
  local x = pg.ones { 2 }
  local view = x[1]
  x:free()
  t.raises(function() return x + 1 end, "closed by t:free")
  t.raises(function() x:free() end, "closed")
  t.equal(view, 1)
end)

test("device scope", function(t)
  t.equal(pg.device("cpu", function() return pg.zeros { 1 }.device end), "cpu")
end)

test("coroutines carry their own scopes", function(t)
  local seen = {}
  local co = coroutine.create(function(x)
    local got = pg.no_grad(function(y)
      seen[1] = pg.is_grad_enabled()
      local z = coroutine.yield(y + 1)
      seen[2] = pg.is_grad_enabled()
      return z
    end, x)
    seen[3] = pg.is_grad_enabled()
    return got
  end)
  local _, v = coroutine.resume(co, 1)
  t.equal(v, 2)
  t.ok(pg.is_grad_enabled(), "outside of the coroutine")
  local _, w = coroutine.resume(co, "back")
  t.equal(w, "back")
  t.equal(seen, { false, false, true })
end)

test("a pg.scope in a coroutine logs only its own tensors", function(t)
  local mine
  local co = coroutine.wrap(function()
    pg.scope(function()
      mine = pg.ones { 1 }
      coroutine.yield()
    end)
  end)
  co()
  local outside = pg.ones { 1 }
  co()
  t.equal(outside, { 1 })
  t.raises(function() return mine + 1 end, "closed")
end)

test("dropped tensors are released", function(t)
  local before = pg.memory.stats("cpu").live
  for _ = 1, 2000 do local _ = pg.zeros { 262144 } end
  t.ok(pg.memory.stats("cpu").live - before < 300 * 2 ^ 20, "two gigabytes were dropped")
  pg.memory.collect()
  t.ok(pg.memory.stats("cpu").live - before < 4 * 2 ^ 20)
end)

test("the collector's state is the host's", function(t)
  collectgarbage("stop")
  pg.memory.collect()
  local running = collectgarbage("isrunning")
  collectgarbage("restart")
  t.equal(running, false)
end)

test("many handles, many of them alive", function(t)
  local kept = {}
  for i = 1, 60000 do
    local x = pg.full({ 1 }, i)
    if i % 3 == 0 then kept[#kept + 1] = x end
  end
  t.equal(kept[1], { 3 })
  t.equal(kept[20000], { 60000 })
  t.equal(kept[10000], { 30000 })
end)

local function line_of(fn) return debug.getinfo(fn, "S").linedefined end

test("errors in coroutines inside of scopes name the script's line and the layers around", function(t)
  local x = pg.zeros { 2, 3 }
  local model = pg.nn.Sequential { pg.nn.Linear { 3, 2 } }
  local Net = pg.nn.class "Net"
  function Net:init() self.inner = pg.nn.Linear { 3, 2 } end
  function Net:forward(v) local y = pg.no_grad(self.inner.forward, self.inner, v); return y end
  local net = Net()
  local rows = {
    { function() pg.no_grad(pg.softmax, x, 7) end, "softmax: axis 7" },
    { function() pg.device("cpu", pg.no_grad, pg.softmax, x, 7) end, "softmax: axis 7" },
    { function() pg.scope(pg.matmul, x, x) end, "matmul: x %[2, 3%]" },
    { function() pg.amp.autocast({ dtype = "bfloat16" }, pg.matmul, x, x) end, "matmul: x %[2, 3%]" },
    { function() pg.amp.policy("mixed_bfloat16", function() model(x:t()) end) end, "Sequential.0 %(Linear%): " },
    { function() pg.enable_grad(net.forward, net, x:t()) end, "linear: x %[3, 2%]" },
  }
  for _, row in ipairs(rows) do
    local err = t.raises(function() coroutine.wrap(row[1])() end, row[2])
    t.ok(err.message:find(("scope_test.lua:%d: "):format(line_of(row[1])), 1, true) or
         err.message:find("scope_test.lua:" .. line_of(Net.forward), 1, true), err.message)
    t.ok(err.traceback:find(("scope_test.lua:%d: "):format(line_of(row[1])), 1, true), err.traceback)
  end
  local err = t.raises(function()
    coroutine.wrap(function() pg.amp.policy("mixed_bfloat16", function() net(x:t()) end) end)()
  end)
  t.ok(err.message:find("scope_test.lua:" .. line_of(Net.forward) .. ": Net: ", 1, true), err.message)
end)
