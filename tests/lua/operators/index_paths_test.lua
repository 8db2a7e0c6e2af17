-- SPDX-License-Identifier: Apache-2.0
-- A device has several ways to index, chosen by size, width and alignment: each of them gives what the CPU gives, and
-- the same bits every time. Sums are of small whole numbers, which are exact in any order.

local here = debug.getinfo(1, "S").source:match("^@(.*)operators/[^/]*$") or "../"
package.path = here .. "../?.lua;" .. here .. "../?/init.lua;" .. package.path

local pg = require "perigee"
local check = require "cases.check"

local DEVICE = pg.device() ~= "cpu" and pg.device() or "sim:0"
local floats = { "float32", "float64", "bfloat16", "float16" }

-- fn on the CPU and on the device, over copies of the tensors there; results are compared one by one, exactly unless a
-- class of tolerances is named.
local function agree_within(class, what, fn, ...)
  local moved = {}
  for i, t in ipairs { ... } do moved[i] = t:to(DEVICE) end
  local want, got = { pg.device("cpu", fn, ...) }, { pg.device(DEVICE, fn, unpack(moved)) }
  for i, y in ipairs(got) do
    if y:numel() > 0 and (y.device ~= DEVICE or want[i].device ~= "cpu") then error("on the wrong device", 0) end
    check.compare(y, check.array(want[i]), class, want[i].dtype, ("%s, result %d"):format(what, i))
  end
end
local function agree(...) agree_within("exact", ...) end
local function on_cpu(fn) return pg.device("cpu", fn) end
local function whole(shape, low, high, dtype)
  return on_cpu(function() return pg.randint(low, high, shape):to(dtype or "int64") end)
end
local function each(list, fn) for _, v in ipairs(list) do fn(v) end end

---- sums by index: many entries for few rows, few for many, and runs of one row that are long

each({ { 5000, 10, 2000 }, { 70000, 1, 4097 }, { 3, 70, 33000 }, { 2500, 33, 1000 } }, function(sizes)
  local rows, width, entries = unpack(sizes)
  test(("index_paths/index_select_grad/%dx%d by %d"):format(unpack(sizes)), function()
    pg.manual_seed(1)
    local index = whole({ entries }, 0, rows, "int32")
    each({ "float32", "float64", "bfloat16", "int64", "int32", "int8" }, function(dtype)
      -- in 16 bits sums stay below 256
      local dy = whole({ entries, width }, 0, dtype == "bfloat16" and rows < 100 and 1 or 3, dtype)
      local x = on_cpu(function() return pg.zeros { rows, width, dtype = dtype } end)
      agree(dtype, function(d, i, like) return pg.index_select_grad(d, i, like, { axis = 1 }) end, dy, index, x)
      if dtype:find "float" then
        agree(dtype, function(d, i, like) return pg.embedding_grad(d, i, like, { padding_idx = 2 }) end, dy, index, x)
      end
    end)
  end)
end)

---- written and folded in by index: runs that are long, places that nothing comes to, and the operand itself

each({ { { 7 }, { 20000 }, 1 }, { { 30, 50 }, { 30, 4000 }, 2 }, { { 9000, 3 }, { 5000, 2 }, 1 } }, function(case)
  local x_shape, shape, axis = unpack(case)
  test("index_paths/scatter/" .. table.concat(x_shape, "x") .. " by " .. table.concat(shape, "x"), function()
    pg.manual_seed(6)
    local index = whole(shape, 0, math.max(1, x_shape[axis] - 2), "int32")
    each({ "float32", "float64", "bfloat16", "int64", "int8", "bool" }, function(dtype)
      local x, src = whole(x_shape, 0, 3, dtype), whole(shape, 0, dtype == "bfloat16" and 1 or 3, dtype)
      agree(dtype, function(a, i, b) return pg.scatter(a, i, b, { axis = axis }) end, x, index, src)
      agree(dtype, function(a, i, b) return pg.scatter_add(a, i, b, { axis = axis }) end, x, index, src)
      each({ "sum", "mean", "amax", "amin" }, function(how)
        each({ true, false }, function(with_self)
          local o = { axis = axis, reduce = how, include_self = with_self }
          agree(dtype .. " " .. how, function(a, i, b) return pg.scatter_reduce(a, i, b, o) end, x, index, src)
        end)
      end)
      local signs = dtype == "bool" and src or src:clamp(0, 1) * 2 - 1
      agree(dtype .. " prod", function(a, i, b)
        return pg.scatter_reduce(a, i, b, { axis = axis, reduce = "prod" })
      end, x, index, signs)
    end)
  end)
end)

