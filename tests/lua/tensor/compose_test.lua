-- SPDX-License-Identifier: Apache-2.0
-- Functions made of several operators (compose.lua, pad.lua, einsum.lua): forms of the call and bad input. Their values
-- and gradients are checked by the reference vectors.

local pg = require "perigee"

local x = pg.arange(6):reshape(2, 3)

test("tile and repeat_interleave", function(t)
  t.equal(pg.tensor({ 1, 2 }):tile(2), { 1, 2, 1, 2 })
  t.equal(x:tile(2, 1).shape, { 4, 3 })
  t.equal(x:tile { 2, 1, 1 }.shape, { 2, 2, 3 })
  t.equal(x:tile(0, 2).shape, { 0, 6 })
  t.equal(pg.tensor({ 1, 2 }):repeat_interleave(2), { 1, 1, 2, 2 })
  t.equal(x:repeat_interleave { 2, axis = 1 }, { { 0, 1, 2 }, { 0, 1, 2 }, { 3, 4, 5 }, { 3, 4, 5 } })
  t.raises(function() x:tile(-1) end, "tile: counts must be whole numbers from 0")
end)

test("products under PyTorch's names", function(t)
  local m, v = pg.tensor { { 1, 2 }, { 3, 4 } }, pg.tensor { 1, -1 }
  t.equal(m:mm(m), { { 7, 10 }, { 15, 22 } })
  t.equal(m:mv(v), { -1, -1 })
  t.equal(pg.dot(v, v):item(), 2)
  local b = m:unsqueeze(1)
  t.equal(pg.baddbmm(pg.ones { 2 }, b, b, { beta = 2, alpha = 10 }), { { { 72, 102 }, { 152, 222 } } })
  t.equal(pg.baddbmm(pg.full({ 2 }, 0 / 0), b, b, { beta = 0 }), { { { 7, 10 }, { 15, 22 } } })
end)

test("flip of lines of items of any size", function(t)
  pg.manual_seed(1)
  for _, dtype in ipairs { "uint8", "int16", "float32", "float64", "bool" } do
    for _, shape in ipairs { { 5 }, { 1, 1 }, { 3, 7, 2 }, { 2, 9, 3 }, { 4, 5, 4 }, { 3, 1, 3 }, { 2, 6, 5 }, { 0, 3 },
                             { 2, 0, 3 } } do
      local lines = (pg.rand(shape) * 200):to(dtype)
      for axis = 1, #shape do
        local n = shape[axis]
        local turned = lines:index_select(n - pg.arange(1, n + 1), axis)
        t.ok(lines:flip(axis):equal(turned), dtype .. " " .. tostring(lines.shape))
      end
    end
  end
end)

test("flip and roll are copies and count axes from 1", function(t)
  t.equal(x:flip(1), { { 3, 4, 5 }, { 0, 1, 2 } })
  t.equal(x:flip { 1, 2 }, { { 5, 4, 3 }, { 2, 1, 0 } })
  t.equal(x:flip { axis = -1 }, { { 2, 1, 0 }, { 5, 4, 3 } })
  t.equal(x:roll(1), { { 5, 0, 1 }, { 2, 3, 4 } })
  t.equal(x:roll(-1, 2), { { 1, 2, 0 }, { 4, 5, 3 } })
  t.equal(x:roll({ 1, 1 }, { 1, 2 }), { { 5, 3, 4 }, { 2, 0, 1 } })
  t.equal(x:roll { 3, axis = 2 }, x)
  local y = x:roll { 3, axis = 2 }
  y[{ 1, 1 }] = 9
  t.equal(x[{ 1, 1 }]:item(), 0)
  t.raises(function() x:flip(0) end, "axes count from 1")
  t.raises(function() x:flip(3) end, "axis 3 is out of range")
  t.raises(function() x:flip(1, -2) end, "flip: axis 1 is listed twice")
  t.raises(function() x:roll({ 1, 2 }, 1) end, "2 shifts and 1 axes")
end)

