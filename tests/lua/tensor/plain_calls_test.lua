-- SPDX-License-Identifier: Apache-2.0
-- Calls of tensors and numbers alone have ways of their own past the call grammar: they do and say what others do.

local pg = require "perigee"

local function matrix() return pg.arange(12):reshape(3, 4):to "float32" end

test("creation without options is creation with them", function(t)
  for name, value in pairs { zeros = 0, ones = 1 } do
    local make = pg[name]
    for _, y in ipairs { make(2, 3), make { 2, 3 }, make({ 2, 3 }), make { { 2, 3 } },
                         make({ 2, 3 }, { dtype = "float32" }), make { 2, 3, dtype = "float32" } } do
      t.equal(y, { { value, value, value }, { value, value, value } })
      t.equal(y.dtype, "float32")
    end
    t.equal(make(1, 2, 1, 2).shape, { 1, 2, 1, 2 })
    t.equal(make(0).shape, { 0 })
    t.equal(make(matrix().shape).shape, { 3, 4 })
    t.raises(function() make(2, -1) end, name .. ": size %-1 of axis 2 is negative")
    t.raises(function() make(1.5) end, name .. ": shape must be a list of whole numbers")
    t.raises(function() make() end, name .. ": argument \"shape\" is missing")
    t.raises(function() make { 2, dtyp = "int64" } end, "dtype")
  end
  t.equal(pg.rand(2, 3).shape, { 2, 3 })
  t.equal(pg.full({ 2 }, 7), { 7, 7 })
  t.equal(pg.full({ 2 }, true).dtype, "bool")
  t.equal(pg.eye(2), { { 1, 0 }, { 0, 1 } })
  t.equal(pg.eye(0).shape, { 0, 0 })
  local before = pg.set_default_dtype "float64"
  t.equal({ pg.zeros(1).dtype, pg.full({ 1 }, 2).dtype, pg.eye(1).dtype, pg.linspace(0, 1, 2).dtype },
          { "float64", "float64", "float64", "float64" })
  pg.set_default_dtype(before)
end)

test("ranges of numbers", function(t)
  t.equal(pg.arange(3), { 0, 1, 2 })
  t.equal(pg.arange(1, 8, 3), { 1, 4, 7 })
  t.equal(pg.arange(2, -1, -1), { 2, 1, 0 })
  t.equal(pg.arange(-2).shape, { 0 })
  t.equal({ pg.arange(3).dtype, pg.arange(1.5).dtype, pg.arange(0, 1, 0.5).dtype }, { "int64", "float32", "float32" })
  t.raises(function() pg.arange(0, 3, 0) end, "arange: step is 0")
  t.equal(pg.linspace(1, 2, 5), { 1, 1.25, 1.5, 1.75, 2 })
  t.equal(pg.linspace(0.1, 0.7, 4, { dtype = "float64" })[-1], 0.7, "the last is the number itself")
  t.equal(pg.linspace(3, 9, 1), { 3 })
  t.equal(pg.linspace(3, 9, 0).shape, { 0 })
  t.raises(function() pg.linspace(0, 1, -1) end, "linspace: count is negative")
end)

test("tensors in the shape of another", function(t)
  local x = pg.arange(2, { device = "cpu" })
  t.equal(x:zeros_like(), { 0, 0 })
  t.equal(pg.ones_like(x), { 1, 1 })
  t.equal(x:full_like(5), { 5, 5 })
  t.equal({ pg.zeros_like(x).dtype, x:full_like(2).dtype, x:full_like(2, { dtype = "float32" }).dtype },
          { "int64", "int64", "float32" })
  local w = pg.ones({ 2 }, { requires_grad = true })
  t.equal({ w:zeros_like().requires_grad, w:full_like(1).requires_grad }, { false, false })
  t.raises(function() x:to "int8":full_like(300) end, "full_like: int8 cannot hold 300")
  t.raises(function() pg.full_like(x) end, "full_like: argument \"value\" is missing")
  local far = pg.ones({ 2 }, { device = "sim:0" })
  t.equal({ far:zeros_like().device, far:full_like(1).device }, { "sim:0", "sim:0" })
  pg.device("sim:0", function()
    t.equal({ x:zeros_like().device, x:full_like(1).device, pg.zeros(1).device, pg.linspace(0, 1, 3).device },
            { "cpu", "cpu", "sim:0", "sim:0" })
  end)
end)