test("index_paths/scatter/what is written is read before; out of range nothing is written", function(t)
  pg.device(DEVICE, function()
    local x, index = pg.arange(6):to "float32", pg.tensor({ 5, 4, 3, 2, 1, 0 }, { dtype = "int64" })
    x:scatter_(index, x, { axis = 1 })
    t.equal(x:totable(), { 5, 4, 3, 2, 1, 0 })
    x:scatter_add_(index, x, { axis = 1 })
    t.equal(x:totable(), { 5, 5, 5, 5, 5, 5 })
    local y = pg.zeros { 3, 4 }
    y:transpose(1, 2):scatter_(pg.tensor({ { 1, 2, 0 } }, { dtype = "int64" }), pg.ones { 1, 3 }, { axis = 1 })
    t.equal(y:totable(), { { 0, 1, 0, 0 }, { 0, 0, 1, 0 }, { 1, 0, 0, 0 } })
    local z = pg.zeros { 3 }
    t.raises(function()
      z:scatter_(pg.tensor({ 0, 3 }, { dtype = "int64" }), pg.ones { 2 }, { axis = 1 })
      z:totable()
    end, "index 3 at position %[2%]")
    t.equal(z:totable(), { 0, 0, 0 })
  end)
end)

test("index_paths/index_select_grad/the same bits each time, also through strides", function(t)
  pg.manual_seed(2)
  local dy = on_cpu(function() return pg.rand { 7, 9, 2500 } end)
  local index = whole({ 5000 }, 0, 3000)
  pg.device(DEVICE, function()
    local d, i, x = dy:to(DEVICE):transpose(2, 3), index:to(DEVICE)[{ { 1, 5000, 2 } }], pg.zeros { 7, 3000, 9 }
    local first = pg.index_select_grad(d, i, x, { axis = 2 })
    local want = on_cpu(function()
      return pg.index_select_grad(dy:transpose(2, 3), index[{ { 1, 5000, 2 } }], pg.zeros { 7, 3000, 9 }, { axis = 2 })
    end)
    t.equal((first:to("cpu") - want):abs():amax():item() < 1e-5, true)
    for _ = 1, 3 do check.same(pg.index_select_grad(d, i, x, { axis = 2 }), first, "again") end
  end)
end)

each({ { { 40, 3000 }, { 40, 3000 }, 2 }, { { 3000, 40 }, { 2500, 33 }, 1 }, { { 200000 }, { 5000 }, 1 },
  { { 50, 4, 70 }, { 49, 2, 69 }, 2 } }, function(case)
  local x_shape, shape, axis = unpack(case)
  test("index_paths/gather/" .. table.concat(x_shape, "x") .. " by " .. table.concat(shape, "x"), function()
    pg.manual_seed(3)
    local index = whole(shape, 0, x_shape[axis])
    each(floats, function(dtype)
      local dy, x = whole(shape, 0, 3, dtype), whole(x_shape, -9, 9, dtype)
      agree(dtype, function(d, i, like)
        return pg.gather(like, i, { axis = axis }), pg.gather_grad(d, i, like, { axis = axis })
      end, dy, index, x)
    end)
  end)
end)

---- rows of every width and alignment

each({ "float32", "float64", "bfloat16", "int8", "bool" }, function(dtype)
  test("index_paths/rows/" .. dtype, function()
    pg.manual_seed(4)
    local index = whole({ 41 }, 0, 20)
    each({ 1, 2, 3, 4, 8, 16, 17, 32, 65 }, function(width)
      local what = ("%s, %d wide"):format(dtype, width)
      agree(what, function(x, i)
        local moved, turned = x[{ {}, { 2, width + 1 } }], x:transpose(1, 2)
        return pg.index_select(x, i, { axis = 1 }), pg.index_select(moved, i, { axis = 1 }),
          pg.index_select(turned, i, { axis = 2 }), pg.index_select(moved, i % width, { axis = 2 })
      end, whole({ 20, width + 3 }, 0, 5, dtype), index)
      agree(what, function(x)
        local moved, few = x[{ {}, { 2, width + 1 } }], x[{ { 2, 9 } }][{ {}, { 1, width } }]
        return pg.cat({ moved, few, moved }, { axis = 1 }), pg.cat({ x, moved, moved, x }, { axis = 2 }),
          pg.cat({ x, x, x, x, x, x, x, x, x, moved }, { axis = 2 }), pg.cat({ x:t(), moved:t() }, { axis = 1 })
      end, whole({ 20, width + 3 }, 0, 5, dtype))
    end)
  end)
end)

