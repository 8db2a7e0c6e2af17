-- SPDX-License-Identifier: Apache-2.0
-- nn.lora: adapters that begin as nothing, are trained alone, are saved alone, and merge into the same outputs.

local pg = require "perigee"
local nn, optim = pg.nn, pg.optim

local function model_of(dtype)
  return nn.Sequential { nn.Conv2d { 1, 4, 3, stride = 2, padding = 1 }, nn.BatchNorm2d { 4 }, nn.ReLU {},
                         nn.Flatten {}, nn.Linear { 16, 6 }, nn.Tanh {}, nn.Linear { 6, 3 } }:to(dtype or "float32")
end

-- Adapters as after some training.
local function stir(adapters)
  pg.no_grad(function()
    for _, p in ipairs(adapters:parameters()) do p:copy_(pg.rand_like(p) - 0.5) end
  end)
end

local function names_of(state)
  local names = {}
  for name in pairs(state) do names[#names + 1] = name end
  table.sort(names)
  return names
end

test("at first nothing changes; only adapters are trained, and the names of before stay", function(t)
  local model = model_of()
  local x = pg.rand { 2, 1, 4, 4 }
  local before, y = names_of(model:state()), model:eval()(x):detach()
  local adapters = nn.lora(model, { rank = 2, targets = { "Linear", "Conv2d" } })
  t.ok(model(x):detach():equal(y))
  t.equal(adapters:names(), { "0", "4", "6" })
  local state = model:state()
  for _, name in ipairs(before) do t.ok(state[name], name) end
  t.equal(names_of(adapters:state()), { "0.lora_A.weight", "0.lora_B.weight", "4.lora_A.weight", "4.lora_B.weight",
                                        "6.lora_A.weight", "6.lora_B.weight" })
  for name, p in model:named_parameters() do t.equal({ name, p.requires_grad }, { name, name:find "lora_" ~= nil }) end
  t.equal(model:count_parameters { trainable = true }, 2 * (9 + 4) + 2 * (16 + 6) + 2 * (6 + 3))
end)

test("training moves adapters alone; merged, the model gives the same, in every dtype", function(t)
  for dtype, tolerance in pairs { float64 = 1e-12, float32 = 1e-5, bfloat16 = 0.1 } do
    local model = model_of(dtype):eval()
    local base = model:clone()
    local adapters = nn.lora(model, { rank = 3, alpha = 6, targets = { "Linear", "Conv2d" } })
    local x, y = pg.rand({ 8, 1, 4, 4 }, { dtype = dtype }), pg.rand({ 8, 3 }, { dtype = dtype })
    local opt = optim.AdamW { adapters:parameters(), lr = 0.02 }
    local first, last
    for _ = 1, 20 do
      opt:zero_grad()
      local loss = (model(x) - y):square():mean()
      loss:backward()
      opt:step()
      first, last = first or loss:item(), loss:item()
    end
    t.ok(last < first, dtype)
    local state = model:state()
    for name, value in pairs(base:state()) do t.ok(state[name]:equal(value), name .. " has moved") end
    local out = model(x):detach()
    t.ok(adapters:merge() == model)
    t.close(model(x):detach():to("float64"), out:to("float64"), tolerance)
    t.equal(names_of(model:state()), names_of(base:state()))
    t.equal(tostring(model), tostring(base))
  end
end)

test("what is added is alpha / rank B A", function(t)
  local layer = nn.Linear { 5, 4 }
  local x, w = pg.rand { 3, 5 }, layer.weight:detach():clone()
  local adapters = nn.lora(layer, { rank = 2, alpha = 3 })
  stir(adapters)
  local delta = layer.lora_B.weight:matmul(layer.lora_A.weight):detach() * 1.5
  t.close(layer(x):detach(), pg.linear(x, w + delta, layer.bias):detach(), 1e-6)
  adapters:merge()
  t.close(layer.weight:detach(), w + delta, 1e-6)
end)

test("attention: the projections of queries, keys and values are adapted, and merge", function(t)
  for _, o in ipairs { {}, { bias = false }, { dropout = 0.5 } } do
    local model = nn.TransformerEncoderLayer { 12, 3, feedforward = 16, dropout = 0 }:eval()
    local base, x = model:clone(), pg.rand { 2, 5, 12 }
    local adapters = nn.lora(model, { rank = 2, alpha = 3, dropout = o.dropout, targets = { "MultiheadAttention" } })
    t.equal(adapters:names(), { "self_attn" })
    t.equal(names_of(adapters:state()), { "self_attn.lora_A.weight", "self_attn.lora_B.weight" })
    t.equal({ model.self_attn.lora_A.weight.shape, model.self_attn.lora_B.weight.shape }, { { 2, 12 }, { 36, 2 } })
    t.ok(model(x):detach():equal(base(x):detach()))
    stir(adapters)
    local y = model(x):detach()
    t.ok((y - base(x)):abs():amax():item() > 1e-3)
    local delta = model.self_attn.lora_B.weight:matmul(model.self_attn.lora_A.weight):detach() * 1.5
    local want = base:clone()
    pg.no_grad(function() want.self_attn.in_proj_weight:add_(delta) end)
    t.close(y, want(x):detach(), 1e-5)
    t.close(model:clone()(x):detach(), y, 0)
    model(x):sum():backward()
    t.ok(model.self_attn.lora_A.weight.grad:abs():sum():item() > 0 and not model.self_attn.in_proj_weight.grad)
    if o.dropout then t.ok((model:train()(x) - y):abs():amax():item() > 1e-4) end
    adapters:merge()
    t.close(model:eval()(x):detach(), y, 1e-5)
    t.equal({ names_of(model:state()), tostring(model) }, { names_of(base:state()), tostring(base) })
  end
  local apart = nn.MultiheadAttention { 4, 2, kdim = 6 }
  t.raises(function() nn.lora(apart, { targets = { "MultiheadAttention" } }) end, "its projections are three weights")
end)

test("saved alone, loaded into another copy of the base", function(t)
  local base = model_of():eval()
  local model, x = base:clone(), pg.rand { 2, 1, 4, 4 }
  local adapters = nn.lora(model, { rank = 2, train = { "6" } })
  t.equal(adapters:names(), { "4" })
  stir(adapters)
  t.equal(names_of(adapters:state()), { "4.lora_A.weight", "4.lora_B.weight", "6.bias", "6.weight" })
  local path = os.tmpname() .. ".safetensors"
  pg.save(path, adapters:state())
  local other = base:clone()
  local loaded = nn.lora(other, { rank = 2, train = { "6" } })
  loaded:load_state((pg.load(path)))
  os.remove(path)
  t.ok(other(x):detach():equal(model(x):detach()))
  local named = {}
  for name, value in pairs(adapters:state()) do named["base_model.model." .. name] = value * 2 end
  loaded:load_state(named, { strip_prefix = "base_model.model." })
  t.ok(other[7].weight:detach():equal(model[7].weight:detach() * 2))
  model:load_state(other:state()) -- the whole of it, too
  t.ok(other(x):detach():equal(model(x):detach()))

  t.raises(function() loaded:load_state { ["4.lora_A.weight"] = pg.ones { 2, 16 } } end, "Missing: 4.lora_B.weight")
  t.raises(function() nn.lora(base:clone(), { rank = 3, train = { "6" } }):load_state(adapters:state()) end,
           "another rank")
  t.raises(function() loaded:load_state(3) end, "needs a table of tensors")
end)

test("clones, moves and removal; dropout in training alone", function(t)
  local model, x = model_of():eval(), pg.rand { 2, 1, 4, 4 }
  local y = model(x):detach()
  local adapters = nn.lora(model, { rank = 2, dropout = 0.5 })
  stir(adapters)
  local copy = model:clone()
  t.ok(copy(x):detach():equal(model(x):detach()) and not copy(x):detach():equal(y))
  nn.adapters(copy):remove()
  t.ok(copy(x):detach():equal(y) and not model(x):detach():equal(y))
  model:to("bfloat16")
  t.equal({ model[5].lora_A.weight.dtype, model(x:to("bfloat16")).dtype }, { "bfloat16", "bfloat16" })
  model:to("float32")
  local layer = nn.Linear { 64, 4 }
  stir(nn.lora(layer, { rank = 2, dropout = 0.5 }))
  local long = pg.ones { 1, 64 }
  t.ok(not layer(long):equal(layer(long)))
  layer:eval()
  t.ok(layer(long):equal(layer(long)))
end)

test("layers inside of others, attention among them; in a graph; under autocast", function(t)
  local block = nn.TransformerEncoderLayer { 8, 2, feedforward = 16 }:eval()
  local x = pg.rand { 2, 3, 8 }
  local adapters = nn.lora(block, { rank = 2, targets = { "out_proj", "linear1" } })
  t.equal(adapters:names(), { "self_attn.out_proj", "linear1" })
  stir(adapters)
  local y = block(x):detach()
  local g = pg.graph(function(g) return { y = block(g:placeholder { "x", shape = { 2, 3, 8 } }) } end)
  t.close(pg.Session { g }:run("y", { x = x }), y, 1e-5)
  pg.amp.autocast("bfloat16", function() t.close(block(x):detach():to("float32"), y, 0.1) end)
  adapters:merge()
  t.close(block(x):detach(), y, 1e-5)
end)

test("mistakes", function(t)
  local function raises(text, fn)
    local err = tostring(t.raises(fn))
    t.ok(err:find(text, 1, true), ("%q is not in: %s"):format(text, err))
  end
  local model = model_of()
  local function lora(o) return function() nn.lora(model, o) end end
  raises("rank must be at least 1, got 0", lora { rank = 0 })
  raises("dropout must lie in [0, 1), got 1", lora { dropout = 1 })
  raises('no layer fits "Liner" of targets', lora { targets = { "Liner" } })
  raises('no layer fits "head" of train', lora { train = { "head" } })
  raises("1 (BatchNorm2d) cannot be adapted (Linear, Conv1d", lora { targets = { "1" } })
  raises("targets must be names of layers or of classes, or functions, got", lora { targets = { 3 } })
  raises("no layer is left to adapt", lora { train = { "Linear" } })
  raises("no layer is left to adapt", lora { targets = {} })
  raises('unknown option "rnak"', lora { rnak = 2 })
  t.ok(model[1].weight.requires_grad)
  raises("needs a model, got", function() nn.lora(3) end)
  raises("the sizes of the model (Linear) are not known before", function() nn.lora(nn.Linear { 3 }) end)
  raises("it has groups or a padding by name", function()
    nn.lora(nn.Conv2d { 4, 4, 3, groups = 2 }, { targets = { "Conv2d" } })
  end)
  raises("Sequential has no adapters", function() nn.adapters(model) end)
  local adapters = nn.lora(model, { rank = 2 })
  raises("4 has adapters already", function() nn.lora(model) end)
  adapters:merge()
  raises("Adapters:merge: the model has no adapters any more", function() adapters:merge() end)
  raises("Adapters:remove: the model has no adapters any more", function() adapters:remove() end)
  local pruned = pg.prune.l1_unstructured(nn.Linear { 4, 4 }, 0.5)
  raises("computed by pruning", function() nn.lora(pruned, { rank = 1 }):merge() end)
  local tied = nn.Sequential { nn.Linear { 4, 4 }, nn.Linear { 4, 4 } }
  tied[2].weight = tied[1].weight
  raises("another layer's too", function() nn.lora(tied, { rank = 1, targets = { "1" } }):merge() end)
end)
