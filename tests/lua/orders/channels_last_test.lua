-- SPDX-License-Identifier: Apache-2.0
-- Convolution, pooling and batch norm on images whose channels lie last: the numbers of row-major ones, in an order
-- that stays, forward and backward.

local pg = require "perigee"
local native = require "perigee.native"

-- The simulated device has kernels of row-major images alone: there the numbers are looked at.
local keeps_order = not pg.device():find "^sim"

local FORMATS = { [4] = "channels_last", [5] = "channels_last_3d" }
local function last(x)
  local format = FORMATS[x:dim()]
  return format and x:contiguous { memory_format = format } or x:transpose(2, 3):contiguous():transpose(2, 3)
end
local function lies_last(x)
  local format = FORMATS[x:dim()]
  return format and x:is_contiguous { memory_format = format } or x:transpose(2, 3):is_contiguous()
end

-- fn on row-major and on channels-last leaves: results and gradients agree. `exact`: to the bit. `stays`: the result
-- and the first leaf's gradient lie channels-last.
local function check(t, what, fn, leaves, o)
  local function run(move)
    local list = {}
    for i, leaf in ipairs(leaves) do
      list[i] = (leaf:dim() >= 3 and move(leaf) or leaf):detach():clone()
      if leaf.dtype:find "float" then list[i]:requires_grad_() end
    end
    local y, more = fn(unpack(list))
    if o.backward ~= false then
      pg.manual_seed(5)
      local weights = move(pg.rand(y.shape):to(y.dtype))
      local loss = (y * weights):float():sum()
      loss:backward()
    end
    return y, list, more
  end
  local want, plain, others = run(function(x) return x end)
  local got, turned, more = run(last)
  local near = o.near or 1e-5
  local function same(a, b, name)
    a, b = a:detach():contiguous(), b:detach():contiguous()
    if o.exact then
      t.ok(native.host.bytes(a) == native.host.bytes(b), what .. ": " .. name .. " differs")
    else
      local off = (a:to "float64" - b:to "float64"):abs()
      local scale = b:to("float64"):abs():max():item() + 1e-3
      t.ok(off:numel() == 0 or off:max():item() <= near * scale, ("%s: %s is off by %g"):format(what, name,
           off:max():item()))
    end
  end
  same(got, want, "the result")
  if more then t.equal(more:contiguous(), others) end
  if o.stays ~= false and keeps_order then
    t.ok(lies_last(got), what .. ": the result lies " .. table.concat(got:stride(), " "))
    if more then t.ok(lies_last(more), what .. ": the indices lie " .. table.concat(more:stride(), " ")) end
  end
  for i, leaf in ipairs(turned) do
    if leaf.grad and o.backward ~= false then same(leaf.grad, plain[i].grad, "gradient " .. i) end
  end
end

test("pooling, to the bit", function(t)
  pg.manual_seed(2)
  local windows = { { 2, {} }, { 3, { stride = 2, padding = 1 } }, { 3, { stride = 1 } }, { 2, { stride = 3 } } }
  for _, dtype in ipairs { "float32", "float64", "bfloat16", "float16" } do
    for _, shape in ipairs { { 2, 5, 9, 8 }, { 1, 70, 6, 7 }, { 3, 2, 4, 11 } } do
      local x = pg.randn(shape):to(dtype)
      for _, window in ipairs(windows) do
        local k, o = window[1], window[2]
        local what = ("pool %s %s %d"):format(dtype, tostring(x.shape), k)
        check(t, "max " .. what, function(a) return pg.max_pool2d(a, k, o) end, { x }, { exact = true })
        check(t, "avg " .. what, function(a) return pg.avg_pool2d(a, k, o) end, { x },
              { near = dtype:find "16" and 1e-2 or 1e-6 })
      end
    end
  end
  local x = pg.randn { 2, 3, 9, 9 }
  x[{ 1, 2, 3, 3 }], x[{ 1, 2, 3, 4 }], x[{ 2, 1, 1, 1 }] = 0 / 0, 0 / 0, -math.huge
  x[{ 2, 3 }] = -math.huge
  local function pooled(a) return native.call("max_pool2d", { a }, { kernel = { 3, 3 }, stride = { 2, 2 },
                                                                   padding = { 1, 1 }, dilation = { 1, 1 } }) end
  check(t, "NaN and infinities", pooled, { x }, { exact = true, backward = false })
  check(t, "dilated", function(a) return pg.max_pool2d(a, 2, { dilation = 2, stride = 1 }) end,
        { pg.randn { 2, 3, 7, 7 } }, { exact = true })
  check(t, "adaptive", function(a) return pg.adaptive_max_pool2d(a, { 3, 2 }) end, { pg.randn { 2, 3, 7, 8 } },
        { exact = true })
  check(t, "volumes", function(a) return pg.max_pool3d(a, 2) end, { pg.randn { 2, 3, 4, 6, 5 } }, { exact = true })
  check(t, "volumes, means", function(a) return pg.avg_pool3d(a, 2) end, { pg.randn { 2, 3, 4, 6, 5 } }, {})
  check(t, "sequences", function(a) return pg.max_pool1d(a, 3) end, { pg.randn { 2, 3, 11 } }, { exact = true })
end)

