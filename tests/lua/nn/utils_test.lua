-- SPDX-License-Identifier: Apache-2.0
-- nn.utils: weight normalisation and spectral normalisation, with PyTorch's numbers.

local pg = require "perigee"
local nn, optim = pg.nn, pg.optim

-- sin(0.7 i), i from 0, in float64.
local function seq(...)
  local n = 1
  for _, size in ipairs { ... } do n = n * size end
  return (pg.arange(n):to("float64") * 0.7):sin():reshape(...)
end

local function f64(list) return pg.tensor(list, { dtype = "float64" }) end

local function close(t, got, expected, what)
  local worst = (got:detach():reshape(-1) - f64(expected)):abs():max():item()
  t.ok(worst < 1e-11, ("%s is off by %g"):format(what, worst))
end

-- fn raises, and the message holds every text.
local function raises(t, fn, ...)
  local err = t.raises(fn)
  for _, text in ipairs { ... } do
    t.ok(err:find(text, 1, true), ("%q is not in: %s"):format(text, tostring(err)))
  end
end

local function set(target, value) pg.no_grad(function() target:copy_(value) end) end

local function names_of(layer)
  local names = {}
  for name in layer:named_parameters() do names[#names + 1] = name end
  return names
end

-- What torch.nn.utils.weight_norm gives for a Conv1d with weight seq(3, 2, 2), bias seq(3) and 1.5 times the norms, of
-- the input 1.3 seq(1, 2, 4) and the gradient seq(1, 3, 3): y and the input's gradient are the same for each axis.
local Y = { 0.8625455335874, -0.9032155500433, -2.2441802473564, 0.3062428743274, 2.6568948049852, 4.0609532382188,
            0.7597990350157, -1.9041134097567, -3.2090191592375 }
local DX = { 1.2590424246502, 0.6224289934173, 0.8429680306235, 1.1209184465134, -1.987448959103, -3.0178610990576,
             0.177401860557, 0.8572195457165 }
local WEIGHT_NORM = {
  { axis = 1, shape = { 3, 1, 1 }, g = { 2.1898243129296, 2.100066104326, 2.0163080817498 },
    dg = { -1.2756248229757, -0.3885847034597, 2.8186956445573 },
    dv = { 2.7029488178242, 3.7410748198714, -0.8238981284322, -1.8514122318245, -0.1137893652383, 0.9916074880983,
           0.5680510598925, -0.8967932847036, -0.4616634159613, -4.0982732468862, -0.8909045462258,
           0.3671314066562 } },
  { axis = 2, shape = { 1, 2, 1 }, g = { 1.5363563825793, 3.3031372224408 },
    dg = { 1.8609292906196, -0.2376951207623 },
    dv = { 2.7029488178242, 1.1410013456995, -1.9559509121634, -2.8430392389871, -1.166210232331, 2.0936512125551,
           0.7897945072251, -0.6468409156044, -0.7268248805098, -4.0912106235671, 1.2819445596806,
           3.6352961875695 } },
  { axis = false, shape = {}, g = { 3.6429529841279 }, dg = { 0.5692939220533 },
    dv = { 2.7029488178242, 2.6701968735369, -2.4620033900107, -3.2863183080258, -0.3710405385379, 1.2609883508393,
           1.2373699297347, -0.1423275306426, -2.2252781807389, -4.0512990502968, 0.9445659130823,
           3.1278476916535 } },
}

local function conv()
  local layer = nn.Conv1d { 2, 3, 2 }:to("float64")
  set(layer.weight, seq(3, 2, 2))
  set(layer.bias, seq(3))
  return layer
end

test("weight_norm: values and gradients are PyTorch's, along each axis", function(t)
  for _, row in ipairs(WEIGHT_NORM) do
    local layer = conv()
    t.ok(nn.utils.weight_norm(layer, { axis = row.axis }) == layer)
    t.equal(names_of(layer), { "bias", "weight_g", "weight_v" })
    t.ok(layer.weight_g:has_shape(row.shape))
    set(layer.weight_g, layer.weight_g * 1.5)
    close(t, layer.weight_g, row.g, "g")
    local x = (seq(1, 2, 4) * 1.3):requires_grad_()
    local y = layer(x)
    close(t, y, Y, "y");
    (y * seq(1, 3, 3)):sum():backward()
    close(t, layer.weight_g.grad, row.dg, "the gradient of g")
    close(t, layer.weight_v.grad, row.dv, "the gradient of v")
    close(t, x.grad, DX, "the gradient of x")
  end
end)

test("weight_norm: the field is what the parameters make now, and is nothing that is trained", function(t)
  local layer = nn.utils.weight_norm { conv(), name = "weight" }
  t.ok(pg.allclose(layer.weight, seq(3, 2, 2)))
  set(layer.weight_g, layer.weight_g * 2)
  t.ok(pg.allclose(layer.weight, seq(3, 2, 2) * 2))
  t.equal(layer:count_parameters(), 3 + 3 + 12)
  t.equal(layer:state().weight, nil)
  raises(t, function() layer.weight = nn.Parameter(pg.zeros { 3, 2, 2 }) end, "weight is computed by weight_norm",
           "nn.utils.remove_weight_norm(layer)")
  local ok = pcall(layer, pg.zeros { 1 }) -- an error in forward leaves nothing behind
  t.equal(ok, false)
  set(layer.weight_g, layer.weight_g / 2)
  t.ok(pg.allclose(layer.weight, seq(3, 2, 2)))
  local before = layer(seq(1, 2, 4))
  t.ok(nn.utils.remove_weight_norm(layer) == layer)
  t.equal(names_of(layer), { "bias", "weight" })
  t.equal(layer.weight.is_leaf and layer.weight.requires_grad, true)
  t.ok(pg.allclose(layer(seq(1, 2, 4)), before))
end)

test("weight_norm: states load under both of PyTorch's names, clones and moves carry it", function(t)
  local layer = nn.Sequential { nn.utils.weight_norm(nn.Linear { 2, 3 }) }
  local other = nn.Sequential { nn.utils.weight_norm(nn.Linear { 2, 3 }) }
  other:load_state(layer:state())
  t.equal(other(pg.ones { 1, 2 }):totable(), layer(pg.ones { 1, 2 }):totable())
  local g, v, bias = pg.ones { 3, 1 } * 2, pg.randn { 3, 2 }, pg.zeros { 3 }
  other:load_state { ["0.parametrizations.weight.original0"] = g, ["0.parametrizations.weight.original1"] = v,
                     ["0.bias"] = bias }
  t.equal(other[1].weight_v:totable(), v:totable())
  t.ok(pg.allclose(other[1].weight:norm { axis = 2 }, pg.full({ 3 }, 2)))
  raises(t, function() other:load_state { ["0.weight"] = v, ["0.bias"] = bias } end, "0.weight_g")
  local copy = other:clone()
  set(copy[1].weight_g, copy[1].weight_g * 3)
  t.ok(pg.allclose(copy(pg.ones { 1, 2 }), other(pg.ones { 1, 2 }) * 3))
  copy:to("float64")
  t.equal(copy(pg.ones({ 1, 2 }, { dtype = "float64" })).dtype, "float64")
  nn.utils.remove_weight_norm(copy[1])
  t.equal(names_of(other), { "0.bias", "0.weight_g", "0.weight_v" }) -- the original keeps its own
  local path = os.tmpname() .. ".safetensors"
  pg.save(path, other)
  local again = nn.Sequential { nn.utils.weight_norm(nn.Linear { 2, 3 }) }
  pg.load(path, again)
  os.remove(path)
  t.equal(again(pg.ones { 1, 2 }):totable(), other(pg.ones { 1, 2 }):totable())
end)

test("weight_norm: optimizers train g and v, freeze stops them; other names; merging with an activation", function(t)
  local model = nn.Sequential { nn.utils.weight_norm(nn.Conv2d { 1, 2, 3 }), nn.ReLU {}, nn.Flatten {},
                                nn.Linear { 2 } }
  local x = pg.randn { 4, 1, 3, 3 }
  model(x)
  local opt = optim.SGD { model:parameters(), lr = 0.1 }
  local g, v = model[1].weight_g:clone(), model[1].weight_v:clone()
  model(x):square():sum():backward()
  opt:step()
  t.equal(pg.allclose(g, model[1].weight_g), false)
  t.equal(pg.allclose(v, model[1].weight_v), false)
  t.ok(pg.allclose(model[2](model[1](x)), nn.Sequential { model[1], model[2] }(x)))
  model:freeze()
  t.equal(model[1].weight.requires_grad, false)
  local attention = nn.utils.weight_norm(nn.MultiheadAttention { 4, 2 }, { name = "in_proj_weight" })
  local z = pg.randn { 1, 3, 4 }
  t.ok((attention(z, z, z)):has_shape { 1, 3, 4 })
  t.ok(attention.in_proj_weight_g:has_shape { 12, 1 })
end)

test("weight_norm: second order, mixed precision, graphs", function(t)
  local layer = nn.utils.weight_norm(nn.Linear { 2, 2 }:to("float64"))
  pg.gradcheck(function(g, v)
    return v * (g / v:norm { axis = 2, keepdim = true })
  end, { layer.weight_g:detach():requires_grad_(), layer.weight_v:detach():requires_grad_() })
  local first = pg.grad(layer(f64 { { 1, 2 } }):pow(3):sum(), layer.weight_v, { create_graph = true })
  t.equal(pg.grad(first:pow(2):sum(), layer.weight_g).shape, layer.weight_g.shape)
  local half = nn.utils.weight_norm(nn.Linear { 4, 4 })
  local x = pg.randn { 2, 4 }
  local y = pg.amp.autocast({ dtype = "bfloat16" }, function() return half(x) end)
  t.equal(y.dtype, "bfloat16")
  t.ok(pg.allclose(y:to("float32"), half(x), { atol = 0.1, rtol = 0.05 }))
  local g = pg.graph(function(graph)
    return { y = half(graph:placeholder { "x", shape = { 2, 4 } }) }
  end)
  t.ok(pg.allclose(pg.Session { g }:run("y", { x = x }), half(x)))
end)

-- What torch's parametrizations.spectral_norm gives after two calls in training mode, from weights seq(...) and these
-- u and v, of 1.3 seq(...) and the gradient seq(...).
local SPECTRAL = {
  { make = function() return nn.Linear { 3, 2, bias = false } end, shape = { 2, 3 }, input = { 1, 3 },
    first_u = { 1, 2 }, first_v = { 1, -1, 2 }, u = { 0.9835145725922, -0.1808288845811 },
    v = { -0.1310340474593, 0.4810292290063, 0.8668569427812 }, y = { 1.5126789778091, -0.1417312428754 },
    dw = { -0.0098778722112, 0.0362619131906, 0.0653471542108, 0.0018161445328, 0.4462396969507, 0.680789747205 },
    dx = { 0.4668195083942, 0.1811599938735, -0.1897018964689 } },
  { make = function() return nn.ConvTranspose1d { 2, 3, 2, bias = false } end, shape = { 2, 3, 2 }, input = { 1, 2, 3 },
    options = { n_power_iterations = 2 }, first_u = { 1, 2, -1 }, first_v = { 1, -1, 2, 1 },
    u = { -0.7043751179331, -0.4448175393618, 0.5531663853786 },
    v = { -0.1230726021525, -0.5018323377738, 0.611925301965, 0.598802859194 },
    y = { -0.475701908453, -0.7208249726379, 0.2476288929112, 0.6193065099496, -0.3445423265346, 0.2768725091711,
          1.1092043172345, 0.5341245277337, 0.3585801587544, 0.8149434313008, 0.1294276844747, -0.437739270086 },
    dw = { 0.9586470920748, 1.2745030928681, -0.6340300685098, -0.7554612140332, 0.351639872805, 0.6200454990643,
           -0.4909106821478, -0.0311452279927, 0.0436919682512, -0.4107789983472, -0.165660312269, 0.2433138410808 },
    dx = { 0.1094176677061, -0.3346324716355, -0.6212997307903, -0.6071876917167, -0.3222709640515,
           0.1142148336298 } },
}

test("spectral_norm: values, gradients and estimates are PyTorch's; evaluation leaves the estimates alone", function(t)
  for _, row in ipairs(SPECTRAL) do
    local layer = row.make():to("float64")
    set(layer.weight, seq(unpack(row.shape)))
    t.ok(nn.utils.spectral_norm(layer, row.options or {}) == layer)
    t.equal(names_of(layer), { "weight_orig" })
    for name, first in pairs { weight_u = row.first_u, weight_v = row.first_v } do
      first = f64(first)
      set(layer[name], first / first:norm())
    end
    local x = (seq(unpack(row.input)) * 1.3):requires_grad_()
    layer(x)
    local y = layer(x)
    close(t, layer.weight_u, row.u, "u")
    close(t, layer.weight_v, row.v, "v")
    close(t, y, row.y, "y");
    (y * seq(unpack(y.shape))):sum():backward()
    close(t, layer.weight_orig.grad, row.dw, "the weight's gradient")
    close(t, x.grad, row.dx, "the gradient of x")
    layer:eval()
    close(t, layer(x), row.y, "y in evaluation")
    close(t, layer.weight_u, row.u, "u after evaluation")
  end
end)

test("spectral_norm: divides by the largest singular value from the start; reading does not iterate", function(t)
  local layer = nn.Conv2d { 2, 2, 1 }
  set(layer.weight, pg.tensor { { 0, 4 }, { 2, 0 } }:reshape(2, 2, 1, 1))
  nn.utils.spectral_norm(layer)
  t.ok(pg.allclose(layer.weight:reshape(2, 2), pg.tensor { { 0, 1 }, { 0.5, 0 } }, { atol = 1e-5 }))
  set(layer.weight_v, pg.tensor { 0.6, 0.8 })
  local u = layer.weight_u:totable()
  local _ = layer.weight
  t.equal(layer.weight_u:totable(), u)
  layer(pg.randn { 1, 2, 4, 4 })
  t.ok(not pg.allclose(layer.weight_u, pg.tensor(u), { atol = 0, rtol = 0 }))
  local y, z = layer(pg.ones { 1, 2, 4, 4 }), layer(pg.ones { 1, 2, 4, 4 }); -- twice before backward, as a GAN does
  (y + z):sum():backward()
  t.ok(layer.weight_orig.grad ~= nil)
end)

test("spectral_norm: states under both names, clones, removal, one axis, mixed precision, graphs", function(t)
  local layer = nn.utils.spectral_norm(nn.Linear { 3, 2 })
  local state = layer:state()
  layer:load_state { bias = state.bias, ["parametrizations.weight.original"] = state.weight_orig:clone(),
                     ["parametrizations.weight.0._u"] = state.weight_u:clone(),
                     ["parametrizations.weight.0._v"] = state.weight_v:clone() }
  local copy = layer:clone()
  local x = pg.randn { 4, 3 }
  copy(x)
  t.equal(copy:eval()(x):has_shape { 4, 2 }, true)
  nn.utils.remove_spectral_norm(copy)
  t.equal(names_of(copy), { "bias", "weight" })
  t.equal(copy:state().weight_u, nil)
  t.equal(copy.weight_u, nil)
  layer:eval()
  local expected = layer(x)
  t.ok(pg.allclose(nn.utils.remove_spectral_norm(layer)(x), expected))
  local Scale = nn.class("Scale")
  function Scale:init() self.scale = nn.Parameter(pg.tensor { 3, 4 }) end
  function Scale:forward(a) return a * self.scale end
  local scale = nn.utils.spectral_norm(Scale(), { name = "scale" })
  t.ok(pg.allclose(scale(pg.ones { 2 }), pg.tensor { 0.6, 0.8 }))
  local half = nn.utils.spectral_norm(nn.Linear { 4, 4 })
  half:eval()
  local y = pg.amp.autocast({ dtype = "bfloat16" }, function() return half(pg.ones { 1, 4 }) end)
  t.equal(y.dtype, "bfloat16")
  local g = pg.graph(function(graph) return { y = half(graph:placeholder { "x", shape = { 2, 4 } }) } end)
  local inputs = pg.randn { 2, 4 }
  t.ok(pg.allclose(pg.Session { g }:run("y", { x = inputs }), half(inputs)))
end)

test("nn.utils: errors", function(t)
  raises(t, function() nn.utils.weight_norm(1) end, "nn.utils.weight_norm: needs a layer, got number 1")
  raises(t, function() nn.utils.weight_norm(nn.Linear { 2, 2 }, { name = "wieght" }) end,
           'Linear has no parameter "wieght"', 'did you mean "weight"?')
  raises(t, function() nn.utils.weight_norm(nn.ReLU {}) end, 'ReLU has no parameter "weight"')
  raises(t, function() nn.utils.weight_norm(nn.BatchNorm1d { 2 }, { name = "running_mean" }) end, "has no parameter")
  raises(t, function() nn.utils.weight_norm(nn.Linear { 2 }) end, "before the first input")
  raises(t, function() nn.utils.weight_norm(nn.Linear { 2, 2 }, { axis = 3 }) end, "axis 3 is out of range")
  raises(t, function() nn.utils.weight_norm(nn.Linear { 2, 2 }, { axis = 0 }) end, "axes count from 1")
  raises(t, function() nn.utils.weight_norm(nn.Linear { 2, 2 }, { dim = 0 }) end, "dim")
  local layer = nn.utils.weight_norm(nn.Linear { 2, 2 })
  raises(t, function() nn.utils.spectral_norm(layer) end, "weight of Linear is computed by weight_norm already")
  raises(t, function() nn.utils.remove_spectral_norm(layer) end, "weight of Linear is not computed by spectral_norm")
  raises(t, function() nn.utils.spectral_norm(nn.Linear { 2, 2 }, { n_power_iterations = 0 }) end,
           "n_power_iterations must be positive")
  raises(t, function() nn.utils.spectral_norm(nn.Linear { 2, 2 }, { eps = 0 }) end, "eps must be positive")
  raises(t, function() return nn.utils.wieght_norm end, "did you mean nn.utils.weight_norm?")
end)
