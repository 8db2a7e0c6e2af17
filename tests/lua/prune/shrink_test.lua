-- SPDX-License-Identifier: Apache-2.0
-- Channels and heads taken out: the smaller network gives what the masked one does, and what cannot be told is refused.

local pg = require "perigee"
local nn, prune = pg.nn, pg.prune

local function conv(inputs, out) return nn.Conv2d { inputs, out, 3, padding = 1 } end

-- Models with an input, and how many output channels each Linear and convolution has left of what it had.
local MODELS = {
  mlp = { function() return nn.Sequential { nn.Linear { 6, 8 }, nn.ReLU {}, nn.Linear { 8, 12 }, nn.Tanh {},
                                            nn.Linear { 12, 3 } } end, { 6 }, { 4, 6, 3 } },
  no_bias = { function() return nn.Sequential { nn.Linear { 6, 8, bias = false }, nn.Sigmoid {},
                                                nn.Linear { 8, 3, bias = false } } end, { 6 }, { 4, 3 } },
  convolutions = { function()
    return nn.Sequential { conv(1, 8), nn.BatchNorm2d { 8 }, nn.ReLU {}, nn.MaxPool2d { 2 }, conv(8, 6),
                           nn.Sigmoid {}, nn.Flatten {}, nn.Dropout { 0.5 }, nn.Linear { 6 * 16, 10 }, nn.GELU {},
                           nn.Linear { 10, 4 } }
  end, { 1, 8, 8 }, { 4, 3, 5, 4 } },
  residual = { function()
    return nn.Sequential { conv(2, 8), nn.Residual { conv(8, 4), nn.ReLU {}, conv(4, 8) }, nn.ReLU {},
                           nn.Residual { nn.BatchNorm2d { 8 }, conv(8, 8) }, nn.AdaptiveAvgPool2d { 1 }, nn.Flatten {},
                           nn.Linear { 8, 3 } }
  end, { 2, 6, 6 }, { 4, 2, 4, 4, 3 } },
  nested = { function()
    return nn.Sequential { nn.Sequential { nn.Linear { 5, 8 }, nn.ReLU {} },
                           nn.Sequential { nn.Sequential { nn.Linear { 8, 4 } }, nn.Linear { 4, 2 } } }
  end, { 5 }, { 4, 2, 2 } },
  transposed = { function()
    return nn.Sequential { nn.ConvTranspose2d { 2, 6, 2, stride = 2 }, nn.ReLU {}, nn.Conv2d { 6, 4, 1 }, nn.ReLU {},
                           nn.ConvTranspose2d { 4, 2, 2 } }
  end, { 2, 4, 4 }, { 3, 2, 2 } },
  one_axis = { function()
    return nn.Sequential { nn.Conv1d { 2, 6, 3 }, nn.BatchNorm1d { 6 }, nn.ReLU {}, nn.AvgPool1d { 2 },
                           nn.Conv1d { 6, 3, 2 } }
  end, { 2, 12 }, { 3, 3 } },
  layer_norm = { function() -- its two sides are taken apart
    return nn.Sequential { nn.Linear { 4, 8 }, nn.ReLU {}, nn.Linear { 8, 6 }, nn.LayerNorm { 6 }, nn.Linear { 6, 4 },
                           nn.ReLU {}, nn.Linear { 4, 2 } }
  end, { 4 }, { 4, 6, 2, 2 } },
  groups = { function()
    return nn.Sequential { conv(2, 4), nn.ReLU {}, nn.Conv2d { 4, 4, 3, groups = 2 }, conv(4, 6), nn.ReLU {},
                           conv(6, 2) }
  end, { 2, 6, 6 }, { 4, 4, 3, 2 } },
  depthwise = { function() -- a filter a channel goes with its channel
    return nn.Sequential { conv(2, 8), nn.ReLU {}, nn.Conv2d { 8, 8, 3, padding = 1, groups = 8 }, nn.BatchNorm2d { 8 },
                           nn.ReLU {}, nn.Conv2d { 8, 4, 1 }, nn.ReLU {},
                           nn.Conv2d { 4, 4, 3, groups = 4, bias = false }, nn.Flatten {}, nn.Linear { 64, 3 } }
  end, { 2, 6, 6 }, { 4, 4, 2, 2, 3 } },
  depthwise_transposed = { function()
    return nn.Sequential { nn.Conv1d { 2, 6, 1 }, nn.ConvTranspose1d { 6, 6, 2, stride = 2, groups = 6 },
                           nn.Conv1d { 6, 2, 3 } }
  end, { 2, 5 }, { 3, 1, 2 } },
}

