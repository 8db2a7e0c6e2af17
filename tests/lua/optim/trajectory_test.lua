-- SPDX-License-Identifier: Apache-2.0
-- Trainings, optimizers and schedules against PyTorch's (tests/trajectories).

local pg = require "perigee"
local json = require("perigee.native").json
local nn, optim = pg.nn, pg.optim

local folder = debug.getinfo(1, "S").source:match("^@(.*)lua/[^/]*/[^/]*$") .. "trajectories/data/"
local function load(name) return pg.load(folder .. name .. ".safetensors") end
local file = assert(io.open(folder .. "settings.json", "rb"))
local settings = json(file:read("*a"))
file:close()

-- ---- the models of make.py ----

local Block = nn.class("Block")
function Block:init()
  self.norm1, self.norm2 = nn.LayerNorm { 16 }, nn.LayerNorm { 16 }
  for _, name in ipairs { "q", "k", "v", "o" } do self[name] = nn.Linear { 16, 16 } end
  self.up, self.down = nn.Linear { 16, 32 }, nn.Linear { 32, 16 }
  self.head = nn.Linear { 16, 4 }
end
function Block:forward(x)
  local n, t, w, heads = x.shape[1], x.shape[2], 16, 2
  local h = self.norm1(x)
  local function split(y) return y:reshape(n, t, heads, w / heads):transpose(2, 3) end
  local q, k, v = split(self.q(h)), split(self.k(h)), split(self.v(h))
  local scores = (q:matmul(k:transpose(3, 4)) / math.sqrt(w / heads)):softmax(-1)
  x = x + self.o(scores:matmul(v):transpose(2, 3):reshape(n, t, w))
  x = x + self.down(self.up(self.norm2(x)):gelu())
  return self.head(x:mean { axis = 2 })
end

local models = {
  mlp = function()
    return nn.Sequential { nn.Linear { 12, 24 }, nn.ReLU {}, nn.Linear { 24, 16 }, nn.Tanh {}, nn.Linear { 16, 4 } }
  end,
  convnet = function()
    return nn.Sequential { nn.Conv2d { 1, 4, 3, padding = 1 }, nn.BatchNorm2d { 4 }, nn.ReLU {}, nn.MaxPool2d { 2 },
                           nn.Conv2d { 4, 8, 3, padding = 1 }, nn.BatchNorm2d { 8 }, nn.ReLU {}, nn.Flatten {},
                           nn.Linear { 128, 4 } }
  end,
  transformer = function() return Block {} end,
}

-- PyTorch's options in Perigee's words.
local function options_of(given)
  local o = {}
  for key, value in pairs(given) do o[key] = value end
  if o.etas then
    o.etaminus, o.etaplus, o.step_min, o.step_max = o.etas[1], o.etas[2], o.step_sizes[1], o.step_sizes[2]
    o.etas, o.step_sizes = nil, nil
  end
  return o
end

local function relative(got, want) return math.abs(got - want) / math.max(math.abs(want), 1e-30) end

local limits = { float32 = 1e-4, float64 = 1e-9 }
local losses = load "losses"
for name, build in pairs(models) do
  for optimizer, entry in pairs(settings.models) do
    for dtype, limit in pairs(limits) do
      test(("100 steps of the %s with %s in %s follow PyTorch"):format(name, optimizer, dtype), function(t)
        local tensors = load(name)
        local x, y = tensors["batches.x"]:to(dtype), tensors["batches.y"]
        tensors["batches.x"], tensors["batches.y"] = nil, nil
        local model = build()
        model:load_state(tensors)
        model:to(dtype)
        local o = options_of(entry[2])
        o[1] = model:parameters()
        local stepper = optim[entry[1]](o)
        local expected = losses[("%s.%s.%s"):format(name, optimizer, dtype)]:totable()
        for step = 1, 100 do
          local b = (step - 1) % 5 + 1
          stepper:zero_grad()
          local loss = nn.cross_entropy(model(x[b]), y[b])
          loss:backward()
          stepper:step()
          local off = relative(loss:item(), expected[step])
          t.ok(off <= limit, ("step %d: %.17g, expected %.17g"):format(step, loss:item(), expected[step]))
        end
      end)
    end
  end
end

-- ---- every optimizer, on a function of six numbers ----

local function parameters()
  return pg.tensor({ 1, -2, 0.5 }, { dtype = "float64", requires_grad = true }),
         pg.tensor({ { 0.3 }, { -1.2 }, { 2 } }, { dtype = "float64", requires_grad = true })
end

