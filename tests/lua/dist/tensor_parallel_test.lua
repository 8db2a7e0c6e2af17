-- SPDX-License-Identifier: Apache-2.0
-- Layers of which processes hold parts compute what whole ones do: results, gradients, training, alone and beside data
-- parallelism; what is refused.

local tests = (debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or ".") .. "/../.."
package.path = tests .. "/?.lua;" .. package.path
local launched = require "launched"
local pg = require "perigee"

local COMMON = [[
local nn, optim = pg.nn, pg.optim
local partial = require "perigee.nn.partial"
pg.set_default_dtype "float64"
local function same_models(model, whole, gradients)
  local named = {}
  for name, p in whole:named_parameters() do named[name] = p end
  for name, p in model:named_parameters() do
    near(name, partial.whole(p), named[name]:detach())
    local part = partial.of(p)
    if gradients then near(name .. ".grad", part and partial.whole(p.grad, part) or p.grad, named[name].grad) end
    named[name] = nil
  end
  same(next(named), nil, "a parameter is missing")
end
]]

test("transformer blocks, on whole sequences and parts: results and gradients are those of whole ones", function(t)
  for _, n in ipairs { 2, 4 } do
    launched.well(t, n, COMMON .. [[
      local g = d.mesh { model = size }.model
      for _, case in ipairs { { false, true }, { true, false }, { true, true } } do
        local sequence, first = case[1], case[2]
        pg.manual_seed(3)
        local block = nn.TransformerEncoderLayer { 8, 4, 16, dropout = 0, norm_first = first, activation = "gelu" }
        local whole = nn.TransformerEncoder { block, 2, nn.LayerNorm { { 8 } } }:to "float64"
        for _, p in ipairs(whole:parameters()) do pg.no_grad(function() p:add_(pg.randn(p.shape) * 0.1) end) end
        local model = whole:clone()
        d.tensor_parallel(model.layers, { group = g, sequence = sequence })
        local x = pg.randn({ 3, 4, 8 }, { requires_grad = true })
        local mask = pg.ones({ 4, 4 }, { dtype = "bool" }):triu(1)
        if first then mask = mask:unsqueeze(1):expand(12, 4, 4) end -- of each head
        local y = whole(x, { mask = mask })
        y:pow(2):sum():backward()
        local dx = x.grad
        x.grad = nil
        local z = sequence and d.split(x, { axis = 2, group = g }) or x
        for i = 1, 2 do z = model.layers[i](z, { mask = mask }) end
        z = model.norm(sequence and d.join(z, { axis = 2, group = g }) or z)
        near("the result", z, y)
        z:pow(2):sum():backward()
        near("the gradient", x.grad, dx)
        same_models(model, whole, true)
        d.load_whole(model, d.whole_state(model))
        same_models(model, whole)
        raises(function() model:state() end, "is the part of a parameter {24, 8}")
      end
    ]])
  end
end)

test("embedding, linear layers, attention weights and cross entropy", function(t)
  launched.well(t, 2, COMMON .. [[
    local g = d.group { 0, 1 }
    pg.manual_seed(4)
    local e, head = nn.Embedding { 12, 4 }, nn.Linear { 4, 12 }
    local s, col = nn.ShardedEmbedding { from = e, group = g }, nn.ColumnLinear { from = head, group = g }
    local ids, labels = pg.randint(0, 12, { 3, 4 }), pg.randint(0, 12, { 3, 4 })
    labels[{ 1, 2 }] = -100
    for _, reduction in ipairs { "mean", "sum", "none" } do
      local o = { label_smoothing = 0.1, reduction = reduction }
      local a = nn.cross_entropy(head(e(ids)):reshape(12, 12), labels:reshape(-1), o)
      o.group = g
      local b = nn.sharded_cross_entropy(col(s(ids)), labels, o)
      near(reduction, b:reshape(a.shape), a)
      a:sum():backward()
      b:sum():backward()
    end
    same_models(s, e, true)
    same_models(col, head, true)
    raises(function() s(pg.tensor({ 12 }, { dtype = "int64" })) end, "out of range")
    raises(function() nn.sharded_cross_entropy(col(s(ids)), labels + 200, { group = g }) end, "gather")
    -- both ends of a pair of linear layers may be whole
    local row, x = nn.RowLinear { from = head, group = g, split = true }, pg.randn { 5, 4 }
    local all = nn.ColumnLinear { from = head, group = g, gather = true }
    near("row", row(x), head(x))
    near("column", all(x), head(x))
    -- what is drawn is what one process draws
    pg.manual_seed(9)
    local drawn = nn.ColumnLinear { 3, 8, group = g }
    pg.manual_seed(9)
    same_models(drawn, nn.Linear { 3, 8 })
    -- weights of heads
    local attention = nn.MultiheadAttention { 8, 4 }:to "float64"
    local heads = nn.ShardedAttention { from = attention, group = g }
    local q, k = pg.randn { 2, 3, 8 }, pg.randn { 2, 5, 8 }
    for _, average in ipairs { true, false } do
      local o = { need_weights = true, average_attn_weights = average }
      local y, w = attention(q, k, k, o)
      local y2, w2 = heads(q, k, k, o)
      near("attention", y2, y)
      near("weights", w2, w)
    end
    -- dropout: other elements on each process, the same place in the sequence behind it
    pg.manual_seed(5)
    local dropped = nn.ShardedDropout { 0.5, group = g }(pg.ones { 64 })
    local both = d.all_gather(dropped:reshape(1, 64))
    same(both[1]:eq(both[2]):all():item(), false, "the same elements were dropped")
    local draws = d.all_gather(pg.rand { 1 }):totable()
    same(draws[1], draws[2])
    raises(function() nn.ColumnLinear { 4, 7, group = g } end, "outputs 7 is no multiple of the 2 processes")
    raises(function() nn.ShardedAttention { 6, 3, group = g } end, "heads 3 is no multiple of the 2 processes")
    raises(function() nn.ColumnLinear { 4, 8, group = {} } end, "group must be one that pg.dist.group or pg.dist.mesh")
    raises(function() d.load_whole(col, { weight = pg.ones { 6, 4 }, bias = pg.ones { 12 } }) end, "expected the whole")
    raises(function() optim.LAMB { col:parameters() } end, "LAMB looks at whole ones")
    -- the norm of all parts
    local expected = optim.clip_grad_norm_(head:parameters(), 0.5)
    near("norm", optim.clip_grad_norm_(col:parameters(), 0.5), expected)
    near("largest", optim.clip_grad_norm_(col:parameters(), 1, math.huge),
         optim.clip_grad_norm_(head:parameters(), 1, math.huge))
    same_models(col, head, true)
  ]])
end)

