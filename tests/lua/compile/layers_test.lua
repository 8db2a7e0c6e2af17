-- SPDX-License-Identifier: Apache-2.0
-- Layers of plugins in compiled functions: calls that are what they were are not built again, and all others are.

local here = debug.getinfo(1, "S").source:match("^@(.*)lua/compile/[^/]*$") or "../../"
package.path = here .. "?.lua;" .. package.path

local pg = require "perigee"
local generator = require("draws").generator
local nn, optim = pg.nn, pg.optim

local function infer(model, x)
  return pg.no_grad(function() return model(x) end)
end

-- What f gives, plainly and compiled, call by call: `prepare` makes both f and what goes before its i-th call.
local function same(t, calls, prepare)
  local want, got, step = {}, {}, nil
  for list, compile in pairs { [want] = function(f) return f end, [got] = pg.compile } do
    pg.manual_seed(3)
    local f, before = prepare()
    f = compile(f)
    if list == got then step = f end
    for i = 1, calls do
      if before then before(i) end
      local ok, y = pcall(f, i)
      list[i] = ok and (pg.is_tensor(y) and y:detach():totable() or y) or tostring(y):match "^[^\n]*"
    end
  end
  t.equal(got, want)
  return step:stats(), step
end

-- The same, where some calls are launched as plans that know layers.
local function same_with_layers(t, calls, prepare)
  local s, step = same(t, calls, prepare)
  t.ok(s.hits > 0 and s.layers > 0, step:explain())
end

test("a layer's call is compared as a whole", function(t)
  local s, step = same(t, 8, function()
    local model = nn.Sequential { nn.Linear { 4, 8 }, nn.ReLU {}, nn.Linear { 8, 2 } }
    local x = pg.randn { 2, 4 }
    return function() return infer(model, x) end, function(i) x:mul_(i) end
  end)
  t.equal({ s.layers, s.items, s.hits }, { 2, 2, 6 }, step:explain()) -- a linear layer and its activation are one
end)

test("layers of several operators, with absent parameters and results", function(t)
  local image = pg.randn { 3, 8, 8 } -- no batch: one is put around it and taken away
  for _, case in ipairs {
    { nn.MaxPool2d { 2, return_indices = true }, image, 1 }, { nn.AvgPool2d { 2 }, image, 1 },
    { nn.Conv2d { 3, 4, 3, bias = false }, image, 0 }, -- the weight comes behind a view
    { nn.Conv2d { 3, 4, 3 }, image:reshape { 1, 3, 8, 8 }, 1 }, { nn.Linear { 8, 3, bias = false }, image, 1 },
    { nn.LayerNorm { 8 }, image, 1 }, { nn.BatchNorm2d { 3, affine = false }, image:reshape { 1, 3, 8, 8 }, 1 },
    { nn.Embedding { 5, 3 }, pg.tensor({ 1, 4, 2 }, { dtype = "int64" }), 1 }, { nn.Dropout { 0.5 }, image, 1 },
    { nn.Dropout { 0 }, image, 0 }, { nn.Flatten {}, image, 1 },
  } do
    local layer, x, layers = unpack(case)
    local s, step = same(t, 6, function()
      return function()
        return pg.no_grad(function()
          local y, where = layer(x)
          return { y:totable(), where and where:totable(), (y * 2):sum():totable() }
        end)
      end
    end)
    t.equal({ s.layers, s.hits >= 4 }, { layers, true }, tostring(layer) .. step:explain())
  end
end)

test("training with layers as wholes", function(t)
  local s, step = same(t, 10, function()
    local model = nn.Sequential { nn.Conv2d { 1, 4, 3, padding = 1 }, nn.BatchNorm2d { 4 }, nn.ReLU {},
                                  nn.MaxPool2d { 2 }, nn.Flatten {}, nn.Dropout { 0.3 }, nn.Linear { 16, 3 } }
    local opt = optim.Adam { model:parameters(), lr = 1e-2 }
    local x, y = pg.randn { 6, 1, 4, 4 }, pg.randint(0, 3, { 6 })
    return function()
      opt:zero_grad()
      local loss = nn.cross_entropy(model(x), y)
      loss:backward()
      opt:step()
      return loss
    end, function(i) x:mul_(1 + i / 100) end
  end)
  t.equal({ s.layers, s.hits }, { 6, 8 }, step:explain())
end)

