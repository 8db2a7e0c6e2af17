-- SPDX-License-Identifier: Apache-2.0
-- Many short lines, which are worked on a tile at a time: the same as line by line in float64, whatever their length,
-- their number and the threads.

local pg = require "perigee"

local TOLERANCE = { float64 = 1e-11, float32 = 2e-5, bfloat16 = 3e-2, float16 = 4e-3 }
local LENGTHS = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 31, 33, 64, 65 }

-- Formulas of operators on other paths: sums along the first axis, elementwise operators.
local function sum(x) return x:t():contiguous():sum { axis = 1 }:unsqueeze(2) end
local function mean(x) return sum(x) / x:size(2) end
local forms = {
  sum = function(x) return sum(x) end,
  mean = mean,
  amax = function(x) return x:t():contiguous():amax { axis = 1 }:unsqueeze(2) end,
  amin = function(x) return -(-x):t():contiguous():amax { axis = 1 }:unsqueeze(2) end,
  prod = function(x)
    local y = x:narrow(2, 1, 1)
    for c = 2, x:size(2) do y = y * x:narrow(2, c, 1) end
    return y
  end,
  logsumexp = function(x) return sum(x:exp()):log() end,
  norm = function(x) return sum(x * x):sqrt() end,
  softmax = function(x) return x:exp() / sum(x:exp()) end,
  log_softmax = function(x) return x - sum(x:exp()):log() end,
}
local calls = {
  softmax = function(x) return x:softmax(2) end,
  log_softmax = function(x) return x:log_softmax(2) end,
  norm = function(x) return x:norm { p = 2, axis = 2, keepdim = true } end,
}
for _, name in ipairs { "sum", "mean", "amax", "amin", "prod", "logsumexp" } do
  calls[name] = function(x) return x[name](x, { axis = 2, keepdim = true }) end
end

local function with_gradient(fn, x, dy)
  x = x:detach():clone()
  x.requires_grad = true
  local y = fn(x)
  return y:detach(), pg.grad(y, x, { grad_outputs = { dy } })
end

for name, call in pairs(calls) do
  test("short lines: " .. name, function(t)
    for dtype, tolerance in pairs(TOLERANCE) do
      for _, n in ipairs(LENGTHS) do
        for _, rows in ipairs { 1, 4, 45 } do
          local x = (pg.rand { rows, n } + 0.5):to(dtype)
          local dy = pg.rand(call(x).shape):to(dtype)
          local what = ("%s of %dx%d, %s"):format(name, rows, n, dtype)
          local want, want_dx = with_gradient(forms[name], x:to("float64"), dy:to("float64"))
          for _, threads in ipairs { 1, 2 } do
            pg.config.set { threads = threads }
            local got, dx = with_gradient(call, x, dy)
            local scale = name == "prod" and n > 16 and 20 or 4
            t.ok(pg.allclose(got:to("float64"), want, { rtol = scale * tolerance, atol = tolerance }), what)
            t.ok(pg.allclose(dx:to("float64"), want_dx, { rtol = scale * tolerance, atol = 4 * tolerance }),
                 what .. ", back")
          end
        end
      end
    end
  end)
end

test("short lines: ties, zeros, positions", function(t)
  local x = pg.tensor { { 1, 3, 3 }, { 0, 0, 0 }, { -1, -2, -1 }, { 5, 0, 2 }, { 0, 0, 4 }, { 2, 3, 4 } }
  x.requires_grad = true
  x:amax { axis = 2 }:sum():backward()
  t.close(x.grad, pg.tensor { { 0, 0.5, 0.5 }, { 1 / 3, 1 / 3, 1 / 3 }, { 0.5, 0, 0.5 }, { 1, 0, 0 }, { 0, 0, 1 },
                              { 0, 0, 1 } }, 1e-6)
  x.grad = nil
  x:prod { axis = 2 }:sum():backward()
  t.close(x.grad, pg.tensor { { 9, 3, 3 }, { 0, 0, 0 }, { 2, 1, 2 }, { 0, 10, 0 }, { 0, 0, 0 }, { 12, 8, 6 } }, 1e-6)
  t.equal(x:argmax { axis = 2 }:totable(), { 1, 0, 0, 0, 2, 2 })
  t.equal(x:argmin { axis = 2 }:totable(), { 0, 0, 1, 1, 0, 0 })
end)

