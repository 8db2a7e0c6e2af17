-- SPDX-License-Identifier: Apache-2.0
-- Convolutional nets of frozen calls: batch norms in weights, activations and sums in convolutions. What they compute
-- differs from eager code by rounding, and follows what is written to parameters and statistics.

local pg = require "perigee"
local nn = pg.nn

local tests = (debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or ".") .. "/../.."
package.path = tests .. "/?.lua;" .. package.path
local netted = require "netted"
local begin, difference, eager, net_of, stir = netted.begin, netted.difference, netted.eager, netted.net_of, netted.stir

-- Of the largest element of the result.
local TOLERANCE = 1e-5

local function close(t, a, b, what)
  t.equal(a.shape, b.shape, what)
  t.equal(a.dtype, b.dtype, what)
  local far = difference(a, b)
  t.ok(far <= TOLERANCE, ("%s: differs by %g of the largest element"):format(what or "", far))
end

-- fn, frozen, against fn, for some arguments each; answers the frozen function.
local function check(t, fn, make, what)
  local f = pg.compile(fn, { frozen = true })
  for i = 1, 4 do
    local x = make()
    close(t, f(x), eager(fn, x), ("%s, call %d"):format(what or "", i))
  end
  return f
end

local function images(...)
  local shape = { ... }
  return function() return pg.randn(shape) end
end

