-- SPDX-License-Identifier: Apache-2.0
-- Convolutions and batch normalisation with a ReLU in the same pass: the operator, the layers' attribute, and
-- Sequential, which takes a layer and the ReLU behind it for one. Bits are those of the two operators one after the
-- other.

local tests = (debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or ".") .. "/../.."
package.path = tests .. "/?.lua;" .. package.path

local pg = require "perigee"
local process = require "process"
local activated = require "perigee.nn.activated"
local nn, optim, amp = pg.nn, pg.optim, pg.amp

-- Numbers, signs of zeros and where NaN stands.
local function same_bits(t, got, expected, what)
  t.equal(got.dtype, expected.dtype, what)
  t.ok(got.shape == expected.shape, what)
  local equal = got:eq(expected):logical_or(got:isnan():logical_and(expected:isnan()))
  t.ok(equal:all():item(), (what or "") .. ": numbers differ")
  t.ok(got:signbit():eq(expected:signbit()):all():item(), (what or "") .. ": signs differ")
end

local function relu(x) return x:relu() end
local function layer_relu() return nn.ReLU {} end
local function function_relu() return relu end
local merges = function(layer, behind) return activated.find(layer, behind) ~= nil end

-- ---- the operator ----

local shapes = {
  { "conv2d", { 2, 16, 7, 9 }, { 32, 16, 3, 3 }, { padding = 1 } }, -- blocks of channels
  { "conv2d", { 1, 8, 33, 17 }, { 24, 8, 3, 3 }, { stride = 2 } },
  { "conv2d", { 1, 1, 28, 28 }, { 32, 1, 3, 3 }, { padding = 1 } }, -- one channel
  { "conv2d", { 2, 3, 11, 6 }, { 20, 3, 3, 3 }, { padding = { 0, 1, 1, 0 } } }, -- blocks that are not filled
  { "conv2d", { 2, 16, 6, 7 }, { 32, 8, 3, 3 }, { groups = 2, dilation = 2 } },
  { "conv2d", { 2, 8, 6, 7 }, { 8, 1, 3, 3 }, { groups = 8, padding = 1 } },
  { "conv2d", { 4, 16, 40, 40 }, { 32, 16, 3, 3 }, { padding = 1 } }, -- worth two threads
  { "conv2d", { 8, 8, 64, 64 }, { 32, 8, 1, 1 }, { stride = 1 } }, -- images by thread
  { "conv2d", { 1, 8, 96, 129 }, { 96, 8, 1, 1 }, { stride = 1 } }, -- written past the caches
  { "conv2d", { 0, 16, 6, 7 }, { 32, 16, 3, 3 }, { stride = 1 } },
  { "conv2d", { 2, 0, 6, 7 }, { 32, 0, 3, 3 }, { stride = 1 } }, -- the bias alone
  { "conv1d", { 3, 16, 50 }, { 16, 16, 5 }, { padding = 2 } },
  { "conv3d", { 2, 8, 4, 5, 6 }, { 16, 8, 2, 3, 3 }, { padding = 1 } },
}

for i, row in ipairs(shapes) do
  local name, xs, ws, options = unpack(row)
  test(("%s, shape %d: bits of the two operators, as tensors lie"):format(name, i), function(t)
    local with = { activation = "relu" }
    for key, v in pairs(options) do with[key] = v end
    for _, dtype in ipairs { "float32", "float64", "bfloat16", "float16" } do
      pg.manual_seed(i)
      local x, w = pg.randn(xs, { dtype = dtype }), pg.randn(ws, { dtype = dtype })
      local b = pg.randn({ ws[1] }, { dtype = dtype })
      local inputs = { x }
      if name == "conv2d" then -- channels last, and a part of a larger tensor
        inputs[2] = x:permute(1, 3, 4, 2):contiguous():permute(1, 4, 2, 3)
        inputs[3] = pg.cat({ x, x }, 4)[{ {}, {}, {}, { 1, 2 * xs[4], 2 } }]
      end
      for k, v in ipairs(inputs) do
        for _ = 1, 3 do -- weights are packed when they are used again
          same_bits(t, pg[name .. "_activation"](v, w, b, with), pg[name](v, w, b, options):relu(), dtype .. k)
        end
        same_bits(t, pg[name .. "_activation"](v, w, with), pg[name](v, w, options):relu(), dtype .. k .. " no bias")
      end
    end
  end)