test("classes, attributes, training, dtypes, gradients and shapes that change", function(t)
  local function check(make, calls) same_with_layers(t, calls or 12, make) end
  check(function() -- layers of one class, and of classes without attributes
    local list = { nn.Dropout { 0.5 }, nn.Dropout { 0.2 }, nn.Tanh {}, nn.Sigmoid {}, nn.Flatten { 1 },
                   nn.Flatten { 2 } }
    local x = pg.randn { 5, 3, 2 }
    return function(i) return infer(list[i % #list + 1], x) * 2 end
  end, 32)
  check(function()
    local model, x = nn.Sequential { nn.Linear { 3, 3 }, nn.BatchNorm1d { 3 }, nn.Dropout { 0.5 } }, pg.randn { 5, 3 }
    return function(i)
      model:train(i % 3 ~= 0)
      return infer(model, x)
    end
  end, 14)
  check(function()
    local model = nn.Sequential { nn.Linear { 3, 3 }, nn.ReLU {} }
    return function(i)
      local x = pg.ones { 2 + i % 2, 3 }
      if i % 3 == 0 then
        for _, p in ipairs(model:parameters()) do p.grad = nil end
        model(x):square():sum():backward()
        return model:parameters()[1].grad
      end
      return infer(model, x)
    end
  end, 20)
  check(function()
    local model, x = nn.Linear { 3, 3 }, pg.randn { 2, 3 }
    return function(i)
      local function call() return infer(model, x) end
      if i % 3 == 0 then return call() end
      return pg.amp.autocast({ device = "cpu", dtype = i % 3 == 1 and "float16" or "bfloat16" }, call)
    end
  end, 24)
end)

test("parameters and inputs are told apart by what they are", function(t)
  local function layers(make, calls) same_with_layers(t, calls or 10, make) end
  layers(function() -- two layers change places, and one is called twice
    local a, b, x = nn.Linear { 3, 3 }, nn.Linear { 3, 3 }, pg.randn { 2, 3 }
    return function(i)
      if i % 3 == 0 then return pg.no_grad(function() return a(b(x)) - a(x) end) end
      if i % 3 == 1 then return pg.no_grad(function() return b(a(x)) - a(x) end) end
      return pg.no_grad(function() return a(a(x)) - b(x) end)
    end
  end, 20)
  layers(function() -- a parameter is also the input, or another parameter
    local layer, x = nn.Linear { 3, 3, bias = false }, pg.randn { 3, 3 }
    return function(i) return infer(layer, i % 2 == 0 and layer.weight or x) end
  end, 16)
  layers(function() -- views of one another
    local whole, layer = pg.randn { 4, 3 }, nn.Linear { 3, 3 }
    return function(i)
      local x = whole[{ { 1 + i % 2, 2 + i % 2 } }]
      return infer(layer, x) + infer(layer, whole[{ { 1, 2 } }])
    end
  end, 16)
  layers(function() -- weights that are replaced
    local layer, x = nn.Linear { 3, 3 }, pg.randn { 2, 3 }
    return function() return infer(layer, x) end, function(i)
      if i % 4 == 0 then layer.weight = nn.Parameter(pg.randn { 3, 3 }) end
    end
  end, 16)
end)

test("a call goes on otherwise behind layers that were known", function(t)
  local s, step = same(t, 16, function()
    local a, b, x = nn.Linear { 3, 3 }, nn.Linear { 3, 2 }, pg.randn { 2, 3 }
    return function(i)
      local y = infer(a, x)
      if i % 4 == 0 then y = y:tanh() end
      if i % 5 == 0 then y = y:reshape { 7 } end -- an error
      if i % 3 == 0 then return y:sum():item() end
      return infer(b, y)
    end
  end)
  t.ok(s.hits > 0 and s.replayed > 0 and s.layers > 0, step:explain())
end)

test("errors within a layer, and what watches every operator", function(t)
  local layer = nn.Linear { 3, 3 }
  local f = pg.compile(function(x) return infer(layer, x) end)
  local x = pg.randn { 2, 3 }
  for _ = 1, 5 do f(x) end
  t.raises(function() f(pg.randn { 2, 4 }) end, "linear")
  t.raises(function() f("x") end, "must be a tensor")
  local want = infer(layer, x):totable()
  t.equal(f(x):totable(), want)
  pg.detect_anomaly(function() t.equal(f(x):totable(), want) end)
  pg.no_grad(function() layer.weight:fill_(3e38) end)
  t.raises(function() pg.detect_anomaly(function() return f(pg.ones { 2, 3 } * 1e3) end) end, "made Inf")
end)

test("random programs of layers", function(t)
  for seed = 1, 60 do
    local s, step = same(t, 9, function()
      local draw = generator(seed)
      local function new()
        local kinds = { nn.Linear { 4, 4 }, nn.ReLU {}, nn.LayerNorm { 4 }, nn.BatchNorm1d { 4 }, nn.Dropout { 0.4 },
                        nn.GELU {}, nn.Linear { 4, 4, bias = false }, nn.Softmax { 2 } }
        return kinds[draw(#kinds)]
      end
      local list, changes = {}, {}
      for k = 1, 3 + draw(4) do list[k], changes[k] = k > 2 and draw(4) == 1 and list[draw(k - 1)] or new(), draw(9) end
      local trains, rate = draw(2) == 1, draw(3)
      local opt = optim.SGD { nn.Sequential(list):parameters(), lr = 0.05 }
      local x = pg.randn { 5, 4 }
      return function(i)
        local y = x
        for k = 1, #list do
          if changes[k] == 1 then list[k]:train(i % (rate + 1) ~= 0) end
          if changes[k] == 2 and i % (rate + 2) == 0 then y = y * 0.5 end
          y = list[k](y)
          if changes[k] == 3 and i == 6 then y = y + y:sum():item() end
        end
        if trains and y.requires_grad then
          opt:zero_grad()
          y:square():mean():backward()
          opt:step()
        end
        return y:detach()
      end
    end)
    t.ok(s.calls == 9, step:explain())
  end
end)
