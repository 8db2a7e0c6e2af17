-- SPDX-License-Identifier: Apache-2.0
-- Tensors as LUA_API's rules say: creation, the call grammar, arithmetic, dtypes, printing.

local pg = require "perigee"

test("no globals, and a second require is the same", function(t)
  t.equal(rawget(_G, "perigee"), nil)
  local before = {}
  for name, module in pairs(package.loaded) do
    if name:find "^perigee" and not name:find "command" then before[name] = module end
  end
  for name in pairs(before) do package.loaded[name] = nil end
  local again = require "perigee"
  t.ok(rawequal(again, pg))
  for name, module in pairs(before) do package.loaded[name] = module end -- later tests get no second ones
  t.equal(again.zeros { 2 } + 1, { 1, 1 })
end)

test("one call grammar", function(t)
  for _, x in ipairs { pg.zeros(2, 3), pg.zeros { 2, 3 }, pg.zeros({ 2, 3 }), pg.zeros({ 2, 3 }, { dtype = "float32" }),
                       pg.zeros { { 2, 3 }, dtype = "f32" } } do
    t.equal(x.shape, { 2, 3 })
    t.equal(x.dtype, "float32")
  end
  t.equal(pg.zeros { 2, 3, dtype = "int64" }.dtype, "int64")
  local x = pg.arange(6):reshape(2, 3)
  t.equal(x:sum(1), { 3, 5, 7 })
  t.equal(x:sum { axis = 1 }, { 3, 5, 7 })
  t.equal(x:sum { 1, keepdim = true }, { { 3, 5, 7 } })
  t.equal(x:sum(1, { keepdim = true }), { { 3, 5, 7 } })
  t.equal(x:sum { axis = { 1, 2 } }, 15)
  t.equal(x:sum(1, 2), 15)
  t.equal(pg.sum(x, 2), { 3, 12 })
  t.equal(pg.sum { x, axis = -1 }, { 3, 12 })
  t.equal(pg.cat { x, x }.shape, { 4, 3 })
  t.equal(pg.cat({ x, x }, 2).shape, { 2, 6 })
  t.equal(pg.cat { x, x, axis = -1 }.shape, { 2, 6 })
  t.equal(pg.cat({ x, x }, { axis = 2 }).shape, { 2, 6 })
  t.equal(pg.cat { { x, x }, axis = 2 }.shape, { 2, 6 })
end)

test("one table has all arguments of functions that are a few operators, too", function(t)
  local x = pg.arange(6):reshape(2, 3)
  for _, y in ipairs { pg.transpose { x, 1, 2 }, x:transpose { 1, 2 }, x:transpose { a = 1, b = 2 },
                       x:swapaxes { 1, 2 }, pg.movedim { x, 1, 2 }, x:movedim { from = { 1, 2 }, to = { 2, 1 } },
                       pg.t { x } } do
    t.equal(y, { { 0, 3 }, { 1, 4 }, { 2, 5 } })
  end
  t.equal(pg.flipud { x }, { { 3, 4, 5 }, { 0, 1, 2 } })
  t.equal(pg.fliplr { x }, { { 2, 1, 0 }, { 5, 4, 3 } })
  t.equal(pg.ravel { x }, pg.flatten { x }:totable())
  t.equal(pg.trace { x }:item(), 4)
  t.equal(pg.split { x, { 1, 2 }, axis = 2 }[2], { { 1, 2 }, { 4, 5 } })
  t.equal(pg.max { x, 2, keepdim = true }, { { 2 }, { 5 } })
  t.ok(pg.equal { x, x } and not x:equal { x + 1 })
  local large = x:gt(2)
  for _, y in ipairs { pg.where { large, 1, 0 }, large:where { 1, 0 }, pg.where { large, x = 1, y = 0 } } do
    t.equal(y, { { 0, 0, 0 }, { 1, 1, 1 } })
  end
  t.equal(pg.where { large }, pg.where(large):totable())
  pg.config.memory_limit { "cpu", "10GB" }
  t.equal(pg.memory.stats("cpu").limit, 10 * 2 ^ 30)
  pg.config.memory_limit { device = "cpu", size = 0 }
  pg.config.memory_growth { "cpu", true }
  local layer = pg.nn.Linear { 2, 2 }
  t.ok(rawequal(layer:buffer { "n", x }, x))
  t.equal(layer:state().n, x:totable())
  t.raises(function() x:transpose(1, 2, 3) end, "too many")
  t.raises(function() pg.transpose { x, 1 } end, '"b" is missing')
end)

