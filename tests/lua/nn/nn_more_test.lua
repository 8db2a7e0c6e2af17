-- SPDX-License-Identifier: Apache-2.0
-- Layers and losses that PyTorch has no twin of, those that draw random numbers, and messages. Numbers of the others
-- are checked by layers_test.lua and the reference vectors.

local pg = require "perigee"
local nn = pg.nn

local function near(t, a, b, what)
  t.ok(pg.allclose(a, b, { rtol = 1e-5, atol = 1e-6 }), what or "the values differ")
end

test("dropout of channels drops whole ones and scales the rest", function(t)
  local shapes = { Dropout1d = { 40, 50, 3 }, Dropout2d = { 40, 50, 3, 2 }, Dropout3d = { 40, 50, 2, 2, 2 } }
  for name, shape in pairs(shapes) do
    local layer = nn[name] { 0.25 }
    pg.manual_seed(1)
    local y = layer(pg.ones(shape)):reshape(2000, -1)
    near(t, y:amax(2), y:amin(2), name)
    local kept = y:amax(2):ne(0):to("float32"):mean():item()
    t.ok(math.abs(kept - 0.75) < 0.05, name .. " keeps " .. kept)
    t.ok(math.abs(y:max():item() - 1 / 0.75) < 1e-6)
    layer:eval()
    t.equal(layer(pg.ones(shape)):min():item(), 1)
  end
  t.raises(function() nn.Dropout2d { 0.5 } (pg.ones { 2, 3 }) end, "expected 4 axes, got {2, 3}")
  t.raises(function() nn.Dropout2d { 2 } end, "p must lie in %[0, 1%], got 2")
end)

test("AlphaDropout keeps mean and variance", function(t)
  pg.manual_seed(2)
  local x = pg.randn { 200000 }
  local y = nn.AlphaDropout { 0.3 } (x)
  t.ok(math.abs(y:mean():item()) < 0.02 and math.abs(y:var():item() - 1) < 0.02)
  t.ok(pg.allclose(nn.AlphaDropout { 0.3 }:eval()(x), x))
end)

test("RoPE turns pairs, and products depend on the distance only", function(t)
  for _, interleaved in ipairs { false, true } do
    local rope = nn.RoPE { 8, interleaved = interleaved }
    local q, k = pg.randn({ 8 }):expand { 2, 10, 8 }, pg.randn({ 8 }):expand { 2, 10, 8 }
    local scores = rope(q):matmul(rope(k):transpose(2, 3))
    near(t, scores[{ 1, 3, 1 }], scores[{ 2, 9, 7 }])
    near(t, rope(q):square():sum(-1), q:square():sum(-1))
    near(t, rope(q, 4)[{ {}, 1 }], rope(q)[{ {}, 5 }])
    t.ok(not pg.allclose(scores[{ 1, 3, 1 }], scores[{ 1, 4, 1 }]))
  end
  local x = pg.tensor { { 1, 2 }, { 1, 2 } }
  near(t, nn.RoPE { 2 } (x)[2], pg.tensor { math.cos(1) - 2 * math.sin(1), math.sin(1) + 2 * math.cos(1) })
  t.raises(function() nn.RoPE { 3 } end, "width must be even")
  t.raises(function() nn.RoPE { 2 ^ 32 } end, "width must be at most 1048576, got 4294967296")
  t.raises(function() nn.RoPE { 4 } (pg.ones { 2, 3 }) end, "expected %[%.%.%., L, 4%]")
end)

test("Reshape, Unflatten", function(t)
  t.equal(nn.Reshape { 3, -1 } (pg.ones { 2, 12 }).shape, { 2, 3, 4 })
  t.equal(nn.Unflatten { 2, { 3, 4 } } (pg.ones { 2, 12, 5 }).shape, { 2, 3, 4, 5 })
  t.equal(nn.Unflatten { -1, { 5, 1 } } (pg.ones { 2, 5 }).shape, { 2, 5, 1 })
end)

