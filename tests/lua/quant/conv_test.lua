-- SPDX-License-Identifier: Apache-2.0
-- Convolutional networks in pg.quant: what they compute, batch norms and ReLUs that are taken in, training, files.

local pg = require "perigee"
local nn, quant = pg.nn, pg.quant

-- A network whose batch norms have seen data.
local function network(o)
  pg.manual_seed(5)
  local model = nn.Sequential {
    nn.Conv2d { 1, 16, 3, padding = 1, bias = not (o and o.no_bias) }, nn.BatchNorm2d { 16 }, nn.ReLU {},
    nn.MaxPool2d { 2 }, nn.Conv2d { 16, 24, 3, stride = 2, padding = "valid", activation = "relu" },
    nn.Conv2d { 24, 8, 1 }, nn.BatchNorm2d { 8, affine = false, activation = "relu" }, nn.Flatten {},
    nn.Linear { 8, 12 }, nn.ReLU {}, nn.Linear { 12, 3 },
  }
  for _ = 1, 5 do model(pg.randn { 8, 1, 8, 8 } * 2 + 1) end
  return model:eval()
end

local function images(n) return pg.randn { n or 6, 1, 8, 8 } * 2 + 1 end

-- How far results are apart, as a part of the largest one.
local function apart(a, b)
  a, b = a:detach():to("float64"), b:detach():to("float64")
  return (a - b):abs():amax():item() / b:abs():amax():item()
end

local MODES = { { mode = "weight_only" }, { mode = "dynamic" }, { mode = "dynamic", activations = "uint8" },
                { data = images(32) }, { data = images(32), activations = "uint8" } }