local scale = { 1, 3, 0.2 }
local function descend(optimizer, a, b, steps)
  local k = pg.tensor(scale, { dtype = "float64" })
  for _ = 1, steps do
    optimizer:zero_grad()
    local value = (k * a * a):sum() + (b * 3):sin():sum() + (b * b):sum() + a[1] * b[{ 2, 1 }]
    value:backward()
    optimizer:step()
  end
end

local shown = load "optimizers"
for number, variant in ipairs(settings.variants) do
  local name, options = variant[1], variant[2]
  test(("%s, variant %d, makes PyTorch's steps"):format(name, number), function(t)
    local a, b = parameters()
    local o = options_of(options)
    o[1] = { a, b }
    local optimizer, expected = optim[name](o), shown[("%s.%d"):format(name, number)]:totable()
    local done = 0
    for i, step in ipairs(settings.shown) do
      descend(optimizer, a, b, step - done)
      done = step
      local got = pg.cat({ a:detach(), b:detach():flatten() }):totable()
      for j, v in ipairs(expected[i]) do
        t.ok(math.abs(got[j] - v) <= 1e-12 * math.max(1, math.abs(v)),
             ("step %d, number %d: %.17g, expected %.17g"):format(step, j, got[j], v))
      end
    end
  end)

  test(("%s, variant %d, goes on exactly from its state"):format(name, number), function(t)
    local o = options_of(options)
    local a, b = parameters()
    o[1] = { a, b }
    local first = optim[name](o)
    descend(first, a, b, 3)
    local c, d = a:detach():clone():requires_grad_(), b:detach():clone():requires_grad_()
    local second = optim[name] { { c, d } }
    second:load_state(first:state())
    descend(first, a, b, 3)
    descend(second, c, d, 3)
    t.equal({ c:totable(), d:totable() }, { a:totable(), b:totable() })
  end)
end

-- ---- those that look at whole matrices ----

local function matrices(vector)
  local function leaf(values) return pg.tensor(values, { dtype = "float64", requires_grad = true }) end
  local list = { leaf { { 0.5, -0.3 }, { 1.2, 0.8 }, { -0.7, 0.1 } },
                 leaf { { 0.9, -1.1, 0.2, 0.4 }, { 0.3, 0.6, -0.5, 1 } } }
  if vector then list[3] = leaf { 0.2, -0.4, 0.6, 1 } end
  return list
end

local function descend_matrices(optimizer, params, steps)
  local function closure()
    optimizer:zero_grad()
    local y, squares = params[1]:matmul(params[2]), 0
    if params[3] then y = y + params[3] end
    for _, p in ipairs(params) do squares = squares + p:square():sum() end
    local loss = y:sin():sum() + squares * 0.1
    loss:backward()
    return loss
  end
  for _ = 1, steps do optimizer:step(closure) end
end

local function flat(params)
  local parts = {}
  for i, p in ipairs(params) do parts[i] = p:detach():flatten() end
  return pg.cat(parts):totable()
end

local matrix_steps = load "large"
for number, variant in ipairs(settings.large) do
  local name, options = variant[1], variant[2]
  test(("%s, %d, makes the steps of its formula, and goes on from its state"):format(name, number), function(t)
    local params, o = matrices(name ~= "Muon"), options_of(options)
    o[1] = params
    local optimizer, expected, done = optim[name](o), matrix_steps[("%s.%d"):format(name, number)]:totable(), 0
    for i, step in ipairs(settings.shown) do
      descend_matrices(optimizer, params, step - done)
      done = step
      t.close(flat(params), expected[i], 1e-9)
      if step == 3 then
        local copies = {}
        for k, p in ipairs(params) do copies[k] = p:detach():clone():requires_grad_() end
        o[1] = copies
        local second = optim[name](o)
        second:load_state(optimizer:state())
        optimizer, params = second, copies
      end
    end
  end)
end

test("what whole-matrix optimizers refuse", function(t)
  local w = pg.ones({ 2, 2 }):requires_grad_()
  local v = pg.ones({ 2 }):requires_grad_()
  t.raises(function() optim.LAMB { { w }, lr = -1 } end, "lr must be 0 or more")
  t.raises(function() optim.LARS { { w }, momentun = 0.9 } end, "momentum")
  t.raises(function() optim.Adafactor { { w }, lr = "high" } end, "lr must be a number")
  local muon = optim.Muon { { v } }
  v:sum():backward()
  t.raises(function() muon:step() end, "only matrices")
  t.raises(function() optim.LBFGS { 3 } end, "list of parameters")
  t.raises(function() optim.LBFGS({ { w } }):step() end, "needs a function")
  t.ok(tostring(optim.LAMB { { w } }):find("LAMB%(1 parameters; lr=0.001"))
end)

