-- SPDX-License-Identifier: Apache-2.0
-- pg.prune: which elements go, by PyTorch's numbers; counts that are exact; masks that training, states, clones and
-- moves leave alone.

local pg = require "perigee"
local nn, optim, prune = pg.nn, pg.optim, pg.prune
local here = debug.getinfo(1, "S").source:match("^@(.*[/\\])") or "./"
local reference = dofile(here .. "reference.lua")

local function seq(...)
  local n = 1
  for _, size in ipairs { ... } do n = n * size end
  return (pg.arange(n):to("float64") * 0.7):sin():reshape(...)
end

local MAKE = {
  linear = function() return nn.Linear { 8, 6 } end, conv = function() return nn.Conv2d { 3, 4, 3 } end,
  conv1d = function() return nn.Conv1d { 4, 5, 2 } end,
  transposed = function() return nn.ConvTranspose2d { 3, 4, 2 } end,
  embedding = function() return nn.Embedding { 7, 3 } end,
}
local DTYPES = { "float64", "float32", "float16", "bfloat16" }

local function make(name, dtype)
  local layer = MAKE[name]():to(dtype or "float64")
  pg.no_grad(function() layer.weight:copy_(seq(unpack(layer.weight.shape)):to(dtype or "float64")) end)
  return layer
end

local function bits(mask)
  local parts = {}
  for i, v in ipairs(mask:reshape(-1):totable()) do parts[i] = v and "1" or "0" end
  return table.concat(parts)
end

local function zeros(t) return t:eq(0):sum():item() end

test("masks are those of torch.nn.utils.prune", function(t)
  for _, row in ipairs(reference.rows) do
    local layer = make(row.layer)
    if row.method == "twice" then
      prune.ln_structured(layer, { amount = 0.4, n = 2, axis = 1 })
      prune.l1_unstructured(layer, { amount = 0.5 })
    else
      t.equal(prune[row.method](layer, row.o) == layer, true)
    end
    t.ok(bits(layer.weight_mask) == row.mask, row.layer .. " " .. row.method)
    local expected = pg.where(layer.weight_mask, seq(unpack(layer.weight.shape)), 0)
    t.ok(layer.weight:detach():equal(expected), row.layer .. ": the weight is not the masked one")
  end
end)

test("a mask over all layers is PyTorch's", function(t)
  local list = {}
  for i, name in ipairs(reference.order) do list[i] = make(name) end
  prune.global_unstructured(list, { amount = 0.6 })
  for i, layer in ipairs(list) do t.equal(bits(layer.weight_mask), reference.together[i]) end
end)

test("training with a mask goes PyTorch's way", function(t)
  for name, o in pairs { SGD = { lr = 0.05, momentum = 0.9, weight_decay = 0.1 },
                         AdamW = { lr = 0.01, weight_decay = 0.1 } } do
    local layer = make "linear"
    pg.no_grad(function() layer.bias:copy_(seq(6)) end)
    prune.l1_unstructured(layer, 0.5)
    local opt = optim[name](layer:parameters(), o)
    for _ = 1, 5 do
      opt:zero_grad();
      (layer(seq(4, 8)) - seq(4, 6) * 2):square():mean():backward()
      opt:step()
    end
    t.close(layer.weight:detach():reshape(-1), reference.steps[name], 1e-11)
  end
end)