local function outs(model)
  local list = {}
  for _, layer in ipairs(model:modules()) do
    local name = getmetatable(layer).__name
    if name:find "^Conv" or name == "Linear" then
      list[#list + 1] = layer.weight.shape[name:find "^ConvTranspose" and 2 or 1]
    end
  end
  return list
end

-- Statistics and biases as after some training.
local function stir(model)
  pg.no_grad(function()
    for _, buffer in model:named_buffers() do
      if buffer.dtype ~= "bool" and buffer.dtype ~= "int64" then buffer:copy_(pg.rand_like(buffer) + 0.5) end
    end
    for name, p in model:named_parameters() do
      if name:find "bias$" then p:copy_(pg.rand_like(p)) end
    end
  end)
  return model:eval()
end

local TOLERANCE = { float64 = 1e-12, float32 = 1e-5, bfloat16 = 0.1 }

test("the smaller network computes what the masked one does", function(t)
  for name, row in pairs(MODELS) do
    local make, shape, expected = unpack(row)
    for dtype, tolerance in pairs(TOLERANCE) do
      for n = 1, 2 do
        pg.manual_seed(4)
        local model = stir(make():to(dtype))
        local x = pg.rand({ 3, unpack(shape) }, { dtype = dtype })
        t.equal(prune.channels(model, { amount = 0.5, n = n }) == model, true)
        local small = prune.shrink(model)
        t.equal({ name, outs(small) }, { name, expected })
        local off = (small(x) - model(x)):detach():to("float64"):abs():max():item()
        t.ok(off <= tolerance, ("%s in %s is off by %g"):format(name, dtype, off))
        t.ok(small:size() < model:size() / 1.5 and not prune.is_pruned(small), name)
        t.equal(small(x).dtype, dtype)
      end
    end
  end
end)

test("it is a model like any other: it trains, is saved, cloned, and comes back from its file", function(t)
  local make, shape = unpack(MODELS.convolutions)
  local model = stir(make())
  prune.channels(model, 0.5)
  local small = prune.shrink(model)
  local x = pg.rand { 3, unpack(shape) }
  small:train()
  local optimizer = pg.optim.Adam { small:parameters(), lr = 0.01 }
  local first, last
  for _ = 1, 5 do
    optimizer:zero_grad()
    local loss = (small(x) - 1):square():mean()
    loss:backward()
    optimizer:step()
    first, last = first or loss:item(), loss:item()
  end
  t.ok(last < first)
  small:eval()
  local y = small(x):detach()
  t.ok(small:clone()(x):detach():equal(y))
  t.ok(tostring(small):find("Conv2d(inputs=4, out=3", 1, true))
  local path = os.tmpname() .. ".safetensors"
  pg.save(path, small)
  local fresh = make()
  prune.restore(fresh, (pg.load(path))):eval()
  os.remove(path)
  t.ok(fresh(x):detach():equal(y))
  local masked = make()
  prune.restore(masked, model:state()):eval()
  t.ok(prune.is_pruned(masked) and masked(x):detach():equal(model(x):detach()))
end)

test("twice, and with single weights pruned too", function(t)
  pg.manual_seed(6)
  local model = stir(MODELS.mlp[1]())
  local x = pg.rand { 4, 6 }
  prune.channels(model, 0.5)
  prune.l1_unstructured(model, 0.1)
  local small = prune.shrink(model)
  t.ok(prune.is_pruned(small))
  t.close(small(x):detach(), model(x):detach(), 1e-6)
  prune.channels(model, 0.5) -- half of what is left
  t.equal(outs(prune.shrink(model)), { 2, 3, 3 })
  prune.remove(model) -- zeros say it too
  t.equal(outs(prune.shrink(model)), { 2, 3, 3 })
  t.equal(outs(prune.shrink(prune.channels(MODELS.mlp[1](), { count = 7 }))), { 1, 5, 3 })
  t.equal(outs(prune.shrink(prune.channels(MODELS.mlp[1](), 1))), { 1, 1, 3 }) -- one stays
end)

test("only the layers that are named", function(t)
  local model = MODELS.mlp[1]()
  prune.channels(model, { amount = 0.25, layers = { model[3] } })
  t.equal(outs(prune.shrink(model)), { 8, 9, 3 })
end)

test("channels that cannot be told are refused by name", function(t)
  local shared = nn.Linear { 4, 4 }
  local Net = nn.class "Net"
  function Net:init() self.a, self.b = nn.Linear { 4, 4 }, nn.Linear { 4, 2 } end
  function Net:forward(x) return self.b(self.a(x)) end
  local hooked = nn.Sequential { nn.Linear { 4, 4 }, nn.Linear { 4, 2 } }
  hooked[1]:hook("forward", function() end)
  local tied = nn.Sequential { nn.Linear { 4, 4 }, nn.ReLU {}, nn.Linear { 4, 4 }, nn.Linear { 4, 2 } }
  tied[3].weight = tied[1].weight
  local function two(layer) return nn.Sequential { nn.Linear { 4, 4 }, layer, nn.Linear { 4, 2 } } end
  for _, case in ipairs {
    { two(nn.LayerNorm { 4 }), "the channels of 0 must stay: they go into 1 (LayerNorm), which cannot be followed" },
    { two(nn.Softmax {}), "they go into 1 (Softmax)" }, { two(function(x) return x end), "they go into 1 (Function)" },
    { two(nn.Flatten { 1 }), "they go into 1 (Flatten)" }, { nn.Linear { 4, 4 }, "they are the model's result" },
    { nn.Sequential { shared, nn.ReLU {}, shared }, "is used more than once" },
    { Net {}, "they are the result of a layer inside of the model (Net)" },
    { hooked, "0 (Linear) has hooks" }, { tied, "share a tensor" },
    { nn.Sequential { nn.utils.weight_norm(nn.Linear { 4, 4 }), nn.Linear { 4, 2 } }, "is computed by weight_norm" },
    { nn.Sequential { nn.Conv2d { 2, 4, 3 }, nn.ReLU {}, nn.Linear { 4, 2 } }, "takes them along another axis" },
    { nn.Residual { nn.Linear { 4, 4 } }, "they are the model's" },
    { nn.Sequential { nn.Conv2d { 2, 4, 1 }, nn.Conv2d { 4, 4, 1, groups = 2 } }, "has groups" },
    { nn.ReLU {}, "the model has no channels that can be taken out" },
  } do
    local model, text = unpack(case)
    local err = tostring(t.raises(function() prune.channels(model, 0.5) end))
    t.ok(err:find(text, 1, true), ("%q is not in: %s"):format(text, err))
    t.ok(not prune.is_pruned(model))
  end
  local model = MODELS.layer_norm[1]()
  t.raises(function() prune.channels(model, { amount = 0.5, layers = { model[3] } }) end, "3 %(LayerNorm%)")
  t.raises(function() prune.channels(model, { amount = 0.5, layers = { shared } }) end,
           "Linear is no Linear or convolution of this model")
  t.raises(function() prune.channels(model, { amount = 0.5, n = 3 }) end, "n must be 1 or 2, got 3")
  t.raises(function() prune.channels(nn.Sequential { nn.Linear { 4 } }, 0.5) end, "sizes are not known")
  t.raises(function() prune.restore(model, { a = pg.ones { 1 } }) end, "names differ")
  t.raises(function() prune.restore(model, 3) end, "needs a table of tensors, got")
  t.raises(function() prune.channels(model:freeze(), 0.5) end, "is frozen")
end)

test("heads: fewer of them give the same, with masks, biases of keys, and by PyTorch's names", function(t)
  for _, o in ipairs { {}, { bias = false }, { add_bias_kv = true, add_zero_attn = true }, { kdim = 6, vdim = 5 } } do
    local layer = nn.MultiheadAttention { 12, 4, bias = o.bias, add_bias_kv = o.add_bias_kv, kdim = o.kdim,
                                          vdim = o.vdim, add_zero_attn = o.add_zero_attn }:eval()
    stir(layer)
    prune.heads(layer, { amount = 0.5 })
    local small = prune.shrink(layer)
    local q = pg.rand { 2, 5, 12 }
    local k, v = pg.rand { 2, 7, o.kdim or 12 }, pg.rand { 2, 7, o.vdim or 12 }
    t.close(small(q, k, v):detach(), layer(q, k, v):detach(), 1e-5)
    local more = { need_weights = true, key_padding_mask = pg.zeros({ 2, 7 }, { dtype = "bool" }) }
    t.close((small(q, k, v, more)):detach(), (layer(q, k, v, more)):detach(), 1e-5)
    t.equal({ small.options.heads, small.out_proj.weight.shape }, { 2, { 12, 6 } })
    t.ok(small:size() < 0.6 * layer:size())
    local fresh = nn.MultiheadAttention { 12, 4, bias = o.bias, add_bias_kv = o.add_bias_kv, kdim = o.kdim,
                                          vdim = o.vdim, add_zero_attn = o.add_zero_attn }:eval()
    t.close(prune.restore(fresh, small:state())(q, k, v):detach(), small(q, k, v):detach(), 1e-7)
  end
  t.raises(function() prune.heads(nn.Linear { 2, 2 }, 0.5) end, "there is no MultiheadAttention in Linear")
end)

test("a transformer's block loses heads and hidden units", function(t)
  local block = nn.TransformerEncoderLayer { 16, 4, feedforward = 32 }:eval()
  local x = pg.rand { 2, 5, 16 }
  prune.heads(block, { count = 3 })
  prune.channels(block, 0.75)
  local small = prune.shrink(block)
  t.close(small(x):detach(), block(x):detach(), 1e-5)
  t.equal({ small.self_attn.options.heads, small.linear1.weight.shape }, { 1, { 8, 16 } })
end)
