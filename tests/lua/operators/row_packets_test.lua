-- SPDX-License-Identifier: Apache-2.0
-- Rows that a device reads several elements at a time and keeps where they fit: every place that a row may begin at,
-- lengths around what a group of threads takes, numbers that are none. The same as the CPU computes in float64.

local pg = require "perigee"

local DEVICE = pg.device()
local TOLERANCE = { float64 = 1e-11, float32 = 2e-5, bfloat16 = 2e-2, float16 = 3e-3 }
local DTYPES = { "float32", "bfloat16", "float16", "float64" }

-- Relative to the largest element.
local function near(t, got, want, tolerance, what)
  got, want = got:detach():cpu():to("float64"), want:detach():cpu():to("float64")
  if want:numel() == 0 then return end
  local off = (got - want):abs():amax():item() / (1e-30 + want:abs():amax():item())
  t.ok(off <= tolerance, ("%s is off by %g"):format(what, off))
end

-- A tensor, or a slice, which stays one: what is copied is the tensor that it is a part of.
local function placed(x, device, dtype)
  if pg.is_tensor(x) then return x:to(device):to(dtype or x.dtype) end
  return x.whole:to(device):to(dtype or x.whole.dtype):narrow(2, x.from, x.length)
end

-- fn(device, x...) and its gradients for dy, on the device in the dtype of the inputs and on the CPU in float64.
local function compare(t, fn, inputs, dy, tolerance, what)
  local function run(device, dtype)
    return pg.device(device, function()
      local own = {}
      for i, x in ipairs(inputs) do
        own[i] = placed(x, device, dtype):detach()
        own[i].requires_grad = true
      end
      local y = fn(device, unpack(own))
      return y, pg.grad(y, own, { grad_outputs = { placed(dy, device, y.dtype) } })
    end)
  end
  local got, want = { run(DEVICE) }, { run("cpu", "float64") }
  for i, y in ipairs(want) do near(t, got[i], y, tolerance, ("%s, result %d"):format(what, i)) end
  local again = { run(DEVICE) }
  for i, y in ipairs(got) do t.ok(pg.equal(y, again[i]), what .. ": other bits at the second time") end
end

-- Columns `from` and on of a matrix: rows begin wherever that falls.
local function slice(rows, length, from, dtype, beyond)
  return { whole = (pg.randn { rows, from - 1 + length + (beyond or 0) } * 3):to(dtype), from = from, length = length }
end

