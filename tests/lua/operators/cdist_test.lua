-- SPDX-License-Identifier: Apache-2.0
-- pg.cdist and pg.pdist: PyTorch's numbers, rows that are the same, long rows and many of them.

local pg = require "perigee"

-- sin(0.7 i), i from 0, in float64.
local function seq(...)
  local n = 1
  for _, size in ipairs { ... } do n = n * size end
  return (pg.arange(n):to("float64") * 0.7):sin():reshape(...)
end

local function close(t, got, expected, what)
  local worst = (got:detach():reshape(-1) - pg.tensor(expected, { dtype = "float64" })):abs():max():item()
  t.ok(worst < 1e-11, ("%s is off by %g"):format(what, worst))
end

-- PyTorch's distances of seq(3, 2) to 1.3 seq(2, 2), of which the second row is the first's third, and the gradients
-- for the weights |seq(3, 2)|: by p.
local ROWS = {
  { 0, { 1, 2, 2, 2, 2, 0 }, { 0, 0, 0, 0, 0, 0 }, { 0, 0, 0, 0 } },
  { 0.5, { 0.193265306171, 2.484655278142, 1.329622629746, 3.641705468522, 2.785086536479, 0 },
    { -1.754490389365, 1.018014528099, 3.187152597939, 8.579569620635, 0.965904232768, -0.512851837321 },
    { -2.110577226015, -6.571651199691, -0.287989215326, -2.513081111723 } },
  { 1, { 0.193265306171, 1.329989065083, 1.011176103228, 1.864454174171, 1.523254371255, 0 },
    { -0.644217687238, 0.644217687238, 1.848659096637, 1.848659096637, 0.334988150156, -0.334988150156 },
    { -1.320437880144, -0.650461579833, -0.218991679411, -1.507427053887 } },
  { 1.5, { 0.193265306171, 1.120692289142, 0.988218931124, 1.513621470147, 1.304065033338, 0 },
    { -0.35221202133, 0.607017473117, 1.549940202626, 0.932064149079, 0.169783132431, -0.319769247828 },
    { -1.153851173173, 0.16076922992, -0.213660140554, -1.380081604287 } },
  { 2, { 0.193265306171, 1.049878031702, 0.985785482047, 1.377272045003, 1.234582388077, 0 },
    { -0.205552725963, 0.610544433599, 1.39279282968, 0.786591094409, 0.090894752613, -0.322420850275 },
    { -1.076008844898, 0.296703239269, -0.202126011432, -1.371417917002 } },
  { 3, { 0.193265306171, 1.007499936334, 0.985455574429, 1.27329461992, 1.197075168327, 0 },
    { -0.071219919564, 0.628332537577, 1.210707147124, 0.785347685458, 0.026232850832, -0.330076118548 },
    { -1.011670892044, 0.329404508004, -0.154049186348, -1.413008612491 } },
  { math.huge, { 0.193265306171, 0.995000914927, 0.985449729988, 1.213992594338, 1.188266221099, 0 },
    { 0, 0.644217687238, 0.985449729988, 0.863209366649, 0, -0.334988150156 },
    { -0.985449729988, 0.334988150156, 0, -1.507427053887 } },
}

for _, row in ipairs(ROWS) do
  test(("cdist: p = %g has PyTorch's values and gradients, 0 where two rows are the same"):format(row[1]), function(t)
    local a, b = seq(3, 2):requires_grad_(), seq(2, 2) * 1.3
    b[2] = a:detach()[3]
    b:requires_grad_()
    local y = pg.cdist(a, b, { p = row[1] })
    close(t, y, row[2], "y");
    (y * seq(3, 2):abs()):sum():backward()
    close(t, a.grad, row[3], "the first gradient")
    close(t, b.grad, row[4], "the second gradient")
  end)
end

test("cdist: gradients of both orders", function(t)
  for _, p in ipairs { 1, 1.5, 2, 3, math.huge } do
    local a, b = seq(2, 3, 4):requires_grad_(), (seq(2, 5, 4) * 1.3 + 0.2):requires_grad_()
    local function f(x, y) return pg.cdist(x, y, { p = p }) end
    pg.gradcheck(f, { a, b })
    local dx, dy = pg.grad(f(a, b):square():sum(), { a, b }, { create_graph = true })
    local eps, first = 1e-6, pg.grad((dx:square():sum() + dy:square():sum()), a)
    local function at(step)
      local moved = a:detach():clone()
      moved[1][1][1] = moved[1][1][1] + step
      moved:requires_grad_()
      local other = b:detach():requires_grad_()
      local u, v = pg.grad(f(moved, other):square():sum(), { moved, other })
      return u:square():sum():item() + v:square():sum():item()
    end
    local slope = (at(eps) - at(-eps)) / (2 * eps)
    t.ok(math.abs(first[1][1][1]:item() - slope) < 1e-5 * math.max(1, math.abs(slope)))
  end
  local same = seq(3, 4):requires_grad_()
  local g = pg.grad(pg.cdist(same, same):sum(), same, { create_graph = true })
  local second = pg.grad(g:square():sum(), same)
  t.equal(second:isfinite():all():item(), true)
end)

