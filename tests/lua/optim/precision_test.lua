-- SPDX-License-Identifier: Apache-2.0
-- Optimizers in float32 are no further from themselves in float64 than PyTorch's (tests/trajectories/make_precision.py
-- says what is measured).

local pg = require "perigee"
local json = require("perigee.native").json
local optim = pg.optim

local folder = debug.getinfo(1, "S").source:match("^@(.*)lua/[^/]*/[^/]*$") .. "trajectories/data/"
local file = assert(io.open(folder .. "precision.json", "rb"))
local recorded = json(file:read("*a"))
file:close()

local N, STEPS = 512, recorded.steps[#recorded.steps]

local function numbers_of(f)
  local list = {}
  for i = 0, N - 1 do list[i + 1] = f(i) end
  return pg.tensor(list, { dtype = "float64" }):to("float32")
end

local function start(i) return i < N / 2 and 0 or math.sin(i) end
local gradients -- a step
local function gradient(t)
  if not gradients then
    gradients = {}
    local i = pg.arange(N):to("float64")
    local scale = numbers_of(function(k) return 10 ^ (k % 7 - 3) end):to("float64") / 4
    for step = 1, STEPS do
      gradients[step] = ((0.7 * step + 1.3 * i + 0.011 * step * i):sin() * scale):to("float32")
    end
  end
  return gradients[t]
end

local function halves(t, shape, dtype)
  local x = t:to(dtype):reshape(2, unpack(shape))
  return { x[1]:clone(), x[2]:clone() }
end

-- The two halves of the parameters after the steps of `recorded.steps`.
local function run(class, options, shape, dtype)
  local params, seen, o = halves(numbers_of(start), shape, dtype), {}, {}
  for i, p in ipairs(params) do params[i] = p:requires_grad_() end
  for key, value in pairs(options) do o[key] = value end
  o[1] = params
  local optimizer, at = optim[class](o), 1
  for t = 1, STEPS do
    for i, g in ipairs(halves(gradient(t), shape, dtype)) do params[i].grad = g end
    optimizer:step()
    if t == recorded.steps[at] then
      seen[at], at = {}, at + 1
      for i, p in ipairs(params) do seen[at - 1][i] = p:detach():clone():to("float64"):flatten() end
    end
  end
  return seen
end

-- As recorded: of each half the median of the distance over the way gone.
local function distances(class, options, shape)
  local narrow, wide = run(class, options, shape, "float32"), run(class, options, shape, "float64")
  local begin, list = halves(numbers_of(start), { N / 2 }, "float64"), {}
  for at, seen in ipairs(narrow) do
    list[at] = {}
    for i = 1, 2 do
      local far = ((seen[i] - wide[at][i]) / (wide[at][i] - begin[i])):abs()
      list[at][i] = far:sort()[N / 4]:item() -- the lower one of the two in the middle, as PyTorch has it
    end
  end
  return list
end

local function shape_of(class) return (class == "Muon" or class == "Adafactor") and { 16, 16 } or { N / 2 } end

-- Rounding is chance: 256 numbers tell their median to some 10 %, and below a quarter of an ulp nothing counts.
local MARGIN, LEAST = 1.25, 2 ^ -25
for name, row in pairs(recorded.optimizers) do
  test("1000 steps in float32 are as close to float64 as PyTorch's: " .. name, function(t)
    for at, pair in ipairs(distances(row.class, row.options, shape_of(row.class))) do
      for i = 1, 2 do
        t.ok(pair[i] <= MARGIN * row.distances[at][i] + LEAST, ("after %d steps, half %d: %.2e, PyTorch %.2e"):format(
               recorded.steps[at], i, pair[i], row.distances[at][i]))
      end
    end
  end)
end

-- Those that PyTorch lacks, or computes in another dtype: what begins at 0, once steps do not cancel any more.
for class, options in pairs { Lion = { lr = 1e-3, weight_decay = 1e-2 }, LAMB = { lr = 1e-3, weight_decay = 1e-2 },
                              LARS = { lr = 1, trust = 1e-2 }, Muon = { lr = 1e-2, weight_decay = 0.1 } } do
  test("1000 steps in float32 stay close to float64: " .. class, function(t)
    local seen = distances(class, options, shape_of(class))
    for at = 3, #seen do
      t.ok(seen[at][1] < 2e-5, ("after %d steps: %.2e"):format(recorded.steps[at], seen[at][1]))
    end
  end)
end

test("the first step of Adam has all digits of float32", function(t)
  local p = pg.zeros({ 1 }, { requires_grad = true })
  p.grad = pg.ones { 1 }
  optim.Adam { { p }, lr = 1e-3 }:step()
  t.ok(math.abs(p:item() + 1e-3) <= 1.2e-10, ("%.9g"):format(p:item())) -- numbers of float32 are 1.16e-10 apart there
end)
