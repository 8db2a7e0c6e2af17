-- SPDX-License-Identifier: Apache-2.0
-- Compiled functions whose regions begin with products of many rows by narrow weights, which are computed strip by
-- strip. The bits are those of eager code. PERIGEE_PRODUCTS says how many random functions.

local here = debug.getinfo(1, "S").source:match("^@(.*)lua/compile/[^/]*$") or "../../"
package.path = here .. "?.lua;" .. package.path

local pg = require "perigee"
local nn = pg.nn
local _, fuses = require "fusing"()
local compare = require "compared"
local generator = require("draws").generator -- not of numbers that are compared

local NAN, INF = 0 / 0, math.huge

-- Rows, depth, columns: at least as many results as the caches near a processor do not hold.
local SHAPES = { { 4133, 64, 256 }, { 16389, 37, 64 }, { 1100, 256, 1000 }, { 65537, 32, 16 }, { 2050, 33, 513 } }
if not fuses then SHAPES = { { 41, 6, 25 }, { 7, 1, 16 } } end -- where nothing is joined, any will do

local function on_cpu() return pg.device() == "cpu" end

local function made(step, kernels)
  local s = step:stats()
  assert(s.hits > 0, step:explain())
  if not fuses or not on_cpu() then return end
  assert(s.kernels == kernels, ("%d kernels, not %d\n%s"):format(s.kernels, kernels, step:explain()))
end

local function make_for(shape, dtype)
  local m, k, n = unpack(shape)
  return function()
    return { pg.randn({ m, k }):to(dtype), pg.randn({ n, k }):to(dtype), pg.randn({ n }):to(dtype),
             pg.randn({ m, n }):to(dtype) }
  end
end

test("what is behind a product is done strip by strip", function(t)
  t.uncompiled()
  for _, dtype in ipairs { "float32", "float64" } do
    for _, shape in ipairs(SHAPES) do
      local name, make = dtype .. " " .. table.concat(shape, "x"), make_for(shape, dtype)
      made(compare(name .. " relu", make, function(_, x, w, b) return pg.linear(x, w, b):relu() end, 3), 1)
      made(compare(name .. " sum", make, function(_, x, w, _, r) return pg.linear(x, w) + r end, 3), 1)
      made(compare(name .. " gate", make, function(i, x, w, b, r)
        return (pg.linear(x, w, b) * i):silu() * r + b - r[{ {}, { 1, 1 } }]
      end, 3), 1)
      made(compare(name .. " both", make, function(_, x, w, b)
        local y = pg.linear(x, w, b)
        return y, y:relu()
      end, 3), 1)
      made(compare(name .. " lines", make, function(_, x, w, b, r)
        return pg.linear(x, w, b):add(r):softmax(-1), 1
      end, 3), 1)
      made(compare(name .. " activated", make, function(_, x, w, b, r)
        return pg.linear_activation(x, w, b, { activation = "relu" }) * r
      end, 3), 1)
      made(compare(name .. " matmul", make, function(_, x, w, _, r) return (x:matmul(w:t()) - r):tanh() end, 3), 1)
    end
  end
end)

test("products of one shape share their strips", function(t)
  t.uncompiled()
  local m, n = 4100, 256
  local function make()
    return { pg.randn { m, 40 }, pg.randn { n, 40 }, pg.randn { m, 200 }, pg.randn { n, 200 }, pg.randn { 8, n } }
  end
  made(compare("gates", make, function(_, x, w, y, v) return pg.linear(x, w):silu() * pg.linear(y, v) end), 1)
  local step = compare("one behind the other", make, function(_, x, w, _, _, u)
    local h = pg.linear(x, w):relu()
    return pg.linear(h, u:t():matmul(u)):relu() + h
  end)
  t.ok(step:stats().hits > 0)
end)

test("products of batches of rows, and of operands that are views", function(t)
  t.uncompiled()
  local function make()
    return { pg.randn { 8, 1030, 64 }, pg.randn { 64, 256 }, pg.randn { 256 }, pg.randn { 8, 1030, 256 },
             pg.randn { 8240, 100 }, pg.randn { 256, 80 } }
  end
  made(compare("batches", make, function(_, x, w, b, r)
    return (x:matmul(w:t():contiguous():t()) + b):relu() + r
  end), 2)
  -- With AVX2 alone such a product is no matter of strips.
  compare("as it lies", make, function(_, x, w, b, r) return (x:matmul(w) + b):relu() + r end)
  made(compare("views", make, function(_, _, _, b, r, y, w)
    return pg.linear(y[{ {}, { 11, 74 } }], w[{ {}, { 5, 68 } }], b):relu() + r:reshape { 8240, 256 }
  end), 1)
end)

test("results that lie where something was", function(t)
  t.uncompiled()
  local function make() return { pg.randn { 8200, 128 }, pg.randn { 128, 128 }, pg.randn { 128 } } end
  compare("over its own operand", make, function(i, x, w, b)
    local h = x * i
    return pg.linear(h, w, b):relu()
  end)
  compare("residual", make, function(i, x, w, b)
    local h = x + i
    return h + pg.linear(h, w, b):relu()
  end)
  compare("in place", make, function(_, x, w, b)
    local y = pg.linear(x, w, b)
    y:relu_():mul_(2)
    x:add_(y)
    return y
  end)
  compare("in place of x", make, function(_, x, w, b)
    x:copy_(pg.linear(x, w, b):tanh())
    return x + 1
  end)
end)

