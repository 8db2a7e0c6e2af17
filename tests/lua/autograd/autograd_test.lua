-- SPDX-License-Identifier: Apache-2.0
-- Autograd: views, writes in place, saved values and their versions, backward more than once, higher orders, scopes.
-- Gradients of each operator stand in tests/cases; here is how they meet.

local pg = require "perigee"

local function leaf(data, dtype) return pg.tensor(data, { dtype = dtype, requires_grad = true }) end
local function normal(...) return pg.randn({ ... }, { dtype = "float64" }) end

test("gradients flow through views", function(t)
  local w = leaf { { 1, 2, 3 }, { 4, 5, 6 } }
  local row, column = w[1], w[{ {}, 2 }];
  (row * column:sum()):sum():backward()
  t.equal(w.grad, { { 7, 13, 7 }, { 0, 6, 0 } })
  w = leaf { { 1, 2 }, { 3, 4 } };
  (w:t()[2] * pg.tensor { 10, 100 }):sum():backward()
  t.equal(w.grad, { { 0, 10 }, { 0, 100 } })
end)

test("a write through a view has a gradient", function(t)
  local w, v = leaf { 1, 2, 3 }, leaf { 5 }
  local y = w:clone()
  y[{ { 2, 2 } }] = v * 2;
  (y * y):sum():backward()
  t.equal(w.grad, { 2, 0, 6 })
  t.equal(v.grad, { 40 })
end)

test("a write through a view of a view", function(t)
  local w = leaf { { 1, 2 }, { 3, 4 } }
  local y = w * 1
  y:t()[2]:add_(pg.tensor { 10, 10 });
  (y * y):sum():backward()
  t.equal(w.grad, { { 2, 24 }, { 6, 28 } })
end)

test("views see what is written to their base, and the reverse", function(t)
  local w = leaf { 1, 2, 3 }
  local y = w:clone()
  local part = y[{ { 1, 2 } }]
  y:mul_(2);
  (part * part):sum():backward()
  t.equal(w.grad, { 8, 16, 0 })
  w = leaf { 1, 2, 3 }
  y = w:clone()
  part = y[{ { 1, 2 } }]
  part:mul_(3);
  (y * y):sum():backward()
  t.equal(w.grad, { 18, 36, 6 })
end)

test("writing into a tensor without history gives it one", function(t)
  local w = leaf { 1, 2 }
  local y = pg.zeros { 2, 2 }
  y[1] = w
  y[2] = w * 3;
  (y * y):sum():backward()
  t.equal(w.grad, { 20, 40 })
end)

test("a broadcast write", function(t)
  local w = leaf { 1, 2 }
  local y = pg.zeros { 3, 2 }
  y:add_(w)
  y:sum():backward()
  t.equal(w.grad, { 3, 3 })
end)

test("masks and index tensors", function(t)
  local w = leaf { 1, 2, 3 }
  local y = w * 1
  y[y:gt(1.5)] = 0
  y:sum():backward()
  t.equal(w.grad, { 1, 0, 0 })
  w = leaf { 1, 2, 3 }
  w[pg.tensor { 0, 0, 2, dtype = "int64" }]:sum():backward()
  t.equal(w.grad, { 2, 0, 1 })
  w = leaf { 1, 2, 3 };
  (w[pg.tensor { true, false, true }] ^ 2):sum():backward()
  t.equal(w.grad, { 2, 0, 6 })
end)

test("in place on a leaf is refused, through views too", function(t)
  local w = leaf { 1, 2 }
  t.raises(function() w:add_(1) end, "add_.*leaf that requires gradients.*no_grad")
  t.raises(function() w[1]:add_(1) end, "view of a leaf")
  t.raises(function() w[1] = 3 end, "view of a leaf")
  t.raises(function() w:copy_(pg.zeros { 2 }) end, "leaf")
  t.raises(function() w:zero_() end, "leaf")
  t.equal(w, { 1, 2 })
  pg.no_grad(function()
    w:add_(1)
    w[1] = 7
  end)
  t.equal(w, { 7, 3 })
  t.ok(w.requires_grad and w.is_leaf)
end)

