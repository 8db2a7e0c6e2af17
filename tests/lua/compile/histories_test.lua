-- SPDX-License-Identifier: Apache-2.0
-- Histories that leave a compiled function, or begin before a stretch of it.

local pg = require "perigee"
local nn, optim = pg.nn, pg.optim

test("a history of operators whose gradients need no contents leaves a plan", function(t)
  local w = pg.tensor { 1, 2, 3, 4 }
  w.requires_grad = true
  local function fn(x)
    local sum = x + w
    return sum:clone():sum(1), sum - x
  end
  local step, x = pg.compile(fn), pg.tensor { 5, 6, 7, 8 }
  for i = 1, 6 do
    local got, want = {}, {}
    for list, f in pairs { [got] = step, [want] = fn } do
      w.grad = nil
      local a, b = f(x * i)
      list[1], list[2], list[3] = a:totable(), b:totable(), a.requires_grad and b.requires_grad
      b:sum():backward()
      a:square():sum():backward() -- through what the other went through too
      b:sum():backward()
      list[4] = w.grad:totable()
      list[5] = pg.grad((f(x * i)):sum(), { w }):totable()
    end
    t.equal(got, want)
  end
  t.ok(step:stats().hits >= 8, step:explain())
end)

test("a tensor with a history may be used in a later stretch where nothing is recorded", function(t)
  local function run(compile)
    pg.manual_seed(4)
    local model = nn.Linear { 4, 3 }
    local opt = optim.SGD { model:parameters(), lr = 0.1 }
    local step = compile(function()
      opt:zero_grad()
      local logits = model(pg.randn { 8, 4 })
      local loss = nn.cross_entropy(logits, pg.randint(0, 3, { 8 }))
      loss:backward()
      local value = loss:item() -- ends a stretch
      opt:step()
      local best = logits:argmax(2)
      return value, best, pg.no_grad(function() return logits * 2 end), loss:detach() + 1
    end)
    local seen = {}
    for i = 1, 8 do
      local value, best, twice, more = step()
      seen[i] = { value, best:totable(), twice:totable(), more:item(), twice.requires_grad, more.requires_grad,
                  model.weight:detach():totable() }
    end
    return seen, step
  end
  local want = run(function(fn) return fn end)
  local got, step = run(pg.compile)
  t.equal(got, want)
  t.ok(step:stats().hits >= 2 * 4, step:explain())
end)

test("what adds to a history of before is no plan, and the same", function(t)
  local function run(compile)
    pg.manual_seed(4)
    local model = nn.Linear { 4, 3 }
    local opt = optim.SGD { model:parameters(), lr = 0.1 }
    local seen, values = {}, nil
    local step = compile(function()
      opt:zero_grad()
      local hidden = model(pg.randn { 8, 4 })
      values = hidden:sum():item() -- ends a stretch
      local loss = hidden:square():mean()
      loss:backward()
      opt:step()
      return loss
    end)
    for i = 1, 6 do seen[i] = { step():item(), values, model.weight:detach():totable() } end
    return seen
  end
  t.equal(run(pg.compile), run(function(fn) return fn end))
end)
