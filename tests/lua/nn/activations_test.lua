-- SPDX-License-Identifier: Apache-2.0
-- The activation layers: each is its operator, with its attributes and defaults.

local pg = require "perigee"
local nn = pg.nn

local x = pg.tensor { { -4, -0.7, -0.2, 0 }, { 0.3, 0.9, 3.5, 8 } }

local layers = {
  ReLU = { {}, pg.relu }, ReLU6 = { {}, pg.relu6 }, Sigmoid = { {}, pg.sigmoid }, LogSigmoid = { {}, pg.logsigmoid },
  Tanh = { {}, pg.tanh }, Tanhshrink = { {}, pg.tanhshrink }, SiLU = { {}, pg.silu }, Mish = { {}, pg.mish },
  Hardswish = { {}, pg.hardswish }, Hardsigmoid = { {}, pg.hardsigmoid }, SELU = { {}, pg.selu },
  Softsign = { {}, pg.softsign }, GELU = { { approximate = "tanh" }, pg.gelu },
  LeakyReLU = { { negative_slope = 0.2 }, pg.leaky_relu }, ELU = { { alpha = 2 }, pg.elu },
  CELU = { { alpha = 0.5 }, pg.celu }, Hardshrink = { { lambd = 1 }, pg.hardshrink },
  Softshrink = { { lambd = 0.25 }, pg.softshrink }, Hardtanh = { { min_val = -2, max_val = 5 }, pg.hardtanh },
  Softplus = { { beta = 2, threshold = 4 }, pg.softplus },
  Softmax = { { axis = 1 }, pg.softmax }, LogSoftmax = { { axis = 1 }, pg.log_softmax }, GLU = { { axis = 1 }, pg.glu },
}

for name, row in pairs(layers) do
  test("nn." .. name .. " is its operator", function(t)
    local options, operator = row[1], row[2]
    t.equal(nn[name](options)(x), operator(x, options))
    if not name:find("Softmax") then t.equal(nn[name] {}(x), operator(x)) end
    t.ok(#nn[name](options):parameters() == 0, "it has parameters")
  end)
end

test("nn.Threshold wants both numbers", function(t)
  t.equal(nn.Threshold { 0.5, 7 }(x), { { 7, 7, 7, 7 }, { 7, pg.tensor(0.9):item(), 3.5, 8 } })
  t.raises(function() nn.Threshold { 0.5 } end, "value")
end)

test("nn.PReLU learns slopes", function(t)
  local one, each = nn.PReLU {}, nn.PReLU { 4, init = 0.5 }
  t.close(one(x)[1], pg.tensor { -1, -0.175, -0.05, 0 })
  t.close(each(x)[1], pg.tensor { -2, -0.35, -0.1, 0 })
  each(x):sum():backward()
  t.close(each.weight.grad, pg.tensor { -4, -0.7, -0.2, 0 })
  t.equal(one(pg.tensor(-1)):item(), -0.25)
  t.raises(function() nn.PReLU { 3 }(x) end, "slopes")
  t.raises(function() nn.PReLU { 0 } end, "positive")
end)

test("nn.GLU wants an even size", function(t) t.raises(function() nn.GLU {}(pg.ones(2, 3)) end, "even size") end)