test("layers of Lua refuse what is no tensor, and closed ones", function(t)
  local closed = pg.ones { 2 }
  closed:free()
  for _, layer in ipairs {
    nn.ZeroPad2d { 1 }, nn.CircularPad1d { 1 }, nn.ConstantPad3d { 1, 2 }, nn.ReflectionPad1d { 1 }, nn.Reshape { 2 },
    nn.Unflatten { 2, { 1, 2 } }, nn.Dropout1d {}, nn.Softmin {}, nn.RMSNorm { 2 }, nn.InstanceNorm { 2 },
    nn.RoPE { 2 }, nn.Upsample { 2 }, nn.PixelShuffle { 2 }, nn.PixelUnshuffle { 2 }, nn.ChannelShuffle { 2 },
    nn.Unfold { 2 }, nn.Fold { 2, 2 }, nn.LPPool2d { 2, 2 }, nn.LocalResponseNorm { 2 }, nn.GroupNorm { 1, 2 },
    nn.AlphaDropout {}, nn.Bilinear { 2, 2, 2 }, nn.CosineSimilarity {}, nn.EmbeddingBag { 2, 2 },
  } do
    local name = getmetatable(layer).__name
    for _, wrong in ipairs { {}, "a", 3, true } do
      t.raises(function() layer(wrong) end, name .. ": the input must be a tensor, got ")
    end
    t.raises(function() layer() end, name .. ": the input must be a tensor, got nil")
    t.raises(function() layer(closed) end, name .. ": this tensor was closed by t:free")
  end
end)

test("no examples at all: -1 is what one example would make it", function(t)
  local none = pg.ones { 0, 4, 3, 3 }
  t.equal(nn.ChannelShuffle { 2 } (none).shape, { 0, 4, 3, 3 })
  t.equal(nn.LocalResponseNorm { 2 } (none).shape, { 0, 4, 3, 3 })
  t.equal(nn.Unflatten { 2, { 2, -1 } } (none).shape, { 0, 2, 2, 3, 3 })
  t.equal(nn.Reshape { 2, -1 } (none).shape, { 0, 2, 18 })
  t.equal(nn.Reshape { 36 } (none).shape, { 0, 36 })
  t.raises(function() nn.Reshape { 5, -1 } (none) end, "Reshape: ")
  t.raises(function() nn.Unflatten { 2, { 3, -1 } } (none) end, "axis 2 of {0, 4, 3, 3} has 4 elements")
end)

