-- SPDX-License-Identifier: Apache-2.0
-- Compiled functions whose operators are joined into kernels that are part of a captured plan: the bits of eager code
-- while numbers change, all of it captured once. Where the device in force has no compiler nothing is joined.

local tests = (debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or ".") .. "/../.."
package.path = tests .. "/?.lua;" .. package.path

local pg = require "perigee"
local nn, optim = pg.nn, pg.optim

local DEVICE = pg.device() ~= "cpu" and pg.device() or "sim:0"
local STEPS = 9
local JOINS = DEVICE:find "^cuda" ~= nil

local function numbers(x) return x:detach():cpu():totable() end

-- make(): a function of a step's number, and tensors to look at after each.
local function trace(make, compiled)
  pg.manual_seed(12)
  return pg.device(DEVICE, function()
    local f, watched = make()
    local step = compiled and pg.compile(f) or f
    local seen = {}
    for i = 1, STEPS do
      local results = { step(i) }
      for k, y in ipairs(results) do results[k] = numbers(y) end
      for _, w in ipairs(watched or {}) do results[#results + 1] = numbers(w) end
      seen[i] = results
    end
    return seen, step
  end)
end

local same = require("steps").same_by(test, trace, STEPS)

-- All that is launched is captured, in one piece, once.
local function whole(t, s, step)
  t.equal(s.captures, 1, step:explain())
  t.equal({ s.pieces, s.captured }, { 1, s.kernels }, step:explain())
  t.ok(not JOINS or s.kernels < s.launches, step:explain())
  t.ok(s.hits >= STEPS - 3, step:explain())
end

same("numbers of joined operators change", function()
  local w = pg.randn { 6, 8 }
  return function(i)
    local y = ((w * i + i):clamp(-i, 2 * i) - 1.5 / i):tanh()
    return (y * y + i):sum { 2 }, y / (i + 0.5)
  end
end, whole)

for _, dtype in ipairs { "float16", "bfloat16", "float64", "int32" } do
  same("numbers of joined operators in " .. dtype, function()
    local w = pg.arange(48, { dtype = "float32" }):reshape { 6, 8 }:to(dtype)
    return function(i)
      local y = (w * i + 3):clamp(i, 40 * i)
      return (y - i):abs() * y, (w + i):max { axis = 2 }
    end
  end, whole)
end

same("two stretches around an operator that is not joined", function()
  local w, m = pg.randn { 8, 8 }, pg.randn { 8, 8 }
  return function(i)
    local y = pg.matmul((w * i + 1):relu(), m)
    return ((y + i) * 0.5):sigmoid()
  end
end, whole)

same("powers by a number, which choose their arithmetic at each launch", function()
  local w = pg.rand { 5, 6 } + 0.5
  return function(i)
    local p = ({ 2, 0.5, -0.5, 3 })[i % 4 + 1]
    return ((w + i) ^ p * 2):sum()
  end
end, function(t, s, step)
  t.equal(s.captures, 1, step:explain())
  t.ok(s.captured > 0, step:explain())
end)

same("arguments that lie elsewhere each time, and results that are kept", function()
  local batches, kept = {}, {}
  for k = 1, STEPS do batches[k] = pg.randn { 3, 4 } end
  return function(i)
    kept[i] = pg.keep(((batches[i] * 2 + i):exp() - 1):abs())
    return kept[i]:sum { 2 }, kept[math.max(i - 3, 1)]
  end
end, function(t, s, step)
  t.equal(s.captures, 1, step:explain())
  t.ok(s.copied > 0, step:explain())
end)

same("training with a schedule", function()
  local net = nn.Sequential { nn.Linear(5, 8), nn.GELU(), nn.Linear(8, 3) }
  local opt = optim.AdamW(net:parameters(), { lr = 0.01 })
  local schedule = optim.sched.Cosine(opt, STEPS)
  return function()
    local x, y = pg.randn { 6, 5 }, pg.randint(0, 3, { 6 })
    opt:zero_grad()
    local loss = pg.cross_entropy((net(x) * 1.5):tanh() * 2, y)
    loss:backward()
    opt:step()
    schedule:step()
    return loss:detach()
  end, net:parameters()
end, function(t, s, step)
  t.equal(s.captures, 1, step:explain())
  t.equal(s.captured, s.kernels, step:explain())
end)

test("statistics name what is joined in a captured plan", function(t)
  pg.device(DEVICE, function()
    local x = pg.randn { 4, 4 }
    local f = pg.compile(function(k) return pg.matmul((x * k + 1):exp(), x) end)
    for i = 1, 5 do f(i) end
    local s = f:stats()
    t.equal({ s.captures, s.captured }, { 1, s.kernels }, f:explain())
    if JOINS then t.equal(s.regions[1].operators, "mul add exp", f:explain()) end
  end)
end)
