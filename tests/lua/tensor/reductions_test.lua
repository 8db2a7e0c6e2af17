-- SPDX-License-Identifier: Apache-2.0
-- Reductions and scans of several results or kinds of arguments (reductions.lua, compare.lua, linalg.lua).

local pg = require "perigee"

local x = pg.tensor { { 3, -4, 0 }, { 1, 2, -2 } }

test("norm takes orders, names and axes", function(t)
  t.close(x:norm():item(), math.sqrt(34), 1e-6)
  t.close(x:norm(1), pg.tensor(12), 1e-6)
  t.close(x:norm { "fro", axis = 2 }, pg.tensor { 5, 3 }, 1e-6)
  t.close(x:norm(math.huge, 1), pg.tensor { 3, 4, 2 })
  t.close(x:norm(0, 2, true), pg.tensor { { 2 }, { 3 } })
  t.close(x:norm(3, -1), pg.tensor { (27 + 64) ^ (1 / 3), 17 ^ (1 / 3) }, 1e-5)
  t.equal(pg.zeros(2, 0):norm { axis = 2 }, { 0, 0 })
  t.raises(function() x:norm("nuc") end, "singular values")
  t.raises(function() x:norm("two") end, "p must be a number")
  t.raises(function() x:norm(2, 0) end, "count from 1")
  t.raises(function() pg.ones({ 2 }, { dtype = "int64" }):norm() end, "floating")
  t.raises(function() pg.zeros(0):norm(math.huge) end, "empty")
end)

test("linalg.norm is a vector's or a matrix's", function(t)
  local norm = pg.linalg.norm
  t.close(norm(x):item(), math.sqrt(34), 1e-6)
  t.equal(norm(x, 1):item(), 6)
  t.equal(norm(x, -1):item(), 2)
  t.equal(norm(x, math.huge):item(), 7)
  t.equal(norm(x, -math.huge):item(), 5)
  t.close(norm(x, "fro"):item(), math.sqrt(34), 1e-6)
  t.equal(norm(x, { ord = 1, axis = 2 }), { 7, 5 })
  t.equal(pg.linalg.matrix_norm(x, { ord = 1, keepdim = true }), { { 6 } })
  t.equal(pg.linalg.vector_norm(x, 1):item(), 12)
  t.raises(function() norm(x, "nuc") end, "singular values")
  t.raises(function() norm(x, 2) end, "singular values")
  t.raises(function() norm(pg.ones(2, 2, 2), 1) end, "one axis or two")
  t.raises(function() norm(x, { ord = 1, axis = { 1, -2 } }) end, "given twice")
end)

test("norms have slopes of 0 where they are 0", function(t)
  for _, p in ipairs { 0, 0.5, 1, 1.5, 2, 3, math.huge, -1, -math.huge } do
    local z = pg.zeros({ 3 }, { dtype = "float64", requires_grad = true })
    z:norm(p):backward()
    t.equal(z.grad, { 0, 0, 0 })
  end
end)

test("aminmax, var_mean, std_mean", function(t)
  local low, high = x:aminmax()
  t.equal({ low:item(), high:item() }, { -4, 3 })
  low, high = x:aminmax { axis = 1, keepdim = true }
  t.equal(low, { { 1, -4, -2 } })
  t.equal(high, { { 3, 2, 0 } })
  local variance, mean = pg.var_mean(x, { axis = 2 })
  t.close(variance, x:var { axis = 2 })
  t.close(mean, x:mean { axis = 2 })
  local deviation = x:std_mean { axis = 1, correction = 0 }
  t.close(deviation, pg.tensor { 1, 3, 1 }, 1e-6)
end)

test("diff and trapezoid", function(t)
  t.equal(x:diff(), { { -7, 4 }, { 1, -4 } })
  t.equal(x:diff(2), { { 11 }, { -5 } })
  t.equal(x:diff { axis = 1 }, { { -2, 6, -2 } })
  t.equal(x:diff { axis = 1, prepend = pg.zeros(1, 3) }, { { 3, -4, 0 }, { -2, 6, -2 } })
  t.equal(x:diff(3).shape, { 2, 0 })
  t.equal(pg.tensor({ true, false, false }):diff(), { true, false })
  t.equal(x:trapezoid(), { -2.5, 1.5 })
  t.equal(x:trapezoid { dx = 2, axis = 1 }, { 4, -2, -2 })
  t.equal(x:trapezoid(pg.tensor { 0, 1, 3 }), { -4.5, 1.5 })
  t.equal(pg.trapezoid { y = x, x = pg.tensor { 0, 1, 3 } }, { -4.5, 1.5 })
  t.raises(function() pg.tensor(1):diff() end, "no axes")
  t.raises(function() x:diff(-1) end, "at least 0")
end)

test("isclose and allclose", function(t)
  local a, b = pg.tensor { 1, 2, math.huge, 0 / 0 }, pg.tensor { 1 + 1e-6, 2.1, 7, 0 / 0 }
  t.equal(a:isclose(b), { true, false, false, false })
  t.equal(a:isclose(b, { rtol = 0.1, equal_nan = true }), { true, true, false, true })
  t.equal(b:isclose(a), { true, false, false, false })
  t.equal(pg.isclose(a[{ { 1, 3 } }], a[{ { 1, 3 } }]), { true, true, true })
  t.ok(not pg.allclose(pg.tensor { math.huge }, pg.tensor { 1 }), "an infinity is close to nothing else")
  t.ok(not pg.allclose(pg.tensor { 1 }, pg.tensor { math.huge }), "nothing else is close to an infinity")
end)

test("bitwise operators take booleans as truth", function(t)
  local p, q = pg.tensor { true, false, true }, pg.tensor { true, true, false }
  t.equal(p:bitwise_not(), { false, true, false })
  t.equal(p:bitwise_and(q), { true, false, false })
  t.equal(p:bitwise_xor(q), { false, true, true })
  t.equal(pg.tensor({ 1, -8 }, { dtype = "int8" }):bitwise_left_shift(5), { 32, 0 })
  t.equal(pg.tensor({ 1, -8 }, { dtype = "int64" }):bitwise_right_shift(100), { 0, -1 })
end)

test("activations in place keep their gradients", function(t)
  for _, name in ipairs { "relu", "relu6", "hardtanh", "hardsigmoid", "hardshrink", "softshrink", "tanh", "sigmoid" } do
    local function gradient(f)
      local leaf = pg.tensor({ -4, -0.25, 0.4, 0.75, 2.5, 7 }, { dtype = "float64", requires_grad = true })
      f(leaf * 1):sum():backward()
      return leaf.grad
    end
    t.equal(gradient(function(v) return v[name .. "_"](v) end), gradient(function(v) return v[name](v) end))
  end
end)

test("nan_to_num ends at the dtype's own largest number", function(t)
  for dtype, largest in pairs { float16 = 65504, float32 = 3.4028234663852886e38, float64 = 1.7976931348623157e308 } do
    local y = pg.tensor({ 0 / 0, math.huge, -math.huge, 2 }, { dtype = dtype }):nan_to_num()
    t.equal(y:totable(), { 0, largest, -largest, 2 })
  end
  t.equal(pg.tensor { math.huge, -math.huge }:nan_to_num { posinf = math.huge }:totable()[1], math.huge)
end)