test("booleans where numbers are values", function(t)
  local x, b = pg.arange(3), pg.tensor { true, false, true }
  t.equal(pg.full_like(x, true), { 1, 1, 1 })
  t.equal(pg.full_like(x, true).dtype, "int64")
  t.equal(pg.full_like(x, true, { dtype = "bool" }), { true, true, true })
  t.equal(x:clone():copy_(true), { 1, 1, 1 })
  t.equal(b:clone():copy_(false), { false, false, false })
  t.equal(b:masked_fill(pg.tensor { true, true, false }, false), { false, false, true })
  t.equal(b:masked_fill(pg.tensor { { true, true, false } }, false), { { false, false, true } })
  t.equal(b:clone():masked_fill_(pg.tensor { true, true, false }, false), { false, false, true })
  t.equal(x:masked_fill(b, true), { 1, 1, 1 })
  t.equal(pg.where(b, true, false), b:totable())
  t.equal(pg.where(b, b, true), { true, true, true })
  t.equal(pg.where(b, true, x), { 1, 1, 1 })
  t.equal(pg.where(b, true, x).dtype, "int64")
  t.raises(function() x:to("uint8"):copy_(300) end, "copy_: uint8 cannot hold 300")
end)

test("creation", function(t)
  t.equal(pg.tensor({ { 1, 2 }, { 3, 4 } }), { { 1, 2 }, { 3, 4 } })
  t.equal(pg.tensor { 1, 2, dtype = "int32" }.dtype, "int32")
  t.equal(pg.tensor(true).dtype, "bool")
  t.equal(pg.tensor { true, false }, { true, false })
  t.equal(pg.tensor(2.5):item(), 2.5)
  t.equal(pg.tensor({ {}, {} }).shape, { 2, 0 })
  t.equal(pg.full({ 2 }, 7), { 7, 7 })
  t.equal(pg.full({ 2 }, true).dtype, "bool")
  t.equal(pg.eye(2), { { 1, 0 }, { 0, 1 } })
  t.equal(pg.arange(3), { 0, 1, 2 })
  t.equal(pg.arange(3).dtype, "int64")
  t.equal(pg.arange(0, 1, 0.25), { 0, 0.25, 0.5, 0.75 })
  t.equal(pg.arange(0, 10, 3), { 0, 3, 6, 9 })
  t.equal(pg.arange(3, 0, -1), { 3, 2, 1 })
  t.equal(pg.arange(3, 3).shape, { 0 })
  t.equal(pg.linspace(0, 1, 5), { 0, 0.25, 0.5, 0.75, 1 })
  t.equal(pg.linspace(3, 4, 1), { 3 })
  t.equal(pg.linspace(0, 10, 4, { dtype = "int64" }), { 0, 3, 6, 10 })
  local start, count = -3.7, 2500 -- more than a block of the loop
  local step, long = (11.3 - start) / (count - 1), pg.linspace(-3.7, 11.3, 2500, { dtype = "float64" })
  local list, same = long:totable(), true
  for i = 1, count - 1 do same = same and list[i] == start + (i - 1) * step end
  t.ok(same and list[count] == 11.3, "each position is multiplied, none added up")
  for _, dtype in ipairs { "float32", "bfloat16", "float16", "int32" } do
    t.equal(pg.linspace(-3.7, 11.3, count, { dtype = dtype }):totable(), long:to(dtype):totable())
  end
  local fine = pg.linspace(-0.1, 0.7, 1001, { dtype = "float64" })
  t.equal({ fine[1]:item(), fine[-1]:item() }, { -0.1, 0.7 }, "both ends exactly")
  t.equal(pg.ones_like(pg.zeros { 2, dtype = "int64" }).dtype, "int64")
  t.equal(pg.full_like(pg.zeros { 2 }, 3), { 3, 3 })
  t.equal(pg.zeros { 2, 0 }:numel(), 0)
  t.equal(pg.tensor { 1, 2, dtype = "bfloat16" }, { 1, 2 })
  t.equal(pg.tensor { 0.5, dtype = "float16" }.dtype, "float16")
end)