test("a saved value that was changed", function(t)
  local w = leaf { 1, 2 }
  local z = (w * 2):exp()
  z:mul_(2)
  local err = t.raises(function() z:sum():backward() end, "exp.*modified in place.*clone")
  t.ok(err.code == "failed_precondition", err.code)
  local y = w * 1
  local square = y * y
  y[1] = 0
  t.raises(function() square:sum():backward() end, "mul.*modified in place")
  square = w * w
  pg.no_grad(function() w:add_(1) end)
  t.raises(function() square:sum():backward() end, "modified in place")
  y = w + 1 -- add needs no value
  local sum = y + w
  pg.no_grad(function() w:add_(1) end)
  sum:sum():backward()
  t.equal(w.grad, { 2, 2 })
end)

test("backward twice", function(t)
  local w = leaf { 1, 2 }
  local loss = (w * w):sum()
  loss:backward()
  t.raises(function() loss:backward() end, "released by an earlier backward.*retain_graph")
  t.equal(w.grad, { 2, 4 })
  loss = (w * w):sum()
  loss:backward { retain_graph = true }
  loss:backward()
  t.equal(w.grad, { 6, 12 })
  local shared = w * w
  local a, b = shared:sum(), shared:mean()
  a:backward()
  t.raises(function() b:backward() end, "released")
end)

test("gradients accumulate in one object", function(t)
  local w = leaf { 1, 2 }
  t.equal(w.grad, nil)
  for i = 1, 3 do (w * i):sum():backward() end
  t.equal(w.grad, { 6, 6 })
  local seen = w.grad
  local keyed = { [seen] = "found" };
  (w * 2):sum():backward()
  t.ok(rawequal(w.grad, seen) and keyed[w.grad] == "found")
  w.grad = nil
  t.equal(w.grad, nil);
  (w * 3):sum():backward()
  t.equal(w.grad, { 3, 3 })
  w.grad = pg.tensor { 1, 1 };
  (w * 3):sum():backward()
  t.equal(w.grad, { 4, 4 })
  t.raises(function() w.grad = pg.ones { 3 } end, "%[3%].*expected.*%[2%]")
  t.raises(function() w.grad = pg.ones { 2, dtype = "float64" } end, "float64")
  t.raises(function() w.grad = 1 end)
  w:zero_grad()
  t.equal(w.grad, nil)
end)

test("seeds", function(t)
  local w = leaf { 1, 2 };
  (w * 2):backward(pg.tensor { 1, 10 })
  t.equal(w.grad, { 2, 20 })
  t.raises(function() (w * 2):backward() end, "one element, or a seed")
  t.raises(function() (w * 2):backward(pg.ones { 3 }) end, "seed has shape %[3%]; expected %[2%]")
  t.raises(function() (w * 2):backward(1) end)
  t.raises(function() pg.ones { 1 }:backward() end, "nothing that requires gradients")
end)

test("pg.grad", function(t)
  local a, b = leaf { 3 }, leaf { 2 }
  local m = a * a
  t.equal(pg.grad((m * m):sum(), { m }), { 18 })
  local x, y = pg.grad((a * a):sum(), { a, a })
  t.equal(x, { 6 })
  t.equal(y, { 6 })
  t.raises(function() pg.grad((a * 2):sum(), { a, b }) end, "do not depend on input 2.*allow_unused")
  x, y = pg.grad((a * 2):sum(), { a, b }, { allow_unused = true })
  t.equal(x, { 2 })
  t.equal(y, nil)
  t.equal(a.grad, nil, "pg.grad leaves .grad alone")
  t.equal(pg.grad({ a * 2, a * b }, { a }, { grad_outputs = { pg.tensor { 10 }, pg.tensor { 1 } } }), { 22 })
end)

