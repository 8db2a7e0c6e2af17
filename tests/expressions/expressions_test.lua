-- SPDX-License-Identifier: Apache-2.0
-- Operators that are nothing but a scalar expression have the bits of the operators that it is made of, on cpu and on
-- the simulated accelerator, or on the device that `--device` names.

local pg = require "perigee"

local FLOATS = { "float64", "float32", "float16", "bfloat16" }
local NUMBERS = { "float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8" }
if pg.device() ~= "cpu" then FLOATS, NUMBERS = { "bfloat16" }, { "float32", "int8" } end
local DEVICES = pg.device() == "cpu" and { "cpu", "sim:0" } or { pg.device() }

local function same(t, got, expected, what)
  t.equal(got.dtype, expected.dtype, what)
  t.equal(table.concat(got.shape, ","), table.concat(expected.shape, ","), what)
  if got:numel() == 0 then return end
  local equal = got:eq(expected)
  if got.dtype:find "float" then equal = equal:logical_or(got:isnan():logical_and(expected:isnan())) end
  t.ok(equal:all():item(), what)
end

local function numbers(dtype, ...)
  local x = pg.randn { ... } * 3
  return dtype:find "float" and x:to(dtype) or (dtype == "uint8" and x:abs() or x):round():to(dtype)
end

-- Tensors of a dtype as calls bring them: dense, turned, every second element, of one element, none, large.
local function each(dtype, body)
  body(numbers(dtype, 3, 5), "dense")
  body(numbers(dtype, 5, 3):t(), "turned")
  body(numbers(dtype, 4, 10)[{ {}, { 1, 10, 2 } }], "stepped")
  body(numbers(dtype, 1):reshape {}, "0-dim")
  body(numbers(dtype, 0, 3), "empty")
  body(numbers(dtype, 1), "one")
  body(numbers(dtype, 70001), "large")
end

local function check(t, name, dtypes, expected, options)
  for _, device in ipairs(DEVICES) do
    for _, dtype in ipairs(dtypes) do
      each(dtype, function(x, kind)
        if device ~= "cpu" and kind == "large" then return end
        x = x:to(device)
        same(t, pg[name](x, options), expected(x), ("%s %s %s %s"):format(name, device, dtype, kind))
      end)
    end
  end
end

local function check_two(t, name, dtypes, expected)
  for _, device in ipairs(DEVICES) do
    for _, dtype in ipairs(dtypes) do
      each(dtype, function(x, kind)
        if device ~= "cpu" and kind == "large" then return end
        x = x:to(device)
        local what = ("%s %s %s %s"):format(name, device, dtype, kind)
        same(t, pg[name](x, x), expected(x, x), what .. " twice")
        if x:dim() ~= 2 then return end
        local row, column = numbers(dtype, x.shape[2]):to(device), numbers(dtype, x.shape[1], 1):to(device)
        same(t, pg[name](x, row), expected(x, row), what .. " row")
        same(t, pg[name](column, x), expected(column, x), what .. " column")
        same(t, pg[name](row, column), expected(row, column), what .. " row and column")
      end)
    end
  end
end

test("expressions of one tensor", function(t)
  check(t, "ex_copy", NUMBERS, function(x) return x end)
  check(t, "ex_softcap", FLOATS, function(x) return (x / 2):tanh() * 2 end, { cap = 2 })
  check(t, "ex_shared", FLOATS, function(x) return x:exp() * (1 - x:exp()) end)
  check(t, "ex_chosen", FLOATS, function(x) return x * x:erf() end, { exact = true })
  check(t, "ex_chosen", FLOATS, function(x) return x:tanh() end)
  check(t, "ex_leaky", FLOATS, function(x) return pg.where(x:gt(0), x, x * 0.1) end)
  check(t, "ex_long", FLOATS, function(x)
    return ((x:sin() + x:cos()) + (-x + x:square())) + ((x:relu() - x:sigmoid()) + x:clamp { -0.5, 0.5 })
  end)
end)

test("powers by numbers are those of the operator", function(t)
  check(t, "ex_powers", FLOATS, function(x) return (x:pow(2) + x:pow(3)) + (x:abs():pow(0.5) + x:pow(1.5)) end)
end)