test("random numbers", function(t)
  pg.manual_seed(3)
  local a, b = pg.rand { 100 }, pg.randn { 100 }
  t.ok(a:ge(0):all():item() and a:lt(1):all():item())
  t.ok(not pg.equal(a, b))
  pg.manual_seed(3)
  t.ok(pg.equal(pg.rand { 100 }, a))
  local r = pg.randint(2, 5, { 50 })
  t.equal(r.dtype, "int64")
  t.ok(r:ge(2):all():item() and r:lt(5):all():item())
  t.equal(pg.randint(3, { 4 }).shape, { 4 })
  local p = pg.randperm(8):totable()
  table.sort(p)
  t.equal(p, { 0, 1, 2, 3, 4, 5, 6, 7 })
end)

test("arithmetic and numbers", function(t)
  local a, b = pg.tensor { 1, 2 }, pg.tensor { 3, 5 }
  t.equal(a + b, { 4, 7 })
  t.equal(a - b, { -2, -3 })
  t.equal(a * b, { 3, 10 })
  t.equal(b / a, { 3, 2.5 })
  t.equal(b ^ 2, { 9, 25 })
  t.equal(b % 2, { 1, 1 })
  t.equal(-a, { -1, -2 })
  t.equal(2 - a, { 1, 0 })
  t.equal(2 / a, { 2, 1 })
  t.equal(2 ^ a, { 2, 4 })
  local i = pg.tensor { 7, 8, dtype = "int64" }
  t.equal((i + 1).dtype, "int64")
  t.equal((i + 0.5).dtype, "float32")
  t.equal((i / 2).dtype, "float32")
end)

test("in place", function(t)
  local a = pg.tensor { 1, 2 }
  local same = a:add_(pg.tensor { 10, 20 })
  t.ok(rawequal(same, a))
  t.equal(a, { 11, 22 })
  a:mul_(2)
  t.equal(a, { 22, 44 })
  a:fill_(3)
  t.equal(a, { 3, 3 })
  a:zero_()
  t.equal(a, { 0, 0 })
  a:copy_(pg.tensor { 5, 6 })
  t.equal(a, { 5, 6 })
  local b = a:add(1)
  t.equal(a, { 5, 6 })
  t.equal(b, { 6, 7 })
end)

test("comparison: methods, identity, order", function(t)
  local a, b = pg.tensor { 1, 2 }, pg.tensor { 1, 3 }
  t.equal(a:eq(b), { true, false })
  t.equal(a:lt(b), { false, true })
  t.ok(a == a and a ~= b and a ~= pg.tensor { 1, 2 }) -- lint: ignore
  t.raises(function() return a < b end, "a:lt%(b%)")
  t.raises(function() return a <= b end, "a:le%(b%)")
  t.ok(pg.equal(a, pg.tensor { 1, 2 }) and not pg.equal(a, b))
  t.ok(pg.allclose(a, a + 1e-9) and not pg.allclose(a, b))
end)

