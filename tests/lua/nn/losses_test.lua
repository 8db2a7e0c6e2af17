-- SPDX-License-Identifier: Apache-2.0
-- Losses where they are hard: predictions that are certain, batches of which nothing counts. Numbers are PyTorch 1.13's
-- unless a line says otherwise.

local pg = require "perigee"
local nn = pg.nn

local function I(list) return pg.tensor(list, { dtype = "int64" }) end
local function leaf(list, dtype) return pg.tensor(list, { dtype = dtype or "float32", requires_grad = true }) end

-- The loss of a leaf, its gradient, and that of the gradient's sum.
local function three(fn, x)
  local loss = fn(x)
  local first = pg.grad(loss, x, { create_graph = true })
  return loss:detach(), first:detach(), pg.grad(first:sum(), x)
end

local function close(t, got, want, tolerance)
  t.close(got:to("float64"), pg.tensor(want, { dtype = "float64" }), tolerance or 1e-5)
end

test("bce: gradients are finite where a prediction is certain", function(t)
  for _, dtype in ipairs { "float32", "float64" } do
    local y = pg.tensor({ 1, 0, 0, 1 }, { dtype = dtype })
    local _, first = pg.detect_anomaly(three, function(p) return nn.bce(p, y) end, leaf({ 1, 0, 1, 0 }, dtype))
    close(t, first * 1e-11, { 0, 0, 2.5, -2.5 })
    t.equal(first.dtype, dtype)
  end
  local p = leaf { 1, 0, 1, 0 }
  nn.BCELoss {} (p, pg.tensor { 1, 0, 0, 1 }):backward()
  close(t, p.grad * 1e-11, { 0, 0, 2.5, -2.5 })
end)

test("bce: soft targets, weights, and second derivatives as PyTorch's", function(t)
  for _, dtype in ipairs { "float32", "float64" } do
    local p, y = leaf({ 1, 0, 1, 0, 0.3, 0.7, 1, 0 }, dtype), leaf({ 1, 0, 0, 1, 0.2, 1, 0.5, 0.5 }, dtype)
    local weight = pg.tensor({ 1, 1, 1, 1, 2, 1, 1, 1 }, { dtype = dtype })
    pg.detect_anomaly(function()
      local loss = nn.bce(p, y, { weight = weight })
      close(t, loss, 37.610395 + (-0.2 * math.log(0.3) - 0.8 * math.log(0.7)) / 8, 1e-4)
      local dp = pg.grad(loss, p, { create_graph = true })
      local dy = pg.grad(loss, y, { create_graph = true })
      close(t, dp:detach() / pg.tensor { 1, 1, 1e11, 1e11, 1, 1, 1e11, 1e11 },
            { 0, 0, 1.25, -1.25, 2 * 5.952381e-2, -1.7857143e-1, 0.625, -0.625 })
      -- By y, PyTorch's is infinite; this one is of the logarithms that the loss is made of.
      close(t, dy:detach(), { -12.5, 12.5, -12.5, 12.5, 2 * 0.10591223, -0.10591223, -12.5, 12.5 })
      local pp = pg.grad(dp:sum(), p, { retain_graph = true })
      close(t, pp / pg.tensor { 1, 1, 1e23, 1e23, 1, 1, 1e22, 1e22 },
            { 0, 0, 1.25, 1.25, 2 * 0.48185941, 0.25510204, 6.25, 6.25 })
      local py, yp = pg.grad(dp:sum(), y, { retain_graph = true }), pg.grad(dy:sum(), p)
      local scale = pg.tensor { 1e11, 1e11, 1e11, 1e11, 1, 1, 1e11, 1e11 }
      close(t, py / scale, { -1.25, -1.25, -1.25, -1.25, -2 * 0.5952381, -0.5952381, -1.25, -1.25 })
      t.equal(yp, py)
    end)
  end
end)

test("bce: gradients against finite differences, and in graphs", function(t)
  local p, y = leaf({ 0.2, 0.5, 0.9 }, "float64"), leaf({ 0.1, 1, 0.4 }, "float64")
  t.ok(pg.gradcheck(nn.bce, { p, y }))
  local function plain(a, b) return -(b * a:log() + (1 - b) * (1 - a):log()):mean() end
  for _, by in ipairs { p, y } do
    local got = pg.grad(nn.bce(p, y), p, { create_graph = true }):square():sum()
    local want = pg.grad(plain(p, y), p, { create_graph = true }):square():sum()
    got, want = pg.grad(got, by, { create_graph = true }), pg.grad(want, by, { create_graph = true })
    t.close(got:detach(), want:detach(), 1e-9)
    t.close(pg.grad(got:sum(), p), pg.grad(want:sum(), p), 1e-8)
  end
  local g = pg.graph(function(g)
    local w = g:variable { "w", init = pg.tensor { 1, 0, 0.25 } }
    return { loss = nn.bce(w, g:placeholder { "y", shape = { 3 } }) }
  end)
  local dw = g:gradients("loss", { "w" })[1]
  close(t, pg.Session { g }:run(dw, { y = pg.tensor { 1, 1, 0 } }) / pg.tensor { 1, 1e11, 1 }, { 0, -10 / 3, 4 / 9 })
end)