test("triangles and diagonals", function(t)
  t.equal(x:tril(), { { 0, 0, 0 }, { 3, 4, 0 } })
  t.equal(x:triu(1), { { 0, 1, 2 }, { 0, 0, 5 } })
  t.equal(x:tril { diagonal = 1 }, { { 0, 1, 0 }, { 3, 4, 5 } })
  t.equal(x:ge(0):tril(), { { true, false, false }, { true, true, false } })
  t.equal(x:diag(), { 0, 4 })
  t.equal(x:diag(-1), { 3 })
  t.equal(x:diag(5).shape, { 0 })
  t.equal(pg.tensor({ 1, 2 }):diag(1), { { 0, 1, 0 }, { 0, 0, 2 }, { 0, 0, 0 } })
  t.equal(pg.tensor({ 1, 2 }):diag(-1), { { 0, 0, 0 }, { 1, 0, 0 }, { 0, 2, 0 } })
  t.raises(function() pg.ones(3):tril() end, "tril: x %[3%] has 1 axes; expected at least 2 axes")
  t.raises(function() pg.ones(2, 2, 2):diag() end, "expected 1 or 2 axes")
end)

test("pad takes a flat list from the last axis or pairs from the first", function(t)
  local v = pg.tensor({ { 1, 2, 3 } })
  t.equal(v:pad { 1, 2 }, { { 0, 1, 2, 3, 0, 0 } })
  t.equal(v:pad({ 1, 0 }, { value = 7 }), { { 7, 1, 2, 3 } })
  t.equal(v:pad { { 0, 1 }, { 1, 0 } }, { { 0, 1, 2, 3 }, { 0, 0, 0, 0 } })
  t.equal(v:pad { { -1, 1 }, { 0, 0 } }, { { 0, 0, 0 } })
  t.equal(v:pad({ 2, 2 }, { mode = "reflect" }), { { 3, 2, 1, 2, 3, 2, 1 } })
  t.equal(v:pad({ 1, 2 }, { mode = "replicate" }), { { 1, 1, 2, 3, 3, 3 } })
  t.equal(v:pad({ 1, 2 }, { mode = "circular" }), { { 3, 1, 2, 3, 1, 2 } })
  t.equal(v:pad { -1, -1 }, { { 2 } })
  t.raises(function() v:pad { 1 } end, "1 widths for 2 axes")
  t.raises(function() v:pad { -2, -2 } end, "take more than axis 2")
  t.raises(function() v:pad({ 3, 0 }, { mode = "reflect" }) end, "too large for axis 2")
  t.raises(function() v:pad({ 1, 0 }, { mode = "replicat" }) end, "did you mean \"replicate\"")
end)

test("picking with broadcasting", function(t)
  local index = pg.tensor({ { 2 }, { 0 } }, { dtype = "int64" })
  t.equal(x:take_along(index, 2), { { 2 }, { 3 } })
  t.equal(x:take_along(pg.tensor({ 5, 0 }, { dtype = "int64" })), { 5, 0 })
  t.equal(pg.tensor({ 1, 2 }):masked_select(pg.tensor({ { true, false }, { true, true } })), { 1, 1, 2 })
  -- A mask of two axes fewer: what a negative position of its shape would be is not looked at.
  local few = pg.tensor { { true, false }, { true, true }, { false, false } }
  t.equal(pg.arange(6):reshape(1, 1, 3, 2):masked_select(few), { 0, 2, 3 })
  t.equal(pg.arange(6):reshape(1, 3, 2):masked_select(pg.tensor { true, false }), { 0, 2, 4 })
  t.equal(pg.arange(6):reshape(1, 1, 3, 2):masked_fill(few, 9), { { { { 9, 1 }, { 9, 9 }, { 4, 5 } } } })
  t.equal(pg.tensor({ 1, 2 }):masked_fill(pg.tensor({ { true, false }, { false, true } }), 0), { { 0, 2 }, { 1, 0 } })
  t.equal(pg.tensor({ 1, 2 }):masked_fill(pg.tensor({ true, false }), pg.tensor(5)), { 5, 2 })
  t.raises(function() x:take_along(pg.zeros { 3, 1, dtype = "int64" }, 2) end, "does not broadcast")
end)

