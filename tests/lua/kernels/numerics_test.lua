-- SPDX-License-Identifier: Apache-2.0
-- Values that go wrong easily: promotion, integers that wrap, division, NaN and infinities, empties, ties, conversions.

local pg = require "perigee"

local NAN, INF = 0 / 0, 1 / 0
local function ints(data, dtype) return pg.tensor(data, { dtype = dtype or "int64" }) end
local function ones(dtype) return pg.ones({ 2 }, { dtype = dtype }) end

-- What two tensors of these dtypes give, as in PyTorch: by category first, then by width.
local order = { "bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64" }
local rank, floating = {}, { float16 = true, bfloat16 = true, float32 = true, float64 = true }
for i, name in ipairs(order) do rank[name] = i end

local function promoted(a, b)
  if a == b then return a end
  if rank[a] > rank[b] then a, b = b, a end
  if a == "uint8" and b == "int8" then return "int16" end
  if a == "float16" and b == "bfloat16" then return "float32" end
  return b
end

test("promotion of every pair", function(t)
  for _, a in ipairs(order) do
    for _, b in ipairs(order) do
      local both = promoted(a, b)
      local x, y = ones(a), ones(b)
      t.equal({ a, b, (x + y).dtype }, { a, b, both })
      t.equal((x * y).dtype, both)
      t.equal(pg.maximum(x, y).dtype, both)
      t.equal(pg.where(pg.tensor { true, false }, x, y).dtype, both)
      t.equal(pg.cat { x, y }.dtype, both)
      t.equal((x / y).dtype, floating[both] and both or "float32")
      t.equal(x:eq(y).dtype, "bool")
      if both ~= "bool" then
        t.equal((x ^ y).dtype, both)
        t.equal((x % y).dtype, both)
        t.equal(x:floor_div(y).dtype, both)
      end
    end
  end
end)

test("0-dim tensors and numbers widen only across categories", function(t)
  local f64, i64 = pg.tensor(2, { dtype = "float64" }), ints(2)
  t.equal((ones "float32" + f64).dtype, "float32")
  t.equal((ones "float16" * f64).dtype, "float16")
  t.equal((ones "int8" + i64).dtype, "int8")
  t.equal((ones "int64" + f64).dtype, "float64")
  t.equal((ones "bool" + i64).dtype, "int64")
  t.equal((ones "int8" + 1).dtype, "int8")
  t.equal((ones "int8" + 1.5).dtype, "float32")
  t.equal((ones "float16" * 2.5).dtype, "float16")
  t.equal((ones "bool" + 1).dtype, "int64")
  t.equal((1 - ones "float64").dtype, "float64")
  t.equal((ones "int32" / 2).dtype, "float32")
end)

test("reductions' dtypes", function(t)
  t.equal(ones "int8":sum().dtype, "int64")
  t.equal(ones "bool":sum().dtype, "int64")
  t.equal(ones "float16":sum().dtype, "float16")
  t.equal(ones "int32":amax().dtype, "int32")
  t.equal(ones "int32":argmax().dtype, "int64")
  t.raises(function() ones "int64":mean() end, "int64.*floating")
end)

test("integers wrap", function(t)
  t.equal(ints({ 2147483647 }, "int32") + 1, { -2147483648 })
  t.equal(ints({ 127 }, "int8") + 1, { -128 })
  t.equal(ints({ 0 }, "uint8") - 1, { 255 })
  t.equal(ints({ -128 }, "int8"):abs(), { -128 })
  t.ok((ints { 9223372036854775807LL } + 1):item_int64() == -9223372036854775807LL - 1)
  t.equal(ints({ 100 }, "int8") * 3, { 44 })
end)

test("integer division", function(t)
  t.equal(ints { 7, -7 }:floor_div(2), { 3, -4 })
  t.equal(ints { 7, -7 } % -3, { -2, -1 })
  t.equal(pg.tensor { 7.5, -7.5 } % 2, { 1.5, 0.5 })
  t.equal(pg.tensor { 7, -7 }:floor_div(2), { 3, -4 })
  t.raises(function() pg.synchronize(ints { 1 }:floor_div(0).device) end, "zero")
  t.raises(function() return (ints { 1 } % 0):item() end, "zero")
  t.ok(ints { -9223372036854775807LL - 1 }:floor_div(-1):item_int64() == -9223372036854775807LL - 1)
  t.raises(function() return (ints { 2 } ^ -1):item() end, "negative")
  t.equal(ints { 2, -3 } ^ 3, { 8, -27 })
  t.equal(pg.tensor { 1, 0, -1 } / 0, { INF, NAN, -INF })
end)

