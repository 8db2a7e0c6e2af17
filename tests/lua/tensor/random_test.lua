-- SPDX-License-Identifier: Apache-2.0
-- Drawing as scripts call it: shapes, dtypes, limits, the same bits on every device.

local pg = require "perigee"

local function each_device(fn)
  local list = {}
  for _, device in ipairs { "cpu", "sim:0" } do
    pg.manual_seed(11)
    list[#list + 1] = pg.device(device, fn):totable()
  end
  return list
end

test("draws are the same bits on every device", function(t)
  local draws = {
    multinomial = function() return pg.rand { 4, 50 }:multinomial(7) end,
    replaced = function() return pg.rand { 4, 50 }:multinomial(70, true) end,
    uniform = function() return pg.zeros({ 3, 5 }):t():uniform_(-1, 2) end,
    normal = function() return pg.zeros({ 9 }, { dtype = "float64" }):normal_(1, 3) end,
    exponential = function() return pg.zeros({ 9 }):exponential_(2) end,
    random = function() return pg.zeros({ 9 }, { dtype = "int16" }):random_(-5, 5) end,
    bernoulli = function() return pg.zeros({ 9 }):bernoulli_(0.3) end,
    by_tensor = function() return pg.normal(pg.arange(4):to("float32"), 0.5) end,
    like = function() return pg.zeros({ 3 }, { dtype = "int32" }):randint_like(100) end,
  }
  for name, fn in pairs(draws) do
    local list = each_device(fn)
    t.equal(list[1], list[2], name)
  end
end)

test("one draw does not repeat another", function(t)
  pg.manual_seed(3)
  local p = pg.ones { 1000 }
  t.ok(not pg.equal(p:multinomial(5), p:multinomial(5)))
  t.ok(not pg.equal(pg.zeros { 5 }:uniform_(), pg.zeros { 5 }:uniform_()))
end)

test("a negative seed is its two's complement, as in PyTorch", function(t)
  local function draw(seed)
    pg.manual_seed(seed)
    return pg.rand { 4 }
  end
  t.ok(pg.equal(draw(-2048), draw(2 ^ 64 - 2048)))
  t.ok(not pg.equal(draw(-1), draw(-2)))
  t.raises(function() pg.manual_seed(2 ^ 64) end, "from %-2%^63 to 2%^64 %- 1")
  t.raises(function() pg.manual_seed(0.5) end, "whole number")
end)

test("in place: shapes, dtypes, limits", function(t)
  local x = pg.zeros { 2, 1000 }
  t.ok(rawequal(x:uniform_(2, 3), x))
  t.ok(x:ge(2):all():item() and x:lt(3):all():item())
  x[1]:normal_ { mean = 100 }
  t.ok(math.abs(x[1]:mean():item() - 100) < 0.3 and x[2]:amax():item() < 3)
  t.ok(math.abs(x:exponential_(4):mean():item() - 0.25) < 0.05)
  t.ok(math.abs(x:bernoulli_ { p = 0.2 }:mean():item() - 0.2) < 0.05)
  t.equal(pg.zeros({ 3, 2 }):bernoulli_(pg.tensor { 0, 1 }), { { 0, 1 }, { 0, 1 }, { 0, 1 } })
  t.raises(function() x:uniform_(3, 2) end, "above high")
  t.raises(function() pg.zeros({ 2 }, { dtype = "int64" }):normal_() end, "floating")
  t.raises(function() pg.zeros({ 2 }, { dtype = "int8" }):random_(0, 200) end, "int8 does not hold")
end)

test("randint, randperm and their limits", function(t)
  t.equal(pg.randint(250, 256, { 4 }, { dtype = "uint8" }).dtype, "uint8")
  t.equal(pg.randint_like(pg.zeros { 2, 3 }, 7).shape, { 2, 3 })
  t.equal(pg.randint_like(pg.zeros { 2 }, 3, 9, { dtype = "int32" }).dtype, "int32")
  t.raises(function() return pg.randint(0, 300, { 2 }, { dtype = "uint8" }) end, "uint8 does not hold")
  t.raises(function() return pg.randint(0.5, 3, { 2 }) end, "whole")
  t.raises(function() return pg.randperm(300, { dtype = "int8" }) end, "int8 does not hold")
  t.equal(pg.randperm(128, { dtype = "int8" }):sort(), pg.arange(128):totable())
end)

-- Chi-square of counts that are all expected to be the same, in standard deviations from its mean.
local function chi_square(counts, expected, freedom)
  local sum = 0
  for _, n in ipairs(counts) do sum = sum + (n - expected) ^ 2 / expected end
  return (sum - freedom) / math.sqrt(2 * freedom)
end

test("all permutations of four are drawn equally often", function(t)
  pg.manual_seed(11)
  local names, counts, draws = {}, {}, 12000
  for _ = 1, draws do
    local name = table.concat(pg.randperm(4):totable(), " ")
    if not names[name] then
      counts[#counts + 1] = 0
      names[name] = #counts
    end
    counts[names[name]] = counts[names[name]] + 1
  end
  t.equal(#counts, 24)
  local far = chi_square(counts, draws / 24, 23)
  t.ok(math.abs(far) < 4, far)
end)

test("numbers get to all places of a permutation equally often", function(t)
  pg.manual_seed(12)
  -- One bucket, and several (of 2,048): where each twentieth of the numbers goes, by twentieths of the places; and how
  -- often neighbours stay neighbours, which is once a permutation for each of the two orders.
  for _, n in ipairs { 1000, 20000 } do
    local draws, parts = 40, 20
    local counts, pairs_kept = pg.zeros({ parts * parts }, { dtype = "int64" }), 0
    for _ = 1, draws do
      local p = pg.randperm(n)
      t.equal((p:sort() - pg.arange(n)):abs():sum():item(), 0)
      local from = pg.arange(n) * parts / n
      local cell = (p * parts / n):floor():to("int64") * parts + from:floor():to("int64")
      counts = counts + pg.bincount(cell, { minlength = parts * parts })
      pairs_kept = pairs_kept + (p:narrow(1, 2, n - 1) - p:narrow(1, 1, n - 1)):abs():eq(1):sum():item()
    end
    local far = chi_square(counts:totable(), draws * n / parts ^ 2, (parts - 1) ^ 2)
    t.ok(math.abs(far) < 4, n .. ": " .. far)
    t.ok(math.abs(pairs_kept - 2 * draws) < 4 * math.sqrt(2 * draws), n .. ": " .. pairs_kept)
  end
end)

test("normal of numbers and of tensors", function(t)
  t.equal(pg.normal(2, 0, { 3 }), { 2, 2, 2 })
  t.equal(pg.normal(pg.tensor { 1, 5 }, 0), { 1, 5 })
  t.equal(pg.normal(pg.tensor { 1, 5 }, pg.zeros { 3, 2, dtype = "float64" }).shape, { 3, 2 })
  t.equal(pg.normal { 0, 1, { 2 }, dtype = "float64" }.dtype, "float64")
  t.raises(function() return pg.normal(0, 1) end, "shape")
  t.raises(function() return pg.normal(0, -1, { 2 }) end, "std")
end)

test("multinomial draws in proportion", function(t)
  pg.manual_seed(5)
  local p = pg.tensor { 1, 2, 0, 5 }
  local share = p:multinomial(8000, true):bincount { minlength = 4 }:to("float32") / 1000
  t.ok((share - p):abs():amax():item() < 0.3, tostring(share))
  local first = p:expand(8000, 4):multinomial(2)[{ {}, 1 }]:bincount { minlength = 4 }:to("float32") / 1000
  t.ok((first - p):abs():amax():item() < 0.3, tostring(first))
  t.raises(function() return p:multinomial(4):totable() end, "3 categories")
  t.raises(function() return pg.tensor { 1, 0 / 0 }:multinomial(1):totable() end, "category 1")
end)
