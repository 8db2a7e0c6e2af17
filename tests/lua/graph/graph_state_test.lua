-- SPDX-License-Identifier: Apache-2.0
-- Graphs: what is written to and what is copied to other devices keeps its place and its history.

local pg = require "perigee"

local function run(f, feeds, fetches)
  return pg.Session { pg.graph(f) }:run(fetches or "y", feeds)
end

test("a copy on a device belongs to one history", function(t)
  local w0, ones = pg.tensor { { 1, 2 }, { 3, 4 } }, pg.ones { 1, 2 }
  local function losses(w, x)
    return pg.device("sim:0", function()
      local metric = pg.no_grad(function() return x:matmul(w):sum() end) -- the copy of w without a history comes first
      return metric, x:matmul(w):square():sum()
    end)
  end
  local w = w0:clone():requires_grad_()
  local _, loss = losses(w, ones)
  local want = pg.grad(loss, { w })
  local got = run(function(g)
    local v = g:variable { "w", init = w0 }
    local _, l = losses(v, g:placeholder { "x", shape = { "n", 2 } })
    return { d = pg.grad(l, { v }) }
  end, { x = ones }, "d")
  t.equal(got, want)
  local d = run(function(g)
    local x = g:placeholder { "x", shape = { 2 } }
    local b, a = x:to("sim:0"), x:detach():to("sim:0")
    return { d = pg.grad((b * a):cpu():sum(), { x }) }
  end, { x = pg.tensor { 3, 5 } }, "d")
  t.equal(d, { 3, 5 }, "the detached copy has no part in it")
end)

test("sizes of a graph given to eager tensors are recorded", function(t)
  local token = pg.randn { 1, 3 }
  local y = run(function(g)
    local x = g:placeholder { "x", shape = { "n", 3 } }
    return { y = pg.cat({ x, token:expand(x:size(1), 3) }, 2) }
  end, { x = pg.ones { 4, 3 } })
  t.equal(y, pg.cat({ pg.ones { 4, 3 }, token:expand(4, 3) }, 2))
  local learnt = pg.randn({ 1, 3 }, { requires_grad = true })
  local d = run(function(g)
    local x = g:placeholder { "x", shape = { "n", 3 } }
    return { d = pg.grad((x * learnt:expand(x.shape)):sum(), { learnt }) }
  end, { x = pg.ones { 4, 3 } }, "d")
  t.equal(d, { { 4, 4, 4 } })
  pg.manual_seed(1)
  local layer = pg.nn.MultiheadAttention { 4, 2, add_bias_kv = true }
  local x = pg.randn { 3, 2, 4 }
  local got = run(function(g)
    local q = g:placeholder { "x", shape = { "b", 2, 4 } }
    return { y = (layer(q, q, q)) }
  end, { x = x })
  t.equal(got, (layer(x, x, x)))
end)

test("batch norm that does not train reads its statistics, and does not write", function(t)
  local layer = pg.nn.BatchNorm1d { 2 }
  layer(pg.randn { 8, 2 })
  layer:eval()
  local mean, x = layer.running_mean:clone(), pg.randn { 3, 2 }
  local y = run(function(g) return { y = layer(g:placeholder { "x", shape = { "n", 2 } }) } end, { x = x })
  t.equal(y, layer(x))
  t.equal(layer.running_mean, mean)
  local learnt = pg.zeros({ 2 }, { requires_grad = true })
  t.equal((pg.batch_norm(x, nil, nil, learnt, pg.ones { 2 })).shape, x.shape, "nothing is written: a leaf will do")
  t.raises(function() return (pg.batch_norm(x, nil, nil, learnt, pg.ones { 2 }, { training = true })) end, "leaf")
  t.raises(function()
    return run(function(g)
      local q = g:placeholder { "x", shape = { "n", 2 } }
      return { y = (pg.batch_norm(q, nil, nil, mean, pg.ones { 2 }, { training = true })) }
    end, { x = x })
  end, "would write into running_mean, an eager tensor")
end)