test("booleans", function(t)
  local a, b = pg.tensor { true, false }, pg.tensor { true, true }
  t.equal(a + b, { true, true })
  t.equal(a * b, { true, false })
  t.equal(a + 1, { 2, 1 })
  t.equal(b:sum(), 2)
  t.raises(function() return a - b end, "bool")
  t.raises(function() return -a end, "bool")
  t.equal(pg.logical_xor(a, b), { false, true })
end)

test("NaN", function(t)
  local x = pg.tensor { 1, NAN, 3 }
  t.equal(x:max(), NAN)
  t.equal(x:amin(), NAN)
  t.equal(x:argmax(), 1)
  t.equal(x:sum(), NAN)
  t.equal(x:eq(x), { true, false, true })
  t.equal(x:ne(x), { false, true, false })
  t.equal(pg.maximum(pg.tensor { 1, NAN }, pg.tensor { NAN, 1 }), { NAN, NAN })
  t.equal(x:relu(), { 1, NAN, 3 })
  t.equal(x:clamp(0, 2), { 1, NAN, 2 })
  t.equal(x:nonzero(), { { 0 }, { 1 }, { 2 } })
  t.equal(pg.tensor { NAN }:any(), true)
  t.equal(x:isnan(), { false, true, false })
  t.equal(pg.max_pool2d(pg.tensor { { { { 1, NAN }, { 2, 3 } } } }, 2), { { { { NAN } } } })
  t.equal(pg.where(x:isnan(), 0, x), { 1, 0, 3 })
end)

test("infinities", function(t)
  t.equal(pg.tensor { 1000, 0 }:softmax(1), { 1, 0 })
  t.equal(pg.tensor { -INF, 0 }:softmax(1), { 0, 1 })
  t.close(pg.tensor { 1000, 1000 }:logsumexp(), 1000 + math.log(2))
  t.equal(pg.tensor { -INF, -INF }:logsumexp(), -INF)
  t.close(pg.tensor { 1000, 0 }:log_softmax(1), { 0, -1000 })
  t.equal(pg.tensor { 100, -100 }:sigmoid()[1], 1)
  t.close(pg.tensor { 100, -200 }:softplus(), { 100, 0 })
  t.equal(pg.max_pool2d(pg.full({ 1, 1, 2, 2 }, -INF), 2), { { { { -INF } } } })
  t.equal(pg.tensor({ 1e5, 65504 }, { dtype = "float16" }), { INF, 65504 })
  local x = pg.tensor({ 1000, 0 }, { requires_grad = true })
  x:softmax(1)[1]:backward()
  t.equal(x.grad, { 0, 0 })
end)

test("sums are accurate", function(t)
  t.close(pg.full({ 1000000 }, 0.1):sum(), 100000, 1e-6)
  t.close(pg.full({ 70000 }, 1, { dtype = "float16" }):mean(), 1, 1e-3)
  t.equal(pg.ones({ 1000 }, { dtype = "bfloat16" }):sum(), 1000)
  t.close((pg.randn { 10000 } + 1e4):var(), 1, 0.1)
end)

test("nothing at all", function(t)
  local none = pg.zeros { 0 }
  t.equal(none:sum(), 0)
  t.equal(none:prod(), 1)
  t.equal(none:mean(), NAN)
  t.equal(none:any(), false)
  t.equal(none:all(), true)
  t.equal(none:logsumexp(), -INF)
  t.raises(function() none:max() end, "empty")
  t.raises(function() none:argmax() end, "no elements")
  t.equal(pg.zeros { 0, 3 }:max(2).shape, { 0 })
  t.equal(pg.zeros { 0, 3 }:sum(1), { 0, 0, 0 })
  t.equal(pg.ones { 2, 0 }:matmul(pg.ones { 0, 3 }), { { 0, 0, 0 }, { 0, 0, 0 } })
  t.equal(pg.conv2d(pg.ones { 0, 3, 5, 5 }, pg.ones { 4, 3, 3, 3 }).shape, { 0, 4, 3, 3 })
  t.equal(pg.max_pool2d(pg.ones { 0, 1, 4, 4 }, 2).shape, { 0, 1, 2, 2 })
  t.equal(pg.batch_norm(pg.ones { 0, 3 }, { training = true }).shape, { 0, 3 })
  t.equal(pg.embedding(pg.ones { 3, 2 }, pg.zeros({ 0, 2 }, { dtype = "int64" })).shape, { 0, 2, 2 })
  t.equal(pg.zeros { 2, 0 }:softmax(2).shape, { 2, 0 })
  t.equal(pg.zeros { 0, 3 }:reshape(-1, 3).shape, { 0, 3 })
  t.equal(none:nonzero().shape, { 0, 1 })
  t.equal((none + 1).shape, { 0 })
  t.equal((none + pg.ones { 1 }).shape, { 0 })
  t.equal(pg.cat { none, pg.ones { 2 } }, { 1, 1 })
  t.equal(none:cumsum(1).shape, { 0 })
end)

