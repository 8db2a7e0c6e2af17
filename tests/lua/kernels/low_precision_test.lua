-- SPDX-License-Identifier: Apache-2.0
-- bfloat16 and float16 accumulate in float32: many small terms, whose running sum in 16 bits would stand still long
-- before the end, give what float32 gives, rounded once.

local pg = require "perigee"
local nn = pg.nn

local N = 4096
local steps = { bfloat16 = 2 ^ -7, float16 = 2 ^ -10 } -- distance of numbers at 1

-- fn of low-precision inputs against fn of the same numbers in float32.
local function agree(t, label, inputs, fn, slack)
  for dtype, step in pairs(steps) do
    local low, wide = {}, {}
    for i, x in ipairs(inputs) do
      local floating = x.dtype == "float32"
      low[i] = floating and x:to(dtype) or x
      wide[i] = floating and low[i]:to("float32") or x
    end
    local a, b = fn(unpack(low)), fn(unpack(wide))
    t.equal({ label, a.dtype }, { label, dtype })
    a = a:to("float32")
    local worst = ((a - b):abs() / b:abs():clamp { min = b:abs():max():item() * 1e-3 }):max():item()
    t.ok(worst <= (slack or 1) * step, ("%s in %s: relative error %g, at most %g expected"):format(label, dtype, worst,
                                                                                                 (slack or 1) * step))
  end
end

local function leaf(x)
  x = x:detach()
  x.requires_grad = true
  return x
end

-- The gradient of a weighted sum of what fn makes of x.
local function gradient(fn)
  return function(x, ...)
    local p = leaf(x)
    local y = fn(p, ...)
    y:backward(pg.full({ unpack(y.shape) }, 0.01):to(y.dtype))
    return p.grad
  end
end

pg.manual_seed(11)
local small = pg.rand { N } * 0.01 + 0.005

test("reductions", function(t)
  agree(t, "sum", { small }, function(x) return x:sum() end)
  agree(t, "sum of columns", { small:reshape(N / 4, 4) }, function(x) return x:sum { axis = 1 } end)
  agree(t, "sum of rows", { small:reshape(4, N / 4) }, function(x) return x:sum { axis = 2 } end)
  agree(t, "mean", { small }, function(x) return x:mean() end)
  agree(t, "var", { small * 100 }, function(x) return x:var() end)
  agree(t, "std", { small * 100 }, function(x) return x:std() end)
  agree(t, "prod", { small * 0.1 + 1 }, function(x) return x:prod() end)
  agree(t, "logsumexp", { small }, function(x) return x:logsumexp() end)
  agree(t, "cumsum", { small }, function(x) return x:cumsum { axis = 1 } end)
  agree(t, "strided sum", { small:reshape(N / 2, 2) }, function(x) return x[{ {}, 1 }]:sum() end)
end)

test("products", function(t)
  local a, b = small:reshape(4, N / 4), small:flip { 1 }:reshape(N / 4, 4)
  agree(t, "matmul", { a, b }, function(x, y) return x:matmul(y) end)
  agree(t, "dot", { small, small:flip { 1 } }, function(x, y) return x:matmul(y) end)
  agree(t, "transposed", { b, a }, function(x, y) return x:transpose(1, 2):matmul(y:transpose(1, 2)) end)
  agree(t, "batches", { small:reshape(4, 4, N / 16), small:reshape(4, N / 16, 4) },
        function(x, y) return x:matmul(y) end)
  local x, w, bias = pg.rand { 40, 300 }, pg.rand { 50, 300 }, pg.rand { 50 }
  agree(t, "linear", { x, w, bias }, function(...) return pg.linear(...) end)
  agree(t, "linear, large", { pg.rand { 130, 520 }, pg.rand { 140, 520 } }, function(...) return pg.linear(...) end)
  agree(t, "linear's weight", { w, pg.rand { 900, 300 } }, gradient(function(p, y) return pg.linear(y, p) end))
  agree(t, "linear's bias", { bias, w, pg.rand { 900, 300 } },
        gradient(function(p, q, y) return pg.linear(y, q, p) end))
  agree(t, "conv2d", { pg.rand { 1, 64, 6, 6 }, pg.rand { 4, 64, 3, 3 } }, function(...) return pg.conv2d(...) end)
  agree(t, "conv2d's weight", { pg.rand { 4, 3, 3, 3 }, pg.rand { 2, 3, 40, 40 } },
        gradient(function(p, y) return pg.conv2d(y, p) end))
end)

