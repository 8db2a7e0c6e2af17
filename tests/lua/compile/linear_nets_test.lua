-- SPDX-License-Identifier: Apache-2.0
-- Linear layers of frozen calls: batch norms behind them are in their weights. What they compute differs from eager
-- code by rounding, and follows what is written to parameters and statistics.

local pg = require "perigee"
local nn = pg.nn

local tests = (debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or ".") .. "/../.."
package.path = tests .. "/?.lua;" .. package.path
local netted = require "netted"
local begin, difference, eager, stir = netted.begin, netted.difference, netted.eager, netted.stir
local layers_of = netted.layers_of

-- Of the largest element of the result.
local TOLERANCE = 1e-5

local function close(t, a, b, what)
  t.equal(a.shape, b.shape, what)
  t.equal(a.dtype, b.dtype, what)
  local far = difference(a, b)
  t.ok(far <= TOLERANCE, ("%s: differs by %g of the largest element"):format(what or "", far))
end

-- model, frozen, against eager calls of batches of so many rows; answers the frozen function.
local function check(t, model, inputs, rows, what, options)
  local call = type(model) == "function" and model or function(x) return model(x) end
  options = options or {}
  options.frozen = true
  local f = pg.compile(call, options)
  for i = 1, 4 do
    local x = pg.randn { rows, inputs }
    close(t, f(x), eager(call, x), ("%s, %d rows, call %d"):format(what or "", rows, i))
  end
  return f
end

test("linear nets: batch norms are in weights, activations in products", function(t)
  begin(t)
  for _, bias in ipairs { true, false } do
    for _, affine in ipairs { true, false } do
      for _, rows in ipairs { 1, 3, 64, 400 } do
        local model = stir(nn.Sequential { nn.Linear { 70, 48, bias = bias }, nn.BatchNorm1d { 48, affine = affine },
                                           nn.ReLU {}, nn.Dropout { 0.2 }, nn.Linear { 48, 33, bias = bias },
                                           nn.BatchNorm1d { 33, affine = affine }, nn.GELU { approximate = "tanh" },
                                           nn.Linear { 33, 7 }, nn.BatchNorm1d { 7, affine = affine } })
        local f = check(t, model, 70, rows, ("bias %s, affine %s"):format(bias, affine))
        t.equal(layers_of(f), { { 1, 1 }, { 1, 1 }, { 1, 0 } }, f:explain())
        t.ok(f:explain():find "1 batch norms in a linear layer's weights")
      end
    end
  end
end)