test("tensors and numbers", function(t)
  local x, index = matrix(), pg.tensor({ { 0 }, { 3 }, { 1 } }, { dtype = "int64" })
  for _, y in ipairs { x:gather(index, 2), x:gather(2, index), x:gather(index, -1), x:gather { index, axis = 2 } } do
    t.equal(y, { { 0 }, { 7 }, { 9 } })
  end
  t.raises(function() x:gather(index, 0) end, "axis is 0, but axes count from 1")
  t.raises(function() x:gather(index, 3) end, "gather: axis 3 is out of range for x %[3, 4%]")
  t.raises(function() x:gather(index, 2, 3) end, "too many arguments")
  local mask = x:gt(5)
  t.equal(pg.where(mask, x, 0):sum(), 51)
  t.equal(pg.where(mask, 1, x):sum(), 21)
  t.equal(pg.where(mask, 1, 0).dtype, "float32")
  t.equal(x:masked_fill(mask, -1):amax(), 5)
  t.equal(x:clone():masked_fill_(mask, -1):amax(), 5)
  t.equal(x:masked_fill(pg.tensor { true, false, false, true }, 0)[1], { 0, 1, 2, 0 })
  t.raises(function() x:masked_fill(mask, "a") end, "masked_fill")
  local gone = pg.ones(3, 4)
  gone:free()
  t.raises(function() pg.where(mask, gone, 0) end, "where: this tensor was closed")
  t.raises(function() x:masked_fill(gone, 0) end, "was closed")
end)

test("lists of numbers", function(t)
  local x = matrix()
  t.equal(x:reshape { 2, 6 }.shape, { 2, 6 })
  t.equal(x:reshape { -1, 6 }.shape, { 2, 6 })
  t.equal(x:reshape(pg.ones(4, 3).shape).shape, { 4, 3 })
  t.equal(x:permute { 2, 1 }.shape, { 4, 3 })
  t.equal(x:sum { 1 }, { 12, 15, 18, 21 })
  t.equal(x:sum { 1, keepdim = true }.shape, { 1, 4 })
  t.equal(x:sum {}, 66)
  t.raises(function() x:sum { 0 } end, "count from 1")
  t.raises(function() x:sum { 1, kepdim = true } end, "keepdim")
  t.raises(function() x:reshape { 2.5, 6 } end, "reshape")
  t.raises(function() x:permute { 1, nil, 2 } end, "hole")
end)

test("lists of tensors", function(t)
  local a, b = pg.tensor { 1, 2 }, pg.tensor { 3, 4 }
  for _, y in ipairs { pg.cat { a, b }, pg.cat({ a, b }), pg.cat(a, b), pg.cat({ a, b }, 1), pg.cat { a, b, axis = -1 },
                       pg.cat({ a, b }, { axis = 1 }) } do
    t.equal(y, { 1, 2, 3, 4 })
  end
  for _, y in ipairs { pg.stack({ a, b }, 2), pg.stack({ a, b }, -1), pg.stack { a, b, axis = 2 } } do
    t.equal(y, { { 1, 3 }, { 2, 4 } })
  end
  t.equal(pg.cat { a, pg.tensor({ 3 }, { dtype = "int64" }) }.dtype, "float32")
  local many = {}
  for i = 1, 100 do many[i] = pg.tensor { i } end
  t.equal(pg.cat(many):sum(), 5050)
  t.equal(pg.stack(many).shape, { 100, 1 })
  t.raises(function() pg.cat { a, b, axsi = 1 } end, "axis")
  t.raises(function() pg.cat { a, "b" } end, "cat")
  t.raises(function() pg.cat({ a, b }, 2) end, "cat: axis 2 is out of range for xs %[2%]")
  t.raises(function() pg.stack({ a, b }, 3) end, "stack: axis 3 is out of range for a new axis of %[2%]; expected 1..2")
  t.raises(function() pg.stack {} end, "stack: xs is empty")
  t.raises(function() pg.cat { a, nil, b } end, "hole")
  local gone = pg.ones(2)
  gone:free()
  t.raises(function() pg.cat { a, gone } end, "cat: this tensor was closed")
end)