test("counts are exact in every dtype: halves go to the even number, equal magnitudes by their places", function(t)
  for _, dtype in ipairs(DTYPES) do
    for name in pairs(MAKE) do
      for _, amount in ipairs { 0, 0.1, 1 / 3, 0.5, 0.999, 1 } do
        local layer = make(name, dtype)
        local n = layer.weight:numel()
        local wanted, low = amount * n, math.floor(amount * n)
        local expected = wanted - low == 0.5 and low + low % 2 or math.floor(wanted + 0.5)
        prune.l1_unstructured(layer, { amount = amount })
        t.equal({ dtype, name, amount, n - layer.weight_mask:sum():item() }, { dtype, name, amount, expected })
        t.equal({ layer.weight.dtype, layer.weight_mask.dtype }, { dtype, "bool" })
      end
    end
  end
  local layer = nn.Linear { 5, 1 }
  pg.no_grad(function() layer.weight:copy_(pg.tensor { { 2, -1, 1, 3, -1 } }) end)
  prune.l1_unstructured(layer, { count = 2 })
  t.equal(bits(layer.weight_mask), "10011")
  t.equal(prune.l1_unstructured(nn.Linear { 5, 1 }, { amount = 0.5 }).weight_mask:sum():item(), 3) -- 2.5 to 2
  t.equal(prune.l1_unstructured(nn.Linear { 7, 1 }, { amount = 0.5 }).weight_mask:sum():item(), 3) -- 3.5 to 4
end)

test("at random: exact counts, the same for the same seed", function(t)
  local masks = {}
  for i = 1, 2 do
    pg.manual_seed(5)
    masks[i] = bits(prune.random_unstructured(make "conv", { amount = 0.4 }).weight_mask)
  end
  t.equal(masks[1], masks[2])
  t.equal(select(2, masks[1]:gsub("0", "")), 43)
  local rows = prune.random_structured(make "conv", { count = 1, axis = 2 }).weight_mask
  t.equal(rows:any { axis = { 1, 3, 4 } }:sum():item(), 2)
  local chosen = prune.global_unstructured(make "linear", { count = 7, method = "random" })
  t.equal(chosen.weight_mask:sum():item(), 48 - 7)
end)

test("n of m: the n largest of every m neighbours stay", function(t)
  for _, dtype in ipairs(DTYPES) do
    for _, case in ipairs { { "linear", 2, 4, 2 }, { "linear", 1, 2, 1 }, { "conv1d", 2, 4, 2 }, { "conv", 1, 3, -1 },
                            { "linear", 0, 8, 2 }, { "linear", 8, 8, 2 } } do
      local name, n, m, axis = unpack(case)
      local layer = make(name, dtype)
      local before = layer.weight:detach():clone():abs():to("float64")
      prune.n_of_m(layer, { n = n, m = m, axis = axis })
      local rank = before:dim()
      if axis < 0 then axis = axis + rank + 1 end
      local function groups(x) return x:movedim(axis, rank):contiguous():reshape(-1, m) end
      local kept, all = groups(layer.weight_mask), groups(before)
      t.ok(kept:sum { axis = 2 }:eq(n):all():item(), name)
      if n > 0 and n < m then
        local least = pg.where(kept, all, math.huge):amin { axis = 2 }
        t.ok(least:ge(pg.where(kept, 0, all):amax { axis = 2 }):all():item(), name .. ": a larger one went")
      end
    end
  end
  local layer = nn.Linear { 4, 2 }
  pg.no_grad(function() layer.weight:fill_(1) end)
  t.equal(bits(prune.n_of_m(layer).weight_mask), "00110011") -- equal ones: the earlier go
  layer = nn.Linear { 4, 1 }
  pg.no_grad(function() layer.weight:copy_(pg.tensor { { 1, 4, 3, 2 } }) end)
  prune.custom_from_mask(layer, pg.tensor { { 1, 0, 1, 1 } })
  t.equal(bits(prune.n_of_m(layer).weight_mask), "0011") -- what went before does not count
end)