test("cdist: by products and by differences agree; rows far from 0 keep their digits", function(t)
  local a, b = pg.randn { 40, 300 }, pg.randn { 30, 300 }
  local exact = pg.cdist(a:to("float64"), b:to("float64"), { compute_mode = "donot_use_mm_for_euclid_dist" })
  for _, mode in ipairs { "use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist",
                          "donot_use_mm_for_euclid_dist" } do
    local y = pg.cdist(a, b, { compute_mode = mode })
    t.ok(pg.allclose(y:to("float64"), exact, { rtol = 1e-5 }), mode)
    local shifted = pg.cdist(a + 1000, b + 1000, { compute_mode = mode })
    t.ok(pg.allclose(shifted:to("float64"), exact, { rtol = 1e-3 }), mode)
  end
  local near = pg.tensor { { 1000, 1000 }, { 1000.5, 1000 } }
  t.equal(pg.cdist(near, near):totable(), { { 0, 0.5 }, { 0.5, 0 } })
  if pg.device() ~= "cpu" then return end
  local many = pg.randn { 64, 3 } -- short rows: the processor's kernel needs no product
  local wide = pg.cdist(many:to("float64"), many:to("float64"))
  t.ok(pg.allclose(pg.cdist(many, many):to("float64"), wide, { rtol = 1e-6, atol = 0 }))
end)

test("cdist: batches broadcast, views, empties, ties, dtypes, a method, graphs", function(t)
  local a, b = pg.randn { 3, 1, 4, 2 }, pg.randn { 5, 6, 2 }
  local y = a:cdist(b)
  t.ok(y:has_shape { 3, 5, 4, 6 })
  t.ok(pg.allclose(y[2][4], pg.cdist(a[2][1], b[4])))
  local turned = pg.randn { 2, 4 }
  t.ok(pg.allclose(pg.cdist(turned:t(), turned:t()), pg.cdist(turned:t():contiguous(), turned:t():contiguous())))
  t.ok(pg.cdist(pg.zeros { 0, 2 }, pg.zeros { 3, 2 }):has_shape { 0, 3 })
  t.equal(pg.cdist(pg.zeros { 2, 0 }, pg.zeros { 3, 0 }):totable(), { { 0, 0, 0 }, { 0, 0, 0 } })
  local none = pg.zeros({ 2, 3 }, { requires_grad = true })
  pg.cdist(none, pg.zeros { 0, 3 }):sum():backward()
  t.equal(none.grad:totable(), { { 0, 0, 0 }, { 0, 0, 0 } })
  local tie = pg.tensor({ { 0, 0 } }, { requires_grad = true })
  pg.cdist(tie, pg.tensor { { 1, -1 } }, { p = math.huge }):sum():backward()
  t.equal(tie.grad:totable(), { { -1, 1 } })
  t.equal(pg.cdist(pg.ones({ 1, 2 }, { dtype = "bfloat16" }), pg.zeros({ 1, 2 }, { dtype = "bfloat16" })).dtype,
          "bfloat16")
  t.equal(pg.cdist(pg.ones({ 1, 2 }, { dtype = "float64" }), pg.zeros { 1, 2 }).dtype, "float64")
  local g = pg.graph(function(g)
    local x = g:placeholder { "x", shape = { "rows", 2 } }
    return { y = pg.cdist(x, x, { p = 1 }), z = pg.cdist(x, x) }
  end)
  local x = pg.randn { 7, 2 }
  local results = pg.Session { g }:run({ "y", "z" }, { x = x })
  t.ok(pg.allclose(results.y, pg.cdist(x, x, { p = 1 })))
  t.ok(pg.allclose(results.z, pg.cdist(x, x), { atol = 1e-3 }))
end)

test("pdist: the distances of all pairs of rows", function(t)
  local x = seq(4, 3):requires_grad_()
  local y = pg.pdist(x)
  close(t, y, { 1.620577623707, 2.453461311213, 0.021287146669, 2.19631522909, 1.616434131801, 2.469730034323 }, "y")
  y:sum():backward()
  close(t, x.grad, { -0.967273668646, 0.253983385037, 1.355788084137, 1.846135903736, 0.209824037643, -1.525171351945,
                     -1.504816216099, -1.92666488026, -1.442372946266, 0.625953981009, 1.462857457581,
                     1.611756214074 }, "the gradient")
  close(t, x:pdist { p = 1 }, { 2.5086718614087395, 4.114962440136393, 0.03230131585398787, 3.332709312025401,
                                2.507345376294028, 4.147263755990381 }, "p = 1")
  t.equal(pg.pdist(pg.ones { 40, 200 }):abs():max():item(), 0) -- not by products
  t.ok(pg.pdist(pg.zeros { 1, 3 }):has_shape { 0 })
  t.ok(pg.pdist(pg.zeros { 0, 3 }):has_shape { 0 })
  t.raises(function() pg.pdist(pg.zeros { 3 }) end, "pdist: x is {3}; expected 2 axes")
end)

test("cdist_grad takes gradients of the distances' own shape", function(t)
  for _, case in ipairs { { { 3, 5 }, { 1, 3, 2 }, { 5, 2 } }, { { 2, 3, 5 }, { 3, 2 }, { 5, 2 } },
                          { { 0, 5 }, { 1, 0, 2 }, { 5, 2 } }, { { 3, 3, 5 }, { 2, 3, 2 }, { 2, 5, 2 } } } do
    local d, x, y = pg.ones { case[1] }, pg.ones { case[2] }, pg.zeros { case[3] }
    t.raises(function() pg.cdist_grad(d, x, y, d) end, "does not have the leading axes that .* broadcast to")
  end
  local d = pg.ones { 2, 3, 5 }
  local x = pg.rand { 1, 3, 2, requires_grad = true }
  local dx = pg.cdist_grad(d, x, pg.zeros { 2, 5, 2 }, d, { p = 3 })
  t.ok(dx:has_shape { 2, 3, 2 })
  dx:sum():backward()
  t.ok(x.grad:has_shape { 1, 3, 2 })
end)