test("parts of sizes that only a run tells make up the axis", function(t)
  local function part(feeds)
    return run(function(g)
      local x, b = g:placeholder { "x", shape = { 6, 2 } }, g:placeholder { "b", shape = { "b" } }
      local parts = x:split { b:size(1), b:size(1) }
      return { y = parts[1] - parts[2] }
    end, feeds)
  end
  local x = pg.randn { 6, 2 }
  t.equal(part { x = x, b = pg.ones { 3 } }, x[{ { 1, 3 } }] - x[{ { 4, 6 } }])
  t.raises(function() part { x = x, b = pg.ones { 2 } } end, "6")
  t.raises(function() return x:split { "a", 3 } end, "size 1 must be a whole number, got string \"a\"")
  local y = run(function(g)
    local z, b = g:placeholder { "z", shape = { "n", 6 } }, g:placeholder { "b", shape = { "b" } }
    return { y = z:unflatten(2, { b:size(1), -1 }) }
  end, { z = pg.ones { 4, 6 }, b = pg.ones { 2 } })
  t.equal(y.shape, pg.ones({ 4, 2, 3 }).shape)
  t.raises(function()
    pg.graph(function(g) return g:placeholder { "x", shape = { "batch", 3 } }:unflatten(1, { 0, -1 }) end)
  end, "axis 1 of {batch, 3} has batch elements, which {0, %-1} do not make")
end)

test("a write within another device's scope happens where the tensor is", function(t)
  local function write(y)
    pg.device("sim:0", function()
      y[1] = 5
      y[2] = 6
    end)
    return y
  end
  local y = run(function(g)
    return { y = write(g:placeholder { "x", shape = { 2, 2 } } * 1) }
  end, { x = pg.ones { 2, 2 } })
  t.equal(y.device, pg.device())
  t.equal(y, { { 5, 5 }, { 6, 6 } })
  local g = pg.graph(function(g)
    local w = g:variable { "w", shape = { 2, 2 } }
    pg.no_grad(function() write(w) end)
    return { y = w * 1 }
  end)
  local session = pg.Session { g }
  for _ = 1, 2 do
    local w = session:run("y")
    t.equal(w.device, pg.device())
    t.equal(w, { { 5, 5 }, { 6, 6 } })
  end
  local x = pg.ones { 2, 2 }
  local blocks = run(function(graph)
    local p = graph:placeholder { "x", shape = { 2, 2 } }
    return { y = pg.device("sim:0", function() return pg.block_diag(p, p) end) }
  end, { x = x })
  t.equal(blocks:cpu(), pg.block_diag(x, x))
end)

test("a variable that is updated without gradients stays one that they are asked of", function(t)
  local w0 = pg.tensor { 1, 1 }
  local function two(w)
    for _ = 1, 2 do
      local d = pg.grad((w * w):sum(), { w })
      pg.no_grad(function() w:sub_(d * 0.25) end)
    end
    return w * 1
  end
  local want = two(w0:clone():requires_grad_()):detach()
  t.equal(run(function(g) return { y = two(g:variable { "w", init = w0 }) } end), want)
  local g = pg.graph(function(g)
    local w = g:variable { "w", init = w0 * 3 }
    local l = (w * w):sum()
    pg.no_grad(function() w:sub_(0.5) end)
    return { l = l, w2 = w * 1 }
  end)
  local d = g:gradients("l", { "w" })[1]
  t.equal(pg.Session { g }:run(d), { 6, 6 })
end)

test("sizes behind -1 are kept: a run with a size of 0", function(t)
  local empty = pg.ones { 0, 6, 5 }
  for name, f in pairs {
    group_norm = function(x) return pg.group_norm(x, 3) end, instance_norm = pg.instance_norm,
    flatten = function(x) return x:flatten(2) end, reshape = function(x) return x:reshape(x:size(1), -1, 2) end,
  } do
    for _, shape in ipairs { { "n", 6, 5 }, { "n", "c", "l" } } do
      if not (name == "group_norm" and shape[2] == "c") then
        local y = run(function(g) return { y = f(g:placeholder { "x", shape = shape }) } end, { x = empty })
        t.equal(y.shape[1], 0, name)
        if name ~= "reshape" then t.equal(y.shape, f(empty).shape, name) end
      end
    end
  end
end)