-- Whatever a line's length, place and number of neighbours, what is no number in it shows in its own result only.
test("short lines: NaN, infinities and zeros", function(t)
  local nan, inf = 0 / 0, math.huge
  local function of(name, line) return line[name](line, { axis = 2 }) end
  local names = { "sum", "mean", "prod", "amax", "amin", "logsumexp", "nansum" }
  for _, dtype in ipairs { "float32", "float64", "bfloat16" } do
    for _, n in ipairs(LENGTHS) do
      for _, rows in ipairs { 4, 13, 70 } do
        local x = pg.rand({ rows, n }):to(dtype) + 0.5
        for _, at in ipairs { { 1, 1, nan }, { 2, n, nan }, { 3, math.ceil(n / 2), inf }, { rows, n, -inf } } do
          x[{ at[1], at[2] }] = at[3]
        end
        local what = ("%dx%d, %s"):format(rows, n, dtype)
        for _, name in ipairs(names) do
          local got = of(name, x):totable()
          for r = 1, rows do
            local bad = r <= 2 and name ~= "nansum"
            t.equal(got[r] ~= got[r], bad, ("%s of %s, line %d"):format(name, what, r))
          end
          local third = name == "amin" and n > 1 and of(name, x[{ { 3, 3 }, {} }]):totable()[1] or inf
          t.equal(got[3], third, name .. " of " .. what)
          if name == "sum" or name == "amin" or name == "mean" then t.equal(got[rows], -inf, name .. " of " .. what) end
        end
        t.equal(x:amax({ axis = 2 })[rows]:item(), n == 1 and -inf or x[{ rows, { 1, n - 1 } }]:amax():item(), what)
        for p, want in pairs { [inf] = { [3] = inf, [rows] = inf }, [1] = { [3] = inf, [rows] = inf } } do
          local got = x:norm({ p = p, axis = 2 }):totable()
          t.ok(got[1] ~= got[1] and got[2] ~= got[2], what)
          for r, value in pairs(want) do t.equal(got[r], value, what) end
        end
        local low = pg.full({ rows, n }, -inf, { dtype = dtype })
        t.equal(low:amax({ axis = 2 })[rows]:item(), -inf, what)
        t.equal((-low):amin({ axis = 2 })[rows]:item(), inf, what)
        local zero = pg.full({ rows, n }, -0.0, { dtype = dtype })
        t.equal(1 / zero:sum({ axis = 2 })[rows]:item(), inf, what)
      end
    end
  end
end)

test("short lines: products leave float32's range in between", function(t)
  for _, n in ipairs { 3, 4, 8, 33 } do
    local x = pg.ones { 10, n }
    x[{ {}, 1 }], x[{ {}, 2 }], x[{ {}, 3 }] = 1e30, 1e30, 1e-38
    t.close(x:prod { axis = 2 }, pg.full({ 10 }, 1e22), 1e17)
  end
end)

test("short lines: results that do not lie together", function(t)
  local x, out = pg.rand { 40, 9 }, pg.zeros { 40, 3 }
  out:select(2, 2):copy_(x:sum { axis = 2 })
  t.ok(pg.equal(out:select(2, 2):contiguous(), x:sum { axis = 2 }))
  local y = pg.rand { 5, 8, 9 }
  t.ok(pg.allclose(y:sum { axis = 3 }, (y:reshape(40, 9) * 1):sum({ axis = 2 }):reshape(5, 8)))
end)

local function norm_form(x, weight, bias)
  local centred = bias and x - mean(x) or x
  local y = centred / (mean(centred * centred) + 1e-3):sqrt() * weight
  return bias and y + bias or y
end

for _, kind in ipairs { "layer_norm", "rms_norm" } do
  test("short lines: " .. kind, function(t)
    for dtype, tolerance in pairs(TOLERANCE) do
      for _, n in ipairs(LENGTHS) do
        for _, rows in ipairs { 1, 4, 90 } do
          local function draw(...) return pg.randn { ... }:to(dtype) end
          local x, weight, bias, dy = draw(rows, n), draw(n), draw(n), draw(rows, n)
          local inputs = kind == "layer_norm" and { x, weight, bias } or { x, weight }
          local function run(fn, list, d)
            for i, v in ipairs(list) do
              list[i] = v:detach():clone()
              list[i].requires_grad = true
            end
            local y = fn(unpack(list))
            return { y:detach(), pg.grad(y, list, { grad_outputs = { d } }) }
          end
          local wide = {}
          for i, v in ipairs(inputs) do wide[i] = v:to("float64") end
          local want = run(norm_form, wide, dy:to("float64"))
          local seen
          for _, threads in ipairs { 1, 2 } do
            pg.config.set { threads = threads }
            local got = run(function(...)
              local list = { ... }
              list[#list + 1] = { eps = 1e-3 }
              return pg[kind](unpack(list))
            end, { unpack(inputs) }, dy)
            for i, v in ipairs(got) do
              local off = (v:to("float64") - want[i]):abs():amax():item() / (1 + want[i]:abs():amax():item())
              t.ok(off < 8 * tolerance, ("%s of %dx%d, %s, result %d: %g"):format(kind, rows, n, dtype, i, off))
              if seen then t.ok(pg.equal(seen[i], v), "threads") end
            end
            seen = got
          end
        end
      end
    end
  end)
end
