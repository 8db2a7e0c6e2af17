-- SPDX-License-Identifier: Apache-2.0
-- Recurrent layers, whose gradients Lua computes, in steps under pg.compile: the same bits as without it, and planned.

local tests = (debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or ".") .. "/../.."
package.path = tests .. "/?.lua;" .. package.path

local pg = require "perigee"
local native = require "perigee.native"
local nn, optim = pg.nn, pg.optim

local STEPS = 12
local numbers = require("steps").numbers

local function trace(make, compiled)
  pg.manual_seed(11)
  local f, watched = make()
  local step, seen = compiled and pg.compile(f) or f, {}
  for i = 1, STEPS do
    local rest, result = {}, numbers { step(i) }
    for k, w in ipairs(watched) do rest[k] = { numbers(w), w.grad and numbers(w.grad) or "no gradient" } end
    seen[i] = { result, rest }
  end
  return seen, step
end

local same = require("steps").same_by(test, trace, STEPS)

local function planned(t, s, step) t.ok(s.hits >= 2 * (STEPS - 4) and s.eager <= 1, step:explain()) end

local function with_head(layer, width)
  local head = nn.Linear(width, 3)
  local params = {}
  for _, m in ipairs { layer, head } do for _, p in ipairs(m:parameters()) do params[#params + 1] = p end end
  return head, params
end

-- Steps of training; tail(step, h): what else a step does with the states that the layer answers.
local function training(make_layer, width, options)
  options = options or {}
  return function()
    local layer = make_layer()
    local head, params = with_head(layer, width)
    local opt = optim.Adam(params, { lr = 1e-2 })
    return function(i)
      opt:zero_grad()
      local y, h = layer(pg.randn { 2, 5, 4 })
      local loss = head(y):pow(2):mean()
      if options.before then options.before(i, loss, y, h, params) end
      loss:backward()
      if options.clip then optim.clip_grad_norm_(params, 0.1) end
      opt:step()
      return loss, options.results and options.results(y, h)
    end, params
  end
end

local KINDS = {
  { "an RNN", function() return nn.RNN(4, 6) end, 6 },
  { "an RNN with relu", function() return nn.RNN(4, 6, { nonlinearity = "relu" }) end, 6 },
  { "a GRU", function() return nn.GRU(4, 6) end, 6 },
  { "an LSTM", function() return nn.LSTM(4, 6) end, 6 },
  { "an LSTM with a projection", function() return nn.LSTM(4, 6, { proj_size = 3 }) end, 3 },
  { "two layers of an LSTM in both directions, with dropout",
    function() return nn.LSTM(4, 6, { num_layers = 2, bidirectional = true, dropout = 0.3 }) end, 12 },
  { "two layers of a GRU in both directions", function()
    return nn.GRU(4, 6, { num_layers = 2, bidirectional = true })
  end, 12 },
}
for _, kind in ipairs(KINDS) do
  same(kind[1], training(kind[2], kind[3]), planned)
  same(kind[1] .. ", clipped gradients", training(kind[2], kind[3], { clip = true }), planned)
end

local function lstm() return nn.LSTM(4, 6) end
same("states that are returned", training(lstm, 6, { results = function(_, h) return h end }), planned)
same("a loss that is read before backward", training(lstm, 6, { before = function(_, loss) loss:item() end }))
same("a loss that is read in some steps", training(lstm, 6, {
  before = function(i, loss) if i % 3 == 0 then loss:item() end end }))
same("other operators before backward in some steps", training(lstm, 6, {
  before = function(i, _, y) if i > 5 and i % 2 == 0 then y:detach():tanh() end end }))

for _, kind in ipairs { "LSTM", "GRU" } do
  same("a packed " .. kind, function()
    local layer = nn[kind](4, 6)
    local head, params = with_head(layer, 6)
    local opt = optim.SGD(params, { lr = 0.1 })
    return function()
      opt:zero_grad()
      local packed = nn.utils.pack_padded_sequence(pg.randn { 3, 5, 4 }, { 5, 3, 2 })
      local y = layer(packed)
      local loss = head(y.data):pow(2):mean()
      loss:backward()
      opt:step()
      return loss
    end, params
  end)
  same("a " .. kind .. " under autocast", function()
    local layer = nn[kind](4, 6)
    local head, params = with_head(layer, 6)
    local opt = optim.SGD(params, { lr = 0.1 })
    return function()
      opt:zero_grad()
      local loss = pg.amp.autocast({ dtype = "bfloat16" }, function()
        return nn.mse_loss(head((layer(pg.randn { 2, 5, 4 }))), pg.zeros { 2, 5, 3 })
      end)
      loss:backward()
      opt:step()
      return loss
    end, params
  end, function(t, s, step) t.ok(s.hits >= STEPS - 4, step:explain()) end)
end

same("a history that nobody goes through", function()
  local layer, other = lstm(), lstm()
  local head, params = with_head(layer, 6)
  local opt = optim.SGD(params, { lr = 0.1 })
  return function()
    opt:zero_grad()
    local x = pg.randn { 2, 5, 4 }
    local kept = other(x)
    local loss = head((layer(x))):pow(2):mean()
    loss:backward()
    opt:step()
    return loss, kept
  end, params
end)

same("a history that nobody goes through, kept in some steps", function()
  local layer = lstm()
  local head, params = with_head(layer, 6)
  local opt = optim.SGD(params, { lr = 0.1 })
  return function(i)
    opt:zero_grad()
    local y = layer(pg.randn { 2, 5, 4 })
    local other = y:square():sum()
    if i % 3 ~= 0 then other:free() end
    local loss = head(y):pow(2):mean()
    loss:backward({ retain_graph = i % 3 == 0 })
    if i % 3 == 0 then other:backward() end
    opt:step()
    return loss
  end, params
end)
same("a history that nobody goes through, returned by some steps", function()
  local layer = lstm()
  local head, params = with_head(layer, 6)
  local opt = optim.SGD(params, { lr = 0.1 })
  return function(i)
    opt:zero_grad()
    local y = layer(pg.randn { 2, 5, 4 })
    local other = pg.tensor({ 1, 2, 3, 4, 5, 6 }):requires_grad_():square() * 2
    if i % 3 ~= 0 then other:free() end
    local loss = head(y):pow(2):mean()
    loss:backward()
    opt:step()
    return loss, i % 3 == 0 and other or nil
  end, params
end)

same("two backward passes in a step, gradients added up", function()
  local layer = nn.GRU(4, 6)
  local head, params = with_head(layer, 6)
  local opt = optim.SGD(params, { lr = 0.1 })
  return function()
    opt:zero_grad()
    local total = pg.tensor(0)
    for _ = 1, 2 do
      local loss = head((layer(pg.randn { 2, 5, 4 }))):pow(2):mean()
      loss:backward()
      total = total + loss:detach()
    end
    opt:step()
    return total
  end, params
end, function(t, s, step) t.ok(s.hits >= 3 * (STEPS - 4), step:explain()) end)

same("truncated backward through time: states go from step to step", function()
  local layer = lstm()
  local head, params = with_head(layer, 6)
  local opt = optim.SGD(params, { lr = 0.1 })
  local h, c = pg.zeros { 1, 2, 6 }, pg.zeros { 1, 2, 6 }
  return function()
    opt:zero_grad()
    local y, last_h, last_c = layer(pg.randn { 2, 5, 4 }, h, c)
    local loss = head(y):pow(2):mean()
    loss:backward()
    opt:step()
    h:copy_(last_h:detach())
    c:copy_(last_c:detach())
    return loss
  end, params
end)

test("what the way back of a planned step would have needed is let go of", function(t)
  local make = training(lstm, 6)
  local f = make()
  local step = pg.compile(f)
  for i = 1, 20 do step(i) end
  pg.memory.collect()
  local nodes, live = native.custom.alive(), native.memory_stats(0).live
  for i = 1, 200 do step(i) end
  pg.memory.collect()
  t.ok(native.custom.alive() <= nodes + 1, native.custom.alive())
  t.ok(native.memory_stats(0).live <= live + 4096, native.memory_stats(0).live - live)
end)

test("a weight that is written to before backward is told, in every call", function(t)
  local layer, bad = lstm(), false
  local opt = optim.SGD(layer:parameters(), { lr = 0.1 })
  local step = pg.compile(function()
    opt:zero_grad()
    local loss = layer(pg.ones { 2, 5, 4 }):pow(2):mean()
    if bad then pg.no_grad(function() layer.weight_hh_l0:mul_(2) end) end
    loss:backward()
    opt:step()
    return loss
  end)
  for _ = 1, 4 do step() end
  bad = true
  for _ = 1, 3 do t.raises(function() step() end, "was modified in place before backward") end
  bad = false
  for _ = 1, 4 do t.ok(step():item() >= 0) end
end)

test("an error between a layer and its backward leaves what eager code leaves", function(t)
  local function losses(compile)
    pg.manual_seed(5)
    local layer, fails = lstm(), false
    local opt = optim.SGD(layer:parameters(), { lr = 0.1 })
    local step = compile(function()
      opt:zero_grad()
      local y = layer(pg.randn { 2, 5, 4 })
      if fails then error "no" end
      local loss = y:pow(2):mean()
      loss:backward()
      opt:step()
      return loss
    end)
    local list = {}
    for i = 1, 12 do
      fails = i % 4 == 0
      local ok, result = pcall(step)
      list[i] = ok and result:item() or tostring(result):match "no$"
    end
    return list
  end
  t.equal(losses(pg.compile), losses(function(f) return f end))
end)

test("another backward behind one for which memory ran out is that other one", function(t)
  local layer, x = lstm(), pg.randn { 2, 5, 4 }
  local step = pg.compile(function(fails)
    for _, p in ipairs(layer:parameters()) do p.grad = nil end
    local y = layer(x)
    local first, second = y:sum(), y:mean()
    if fails then native.fail_allocations(0, 1) end
    local ok = pcall(first.backward, first)
    native.fail_allocations(0)
    if not ok then second:backward() end
    return ok
  end)
  for _ = 1, 5 do t.ok(step(false)) end
  t.ok(step:stats().hits > 0, step:explain())
  t.ok(not step(true))
  local got = layer.weight_hh_l0.grad:totable()
  layer.weight_hh_l0.grad = nil
  layer(x):mean():backward()
  t.equal(got, layer.weight_hh_l0.grad:totable())
end)
