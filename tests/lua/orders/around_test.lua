-- SPDX-License-Identifier: Apache-2.0
-- What lies around eager calls: gradients, graphs, compiled functions, files, host memory and random numbers, of
-- tensors in another order than row-major.

local pg = require "perigee"
local native = require "perigee.native"

local function lies(t, x, ...) t.equal(table.concat(x:stride(), " "), table.concat({ ... }, " ")) end
local function turned(n, m) return pg.rand { m, n }:t() end

test("gradients are those of row-major tensors, and lie as their leaf", function(t)
  local function gradients(move)
    pg.manual_seed(3)
    local x, w, b = move(pg.rand { 3, 4 }), move(pg.rand { 3, 4 }), pg.rand { 4 }
    for _, leaf in ipairs { x, w, b } do leaf:requires_grad_() end
    local y = ((x * w + b):tanh() / (w + 1)):gelu()
    local z = (y * y:detach() + pg.where(x:gt(w), x, w):exp()):reshape(-1)
    z:square():sum():backward()
    return { x, w, b }
  end
  local plain = gradients(function(x) return x:clone() end)
  local apart = gradients(function(x) return x:t():contiguous():t() end)
  for i, leaf in ipairs(apart) do
    -- Of what is broadcast it is a sum, whose last bits depend on the order of what is added.
    if i < 3 then t.equal(leaf.grad:contiguous(), plain[i].grad) else t.close(leaf.grad, plain[i].grad, 1e-6) end
    t.equal(leaf.grad:stride(), leaf:stride())
  end
  lies(t, apart[1].grad, 1, 3)
  -- Added to, and where the leaf has gaps.
  local x = pg.rand { 3, 4 }:t():detach():requires_grad_()
  for i = 1, 3 do
    local loss = (x * 2):sum()
    loss:backward()
    lies(t, x.grad, 1, 4)
    t.equal(x.grad, pg.full({ 4, 3 }, 2 * i))
  end
  local gaps = pg.rand { 6, 4 }[{ { 1, 6, 2 } }]:t():detach():requires_grad_()
  local loss = (gaps * 3):sum()
  loss:backward()
  t.equal(gaps.grad, pg.full({ 4, 3 }, 3))
  local w = pg.rand { 4, 3 }:requires_grad_()
  loss = (w:t() * turned(3, 4)):sum()
  loss:backward()
  lies(t, w.grad, 3, 1)
end)

test("gradients of gradients", function(t)
  local function second(x)
    x:requires_grad_()
    local g = pg.grad((x:pow(3) * x:sin()):sum(), { x }, { create_graph = true })[1]
    return pg.grad(g:square():sum(), { x })[1]
  end
  local x = pg.rand { 4, 5 }
  t.equal(second(x:t():contiguous():t()):contiguous(), second(x:clone()))
  t.ok(pg.gradcheck(function(a, b) return (a * b:t()):tanh() end, { pg.rand { 3, 4 }, pg.rand { 4, 3 } }))
end)

test("compiled functions launch what they recorded, in its order", function(t)
  for _, mode in ipairs { "leave", "fuse" } do
    local step = pg.compile(function(x, y) return ((x * y + x):relu() * 2):sigmoid(), x:t() + 1 end,
                            { fuse = mode == "fuse" })
    local shapes = { { 5, 7 }, { 64, 96 } }
    for call = 1, 12 do
      local n, m = unpack(shapes[call % 2 + 1])
      local x = call % 3 == 0 and pg.rand { n, m } or turned(n, m)
      local y = call % 4 == 0 and pg.rand { n, m } or turned(n, m)
      local a, b = step(x, y)
      local want = ((x * y + x):relu() * 2):sigmoid()
      t.equal(a, want)
      t.equal(a:stride(), want:stride())
      t.equal(b, x:t() + 1)
      t.equal(b:stride(), (x:t() + 1):stride())
    end
  end
end)

test("compiled training of parameters that lie turned", function(t)
  local function train(compiled)
    pg.manual_seed(5)
    local w = pg.rand { 6, 4 }:t():detach():requires_grad_()
    local optimizer = pg.optim.Adam { { w }, lr = 0.1 }
    local function step(x)
      optimizer:zero_grad()
      local loss = ((x * w):tanh() - 0.3):square():mean()
      loss:backward()
      optimizer:step()
      return loss
    end
    local run = compiled and pg.compile(step) or step
    local losses = {}
    for i = 1, 6 do losses[i] = run(turned(4, 6)):item() end
    lies(t, w, 1, 4)
    return losses, w:detach():contiguous()
  end
  local a, x = train(false)
  local b, y = train(true)
  t.equal(b, a)
  t.equal(y, x)
end)

test("graphs and sessions", function(t)
  local g = pg.graph(function(g)
    local x = g:placeholder { "x", shape = { "n", 4 }, dtype = "float32" }
    local w = g:variable { "w", shape = { 4, 4 }, init = "glorot_uniform" }
    local y = (x:t() + 1):relu() * x:t()
    return { y = y, z = (y:t() * 2 - x):matmul(w), flat = y:reshape(-1) }
  end)
  local sess = pg.Session { g }
  for call = 1, 4 do
    local x = call % 2 == 0 and turned(3, 4) or pg.rand { 3, 4 }
    local got = sess:run({ "y", "flat" }, { x = x })
    local want = (x:t() + 1):relu() * x:t()
    t.equal(got.y, want)
    t.equal(got.flat, want:reshape(-1))
    t.equal(sess:run("z", { x = x }), sess:run("z", { x = x:clone() }))
  end
end)

test("files and host memory are row-major", function(t)
  local x = turned(3, 4) * 2
  local path = os.tmpname() .. ".safetensors"
  pg.save(path, { x = x })
  local back = pg.load(path).x
  os.remove(path)
  t.equal(back, x)
  lies(t, back, 4, 1)
  path = os.tmpname() .. ".npy"
  x:save_npy(path)
  t.equal(pg.load_npy(path), x)
  os.remove(path)
  t.equal(x:totable(), x:contiguous():totable())
  t.equal(native.host.bytes(x), native.host.bytes(x:contiguous()))
  t.equal(tostring(x), tostring(x:contiguous()))
  t.equal(x[{ 2, 3 }]:item(), x:contiguous()[{ 2, 3 }]:item())
end)

test("random numbers do not depend on how operands lie", function(t)
  local x = pg.rand { 40, 30 }
  local y = x:t():contiguous():t()
  local function draw(fn, a)
    pg.manual_seed(11)
    return fn(a)
  end
  for _, fn in ipairs { function(a) return pg.bernoulli(a) end, function(a) return pg.dropout(a, 0.4, true) end,
                        function(a) return pg.rand_like(a) end, function(a) return pg.randn_like(a) end } do
    t.equal(draw(fn, y), draw(fn, x))
  end
end)

test("memory is what the elements take", function(t)
  local x = turned(512, 512)
  collectgarbage() pg.memory.empty_cache()
  local before = pg.memory.stats().live
  local y = x + x
  t.equal(pg.memory.stats().live - before, 512 * 512 * 4)
  y:free()
end)
