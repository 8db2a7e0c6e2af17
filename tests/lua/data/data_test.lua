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
