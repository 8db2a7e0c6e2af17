-- SPDX-License-Identifier: Apache-2.0
-- Forms of PyTorch's that are more than one way to say a thing: an example without a batch, shapes by position, options
-- under PyTorch's names.

local pg = require "perigee"
local nn = pg.nn

local SIZES = { { 7 }, { 7, 6 }, { 4, 5, 6 } } -- by the number of axes behind the channels

local function example(axes, channels)
  return pg.randn({ channels, unpack(SIZES[axes]) }, { dtype = "float64" })
end
local function filled(n, value)
  local list = {}
  for i = 1, n do list[i] = value end
  return list
end

-- What a function makes of one example, with its gradient, is what it makes of a batch of one.
local function same_alone(t, x, f, tolerance)
  local alone = x:clone():requires_grad_()
  local batch = x:unsqueeze(1):requires_grad_()
  local y, z = f(alone), f(batch)
  t.close(y, z:squeeze(1), tolerance or 1e-12)
  y:square():sum():backward()
  z:square():sum():backward()
  t.close(alone.grad, batch.grad:squeeze(1), tolerance or 1e-12)
end

for axes = 1, 3 do
  test(("%d: functions of windows take an example alone"):format(axes), function(t)
    pg.manual_seed(axes)
    local x = example(axes, 4)
    local w = pg.randn({ 6, 2, unpack(filled(axes, 3)) }, { dtype = "float64" })
    local back = pg.randn({ 4, 3, unpack(filled(axes, 2)) }, { dtype = "float64" })
    local bias = pg.randn({ 6 }, { dtype = "float64" })
    local function named(name) return pg[name:format(axes)] end
    same_alone(t, x, function(v) return named "conv%dd" (v, w, bias, { padding = 1, groups = 2 }) end)
    same_alone(t, x, function(v) return named "conv%dd" { v, w, padding = "same", groups = 2 } end)
    same_alone(t, x, function(v) return v[("conv%dd"):format(axes)](v, w, { groups = 2 }) end)
    same_alone(t, x, function(v) return named "conv_transpose%dd" (v, back, { stride = 2 }) end)
    same_alone(t, x, function(v) return named "max_pool%dd" (v, 2) end)
    same_alone(t, x, function(v) return named "avg_pool%dd" { v, 2, stride = 1 } end)
    same_alone(t, x, function(v) return named "adaptive_avg_pool%dd" (v, 2) end)
    same_alone(t, x, function(v)
      return (named "adaptive_max_pool%dd" (v, filled(axes, 2), { return_indices = true }))
    end)
    if axes < 3 then same_alone(t, x, function(v) return named "lp_pool%dd" (v, 2, 2) end) end
    local y, at = named "max_pool%dd" { x, 2, return_indices = true }
    t.ok(y:dim() == axes + 1 and at.shape == y.shape and at.dtype == "int64")
    t.equal(x:flatten(2):gather(at:flatten(2), 2), y:flatten(2))
  end)

  test(("%d: layers of windows take an example alone"):format(axes), function(t)
    pg.manual_seed(axes)
    local x = example(axes, 4)
    local function check(name, options)
      local layer = nn[name:format(axes)](options):to("float64")
      same_alone(t, x, function(v) return (layer(v)) end)
    end
    check("Conv%dd", { 4, 6, 3, padding = 1 })
    check("Conv%dd", { out = 6, kernel = 3 }) -- inferred
    check("Conv%dd", { 4, 6, 3, padding = 1, padding_mode = "reflect" })
    check("ConvTranspose%dd", { 4, 3, 2, stride = 2 })
    check("MaxPool%dd", { 2 })
    check("AvgPool%dd", { 2 })
    check("AdaptiveMaxPool%dd", { 2 })
    check("AdaptiveAvgPool%dd", { 1 })
    check("ReplicationPad%dd", { 1 })
    check("ZeroPad%dd", { 1 })
    check("InstanceNorm%dd", { 4, affine = true })
    local dropout = nn[("Dropout%dd"):format(axes)] { 1 }
    t.equal(dropout(x), pg.zeros_like(x))
  end)
end

test("an example alone in a graph, whose sizes may be symbols", function(t)
  local w, conv = pg.randn { 4, 3, 3, 3 }, nn.Conv2d { 3, 4, 3 }
  local g = pg.graph(function(g)
    local x = g:placeholder { "x", shape = { 3, "height", "width" }, dtype = "float32" }
    return { y = pg.conv2d(x, w):max_pool2d(2), z = conv(x) }
  end)
  local x = pg.randn { 3, 9, 8 }
  local sess = pg.Session { g }
  t.close(sess:run("y", { x = x }), pg.conv2d(x, w):max_pool2d(2), 1e-5)
  t.close(sess:run("z", { x = x }), conv(x), 1e-5)
end)

test("max pooling layers give indices where asked", function(t)
  local x = pg.randn({ 2, 3, 6, 6 }, { requires_grad = true })
  local y, at = nn.MaxPool2d { 2, return_indices = true }(x)
  local z, places = pg.max_pool2d(x, 2, { return_indices = true })
  t.equal(y, z)
  t.equal(at, places)
  y:sum():backward()
  t.equal(x.grad:sum():item(), 2 * 3 * 9)
  t.equal(select("#", nn.MaxPool2d { 2 }(x)), 1)
  y, at = nn.AdaptiveMaxPool1d { 2, return_indices = true }(pg.randn { 3, 6 })
  t.ok(y:has_shape { 3, 2 } and at:has_shape { 3, 2 })
end)