test("normalisation, softmax, losses, pooling", function(t)
  local x = pg.rand { 4, N } + 3
  agree(t, "softmax", { x }, function(v) return v:softmax(2) end)
  agree(t, "log_softmax", { x }, function(v) return v:log_softmax(2) end)
  agree(t, "layer_norm", { x }, function(v) return pg.layer_norm(v) end, 2)
  agree(t, "batch_norm", { x:transpose(1, 2) }, function(v) return pg.batch_norm(v, { training = true }) end, 2)
  agree(t, "layer_norm's weight", { pg.rand { 4 }, pg.rand { N, 4 } },
        gradient(function(w, v) return pg.layer_norm(v, w) end), 4)
  agree(t, "avg_pool2d", { pg.rand { 1, 1, 64, 64 } }, function(v) return pg.avg_pool2d(v, { kernel = 64 }) end)
  local labels = pg.randint(0, 4, { N })
  agree(t, "cross_entropy", { pg.rand { N, 4 } }, function(v) return nn.cross_entropy(v, labels) end)
  agree(t, "mse", { small, small:flip { 1 } * 3 }, function(a, b) return nn.mse(a, b) end, 2)
end)

test("gradients that add up", function(t)
  agree(t, "broadcast", { pg.rand { 1 }, small }, gradient(function(p, y) return p * y end))
  agree(t, "embedding", { pg.rand { 3, 2 } }, gradient(function(w)
    return pg.embedding(w, pg.arange(N):remainder(2))
  end))
  agree(t, "gather", { pg.rand { 3 } }, gradient(function(p)
    return p:gather(pg.arange(N):remainder(2), { axis = 1 })
  end))
  agree(t, "index_select", { pg.rand { 3 } }, gradient(function(p)
    return p:index_select(pg.arange(N):remainder(2), { axis = 1 })
  end))
  agree(t, "expand", { pg.rand { 1, 2 } }, gradient(function(p) return p:expand { N, 2 } end))
end)

test("the norm, scaling and clamping of gradients", function(t)
  for dtype, step in pairs(steps) do
    local x = small:to(dtype)
    local expected = x:to("float32"):square():sum():sqrt():item()
    t.close(pg.total_norm({ x }):item(), expected, 1e-5 * expected)
    local y = x:clone()
    t.equal(pg.unscale_all({ { y }, inv_scale = 0.5 }):item(), false)
    t.equal(y:to("float32"):totable(), (x:to("float32") * 0.5):totable())
    pg.scale_all({ y }, pg.tensor(0.3))
    t.close((y:to("float32") / x:to("float32")):totable(), pg.full({ N }, 0.15):totable(), step)
  end
end)

test("gradients of running sums and products are computed in float32", function(t)
  local tiny = pg.tensor({ -1.5557, 6.336e-05, -1.0361, -0.8164, -1.2393 }, { dtype = "float16" })
  local d = pg.tensor({ -1.9844, 1.0293, 2.8770, 2.2129, -1.8516 }, { dtype = "float16" })
  local x, wide = tiny:clone():requires_grad_(), tiny:to("float32"):requires_grad_()
  local got = pg.grad({ x:cumprod(1) }, { x }, { grad_outputs = { d } })
  local expected = pg.grad({ wide:cumprod(1) }, { wide }, { grad_outputs = { d:to("float32") } })
  t.ok(got.dtype == "float16")
  t.ok(pg.allclose(got:to("float32"), expected, { rtol = 1e-3, atol = 1e-6 }), tostring(got))
  local long = pg.ones({ 4000 }, { dtype = "bfloat16", requires_grad = true })
  long:cumsum(1):sum():backward() -- 4000, 3999, ..., 1
  t.ok(pg.allclose(long.grad:to("float32"), pg.arange(4000, 0, -1):to("float32"), { rtol = 0.004 }))
end)
