-- SPDX-License-Identifier: Apache-2.0
-- Writes in place whose other operands share the target's memory, and gradients that need what was overwritten.

local pg = require "perigee"

local function leaf(values) return pg.tensor(values, { requires_grad = true }) end

-- Views of one shape of a 6 x 6 matrix.
local VIEWS = {
  { "rows", function(x) return x[{ { 1, 4 } }] end, function(x) return x[{ { 2, 5 } }] end,
    function(x) return x[{ { 1, 4 } }] end },
  { "columns", function(x) return x[{ {}, { 1, 3 } }] end, function(x) return x[{ {}, { 2, 4 } }] end,
    function(x) return x[{ {}, { 4, 6 } }] end },
  { "a column", function(x) return x[{ {}, 1 }] end, function(x) return x[{ {}, 2 }] end, function(x) return x[6] end,
    function(x) return x[2] end },
  { "the whole", function(x) return x end, function(x) return x:t() end, function(x) return x[{ {}, { 3, 3 } }] end,
    function(x) return x[{ { 2, 2 } }] end, function(x) return x[6] end },
  { "every other", function(x) return x[{ { 1, 6, 2 } }] end, function(x) return x[{ { 2, 6, 2 } }] end,
    function(x) return x[{ { 1, 3 } }] end, function(x) return x[{ { 4, 6 } }] end },
}
local BINARY = { "add", "sub", "mul", "div", "maximum", "pow", "atan2", "remainder" }

test("operands that share the target's memory are read as they were", function(t)
  for _, dtype in ipairs { "float32", "float64", "bfloat16", "int64" } do
    for _, views in ipairs(VIEWS) do
      for other = 3, #views do
        for _, name in ipairs(BINARY) do
          if not (dtype == "int64" and (name == "div" or name == "atan2")) then
            local x = (pg.arange(36):reshape(6, 6) % 5 + 1):to(dtype):to(t.device or "cpu")
            local want = x:clone()
            local target, source = views[2](x), views[other](x)
            local result = pg[name](target:clone(), source:clone())
            views[2](want):copy_(result)
            target[name .. "_"](target, source)
            t.ok(x:eq(want):all():item(), ("%s_ of %s, %s, operand %d"):format(name, views[1], dtype, other))
          end
        end
      end
    end
  end
end)

test("three operands, and copies", function(t)
  local device = t.device or "cpu"
  local function fresh() return pg.arange(36, { dtype = "float32" }):reshape(6, 6):to(device) end
  local x, w = fresh(), fresh()
  local want = pg.addcmul(w, w:t(), w[1], { value = 2 })
  x:addcmul_(x:t(), x[1], { value = 2 })
  t.equal(x, want)
  x = fresh()
  x:lerp_(x:t(), 0.25)
  t.equal(x, pg.lerp(w, w:t(), 0.25))
  for _, n in ipairs { 2, 5, 70, 300 } do
    local a = pg.rand({ n, n }):to(device)
    local turned = a:t():clone()
    a:copy_(a:t())
    t.ok(a:eq(turned):all():item(), "copy_ of the transpose of " .. n)
    turned = a:t():clone()
    a[{}] = a:t()
    t.ok(a:eq(turned):all():item(), "assignment of the transpose of " .. n)
  end
end)

test("gradients through operands that share the target's memory", function(t)
  local w = leaf { { 1, 2 }, { 3, 4 } }
  local x = w * 1
  x:mul_(x:t());
  (x * pg.tensor { { 1, 10 }, { 100, 1000 } }):sum():backward()
  t.close(w.grad, { { 2, 330 }, { 220, 8000 } })
end)

-- What PyTorch, too, keeps a copy of: rules that use the input, not the result.
local UNARY = { "sin", "cos", "log", "log1p", "log2", "log10", "square", "abs", "erf", "asin", "acos", "atan", "sinh",
                "cosh", "lgamma", "digamma", "sinc", "exp", "sqrt", "tanh", "sigmoid", "relu", "tan", "reciprocal" }

test("a gradient rule gets the input that was overwritten", function(t)
  local w = leaf { 0.3, 0.6 }
  local function first_and_second(fn)
    local g = pg.grad(fn(w * 1):sum(), { w }, { create_graph = true })
    return g, pg.grad(g:sum(), { w }, { allow_unused = true })
  end
  for _, name in ipairs(UNARY) do
    local got, got2 = first_and_second(function(x) return x[name .. "_"](x) end)
    local want, want2 = first_and_second(function(x) return pg[name](x) end)
    t.close(got, want, name)
    if want2 then t.close(got2, want2, name .. ", second") end
  end
  local v = leaf { 0.5, 0.4 }
  for _, name in ipairs { "mul", "div", "pow", "atan2", "hypot", "fmod", "maximum" } do
    local x = w * 1
    x[name .. "_"](x, v)
    local got = { pg.grad(x:sum(), { w, v }) }
    t.close(got[1], (pg.grad(pg[name](w, v):sum(), { w, v })), name)
    t.close(got[2], select(2, pg.grad(pg[name](w, v):sum(), { w, v })), name .. ", by the other")
  end
  local x = w * 1
  x:pow_(2):clamp_ { min = 0.1 }
  t.close((pg.grad(x:sum(), { w })), { 0, 1.2 })
  x = w * 1
  x:mul_(x)
  t.close((pg.grad(x:sum(), { w })), { 0.6, 1.2 })
  x = w * 1
  x[1]:mul_(v[1]) -- through a view
  t.close((pg.grad(x:sum(), { v })), { 0.3, 0 })
end)