test("expressions of two tensors broadcast, and every step is rounded", function(t)
  check_two(t, "ex_fold", NUMBERS, function(x, y) return x * y - x:maximum(y) end)
  check_two(t, "ex_gate", FLOATS, function(x, y) return x * y:sigmoid() end)
  check_two(t, "ex_less", NUMBERS, function(x, y) return x:square():lt(y) end)
end)

test("a number stands in for an input", function(t)
  for _, device in ipairs(DEVICES) do
    for _, dtype in ipairs(NUMBERS) do
      local x, number = numbers(dtype, 4, 3):to(device), dtype:find "float" and 1.3 or 3
      same(t, pg.ex_scaled(x, number), x * number + number, device .. " right " .. dtype)
      same(t, pg.ex_scaled(number, x), number * x + x, device .. " left " .. dtype)
    end
  end
end)

test("truth values", function(t)
  for _, device in ipairs(DEVICES) do
    local m, n = pg.randn { 4, 6 }:gt(0):to(device), pg.randn { 6 }:gt(0):to(device)
    same(t, pg.ex_both(m, n), m:logical_not():logical_and(m + n), device)
    same(t, pg.ex_both(m:t(), m:t()), pg.zeros({ 6, 4 }, { dtype = "bool", device = device }), device .. " turned")
    for _, dtype in ipairs(FLOATS) do
      local x = numbers(dtype, 4, 6):to(device)
      same(t, pg.ex_masked(x, m), pg.where(m, x, 0.3) * m, device .. " masked " .. dtype)
      same(t, pg.ex_masked(x, n), pg.where(n, x, 0.3) * n, device .. " masked by a row " .. dtype)
    end
  end
end)

test("integers divide by no zero", function(t)
  for _, device in ipairs(DEVICES) do
    for _, dtype in ipairs(pg.device() == "cpu" and { "int64", "int32", "int16", "int8" } or { "int64" }) do
      local x = pg.tensor({ 7, -7, 5, 3, 2 }, { dtype = dtype }):to(device)
      local y = pg.tensor({ 2, 2, 3, 3, 1 }, { dtype = dtype }):to(device)
      same(t, pg.ex_remainder(x, y), x:remainder(y) + 1, device)
      same(t, pg.ex_power(x, y), -x:pow(y), device)
      local column = x:reshape { 5, 1 }
      same(t, pg.ex_remainder(column, y), column:remainder(y) + 1, device)
      for name, words in pairs { ex_remainder = "integer division by zero", ex_power = "negative integer power" } do
        t.raises(function()
          pg[name](x, y - 2)
          pg.synchronize()
        end, words)
      end
      pg.ex_remainder(x, y)
      pg.synchronize() -- what comes after a fault is none
    end
  end
end)

test("in place, in graphs and compiled, with gradients of both orders", function(t)
  for _, device in ipairs(DEVICES) do
    local x = pg.randn({ 3, 4 }, { device = device })
    local expected = (x / 2):tanh() * 2
    same(t, x:clone():ex_softcap_ { cap = 2 }, expected, device .. " in place")
    local g = pg.graph(function(g)
      return { y = pg.device(device, function()
        return g:placeholder { "x", shape = { "n", 4 } }:ex_softcap { cap = 2 }
      end) }
    end)
    same(t, pg.Session { g }:run("y", { x = x }), expected, device .. " in a graph")
    local compiled = pg.compile(function(z) return z:ex_softcap { cap = 2 } end)
    for _ = 1, 4 do same(t, compiled(x), expected, device .. " compiled") end
  end
  local x = pg.randn({ 2, 3 }, { dtype = "float64" })
  pg.gradcheck(function(z) return z:ex_softcap { cap = 2 } end, { x })
  pg.gradcheck(function(z)
    return (pg.grad(z:requires_grad_():ex_softcap { cap = 2 }:sum(), { z }, { create_graph = true }))
  end, { x })
end)

test("what its primitives are not for is refused, with the primitive's name", function(t)
  local x = pg.zeros({ 2 }, { dtype = "int32" })
  if pg.device() ~= "cpu" then return t.raises(function() pg.ex_decay(x) end, "ex_decay") end
  t.raises(function() pg.ex_decay(x) end, "Exp, of the scalar expression of ex_decay, does not take")
  t.raises(function() pg.ex_decay(x:to "sim:0") end, "Exp does not take int32")
end)
