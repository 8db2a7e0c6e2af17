-- SPDX-License-Identifier: Apache-2.0
-- Sequences in rows of one length (data.text.pack), and batches of about one length (bucket_by_length).

local pg = require "perigee"
local data = pg.data

local function rows_of(ds, field)
  local rows = {}
  for i = 1, #ds do rows[i] = ds[i][field or "ids"]:totable() end
  return rows
end

test("pack lays sequences end to end", function(t)
  local list = { { 1, 2, 3 }, pg.tensor({ 4, 5 }, { dtype = "int32" }), {}, pg.tensor({ 6 }, { dtype = "uint8" }) }
  t.equal(rows_of(data.text.pack(list, 2)), { { 1, 2 }, { 3, 4 }, { 5, 6 } })
  t.equal(rows_of(data.text.pack(list, 4)), { { 1, 2, 3, 4 } }, "what does not fill a row is left out")
  t.equal(rows_of(data.text.pack(list, 4, { pad = -1 })), { { 1, 2, 3, 4 }, { 5, 6, -1, -1 } })
  local full = data.text.pack { sequences = list, length = 4, separator = 0, pad = -1, segments = true }
  t.equal(rows_of(full), { { 1, 2, 3, 0 }, { 4, 5, 0, 0 }, { 6, 0, -1, -1 } })
  t.equal(rows_of(full, "segments"), { { 1, 1, 1, 1 }, { 1, 1, 1, 2 }, { 1, 1, 0, 0 } })
  t.equal(full[1].ids.dtype, "int64")
  t.equal(#data.text.pack({}, 4), 0)
  t.equal(#data.text.pack({ {}, {} }, 4, { pad = 0, segments = true }), 0)
  t.equal(rows_of(data.text.pack({ {}, {} }, 2, { separator = 7 })), { { 7, 7 } })
  local samples = data.from_index { 3, function(i) return { words = pg.full({ i }, i, { dtype = "int64" }) } end }
  t.equal(rows_of(data.text.pack(samples, 3, { field = "words" })), { { 1, 2, 2 }, { 3, 3, 3 } })
  -- More than one call of cat takes.
  local many, expected = {}, {}
  for i = 1, 2500 do many[i] = { i } end
  for i = 1, 25 do expected[i] = pg.arange((i - 1) * 100 + 1, i * 100 + 1, { dtype = "int64" }):totable() end
  t.equal(rows_of(data.text.pack(many, 100)), expected)
  -- Threads can read it.
  local count = 0
  for _, batch in data.text.pack(many, 100):batch(5):prefetch(2):each() do count = count + batch.ids:numel() end
  t.equal(count, 2500)
end)

test("pack says which sequence is wrong", function(t)
  local function fails(text, ...)
    local arguments, n = { ... }, select("#", ...)
    t.raises(function() data.text.pack(unpack(arguments, 1, n)) end, text)
  end
  fails("data.text.pack: sequence 2 must be a list or a tensor of ids, got tensor float32", { { 1 }, pg.ones { 2 } }, 2)
  fails("sequence 1 must be a list or a tensor of ids, got tensor int64 {2, 2}",
        { pg.ones({ 2, 2 }, { dtype = "int64" }) }, 2)
  fails("sequence 1: ", { { "a" } }, 2)
  fails("sequence 1 must be a list or a tensor of ids, got string \"abc\"", { "abc" }, 2)
  fails("sequences must be a list or a dataset, got number 3", 3, 2)
  fails("length must be at least 1, got 0", { { 1 } }, 0)
  fails("sample 1 has no \"ids\"", data.range(3), 2)
end)

local function lengths(n)
  return data.from_index { n, function(i)
    local length = i * 7 % n + 1
    return { ids = pg.full({ length }, length, { dtype = "int64" }), i = i }
  end }
end

test("bucket_by_length", function(t)
  local options = { "ids", boundaries = { 5, 10 }, size = { 4, 3, 2 }, pad = { ids = 0 }, seed = 3 }
  local ds = lengths(20):bucket_by_length(options)
  t.equal(#ds, 2 + 2 + 5)
  local orders = {}
  for epoch = 1, 2 do
    local seen, count, order = {}, 0, {}
    for step, batch in ds:each() do
      local shortest, longest = batch.ids:max { axis = 2 }:min():item(), batch.ids:size(2)
      local bucket = longest <= 5 and 1 or longest <= 10 and 2 or 3
      t.ok(shortest > ({ 0, 5, 10 })[bucket], ("epoch %d: %d to %d in one batch"):format(epoch, shortest, longest))
      t.ok(batch.ids:size(1) <= options.size[bucket])
      for k, i in ipairs(batch.i:totable()) do
        seen[i], count = true, count + 1
        t.equal(batch.ids[k]:gt(0):sum():item(), i * 7 % 20 + 1, "padded behind its end")
      end
      order[step] = batch.i:totable()
    end
    t.equal({ count, #seen }, { 20, 20 })
    orders[epoch] = order
  end
  local again, first = lengths(20):bucket_by_length(options), {}
  for step, batch in again:each() do first[step] = batch.i:totable() end
  t.equal(first, orders[1], "(seed, epoch) alone tells the order")
  local one, two = pg.json.encode(orders[1]), pg.json.encode(orders[2])
  t.ok(one ~= two, "an epoch has an order of its own")

  -- Going on from the middle of an epoch.
  local iterator = again:each()
  iterator() iterator()
  local state, rest = iterator:state(), {}
  for _, batch in iterator do rest[#rest + 1] = batch.i:totable() end
  local resumed = {}
  for _, batch in lengths(20):bucket_by_length(options):each { from = state } do
    resumed[#resumed + 1] = batch.i:totable()
  end
  t.equal(resumed, rest)

  local function by_number(sample) return sample.i end
  local plain = lengths(7):bucket_by_length { by_number, boundaries = { 3 }, size = 2, pad = { ids = 0 },
                                              shuffle = false }
  local listed = {}
  for step, batch in plain:each() do listed[step] = batch.i:totable() end
  t.equal(listed, { { 1, 2 }, { 3 }, { 4, 5 }, { 6, 7 } })
  t.equal(#lengths(7):bucket_by_length { by_number, boundaries = { 3 }, size = 2, drop_last = true }, 3)
  t.equal(#lengths(7):take(0):bucket_by_length { "ids", boundaries = { 3 }, size = 2 }, 0)
  local words = data.from_index { 2, function(i) return { text = ("ab"):rep(i), list = { i } } end }
  t.equal(#words:bucket_by_length { "text", boundaries = { 2 }, size = 8 }, 2)
  t.equal(#words:bucket_by_length { "list", boundaries = { 2 }, size = 8 }, 1)
end)

test("bucket_by_length: what is asked for wrongly", function(t)
  local ds = lengths(4)
  local function fails(text, o) t.raises(function() ds:bucket_by_length(o) end, text) end
  fails("bucket_by_length: needs boundaries", { "ids", boundaries = {}, size = 2 })
  fails("boundary 2 must be an integer above 5, got number 5", { "ids", boundaries = { 5, 5 }, size = 2 })
  fails("boundary 1 must be an integer above 0, got number 0.5", { "ids", boundaries = { 0.5 }, size = 2 })
  fails("size has 1 counts, and there are 2 buckets", { "ids", boundaries = { 5 }, size = { 2 } })
  fails("size must be a count of 1 or more, or a list of them, got number 0", { "ids", boundaries = { 5 }, size = 0 })
  fails("sample 1 has no \"words\"", { "words", boundaries = { 5 }, size = 2 })
  fails("i of sample 1 is number 1, which has no length", { "i", boundaries = { 5 }, size = 2 })
  fails("by must be a field's name or a function, got number 3", { 3, boundaries = { 5 }, size = 2 })
  fails("the function must return a length, got nil of sample 1",
        { function() end, boundaries = { 5 }, size = 2 })
  t.raises(function() data.range(4):prefetch(2):bucket_by_length { "value", boundaries = { 5 }, size = 2 } end,
           "on the script's thread, and stages before it run on workers")
  local mixed = ds:bucket_by_length { "ids", boundaries = { 9 }, size = 2, shuffle = false }
  t.raises(function() return mixed[1] end, "ids of sample 2 is .* but of sample 1 it is")
end)
