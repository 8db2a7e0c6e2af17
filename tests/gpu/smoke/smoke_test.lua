-- SPDX-License-Identifier: Apache-2.0
-- The first minute on a device: one use of each kind of work, compared with the CPU. Which kinds work at all, before
-- the suites say what exactly does not; the sizes are such that kernels for large tensors and vendors' libraries run.

local pg = require "perigee"
local nn, optim = pg.nn, pg.optim
local device = pg.device()
local FLOATS = { "float32", "float64", "float16", "bfloat16" }
local TOLERANCE = { float64 = 1e-9, float32 = 1e-4, float16 = 2e-2, bfloat16 = 1e-1 }

local function on_cpu(fn) return pg.device("cpu", fn) end

-- Numbers of which sums and products stay near one: others for each seed, the same in every run.
local function numbers(seed, shape)
  return on_cpu(function()
    pg.manual_seed(seed)
    return pg.randn(shape) * 0.5
  end)
end

-- fn(tensors...) answers a list of tensors: they are the same on the device as on the CPU in float64, within what the
-- dtype allows of the largest.
local function same(t, dtype, inputs, fn)
  local here, there = {}, {}
  for i, x in ipairs(inputs) do
    local float = x.dtype == "float32"
    local rounded = float and x:to(dtype) or x
    here[i], there[i] = float and rounded:to("float64") or x, rounded:to(device)
  end
  local expected = on_cpu(function() return fn(unpack(here)) end)
  local got = fn(unpack(there))
  t.equal(#got, #expected)
  for i, y in ipairs(got) do
    t.equal(y.shape, expected[i].shape)
    t.equal(y.device, device)
    local a, b = y:cpu():to("float64"), expected[i]:to("float64")
    local most = math.max(b:abs():amax():item(), 1e-3)
    local off = (a - b):abs():amax():item() / most
    local wrong = off ~= off or off > (TOLERANCE[dtype] or 0)
    if wrong then error(("result %d is off by %g of its largest"):format(i, off), 0) end
  end
end

local function smoke(name, dtypes, shapes, fn)
  for _, dtype in ipairs(dtypes) do
    test(("smoke/%s/%s"):format(name, dtype), function(t)
      local inputs = {}
      for i, shape in ipairs(shapes) do inputs[i] = type(shape) == "function" and shape() or numbers(i, shape) end
      same(t, dtype, inputs, fn)
    end)
  end
end

-- The gradients of all inputs as well.
local function with_gradients(fn)
  return function(...)
    local inputs = { ... }
    for i, x in ipairs(inputs) do
      if x.dtype ~= "int64" then inputs[i] = x:detach():requires_grad_() end
    end
    local y = fn(unpack(inputs))
    local found = { y }
    local leaves = {}
    for _, x in ipairs(inputs) do
      if x.requires_grad then leaves[#leaves + 1] = x end
    end
    local dy = y:dim() == 0 and pg.ones_like(y) or numbers(99, y.shape):to(y.dtype):to(y.device)
    for _, d in ipairs { pg.grad({ y }, leaves, { grad_outputs = { dy } }) } do found[#found + 1] = d end
    return found
  end
end

local function indices(limit, ...)
  local shape = { ... }
  return function()
    return on_cpu(function()
      pg.manual_seed(9)
      return pg.randint(0, limit, shape)
    end)
  end
end

-- ---- memory and elements ----

test("smoke/copies", function(t)
  local there = on_cpu(function() return pg.arange(2 ^ 22) end):to(device)
  t.equal(there.device, device)
  t.equal(there:sum():item(), (2 ^ 22 - 1) * 2 ^ 21)
  local turned = there:reshape(1024, 4096):t():contiguous():cpu()
  t.equal(turned[{ 3, 5 }]:item(), 4 * 4096 + 2)
  t.equal(turned[{ -1, -1 }]:item(), 2 ^ 22 - 1)
end)

smoke("elementwise", FLOATS, { { 513, 257 }, { 513, 257 }, { 257 } }, function(a, b, row)
  return { a + b * row, a:gelu(), (a - b):abs():sqrt(), a:exp() / (row * row + 1), a:t() * 2 }
end)
smoke("integers", { "int64" }, { indices(1000, 4099), indices(7, 4099) }, function(a, b)
  return { a + b, a * b, a:ge(b):to("int64"), pg.where(a:gt(500), a, b) }
end)
smoke("reductions", FLOATS, { { 129, 1031 } }, function(x)
  return { x:sum(), x:sum(1), x:mean(2), x:amax(1), x:var { axis = 2 }, x:cumsum(2) }
end)
smoke("softmax of 50,257", { "float32", "bfloat16" }, { { 5, 50257 } }, function(x)
  return { x:softmax { axis = 2 }, x:log_softmax { axis = 2 } }
end)

-- ---- libraries of the vendor ----

smoke("matmul", FLOATS, { { 130, 70 }, { 70, 90 } }, with_gradients(function(a, b) return a:matmul(b) end))
smoke("batched matmul", FLOATS, { { 6, 64, 32 }, { 6, 64, 32 } },
      with_gradients(function(a, b) return a:matmul(b:transpose(2, 3)) end))
smoke("linear", FLOATS, { { 64, 96 }, { 128, 96 }, { 128 } },
      with_gradients(function(x, w, b) return pg.linear(x, w, b):gelu() end))
smoke("conv2d 3x3", FLOATS, { { 4, 32, 14, 14 }, { 48, 32, 3, 3 } },
      with_gradients(function(x, w) return pg.conv2d(x, w, nil, { padding = 1 }) end))
smoke("conv2d 7x7, stride 2", { "float32", "bfloat16" }, { { 2, 3, 32, 32 }, { 16, 3, 7, 7 } },
      with_gradients(function(x, w) return pg.conv2d(x, w, nil, { padding = 3, stride = 2 }) end))
smoke("batch_norm", { "float32", "bfloat16" }, { { 8, 16, 7, 7 }, { 16 }, { 16 } }, with_gradients(function(x, w, b)
  return (pg.batch_norm(x, w, b, nil, nil, { training = true }))
end))
smoke("layer_norm", FLOATS, { { 33, 768 }, { 768 }, { 768 } },
      with_gradients(function(x, w, b) return (pg.layer_norm(x, w, b)) end))
smoke("pooling", { "float32", "bfloat16" }, { { 2, 8, 16, 16 } }, with_gradients(function(x)
  return (pg.max_pool2d(x, { kernel = 3, stride = 2, padding = 1 })) + pg.avg_pool2d(x, { kernel = 2 })
end))
smoke("attention", { "float32", "float16", "bfloat16" }, { { 2, 4, 65, 64 }, { 2, 4, 65, 64 }, { 2, 4, 65, 64 } },
      with_gradients(function(q, k, v) return pg.scaled_dot_product_attention(q, k, v, { is_causal = true }) end))

-- ---- indices, order, random numbers ----

smoke("embedding and cross entropy", { "float32", "bfloat16" }, { indices(300, 64), { 300, 40 }, indices(40, 64) },
      with_gradients(function(ids, table, labels) return pg.cross_entropy(pg.embedding(table, ids), labels) end))
smoke("order", { "float32" }, { { 40, 1000 } }, function(x)
  local sorted = x:sort(2)
  return { sorted, (x:topk(10, 2)), x:gt(0.5):nonzero(), x:argmax(2) }
end)
smoke("gather", { "float32" }, { { 50, 60 }, indices(50, 50, 20) }, function(x, i)
  return { x:gather(2, i), x[i[1]] }
end)

test("smoke/an index out of range is told, and the device goes on", function(t)
  local x, i = pg.ones { 3 }, pg.tensor({ 0, 5 }, { dtype = "int64" })
  t.raises(function()
    local _ = x[i]
    pg.synchronize(device)
  end, "index 5")
  t.equal((x + 1):totable(), { 2, 2, 2 })
end)

test("smoke/random numbers have the CPU's bits", function(t)
  local function draw()
    pg.manual_seed(3)
    local list = { pg.rand { 10007 }, pg.randn { 10007 }, pg.randint(0, 1000, { 10007 }), pg.randperm(1009) }
    for i, x in ipairs(list) do list[i] = x:cpu():totable() end
    return list
  end
  local here, there = on_cpu(draw), draw()
  for i in ipairs(here) do t.close(there[i], here[i], 1e-6) end
end)

-- ---- training ----

local function network()
  return nn.Sequential {
    nn.Conv2d { 1, 16, 3, padding = 1 }, nn.BatchNorm2d { 16 }, nn.ReLU {}, nn.MaxPool2d { 2 }, nn.Flatten {},
    nn.Linear { 256, 10 },
  }
end

-- What some steps of training lose on a device; `how` runs the function of a loss.
local function losses(on, how)
  local x, y = numbers(1, { 64, 1, 8, 8 }):to(on), indices(10, 64)():to(on)
  pg.manual_seed(5)
  local model = on_cpu(network):to(on)
  local optimizer = optim.Adam { model:parameters(), lr = 5e-3 }
  local found = {}
  for i = 1, 15 do
    optimizer:zero_grad()
    local loss = how(function() return nn.cross_entropy(model(x), y) end)
    loss:backward()
    optimizer:step()
    found[i] = loss:item()
  end
  return found
end

local function training(name, how, tolerance)
  test("smoke/training/" .. name, function(t)
    local here = on_cpu(function() return losses("cpu", function(fn) return fn() end) end)
    local there = losses(device, how)
    t.close(there[1], here[1], tolerance)
    t.close(there[5], here[5], 20 * tolerance)
    t.ok(there[15] < 0.7 * there[1], ("from %g to %g"):format(there[1], there[15]))
  end)
end
training("float32", function(fn) return fn() end, 1e-3)
training("bfloat16", function(fn) return pg.amp.autocast({ dtype = "bfloat16" }, fn) end, 5e-2)

-- ---- what is left when memory is not ----

test("smoke/out of memory is an error and leaves the device usable", function(t)
  local err = t.raises(function() return pg.zeros({ 2 ^ 43 }, { dtype = "int8" }) end)
  t.equal(err.code, "out_of_memory")
  t.equal(pg.ones({ 4 }):sum():item(), 4)
end)