test("batch norm", function(t)
  pg.manual_seed(3)
  for _, dtype in ipairs { "float32", "float64", "bfloat16", "float16" } do
    for _, shape in ipairs { { 4, 6, 5, 7 }, { 2, 150, 9, 8 }, { 8, 3, 40, 33 }, { 2, 17, 1, 3 } } do
      local x, w, b = (pg.randn(shape) * 2 + 5):to(dtype), pg.rand { shape[2] }, pg.rand { shape[2] }
      local kind = dtype == "float64" and "float64" or "float32"
      local near = dtype:find "16" and 2e-2 or 2e-4
      w, b = w:to(kind), b:to(kind)
      for _, training in ipairs { true, false } do
        local mean, var = pg.zeros { shape[2] }:to(kind), pg.ones { shape[2] }:to(kind)
        local function norm(a, c, d)
          return pg.batch_norm(a, c, d, mean:clone(), var:clone(), { training = training })
        end
        check(t, ("batch_norm %s %s"):format(dtype, tostring(x.shape)), norm, { x, w, b }, { near = near })
        check(t, "with relu", function(a, c, d) return norm(a, c, d):relu() end, { x, w, b }, { near = near })
      end
    end
  end
end)

test("the variance of many pixels far from zero", function(t)
  local x = pg.randn { 4, 16, 128, 128 } + 100
  local mean, var = pg.zeros { 16 }, pg.ones { 16 }
  local y = pg.batch_norm(last(x), nil, nil, mean, var, { training = true, momentum = 1 })
  t.ok(lies_last(y) or not keeps_order)
  t.close(mean, x:to("float64"):mean { axis = { 1, 3, 4 } }:to "float32", 1e-4)
  t.close(var, x:to("float64"):var { axis = { 1, 3, 4 } }:to "float32", 1e-3)
end)

test("convolutions", function(t)
  pg.manual_seed(4)
  local cases = {
    { { 2, 8, 9, 10 }, { 16, 8, 3, 3 }, { padding = 1 } }, { { 2, 8, 9, 10 }, { 16, 8, 3, 3 }, { stride = 2 } },
    { { 3, 16, 7, 7 }, { 24, 16, 1, 1 }, {} }, { { 2, 8, 9, 9 }, { 8, 4, 3, 3 }, { groups = 2, padding = 1 } },
    { { 2, 12, 8, 8 }, { 12, 1, 3, 3 }, { groups = 12, padding = 1 } },
    { { 1, 5, 11, 6 }, { 7, 5, 3, 2 }, { dilation = 2, padding = 2 } },
    { { 16, 32, 28, 28 }, { 32, 32, 3, 3 }, { padding = 1 } }, { { 2, 3, 12, 12 }, { 8, 3, 5, 5 }, {} },
  }
  for _, dtype in ipairs { "float32", "float64", "bfloat16" } do
    for i, case in ipairs(cases) do
      local x, w = pg.randn(case[1]):to(dtype), (pg.randn(case[2]) * 0.2):to(dtype)
      local b = pg.randn { case[2][1] }:to(dtype)
      local near = dtype == "bfloat16" and 3e-2 or 1e-4
      -- What oneDNN does not compute (float64, bfloat16 on some processors) goes by columns: results are row-major.
      check(t, ("conv2d %d %s"):format(i, dtype), function(a, c, d) return pg.conv2d(a, c, d, case[3]) end, { x, w, b },
            { near = near, stays = dtype == "float32" })
      check(t, ("conv2d %d %s, relu"):format(i, dtype), function(a, c) return pg.conv2d(a, c, nil, case[3]):relu() end,
            { x, w }, { near = near, stays = dtype == "float32" })
    end
  end
  check(t, "conv3d", function(a, c) return pg.conv3d(a, c) end,
        { pg.randn { 2, 8, 5, 6, 7 }, pg.randn { 8, 8, 3, 3, 3 } }, { near = 1e-4 })
  check(t, "conv_transpose2d", function(a, c, d) return pg.conv_transpose2d(a, c, d, { stride = 2 }) end,
        { pg.randn { 2, 8, 6, 6 }, pg.randn { 8, 12, 3, 3 }, pg.randn { 12 } }, { near = 1e-4, stays = false })
  check(t, "conv_transpose2d without bias", function(a, c) return pg.conv_transpose2d(a, c, nil, { stride = 2 }) end,
        { pg.randn { 2, 8, 6, 6 }, pg.randn { 8, 12, 3, 3 } }, { near = 1e-4 })
  -- Filters that lie channels-last alone bring the result there, as in PyTorch.
  local x, w = pg.randn { 2, 8, 6, 6 }, pg.randn { 8, 8, 3, 3 }
  local y = pg.conv2d(x, last(w))
  t.ok(lies_last(y) or not keeps_order)
  t.close(y, pg.conv2d(x, w), 1e-4)
end)