test("nets: batch norms are in weights, activations in convolutions", function(t)
  begin(t)
  for _, bias in ipairs { true, false } do
    for _, affine in ipairs { true, false } do
      local model = stir(nn.Sequential { nn.Conv2d { 3, 16, 3, padding = 1, bias = bias },
                                         nn.BatchNorm2d { 16, affine = affine }, nn.ReLU {},
                                         nn.Conv2d { 16, 8, 3, stride = 2, bias = bias },
                                         nn.BatchNorm2d { 8, affine = affine } })
      local f = check(t, function(x) return model(x) end, images(2, 3, 17, 13),
                      ("bias %s, affine %s"):format(bias, affine))
      local net = net_of(f)
      t.equal(#net, 1)
      t.equal({ net[1].norms, net[1].sums }, { 2, 0 })
      t.ok(f:explain():find "2 batch norms in weights")
    end
  end
end)

test("nets: float64 says how far eager and frozen calls are off", function(t)
  begin(t)
  local layers, channels = {}, 3
  for i = 1, 6 do
    layers[#layers + 1] = nn.Conv2d { channels, 24, 3, padding = 1 }
    layers[#layers + 1] = nn.BatchNorm2d { 24 }
    layers[#layers + 1] = i % 2 == 0 and nn.SiLU {} or nn.ReLU {}
    channels = 24
  end
  local model = stir(nn.Sequential(layers))
  local x = pg.randn { 1, 3, 20, 20 }
  local f = pg.compile(function(v) return model(v) end, { frozen = true })
  for _ = 1, 3 do f(x) end
  local frozen, plain = f(x), eager(model, x)
  t.equal(#net_of(f), 1)
  model:to { dtype = "float64" }
  local exact = eager(model, x:to { dtype = "float64" })
  t.ok(difference(frozen, exact) <= 4 * difference(plain, exact) + 1e-6,
       ("%g and %g"):format(difference(frozen, exact), difference(plain, exact)))
end)

-- Where the processor has loops of Winograd's way they are taken by the larger ones: tiles go beyond the image.
test("nets: filters of 3x3 that slide by one, of all sizes, and what is behind them", function(t)
  begin(t)
  for i, s in ipairs { { 1, 64, 24, 14, 14 }, { 3, 24, 40, 9, 21 }, { 1, 40, 64, 17, 6 }, { 2, 64, 64, 4, 5 },
                       { 1, 128, 128, 29, 30 } } do
    local n, c, o, h, w = unpack(s)
    for padding = 0, 3 do
      local first, norm = stir(nn.Conv2d { c, o, 3, padding = padding }), stir(nn.BatchNorm2d { o })
      local second = stir(nn.Conv2d { o, o, 3, padding = 1, bias = false })
      check(t, function(x)
        local y = norm(first(x)):relu()
        local z = (second(y) + y):relu() -- a sum and an activation
        z = second(z) + y -- a sum alone
        z = second(z):relu() + z -- an activation before the sum
        return second(pg.gelu(second(z))) -- another function, none
      end, images(n, c, h, w), ("shape %d, padding %d"):format(i, padding))
    end
  end
end)

test("nets: writes to weights, biases, scales and statistics are seen by the next call", function(t)
  begin(t)
  local conv, norm = nn.Conv2d { 3, 16, 3 }, nn.BatchNorm2d { 16 }
  local model = stir(nn.Sequential { conv, norm, nn.ReLU {} })
  local x = pg.randn { 1, 3, 9, 9 }
  local f = pg.compile(function(v) return model(v) end, { frozen = true })
  for _ = 1, 4 do f(x) end
  t.equal(#net_of(f), 1)
  local before = f(x)
  for _, p in ipairs { conv.weight, conv.bias, norm.weight, norm.bias, norm.running_mean, norm.running_var } do
    pg.no_grad(function() p:mul_(1.7) end)
    local after = f(x)
    t.ok(difference(after, before) > 1e-3)
    close(t, after, eager(model, x))
    before = after
  end
  local another = nn.Sequential { nn.Conv2d { 3, 16, 3 }, nn.BatchNorm2d { 16 }, nn.ReLU {} }
  eager(another, x)
  model:load_state(stir(another):state())
  close(t, f(x), eager(model, x), "another state")
  model:train()
  eager(model, pg.randn { 4, 3, 9, 9 }) -- moves the statistics
  model:eval()
  close(t, f(x), eager(model, x), "statistics that training moved")
  t.equal(f:stats().plans, 1)
end)

test("nets: a convolution used twice, results read twice, results that leave", function(t)
  begin(t)
  local conv, norm, other = nn.Conv2d { 8, 8, 3, padding = 1 }, nn.BatchNorm2d { 8 }, nn.BatchNorm2d { 8 }
  local model = stir(nn.Sequential { conv, norm, other })
  t.ok(model)
  local twice = check(t, function(x) return other(conv(norm(conv(x)):relu())) end, images(1, 8, 10, 10), "shared")
  t.equal(net_of(twice)[1].norms, 2)
  -- Both read the convolution itself: neither norm may go into it.
  local both = check(t, function(x)
    local y = conv(x)
    return norm(y):relu() + other(y)
  end, images(1, 8, 10, 10), "two norms of one result")
  t.equal(net_of(both)[1].norms, 0)
  local f = pg.compile(function(x)
    local y = conv(x)
    local z = norm(y)
    return { y = y, z = z, r = z:relu() }
  end, { frozen = true })
  for i = 1, 4 do
    local x = pg.randn { 1, 8, 10, 10 }
    local r = f(x)
    local y = eager(conv, x)
    close(t, r.y, y, i)
    close(t, r.z, eager(norm, y), i)
    close(t, r.r, eager(norm, y):relu(), i)
  end
end)

test("nets: sums behind convolutions: residuals that die, that stay, that are arguments", function(t)
  begin(t)
  local function block(c) return nn.Sequential { nn.Conv2d { c, c, 3, padding = 1 }, nn.BatchNorm2d { c } } end
  local a, b, short = stir(block(16)), stir(block(16)), stir(block(16))
  local make = images(1, 16, 12, 12)
  local f = check(t, function(x)
    local y = a(x):relu()
    local z = (b(y) + y):relu()
    return (b(z) + short(z)):relu()
  end, make, "residuals")
  local net = net_of(f)
  t.equal({ #net, net[1].norms, net[1].sums }, { 1, 4, 2 })
  check(t, function(x) return a(x) + x end, make, "an argument")
  check(t, function(x) local y = a(x) return (y + b(y)) * 2 + y end, make, "one that is read again")
  check(t, function(x) local y = a(x) return y + y end, make, "twice the same")
  check(t, function(x) return a(x) + b(x) + short(x) end, make, "three")
  check(t, function(x) local y = a(x) return y:add_(b(y)):relu_() end, make, "in place")
  check(t, function(x) return a(x):relu() + b(x):sigmoid() end, make, "activations before a sum")
  check(t, function(x) return (a(x) + b(x)):silu():tanh() end, make, "activations behind a sum")
  check(t, function(x) local y = a(x) return b(y:relu()) + y:sigmoid() end, make, "functions by themselves")
end)

test("nets: writes into arguments and results", function(t)
  begin(t)
  local conv = nn.Conv2d { 4, 4, 3, padding = 1 }:eval()
  local f = pg.compile(function(x)
    local y = conv(x)
    x:add_(y)
    return conv(x), y:relu_()
  end, { frozen = true })
  for i = 1, 4 do
    local x = pg.randn { 1, 4, 8, 8 }
    local y = eager(conv, x)
    local moved = x + y
    local z, r = f(x)
    close(t, x, moved, i)
    close(t, z, eager(conv, moved), i)
    close(t, r, y:relu(), i)
  end
end)

test("nets: every activation that goes along", function(t)
  begin(t)
  local conv = nn.Conv2d { 4, 16, 3 }:eval()
  local FUNCTIONS = {
    relu = function(x) return x:relu() end, sigmoid = function(x) return x:sigmoid() end,
    tanh = function(x) return x:tanh() end, silu = function(x) return x:silu() end,
    gelu = function(x) return x:gelu() end,
    ["gelu, tanh"] = function(x) return pg.gelu(x, { approximate = "tanh" }) end,
    hardswish = function(x) return pg.hardswish(x) end, relu6 = function(x) return pg.relu6(x) end,
    hardtanh = function(x) return pg.hardtanh(x, -0.5, 0.25) end, clamp = function(x) return x:clamp(-0.2, 0.3) end,
    ["clamp, one side"] = function(x) return x:clamp { min = 0.1 } end,
    leaky_relu = function(x) return pg.leaky_relu(x, 0.2) end, elu = function(x) return pg.elu(x, 0.7) end,
  }
  for name, fn in pairs(FUNCTIONS) do
    local f = check(t, function(x) return fn(conv(x)) end, images(2, 4, 9, 7), name)
    t.equal(net_of(f)[1].functions, 1, name)
  end
end)

test("nets: shapes: groups, strides, dilation, padding, sequences, volumes, channels-last, odd channels", function(t)
  begin(t)
  local function net(layers) return stir(nn.Sequential(layers)) end
  local function model(m) return function(x) return m(x) end end
  check(t, model(net { nn.Conv2d { 8, 16, 3, groups = 4 }, nn.BatchNorm2d { 16 }, nn.ReLU {} }), images(1, 8, 9, 9),
        "groups")
  check(t, model(net { nn.Conv2d { 8, 8, 3, groups = 8, padding = 1 }, nn.BatchNorm2d { 8 }, nn.ReLU {},
                       nn.Conv2d { 8, 5, 1 }, nn.BatchNorm2d { 5 } }), images(3, 8, 9, 9), "a channel each")
  check(t, model(net { nn.Conv2d { 5, 7, { 3, 2 }, stride = { 2, 3 }, padding = { 2, 1, 0, 3 }, dilation = { 1, 2 } },
                       nn.BatchNorm2d { 7 } }), images(1, 5, 12, 15), "strides and dilation")
  check(t, model(net { nn.Conv1d { 4, 12, 3, padding = 1 }, nn.BatchNorm1d { 12 }, nn.ReLU {},
                       nn.Conv1d { 12, 4, 1 } }), images(2, 4, 30), "sequences")
  check(t, model(net { nn.Conv3d { 2, 8, 3 }, nn.BatchNorm3d { 8 }, nn.ReLU {} }), images(1, 2, 6, 7, 8), "volumes")
  local large = net { nn.Conv2d { 64, 64, 3, padding = 1 }, nn.BatchNorm2d { 64 }, nn.ReLU {},
                      nn.Conv2d { 64, 72, 3, stride = 2 }, nn.ReLU {}, nn.Conv2d { 72, 64, 3 } }
  check(t, model(large), images(1, 64, 40, 36), "by Winograd's way")
  local last = net { nn.Conv2d { 3, 16, 3 }, nn.BatchNorm2d { 16 }, nn.ReLU {} }:to { memory_format = "channels_last" }
  local function make_last() return pg.randn { 2, 3, 10, 11 }:to { memory_format = "channels_last" } end
  local f = check(t, model(last), make_last, "channels-last")
  t.ok(f(make_last()):is_contiguous { memory_format = "channels_last" })
  t.equal(net_of(f)[1].norms, 1)
  check(t, model(last), images(2, 3, 10, 11), "filters channels-last")
  check(t, function(x) return last(x:transpose(3, 4)) end, images(1, 3, 10, 11), "turned")
  check(t, function(x) return last(pg.expand(x, { 2, 3, 8, 8 })) end, images(1, 3, 8, 8), "expanded")
end)

test("nets: pooling, means, and norms that are not behind a convolution", function(t)
  begin(t)
  local function net(layers) return stir(nn.Sequential(layers)) end
  local function model(m) return function(x) return m(x) end end
  local f = check(t, model(net { nn.Conv2d { 3, 16, 3 }, nn.ReLU {}, nn.MaxPool2d { 3, stride = 2, padding = 1 },
                                 nn.BatchNorm2d { 16 }, nn.ReLU {}, nn.Conv2d { 16, 8, 1 }, nn.AvgPool2d { 2 },
                                 nn.AdaptiveAvgPool2d { 1 }, nn.Flatten {}, nn.Linear { 8, 4 } }), images(2, 3, 19, 19))
  t.equal(#net_of(f), 1)
  check(t, model(net { nn.Conv2d { 3, 6, 3 }, nn.AvgPool2d { 3, stride = 2, padding = 1 }, nn.Conv2d { 6, 6, 1 } }),
        images(1, 3, 12, 12), "padding counts")
  check(t, function(x)
    return pg.avg_pool2d(x, { kernel = 3, stride = 2, padding = 1, count_include_pad = false })
  end, images(1, 3, 12, 12), "no convolution")
  local conv = nn.Conv2d { 3, 6, 3 }:eval()
  check(t, function(x)
    return pg.avg_pool2d(conv(x), { kernel = 3, stride = 2, padding = 1, count_include_pad = false })
  end, images(1, 3, 12, 12), "padding does not count")
  check(t, function(x) return pg.max_pool2d(conv(x), { kernel = 3, stride = 2, ceil_mode = true }) end,
        images(1, 3, 13, 13), "windows over the edge")
  check(t, model(net { nn.BatchNorm2d { 3 }, nn.ReLU {}, nn.Conv2d { 3, 6, 3 }, nn.ReLU {}, nn.BatchNorm2d { 6 } }),
        images(1, 3, 9, 9), "a norm in front")
end)

test("nets: joined channels: whole blocks, ragged ones, arguments among them, results that are read again", function(t)
  begin(t)
  local function conv(from, to, size) return stir(nn.Conv2d { from, to, size, padding = (size - 1) / 2 }) end
  for _, channels in ipairs { { 16, 16 }, { 8, 4 }, { 32, 16, 48 }, { 16, 5 }, { 1, 1, 1 }, { 8, 24 } } do
    local parts, sum = {}, 0
    for i, c in ipairs(channels) do parts[i], sum = conv(3, c, 2 * (i % 2) + 1), sum + c end
    local norm, behind = stir(nn.BatchNorm2d { sum }), conv(sum, 6, 3)
    local f = check(t, function(x)
      local list = {}
      for i, part in ipairs(parts) do list[i] = part(x):relu() end
      return behind(norm(pg.cat(list, 2)):relu()):relu()
    end, images(2, 3, 9, 7), table.concat(channels, ", "))
    t.equal({ #net_of(f), net_of(f)[1].functions }, { 1, #channels + 2 }, table.concat(channels, ", "))
  end
  local a, b, c = conv(16, 16, 3), conv(32, 16, 3), conv(48, 16, 1)
  local f = check(t, function(x) -- each layer reads all before it
    local y = a(x):relu()
    local z = pg.cat({ y, b(pg.cat({ x, y }, 2)):relu() }, 2)
    return c(pg.cat({ z, y }, 2)) + y
  end, images(1, 16, 10, 10), "dense")
  t.equal(#net_of(f), 1)
  check(t, function(x) local y = a(x) return pg.cat({ y, y }, 2) end, images(2, 16, 6, 6), "twice the same")
  check(t, function(x) local y = a(x) return pg.cat({ y, x }, 2), y end, images(2, 16, 6, 6), "as a result")
  check(t, function(x) return b(pg.cat({ a(x), x:transpose(3, 4) }, 2)) end, images(1, 16, 6, 6), "turned")
  for _, axis in ipairs { 1, 3, 4 } do
    check(t, function(x) return c(pg.cat({ pg.cat({ b(pg.cat({ a(x), x }, 2)), a(x) }, axis),
                                           pg.cat({ x, x }, axis), pg.cat({ x, x }, axis) }, 2)) end,
          images(1, 16, 6, 6), "axis " .. axis)
  end
  local line = stir(nn.Sequential { nn.Conv1d { 4, 16, 3, padding = 1 }, nn.ReLU {} })
  check(t, function(x) return pg.cat({ line(x), line(x):sigmoid() }, 2) end, images(2, 4, 30), "sequences")
  local last = stir(nn.Conv2d { 3, 8, 3 }):to { memory_format = "channels_last" }
  check(t, function(x) return pg.cat({ last(x):relu(), last(x) }, 2) end, function()
    return pg.randn { 2, 3, 10, 11 }:to { memory_format = "channels_last" }
  end, "channels-last")
end)

test("nets: channels times a number each, of each image or of all", function(t)
  begin(t)
  for _, channels in ipairs { 16, 24, 7, 40 } do
    for _, n in ipairs { 1, 3 } do
      local conv = stir(nn.Sequential { nn.Conv2d { 3, channels, 3 }, nn.BatchNorm2d { channels }, nn.ReLU {} })
      local squeeze, excite = stir(nn.Conv2d { channels, 4, 1 }), stir(nn.Conv2d { 4, channels, 1 })
      local behind = stir(nn.Conv2d { channels, channels, 3, padding = 1 })
      local what = ("%d channels, %d images"):format(channels, n)
      local f = check(t, function(x)
        local y = conv(x)
        local s = excite(squeeze(y:mean({ 3, 4 }, true)):relu()):sigmoid()
        return (behind(y * s) + y):relu()
      end, images(n, 3, 11, 9), what)
      t.equal({ #net_of(f), net_of(f)[1].sums }, { 1, 1 }, what)
      local scale = pg.rand { 1, channels, 1, 1 }
      check(t, function(x) return behind(scale * conv(x)) end, images(n, 3, 11, 9), what .. ", of all")
      local linear = nn.Linear { channels, channels }
      check(t, function(x)
        local y = conv(x)
        return y * linear(y:mean { 3, 4 }):sigmoid():reshape(n, channels, 1, 1) + y
      end, images(n, 3, 11, 9), what .. ", from outside")
    end
  end
  local conv = stir(nn.Conv2d { 3, 8, 3, padding = 1 })
  check(t, function(x) local y = conv(x) return y * y:mean({ 2 }, true) end, images(2, 3, 8, 8), "a number a pixel")
  check(t, function(x) local y = conv(x) return y * y:sigmoid() * 2 end, images(2, 3, 8, 8), "a number an element")
  check(t, function(x) return conv(x) * x:mean({ 2, 3, 4 }, true) end, images(2, 3, 8, 8), "a number an image")
  local wide = stir(nn.Conv2d { 3, 32, 3, padding = 1 })
  check(t, function(x) local y = wide(x) return y * y:mean({ 3, 4 }, true):sigmoid() end, images(1, 3, 64, 64),
        "on threads")
  local line = stir(nn.Conv1d { 4, 16, 3 })
  check(t, function(x) local y = line(x) return y * y:mean({ 3 }, true):sigmoid() end, images(2, 4, 14), "sequences")
  local last = stir(nn.Conv2d { 3, 8, 3 }):to { memory_format = "channels_last" }
  check(t, function(x) local y = last(x) return y * y:mean({ 3, 4 }, true):sigmoid() end, function()
    return pg.randn { 2, 3, 10, 11 }:to { memory_format = "channels_last" }
  end, "channels-last")
end)

test("nets: transposed convolutions end a net", function(t)
  begin(t)
  local up = stir(nn.Sequential { nn.Conv2d { 3, 8, 3 }, nn.ReLU {}, nn.ConvTranspose2d { 8, 4, 3, stride = 2 },
                                  nn.BatchNorm2d { 4 }, nn.ReLU {} })
  local f = check(t, function(x) return up(x) end, images(1, 3, 8, 8), "transposed")
  for _, net in ipairs(net_of(f)) do t.equal(net.norms, 0) end
  local down, behind = stir(nn.Conv2d { 3, 16, 3, padding = 1 }), stir(nn.Conv2d { 32, 4, 3, padding = 1 })
  local rise = stir(nn.ConvTranspose2d { 16, 16, 2, stride = 2 })
  check(t, function(x) -- what comes from outside is joined to what the net has made
    local y = down(x):relu()
    return behind(pg.cat({ y, rise(pg.max_pool2d(y, { kernel = 2 })) }, 2)):relu()
  end, images(1, 3, 12, 12), "down and up")
end)

test("nets: what stays as it is: training, other dtypes, layout=false, deterministic, weights that are arguments",
     function(t)
  begin(t)
  local model = stir(nn.Sequential { nn.Conv2d { 3, 8, 3 }, nn.BatchNorm2d { 8 }, nn.ReLU {} })
  local function run(x) return model(x) end
  local function same(f, x, expected)
    for _ = 1, 4 do
      local y = f(x)
      t.equal(y.dtype, expected.dtype)
      t.equal(y:totable(), expected:totable())
    end
    t.equal(#net_of(f), 0)
  end
  local x = pg.randn { 2, 3, 9, 9 }
  same(pg.compile(run, { frozen = true, layout = false }), x, eager(run, x))
  pg.config.set { deterministic = true }
  local expected = eager(run, x)
  local ok, err = pcall(same, pg.compile(run, { frozen = true }), x, expected)
  pg.config.set { deterministic = false }
  t.ok(ok, err)
  model:to { dtype = "float64" }
  local wide = x:to { dtype = "float64" }
  same(pg.compile(run, { frozen = true }), wide, eager(run, wide))
  model:to { dtype = "float32" }
  model:train()
  local mean = model[2].running_mean:clone()
  local f = pg.compile(run, { frozen = true })
  for _ = 1, 4 do f(x) end
  t.ok(difference(model[2].running_mean, mean) > 1e-3) -- still moved by each call
  local after = model[2].running_mean:clone()
  f(x)
  t.ok(difference(model[2].running_mean, after) > 0)
  for _, net in ipairs(net_of(f)) do t.equal(net.norms, 0) end
  local g = pg.compile(function(v, w) return pg.conv2d(v, w):relu() end, { frozen = true })
  for _ = 1, 4 do
    local w = pg.randn { 4, 3, 3, 3 }
    close(t, g(x, w), pg.conv2d(x, w):relu())
  end
  t.equal(#net_of(g), 0)
end)

test("nets: two threads, and memory that is flat", function(t)
  begin(t)
  local model = stir(nn.Sequential { nn.Conv2d { 3, 32, 3, padding = 1 }, nn.BatchNorm2d { 32 }, nn.ReLU {},
                                     nn.Conv2d { 32, 32, 3, padding = 1 }, nn.ReLU {} })
  local x = pg.randn { 2, 3, 32, 32 }
  local before = pg.config.get().threads
  for _, threads in ipairs { 2, 1 } do
    pg.config.set { threads = threads }
    local f = check(t, function(v) return model(v) end, images(2, 3, 32, 32), threads .. " threads")
    local live
    for i = 1, 30 do
      f(x):free()
      if i == 5 then live = pg.memory.stats().live end
    end
    t.ok(pg.memory.stats().live <= live)
  end
  pg.config.set { threads = before }
end)