test("feeding a variable that is updated replaces what is read", function(t)
  local g = pg.graph(function(g)
    local w = g:variable { "w", init = pg.tensor { 1, 1 } }
    local y = w * 1
    pg.no_grad(function() w:add_(1) end)
    return { y = y, z = w * 1 }
  end)
  local session = pg.Session { g }
  local r = session:run({ "y", "z" }, { w = pg.tensor { 10, 10 } })
  t.equal(r.y, { 10, 10 })
  t.equal(r.z, { 11, 11 })
end)

test("a variable's name reads it; what was computed of its new value updates it", function(t)
  local g = pg.graph(function(g)
    local w, x = g:variable { "w", init = pg.tensor { 1, 1 } }, g:placeholder { "x", shape = { 2 } }
    local l = (w * x):sum()
    pg.no_grad(function() w:sub_(x) end)
    return { l = l, train = w }
  end)
  local s, x = pg.Session { g }, pg.tensor { 1, 2 }
  t.equal(s:run("w"), { 1, 1 }, "needs no feed")
  t.equal(s:run("l", { x = x }), 3)
  t.equal(s:run("w"), { 1, 1 }, "the loss needs no update")
  t.equal(s:run("train", { x = x }), { 0, -1 })
  t.equal(s:run("w"), { 0, -1 })
  local r = s:run({ "w", "train", "l" }, { x = x })
  t.equal(r.w, { -1, -3 }, "what it holds after the run")
  t.equal(r.train, { -1, -3 })
  t.equal(r.l, -2)
  r.w:fill_(7)
  t.equal(s:run("w"), { -1, -3 }, "a fetched tensor is the caller's own")
  local d = g:gradients("l", { "w" })[1]
  t.equal(s:run(d, { x = x }), x)
end)

test("a session's variables are saved and come back", function(t)
  local g = pg.graph(function(g)
    local w = g:variable { "w", shape = { 2 }, init = "ones" }
    local n = g:variable { "n", init = pg.tensor(0, { dtype = "int64" }) }
    pg.no_grad(function()
      w:mul_(2)
      n:add_(1)
    end)
    return { w2 = w, n2 = n }
  end)
  local s, other = pg.Session { g }, pg.Session { g }
  for _ = 1, 3 do s:run { "w2", "n2" } end
  local state = s:state()
  t.equal(state.w, { 8, 8 })
  t.equal(state.n, 3)
  t.equal(other:state().w, { 1, 1 })
  local path = os.tmpname()
  os.remove(path)
  path = path .. ".safetensors"
  pg.save(path, state)
  other:load_state(pg.load(path))
  os.remove(path)
  local next_step = other:run { "w2", "n2" }
  t.equal(next_step.w2, { 16, 16 })
  t.equal(next_step.n2, 4)
  t.equal(s:state().w, { 8, 8 }, "sessions have variables of their own")
  local function refuses(changed, message)
    local given = { w = state.w, n = state.n }
    for name, value in pairs(changed) do given[name] = value or nil end
    local e = t.raises(function() s:load_state(given) end)
    t.equal(e.message:gsub("^[^:]+:%d+: ", ""), "load_state: " .. message)
  end
  refuses({ z = state.w }, 'the graph has no variable "z"')
  refuses({ w = false }, 'variable "w" must be a tensor, got nil')
  refuses({ w = pg.ones { 3 } }, 'variable "w" is float32 {2}; got float32 {3}')
  refuses({ n = pg.tensor(1) }, 'variable "n" is int64 {}; got float32 {}')
  t.equal(s:state().w, { 8, 8 }, "what is refused changes nothing")
end)
