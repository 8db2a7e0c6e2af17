-- SPDX-License-Identifier: Apache-2.0
-- Trains with an operator, a layer and an optimizer of the plugin my_layer, and shows what the layer is for: it goes on
-- where the data end. --short trains for a moment only.
--   PERIGEE_PLUGIN_PATH=build/lib/perigee/plugins perigee train.lua [--short]

local pg = require "perigee"
local nn, optim = pg.nn, pg.optim
local steps = arg[1] == "--short" and 100 or 3000

-- The operator is a function and a method like any other; its gradient, and the gradient of that, come from one line.
local a = pg.tensor({ 1, 2, 3 }, { dtype = "float64" })
print(pg.my_snake(pg.linspace(-1, 1, 6):to("float64"):reshape(2, 3), a))
pg.gradcheck(pg.my_snake, { pg.randn { 2, 3 }, a })
pg.gradcheck(function(x, b) -- of second order
  return (pg.grad(x:requires_grad_():my_snake(b):sum(), { x }, { create_graph = true }))
end, { pg.randn { 2, 3 }, a })

-- The one without a kernel runs wherever the expression's primitives do, in any dtype, with the bits of the operators.
for _, device in ipairs { "cpu", "sim:0" } do
  for _, dtype in ipairs { "float64", "float32", "bfloat16" } do
    local x = (pg.randn { 4, 5 } * 50):to(dtype):to(device)
    assert((pg.my_softcap(x, { cap = 20 }):eq((x / 20):tanh() * 20)):all():item(), device .. " " .. dtype)
  end
end
pg.gradcheck(function(x) return x:my_softcap { cap = 2 } end, { pg.randn { 2, 3 } })

-- A wave on a slope, known in [-6, 6] and asked for in [6, 12].
local function wave(x) return x * 0.3 + (x * 2):sin() end
pg.manual_seed(3)
local known, beyond = pg.rand { 512, 1 } * 12 - 6, pg.linspace(6, 12, 200):reshape(-1, 1)

local function learn(activation)
  local model = nn.Sequential { nn.Linear { 1, 32 }, activation, nn.Linear { 32, 1 } }
  model(known) -- lazy parameters exist from the first call on
  local optimizer = optim.Signum { model:parameters(), lr = 5e-3, momentum = 0.9 }
  local schedule = optim.sched.Cosine { optimizer, total = steps } -- knows no more of Signum than that it has an lr
  local first, last
  for _ = 1, steps do
    local loss = nn.mse(model(known), wave(known))
    optimizer:zero_grad()
    loss:backward()
    optimizer:step()
    schedule:step()
    last = loss:item()
    first = first or last
  end
  local outside = nn.mse(model(beyond), wave(beyond)):item()
  print(("%-28s squared error: %.4f at first, %.4f learnt, %.4f beyond the data"):format(tostring(activation), first,
        last, outside))
  return first, last, outside
end

local first, last, snake = learn(nn.Snake { frequency = 2 })
assert(last < 0.5 * first, "Snake did not learn")
local _, _, relu = learn(nn.ReLU {})
if steps > 100 then assert(snake < 0.5 * relu, "Snake should go on better than ReLU") end

-- Whoever misuses them reads what is wrong, in the plugin's own words.
for _, wrong in ipairs {
  function() nn.Snake { 4, frequency = 0 }(pg.ones { 2, 4 }) end,
  function() optim.Signum { { a }, momentum = 1 } end,
  function() pg.my_snake(pg.ones { 2, 3 }, pg.ones { 2 }) end,
  function() pg.my_snake(pg.ones({ 2 }, { dtype = "float16" }), pg.ones({ 2 }, { dtype = "float16" })) end,
} do
  local ok, err = pcall(wrong)
  assert(not ok)
  print((tostring(err):gsub("^[^:]+:%d+: ", "")))
end