test("bce: a target of another dtype, low precision", function(t)
  local p = leaf { 0.25, 0.5 }
  nn.bce(p, pg.tensor({ 1, 0 }, { dtype = "float64" })):backward()
  close(t, p.grad, { -2, 1 })
  p.grad = nil
  nn.bce(p, I { 1, 0 }):backward()
  close(t, p.grad, { -2, 1 })
  for _, dtype in ipairs { "float16", "bfloat16" } do
    local q, y = leaf({ 1, 0, 1, 0, 0.25 }, dtype), pg.tensor({ 1, 0, 0, 1, 1 }, { dtype = dtype })
    pg.detect_anomaly(function() nn.bce(q, y, { reduction = "sum" }):backward() end)
    t.equal(q.grad.dtype, dtype)
    t.equal(q.grad:isfinite():all():item(), true)
    t.equal({ q.grad[1]:item(), q.grad[2]:item(), q.grad[5]:item() }, { 0, 0, -4 })
  end
end)

test("focal: broken powers have the limit 0 where nothing is wrong", function(t)
  for _, gamma in ipairs { 0.01, 0.5, 1.5 } do
    local function softmax(x) return nn.focal(x, I { 0 }, { gamma = gamma }) end
    local loss, first, second = pg.detect_anomaly(three, softmax, leaf { { 20, -90 } })
    t.equal({ loss:item(), first:totable(), second:totable() }, { 0, { { 0, 0 } }, { { 0, 0 } } })
    local targets = pg.tensor { 1, 0, 0, 1 }
    local function sigmoid(x) return nn.focal(x, targets, { gamma = gamma }) end
    loss, first, second = pg.detect_anomaly(three, sigmoid, leaf { 200, -200, -95, 30 })
    t.equal({ loss:item(), first:totable(), second:totable() }, { 0, { 0, 0, 0, 0 }, { 0, 0, 0, 0 } })
  end
  t.ok(pg.gradcheck(function(x) return nn.focal(x, I { 0, 1 }, { gamma = 0.5 }) end,
                    { leaf({ { 1, -2 }, { 0.5, 1 } }, "float64") }))
  t.equal(nn.focal(pg.tensor { { 0 / 0, 1 } }, I { 0 }, { gamma = 0.5 }):isnan():item(), true)
end)

test("where every label is ignored the mean is NaN and its gradients are 0", function(t)
  local ignored, weight = I { -100, -100 }, pg.tensor { 1, 2 }
  for _, options in ipairs { {}, { weight = weight } } do
    for _, fn in ipairs {
      function(x) return nn.nll(x:log_softmax(2), ignored, options) end,
      function(x) return nn.focal(x, ignored, options) end,
      function(x) return nn.focal(x, ignored, { gamma = 0.5, weight = options.weight }) end,
    } do
      local loss, first, second = three(fn, leaf { { 20, -90 }, { 1, 0.5 } })
      t.ok(loss:item() ~= loss:item())
      t.close(first, pg.zeros { 2, 2 }, 0)
      t.close(second, pg.zeros { 2, 2 }, 0)
    end
  end
end)

test("what is predicted for an ignored label does not count, infinite or not", function(t)
  local x = leaf { { -math.huge, 0 }, { -1, -2 } }
  local loss = nn.nll(x, I { -100, 1 })
  loss:backward()
  t.equal({ loss:item(), x.grad:totable() }, { 2, { { 0, 0 }, { 0, -1 } } })
end)