test("second and third order", function(t)
  local x = leaf { 2 }
  local first = pg.grad((x ^ 3):sum(), { x }, { create_graph = true })
  local second = pg.grad(first:sum(), { x }, { create_graph = true })
  t.equal(first, { 12 })
  t.equal(second, { 12 })
  t.equal(pg.grad(second:sum(), { x }), { 6 })
  t.ok(first.requires_grad)
  t.ok(not pg.grad((x ^ 3):sum(), { x }).requires_grad, "without create_graph it is a plain tensor")
  local w = leaf { 2 };
  (w ^ 3):sum():backward { create_graph = true }
  t.equal(pg.grad(w.grad:sum(), { w }), { 12 })
end)

-- Differences of a function of the first gradients: what the gradients' own gradients must equal.
local function second_order(fn, inputs)
  return pg.gradcheck(function(...)
    local leaves = { ... }
    for _, x in ipairs(leaves) do
      if not x.requires_grad then x.requires_grad = true end
    end
    local y = fn(unpack(leaves))
    local total = 0
    for _, g in ipairs { pg.grad((y * y:cos()):sum(), leaves, { create_graph = true }) } do
      total = (g * g):sum() + total
    end
    return total
  end, inputs)
end

local labels = { 0, 2, 1 }
local twice = {
  { "conv2d", function(x, w, b) return pg.conv2d(x, w, b, { stride = 2, padding = 1 }) end, { 1, 2, 5, 5 },
    { 3, 2, 3, 3 }, { 3 } },
  { "conv2d with groups", function(x, w) return pg.conv2d(x, w, { dilation = 2, groups = 2 }) end, { 1, 2, 6, 5 },
    { 4, 1, 2, 2 } },
  { "batch_norm in training", function(x, w, b) return (pg.batch_norm(x, w, b, { training = true })) end, { 4, 3, 2 },
    { 3 }, { 3 } },
  { "layer_norm", function(x, w, b) return pg.layer_norm(x, w, b) end, { 3, 4 }, { 4 }, { 4 } },
  { "max_pool2d", function(x) return pg.max_pool2d(x, 2) end, { 2, 2, 4, 4 } },
  { "avg_pool2d", function(x) return pg.avg_pool2d(x, 2) end, { 2, 2, 4, 4 } },
  { "softmax", function(x) return x:softmax(2) end, { 3, 4 } },
  { "cross_entropy", function(x) return pg.cross_entropy(x, pg.tensor(labels, { dtype = "int64" }),
                                                         { label_smoothing = 0.1 }) end, { 3, 4 } },
  { "matmul", function(a, b) return a:matmul(b) end, { 2, 1, 3, 4 }, { 5, 4, 2 } },
  { "embedding", function(w) return pg.embedding(w, pg.tensor(labels, { dtype = "int64" })) end, { 3, 4 } },
  { "slices", function(x) return x[{ { 1, -1, 2 }, { 2, 3 } }] end, { 4, 4 } },
  { "slice assignment", function(x, v)
    local y = x:clone()
    y[{ 2, { 1, 3 } }] = v * 2
    return y * x
  end, { 4, 4 }, { 3 } },
  { "all_reduce", function(a, b)
    local x, y = pg.all_reduce { a, b }
    return x + y * 2
  end, { 3 }, { 3 } },
  { "var, cat, expand", function(a, b)
    return pg.cat({ a:var { axis = 1, keepdim = true }, b }, 1):unsqueeze(1):expand(2, -1, -1)
  end, { 3, 2 }, { 2, 2 } },
}
for _, row in ipairs(twice) do
  test("gradients of gradients: " .. row[1], function()
    pg.manual_seed(4)
    local inputs = {}
    for i = 3, #row do inputs[i - 2] = normal(unpack(row[i])) end
    pg.gradcheck(row[2], inputs)
    second_order(row[2], inputs)
  end)
end

