-- SPDX-License-Identifier: Apache-2.0
-- The lines that a profile gives operators are the same whether LuaJIT compiles the script or not.

local pg = require "perigee"

local random -- of the test that runs: integers from 1 to n, the same in every run of it

local function seeded(seed)
  local state = seed
  return function(n)
    state = (state * 16807) % 2147483647
    return state % n + 1
  end
end

-- How many operators a profile of fn has, by name, line and (unless without_layers) layer.
local function count(fn, without_layers)
  local p, counts = pg.profile { fn, roofline = false }, {}
  for _, r in ipairs(p.records) do
    if r.kind == "op" then
      local key = ("%s at %s in %s"):format(r.name, (r.line or "?"):match "[^/]*$",
                                              not without_layers and r.layer or "-")
      counts[key] = (counts[key] or 0) + 1
    end
  end
  return counts, p.lost
end

-- fn's counts with the compiler and without it, which are to be the same.
local function compare(t, make, without_layers)
  if not jit.status() then t.skip "LuaJIT's compiler is off" end
  if t.device and t.device ~= "cpu" then t.skip "of the processor" end
  local compiled, lost = count(make(), without_layers)
  jit.off()
  local ok, interpreted = pcall(function() return (count(make(), without_layers)) end)
  jit.on()
  if not ok then error(interpreted, 0) end
  t.equal(lost, 0)
  t.equal(compiled, interpreted)
  t.ok(next(compiled))
  for key in pairs(compiled) do t.ok(not key:find "%?", key) end
end

local x = pg.rand { 3 }

test("profile lines: several in one loop", function(t)
  compare(t, function()
    return function()
      for _ = 1, 500 do
        local y = x + 1
        y = y * 2
        y = y - x
        y:neg()
      end
    end
  end)
end)

test("profile lines: a function called from several, also as the last thing that one does", function(t)
  compare(t, function()
    local function square(v) return v * v end
    local function sum_of_squares(v)
      local s = square(v)
      return s:sum()
    end
    return function()
      for _ = 1, 300 do
        square(x)
        sum_of_squares(x)
        square(sum_of_squares(x))
      end
    end
  end)
end)

test("profile lines: recursion, and functions given to others", function(t)
  compare(t, function()
    local function deep(n, v)
      if n == 0 then return v end
      local w = deep(n - 1, v:exp())
      return w + n
    end
    local function each(n, fn)
      for i = 1, n do fn(i) end
    end
    return function()
      for i = 1, 60 do deep(i % 7, x) end
      each(300, function(i)
        if i % 3 == 0 then x:sin() end
        return x:cos()
      end)
    end
  end)
end)

test("profile lines: functions of Perigee's own that call operators, from several lines", function(t)
  compare(t, function()
    return function()
      for _ = 1, 300 do
        pg.mse_loss(x, x)
        pg.mse_loss(x, -x)
        pg.cat { x, x }
        pg.sum(x)
      end
      for i = 1, 300 do
        if i % 2 == 0 then pg.cat { x, x } else pg.stack { x, x } end
      end
    end
  end)
end)

test("profile lines: layers in layers, called from several lines", function(t)
  compare(t, function()
    local Block = pg.nn.class "Block"
    function Block:init() self.fc = pg.nn.Linear { 3, 3 } end
    function Block:forward(v)
      v = self.fc(v)
      v = v * 2
      return v:tanh()
    end
    local net = pg.nn.Sequential { Block {}, Block {}, pg.nn.ReLU {} }
    local block = Block {}
    local batch = pg.rand { 2, 3 }
    return function()
      for i = 1, 200 do
        net(batch)
        block(batch)
        if i % 5 == 0 then block(batch) end
      end
    end
  end)
end)

test("profile lines: coroutines that stop in the middle of a layer", function(t)
  compare(t, function()
    local Slow = pg.nn.class "Slow"
    function Slow:forward(v)
      v = v + 1
      coroutine.yield(v)
      return v * 2
    end
    local layer = Slow {}
    local function twice(v)
      for _ = 1, 2 do v = v:abs() end
      return v
    end
    return function()
      for _ = 1, 120 do
        local co = coroutine.wrap(function()
          twice(x)
          return layer(x)
        end)
        twice(co())
        co()
        twice(x)
      end
    end
  end)
end)

test("profile lines: traces that are thrown away meanwhile", function(t)
  compare(t, function()
    return function()
      for i = 1, 400 do
        x:exp()
        if i % 90 == 0 then jit.flush() end
        x:log()
      end
    end
  end)
end)

test("profile lines: with gradients and an optimizer", function(t)
  compare(t, function()
    pg.manual_seed(1)
    local model = pg.nn.Sequential { pg.nn.Linear { 3, 4 }, pg.nn.Tanh {}, pg.nn.Linear { 4, 1 } }
    local opt = pg.optim.SGD(model:parameters(), { lr = 0.1 })
    local batch = pg.rand { 2, 3 }
    return function()
      for _ = 1, 150 do
        opt:zero_grad()
        local loss = model(batch):mean()
        loss:backward()
        opt:step()
      end
    end
  end)
end)

-- A script of functions that call each other, operators, functions given to functions, and layers, in loops.
local function draw_script()
  local text = { "local x, Layer = ...", "local f = {}" }
  local function add(line) text[#text + 1] = line end
  local operators = { "x:exp()", "x + 1", "x * x", "-x", "x:sum()", "x:reshape { 3, 1 }", "x[1]", "x - 2" }
  local functions = 4 + random(4)
  for i = 1, functions do
    add(("f[%d] = function(n)"):format(i))
    for _ = 1, random(4) do
      local kind, callee = random(9), i > 1 and random(i - 1) or nil
      if kind <= 4 or not callee then
        add(("local _ = %s"):format(operators[random(#operators)]))
      elseif kind == 5 then
        add(("if n %% %d == 0 then f[%d](n) end"):format(random(4), callee))
      elseif kind == 6 then
        add(("for i = 1, n %% %d do f[%d](i) end"):format(random(4) + 1, callee))
      elseif kind == 7 then
        add(("Layer(x, f[%d], n)"):format(callee))
      elseif kind == 8 then
        add(("coroutine.wrap(f[%d])(n)"):format(callee))
      else
        add(("f[%d](n)"):format(callee))
      end
    end
    if i > 1 and random(3) == 1 then add(("return f[%d](n)"):format(random(i - 1))) end
    add "end"
  end
  add(("return function() for n = 1, 150 do f[%d](n) f[%d](n) end end"):format(functions, random(functions)))
  return table.concat(text, "\n")
end

test("profile lines: scripts drawn by a seed", function(t)
  for seed = 1, tonumber(os.getenv "PERIGEE_LINES" or 25) do
    random = seeded(seed * 7919)
    local text = draw_script()
    local Layer = pg.nn.class "Layer"
    function Layer:forward(v, fn, n)
      fn(n)
      local w = v + 1
      return w
    end
    local layer = Layer {}
    local ok, problem = pcall(compare, t, function()
      return assert(loadstring(text, "@drawn.lua"))(x, function(...) return layer(...) end)
    end, text:find "coroutine" ~= nil) -- one that a layer resumes is of that layer to compiled code alone
    if not ok then error(("seed %d: %s\n%s"):format(seed, tostring(problem), text), 0) end
  end
end)