test("infinity and what is no number", function(t)
  t.uncompiled()
  compare("special", function()
    local x = pg.randn { 4200, 64 }
    x[3][5], x[400][1], x[4200][64] = NAN, INF, -INF
    return { x, pg.randn { 256, 64 }, pg.randn { 256 } }
  end, function(_, x, w, b) return pg.linear(x, w, b):relu(), pg.linear(x, w, b):clamp(-1, 1) end)
end)

test("the bits do not depend on the number of threads", function(t)
  t.uncompiled()
  local before = pg.config.get().threads
  for _, shape in ipairs(SHAPES) do
    local x, w, b, r = unpack(make_for(shape, "float32")())
    local function fn(v) return (pg.linear(v, w, b):relu() + r):softmax(-1) end
    local first
    for threads = 1, 3 do
      pg.config.set { threads = threads }
      local f = pg.compile(fn)
      local expected = fn(x)
      for _ = 1, 3 do t.ok(pg.equal(f(x), expected)) end
      first = first or expected
      if on_cpu() then t.ok(pg.equal(first, expected), table.concat(shape, "x")) end
    end
  end
  pg.config.set { threads = before }
end)

test("training has the bits of eager code", function(t)
  t.uncompiled()
  pg.manual_seed(5)
  local function network()
    pg.manual_seed(7)
    local model = nn.Sequential { nn.Linear { 20, 128 }, nn.GELU {}, nn.Linear { 128, 128 }, nn.ReLU {},
                                  nn.LayerNorm { 128 }, nn.Linear { 128, 16 } }
    return model, pg.optim.SGD { model:parameters(), lr = 0.01 }
  end
  local x, y = pg.randn { 9000, 20 }, pg.randn { 9000, 16 }
  local function step_of(model, optimizer)
    return function()
      optimizer:zero_grad()
      local loss = (model(x) - y):square():mean()
      loss:backward()
      optimizer:step()
      return loss
    end
  end
  local plain, other = step_of(network()), pg.compile(step_of(network()))
  for i = 1, 6 do t.equal(other():item(), plain():item(), i) end
  t.ok(other:stats().hits > 0, other:explain())
end)

test("frozen calls have them too", function(t)
  t.uncompiled()
  local model = nn.Sequential { nn.Linear { 48, 256 }, nn.SiLU {}, nn.Linear { 256, 256 }, nn.ReLU {} }:eval()
  local f = pg.compile(function(v) return model(v) end, { frozen = true })
  for _ = 1, 4 do
    local x = pg.randn { 4500, 48 }
    t.ok(pg.equal(f(x), pg.no_grad(function() return model(x) end)))
    pg.no_grad(function() model[1].weight:mul_(0.9) end)
  end
end)

-- ---- random functions ----

local UNARY = { "relu", "tanh", "sigmoid", "silu", "gelu", "neg", "abs", "square" }

local function program(draw)
  local m, k, n = draw(1024, 3000), draw(20, 270), draw(16, 700)
  m = math.max(m, math.ceil(2 ^ 20 / n))
  if not fuses then m, k, n = draw(1, 50), draw(1, 30), draw(1, 40) end
  local steps = {}
  for _ = 1, draw(1, 8) do
    steps[#steps + 1] = { draw(1, 7), draw(1, #UNARY), draw(1, 100) }
  end
  local dtype = ({ "float32", "float32", "float64", "bfloat16" })[draw(1, 4)]
  local bias, way = draw(0, 1) == 1, draw(1, 3)
  local function fn(i, x, w, b, r, line)
    local y
    if way == 1 then y = pg.linear(x, w, bias and b or nil)
    elseif way == 2 then y = x:matmul(w:t())
    else y = pg.linear_activation(x, w, b) end
    local kept = { y }
    for _, s in ipairs(steps) do
      local what = s[1]
      if what == 1 then y = y[UNARY[s[2]]](y)
      elseif what == 2 then y = y + r
      elseif what == 3 then y = y * b
      elseif what == 4 then y = y - line
      elseif what == 5 then y = y * (i * 0.5)
      elseif what == 6 then y = y + kept[s[3] % #kept + 1]
      else y = pg.where(y:gt(0), r, y) end
      kept[#kept + 1] = y
    end
    if steps[1][3] % 4 == 0 then return y, kept[1] end
    if steps[1][3] % 4 == 1 then return y:sum(-1), y end
    return y
  end
  local function make()
    return { pg.randn({ m, k }):to(dtype), pg.randn({ n, k }):to(dtype), pg.randn({ n }):to(dtype),
             pg.randn({ m, n }):to(dtype), pg.randn({ m, 1 }):to(dtype) }
  end
  return ("%s %dx%dx%d"):format(dtype, m, k, n), make, fn
end

test("random functions behind products have the bits of eager code", function(t)
  t.uncompiled()
  for seed = 1, tonumber(os.getenv "PERIGEE_PRODUCTS") or 12 do
    local name, make, fn = program(generator(seed))
    compare(("%s, random function %d"):format(name, seed), make, fn, 3)
  end
end)