test("ptq: what the network computes, nearly; batch norms and ReLUs become part of the layers", function(t)
  for _, given in ipairs { {}, { no_bias = true } } do
    local model, x = network(given), images()
    local y, names = model(x):detach(), {}
    for _, o in ipairs(MODES) do
      local small, report = quant.ptq(model, o)
      local off = apart(small(x), y)
      t.ok(off < 0.06, ("%s %s is off by %g"):format(o.mode or "static", o.activations or "", off))
      t.ok(small:size() < 0.45 * model:size())
      t.equal({ #report.rows, #report.left, #report.folded }, { 5, 0, 4 })
      t.equal(report.folded[1], { name = "1", class = "BatchNorm2d", into = "0" })
      t.equal(report.folded[2], { name = "2", class = "ReLU", into = "0" })
      t.ok(tostring(report):find("6 (BatchNorm2d) is part of 5", 1, true), tostring(report))
      for i, layer in ipairs(small) do names[i] = getmetatable(layer).__name end
      t.equal(names, { "QuantizedConv2d", "Identity", "Identity", "MaxPool2d", "QuantizedConv2d", "QuantizedConv2d",
                       "Identity", "Flatten", "QuantizedLinear", "Identity", "QuantizedLinear" })
      t.equal(report.bytes, small:size())
      t.ok(tostring(small):find("inputs=16, out=24, kernel={3, 3}, stride={2, 2}", 1, true), tostring(small))
    end
    t.equal(model(x):detach():totable(), y:totable())
    local exact = quant.ptq(model:clone():to("float64"), { targets = { "0" } })
    local weight = pg.dequantize(exact[1].weight_int8, exact[1].weight_scale):reshape(16, 1, 3, 3)
    local want = pg.conv2d(x:to("float64"), weight, exact[1].bias, { padding = { 1, 1 } }):relu()
    t.close(exact[1](x:to("float64")):detach(), want:detach(), 1e-12)
  end
end)

test("a batch norm in its place computes what the filters with it do, in every dtype", function(t)
  local model = network()
  for dtype, tolerance in pairs { float64 = 0.03, float32 = 0.03, bfloat16 = 0.06 } do
    local own = model:clone():to(dtype)
    local x = images():to(dtype)
    local small = quant.ptq(own)
    t.equal(small(x).dtype, dtype)
    t.ok(apart(small(x), own(x)) < tolerance, dtype)
  end
end)

test("what stands elsewhere stays: in two places, with a mask, without statistics, in another container", function(t)
  local norm, relu = nn.BatchNorm2d { 4 }, nn.ReLU {}
  local masked = pg.prune.l1_unstructured(nn.BatchNorm2d { 4 }, 0.5)
  for _, model in ipairs { nn.Sequential { nn.Conv2d { 2, 4, 3 }, norm, nn.Conv2d { 4, 4, 1 }, norm },
                           nn.Sequential { nn.Conv2d { 2, 4, 3 }, masked },
                           nn.Sequential { nn.Conv2d { 2, 4, 3 }, relu, nn.Conv2d { 4, 4, 1 }, relu },
                           nn.Sequential { nn.Conv2d { 2, 4, 3 }, nn.BatchNorm2d { 4, track_running_stats = false } },
                           nn.Residual { nn.Conv2d { 2, 2, 1 }, nn.ReLU {} } } do
    model:eval()
    local x = pg.randn { 3, 2, 6, 6 }
    local small, report = quant.ptq(model)
    t.equal(#report.folded, 0)
    t.ok(apart(small(x), model(x)) < 0.05)
  end
end)

test("padding by name, groups, images without a batch", function(t)
  for _, layer in ipairs { nn.Conv2d { 4, 8, 3, padding = "same" }, nn.Conv2d { 4, 8, 4, padding = "same" },
                           nn.Conv2d { 4, 8, 3, padding = 1, padding_mode = "reflect" },
                           nn.Conv2d { 4, 8, { 3, 2 }, padding = { 0, 1, 2, 0 }, dilation = 2, activation = "relu" },
                           nn.Conv2d { 4, 4, 3, groups = 4 }, nn.Conv2d { 4, 16, 3, groups = 2 } } do
    for _, o in ipairs { {}, { mode = "dynamic" }, { data = pg.randn { 20, 4, 9, 9 } } } do
      local x = pg.randn { 2, 4, 9, 9 }
      local small = quant.ptq(layer, o)
      t.ok(apart(small(x), layer(x)) < 0.05, tostring(small))
      t.close(small(x[1]):detach(), small(x)[1]:detach(), 1e-5)
      local learner = quant.qat(layer, { mode = o.mode })
      t.close(learner(x):detach(), quant.ptq(layer, { mode = o.mode })(x):detach(), 2e-2)
    end
  end
end)

test("four bits and float8: what divides is quantised, what does not is told", function(t)
  local model, x = network(), images()
  local small, report = quant.ptq(model, { dtype = "int4", group_size = 4 })
  t.equal({ report.left[1].name, report.left[1].why }, { "0", "int4 needs an even number of inputs, it has 9" })
  t.equal(#report.rows, 4)
  report = select(2, quant.ptq(model, { group_size = 4 }))
  t.equal({ report.left[1].name, report.left[1].why }, { "0", "group_size=4 does not divide its 9 inputs" })
  t.ok(apart(small(x), model(x)) < 0.5)
  t.raises(function() quant.ptq(model, { dtype = "int4", targets = { "0" } }) end, "an even number of inputs, it has 9")
  for _, dtype in ipairs { "float8_e4m3fn", "float8_e5m2" } do
    small = quant.ptq(model, { dtype = dtype })
    t.ok(apart(small(x), model(x)) < 0.2, dtype)
  end
  t.raises(function() quant.ptq(small) end, "0 is quantised already")
end)

test("files, clones, graphs, gradients of what goes in", function(t)
  local model, x, path = network(), images(), os.tmpname()
  local small = quant.ptq(model, { data = images(32), activations = "uint8" })
  local y = small(x):detach()
  pg.save(path .. ".safetensors", small)
  local other = quant.ptq(network { no_bias = true }, { data = images(8), activations = "uint8" })
  other:load_state((pg.load(path .. ".safetensors")))
  t.equal(other(x):detach():totable(), y:totable())
  os.remove(path)
  os.remove(path .. ".safetensors")
  t.equal(small:clone()(x):detach():totable(), y:totable())
  local step = pg.compile(function(v) return small(v) end)
  for _ = 1, 3 do t.close(step(x):detach(), y, 1e-5) end
  local g = pg.graph(function(graph)
    local p = graph:placeholder { "x", shape = { "batch", 1, 8, 8 }, dtype = "float32" }
    return { y = small(p) }
  end)
  t.close(pg.Session { g }:run("y", { x = x }), y, 1e-5)
  local own = x:clone()
  own.requires_grad = true
  small(own):square():sum():backward()
  t.ok(own.grad:abs():sum():item() > 0 and small[1].bias.grad:abs():sum():item() > 0)
end)

test("qat: trains as whole numbers would compute, and converts to what it computed", function(t)
  local model, x = network(), images(64)
  local y = pg.randint(0, 3, { 64 })
  for _, o in ipairs { { mode = "static" }, { mode = "dynamic" }, { dtype = "int4" } } do
    local learner = quant.qat(model, o)
    t.equal(getmetatable(learner[5]).__name, "QuantTrainedConv2d")
    local optimizer = pg.optim.Adam { learner:parameters(), lr = 3e-3 }
    local first, last
    for _ = 1, 12 do
      optimizer:zero_grad()
      local loss = nn.cross_entropy(learner:train()(x), y)
      loss:backward()
      optimizer:step()
      first, last = first or loss:item(), loss:item()
    end
    t.ok(last < first)
    local small, report = quant.convert(learner:eval())
    t.ok(apart(small(x), learner(x)) < 0.05)
    t.ok(#report.rows >= 4)
  end
end)