---- placing: around a block's number of elements, and far beyond

each({ 0, 1, 31, 33, 256, 2047, 2048, 2049, 4096, 70001 }, function(length)
  test("index_paths/placing/" .. length, function()
    pg.manual_seed(5)
    local mask = whole({ length }, 0, 2, "bool")
    each({ "float32", "float16", "float64", "int8", "bool" }, function(dtype)
      local x = whole({ length }, dtype == "bool" and 0 or -1, 2, dtype)
      agree(dtype, function(a, m)
        local chosen = pg.masked_select(a, m)
        return pg.nonzero(a), chosen, pg.masked_select_grad(chosen, m, a)
      end, x, mask)
    end)
  end)
end)
test("index_paths/placing/strided and broadcast", function()
  pg.manual_seed(6)
  agree("turned", function(x, m)
    local a = x:transpose(1, 3)
    local chosen = pg.masked_select(a, m)
    return pg.nonzero(a), chosen, pg.masked_select_grad(chosen, m, a)
  end, whole({ 37, 41, 43 }, -1, 2, "float32"), whole({ 41, 1 }, 0, 2, "bool"))
end)

---- planes: small, wide, high, overlapping, and indices that no window would give

each({ { { 2, 3, 13, 17 }, { kernel = 3, stride = 2, padding = 1 } }, { { 1, 2, 40, 70 }, { kernel = 2 } },
  { { 3, 1, 9, 9 }, { kernel = { 5, 3 }, stride = 1, padding = { 2, 1 } } },
  { { 1, 1, 200, 210 }, { kernel = 3, stride = 2, padding = 1 } }, { { 2, 2, 7, 7 }, { kernel = 7 } },
  { { 2, 2, 30, 31 }, { kernel = 3, stride = 2, ceil_mode = true } }, { { 1, 1, 5000, 6 }, { kernel = 3 } },
  { { 1, 1, 4, 9000 }, { kernel = 2 } } }, function(case)
  local shape, attrs = unpack(case)
  test("index_paths/pooling/" .. table.concat(shape, "x") .. " " .. tostring(attrs.stride or ""), function()
    pg.manual_seed(7)
    each(floats, function(dtype)
      agree(dtype, function(x)
        x.requires_grad = true
        local y = pg.max_pool2d(x, attrs)
        y:sum():backward()
        return y:detach(), x.grad
      end, whole(shape, -100, 100, dtype))
      agree_within("sum", dtype, function(x)
        x.requires_grad = true
        local y = pg.avg_pool2d(x, attrs)
        y:sum():backward()
        return y:detach(), x.grad
      end, whole(shape, -4, 5, dtype))
    end)
  end)
end)
test("index_paths/pooling/any indices", function()
  pg.manual_seed(8)
  local index, dy = whole({ 2, 3, 9, 11 }, 0, 400), whole({ 2, 3, 9, 11 }, 0, 5, "float32")
  agree("any", function(d, i, x)
    return pg.max_pool2d_grad(d, i, x), pg.max_pool2d_gather(x, i), pg.max_pool2d_gather(x:transpose(3, 4), i)
  end, dy, index, whole({ 2, 3, 20, 20 }, -9, 9, "float32"))
end)

---- what is out of range

test("index_paths/faults/the first position is named, and the device goes on", function(t)
  pg.device(DEVICE, function()
    local index = pg.full({ 5000 }, 4999, { dtype = "int64" })
    index[{ { 3001, 5000 } }] = 5000
    local dy, x = pg.ones { 5000, 20 }, pg.ones { 5000, 20 }
    t.raises(function()
      pg.index_select_grad(dy, index, x, { axis = 1 })
      pg.synchronize(DEVICE)
    end, "index 5000 at ")
    t.equal((x + 1):sum():item(), 200000)
  end)
end)