test("ModuleDict and ParameterList register what they hold", function(t)
  local dict = nn.ModuleDict { second = nn.Linear { 2, 3 }, first = nn.ReLU {} }
  dict:add("last", nn.Linear { 3, 1, bias = false })
  t.equal(dict:names(), { "first", "second", "last" })
  local names = {}
  for name in pairs(dict:state()) do names[#names + 1] = name end
  table.sort(names)
  t.equal(names, { "last.weight", "second.bias", "second.weight" })
  local list = nn.ParameterList { pg.ones { 2 }, nn.Parameter(pg.zeros { 3 }) }
  t.equal(#list:parameters(), 2)
  t.ok(list[1].requires_grad)
  t.raises(function() nn.ParameterList { 1 } end, "expected tensors")
end)

test("RMSNorm", function(t)
  local norm, x = nn.RMSNorm { { 4 } }, pg.randn { 3, 4 }
  near(t, norm(x), x / (x:square():mean { axis = 2, keepdim = true } + 2 ^ -23):sqrt())
  t.raises(function() norm(pg.ones { 4, 3 }) end, "does not end in the layer's shape")
end)

test("hinge and focal against their definitions", function(t)
  local x, y = pg.tensor { 0.5, -2, 3 }, pg.tensor { 1, 1, -1 }
  near(t, nn.hinge(x, y), pg.tensor(((1 - 0.5) + 3 + 4) / 3))
  near(t, nn.HingeLoss { reduction = "none" } (x, y), pg.tensor { 0.5, 3, 4 })
  local logits, labels = pg.randn { 5, 3 }, pg.tensor({ 0, 2, 1, -100, 2 }, { dtype = "int64" })
  near(t, nn.focal(logits, labels, { gamma = 0 }), nn.cross_entropy(logits, labels))
  local yes = pg.tensor { { 1, 0, 1 } }:expand { 5, 3 }
  near(t, nn.focal(logits, yes, { gamma = 0, alpha = -1 }), nn.bce_with_logits(logits, yes))
  local p = logits:sigmoid()
  local right = pg.where(yes:eq(1), p, 1 - p)
  local alpha = yes * 0.25 + (1 - yes) * 0.75
  near(t, nn.focal(logits, yes), (alpha * (1 - right):square() * -right:log()):mean())
end)

test("functions of torch.nn.functional stand in nn", function(t)
  t.ok(nn.relu == pg.relu and nn.cosine_similarity == pg.cosine_similarity)
  t.raises(function() return nn.rellu end, "nn has no \"rellu\"")
end)

test("attention layers say what is wrong", function(t)
  local mha, x = nn.MultiheadAttention { 8, 2 }, pg.randn { 2, 5, 8 }
  t.raises(function() nn.MultiheadAttention { 9, 2 } end, "embed 9 is no multiple of heads 2")
  t.raises(function() mha(x, x, x, { mask = 1 }) end, "unknown option \"mask\"")
  t.raises(function() mha(pg.randn { 5, 2, 7 }) end, "query is {5, 2, 7}; expected a last axis of 8")
  t.raises(function() mha(pg.randn { 8 }) end, "expected three tensors")
  t.raises(function() nn.TransformerEncoderLayer { 8, 2, activation = "swish" } end, "unknown activation")
  t.raises(function() nn.TransformerEncoderLayer { 8, 2 } (x, { masks = 1 }) end, "did you mean \"mask\"")
  t.raises(function() nn.TransformerEncoder { 8, 2 } end, "must be a layer")
  t.raises(function() nn.GroupNorm { 4, 6 } end, "6 channels do not make 4 groups")
  t.raises(function() pg.group_norm(pg.ones { 2, 6 }, 4) end, "4 groups do not divide")
  t.raises(function() pg.embedding_bag(pg.ones { 3, 2 }, pg.zeros { 2, dtype = "int64" }) end, "%[N%] with offsets")
  t.raises(function() nn.kl_div(pg.ones { 2 }, pg.ones { 3 }) end, "the prediction is {2} but the target {3}")
  t.raises(function() nn.gaussian_nll(pg.ones { 2, 3 }, pg.ones { 2, 3 }, pg.ones { 3 }) end, "does not fit")
  t.raises(function() nn.triplet_margin(pg.ones { 2, 3 }, pg.ones { 2, 3 }, 1) end, "needs three tensors")
end)

test("a transformer trains, is copied and saved by name", function(t)
  pg.manual_seed(0)
  local layer = nn.TransformerEncoderLayer { 8, 2, 16, dropout = 0.1, activation = "gelu", norm_first = true }
  local model = nn.TransformerEncoder { layer, 2 }
  t.equal(#layer:parameters() * 2, #model:parameters())
  t.ok(model:state()["layers.1.self_attn.in_proj_weight"] ~= nil)
  local copy = model:clone():eval()
  model:eval()
  local x = pg.randn { 2, 6, 8 }
  near(t, model(x, { is_causal = true }), copy(x, { is_causal = true }))
  model:train()
  local opt = pg.optim.Adam { model:parameters(), lr = 1e-2 }
  local first, last
  for _ = 1, 30 do
    opt:zero_grad()
    local loss = nn.mse(model(x, { is_causal = true }), x * 0.5)
    loss:backward()
    opt:step()
    last = loss:item()
    first = first or last
  end
  t.ok(last < first / 2, ("the loss went from %g to %g"):format(first, last))
end)

test("ctc: forms of the call, and the gradient of what log_softmax is taken of", function(t)
  local x = pg.randn({ 6, 3, 5 }, { dtype = "float64" })
  local rows = pg.tensor({ { 1, 2, 2 }, { 4, 0, 0 }, { 3, 1, 0 } }, { dtype = "int64" })
  local flat = pg.tensor({ 1, 2, 2, 4, 3, 1 }, { dtype = "int64" })
  local function loss(logits, labels, options)
    return nn.ctc(logits:log_softmax(3), labels, { 6, 5, 4 }, { 3, 1, 2 }, options)
  end
  near(t, loss(x, rows, { reduction = "none" }), loss(x, flat, { reduction = "none" }))
  near(t, loss(x, rows), (loss(x, rows, { reduction = "none" }) / pg.tensor { 3, 1, 2 }):mean())
  near(t, nn.CTCLoss { reduction = "sum" } (x:log_softmax(3), flat, { 6, 5, 4 }, { 3, 1, 2 }),
       loss(x, rows, { reduction = "none" }):sum())
  near(t, nn.ctc(x[{ {}, 1 }]:log_softmax(2), rows[1], 6, 3, { reduction = "none" }),
       loss(x, rows, { reduction = "none" })[1])
  t.ok(pg.gradcheck(function(logits) return loss(logits, rows) end, { x:clone():requires_grad_() }))
  t.raises(function() loss(x, flat[{ { 1, 4 } }]) end, "4 labels, but target_lengths add up to 6")
  t.raises(function() nn.ctc(x, rows, { 6, 5 }, { 3, 1, 2 }) end, "input_lengths is {2}; expected one for each of 3")
end)

test("the same layers in graphs, whose sizes may be symbols", function(t)
  local function check(name, shape, fn, feed)
    local g = pg.graph(function(g) return { y = fn(g:placeholder { "x", shape = shape, dtype = feed.dtype }) } end)
    near(t, pg.Session { g }:run("y", { x = feed }), fn(feed), name)
  end
  local mha, rope, z = nn.MultiheadAttention { 8, 2 }, nn.RoPE { 8 }, pg.randn { 2, 6, 8 }
  local layer = nn.TransformerEncoderLayer { 8, 2, 12, norm_first = true }:eval()
  check("group_norm", { "n", 6, 8 }, function(x) return pg.group_norm(x, 3) end, z)
  check("instance_norm", { "n", 6, 8 }, pg.instance_norm, z)
  check("RoPE of a known length", { "n", 6, 8 }, rope, z)
  check("RoPE", { "n", "l", 8 }, rope, z)
  check("attention", { "n", "l", 8 }, function(x)
    return mha(x, x, x, { key_padding_mask = x:sum(3):gt(3) })
  end, z)
  check("an encoder layer", { "n", "l", 8 }, function(x) return layer(x, { is_causal = true }) end, z)
  check("bags", { "n", 3 }, function(x) return pg.embedding_bag(z[1], x, { padding_idx = 1, mode = "max" }) end,
        pg.randint(0, 6, { 2, 3 }))
end)

test("what a Sequential passes on lives no longer than it must", function(t)
  t.uncompiled()
  local x, kept = pg.randn { 4, 1024 }, {}
  local function live() return pg.memory.stats(x.device).live end
  local function grown(model)
    local first = model(x) -- with what is made once
    local before = live()
    local second = model(x)
    return live() - before, first, second
  end
  local plain = nn.Sequential { nn.ReLU {}, nn.Sigmoid {}, nn.ReLU {}, nn.Tanh {} }
  collectgarbage("stop")
  t.equal((grown(plain)), x:numel() * 4) -- the result
  collectgarbage("restart")

  -- Whoever sees a tensor in between may keep it: a hook, a function, a class of one's own.
  local Keeper = nn.class("Keeper", nn.Sigmoid)
  function Keeper:forward(y)
    kept[#kept + 1] = y
    return nn.Sigmoid.forward(self, y)
  end
  local model = nn.Sequential {
    nn.ReLU {}, Keeper {}, nn.Tanh {}, function(y)
      kept[#kept + 1] = y
      return y
    end, nn.ReLU {}, nn.Sigmoid {},
  }
  model[5]:hook("forward", function(_, inputs, y)
    kept[#kept + 1], kept[#kept + 2] = inputs[1], y
  end)
  model(x)
  local expected = { x:relu(), x:relu():sigmoid():tanh(), x:relu():sigmoid():tanh(), x:relu():sigmoid():tanh():relu() }
  t.equal(#kept, 4)
  for i, y in ipairs(kept) do near(t, y, expected[i], "kept tensor " .. i) end

  -- Gradients need what went by, and so does a scope's end.
  local trained = nn.Sequential { nn.Linear { 1024, 8 }, nn.Tanh {}, nn.Dropout { 0 }, nn.Linear { 8, 2 } }
  local y = pg.scope(function() return trained(x) end)
  y:sum():backward()
  near(t, trained[4].weight.grad[1], trained[1](x):tanh():sum(1))
end)

test("what a transformer's block makes inside lives no longer than it must", function(t)
  local x = pg.randn { 2, 16, 32 }
  local function block(o)
    o.dropout, o[1], o[2], o[3] = 0, 32, 4, 64
    return nn.TransformerEncoderLayer(o)
  end
  local function live() return pg.memory.stats(x.device).live end
  local encoder = nn.TransformerEncoder { block {}, 3, norm = nn.LayerNorm { { 32 } } }
  encoder:eval()
  collectgarbage("stop")
  local first = pg.no_grad(function() return encoder(x) end)
  pg.no_grad(function() encoder(x):free() end) -- weights' private layouts are made at their second use
  local before = live()
  local second = pg.no_grad(function() return encoder(x) end)
  local grown = (live() - before) / (x:numel() * 4)
  t.ok(grown <= 3, "the result and what lies between the layers, not what is inside: " .. grown)
  collectgarbage("restart")
  near(t, second, first)

  -- Whoever sees a tensor inside may keep it.
  local kept = {}
  local hooked = block {}
  hooked.linear1:hook("forward", function(_, inputs, y) kept[#kept + 1], kept[#kept + 2] = inputs[1], y end)
  local Keeper = nn.class("Keeper", nn.LayerNorm)
  function Keeper:forward(y)
    kept[#kept + 1] = y
    return nn.LayerNorm.forward(self, y)
  end
  local replaced = block {}
  replaced.norm2 = Keeper { { 32 } }
  local attentive = block {}
  attentive.self_attn:hook("forward", function(_, _, y) kept[#kept + 1] = y end)
  local inside = block {}
  inside.self_attn.out_proj:hook("forward", function(_, _, y) kept[#kept + 1] = y end)
  local own = block { activation = function(y)
    kept[#kept + 1] = y
    return y:relu()
  end }
  nn.Sequential { hooked, replaced, attentive, inside, own }(x)
  t.equal(#kept, 6)
  for i, y in ipairs(kept) do t.ok(y:isfinite():all():item(), "kept tensor " .. i) end

  -- Gradients need what went by; scopes around get the result; an error leaves everything usable.
  local layer, same = block { activation = "gelu" }, block { activation = function(y) return y:gelu() end }
  same:load_state(layer:state())
  local decoder = nn.TransformerDecoderLayer { 32, 4, 64, dropout = 0 }
  local y = pg.scope(function() return decoder(layer(x), x) end)
  y:pow(2):sum():backward()
  decoder(same(x), x):pow(2):sum():backward()
  local others = same:parameters()
  for i, p in ipairs(layer:parameters()) do near(t, p.grad, others[i].grad, "gradient of parameter " .. i) end
  t.raises(function() layer(x:reshape(32, 32):narrow(2, 1, 8)) end, "expected a last axis of 32")
  near(t, layer(x), same(x))
end)

test("nn.init: bounds and deviations of PyTorch's", function(t)
  local init = nn.init
  local function spread(name, want, ...)
    local w = pg.zeros { 40, 25, 3, 3 } -- fans of 225 and 360
    t.ok(init[name](w, ...) == w)
    local std, top, uniform = w:std():item(), w:abs():max():item(), name:find("uniform")
    t.ok(math.abs(std / want - 1) < 0.05, ("%s: %g, expected %g"):format(name, std, want))
    if uniform then t.ok(top <= want * math.sqrt(3) * 1.0001) else t.ok(top > want * 2.5) end
  end
  spread("uniform_", 2 / math.sqrt(12), -1, 1)
  spread("normal_", 3, 0, 3)
  for _, kind in ipairs { "uniform_", "normal_" } do
    spread("xavier_" .. kind, math.sqrt(2 / 585))
    spread("xavier_" .. kind, 2 * math.sqrt(2 / 585), 2)
    spread("kaiming_" .. kind, math.sqrt(2 / 225))
    spread("kaiming_" .. kind, math.sqrt(2 / 225), { nonlinearity = "relu" })
    spread("kaiming_" .. kind, math.sqrt(2 / 6 / 225), { a = math.sqrt(5) })
    spread("kaiming_" .. kind, math.sqrt(2 / 360), { mode = "fan_out" })
    spread("kaiming_" .. kind, 1 / math.sqrt(225), { nonlinearity = "linear" })
  end
  t.equal({ init.zeros_(pg.ones { 2 }):totable(), init.ones_(pg.zeros { 2 }):totable() }, { { 0, 0 }, { 1, 1 } })
  spread("uniform_", 2 / math.sqrt(12), { a = -1, b = 1 })
  spread("uniform_", 2 / math.sqrt(12), { low = -1, high = 1 })
  spread("normal_", 3, { std = 3 })
  spread("xavier_normal_", 2 * math.sqrt(2 / 585), { gain = 2 })
  spread("orthogonal_", 2 / math.sqrt(225), { gain = 2 })
  spread("trunc_normal_", 3, { std = 3, a = -30, b = 30 })
  local w = pg.zeros { 400, 30 }
  t.equal(init.constant_ { w, value = 3 }:min():item(), 3)
  t.equal(init.constant_(w, { val = 2 }):max():item(), 2)
  t.ok(math.abs(init.uniform_ { w, a = 4, b = 6 }:mean():item() - 5) < 0.05)
  t.ok(math.abs(init.normal_(w, { mean = 5 }):mean():item() - 5) < 0.1)
  t.raises(function() init.kaiming_normal_(pg.ones { 2 }) end, "needs a tensor of two axes or more")
  t.raises(function() init.normal_(3) end, "nn.init.normal_: t must be a tensor, got number 3")
  t.raises(function() init.kaiming_normal_(pg.ones { 2, 2 }, { mod = "fan_in" }) end, "unknown option \"mod\"")
  t.raises(function() init.kaiming_normal_(pg.ones { 2, 2 }, { mode = "fan" }) end, "one of fan_in, fan_out")
end)

test("nn.init: orthogonal, cut off, identities, sparse", function(t)
  local init = nn.init
  pg.manual_seed(3)
  for _, shape in ipairs { { 3, 2, 4 }, { 7, 3 }, { 1, 5 }, { 4, 4 } } do
    local q = init.orthogonal_(pg.empty(shape), 2):reshape(shape[1], -1) / 2
    if shape[1] > q:size(2) then q = q:t() end
    near(t, q:matmul(q:t()), pg.eye(q:size(1)))
  end
  local w = pg.zeros { 300, 40, dtype = "float64" }
  init.trunc_normal_ { w, mean = 1, std = 3, a = 0, b = 1.5 }
  t.ok(w:min():item() >= 0 and w:max():item() <= 1.5)
  init.trunc_normal_(w)
  t.ok(math.abs(w:std():item() - 0.8796) < 0.02, "of a normal distribution cut at 2 deviations") -- 1 - 4 phi(2) / P
  t.equal(init.eye_(nn.Linear { 3, 2 }.weight), { { 1, 0, 0 }, { 0, 1, 0 } })
  local x, conv = pg.randn { 2, 4, 5, 5 }, nn.Conv2d { 4, 4, 3, padding = 1, bias = false, groups = 2 }
  init.dirac_(conv.weight, 2)
  near(t, conv(x), x)
  t.equal(init.dirac_(pg.empty { 3, 2, 2 }):totable(), { { { 0, 1 }, { 0, 0 } }, { { 0, 0 }, { 0, 1 } }, { { 0, 0 },
                                                                                                     { 0, 0 } } })
  t.equal(init.sparse_(pg.empty { 10, 4 }, 0.25):eq(0):to("int64"):sum(1), { 3, 3, 3, 3 })
  t.ok(math.abs(init.calculate_gain("leaky_relu", 0.2) - math.sqrt(2 / 1.04)) < 1e-12)
  t.equal({ init.calculate_gain("tanh"), init.calculate_gain("conv2d") }, { 5 / 3, 1 })
  t.raises(function() init.calculate_gain("rleu") end, 'got string "rleu" %(did you mean "relu"%?%)')
  t.raises(function() init.dirac_(pg.empty { 3, 2, 2 }, 2) end, "3 output channels do not make 2 groups")
  t.raises(function() init.sparse_(pg.empty { 3, 2 }, 2) end, "sparsity must lie in %[0, 1%]")
  t.raises(function() init.trunc_normal_(w, 0, 1, 2, 1) end, "low 2 must lie below high 1")
end)
