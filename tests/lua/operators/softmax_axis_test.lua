-- SPDX-License-Identifier: Apache-2.0
-- softmax, log_softmax and cross entropy along an axis that is not the last, where many lines lie side by side and are
-- worked on across: the same as along the last axis of a copy.

local pg = require "perigee"

local SHAPES = { { 5, 7 }, { 3, 40, 9 }, { 2, 6, 33, 5 }, { 4, 1, 3 }, { 2, 100, 64 }, { 1, 3 }, { 0, 4 }, { 3, 0, 5 } }
local TOLERANCE = { float64 = 1e-12, float32 = 1e-6, bfloat16 = 1e-2, float16 = 2e-3 }

for _, dtype in ipairs { "float64", "float32", "bfloat16", "float16" } do
  test("softmax along every axis/" .. dtype, function(t)
    for _, shape in ipairs(SHAPES) do
      for axis = 1, #shape do
        local x = (pg.randn { shape } * 3):to(dtype)
        local moved = x:transpose(axis, #shape):contiguous()
        local dy = pg.randn { shape }:to(dtype)
        x.requires_grad, moved.requires_grad = true, true
        for _, name in ipairs { "softmax", "log_softmax" } do
          local got, want = x[name](x, axis), moved[name](moved, #shape):transpose(axis, #shape)
          local what = ("%s %s axis %d"):format(name, tostring(x.shape), axis)
          t.close(got:detach(), want:detach(), TOLERANCE[dtype], what)
          local dx, dm = pg.grad(got, x, { grad_outputs = { dy } }), pg.grad(want, moved, { grad_outputs = { dy } })
          t.close(dx, dm:transpose(axis, #shape), 8 * TOLERANCE[dtype], what .. ", back")
        end
      end
    end
  end)
end

test("softmax along the first axis of infinities and NaN", function(t)
  local x = pg.randn { 6, 40 }
  x[{ {}, 1 }] = -math.huge
  x[{ 2, 2 }], x[{ 3, 3 }] = 0 / 0, math.huge
  x[{ { 1, 5 }, 4 }] = -math.huge
  for _, name in ipairs { "softmax", "log_softmax" } do
    local got, want = x[name](x, 1), x:t():contiguous()[name](x:t():contiguous(), 2):t()
    t.ok(pg.allclose(got, want, { rtol = 1e-5, atol = 1e-6, equal_nan = true }), name)
  end
end)

for _, dtype in ipairs { "float64", "float32", "bfloat16" } do
  for _, reduction in ipairs { "mean", "sum", "none" } do
    test(("cross entropy of [N, C, L]/%s, %s"):format(dtype, reduction), function(t)
      for _, smoothing in ipairs { 0, 0.1 } do
        local x, labels = pg.randn({ 4, 19, 37 }):to(dtype), pg.randint { 0, 19, { 4, 37 } }
        local rows = x:permute(1, 3, 2):reshape(-1, 19):contiguous()
        local weight, options = pg.rand({ 19 }):to(dtype), { reduction = reduction, label_smoothing = smoothing }
        labels[{ 1, 3 }] = -100
        x.requires_grad, rows.requires_grad = true, true
        local got = pg.cross_entropy(x, labels, weight, options)
        local want = pg.cross_entropy(rows, labels:reshape(-1), weight, options)
        got:sum():backward()
        want:sum():backward()
        local tolerance = ({ float64 = 1e-12, float32 = 1e-5, bfloat16 = 2e-2 })[dtype]
        t.close(got:detach():reshape(-1), want:detach():reshape(-1), tolerance)
        t.close(x.grad, rows.grad:reshape(4, 37, 19):permute(1, 3, 2), tolerance)
      end
    end)
  end
end