test("gradients of convolutions of large batches, and behind relu", function(t)
  pg.manual_seed(6)
  local x, w, b = pg.randn { 32, 24, 30, 30 }, pg.randn { 40, 24, 3, 3 } * 0.1, pg.randn { 40 }
  local function grads(move, wants)
    local list = { move(x):detach():clone(), move(w):detach():clone(), b:clone() }
    for i, leaf in ipairs(list) do
      if wants[i] then leaf:requires_grad_() end
    end
    local y = pg.conv2d(list[1], list[2], list[3], { padding = 1 }):relu()
    local loss = (y * y):mean()
    loss:backward()
    return list
  end
  for _, wants in ipairs { { true, true, true }, { false, true, true }, { true, true, false } } do
    local plain, turned = grads(function(v) return v end, wants), grads(last, wants)
    for i = 1, 3 do
      t.ok((plain[i].grad ~= nil) == wants[i])
      if wants[i] then
        local scale = plain[i].grad:abs():max():item()
        t.close(turned[i].grad / scale, plain[i].grad / scale, 1e-4)
        t.ok(i == 3 or lies_last(turned[i].grad))
      end
    end
  end
end)

test("other orders than channels-last are computed too", function(t)
  local x = pg.randn { 2, 4, 6, 8 }
  local turned = x:transpose(3, 4):contiguous():transpose(3, 4)
  local w = pg.randn { 4, 4, 3, 3 }
  t.close(pg.conv2d(turned, w), pg.conv2d(x, w), 1e-4)
  t.equal(pg.max_pool2d(turned, 2), pg.max_pool2d(x, 2))
  t.close(pg.avg_pool2d(turned, 2), pg.avg_pool2d(x, 2), 1e-6)
  local mean, var = pg.zeros { 4 }, pg.ones { 4 }
  t.close(pg.batch_norm(turned, nil, nil, mean, var), pg.batch_norm(x, nil, nil, mean, var), 1e-5)
  local empty = pg.zeros { 0, 4, 6, 8 }:contiguous { memory_format = "channels_last" }
  t.equal(pg.max_pool2d(empty, 2).shape, { 0, 4, 3, 4 })
  t.equal(pg.batch_norm(empty, nil, nil, mean, var).shape, { 0, 4, 6, 8 })
end)

test("a network stays channels-last, forward and backward", function(t)
  local nn = pg.nn
  local net = nn.Sequential { nn.Conv2d { 3, 16, 3, padding = 1 }, nn.BatchNorm2d { 16 }, nn.ReLU {},
                              nn.MaxPool2d { 2 }, nn.Conv2d { 16, 24, 3, padding = 1 }, nn.BatchNorm2d { 24 },
                              nn.GELU {}, nn.AvgPool2d { 2 } }
  net:to { memory_format = "channels_last" }
  local x = pg.randn { 4, 3, 16, 16 }:to { memory_format = "channels_last" }:requires_grad_()
  local y = x
  for i = 1, 8 do
    y = net[i](y)
    t.ok(lies_last(y) or not keeps_order, "behind layer " .. i)
  end
  y:square():sum():backward()
  t.ok(lies_last(x.grad))
  for _, p in ipairs(net:parameters()) do
    if p:dim() == 4 then t.ok(lies_last(p.grad)) end
  end
end)
