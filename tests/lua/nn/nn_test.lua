-- SPDX-License-Identifier: Apache-2.0
-- Layers: registration, names, modes, state, printing, errors; losses against their definitions.

local pg = require "perigee"
local nn = pg.nn

local function names_of(model)
  local list = {}
  for name in model:named_parameters() do list[#list + 1] = name end
  return list
end

test("layers from plugins: shapes, names, defaults", function(t)
  local conv = nn.Conv2d { 3, 8, 5, padding = 2, stride = { 2, 1 } }
  t.ok(conv.weight:has_shape { 8, 3, 5, 5 })
  t.ok(conv.bias:has_shape { 8 })
  t.ok(conv(pg.zeros { 2, 3, 6, 6 }):has_shape { 2, 8, 3, 6 })
  local bound = 1 / math.sqrt(3 * 25)
  t.ok(conv.weight:abs():max():item() <= bound)
  t.ok(conv.weight:abs():max():item() > bound * 0.9)
  t.equal(nn.Linear { 3, 4, bias = false }.bias, nil)
  t.equal(nn.BatchNorm2d { 4 }.running_var:totable(), { 1, 1, 1, 1 })
  t.ok(nn.Dense == nn.Linear)
end)

test("a linear layer applies its activation, trained or not", function(t)
  local x = pg.randn { 5, 4 }
  local reference = { relu = function(y) return y:relu() end, none = function(y) return y end,
                      gelu_tanh = function(y) return y:gelu { approximate = "tanh" } end }
  for name, activate in pairs(reference) do
    local layer = nn.Linear { 4, 3, activation = name }
    local function gradients(y)
      layer:zero_grad()
      y:square():sum():backward()
      return layer.weight.grad:clone(), layer.bias.grad:clone()
    end
    local expected = activate(pg.linear(x, layer.weight, layer.bias))
    local by_weight, by_bias = gradients(expected)
    for _, training in ipairs { true, false } do
      layer:train(training)
      local y = layer(x)
      t.close(y, expected, 1e-6)
      local weight, bias = gradients(y)
      t.close(weight, by_weight, 1e-5)
      t.close(bias, by_bias, 1e-5)
    end
  end
  t.raises(function() nn.Linear { 4, 3, activation = "tanh" } end, "none, relu, gelu_tanh")
end)

test("sizes are inferred at the first input", function(t)
  local model = nn.Sequential { nn.Conv2d { out = 4, kernel = 3 }, nn.Flatten {}, nn.Linear { 10 } }
  t.equal(names_of(model), { "0.weight", "0.bias", "2.weight", "2.bias" })
  t.raises(function() model:count_parameters() end, "first input")
  local weight = model[3].weight
  t.ok(model(pg.zeros { 2, 3, 5, 5 }):has_shape { 2, 10 })
  t.ok(model[3].weight == weight and weight:has_shape { 10, 36 })
  t.equal(model:count_parameters(), 4 * 3 * 9 + 4 + 360 + 10)
  local loss = model(pg.ones { 2, 3, 5, 5 }):sum()
  loss:backward()
  t.equal(weight.grad:has_shape { 10, 36 }, true)
end)

local Net = nn.class "Net"
function Net:init(o)
  self.fc = nn.Linear { o.inputs, o.outputs }
  self.scale = nn.Parameter(pg.ones { 1 })
  self.blocks = { nn.Linear { 2, 2 }, nn.Linear { 2, 2 } }
  self:buffer("n", pg.zeros { 1 })
  self.note = "kept as it is"
end
function Net:forward(x)
  x = self.fc(x):relu() * self.scale
  for _, block in ipairs(self.blocks) do x = block(x) end
  return x
end

test("fields register in the order of assignment", function(t)
  local net = Net { inputs = 3, outputs = 2 }
  t.equal(names_of(net), { "fc.weight", "fc.bias", "scale", "blocks.0.weight", "blocks.0.bias", "blocks.1.weight",
                           "blocks.1.bias" })
  t.equal(#net:parameters(), 7)
  t.equal(net:count_parameters(), 8 + 1 + 12)
  t.equal(net:size(), (8 + 1 + 12 + 1) * 4)
  t.equal(#net:children(), 3)
  t.equal(#net:modules(), 4)
  local state = net:state()
  t.ok(state.n and state["blocks.1.weight"])
  net.blocks[3] = nn.Linear { 2, 2 }
  t.equal(#net:parameters(), 9)
end)

test("classes extend", function(t)
  local Sub = nn.class("Sub", Net)
  function Sub:init(o)
    Net.init(self, o)
    self.extra = nn.Linear { o.outputs, 1 }
  end
  function Sub:forward(x) return self.extra(Net.forward(self, x)) end
  local sub = Sub { inputs = 3, outputs = 2 }
  t.ok(sub(pg.zeros { 4, 3 }):has_shape { 4, 1 })
  t.equal(names_of(sub)[9], "extra.bias")
  t.ok(tostring(sub):find("^Sub%("))
end)

test("shared parameters count once and save under each name", function(t)
  local a = nn.Linear { 2, 2 }
  local model = nn.Sequential { a, a }
  t.equal(#model:parameters(), 2)
  t.ok(model:state()["1.weight"])
end)

test("training and evaluation", function(t)
  local model = nn.Sequential { nn.Linear { 4, 4 }, nn.Dropout { 0.5 } }
  local x = pg.ones { 8, 4 }
  model:eval()
  t.equal(model[2].training, false)
  t.equal(model(x):totable(), model(x):totable())
  model:train()
  t.ok((model(x):eq(0):sum():item()) > 0)
  local norm = nn.BatchNorm1d { 4 }
  norm(pg.full({ 3, 4 }, 2) + pg.randn { 3, 4 })
  t.ok(norm.running_mean[1]:item() ~= 0)
  local before = norm.running_mean:totable()
  norm:eval()
  norm(pg.ones { 3, 4 })
  t.equal(norm.running_mean:totable(), before)
end)

test("a hook sees and replaces all that a layer gives", function(t)
  local pool, x, seen = nn.MaxPool2d { 2, return_indices = true }, pg.arange(16):to("float32"):reshape(1, 1, 4, 4)
  local handle = pool:hook("forward", function(...) seen = { n = select("#", ...), ... } end)
  local y, indices, more = pool(x)
  t.equal({ seen.n, seen[3] == y, seen[4] == indices, more }, { 4, true, true })
  t.equal({ y:totable(), indices:totable() }, { { { { { 5, 7 }, { 13, 15 } } } }, { { { { 5, 7 }, { 13, 15 } } } } })
  pool:hook("forward", function(_, _, _, where) return nil, where + 1, "more" end)
  local again, shifted, third = pool(x)
  t.equal({ again:totable(), shifted:totable(), third }, { y:totable(), (indices + 1):totable(), "more" })
  t.equal(seen.n, 4) -- the hook before it saw what the layer gave
  handle:remove()
  t.equal(select("#", pool(x)), 3)
end)

test("freeze, apply, hook, clone", function(t)
  local model = nn.Sequential { nn.Linear { 2, 3 }, nn.ReLU {} }
  model:freeze()
  t.equal(model:count_parameters { trainable = true }, 0)
  model:unfreeze()
  t.equal(model:count_parameters { trainable = true }, 9)
  local seen = 0
  model:apply(function() seen = seen + 1 end)
  t.equal(seen, 3)
  local shapes = {}
  local handle = model[1]:hook("forward", function(_, inputs, output)
    shapes = { inputs[1].shape[2], output.shape[2] }
  end)
  model(pg.zeros { 1, 2 })
  t.equal(shapes, { 2, 3 })
  handle:remove()
  local copy = model:clone()
  t.equal(copy[1].weight:totable(), model[1].weight:totable())
  pg.no_grad(function() copy[1].weight:add_(1) end)
  t.ok(copy[1].weight[1][1]:item() ~= model[1].weight[1][1]:item())
  t.equal(#copy:parameters(), 2)
  t.ok(copy[1].weight.requires_grad)
end)

test("state and load_state", function(t)
  local a, b = nn.Linear { 2, 2 }, nn.Linear { 2, 2 }
  b:load_state(a:state())
  t.equal(b.weight:totable(), a.weight:totable())
  t.raises(function() b:load_state { weight = a.weight } end, "Missing: bias")
  local missing, unexpected = b:load_state({ weight = a.weight, other = a.bias }, { strict = false })
  t.equal({ missing, unexpected }, { { "bias" }, { "other" } })
  t.raises(function() b:load_state({ weight = a.weight }, { strict = "no" }) end, "strict must be true or false")
  t.raises(function() b:load_state({ weight = a.weight }, 5) end, "options must be a table, got number 5")
  t.raises(function() b:load_state { weight = pg.zeros { 3, 2 }, bias = a.bias } end, "is {2, 2} here but {3, 2}")
  b:load_state { weight = a.weight, bias = a.bias, num_batches_tracked = pg.tensor(3) }
  local lazy = nn.Linear { 2 }
  lazy:load_state(a:state())
  t.equal(lazy(pg.ones { 1, 2 }):totable(), a(pg.ones { 1, 2 }):totable())
end)

test("moving to a dtype keeps the tensors' identity", function(t)
  local model = nn.Linear { 2, 2 }
  local weight = model.weight
  model:to("float64")
  t.ok(model.weight == weight)
  t.equal(weight.dtype, "float64")
  t.ok(weight.requires_grad and weight.is_leaf)
  t.equal(model(pg.ones({ 1, 2 }, { dtype = "float64" })).dtype, "float64")
  t.raises(function() model:to("int64") end, "floating")
end)

test("printing", function(t)
  t.equal(tostring(nn.Linear { 10 }), "Linear(out=10)") -- the size that the first input says is not known yet
  local model = nn.Sequential { nn.Conv2d { 1, 2, 3, padding = 1 }, nn.ReLU {} }
  local text = tostring(model)
  t.ok(text:find("(1): Conv2d(inputs=1, out=2, kernel={3, 3}, padding={1, 1})", 1, true), text)
  t.ok(text:find("(2): ReLU()", 1, true), text)
end)

test("errors name the layer's path, and the process goes on", function(t)
  local net = nn.Sequential { nn.Linear { 3, 4 }, nn.Sequential { nn.Linear { 5, 6 } } }
  t.raises(function() net(pg.zeros { 2, 3 }) end, "Sequential%.1%.0 %(Linear%)")
  t.raises(function() pg.zeros({ 2 }):matmul(3) end)
  t.ok(not tostring(t.raises(function() pg.zeros({ 2 }):matmul(3) end)):find("Sequential"))
  t.raises(function() nn.Linear { 3, 0 } end, "out must be positive")
  t.raises(function() nn.Conv2d { 1, 2, 3, paddin = 1 } end, "padding")
  t.raises(function() nn.Liner { 3 } end, "nn.Linear")
  t.raises(function() nn.Sequential { 3 } end, "must be a layer")
  t.raises(function() net.state = 3 end, "method")
  t.raises(function() nn.class("Empty") {}(pg.zeros { 1 }) end, "no forward")
  t.raises(function() nn.Linear { 2, 2 }(3) end, "tensor")
  t.ok(nn.Linear { 3, 4 }(pg.zeros { 2, 3 }):has_shape { 2, 4 })
end)

test("losses against their definitions", function(t)
  local x = pg.tensor { { 1, 2, 0.5 }, { 0.1, -1, 3 } }
  local y = pg.tensor({ 1, 2 }, { dtype = "int64" })
  local function nll(row, label)
    local sum = 0
    for _, v in ipairs(row) do sum = sum + math.exp(v) end
    return math.log(sum) - row[label + 1]
  end
  local expected = (nll({ 1, 2, 0.5 }, 1) + nll({ 0.1, -1, 3 }, 2)) / 2
  t.close(nn.cross_entropy(x, y):item(), expected, 1e-6)
  t.close(nn.nll(x:log_softmax(2), y):item(), expected, 1e-6)
  t.close(nn.CrossEntropyLoss {}(x, y):item(), expected, 1e-6)
  local ignored = pg.tensor({ 1, -100 }, { dtype = "int64" })
  t.close(nn.nll(x:log_softmax(2), ignored):item(), nll({ 1, 2, 0.5 }, 1), 1e-6)
  local a, b = pg.tensor { 1, 2, 5 }, pg.tensor { 1.5, 2, 2 }
  t.close(nn.mse(a, b):item(), (0.25 + 9) / 3, 1e-6)
  t.close(nn.l1(a, b, { reduction = "sum" }):item(), 3.5, 1e-6)
  t.close(nn.huber(a, b):item(), (0.125 + 2.5) / 3, 1e-6)
  t.close(nn.smooth_l1(a, b, { beta = 2 }):item(), (0.25 / 4 + 2) / 3, 1e-6)
  local p, q = pg.tensor { 0.2, 0.9 }, pg.tensor { 0, 1 }
  local bce = -(math.log(0.8) + math.log(0.9)) / 2
  t.close(nn.bce(p, q):item(), bce, 1e-5)
  t.close(nn.bce_with_logits((p / (1 - p)):log(), q):item(), bce, 1e-5)
  t.raises(function() nn.mse(pg.zeros { 3, 1 }, pg.zeros { 3 }) end, "{3, 1}")
  t.raises(function() nn.mse(a, b, { reductoin = "sum" }) end, "reduction")
end)

test("summary fills in sizes and counts", function(t)
  local model = nn.Sequential { nn.Conv2d { out = 4, kernel = 3 }, nn.BatchNorm2d {}, nn.Flatten {}, nn.Linear { 10 } }
  local lines, own_print = {}, print
  rawset(_G, "print", function(text) lines[#lines + 1] = text end)
  local ok, err = pcall(model.summary, model, { input = { 1, 8, 8 } })
  rawset(_G, "print", own_print)
  t.ok(ok, tostring(err))
  t.ok(lines[1]:find("3 (Linear)", 1, true) and lines[1]:find("{1, 10}", 1, true), lines[1])
  t.equal(model:count_parameters(), 40 + 8 + 4 * 36 * 10 + 10)
  t.equal(model.training, true)
end)

test("layers without weights, and embeddings", function(t)
  local x = pg.tensor { -1, 0, 2 }
  t.close(nn.LeakyReLU { 0.2 }(x), pg.tensor { -0.2, 0, 2 })
  t.close(nn.ELU {}(x), pg.tensor { math.exp(-1) - 1, 0, 2 })
  t.close(nn.Softmax { axis = 1 }(pg.ones { 4 }), pg.full({ 4 }, 0.25))
  t.close(nn.GELU {}(pg.ones { 1 }):item(), 0.8413447, 1e-5)
  t.close(nn.AvgPool2d { 2 }(pg.arange(4):to("float32"):reshape(1, 1, 2, 2)):item(), 1.5)
  t.ok(nn.Flatten {}(pg.zeros { 2, 3, 4 }):has_shape { 2, 12 })
  t.ok(nn.Flatten { 1, 2 }(pg.zeros { 2, 3, 4 }):has_shape { 6, 4 })
  local rows = nn.LayerNorm { 4 }(pg.randn { 2, 4 })
  t.close(rows:mean { axis = 2 }, pg.zeros { 2 }, 1e-5)
  local embedding = nn.Embedding { 5, 3, padding_idx = 0 }
  t.close(embedding(pg.tensor({ 0 }, { dtype = "int64" })), pg.zeros { 1, 3 })
  t.raises(function() embedding(pg.tensor({ 5 }, { dtype = "int64" })):totable() end, "5") -- read: it may come late
  t.close(nn.Residual { nn.Identity {} }(pg.ones { 2 }), pg.full({ 2 }, 2))
  t.close(nn.Residual {}(pg.ones { 2 }), pg.full({ 2 }, 2))
  t.raises(function() nn.Residual.forward(pg.ones { 2 }) end, "Residual.*self must be a layer")
end)

test("Residual lets go of what its layers gave, unless somebody has seen it", function(t)
  t.uncompiled()
  local x = pg.randn { 256, 256 }
  local layer, bytes = nn.Linear { 256, 256 }, 256 * 256 * 4
  local function grown(fn)
    collectgarbage()
    pg.memory.empty_cache()
    local before = pg.memory.stats().live
    local y = fn()
    local more = pg.memory.stats().live - before
    y:free()
    return more
  end
  local inner = nn.Residual { layer, nn.Tanh {} }
  pg.no_grad(function()
    inner(x) -- what is kept for the next call is there
    inner(x)
    local more = grown(function() return inner(x) end)
    -- A block may be larger than the tensor by what is not worth splitting off, less than an eighth of it.
    t.ok(more >= bytes and more < bytes * 9 / 8, more)
    local seen
    local watched = nn.Residual { layer, function(v)
      seen = v
      return v
    end }
    t.equal(watched(x), x + seen) -- still open
    t.equal(seen, layer(x))
  end)
  local leaf = x:clone():requires_grad_()
  local y = inner(leaf)
  local dy = pg.randn { 256, 256 }
  local d = pg.grad({ y }, { leaf, layer.weight }, { grad_outputs = { dy } })
  local apart = leaf + layer(leaf):tanh()
  t.equal(y:detach(), apart:detach())
  t.equal(d, (pg.grad({ apart }, { leaf, layer.weight }, { grad_outputs = { dy } })))
end)

test("a layer answers all that its forward does", function(t)
  local Many = nn.class "Many"
  function Many:forward(n, x)
    if n == 0 then return end
    if n == 1 then return nil end
    if n == 2 then return x, nil end
    return nil, x, nil
  end
  local function counted(...) return select("#", ...), ... end
  local many, x = Many {}, pg.ones { 1 }
  t.equal(counted(many(0)), 0)
  t.equal(counted(many(0, x)), 0)
  t.equal(counted(many(1)), 1)
  t.equal(counted(many(2, x)), 2)
  t.equal(counted(many(2)), 2)
  local n, a, b, c = counted(many(3, x))
  t.ok(n == 3 and a == nil and b == x and c == nil)
  local compiled = pg.compile(function(...) return many(...) end)
  for _ = 1, 4 do
    t.equal(counted(compiled(0)), 0)
    t.equal(counted(compiled(1)), 1)
    n, a, b, c = counted(compiled(3, x))
    t.ok(n == 3 and a == nil and b == x and c == nil)
    n, a, b, c = counted(pg.scope(function(...) return many(...) end, 3, x))
    t.ok(n == 3 and a == nil and b == x and c == nil)
  end
end)