test("linear nets: random sizes, several norms, and what stays behind", function(t)
  begin(t)
  for i = 1, 12 do
    local inputs, width = math.random(1, 300), math.random(1, 300)
    local norms = math.random(1, 2)
    local layers = { nn.Linear { inputs, width } }
    for _ = 1, norms do layers[#layers + 1] = nn.BatchNorm1d { width, eps = 1e-3 } end
    layers[#layers + 1] = ({ nn.Tanh, nn.SiLU, nn.ReLU, nn.Sigmoid })[i % 4 + 1] {}
    local f = check(t, stir(nn.Sequential(layers)), inputs, math.random(1, 90),
                    ("%d by %d, %d norms"):format(inputs, width, norms))
    t.equal(layers_of(f), { { norms, i % 4 == 2 and 1 or 0 } }, f:explain())
  end
end)

test("linear nets: float64 says how far eager and frozen calls are off", function(t)
  begin(t)
  local layers, width = {}, 96
  for _ = 1, 6 do
    layers[#layers + 1] = nn.Linear { width, 96 }
    layers[#layers + 1] = nn.BatchNorm1d { 96 }
    layers[#layers + 1] = nn.ReLU {}
  end
  local model = stir(nn.Sequential(layers))
  local x = pg.randn { 20, 96 }
  local f = pg.compile(function(v) return model(v) end, { frozen = true })
  for _ = 1, 3 do f(x) end
  local frozen, plain = f(x), eager(model, x)
  t.equal(#layers_of(f), 6)
  model:to { dtype = "float64" }
  local exact = eager(model, x:to { dtype = "float64" })
  t.ok(difference(frozen, exact) <= 4 * difference(plain, exact) + 1e-6,
       ("%g and %g"):format(difference(frozen, exact), difference(plain, exact)))
end)

test("linear nets: writes to weights, biases, scales and statistics are seen by the next call", function(t)
  begin(t)
  for _, rows in ipairs { 1, 40 } do
    local linear, norm = nn.Linear { 64, 80 }, nn.BatchNorm1d { 80 }
    local model = stir(nn.Sequential { linear, norm, nn.ReLU {} })
    local x = pg.randn { rows, 64 }
    local f = pg.compile(function(v) return model(v) end, { frozen = true })
    for _ = 1, 4 do f(x) end
    t.equal(#layers_of(f), 1)
    local before = f(x)
    for _, p in ipairs { linear.weight, linear.bias, norm.weight, norm.bias, norm.running_mean, norm.running_var } do
      pg.no_grad(function() p:mul_(1.7) end)
      local after = f(x)
      t.ok(difference(after, before) > 1e-3)
      close(t, after, eager(model, x))
      before = after
    end
    model:train()
    eager(model, pg.randn { 30, 64 }) -- moves the statistics
    model:eval()
    close(t, f(x), eager(model, x), "statistics that training moved")
    t.equal(f:stats().plans, 1)
  end
end)

test("linear nets: a result that others read too, or that is wanted, keeps its norm apart", function(t)
  begin(t)
  local linear, norm = nn.Linear { 24, 24 }, nn.BatchNorm1d { 24 }
  local model = stir(nn.Sequential { linear, norm })
  local f = check(t, function(x)
    local y = model[1](x)
    return model[2](y) + y
  end, 24, 5, "read twice")
  t.equal(layers_of(f), {})
  local g = pg.compile(function(x)
    local y = model[1](x)
    return model[2](y), y
  end, { frozen = true })
  for _ = 1, 4 do
    local x = pg.randn { 5, 24 }
    local a, b = g(x)
    local y = eager(linear, x)
    close(t, b, y)
    close(t, a, eager(norm, y))
  end
  t.equal(layers_of(g), {})
end)

test("linear nets: only where that may be: statistics of the batch, other axes, exact layouts", function(t)
  begin(t)
  local model = stir(nn.Sequential { nn.Linear { 12, 9 }, nn.BatchNorm1d { 9, track_running_stats = false } })
  t.equal(layers_of(check(t, model, 12, 6, "statistics of the batch")), {})
  local channels = stir(nn.Sequential { nn.Linear { 12, 9 }, nn.BatchNorm1d { 5 } })
  local f = pg.compile(function(x) return channels(x) end, { frozen = true })
  for _ = 1, 3 do
    local x = pg.randn { 4, 5, 12 }
    close(t, f(x), eager(channels, x))
  end
  t.equal(layers_of(f), {})
  local plain = stir(nn.Sequential { nn.Linear { 12, 9 }, nn.BatchNorm1d { 9 } })
  local exact = pg.compile(function(x) return plain(x) end, { frozen = true, layout = false })
  for _ = 1, 4 do
    local x = pg.randn { 6, 12 }
    t.equal(exact(x):totable(), eager(plain, x):totable())
  end
  t.equal(layers_of(exact), {})
end)

test("linear nets: weights that are views, and values that are not numbers", function(t)
  begin(t)
  local w, b = pg.randn { 30, 16 }, pg.randn { 32 }
  local scale, shift, mean, var = pg.rand { 16 } + 0.5, pg.randn { 16 }, pg.randn { 16 }, pg.rand { 16 } + 0.5
  local weight, bias = w:t(), b:reshape(16, 2):t()[1]
  local function fn(x)
    local y = pg.linear(x, weight, bias)
    return pg.batch_norm(y, scale, shift, { running_mean = mean, running_var = var }):relu()
  end
  local f = check(t, fn, 30, 10, "views")
  t.equal(layers_of(f), { { 1, 1 } }, f:explain())
  local x = pg.randn { 10, 30 }
  x[3][2] = 0 / 0
  local mine, theirs = f(x), eager(fn, x)
  t.equal(mine[3]:isnan():totable(), theirs[3]:isnan():totable())
  close(t, mine[4], theirs[4])
end)