test("no axes at all", function(t)
  local x = pg.tensor(3)
  t.equal(x:softmax(1), 1)
  t.equal(x:sum(-1), 3)
  t.equal(x:nonzero().shape, { 1, 0 })
  t.equal(x:argmax(), 0)
  t.equal(x:reshape(1, 1), { { 3 } })
  t.equal(pg.cross_entropy(pg.ones { 3 }, ints(1)).shape, {})
  t.equal((x * pg.tensor { 1, 2 }), { 3, 6 })
end)

test("conversions", function(t)
  t.equal(pg.tensor { 0, 0.1, NAN }:to("bool"), { false, true, true })
  t.equal(pg.tensor { 1.9, -1.9 }:to("int32"), { 1, -1 })
  t.equal(pg.tensor { 1 / 3 }:to("bfloat16"):to("float32"), { 0.333984375 })
  t.equal(pg.tensor { 2049, 2051 }:to("float16"), { 2048, 2052 }, "to even")
  t.equal(ints { 16777217 }:to("float32"), { 16777216 })
  t.equal(pg.tensor { true }:to("float64"), { 1 })
  t.close(pg.tensor { 6e-8, 1e-8 }:to("float16"), { 5.9604644775390625e-08, 0 }, 1e-12)
end)

test("ties share or choose", function(t)
  local x = pg.tensor({ 2, 2, 1 }, { requires_grad = true })
  x:amax():backward()
  t.equal(x.grad, { 0.5, 0.5, 0 })
  t.equal(pg.tensor { 2, 2, 1 }:argmax(), 0)
  local a, b = pg.tensor({ 2 }, { requires_grad = true }), pg.tensor({ 2 }, { requires_grad = true })
  pg.maximum(a, b):sum():backward()
  t.equal(a.grad, { 0.5 })
  t.equal(b.grad, { 0.5 })
end)

test("gradients where a formula divides by zero", function(t)
  local function slope(fn, at)
    local x = pg.tensor(at, { requires_grad = true })
    fn(x):sum():backward()
    return x.grad
  end
  t.equal(slope(function(x) return x ^ 2 end, { 0, -1 }), { 0, -2 })
  t.equal(slope(function(x) return x:prod() end, { 2, 0, 3 }), { 0, 6, 0 })
  t.equal(slope(function(x) return x:prod() end, { 2, 0, 0 }), { 0, 0, 0 })
  t.equal(slope(function(x) return x:cumprod(1) end, { 2, 0, 3 }), { 1, 8, 0 })
  t.equal(slope(function(x) return x:abs() end, { 0, -2 }), { 0, -1 })
  t.equal(slope(function(x) return x:relu() end, { 0, -2, 2 }), { 0, 0, 1 })
  t.equal(slope(function(x) return x:clamp(0, 1) end, { 0, 1, 2 }), { 1, 1, 0 })
  t.equal(slope(pg.sqrt, { 0 }), { INF })
end)

test("losses", function(t)
  local logits = pg.tensor { { 1, 2, 3 }, { 1, 1, 1 } }
  local function ce(...) return pg.cross_entropy(logits, ...) end
  t.close(ce(ints { 2, 0 }), (0.40760596 + math.log(3)) / 2)
  t.close(ce(ints { 2, -100 }), 0.40760596)
  t.equal(ce(ints { -100, -100 }), NAN)
  t.close(ce(ints { 2, 0 }, { reduction = "none" }), { 0.40760596, math.log(3) })
  t.close(ce(ints { 2, 0 }, pg.tensor { 1, 1, 3 }), (3 * 0.40760596 + math.log(3)) / 4)
  t.close(ce(ints { 2, 0 }, { label_smoothing = 0.3, reduction = "none" }),
          { 0.7 * 0.40760596 + 0.3 * 1.40760596, math.log(3) })
end)

test("of several NaN in a window the last is the maximum", function(t)
  local nan = 0 / 0
  local x = pg.tensor { { { { 1, nan, nan, 5 } } } }
  t.equal(pg.max_pool2d(x, { 1, 4 }):isnan():all():item(), true)
  x:requires_grad_()
  pg.max_pool2d(x, { 1, 4 }):sum():backward()
  t.equal(x.grad, { { { { 0, 0, 1, 0 } } } })
end)