end

test("NaN, infinities, both zeros, and what rounds to zero", function(t)
  local finite = { 0, -0.0, 1e-9, -1e-9, -1, 3e-40, -3e-40, 7 }
  local w = pg.eye(16):reshape(16, 16, 1, 1)
  for _, dtype in ipairs { "float32", "float64", "bfloat16", "float16" } do
    local values = {}
    for i = 1, 16 * 20 do values[i] = finite[(i * 3) % 8 + 1] end
    local x = pg.tensor(values):reshape(1, 16, 4, 5):to(dtype)
    local broken = x:clone() -- at these places all channels become NaN, but those of groups of one
    broken[{ 1, 1, 1 }] = pg.tensor({ 0 / 0, 1 / 0, -1 / 0, 1, -1 }):to(dtype)
    broken[{ 1, 9, 2 }] = pg.tensor({ -1 / 0, 1 / 0, 0 / 0, 1, -1 }):to(dtype)
    for _, scale in ipairs { 1, 2 ^ -14, -2 ^ -14, 2 ^ -120, -2 ^ -120 } do
      local weight = (w * scale):to(dtype)
      local groups = weight:sum { axis = 2, keepdim = true }
      for _, v in ipairs { x, broken } do
        same_bits(t, pg.conv2d_activation(v, weight), pg.conv2d(v, weight):relu(), dtype)
        local apart = pg.conv2d(v, groups, { groups = 16 }):relu()
        same_bits(t, pg.conv2d_activation(v, groups, { groups = 16 }), apart, dtype)
      end
    end
  end
end)

test("one example alone, padding by name, unknown activations", function(t)
  local x, w = pg.randn { 3, 9, 8 }, pg.randn { 4, 3, 3, 3 }
  same_bits(t, pg.conv2d_activation { x, w, padding = "same", activation = "relu" },
            pg.conv2d(x, w, { padding = 1 }):relu())
  same_bits(t, x:conv2d_activation(w), pg.conv2d(x, w):relu())
  t.raises(function() pg.conv2d_activation(x, w, { activation = "gelu" }) end, "activation must be one of relu")
  t.raises(function() pg.conv2d_activation(x, w, { padding = "sam" }) end, "same")
end)

test("gradients have the bits of the two operators, sums of them too", function(t)
  for _, dtype in ipairs { "float32", "bfloat16", "float16" } do
    for _, images in ipairs { { 2, 16, 9, 9 }, { 8, 16, 66, 65 } } do -- the batch as a whole, and in parts
      pg.manual_seed(3)
      local leaves = { pg.randn(images, { dtype = dtype }), pg.randn({ 32, 16, 3, 3 }, { dtype = dtype }),
                       pg.randn({ 32 }, { dtype = dtype }) }
      for _, leaf in ipairs(leaves) do leaf.requires_grad = true end
      local x, w, b = unpack(leaves)
      for _, asked in ipairs { leaves, { w, b }, { x, w }, { w }, { x }, { b } } do
        local both = { pg.grad(pg.conv2d_activation(x, w, b):square():sum(), asked) }
        local apart = { pg.grad(pg.conv2d(x, w, b):relu():square():sum(), asked) }
        for i, d in ipairs(apart) do same_bits(t, both[i], d, dtype) end
      end
    end
  end
end)

-- ---- batch normalisation ----

local norm_shapes = { { 4, 3, 9, 7 }, { 64, 5 }, { 3, 40, 2, 3 }, { 2, 6, 50 }, { 2, 4, 3, 4, 5 }, { 0, 3, 4, 4 },
                      { 8, 16, 96, 96 } } -- the last one is written past the caches

