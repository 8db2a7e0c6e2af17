-- SPDX-License-Identifier: Apache-2.0
-- Nets and linear layers of frozen calls in bfloat16 and float16: of models of that dtype, and of float32 under
-- autocast. Between its first convolution and its last step a net rounds less often than eager code, so it must be as
-- near to what float64 computes of the same parameters.

local pg = require "perigee"
local nn = pg.nn

local tests = (debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or ".") .. "/../.."
package.path = tests .. "/?.lua;" .. package.path
local netted = require "netted"
local begin, difference, eager, net_of, stir = netted.begin, netted.difference, netted.eager, netted.net_of, netted.stir

local ROUNDING = { bfloat16 = 2 ^ -8, float16 = 2 ^ -11 }

-- model, a table of layers, and fn of it and x: frozen, beside eager code, against float64. Answers what is frozen.
local function check(t, model, fn, shape, what)
  local x, found = pg.randn(shape), {}
  local narrow = {}
  for dtype in pairs(ROUNDING) do
    local frozen = pg.compile(function(v) return fn(model, v) end, { frozen = true, amp = dtype })
    narrow[#narrow + 1] = { dtype, "autocast", frozen, function(v)
      return pg.amp.autocast({ device = "cpu", dtype = dtype }, eager, fn, model, v)
    end }
  end
  local exact = eager(function() return fn(model:to { dtype = "float64" }, x:to { dtype = "float64" }) end)
  model:to { dtype = "float32" }
  local function compare(dtype, way, frozen, plain, given)
    local y
    for _ = 1, 4 do y = frozen(given) end
    local expected = plain(given)
    local name = ("%s: %s, %s"):format(what, dtype, way)
    t.equal({ y.dtype, y.shape }, { expected.dtype, expected.shape }, name)
    local far, eagers = difference(y, exact), difference(expected, exact)
    t.ok(far <= 1.5 * eagers + 2 * ROUNDING[dtype], ("%s: %g, eager code %g"):format(name, far, eagers))
    found[#found + 1] = frozen
  end
  for _, n in ipairs(narrow) do compare(n[1], n[2], n[3], n[4], x) end
  for dtype in pairs(ROUNDING) do
    model:to { dtype = dtype }
    local function run(v) return fn(model, v) end
    compare(dtype, "itself", pg.compile(run, { frozen = true }), function(v) return eager(run, v) end,
            x:to { dtype = dtype })
  end
  return found
end

local function sequence(layers) return stir(nn.Sequential(layers)) end
local function call(model, x) return model(x) end

test("narrow nets: norms, activations, pooling", function(t)
  begin(t)
  local model = sequence { nn.Conv2d { 3, 32, 3, padding = 1 }, nn.BatchNorm2d { 32 }, nn.ReLU {}, nn.MaxPool2d { 2 },
                           nn.Conv2d { 32, 24, 3, bias = false }, nn.BatchNorm2d { 24 }, nn.SiLU {}, nn.AvgPool2d { 2 },
                           nn.BatchNorm2d { 24 }, nn.Conv2d { 24, 16, 1 }, nn.GELU {}, nn.AdaptiveAvgPool2d { 1 } }
  for _, f in ipairs(check(t, model, call, { 2, 3, 20, 18 }, "a row")) do
    t.equal({ #net_of(f), net_of(f)[1].norms }, { 1, 2 }, f:explain())
  end
end)

test("narrow nets: residuals, joined channels, channels times numbers", function(t)
  begin(t)
  local model = stir(nn.Sequential { nn.Conv2d { 16, 16, 3, padding = 1 }, nn.Conv2d { 16, 16, 3, padding = 1 },
                                     nn.Conv2d { 32, 16, 1 }, nn.Conv2d { 16, 16, 1 } })
  local function run(m, x)
    local y = m[1](x):relu()
    local z = (m[2](y) + y):relu()
    local joined = m[3](pg.cat({ y, z }, 2))
    return joined * m[4](joined:mean({ 3, 4 }, true)):sigmoid() + x
  end
  for _, f in ipairs(check(t, model, run, { 2, 16, 9, 11 }, "block")) do
    t.ok(#net_of(f) >= 1, f:explain())
    t.equal(net_of(f)[1].sums >= 1, true)
  end
end)

test("narrow nets: groups, odd channels, sequences, volumes, channels-last", function(t)
  begin(t)
  check(t, sequence { nn.Conv2d { 8, 16, 3, groups = 4 }, nn.BatchNorm2d { 16 }, nn.ReLU {}, nn.Conv2d { 16, 7, 1 } },
        call, { 1, 8, 9, 9 }, "groups")
  check(t, sequence { nn.Conv2d { 16, 16, 3, groups = 16, padding = 1 }, nn.BatchNorm2d { 16 }, nn.ReLU {},
                      nn.Conv2d { 16, 5, 1 } }, call, { 3, 16, 9, 9 }, "a channel each")
  check(t, sequence { nn.Conv1d { 4, 12, 3, padding = 1 }, nn.BatchNorm1d { 12 }, nn.ReLU {}, nn.Conv1d { 12, 4, 1 } },
        call, { 2, 4, 30 }, "sequences")
  check(t, sequence { nn.Conv3d { 2, 8, 3 }, nn.BatchNorm3d { 8 }, nn.ReLU {} }, call, { 1, 2, 6, 7, 8 }, "volumes")
  local last = sequence { nn.Conv2d { 3, 16, 3 }, nn.BatchNorm2d { 16 }, nn.ReLU {} }
  check(t, last:to { memory_format = "channels_last" }, function(m, x)
    return m(x:to { memory_format = "channels_last" })
  end, { 2, 3, 10, 11 }, "channels-last")
end)

test("narrow nets: linear layers with norms and activations", function(t)
  begin(t)
  for _, rows in ipairs { 1, 3, 64 } do
    for _, bias in ipairs { true, false } do
      local model = sequence { nn.Linear { 70, 48, bias = bias }, nn.BatchNorm1d { 48 }, nn.ReLU {},
                               nn.Linear { 48, 33, bias = bias }, nn.BatchNorm1d { 33 },
                               nn.GELU { approximate = "tanh" }, nn.Linear { 33, 7 }, nn.BatchNorm1d { 7 } }
      for _, f in ipairs(check(t, model, call, { rows, 70 }, ("%d rows, bias %s"):format(rows, bias))) do
        t.equal(netted.layers_of(f), { { 1, 1 }, { 1, 1 }, { 1, 0 } }, f:explain())
      end
    end
  end
end)

test("narrow nets: float32 and bfloat16 in one function; a write to a weight is seen behind its cast", function(t)
  begin(t)
  local a, b = sequence { nn.Conv2d { 3, 16, 3 }, nn.BatchNorm2d { 16 }, nn.ReLU {} },
    sequence { nn.Conv2d { 16, 16, 3 }, nn.BatchNorm2d { 16 }, nn.ReLU {} }
  local f = pg.compile(function(x)
    local y = a(x)
    return pg.amp.autocast({ device = "cpu", dtype = "bfloat16" }, function() return b(y) end) + b(y)
  end, { frozen = true })
  local x = pg.randn { 1, 3, 12, 12 }
  local function expected()
    return eager(function() local y = b(a(x)) return y + y end)
  end
  for i = 1, 4 do t.ok(difference(f(x), expected()) < 0.05, i) end
  local before = f(x)
  pg.no_grad(function() b[1].weight:mul_(-1.5) end)
  t.ok(difference(f(x), before) > 0.1)
  for i = 1, 2 do t.ok(difference(f(x), expected()) < 0.05, "after the write " .. i) end
  pg.memory.collect()
  t.ok(difference(f(x), expected()) < 0.05, "after a collection")
end)
