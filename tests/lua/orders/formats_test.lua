-- SPDX-License-Identifier: Apache-2.0
-- Memory formats by name: to, contiguous, is_contiguous, models; and what is wrong with a call.

local pg = require "perigee"
local nn = pg.nn

local function lies(t, x, ...) t.equal(table.concat(x:stride(), " "), table.concat({ ... }, " ")) end

test("images and volumes with their channels last", function(t)
  local x = pg.rand { 2, 3, 4, 5 }
  local y = x:to { memory_format = "channels_last" }
  lies(t, y, 60, 1, 15, 3)
  t.equal(y, x)
  t.ok(y:is_contiguous { memory_format = "channels_last" })
  t.ok(not y:is_contiguous())
  t.ok(not y:is_contiguous { memory_format = "contiguous" })
  t.ok(not x:is_contiguous { memory_format = "channels_last" })
  t.ok(y:to { memory_format = "channels_last" } == y, "what lies so is answered itself")
  t.ok(y:to { memory_format = "preserve" } == y)
  lies(t, y:contiguous(), 60, 20, 5, 1)
  lies(t, y:to { memory_format = "contiguous" }, 60, 20, 5, 1)
  lies(t, y:clone(), 60, 1, 15, 3)
  lies(t, y:clone { memory_format = "contiguous" }, 60, 20, 5, 1)
  lies(t, x:contiguous { memory_format = "channels_last" }, 60, 1, 15, 3)
  local half = x:to { dtype = "bfloat16", memory_format = "channels_last" }
  t.equal(half.dtype, "bfloat16")
  lies(t, half, 60, 1, 15, 3)
  local v = pg.rand { 2, 3, 4, 5, 6 }:to { memory_format = "channels_last_3d" }
  lies(t, v, 360, 1, 90, 18, 3)
  t.ok(v:is_contiguous { memory_format = "channels_last_3d" })
  t.ok(not v:is_contiguous { memory_format = "channels_last" }, "of another number of axes")
end)

test("one channel, or one pixel, lies in both orders", function(t)
  local x = pg.rand { 2, 1, 4, 5 }
  t.ok(x:is_contiguous() and x:is_contiguous { memory_format = "channels_last" })
  t.ok(x:to { memory_format = "channels_last" } == x)
  local y = pg.rand { 2, 3, 1, 1 }
  t.ok(y:is_contiguous() and y:is_contiguous { memory_format = "channels_last" })
  t.ok(pg.zeros { 2, 0, 4, 5 }:is_contiguous { memory_format = "channels_last" })
end)

test("mistakes with formats", function(t)
  local x = pg.rand { 2, 3, 4 }
  t.raises(function() return x:to { memory_format = "channels_last" } end,
           "to: channels_last is an order of 4 axes, %[n, c, h, w%]; got {2, 3, 4}")
  t.raises(function() return x:contiguous { memory_format = "channels_last_3d" } end,
           "contiguous: channels_last_3d is an order of 5 axes, %[n, c, d, h, w%]; got {2, 3, 4}")
  t.raises(function() return x:clone { memory_format = "channels_last" } end, -- of the operator itself
           "channels_last is an order of 4 axes, %[n, c, h, w%]; got x %[2, 3, 4%]")
  t.raises(function() return pg.zeros_like(x, { memory_format = "channels_last" }) end, "zeros_like: channels_last is")
  t.raises(function() return x:to { memory_format = "chanels_last" } end, "channels_last")
  t.raises(function() return x:is_contiguous { memory_format = "preserve" } end,
           "memory_format must be one of contiguous, channels_last, channels_last_3d")
  t.raises(function() return x:is_contiguous { format = "channels_last" } end, "memory_format")
  t.raises(function() return x:to "channels_last" end, 't:to{memory_format="channels_last"}')
  t.raises(function() return x:to {} end, "needs a device or a dtype, got nothing")
  t.raises(function() return nn.Linear { 2, 3 }:to "channels_last" end, 'model:to{memory_format="channels_last"}')
  t.raises(function() return nn.Linear { 2, 3 }:to { memory_format = "channels_lst" } end, "channels_last")
  t.raises(function() return nn.Linear { 2, 3 }:to { dtype = "int64" } end, "a layer's dtype must be a floating one")
  t.raises(function() return nn.Linear { 2, 3 }:to {} end, "needs a device, a dtype or a memory_format, got nothing")
end)