test("no_grad, enable_grad, detach, clone", function(t)
  local w = leaf { 1, 2 }
  local inner
  local y = pg.no_grad(function()
    inner = pg.enable_grad(function() return w * 2 end)
    return w * 2
  end)
  t.ok(not y.requires_grad and inner.requires_grad)
  local d = (w * 2):detach()
  t.ok(not d.requires_grad)
  d:add_(1)
  t.equal(d, { 3, 5 });
  (w * d):sum():backward()
  t.equal(w.grad, { 3, 5 })
  local shares = w:detach()
  shares[1] = 9
  t.equal(w, { 9, 2 })
  t.ok(w:clone().requires_grad)
end)

test("what can require gradients", function(t)
  t.raises(function() leaf({ 1 }, "int64") end, "floating.*int64")
  local y = leaf { 1 } * 2
  t.raises(function() y.requires_grad = false end, "detach")
  t.ok(not (leaf { 1 }:gt(0)).requires_grad)
  t.ok(not leaf { 1, 2 }:argmax().requires_grad)
  t.ok(leaf { 1 }:to("float16").requires_grad)
  t.ok(not leaf { 1 }:to("int64").requires_grad)
end)

test("gradients have the dtype and shape of their leaf", function(t)
  local a, b = leaf { { 1, 2, 3 } }, leaf({ { 1 }, { 2 } }, "float64");
  (a * b):sum():backward()
  t.equal(a.grad, { { 3, 3, 3 } })
  t.equal(a.grad.dtype, "float32")
  t.equal(b.grad, { { 6 }, { 6 } })
  t.equal(b.grad.dtype, "float64")
end)

test("chains of any length", function(t)
  local x = leaf { 1 }
  local y = x
  for _ = 1, 20000 do y = y + 1 end
  y:sum():backward()
  t.equal(x.grad, { 1 })
  y = x
  for _ = 1, 100000 do y = y * 1.0 end
  y = nil -- luacheck: ignore
  pg.memory.collect() -- a recursive release would overflow the stack
end)

test("zero elements", function(t)
  local w = pg.zeros { 0, 3 }:requires_grad_();
  (w * 2):sum():backward()
  t.equal(w.grad.shape, { 0, 3 })
  local v = leaf { { 1, 2, 3 } }
  v[{ { 2, 5 } }]:sum():backward()
  t.equal(v.grad, { { 0, 0, 0 } })
end)

test("gradcheck finds a wrong gradient", function(t)
  t.raises(function() pg.gradcheck(function(x) return x * x:detach() end, { pg.tensor { 2 } }) end,
           "input 1, element 1")
end)

test("a failed backward leaves gradients alone", function(t)
  local w = leaf { 1, 2 };
  (w * 1):sum():backward()
  local y = w * 1
  local z = y * y
  y:add_(1)
  t.raises(function() (z + w):sum():backward() end, "modified")
  t.equal(w.grad, { 1, 1 })
end)

test("gradcheck of inputs that do not lie row by row, which stay as they are", function(t)
  local x = pg.arange(6):reshape(2, 3):transpose(1, 2)
  local last = pg.randn({ 1, 2, 3, 2 }):permute(1, 4, 2, 3)
  local function both(a, b) return a * a * pg.tensor { 1, 2 }, (b:sum(2) * b:sum(3):sum()):sin() end
  t.ok(pg.gradcheck(both, { x, last }))
  t.equal(x:totable(), { { 0, 3 }, { 1, 4 }, { 2, 5 } })
  -- Each element costs two calls of the function, not tables of all elements too.
  t.ok(pg.gradcheck(function(a) return a:sum() end, { pg.zeros { 3000 } }))
end)

test("gradcheck of a function that differentiates", function(t)
  t.ok(pg.gradcheck(function(x, y)
    return (pg.grad((x:sin() * y):sum(), { x }, { create_graph = true }))
  end, { normal(3), normal(3) }))
end)