test("parts", function(t)
  local x = matrix()
  t.equal(x:narrow(2, 2, 2), x:narrow { 2, 2, 2 })
  t.equal(x:narrow(2, -2, 2), { { 2, 3 }, { 6, 7 }, { 10, 11 } })
  t.equal(x:select(1, 2), x:select { axis = 1, index = 2 })
  local shapes = {}
  for i, part in ipairs(x:split(2)) do shapes[i] = part.shape end
  t.equal(shapes, { { 2, 4 }, { 1, 4 } })
  t.equal({ #x:split { 3, axis = 2 }, #x:split { 1, 3, axis = 2 } }, { 2, 2 })
  t.equal({ #x:chunk(2, 2), #x:chunk { 3, axis = 2 } }, { 2, 2 })
  t.equal(#x:unbind(2), 4)
  t.equal(#pg.zeros(0, 2):split(3), 1)
  t.equal(x:unbind(-1)[4], { 3, 7, 11 })
  t.raises(function() x:narrow(3, 1, 1) end, "narrow: axis 3 is out of range")
  t.raises(function() x:narrow(1, 2, 3) end, "narrow: start 2 and length 3 do not fit")
  t.raises(function() x:select(1, 4) end, "4 is out of range for axis 1")
  t.raises(function() x:select(1) end, "argument \"index\" is missing")
  t.raises(function() x:split(0) end, "size must be a whole number from 1")
  t.raises(function() x:chunk(0) end, "count must be at least 1")
end)

test("writes where the key is numbers and ranges", function(t)
  local x = pg.zeros(3, 4)
  x[1] = 2
  x[{ 2, { 2, 3 } }] = pg.tensor { 5, 6 }
  x[-1] = pg.arange(4)
  x[{ {}, -1 }] = 9
  x[{ { 1, 2 }, 1 }] = true
  t.equal(x, { { 1, 2, 2, 9 }, { 1, 5, 6, 9 }, { 0, 1, 2, 9 } })
  x[{ 1 }] = pg.ones(1, 1, 4) -- axes of one in front are let go
  t.equal(x[1], { 1, 1, 1, 1 })
  local whole = pg.zeros({ 2 }, { dtype = "int8" })
  whole[1] = pg.tensor { 3.7 }:reshape {}
  t.equal(whole, { 3, 0 })
  t.raises(function() whole[2] = 128 end, "assignment: int8 cannot hold 128")
  t.raises(function() x[4] = 0 end, "4 is out of range for axis 1")
  t.raises(function() x[{ 1, y = 2 }] = 0 end, "no entry named \"y\"")
  t.raises(function() x[{ 1, { 1, 2, 0 } }] = 0 end, "step of a slice")
  t.raises(function() x[1] = pg.ones(3) end, "copy: .*broadcast")
  t.raises(function() x[1] = "a" end, "assignment: the value must be a number or a tensor")
end)

test("writes are recorded, and make what was saved before them stale", function(t)
  local w = pg.ones({ 3, 2 }, { requires_grad = true })
  local row = pg.tensor({ 5, 6 }, { requires_grad = true })
  local y = w * 2
  y[1] = 7
  y[{ 2, {} }] = row
  y[{ 3, 1 }] = 0
  (y * y):sum():backward()
  t.equal(w.grad, { { 0, 0 }, { 0, 0 }, { 0, 8 } })
  t.equal(row.grad, { 10, 12 })
  t.raises(function() w[1] = 0 end, "assignment: this would write into a view of a leaf")
  t.raises(function() w:zero_() end, "zero_: this would write into a leaf")
  w = pg.ones({ 2 }, { requires_grad = true })
  y = w * 1
  local square = y * y
  y:fill_(3)
  t.raises(function() square:sum():backward() end, "modified")
  y = w * 2
  y:zero_()
  y:sum():backward()
  t.equal(w.grad, nil, "nothing flows back through what was written over")
end)

test("writes in graphs", function(t)
  local g = pg.graph(function(g)
    local x = g:placeholder { "x", shape = { "n", 3 }, dtype = "float32" }
    local y = x * 1
    y[1] = 7
    y[{ {}, 2 }] = x[{ {}, 1 }]
    y[{ -1, { 2, 3 } }] = 0
    local z = x * 1
    z:fill_(4)
    return { y = y, z = z, p = x:pad { 1, 0 }, l = x:tril(), r = x:roll(1, 2), s = pg.stack { x, z } }
  end)
  local session = pg.Session { g }
  local o = session:run({ "y", "z", "p", "l", "r", "s" }, { x = pg.tensor { { 1, 2, 3 }, { 4, 5, 6 } } })
  t.equal(o[1] or o.y, { { 7, 1, 7 }, { 4, 0, 0 } })
  t.equal(o[2] or o.z, { { 4, 4, 4 }, { 4, 4, 4 } })
  t.equal(o[3] or o.p, { { 0, 1, 2, 3 }, { 0, 4, 5, 6 } })
  t.equal(o[4] or o.l, { { 1, 0, 0 }, { 4, 5, 0 } })
  t.equal(o[5] or o.r, { { 3, 1, 2 }, { 6, 4, 5 } })
  t.equal((o[6] or o.s).shape, { 2, 2, 3 })
end)

test("a scope of another device writes where the tensor is", function(t)
  local x, far = pg.zeros({ 2, 2 }, { device = "cpu" }), pg.zeros({ 2, 2 }, { device = "sim:0" })
  pg.device("sim:0", function()
    x[1] = 3
    x[2]:fill_(1)
  end)
  far[1] = 3
  far[2] = x[2]
  t.equal(x, { { 3, 3 }, { 1, 1 } })
  t.equal({ x.device, far.device }, { "cpu", "sim:0" })
  t.equal(far:cpu(), { { 3, 3 }, { 1, 1 } })
end)