test("reductions that give positions take the table call of all others", function(t)
  local values, at = pg.max { pg.tensor { { 1, 5 }, { 7, 2 } }, axis = 2 }
  t.equal(values, { 5, 7 })
  t.equal(at, { 1, 0 })
  t.equal((pg.min { pg.tensor { { 1, 5 }, { 7, 2 } }, 1, keepdim = true }), { { 1, 2 } })
  t.equal(pg.max { pg.tensor { 1, 5 }, pg.tensor { 3, 4 } }, { 3, 5 })
  t.equal(pg.argmax { pg.tensor { { 1, 5 }, { 7, 2 } }, axis = -1, keepdim = true }, { { 1 }, { 0 } })
  t.equal(pg.argmin { pg.tensor { 4, 3 } }:item(), 1)
  local yes = pg.tensor { { false, true }, { true, true } }
  values, at = yes:max(2)
  t.equal(values, { true, true })
  t.equal(at, { 1, 0 })
  t.equal(yes:argmin(), 0)
end)

test("where of two numbers, inner, softmin", function(t)
  local a = pg.tensor { { 1, 5, 2 }, { 4, 0, 6 } }
  t.equal(pg.where(a:gt(2), 1, -1), { { -1, 1, -1 }, { 1, -1, 1 } })
  t.equal(a:gt(2):where(1, 0).dtype, "float32")
  t.equal(pg.inner(a, a), { { 30, 16 }, { 16, 52 } })
  t.equal(pg.inner(a[1], a[2]):item(), 16)
  t.equal(a:inner(pg.tensor(2)), { { 2, 10, 4 }, { 8, 0, 12 } })
  t.equal(pg.zeros { 2, 0 }:inner(pg.zeros { 3, 0 }), { { 0, 0, 0 }, { 0, 0, 0 } })
  t.raises(function() pg.inner(a, pg.ones { 2 }) end, "expected the same last axis")
  t.close(pg.softmin(a, 1), (-a):softmax(1), 1e-7)
  t.close(pg.nn.Softmin {}(a), (-a):softmax(-1), 1e-7)
  t.ok(pg.gradcheck(function(v, w) return v:softmin(1):inner(w) end,
                    { a:to("float64"):requires_grad_(), pg.randn({ 4, 3 }, { dtype = "float64" }):requires_grad_() }))
end)