test("16-bit parameters keep float32 state, and step in float32", function(t)
  for _, dtype in ipairs { "bfloat16", "float16" } do
    local w = pg.ones({ 3 }, { dtype = dtype }):requires_grad_()
    local optimizer = optim.Adam { { w }, lr = 0.25 }
    local loss = (w * pg.tensor({ 1, 2, -3 }, { dtype = dtype })):sum()
    loss:backward()
    optimizer:step()
    local slots = optimizer:state().groups[1].slots
    t.equal({ slots.exp_avg[1].dtype, slots.exp_avg_sq[1].dtype, w.dtype }, { "float32", "float32", dtype })
    t.close(w:totable(), { 0.75, 0.75, 1.25 }, 1e-2)
    t.close(slots.exp_avg[1]:totable(), { 0.1, 0.2, -0.3 }, 1e-6)
  end
end)

-- ---- schedules ----

local function optimizer_of_two()
  local p, q = pg.zeros({ 1 }):requires_grad_(), pg.zeros({ 1 }):requires_grad_()
  return optim.SGD { { { params = { p } }, { params = { q }, lr = 0.1 } }, lr = 0.5, momentum = 0.9 }
end

local function make_schedule(name, optimizer)
  local sched = optim.sched
  if name == "Chain" then
    return sched.Chain { sched.Warmup { optimizer, 5, start_factor = 0.1 },
                         sched.Cosine { optimizer, 15, eta_min = 0.01 }, sched.Exponential { optimizer, 0.9 },
                         milestones = { 5, 18 } }
  elseif name == "Chain.1" then
    return sched.Chain { sched.Warmup { optimizer, 5, start_factor = 0.1 }, sched.Exponential { optimizer, 0.9 } }
  end
  local o = { optimizer }
  for key, value in pairs(settings.schedules[name][1]) do o[key] = value end
  return sched[name:match("^%w+")](o)
end

local function rates(optimizer, with_momentum)
  local list = {}
  for i, group in ipairs(optimizer.groups) do list[i] = group.lr end
  if with_momentum then list[#list + 1] = optimizer.groups[1].momentum end
  return list
end

for name, entry in pairs(settings.schedules) do
  test(("optim.sched.%s gives PyTorch's rates, also from its state"):format(name), function(t)
    local optimizer = optimizer_of_two()
    local schedule = make_schedule(name, optimizer)
    local expected = entry[2]
    for i, want in ipairs(expected) do
      t.close(rates(optimizer, #want == 3), want, 1e-12)
      if i == 11 then -- anew, from its state
        local state, options = schedule:state(), optimizer:state()
        optimizer = optimizer_of_two()
        schedule = make_schedule(name, optimizer)
        optimizer:load_state(options)
        schedule:load_state(state)
        t.close(rates(optimizer, #want == 3), want, 1e-12)
      end
      schedule:step(schedule.wants_metric and settings.metrics[i] or nil)
    end
  end)
end

test("schedules go out from the rate that a script sets", function(t)
  local optimizer = optimizer_of_two()
  local first = optim.sched.Exponential { optimizer, 0.5 }
  first:step()
  local second = optim.sched.Exponential { optimizer, 0.1 } -- the same initial rates
  t.close(rates(optimizer), { 0.5, 0.1 })
  optimizer.groups[1].lr = 2
  local third = optim.sched.Exponential { optimizer, 0.1 }
  third:step()
  t.close(third:lr(), { 0.2, 0.01 })
  t.ok(tostring(second):find("Exponential"))
  t.raises(function() optim.sched.Step { optim.SGD { lr = 1 }, 3 } end, "bound optimizer")
  t.raises(function() optim.sched.Step { optimizer, 0 } end, "step_size must be positive")
  t.raises(function() optim.sched.Plateau { optimizer, mode = "up" } end, "mode")
  t.raises(function() optim.sched.Plateau({ optimizer }):step() end, "needs the value")
  t.raises(function() optim.sched.OneCycle { optim.Adagrad { { pg.zeros({ 1 }):requires_grad_() } }, 1, 10 } end,
           "no momentum")
  t.raises(function() optim.sched.Chain { first, second, milestones = { 3, 5 } } end, "2 schedules need 1 milestones")
  t.raises(function() optim.sched.Chain { first, 3 } end, "must be a schedule")
  t.raises(function() optim.sched.Chain {} end, "needs schedules")
  t.raises(function() first:load_state {} end, "state%(%)")
end)
