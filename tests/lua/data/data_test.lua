-- SPDX-License-Identifier: Apache-2.0
-- Pipelines: what may be batched, parts that stay apart, and what is refused.

local pg = require "perigee"
local data = pg.data

local function samples(...)
  local list = { ... }
  return data.from_index { #list, function(i) return list[i] end }
end

local function numbers(ds)
  local list = {}
  for _, s in ds:each() do list[#list + 1] = s.value end
  return list
end

test("parts of a split stay apart in every epoch", function(t)
  local train, test_part = data.range(10):shuffle { seed = 1 }:split { 0.8, 0.2 }
  t.equal({ #train, #test_part }, { 8, 2 })
  local first = numbers(train)
  local seen = {}
  for _, value in ipairs(first) do seen[value] = true end
  for _ = 1, 5 do
    t.equal(numbers(train), first)
    for _, value in ipairs(numbers(test_part)) do t.ok(not seen[value]) end
  end
  local orders, again = {}, train:shuffle { seed = 2 } -- behind the split: an order an epoch
  for epoch = 1, 3 do
    local list = numbers(again)
    orders[epoch] = table.concat(list, " ")
    for _, value in ipairs(list) do t.ok(seen[value]) end
  end
  t.ok(orders[1] ~= orders[2] or orders[2] ~= orders[3])
  local a = data.range(10):batch(2):split { 0.5 }
  t.equal({ #a, a.batched }, { 3, true })
end)

test("samples that are numbers or tensors are batched too", function(t)
  t.equal(samples(1, 2, 3):batch(2)[1]:totable(), { 1, 2 })
  t.equal(samples(true, false):batch(2)[1]:totable(), { true, false })
  t.ok(samples(pg.ones { 3 }, pg.zeros { 3 }):batch(2)[1]:has_shape { 2, 3 })
  t.equal(samples("a", "b"):batch(2)[1], { "a", "b" })
  local nested = samples({ x = { a = pg.ones { 2 }, n = 1 }, ids = { 1, 2 } }, { x = { a = pg.ones { 2 }, n = 2 },
                         ids = { 3 } }):batch(2)[1]
  t.ok(nested.x.a:has_shape { 2, 2 })
  t.equal(nested.x.n:totable(), { 1, 2 })
  t.equal(nested.ids, { { 1, 2 }, { 3 } }) -- lists may be of different lengths
  local pair = samples({ pg.ones { 2 }, 3 }, { pg.ones { 2 }, 4 }):batch(2)[1]
  t.ok(pair[1]:has_shape { 2, 2 } and pair[2]:has_shape { 2 })
end)

test("what cannot be batched is told by field and sample", function(t)
  local function refused(ds, text) t.raises(function() return ds:batch(2)[2] end, text) end
  local one = { x = pg.ones { 1 } }
  refused(samples(one, one, one, { x = pg.ones { 4 } }), "batch: x of sample 4 is tensor float32 {4}, but of sample 3")
  refused(samples(one, one, one, { x = 3 }), "x of sample 4 is number 3, but of sample 3 it is tensor float32 {1}")
  refused(samples(one, one, one, {}), 'sample 4 has no "x", unlike sample 3')
  refused(samples(one, one, { x = one }, { x = {} }), "x of sample 4 is a table, but of sample 3 .* a table with names")
  refused(samples(one, one, { x = one }, { x = { y = 1 } }), 'sample 4 has no "x.x"')
  refused(samples(1, 2, 3, pg.ones { 2 }), "sample 4 is tensor")
  refused(data.from_index { 4, function(i) if i < 4 then return i end end }, "get%(4%) returned nil")
end)

test("fields that pad names are filled to the largest of their batch", function(t)
  local function of(...)
    local list = {}
    for i, n in ipairs { ... } do list[i] = { x = pg.full({ n }, i), n = n } end
    return samples(unpack(list))
  end
  local ds = of(2, 3, 0, 1, 2):batch { 2, pad = { x = -1 } }
  local seen = {}
  for step, b in ds:each() do seen[step] = { b.x:totable(), b.n:totable() } end
  t.equal(seen, {
    { { { 1, 1, -1 }, { 2, 2, 2 } }, { 2, 3 } }, { { { -1 }, { 4 } }, { 0, 1 } }, { { { 5, 5 } }, { 2 } } })
  t.equal(#of(2, 3, 4):batch { 2, drop_last = true, pad = { x = 0 } }, 1)
  local again = {}
  for _, b in ds:each { from = { epoch = 1, position = 2, size = 3 } } do again[#again + 1] = b.x:totable() end
  t.equal(again, { { { 5, 5 } } })
  local plane = samples({ x = pg.ones { 1, 3 } }, { x = pg.ones { 2, 1 } }):batch { 2, pad = { x = 0 } }[1].x
  t.equal(plane:totable(), { { { 1, 1, 1 }, { 0, 0, 0 } }, { { 1, 0, 0 }, { 1, 0, 0 } } })
  for _, dtype in ipairs { "bool", "uint8", "int8", "int32", "int64", "float16", "bfloat16", "float32", "float64" } do
    local a, b = pg.ones { 3, dtype = dtype }, pg.ones { 4, dtype = dtype }
    local x = samples({ x = a[{ { 1, 3, 2 } }] }, { x = b }):batch { 2, pad = { x = 0 } }[1].x -- a view
    t.equal({ x.dtype, x:to("float32"):totable() }, { dtype, { { 1, 1, 0, 0 }, { 1, 1, 1, 1 } } })
  end
  local inner = samples({ x = { ids = pg.ones { 1 } } }, { x = { ids = pg.ones { 2 } } })
  t.equal(inner:batch { 2, pad = { ["x.ids"] = 9 } }[1].x.ids:totable(), { { 1, 9 }, { 1, 1 } })
  local pair = of(1, 2):zip(of(1, 2)):batch { 2, pad = { ["1.x"] = 0, ["2.x"] = 5 } }[1]
  t.equal({ pair[1].x:totable(), pair[2].x:totable() }, { { { 1, 0 }, { 2, 2 } }, { { 1, 5 }, { 2, 2 } } })
  local none = samples({ x = pg.tensor(1) }, { x = pg.tensor(2) }):batch { 2, pad = { x = 0 } }[1].x -- no axes
  t.equal(none:totable(), { 1, 2 })
  local slices = data.from_slices { x = pg.ones { 4, 2 } }:shuffle { seed = 1 }:batch { 3, pad = { x = 0 } }
  t.ok(slices[1].x:has_shape { 3, 2 } and slices[2].x:has_shape { 1, 2 })
end)

test("what pad cannot do is told", function(t)
  local ds = samples({ x = pg.ones { 1 }, n = 1 }, { x = pg.ones { 2 }, n = 2 })
  local function refused(pad, text) t.raises(function() return ds:batch { 2, pad = pad }[1] end, text) end
  refused(0, "pad must be a table")
  refused({}, "pad names no field")
  refused({ x = "0" }, "pad of x must be a number or a boolean, got")
  refused({ x = { a = 0 } }, 'pad of x must be a number or a boolean.*pad={%["x.a"%]=0}')
  refused({ x = 0, z = 0 }, 'batch: pad names "z", which is no field of sample 1')
  refused({ x = 0, n = 0 }, "batch: pad names n, which is number 1 in sample 1")
  refused({ x = true }, "pad of x is true, which float32 cannot hold")
  t.raises(function() return ds:batch(2)[1] end, "x of sample 2 is tensor float32 {2}.*or pad them")
  local function held(dtype, value)
    local one = { x = pg.ones { 1, dtype = dtype } }
    return samples(one, { x = pg.ones { 2, dtype = dtype } }):batch { 2, pad = { x = value } }[1].x
  end
  t.raises(function() held("uint8", -1) end, "pad of x is %-1, which uint8 cannot hold")
  t.raises(function() held("int64", 1.5) end, "pad of x is 1.5, which int64 cannot hold")
  t.raises(function() held("bool", 2) end, "pad of x is 2, which bool cannot hold")
  t.equal(held("bool", true):totable(), { { true, true }, { true, true } })
  t.raises(function()
    return samples({ x = pg.ones { 1 } }, { x = pg.ones { 1, 2 } }):batch { 2, pad = { x = 0 } }[1]
  end, "x of sample 2 .*the same number of axes")
  t.raises(function()
    return samples({ x = pg.ones { 1 } }, { x = pg.ones { 2, dtype = "int64" } }):batch { 2, pad = { x = 0.5 } }[1]
  end, "x of sample 2 is tensor int64 {2}, but of sample 1 .*one dtype")
  for _, b in ds:batch { 2, pad = { x = 0 } }:prefetch(2):each() do t.equal(b.x:totable(), { { 1, 0 }, { 1, 1 } }) end
  local slices, count = data.from_slices { x = pg.ones { 4, 2 } }, 0
  for _, b in slices:prefetch(2):batch { 2, pad = { x = 0 } }:each() do
    count = count + 1
    t.ok(b.x:has_shape { 2, 2 })
  end
  t.equal(count, 2)
end)

test("what no stage heeds is refused", function(t)
  local ds = data.range(3)
  t.raises(function() ds:map(3) end, "fn must be a function")
  t.raises(function() data.range(2, 5) end, "too many arguments")
  t.raises(function() data.range(math.huge) end, "whole number")
  t.raises(function() data.range(-1) end, "0 or more")
  t.equal(#data.range { 5 }, 5)
  t.raises(function() ds:take(math.huge) end, "needs a count")
  t.raises(function() data.from_slices({ x = pg.ones { 2 } }, pg.ones { 2 }) end, "and more")
end)

test("each begins only where a state can be", function(t)
  local ds = data.range(10)
  local function refused(from, text) t.raises(function() ds:each { from = from } end, text) end
  refused({ epoch = 1.5, position = 0, size = 10 }, "its epoch is number 1.5")
  refused({ epoch = 1, position = -5, size = 10 }, "its position is number %-5")
  refused({ epoch = 1, position = 11, size = 10 }, "at position 11 of 10")
  refused({ epoch = 1, size = 10 }, "it has no position")
  t.equal(ds:each { from = { epoch = 1, position = 10, size = 10 } }(), nil)
end)

test("elements by position do not draw the order each time", function(t)
  local drawn = require "perigee.data.order"
  local original, count = drawn.shuffled, 0
  drawn.shuffled = function(...) -- luacheck: ignore
    count = count + 1
    return original(...)
  end
  local ds, list = data.range(20):shuffle { seed = 3 }, {}
  for i = 1, #ds do list[i] = ds[i].value end
  local before = count
  t.equal(numbers(ds), list)
  for i = 1, #ds do t.equal(ds[i].value, list[i]) end
  local second = numbers(ds)
  for i = 1, #ds do t.equal(ds[i].value, second[i]) end -- of the epoch that each() has begun
  drawn.shuffled = original -- luacheck: ignore
  t.equal(before, 1)
end)