for i, shape in ipairs(norm_shapes) do
  test(("batch_norm, shape %d: results, statistics and gradients have the bits of the two operators"):format(i),
       function(t)
    for _, dtype in ipairs { "float32", "float64", "bfloat16", "float16" } do
      for _, training in ipairs(shape[1] > 0 and { true, false } or { false }) do
        pg.manual_seed(i)
        local c, wide = shape[2], dtype == "float64" and "float64" or "float32"
        local leaves = { pg.randn(shape, { dtype = dtype }), pg.rand({ c }, { dtype = wide }),
                         pg.randn({ c }, { dtype = wide }) }
        local dy = pg.randn(shape, { dtype = dtype })
        local what = ("%s, training %s"):format(dtype, tostring(training))
        local function run(x, fn)
          local leaf = { x:detach(), leaves[2]:detach(), leaves[3]:detach() }
          for _, v in ipairs(leaf) do v.requires_grad = true end
          local mean, var = pg.zeros({ c }, { dtype = wide }), pg.ones({ c }, { dtype = wide })
          local y = fn(leaf[1], leaf[2], leaf[3], mean, var, { training = training })
          return { y, mean, var, pg.grad(y, leaf, { grad_outputs = dy }) }
        end
        local function apart(...) return pg.batch_norm(...):relu() end
        local inputs = { leaves[1] }
        if #shape == 4 then inputs[2] = leaves[1]:permute(1, 3, 4, 2):contiguous():permute(1, 4, 2, 3) end
        for _, x in ipairs(inputs) do
          local got, expected = run(x, pg.batch_norm_activation), run(x, apart)
          for k, v in ipairs(expected) do same_bits(t, got[k], v, what .. " " .. k) end
          local quick = pg.no_grad(function()
            local state = { pg.zeros({ c }, { dtype = wide }), pg.ones({ c }, { dtype = wide }) }
            return pg.batch_norm_activation(x, leaves[2], leaves[3], state[1], state[2], { training = training })
          end)
          same_bits(t, quick, expected[1], what)
        end
      end
    end
  end)
end