test("a model is pruned layer by layer, its norms and biases are not; other parameters by name", function(t)
  local model = nn.Sequential { nn.Linear { 10, 20 }, nn.LayerNorm { 20 }, nn.ReLU {}, nn.Linear { 20, 4 } }
  prune.l1_unstructured(model, { amount = 0.75 })
  t.equal({ zeros(model[1].weight), zeros(model[4].weight) }, { 150, 60 })
  t.equal({ prune.is_pruned(model[1]), prune.is_pruned(model[2]), prune.is_pruned(model) }, { true, false, true })
  prune.l1_unstructured(model[1], { count = 3, name = "bias" })
  t.equal(zeros(model[1].bias), 3)
  local attention = nn.MultiheadAttention { 8, 2 }
  prune.l1_unstructured(attention, { amount = 0.5, name = "in_proj_weight" })
  t.equal(zeros(attention.in_proj_weight), 96)
  attention(pg.rand { 1, 3, 8 }):sum():backward()
  t.ok(attention.in_proj_weight_orig.grad ~= nil)
  local shared = nn.Linear { 4, 4 }
  prune.l1_unstructured(nn.Sequential { shared, nn.ReLU {}, shared }, 0.5)
  t.equal(zeros(shared.weight), 8) -- once
end)

local OPTIMIZERS = { SGD = { lr = 0.1, momentum = 0.9, weight_decay = 0.1 }, Adam = { lr = 0.1, weight_decay = 0.1 },
                     AdamW = {}, Adamax = {}, NAdam = {}, RAdam = {}, Adagrad = { lr = 0.1 }, Adadelta = {},
                     RMSprop = {},
                     Rprop = {}, Adafactor = {}, Lion = {}, LAMB = {}, LARS = { lr = 0.1 }, Muon = {}, LBFGS = {} }

test("no optimizer brings back what is pruned, even where it had momentum", function(t)
  for name, o in pairs(OPTIMIZERS) do
    pg.manual_seed(3)
    local layer = nn.Linear { 6, 5, bias = false }
    local opt = optim[name](layer:parameters(), o)
    local x = pg.rand { 8, 6 }
    local function step()
      opt:step(function()
        opt:zero_grad()
        local loss = (layer(x) - 3):square():mean()
        loss:backward()
        return loss
      end)
    end
    for _ = 1, 2 do step() end
    prune.l1_unstructured(layer, { amount = 0.5 })
    local mask, before = bits(layer.weight_mask), layer.weight:detach():clone()
    for _ = 1, 4 do step() end
    t.equal({ name, zeros(layer.weight), bits(layer.weight_mask) }, { name, 15, mask })
    t.ok(not layer.weight:detach():equal(before), name .. " did nothing")
    prune.remove(layer)
    t.equal({ name, zeros(layer.weight) }, { name, 15 })
    t.ok(nn.is_parameter(layer.weight) and layer.weight.requires_grad)
  end
end)

test("a pruned element gets the gradient 0, whatever its value beneath; both orders", function(t)
  local layer = make "linear"
  prune.l1_unstructured(layer, 0.5)
  pg.no_grad(function() layer.weight_orig:copy_(pg.where(layer.weight_mask, layer.weight_orig, math.huge)) end)
  local x = seq(3, 8):requires_grad_()
  local loss = layer(x):square():sum()
  loss:backward()
  t.ok(layer.weight_orig.grad:isfinite():all():item())
  t.ok(layer.weight_orig.grad:eq(0):logical_or(layer.weight_mask):all():item())
  local small = make "linear"
  prune.l1_unstructured(small, 0.5)
  pg.gradcheck(function(input, w)
    return pg.linear(input, pg.where(small.weight_mask, w, 0)):tanh()
  end, { x:detach():requires_grad_(), small.weight_orig:detach():requires_grad_() })
  local first = pg.grad(small(x):square():sum(), { x }, { create_graph = true })
  local second = pg.grad(first:sum(), { small.weight_orig })
  t.ok(second:eq(0):logical_or(small.weight_mask):all():item() and second:ne(0):any():item())
end)