for _, dtype in ipairs(DTYPES) do
  test("long rows of softmax/" .. dtype, function(t)
    pg.manual_seed(5)
    for _, length in ipairs { 4095, 4096, 4099, 16391 } do
      for _, from in ipairs(length == 4096 and { 1, 2, 6 } or { 2 }) do
        for _, name in ipairs { "softmax", "log_softmax" } do
          compare(t, function(_, x) return x[name](x, 2) end, { slice(2, length, from, dtype, from % 3) },
                  slice(2, length, from == 6 and 1 or from, dtype, from % 3), 4 * TOLERANCE[dtype],
                  ("%s of %d from %d"):format(name, length, from))
        end
      end
    end
  end)

  test("short rows of softmax/" .. dtype, function(t)
    pg.manual_seed(6)
    for _, length in ipairs { 1, 3, 8, 31, 64, 257, 1000 } do
      for _, name in ipairs { "softmax", "log_softmax" } do
        compare(t, function(_, x) return x[name](x, 2) end, { slice(19, length, 2, dtype) },
                slice(19, length, 1, dtype), 4 * TOLERANCE[dtype], ("%s of %d"):format(name, length))
      end
    end
  end)

  test("long rows of cross entropy/" .. dtype, function(t)
    pg.manual_seed(7)
    for _, length in ipairs { 4096, 4099, 9001 } do
      local labels = pg.tensor({ 0, length - 1, -100, 5, 4090 }, { dtype = "int64" })
      local weight = (pg.rand { length } + 0.5):to(dtype)
      for _, o in ipairs { { reduction = "mean" }, { reduction = "none" }, { reduction = "sum", weighted = true },
                           { reduction = "mean", label_smoothing = 0.1 } } do
        local dy = o.reduction == "none" and pg.rand({ 5 }) + 0.5 or pg.tensor(1.5)
        compare(t, function(device, x)
          local w = o.weighted and weight:to(device):to(x.dtype) or nil
          return pg.cross_entropy(x, labels:to(device), w,
                                  { reduction = o.reduction, label_smoothing = o.label_smoothing })
        end, { slice(5, length, 2, dtype) }, dy, 4 * TOLERANCE[dtype], ("%s of %d"):format(o.reduction, length))
      end
    end
  end)

  test("rows of layer_norm/" .. dtype, function(t)
    pg.manual_seed(8)
    for _, length in ipairs { 255, 256, 260, 768, 1024, 1032, 2048, 2056, 4104 } do
      for _, from in ipairs { 1, 2, 9 } do
        local function vector() return (pg.rand { length } + 0.5):to(dtype == "bfloat16" and "float32" or dtype) end
        compare(t, function(_, x, weight, bias) return (pg.layer_norm(x, weight, bias)) end,
                { slice(11, length, from, dtype, 8 - (from - 1) % 8), vector(), vector() }, slice(11, length, 1, dtype),
                4 * TOLERANCE[dtype], ("layer_norm of %d from %d"):format(length, from))
      end
      compare(t, function(_, x) return (pg.layer_norm(x, pg.ones { length }:to(x.dtype), nil, { eps = 1e-3 })) end,
              { slice(3, length, 1, dtype) }, slice(3, length, 1, dtype), 4 * TOLERANCE[dtype], "without a bias")
    end
  end)

  test("rows of attention/" .. dtype, function(t)
    pg.manual_seed(9)
    for _, case in ipairs { { 5, 4 }, { 130, 128 }, { 9, 256 }, { 270, 260 }, { 7, 255 }, { 9, 1024 }, { 5, 1028 },
                            { 3, 2048 }, { 3, 2052 }, { 2, 8192 }, { 2, 8196 } } do
      local queries, keys = unpack(case)
      local function draw(n) return pg.randn({ 2, n, 8 }):to(dtype) end
      for _, causal in ipairs { false, true } do
        compare(t, function(_, q, k, v) return pg.scaled_dot_product_attention(q, k, v, { is_causal = causal }) end,
                { draw(queries), draw(keys), draw(keys) }, draw(queries), 4 * TOLERANCE[dtype],
                ("%d queries, %d keys"):format(queries, keys) .. (causal and ", causal" or ""))
      end
    end
  end)
end

test("long rows of numbers that are none", function(t)
  local nan, inf = 0 / 0, math.huge
  for _, dtype in ipairs(DTYPES) do
    local x = (pg.randn { 7, 5003 } * 2):to(dtype)
    x[{ 1, {} }] = -inf
    x[{ 2, 4999 }] = nan
    x[{ 3, 17 }] = inf
    x[{ 4, {} }], x[{ 4, 2500 }] = -inf, 3
    x[{ 5, {} }] = 60000 -- near the largest float16
    x[{ 6, { 1, 4000 } }] = -inf
    for _, part in ipairs { x, x[{ {}, { 2, -1 } }] } do
      local want = pg.device("cpu", function() return part:cpu():to("float64"):softmax(2) end)
      for name, wanted in pairs { softmax = want, log_softmax = want:log() } do
        local got = part[name](part, 2):cpu():to("float64")
        for r = 1, 7 do
          local own, ref = got[r], wanted[r]
          if ref:isnan():any():item() then
            t.ok(own:isnan():all():item(), ("%s of %s, row %d"):format(name, dtype, r))
          else
            local finite = ref:gt(-1e30)
            t.ok(pg.equal(finite, own:gt(-1e30)), ("%s of %s, row %d: infinities"):format(name, dtype, r))
            near(t, pg.where(finite, own, 0), pg.where(finite, ref, 0), 4 * TOLERANCE[dtype], name .. ", row " .. r)
          end
        end
      end
    end
  end
end)

test("queries whose scores are all -inf see nothing", function(t)
  for _, keys in ipairs { 8, 300, 1200, 4096 } do
    local q, k, v = pg.full({ 1, 3, 4 }, -1e30), pg.full({ 1, keys, 4 }, 1e30), pg.randn { 1, keys, 4 }
    q[{ 1, 2 }] = 0
    local out = pg.scaled_dot_product_attention(q, k, v)
    t.ok(pg.equal(out[{ 1, 1 }], pg.zeros { 4 }) and pg.equal(out[{ 1, 3 }], pg.zeros { 4 }), keys .. " keys")
    near(t, out[{ 1, 2 }], v:mean { axis = 2 }[1], 1e-3, "the mean of values")
  end
end)