test("normalisation over the last axes, by their sizes", function(t)
  pg.manual_seed(3)
  local x, w, b = pg.randn { 2, 3, 4 }, pg.randn { 3, 4 }, pg.randn { 3, 4 }
  local want = pg.layer_norm { x, w, b, dims = 2, eps = 1e-3 }
  t.equal(pg.layer_norm(x, { 3, 4 }, w, b, 1e-3), want)
  t.equal(pg.layer_norm { x, { 3, 4 }, w, b, eps = 1e-3 }, want)
  t.equal(x:layer_norm({ 3, 4 }, w, b, { eps = 1e-3 }), want)
  t.equal(pg.layer_norm(x, { normalized_shape = { 3, 4 }, weight = w, bias = b, eps = 1e-3 }), want)
  t.equal(pg.layer_norm(x, { normalized_shape = { 4 } }), pg.layer_norm(x))
  t.equal(pg.layer_norm(x, 4), pg.layer_norm(x))
  t.equal(pg.layer_norm(x, { 3, 4 }, nil, b), pg.layer_norm { x, bias = b, dims = 2 })
  t.equal(pg.rms_norm(x, { 3, 4 }, w, 1e-3), pg.rms_norm { x, w, dims = 2, eps = 1e-3 })
  t.raises(function() pg.layer_norm(x, { 3 }) end, "normalized shape {3}")
  t.raises(function() pg.rms_norm(x, { 1, 2, 3, 4 }) end, "normalized shape")
end)

test("layers without statistics, without scales", function(t)
  for _, affine in ipairs { "affine", "elementwise_affine" } do
    t.equal(#nn.LayerNorm { 4, [affine] = false }:parameters(), 0)
    t.equal(#nn.RMSNorm { 4, [affine] = false }:parameters(), 0)
    t.equal(#nn.LayerNorm { 4, [affine] = true }:parameters(), 2)
  end
  local norm, x = nn.BatchNorm2d { 3, track_running_stats = false }, pg.randn { 4, 3, 5, 5 }
  local state = norm:state()
  t.ok(state.weight and state.bias and not state.running_mean and not state.running_var)
  local y = norm(x)
  t.equal(norm:eval()(x), y)
  t.close(y, nn.BatchNorm2d { 3 }(x), 1e-6)
  t.equal(nn.BatchNorm2d { track_running_stats = false }(x), y) -- inferred
end)

test("InstanceNorm takes its rank from the input", function(t)
  for axes, name in ipairs { "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d" } do
    local x = pg.randn({ 2, 4, unpack(SIZES[axes]) })
    t.equal(nn.InstanceNorm { 4 }(x), nn[name] { 4 }(x))
  end
  t.raises(function() nn.InstanceNorm { 4 }(pg.ones { 2, 4 }) end, "expected %[N, C, %.%.%.%]")
end)

test("logsumexp of integers, sign of booleans", function(t)
  local y = pg.tensor({ { 0, 1 }, { 2, 3 } }, { dtype = "int64" }):logsumexp(2)
  t.equal(y.dtype, "float32")
  t.close(y, { math.log(1 + math.exp(1)), math.log(math.exp(2) + math.exp(3)) }, 1e-6)
  t.close(pg.tensor { true, false }:logsumexp(1), math.log(math.exp(1) + 1), 1e-6)
  local s = pg.tensor { true, false }:sign()
  t.equal(s.dtype, "bool")
  t.equal(s, { true, false })
end)

test("clamp between tensors", function(t)
  local x = pg.tensor({ -1, 0.5, 7 }, { requires_grad = true })
  local y = x:clamp(pg.tensor { 0, 0, 0 }, pg.tensor { 1, 2, 3 })
  t.equal(y, { 0, 0.5, 3 })
  y:sum():backward()
  t.equal(x.grad, { 0, 1, 0 })
  t.equal(pg.tensor { -1, 5 }:clamp { max = pg.tensor { 1, 2 } }, { -1, 2 })
  local z = pg.tensor { -1, 5 }
  z:clamp_(pg.tensor { 0, 9 })
  t.equal(z, { 0, 9 })
end)

test("samples by position, curves by name", function(t)
  local ds = pg.data.from_slices { x = pg.arange(6):reshape(3, 2) }
  t.equal(ds[1].x, { 0, 1 })
  t.equal(ds[-1].x, { 4, 5 })
  t.equal(ds:batch(2)[2].x, { { 4, 5 } })
  local shuffled = ds:shuffle { seed = 3 }
  local each = shuffled:each()
  local _, first = each()
  t.equal(shuffled[1].x, first.x) -- the order of the epoch that is running
  t.equal(shuffled:epoch(), 1)
  local file = os.tmpname() .. ".svg"
  local plot = pg.plot({ train = { 3, 2, 1 }, test = pg.tensor { 3, 2.5, 2 } }, { title = "loss", file = file })
  os.remove(file)
  t.equal({ plot.series[1].label, plot.series[2].label }, { "test", "train" })
  plot = pg.plot { { a = { 1, 2 } }, file = file }
  os.remove(file)
  t.equal(plot.series[1].label, "a")
end)

test("batch norm of an input [0] is empty, and one of one axis with elements refused", function(t)
  local x = pg.zeros({ 0 }, { requires_grad = true })
  local mean, var = pg.zeros { 0 }, pg.ones { 0 }
  for _, y in ipairs { pg.batch_norm { x, training = true }, x:batch_norm { running_mean = mean, running_var = var },
                       pg.batch_norm(x, nil, nil, mean, var, { training = true }) } do
    t.equal(y.shape, { 0 })
    t.equal(pg.grad(y:sum(), { x }).shape, { 0 })
  end
  t.raises(function() pg.batch_norm { x, trainign = true } end, "did you mean \"training\"")
  t.raises(function() pg.batch_norm { pg.ones { 3 }, training = true } end, "expected at least 2 axes")
end)