test("states, files, clones, devices and dtypes carry the masks", function(t)
  local model = nn.Sequential { nn.Linear { 6, 5 }, nn.ReLU {}, nn.Linear { 5, 2 } }
  prune.l1_unstructured(model, 0.5)
  local x = pg.rand { 3, 6 }
  local y = model(x):detach()
  local names = {}
  for name in pairs(model:state()) do names[#names + 1] = name end
  table.sort(names)
  t.equal(names, { "0.bias", "0.weight_mask", "0.weight_orig", "2.bias", "2.weight_mask", "2.weight_orig" })
  local copy = model:clone()
  t.ok(copy(x):detach():equal(y))
  prune.remove(copy)
  t.ok(prune.is_pruned(model) and not prune.is_pruned(copy) and copy(x):detach():equal(y))

  local path = os.tmpname() .. ".safetensors"
  pg.save(path, model)
  local other = nn.Sequential { nn.Linear { 6, 5 }, nn.ReLU {}, nn.Linear { 5, 2 } }
  prune.random_unstructured(other, 0) -- a mask of its own, of which nothing is left
  pg.load(path, other)
  os.remove(path)
  t.ok(other(x):detach():equal(y))
  local state = model:state()
  for name, value in pairs(state) do
    if name:find "_mask$" then state[name] = value:to("float32") end -- as files of PyTorch have them
  end
  other:load_state(state)
  t.ok(other(x):detach():equal(y) and other[1].weight_mask.dtype == "bool")

  model:to("bfloat16")
  t.equal({ model[1].weight.dtype, zeros(model[1].weight), model[1].weight_mask.dtype }, { "bfloat16", 15, "bool" })
  model:to("float32"):to("cpu")
  t.equal(zeros(model[1].weight), 15)
  pg.amp.autocast("bfloat16", function() t.equal(model(x).dtype, "bfloat16") end)
end)

test("remove: names, order and the optimizer's tensors are as before", function(t)
  local model = nn.Sequential { nn.Linear { 4, 3 }, nn.Linear { 3, 2 } }
  local function names()
    local list = {}
    for name in model:named_parameters() do list[#list + 1] = name end
    return list
  end
  local before, parameters = names(), model:parameters()
  prune.l1_unstructured(model, 0.5)
  t.equal(names(), { "0.weight_orig", "0.bias", "1.weight_orig", "1.bias" })
  prune.remove(model[2], "weight")
  t.ok(prune.is_pruned(model[1]) and not prune.is_pruned(model[2]))
  prune.remove(model)
  t.equal(names(), before)
  for i, p in ipairs(model:parameters()) do t.ok(p == parameters[i]) end
  t.equal({ zeros(model[1].weight), zeros(model[2].weight) }, { 6, 3 })
  model[1].weight = nn.Parameter(pg.ones { 3, 4 }) -- a field like any other
end)

test("a graph holds the masked weight", function(t)
  local layer = make("linear", "float32")
  prune.l1_unstructured(layer, 0.5)
  local x = pg.rand { 2, 8 }
  local g = pg.graph(function(g) return { y = layer(g:placeholder { "x", shape = { 2, 8 } }) } end)
  t.close(pg.Session { g }:run("y", { x = x }), layer(x):detach(), 1e-6)
end)

test("report: what is there, what is 0, in a table", function(t)
  local model = nn.Sequential { nn.Linear { 100, 40 }, nn.ReLU {}, nn.Linear { 40, 2, bias = false } }
  prune.l1_unstructured(model[1], 0.5)
  local report = prune.report(model)
  t.equal({ report.parameters, report.zeros, report.bytes }, { 4120, 2000, model:size() })
  t.equal(report.rows[1], { name = "0", class = "Linear", shapes = "{40, 100} {40}", parameters = 4040, zeros = 2000,
                            sparsity = 2000 / 4040, bytes = 4040 * 4 + 4000 })
  t.equal(tostring(report), [[
layer       shapes          parameters  zeros  sparsity   bytes
---------------------------------------------------------------
0 (Linear)  {40, 100} {40}       4,040  2,000   49.50 %  20,160
2 (Linear)  {2, 40}                 80      0    0.00 %     320
---------------------------------------------------------------
all                              4,120  2,000   48.54 %  20,480]])
  t.equal(prune.report(nn.ReLU {}).sparsity, 0)
end)