test("a model's parameters and buffers", function(t)
  local model = nn.Sequential { nn.Conv2d { 3, 8, 3, padding = 1 }, nn.BatchNorm2d { 8 }, nn.ReLU {}, nn.Flatten {},
                                nn.Linear { 8 * 36, 2 } }
  local x = pg.rand { 2, 3, 6, 6 }
  local before = model:eval()(x)
  local weight = model[1].weight
  model(x):sum():backward()
  local gradient = weight.grad:clone()
  t.ok(model:to { memory_format = "channels_last" } == model)
  t.ok(model[1].weight == weight, "the same object")
  lies(t, weight, 27, 1, 9, 3)
  lies(t, weight.grad, 27, 1, 9, 3)
  t.equal(weight.grad, gradient)
  lies(t, model[5].weight, 288, 1)
  t.close(model(x), before, 1e-5)
  t.close(model(x:to { memory_format = "channels_last" }), before, 1e-5)
  model:to { dtype = "float64", memory_format = "contiguous" }
  t.equal(weight.dtype, "float64")
  lies(t, weight, 27, 9, 3, 1)
  model:to { "float32" }
  t.equal(weight.dtype, "float32")
  t.close(model(x), before, 1e-5)
end)

test("training a model whose filters lie channels last is training it", function(t)
  local function train(format)
    pg.manual_seed(7)
    local model = nn.Sequential { nn.Conv2d { 3, 8, 3, padding = 1 }, nn.BatchNorm2d { 8 }, nn.ReLU {},
                                  nn.MaxPool2d { 2 }, nn.Conv2d { 8, 16, 3 }, nn.ReLU {}, nn.AdaptiveAvgPool2d { 1 },
                                  nn.Flatten {}, nn.Linear { 16, 4 } }
    if format then model:to { memory_format = format } end
    local optimizer, losses = pg.optim.AdamW { model:parameters(), lr = 1e-2 }, {}
    local x, y = pg.rand { 8, 3, 12, 12 }, pg.randint(0, 4, { 8 })
    if format then x = x:to { memory_format = format } end
    for i = 1, 4 do
      optimizer:zero_grad()
      local loss = nn.cross_entropy(model(x), y)
      loss:backward()
      optimizer:step()
      losses[i] = loss:item()
    end
    return losses, model
  end
  local a, plain = train()
  local b, last = train "channels_last"
  for i = 1, 4 do t.close(b[i], a[i], 1e-4) end
  lies(t, last[5].weight, 72, 1, 24, 8)
  lies(t, last[5].weight.grad, 72, 1, 24, 8)
  t.close(last[5].weight, plain[5].weight, 2e-3)
end)

test("in a graph, a format is asked for and not known", function(t)
  local g = pg.graph(function(g)
    local x = g:placeholder { "x", shape = { "batch", 3, 4, 5 }, dtype = "float32" }
    t.raises(function() return x:is_contiguous { memory_format = "channels_last" } end, "not known in a graph")
    t.ok(x:is_contiguous())
    t.raises(function() return x:reshape(-1, 5):to { memory_format = "channels_last" } end, "order of 4 axes")
    return { y = x:to { memory_format = "channels_last" }:relu() * 2 }
  end)
  local x = pg.rand { 2, 3, 4, 5 }
  local sess = pg.Session { g }
  for _ = 1, 3 do
    local y = sess:run("y", { x = x })
    t.equal(y, x * 2)
    lies(t, y, 60, 1, 15, 3)
  end
end)