test("one table has all arguments of a loss", function(t)
  local x, y = pg.full({ 2, 3 }, 0.5), pg.full({ 2, 3 }, 0.25)
  local others = { bce_with_logits = { x, y }, cosine_embedding = { x, y, pg.ones { 2 } }, nll = { x, I { 0, 1 } },
                   ctc = { pg.zeros { 4, 2, 3 }, I { { 1 }, { 2 } }, { 4, 4 }, { 1, 1 } } }
  for _, name in ipairs { "mse", "l1", "huber", "smooth_l1", "bce", "kl_div", "hinge", "poisson_nll" } do
    others[name] = { x, y }
  end
  for name, list in pairs(others) do
    list.reduction = "sum"
    local given = { unpack(list) }
    given[#given + 1] = { reduction = "sum" }
    t.equal(nn[name](list):item(), nn[name](unpack(given)):item())
  end
  t.raises(function() nn.mse { x } end, "needs two tensors")
  t.raises(function() nn.mse { x, y, redution = "sum" } end, "reduction")
  t.raises(function() nn.cross_entropy { x, I { 0, 1 }, label_smoothing = 2 } end, "from 0 to 1")
end)

test("what PyTorch takes is taken", function(t)
  local x, probabilities = pg.zeros { 2, 3 }, pg.full({ 2, 3 }, 1 / 3)
  t.close(nn.cross_entropy(x, probabilities, { ignore_index = -1 }):item(), math.log(3), 1e-6)
  t.close(nn.cross_entropy(x, I { 0, 1 }, { label_smoothing = 1 }):item(), math.log(3), 1e-6)
  t.equal(nn.smooth_l1(x, x + 2, { beta = 0 }):item(), 2)
  local row = pg.zeros { 1, 3 }
  t.equal(nn.margin_ranking(row, row, x, { reduction = "none" }).shape, { 2, 3 })
  t.equal(nn.triplet_margin(x, x, row):item(), 1)
  t.equal(nn.bce(probabilities, x, { weight = pg.ones { 3 }, reduction = "none" }).shape, { 2, 3 })
  local var = pg.tensor { 1, 0, -0.0 }
  t.equal(nn.gaussian_nll(pg.zeros { 3 }, pg.zeros { 3 }, var):isfinite():item(), true)
  var[1] = 0 / 0
  t.equal(nn.gaussian_nll(pg.zeros { 3 }, pg.zeros { 3 }, var):isnan():item(), true)
  t.equal(nn.gaussian_nll(pg.ones { 2 }, pg.zeros { 2 }, I { 1, 1 }):item(), 0.5)
end)

test("labels of graphs whose sizes have names", function(t)
  local g = pg.graph(function(g)
    local x, y = g:placeholder { "x", shape = { "n", 2 } }, g:placeholder { "y", shape = { "m" }, dtype = "int64" }
    return { nll = nn.nll(x, y), margin = nn.multi_margin(x, y), weighed = nn.nll(x, y, { weight = pg.ones { 2 } }),
             var = nn.gaussian_nll(x, x, x:square()), ranked = nn.margin_ranking(x, x, x),
             bce = nn.bce(x:sigmoid(), x:sigmoid(), { weight = pg.ones { 2 } }) }
  end)
  local got = pg.Session { g }:run({ "nll", "weighed" }, { x = pg.tensor { { -1, -2 } }, y = I { 1 } })
  t.equal({ got.nll:item(), got.weighed:item() }, { 2, 2 })
end)

test("cross_entropy of nothing but ignored labels: both derivatives are 0", function(t)
  for _, smoothing in ipairs { 0, 0.1 } do
    for _, device in ipairs { "cpu", "sim:0" } do
      local x = pg.randn({ 3, 4 }, { dtype = "float64" }):to(device):requires_grad_()
      local target = pg.tensor({ -100, -100, -100 }, { dtype = "int64" }):to(device)
      local loss = pg.cross_entropy(x, target, { label_smoothing = smoothing })
      local g = pg.grad(loss, { x }, { create_graph = true })
      t.ok(g:eq(0):all():item())
      t.ok(pg.grad(g:square():sum(), { x }):eq(0):all():item())
    end
  end
end)

test("gaussian_nll: a variance below eps counts as eps, and what is lifted keeps its gradient", function(t)
  local x, y = pg.tensor({ 1, 2, 3 }, { dtype = "float64" }), pg.tensor({ 1.5, 2, 1 }, { dtype = "float64" })
  local var = pg.tensor({ 0.25, 0, 0.001 }, { dtype = "float64" })
  local expected, slopes = {}, {}
  for i = 1, 3 do
    local kept, off = math.max(var[i]:item(), 0.01), (x[i] - y[i]):item()
    expected[i], slopes[i] = 0.5 * (math.log(kept) + off * off / kept), 0.5 * (1 / kept - off * off / (kept * kept))
  end
  local o = { eps = 0.01, reduction = "none" }
  local plain = nn.gaussian_nll(x, y, var, o)
  local function near(got, wanted, within)
    for i, v in ipairs(got) do
      t.ok(math.abs(v - wanted[i]) <= within, ("%d: %g, expected %g"):format(i, v, wanted[i]))
    end
  end
  near(plain:totable(), expected, 1e-12)
  var:requires_grad_()
  local loss = nn.gaussian_nll(x, y, var, o)
  t.equal(loss:totable(), plain:totable())
  loss:sum():backward()
  near(var.grad:totable(), slopes, 1e-9)
  local whole = nn.gaussian_nll(pg.ones { 2 }, pg.zeros { 2 }, pg.tensor({ 1, 0 }, { dtype = "int64" }), { eps = 0.5 })
  near({ whole:item() }, { (0.5 + 0.5 * (math.log(0.5) + 2)) / 2 }, 1e-6)
end)