test("parts of an empty axis, samples of an empty batch", function(t)
  local list = pg.zeros { 0, 2 }:chunk(3)
  t.ok(#list == 3)
  t.equal(list[3].shape, { 0, 2 })
  t.ok(#pg.zeros { 4, 0 }:split(1, 2) == 1)
  for _, mode in ipairs { "bilinear", "nearest", "bicubic" } do
    t.equal(pg.grid_sample(pg.ones { 0, 2, 4, 5 }, pg.ones { 0, 3, 6, 2 }, { mode = mode }).shape, { 0, 2, 3, 6 })
  end
end)

test("small products", function(t)
  local a, b = pg.ones(2, 3, 4), pg.ones(2, 4, 5)
  t.equal(pg.bmm(a, b).shape, { 2, 3, 5 })
  t.raises(function() a:bmm(a) end, "do not fit")
  t.raises(function() a:bmm(a[1]) end, "expected %[b, n, k%]")
  local bias = pg.tensor({ 1, 1 })
  t.equal(bias:addmm(pg.ones(2, 3), pg.ones(3, 2), { beta = 2, alpha = 0.5 }), { { 3.5, 3.5 }, { 3.5, 3.5 } })
  t.equal(pg.tensor({ 0 / 0 }):addmm(pg.ones(1, 1), pg.ones(1, 1), { beta = 0 }), { { 1 } })
  t.equal(pg.tensor({ 1, 2 }):outer(pg.tensor({ 3, 4 })), { { 3, 4 }, { 6, 8 } })
  t.equal(pg.tensor({ 0, 10 }):lerp(pg.tensor({ 10, 0 }), 0.25), { 2.5, 7.5 })
end)

test("einsum", function(t)
  local a, b = pg.randn(2, 3), pg.randn(3, 4)
  t.close(pg.einsum("ij,jk", a, b), a:matmul(b), 1e-5)
  t.close(pg.einsum("ij,jk->ki", { a, b }), a:matmul(b):t(), 1e-5)
  t.close(pg.einsum("ij,jk,lk->il", a, b, b), a:matmul(b):matmul(b:t()), 1e-4)
  t.close(pg.einsum("...j->...", a), a:sum(2), 1e-5)
  t.close(pg.einsum("ii->i", b:narrow(2, 1, 3)), b:diag(), 1e-6)
  t.close(pg.einsum("ii", b:narrow(2, 1, 3)), b:diag():sum(), 1e-5)
  t.raises(function() pg.einsum("ij,jk", a) end, "2 terms for 1 tensors")
  t.raises(function() pg.einsum("ij,ik", a, b) end, "label i is 2 and 3")
  t.raises(function() pg.einsum("ij->ik", a) end, "label k of the result")
  t.raises(function() pg.einsum("ijk", a) end, "3 labels for a tensor")
end)

test("an empty table of options is none", function(t)
  t.equal(pg.tensor({ -1, 1 }):elu {}, pg.tensor({ -1, 1 }):elu())
  t.equal(pg.tensor({ 1, 2 }):pad({ 1, 0 }, {}), { 0, 1, 2 })
end)

test("compositions are recorded with a batch that is a symbol", function(t)
  local cases = {
    tril = function(a) return a:tril() end, triu = function(a) return a:triu(-1) end,
    flip = function(a) return a:flip(1) end, roll = function(a) return a:roll(5, 1) end,
    tile = function(a) return a:tile(2, 3) end, repeat_interleave = function(a) return a:repeat_interleave(2, 1) end,
    pad = function(a) return a:pad { 1, 1 } end, stack = function(a) return pg.stack { a, a } end,
    outer = function(a) return a:sum(2):outer(a:sum(1)) end, chunk = function(a) return a:chunk(3, 2)[2] end,
    diag = function(a) return a:sum(2):diag(1) end, flat = function(a) return a:flatten() end,
    diagonal = function(a) return a:diag(-1) end, pad_rows = function(a) return a:pad { 1, 0, 2, 1 } end,
    fliplr = function(a) return a:fliplr() end, unfold = function(a) return a:unfold(2, 2, 1) end,
    split = function(a) return a:tensor_split(2, 2)[1] end, unflatten = function(a) return a:unflatten(2, 3, 1) end,
    cross = function(a) return a:cross(a + 1, 2) end, sort = function(a) return (a:sort(1)) end,
    topk = function(a) return (a:topk(2)) end, median = function(a) return (a:median(2)) end,
    picked = function(a) return a[{ {}, pg.tensor { 2, 0, dtype = "int64" }, pg.newaxis }] end,
    written = function(a)
      local b = a * 2
      b[{ {}, pg.tensor { 2, 0, dtype = "int64" } }] = 7
      return b
    end,
    scattered = function(a) return a:scatter_add(1, pg.zeros_like(a):to("int64"), a) end,
  }
  for name, f in pairs(cases) do
    local session = pg.Session { pg.graph(function(g) return { y = f(g:placeholder { "x", shape = { "n", 3 } }) } end) }
    for _, n in ipairs { 4, 1, 0 } do
      local a = pg.rand { n, 3 }
      local expected, y = f(a), session:run("y", { x = a })
      t.equal(y.shape, expected.shape, name)
      t.equal(y, expected, name)
    end
  end
end)

test("arguments may come in a table behind the tensor", function(t)
  local a, index = pg.arange(6):reshape(2, 3), pg.tensor { 0, 2, dtype = "int64" }
  t.equal(a:index_select { 2, index }, a:index_select(index, 2))
  t.equal(a:index_select { index, 2 }, a:index_select(index, 2))
  t.equal(a:clamp { 2, 4 }, a:clamp(2, 4))
  t.equal(a:sum { 1, 2 }, a:sum { axis = { 1, 2 } }) -- a list where a list is wanted
  t.raises(function() a:flip(1, -2) end, "axis 1 is listed twice")
  t.raises(function() pg.eye(-1) end, "sizes must be at least 0")
  t.raises(function() return (index ^ (index - 1)):totable() end, "negative integer power")
end)