test("a mesh of replicas and parts trains as one process does", function(t)
  launched.well(t, 4, COMMON .. [[
    local mesh = d.mesh { data = 2, model = 2 }
    same(mesh.axes, { "data", "model" })
    same(mesh.model.ranks, rank < 2 and { 0, 1 } or { 2, 3 })
    same(mesh:group("data").ranks, rank % 2 == 0 and { 0, 2 } or { 1, 3 })
    same(d.mesh { data = 2, model = 2, order = { "model", "data" } }.data.ranks, rank < 2 and { 0, 1 } or { 2, 3 })
    local strategy = d.multi_worker { mesh = mesh }
    same(strategy.num_replicas_in_sync, 2)
    local model, optimizer, alone, alone_optimizer
    pg.manual_seed(rank)
    strategy:scope(function()
      alone = nn.Sequential { nn.TransformerEncoderLayer { 8, 2, 16, dropout = 0 }, nn.Linear { 8, 1 } }:to "float64"
      model = d.tensor_parallel(alone:clone(), { group = mesh.model })
      optimizer = optim.SGD { model:parameters(), lr = 0.05, momentum = 0.9 }
      alone_optimizer = optim.SGD { alone:parameters(), lr = 0.05, momentum = 0.9 }
    end)
    pg.manual_seed(5)
    local x = pg.randn { 10, 4, 8 }
    local ds = pg.data.from_slices { x = x, y = x:sum { axis = 3, keepdim = true } }:batch(4)
    for epoch = 1, 3 do
      for step, b in ds:each() do
        alone_optimizer:zero_grad()
        nn.mse(alone(b.x), b.y):backward()
        optim.clip_grad_norm_(alone:parameters(), 0.5)
        alone_optimizer:step()
      end
      for step, b in strategy:distribute(ds):each() do
        strategy:run(function(b)
          optimizer:zero_grad()
          nn.mse(model(b.x), b.y):backward()
          strategy:reduce_gradients(optimizer)
          optim.clip_grad_norm_(model:parameters(), 0.5)
          optimizer:step()
        end, b)
      end
    end
    same_models(model, alone)
    raises(function() d.mesh { data = 2, model = 3 } end, "data 2 x model 3 make 6, and there are 4 processes")
  ]])
end)

test("layer:on: a model over two devices computes what it does on one", function(t)
  if #pg.devices "sim" < 2 then t.skip "needs two simulated devices" end
  pg.manual_seed(1)
  local nn = pg.nn
  local model = nn.Sequential { nn.Linear { 3, 4 }, nn.ReLU {}, nn.Linear { 4, 2 } }:to "float64"
  local whole = model:clone()
  model[1]:on "sim:0"
  t.equal(model[3]:on "sim:1", model[3])
  local x = pg.randn({ 5, 3 }, { dtype = "float64", requires_grad = true })
  local y = model(x)
  t.equal(y.device, "sim:1")
  y:pow(2):sum():backward()
  local dx = x.grad
  x.grad = nil
  local expected = whole(x)
  expected:pow(2):sum():backward()
  t.close(y, expected)
  t.close(dx, x.grad)
  for i, p in ipairs(model:parameters()) do
    t.equal(p.device, i <= 2 and "sim:0" or "sim:1")
    t.close(p.grad, whole:parameters()[i].grad)
  end
  t.equal(model:clone()(x).device, "sim:1")
  t.equal(model:to "cpu"(x).device, "cpu")
  t.raises(function() model[1]:on "sim:99" end, "there is no device 'sim:99'")
end)

test("meshes of one process, and what is refused", function(t)
  t.equal(pg.dist.mesh { model = 1 }.model.size, 1)
  for _, case in ipairs {
    { { data = 2 }, "data 2 make 2, and there is 1 process" },
    { { data = 1.5 }, "data must be a whole number from 1" },
    { {}, "has no axis" },
    { { data = 1, order = { "modl" } }, "which is no axis" },
    { { group = 1 }, "an axis cannot be called" },
  } do
    t.raises(function() pg.dist.mesh(case[1]) end, case[2])
  end
  t.raises(function() return pg.dist.mesh { data = 1 }.dat end, "did you mean \"data\"?")
  t.raises(function() pg.dist.multi_worker { mesh = { data = 1 } } end, "mesh must be one that pg.dist.mesh made")
end)