test("batch_norm: NaN, infinities and both zeros behind the ReLU", function(t)
  for _, dtype in ipairs { "float32", "float64", "bfloat16", "float16" } do
    local row = { 0, -0.0, 1e-7, -1e-7, -1, 0 / 0, 1 / 0, -1 / 0, 3e-40, -3e-40, 7 }
    local x = pg.tensor(row):to(dtype):reshape(#row, 1)
    for _, shape in ipairs { { #row, 1 }, { 1, 1, #row }, { 1, 1, #row * 8 } } do
      local v = shape[3] == #row * 8 and x:reshape(1, 1, #row):tile { 1, 1, 8 } or x:reshape(shape)
      for _, scale in ipairs { 1, -1, 2 ^ -120 } do
        local state = { pg.zeros { 1 }, pg.ones { 1 } }
        local w = pg.full({ 1 }, scale)
        if dtype == "float64" then state, w = { state[1]:double(), state[2]:double() }, w:double() end
        same_bits(t, pg.batch_norm_activation(v, w, nil, state[1], state[2]),
                  pg.batch_norm(v, w, nil, state[1], state[2]):relu(), dtype)
      end
    end
  end
end)

test("batch norm layers take the activation, and Sequential runs them and a ReLU as one", function(t)
  pg.manual_seed(5)
  local function net(behind)
    return nn.Sequential { nn.Conv2d { 2, 6, 3, bias = false }, nn.BatchNorm2d { 6 }, behind(), nn.Flatten {},
                           nn.Linear { 96, 8 }, nn.BatchNorm1d { 8 }, behind(), nn.Linear { 8, 3 } }
  end
  local merged = net(layer_relu)
  local apart = net(function_relu)
  t.ok(merges(merged[2], merged[3]) and merges(merged[6], merged[7]) and not merges(apart[2], apart[3]))
  apart:load_state(merged:state())
  local x = pg.randn { 5, 2, 6, 6 }
  for _ = 1, 3 do
    local a, b = merged(x), apart(x)
    same_bits(t, a, b)
    a:square():sum():backward()
    b:square():sum():backward()
    local other = apart:parameters()
    for i, p in ipairs(merged:parameters()) do same_bits(t, p.grad, other[i].grad) end
  end
  local state = apart:state()
  for name, v in pairs(merged:state()) do same_bits(t, v, state[name], name) end
  merged:eval()
  apart:eval()
  same_bits(t, merged(x), apart(x))
  local layer = nn.BatchNorm2d { 2, activation = "relu" }
  t.ok(tostring(layer):find("activation=relu", 1, true), tostring(layer))
  same_bits(t, layer(x), nn.BatchNorm2d { 2 }(x):relu())
  t.raises(function() nn.BatchNorm2d { 2, activation = "tanh" } end, "none, relu")
  t.raises(function() pg.batch_norm_activation(x, { training = true, activation = "gelu" }) end,
           "activation must be one of relu")
end)

-- ---- layers ----

test("layers of one to three axes take the activation", function(t)
  for axes = 1, 3 do
    local size, class = { 2, 4 }, nn[("Conv%dd"):format(axes)]
    for i = 1, axes do size[i + 2] = 5 end
    local x = pg.randn(size)
    local layer, plain = class { 4, 8, 3, padding = 1, activation = "relu" }, class { 4, 8, 3, padding = 1 }
    plain:load_state(layer:state())
    same_bits(t, layer(x), plain(x):relu())
    same_bits(t, layer(x[1]), plain(x[1]):relu()) -- an example alone
    t.ok(tostring(layer):find("activation=relu", 1, true), tostring(layer))
    t.ok(not tostring(plain):find("activation", 1, true))
    same_bits(t, layer:clone()(x), layer(x))
    local inferred = class { out = 8, kernel = 3, padding = "same", padding_mode = "reflect", activation = "relu" }
    t.ok(inferred(x):amin():item() >= 0)
  end
  t.raises(function() nn.Conv2d { 1, 2, 3, activation = "gelu" } end, "none, relu")
  t.raises(function() nn.ConvTranspose2d { 1, 2, 3, activation = "relu" } end, "activation")
end)

-- ---- Sequential ----

local function small_net(activation)
  pg.manual_seed(7)
  local layers = { nn.Conv2d { 1, 8, 3, padding = 1 }, activation(), nn.Conv2d { 8, 16, 3, padding = 1 }, activation(),
                   nn.MaxPool2d { 2 }, nn.Flatten {}, nn.Linear { 16 * 36, 24 }, activation(), nn.Linear { 24, 5 } }
  return nn.Sequential(layers)
end

test("a net has the same bits where layers and their ReLU are one call", function(t)
  local merged, apart = small_net(layer_relu), small_net(function_relu)
  t.ok(merges(merged[1], merged[2]) and merges(merged[7], merged[8]) and not merges(apart[1], apart[2]))
  for _, dtype in ipairs { "float32", "float64", "bfloat16", "float16" } do
    local a, b = merged:clone():to(dtype), apart:clone():to(dtype)
    local x = pg.randn({ 3, 1, 12, 12 }, { dtype = dtype })
    for _ = 1, 3 do
      for _, mode in ipairs { "train", "eval" } do
        a[mode](a)
        b[mode](b)
        pg.no_grad(function() same_bits(t, a(x), b(x), dtype) end)
        same_bits(t, a(x), b(x), dtype)
      end
    end
  end
  local x = pg.randn { 3, 1, 12, 12 }
  local inner = nn.Sequential { nn.Sequential { merged }, nn.Residual { nn.Linear { 5, 5 }, nn.ReLU {} } }
  local y = apart(x)
  same_bits(t, inner(x), y + inner[2][1](y):relu())
  same_bits(t, merged:clone()(x), y)
end)

for _, dtype in ipairs { "float32", "bfloat16" } do
  test("training steps are the same to the bit: " .. dtype, function(t)
    local function losses(net)
      local optimizer, list = optim.Adam { net:parameters(), lr = 1e-2 }, {}
      pg.manual_seed(9)
      local x, labels = pg.randn { 6, 1, 12, 12 }, pg.randint(0, 5, { 6 })
      for i = 1, 5 do
        optimizer:zero_grad()
        local function loss() return nn.cross_entropy(net(x), labels) end
        local value = dtype == "float32" and loss() or amp.autocast({ dtype = dtype }, loss)
        value:backward()
        list[i] = value:item()
        for name, p in net:named_parameters() do list[name .. i] = p.grad:clone() end
        optimizer:step()
      end
      return list
    end
    local merged, apart = losses(small_net(layer_relu)), losses(small_net(function_relu))
    for key, v in pairs(apart) do
      if type(v) == "number" then t.equal(merged[key], v) else same_bits(t, merged[key], v, key) end
    end
  end)
end

test("hooks see what they saw", function(t)
  local net, x = small_net(layer_relu), pg.randn { 2, 1, 12, 12 }
  local y, between = net(x), net[1](x)
  for i = 1, 2 do
    local seen
    local handle = net[i]:hook("forward", function(_, inputs, output) seen = { inputs[1], output } end)
    t.ok(not merges(net[1], net[2]))
    same_bits(t, net(x), y)
    same_bits(t, seen[1], i == 1 and x or between)
    same_bits(t, seen[2], i == 1 and between or between:relu())
    handle.remove()
    t.ok(merges(net[1], net[2]))
    same_bits(t, net(x), y)
  end
  local handle = net[1]:hook("forward", function(_, _, output) return output - 1 end)
  same_bits(t, net[2](net[1](x)), (between - 1):relu())
  local plain = _G.print
  _G.print = function() end
  local ok, summary = pcall(net.summary, net, { input = { 1, 12, 12 } })
  _G.print = plain
  local rows = ok and summary.rows
  t.equal(rows[2].class .. rows[3].class, "Conv2dReLU")
  t.ok(rows[2].calls == 1 and rows[3].calls == 1 and rows[3].output:find("8, 12, 12", 1, true))
  handle.remove()
end)

test("what a script changes between two calls counts", function(t)
  local conv, x = nn.Conv2d { 2, 4, 3 }, pg.randn { 2, 2, 6, 6 }
  local net = nn.Sequential { conv }
  local y = conv(x)
  same_bits(t, net(x), y)
  net:append(nn.ReLU {})
  same_bits(t, net(x), y:relu())
  net[2] = nn.Tanh {}
  same_bits(t, net(x), y:tanh())
  net[2] = nn.ReLU {}
  same_bits(t, net(x), y:relu())
  net:append(nn.ReLU {}):append(relu)
  same_bits(t, net(x), y:relu())
  conv:load_state { weight = -conv.weight:detach(), bias = -conv.bias:detach() }
  same_bits(t, net(x), (-y):relu())
  net[1] = nn.Conv2d { 2, 4, 3, padding = 1, padding_mode = "reflect" }
  t.ok(not merges(net[1], net[2]))
  same_bits(t, net(x), net[1](x):relu())
  net[1] = nn.Conv2d { 2, 4, 3, activation = "relu" }
  t.ok(not merges(net[1], net[2]))
  same_bits(t, net(x), net[1](x))
  net[1] = nn.Linear { 6, 3, activation = "gelu_tanh" }
  same_bits(t, net(x), net[1](x):relu())
  net[1] = nn.Conv2d { out = 4, kernel = 3 } -- inferred at the first call
  t.ok(not merges(net[1], net[2]))
  same_bits(t, net(x), net[1](x):relu())
  t.ok(merges(net[1], net[2]))
  same_bits(t, net(x), net[1](x):relu())
  net = nn.Sequential { conv, nn.ReLU {} }:to("float64")
  same_bits(t, net(x:to("float64")), conv(x:to("float64")):relu())
end)

test("forwards and classes of a script's own are called", function(t)
  local x = pg.randn { 2, 2, 6, 6 }
  local Mine = nn.class("Mine", nn.Conv2d)
  function Mine:forward(...) return nn.Conv2d.forward(self, ...) * 2 end
  local Plain, Twice = nn.class("Plain", nn.Conv2d), nn.class("Twice", nn.ReLU)
  function Twice:forward(v) return v * 2 end
  for _, pair in ipairs { { Mine { 2, 4, 3 }, nn.ReLU {} }, { Plain { 2, 4, 3 }, nn.ReLU {} },
                          { nn.Conv2d { 2, 4, 3 }, Twice {} } } do
    t.ok(not merges(pair[1], pair[2]))
    same_bits(t, nn.Sequential(pair)(x), pair[2](pair[1](x)))
  end
  local net = nn.Sequential { nn.Conv2d { 2, 4, 3 }, nn.ReLU {} }
  local y = net[1](x)
  rawset(net[2], "forward", function(_, v) return v * 3 end)
  same_bits(t, net(x), y * 3)
  rawset(net[2], "forward", nil)
  local own = nn.ReLU.forward
  nn.ReLU.forward = function(_, v) return v * 4 end
  local ok, z = pcall(net, x)
  nn.ReLU.forward = own
  same_bits(t, ok and z, y * 4)
  same_bits(t, net(x), y:relu())
end)

test("gelu stays apart, policies cast as before", function(t)
  t.ok(not merges(nn.Linear { 4, 3 }, nn.GELU { approximate = "tanh" }) and not merges(nn.Linear { 4, 3 }, nn.GELU {}))
  local merged, apart, x = small_net(layer_relu), small_net(function_relu), pg.randn { 2, 1, 12, 12 }
  amp.policy("mixed_bfloat16", function()
    t.ok(not merges(merged[1], merged[2]))
    same_bits(t, merged(x), apart(x))
  end)
  amp.autocast({ dtype = "bfloat16" }, function() same_bits(t, merged(x), apart(x)) end)
end)

test("graphs have the nodes that they had", function(t)
  local net, x = small_net(layer_relu), pg.randn { 2, 1, 12, 12 }
  local g = pg.graph(function(g) return { y = net(g:placeholder { "x", shape = { "n", 1, 12, 12 } }) } end)
  local text = g:text()
  t.ok(text:find("conv2d", 1, true) and text:find("relu", 1, true) and not text:find("activation", 1, true), text)
  t.close(pg.Session { g }:run("y", { x = x }), net(x), 1e-5)
  t.ok(merges(net[1], net[2]))
end)

test("an infinity that the ReLU would hide is found", function(t)
  local net = nn.Sequential { nn.Conv2d { 1, 1, 1 }, nn.ReLU {} }
  net[1]:load_state { weight = pg.full({ 1, 1, 1, 1 }, -3e38), bias = pg.zeros { 1 } }
  local x = pg.full({ 1, 1, 2, 2 }, 9)
  t.equal(net(x):sum():item(), 0)
  t.raises(function() pg.detect_anomaly(function() return net(x) end) end, "Sequential%.0 %(Conv2d%): conv2d")
  t.equal(net(x):sum():item(), 0)
end)

test("errors name the path of the layer that failed", function(t)
  local net = nn.Sequential { nn.Identity {}, nn.Conv2d { 3, 4, 3 }, nn.ReLU {} }
  t.raises(function() net(pg.zeros { 2, 2, 6, 6 }) end,
           "activated_test.lua:%d+: Sequential%.1 %(Conv2d%): .*axis 2 is 2")
  t.raises(function() net(pg.zeros { 6, 6 }) end, "Sequential%.1 %(Conv2d%): .*expected an input")
  t.raises(function() nn.Sequential { net[2], net[3] }(3) end, "Sequential%.0 %(Conv2d%): the input must be a tensor")
  t.raises(function() nn.Sequential { net }(pg.zeros { 2, 2, 6, 6 }) end, "Sequential%.0%.1 %(Conv2d%)")
  local closed = pg.zeros { 2, 3, 6, 6 }
  closed:free()
  t.raises(function() nn.Sequential { net[2], net[3] }(closed) end, "free")
end)

test("the placement log names the one operator; devices without its kernel run both", function(t)
  local script = process.file [[
    local pg = require "perigee"
    local nn = pg.nn
    pg.config.set { origins = true }
    pg.manual_seed(1)
    local net = nn.Sequential { nn.Conv2d { 2, 4, 3 }, nn.ReLU {}, nn.Linear { 4, 3 }, nn.ReLU {} }
    local x = pg.randn { 2, 2, 6, 6 }
    pg.config.set { log_device_placement = true }
    local y = pg.no_grad(function() return net(x) end)
    pg.config.set { log_device_placement = false }
    local far, x1 = net:clone():to("sim:0"), x:to("sim:0")
    local z, apart = far(x1), far[4](far[3](far[2](far[1](x1))))
    print(pg.allclose(z:cpu(), y), z:cpu():eq(apart:cpu()):all():item())
    z:sum():backward()
    net(x):sum():backward()
    print(pg.allclose(far[1].weight.grad:cpu(), net[1].weight.grad))
  ]]
  local command = ("CUDA_VISIBLE_DEVICES=-1 PERIGEE_SIM_DEVICES=1 '%s' %s"):format(process.need_perigee(t), script)
  local text, status = process.run(command)
  t.equal(status, 0, text)
  t.ok(text:find("conv2d_activation: (Conv2dActivation): /cpu:0\nlinear_activation: (LinearActivation): /cpu:0\n" ..
                 "true\ttrue\ntrue\n", 1, true), text)
  os.remove(script)
end)