test("shape, dtype, length", function(t)
  local x = pg.zeros { 2, 3 }
  t.ok(x.shape == pg.ones { 2, 3 }.shape)
  t.ok(x.shape ~= pg.ones { 3, 2 }.shape)
  t.equal(tostring(x.shape), "{2, 3}")
  t.ok(x:has_shape { 2, 3 } and not x:has_shape { 2 })
  t.equal(#x, 2)
  t.equal(x:dim(), 2)
  t.equal(x:numel(), 6)
  t.raises(function() return #pg.tensor(1) end, "0%-dim")
  x.shape[1] = 9
  t.equal(x.shape[1], 2)
end)

test("item, totable, int64", function(t)
  local big = pg.tensor { 9007199254740993LL, dtype = "int64" }
  t.raises(function() big:item() end, "item_int64")
  t.ok(big:item_int64() == 9007199254740993LL)
  t.raises(function() pg.zeros { 2 }:item() end, "one element")
  t.equal(pg.tensor { { 1 }, { 2 } }:totable(), { { 1 }, { 2 } })
  t.equal(pg.indices { 1, 3 }, { 0, 2 })
  t.equal(pg.indices(1, 3):positions(), { 1, 3 })
end)

-- A double with such bits is no number to LuaJIT but nil, a boolean, an address.
test("a NaN of any bits is a number", function(t)
  local path = os.tmpname() .. ".npy"
  local function stored(kind, bytes)
    local head = ("{'descr': '%s', 'fortran_order': False, 'shape': (3,), }"):format(kind)
    head = head .. (" "):rep(117 - #head) .. "\n"
    local file = assert(io.open(path, "wb"))
    file:write("\147NUMPY\1\0", string.char(#head, 0), head, bytes)
    file:close()
    return pg.load_npy(path)
  end
  local ones, odd = ("\255"):rep(7), "\1\0\0\0\0\0"
  for kind, bytes in pairs { ["<f8"] = ones .. "\255" .. odd .. "\250\255" .. "\0\0\0\0\0\0\240\127",
                             ["<f4"] = "\255\255\255\255" .. "\1\0\254\255" .. "\0\0\128\127",
                             ["<f2"] = "\255\255" .. "\1\254" .. "\0\124" } do
    local x = stored(kind, bytes)
    for _, y in ipairs { x, x:to("bfloat16") } do
      local list = y:totable()
      for i = 1, 2 do
        t.ok(type(list[i]) == "number" and list[i] ~= list[i], y.dtype)
        t.ok(type(y[i]:item()) == "number")
      end
      t.ok(list[3] == math.huge, "infinity stays")
      t.ok(tostring(y):find("nan, nan, inf", 1, true))
    end
  end
  os.remove(path)
end)

test("views", function(t)
  local x = pg.arange(24):reshape(2, 3, 4)
  t.equal(x:transpose(1, 3).shape, { 4, 3, 2 })
  t.equal(x:permute(3, 1, 2).shape, { 4, 2, 3 })
  t.equal(x:permute { 3, 1, 2 }.shape, { 4, 2, 3 })
  t.equal(x:view(6, -1).shape, { 6, 4 })
  t.equal(x:flatten().shape, { 24 })
  t.equal(x:flatten(2).shape, { 2, 12 })
  t.equal(x:flatten { first = 1, last = 2 }.shape, { 6, 4 })
  t.equal(x:movedim(1, -1).shape, { 3, 4, 2 })
  t.equal(x:movedim({ 1, 2 }, { 2, 1 }).shape, { 3, 2, 4 })
  t.equal(x:unsqueeze(1).shape, { 1, 2, 3, 4 })
  t.equal(x:unsqueeze(4).shape, { 2, 3, 4, 1 })
  t.equal(x:unsqueeze(-1).shape, { 2, 3, 4, 1 })
  t.equal(x:unsqueeze(2):squeeze(2).shape, { 2, 3, 4 })
  t.equal(x:select(2, 3), { { 8, 9, 10, 11 }, { 20, 21, 22, 23 } })
  t.equal(x:narrow(3, 2, 2)[1][1], { 1, 2 })
  t.equal(#x:chunk(2, 3), 2)
  t.equal(x:split(3, 3)[2].shape, { 2, 3, 1 })
  t.equal(x:split({ 1, 3 }, 3)[2].shape, { 2, 3, 3 })
  t.equal(pg.stack({ x, x }, 2).shape, { 2, 2, 3, 4 })
  t.equal(pg.zeros { 1, 3 }:expand(2, 3).shape, { 2, 3 })
  t.equal(pg.arange(6):reshape(2, 3):t(), { { 0, 3 }, { 1, 4 }, { 2, 5 } })
  local rows = {}
  for i, row in pg.arange(4):reshape(2, 2):rows() do rows[i] = row:totable() end
  t.equal(rows, { { 0, 1 }, { 2, 3 } })
end)

test("max and min", function(t)
  local x = pg.tensor { { 1, 9, 3 }, { 7, 2, 8 } }
  t.equal(x:max(), 9)
  local values, at = x:max(2)
  t.equal(values, { 9, 8 })
  t.equal(at, { 1, 2 })
  values, at = x:min { axis = 1, keepdim = true }
  t.equal(values, { { 1, 2, 3 } })
  t.equal(at, { { 0, 1, 0 } })
  t.equal(x:max(pg.full({ 2, 3 }, 5)), { { 5, 9, 5 }, { 7, 5, 8 } })
  t.equal(x:argmax(), 1)
  t.equal(x:argmax { axis = -1 }, { 1, 2 })
  t.equal(pg.where(x:gt(5), x, 0), { { 0, 9, 0 }, { 7, 0, 8 } })
end)

test("printing", function(t)
  if t.device and t.device ~= "cpu" then t.skip("prints its device elsewhere") end
  t.equal(tostring(pg.tensor { 1, 2 }), "tensor([1., 2.])")
  t.equal(tostring(pg.tensor { 1.5, -2 }), "tensor([ 1.5, -2.0])")
  t.equal(tostring(pg.tensor { { 1, 20 }, { 3, 4 }, dtype = "int64" }), "tensor([[ 1, 20],\n        [ 3,  4]])")
  t.equal(tostring(pg.tensor { true, false }), "tensor([ true, false])")
  t.equal(tostring(pg.tensor(3)), "tensor(3.)")
  t.equal(tostring(pg.zeros { 0, 3 }), "tensor([], shape={0, 3}, dtype=float32)")
  t.equal(tostring(pg.tensor { 1, dtype = "float64" }), "tensor([1.], dtype=float64)")
  t.ok(tostring(pg.tensor { 1e-8, 1 }):find("1.e-08", 1, true))
  t.ok(tostring(pg.arange(10000)):find("9997, 9998, 9999", 1, true))
  t.ok(tostring(pg.arange(10000)):find("...", 1, true))
  t.ok(tostring(pg.tensor { 0 / 0, 1 / 0 }):find("nan, inf", 1, true))
end)

test("gradients", function(t)
  local w = pg.tensor({ 1, 2, 3 }, { requires_grad = true })
  local loss = (w * 2):pow(2):sum()
  loss:backward()
  t.equal(w.grad, { 8, 16, 24 })
  t.ok(w.grad == w.grad, "the same object at every read")
  local keyed = { [w.grad] = true }
  t.ok(keyed[w.grad])
  local x = pg.tensor({ 3 }, { requires_grad = true })
  local first = pg.grad((x * x * x):sum(), { x }, { create_graph = true })
  t.equal(first, { 27 })
  t.equal(pg.grad(first:sum(), { x }), { 18 })
  t.ok(not pg.no_grad(function() return (x * 2).requires_grad end))
  t.ok(pg.is_grad_enabled())
  t.ok(pg.gradcheck(function(a, b) return (a * b):sum() end, { pg.tensor { 1, 2 }, pg.tensor { 3, 4 } }))
  t.equal(pg.tape(function(tape) return tape:gradient((x * 5):sum(), { x })[1] end), { 5 })
  local other = pg.tensor({ 1 }, { requires_grad = true })
  t.raises(function() pg.grad((x * 2):sum(), { other }) end, "do not depend on input 1")
end)

test("a list of numbers is read as one, and what only looks like it is not", function(t)
  t.equal(pg.tensor({ 1, 2.5, -3 }):totable(), { 1, 2.5, -3 })
  t.equal(pg.tensor { 7, dtype = "uint8" }:totable(), { 7 })
  t.equal(pg.tensor({}).shape, pg.zeros(0).shape)
  t.equal(pg.tensor({ 2, 9007199254740993LL }, { dtype = "int64" })[2]:sub(9007199254740992LL):item(), 1)
  t.equal(pg.tensor({ true, false }).dtype, "bool")
  t.raises(function() pg.tensor({ 1, 2, [4] = 3 }) end, "has a hole")
  t.raises(function() pg.tensor({ 1, [2.5] = 2, [3] = 3 }) end, "data")
  t.raises(function() pg.tensor({ 1, "a" }) end, "must be a number or a boolean")
  t.raises(function() pg.tensor({ 1, true }) end, "mixed")
  t.raises(function() pg.tensor({ 1.5 }, { dtype = "int32" }) end, "cannot hold 1.5")
  t.raises(function() pg.tensor({ 1, { 2 } }) end, "data")
end)
