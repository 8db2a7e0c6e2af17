-- SPDX-License-Identifier: Apache-2.0
-- data.records: files that others wrote (records/make.py), what we write, and files that are damaged.

local pg = require "perigee"
local framing = require "perigee.events.records"
local protobuf = require "perigee.events.protobuf"
local data = pg.data

local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$" or "."
local example_file = here .. "/records/examples.tfrecord"
local SPEC = { id = "int64", big = "int64", name = "bytes", weights = { "float", shape = { 3 } },
               tokens = { "int64", shape = "any" } }

local function whole(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read "*a"
  file:close()
  return text
end

local function with_file(text, fn)
  local path = os.tmpname()
  local file = assert(io.open(path, "wb"))
  file:write(text)
  file:close()
  local ok, problem = pcall(fn, path)
  os.remove(path)
  if not ok then error(problem, 0) end
end

test("Examples that another package wrote", function(t)
  local ds = data.records { example_file, spec = SPEC }
  t.equal(#ds, 5)
  for i, s in ds:each() do
    t.equal({ s.id.dtype, s.id:item(), s.id:dim() }, { "int64", i - 1, 0 })
    t.equal(s.big:item_int64(), -0x7fffffffffffffffLL - 1 + (i - 1))
    t.equal(s.name, "number " .. (i - 1))
    t.equal({ s.weights.dtype, s.weights[1]:item(), s.weights[2]:item() }, { "float32", i - 0.5, 1 - i })
    t.equal(s.tokens.shape[1], i)
    t.equal(s.tokens[i]:item(), 9 + i)
  end
  t.equal(ds[-1].name, "number 4") -- by position
  t.equal(#data.records(example_file), 5)
  t.equal(#data.records { example_file, example_file, spec = SPEC }, 10)
end)

test("records in pipelines: shuffled, batched, resumed", function(t)
  local spec = { id = "int64", weights = SPEC.weights, name = "bytes" }
  local function make() return data.records { example_file, spec = spec }:shuffle { seed = 3 }:batch(2) end
  local ds, rest = make(), {}
  local pass = ds:each()
  local _, first = pass()
  t.ok(first.id:has_shape { 2 } and first.weights:has_shape { 2, 3 } and #first.name == 2)
  local state = pass:state()
  for _, b in pass do rest[#rest + 1] = b.id:totable() end
  local again = {}
  for _, b in make():each { from = state } do again[#again + 1] = b.id:totable() end
  t.equal(again, rest)
end)

test("what is written is read, bit by bit", function(t)
  local list = {
    { i = pg.tensor({ -1, 0, 127, 128, 2 ^ 40 }, { dtype = "int64" }), f = pg.tensor { 0.1, 1 / 0, -0.0 }, b = "a\0b",
      l = { "x", "" }, e = pg.zeros { 0 }, m = pg.ones { 2, 2 }:t(), u = pg.tensor({ 255 }, { dtype = "uint8" }) } }
  with_file("", function(path)
    t.equal(data.write_records(path, list), { path })
    local s = data.records { path, spec = {
      i = { "int64", shape = { 5 } }, f = { "float32", shape = { 3 } }, b = "bytes", l = { "bytes", shape = "any" },
      e = { "float32", shape = "any" }, m = { "float32", shape = { 2, 2 } }, u = "int64" } }[1]
    t.equal(s.i:totable(), { -1, 0, 127, 128, 2 ^ 40 })
    t.equal(s.f:totable(), list[1].f:totable())
    t.equal({ s.b, s.l, s.e:numel(), s.m:totable(), s.u:item() },
            { "a\0b", { "x", "" }, 0, { { 1, 1 }, { 1, 1 } }, 255 })
    data.write_records(path, { "one", "", ("x"):rep(100000) })
    local raw = data.records(path)
    t.equal({ raw[1].data, raw[2].data, #raw[3].data }, { "one", "", 100000 })
    t.equal(whole(path):sub(1, 19), framing.frame "one")
    data.write_records(path, {})
    t.equal({ #data.records(path), whole(path) }, { 0, "" })
  end)
end)

test("several files by a pattern, with a maximum of records", function(t)
  with_file("", function(path)
    local pattern = path .. "-{00..04}"
    local set = data.range(5):map(function(s) return { v = pg.tensor({ s.value }, { dtype = "int64" }) } end)
    local files = data.write_records { pattern, set, per_file = 2 }
    t.equal(files, { path .. "-00", path .. "-01", path .. "-02" })
    local ds = data.records { path .. "-{00..02}", spec = { v = "int64" } }
    local seen = {}
    for i, s in ds:each() do seen[i] = s.v:item() end
    t.equal(seen, { 0, 1, 2, 3, 4 })
    t.raises(function() data.records(pattern) end, "-03: No such file")
    t.raises(function() data.write_records { path .. "-{0..1}", { "a", "b", "c" }, per_file = 1 } end,
             "more records than 2 files hold")
    t.raises(function() data.write_records(pattern, { "a" }) end, "a pattern needs per_file")
    for _, file in ipairs(files) do os.remove(file) end
    os.remove(path .. "-0")
    os.remove(path .. "-1")
    t.equal(io.open(path .. "-2.part"), nil)
  end)
end)

test("a spec's defaults, and fields that are missing or others", function(t)
  local function read(spec) return data.records { example_file, spec = spec } end
  local s = read { no = { "float", shape = { 2 }, default = 3 }, any = { "int64", shape = "any", default = { 1, 2 } },
                   word = { "bytes", default = "-" } }[2]
  t.equal({ s.no:totable(), s.any:totable(), s.word }, { { 3, 3 }, { 1, 2 }, "-" })
  local function refused(spec, text)
    local err = t.raises(function() return read(spec)[2] end)
    t.equal(err.code, "data_loss")
    t.ok(tostring(err):find(text, 1, true), tostring(err))
  end
  refused({ no = "int64" }, 'examples.tfrecord: record 2 at byte 122: it has no field "no", and spec.no no default')
  refused({ name = "int64" }, 'field "name" is bytes, expected int64')
  refused({ tokens = "int64" }, 'field "tokens" has 2 values, expected 1')
  refused({ weights = { "float", shape = { 2, 2 } } }, 'field "weights" has 3 values, expected 4')
  local function mistaken(spec, text) t.raises(function() read(spec) end, text) end
  mistaken({ x = "int32" }, 'spec.x must have dtype int64, float32 or bytes, got string "int32"')
  mistaken({ x = 3 }, "spec.x must be a dtype or a table")
  mistaken({ x = { "int64", shpe = {} } }, 'spec.x has an unknown option "shpe"')
  mistaken({ x = { "int64", shape = { -1 } } }, "spec.x: shape%[1%] must be a count")
  mistaken({ x = { "int64", default = 0.5 } }, "spec.x: default 1 must be of dtype int64")
  mistaken({ x = { "int64", shape = { 3 }, default = { 1, 2 } } }, "default has 2 values, expected 3")
  t.raises(function() data.records {} end, "path")
  t.raises(function() data.records(3) end, "path must be a string or a list, got number 3")
  t.raises(function() data.records { example_file, on_error = "stop" } end, "on_error must be one of raise, skip")
  t.raises(function() data.write_records("/nowhere/file", { "a" }) end, "/nowhere/file: ")
  with_file("", function(path)
    t.raises(function() data.write_records(path, { { x = 3 } }) end,
             "x of sample 1 must be a tensor, a string or a list of strings, got number 3")
    t.equal(whole(path), "") -- what was there stays
  end)
end)

test("damaged files: file, record and byte are named, or they are skipped and counted", function(t)
  local text = framing.frame "first" .. framing.frame "second" .. framing.frame "third"
  local second = #framing.frame "first"
  local function damaged(at)
    return text:sub(1, at - 1) .. string.char((text:byte(at) + 1) % 256) .. text:sub(at + 1)
  end
  with_file(damaged(second + 14), function(path)
    local ds = data.records(path)
    t.equal(ds[3].data, "third")
    local err = t.raises(function() return ds[2] end)
    t.equal(err.code, "data_loss")
    t.ok(tostring(err):find(path .. ": record 2 at byte 21: wrong checksum of its content", 1, true), tostring(err))
    local kept, skipped = data.records { path, on_error = "skip" }
    t.equal({ #kept, kept[2].data, #skipped }, { 2, "third", 1 })
    t.ok(skipped[1]:find("record 2 at byte 21", 1, true))
  end)
  with_file(damaged(second + 3), function(path)
    t.raises(function() data.records(path) end, "record 2 at byte 21: wrong checksum of its length")
    local kept, skipped = data.records { path, on_error = "skip" }
    t.equal({ #kept, #skipped }, { 1, 1 })
  end)
  for length = 0, #text do
    with_file(text:sub(1, length), function(path)
      if length == 0 or length == 21 or length == 43 or length == #text then
        t.ok(data.records(path))
      else
        t.equal(t.raises(function() data.records(path) end, "the file ends inside of it").code, "data_loss")
      end
    end)
  end
  with_file("\31\139" .. ("\0"):rep(30), function(path)
    local e = t.raises(function() return data.records(path):each()() end)
    t.ok(e.code == "data_loss" and e.message:find(path .. ": damaged compressed data", 1, true), e.message)
  end)
  local words = require "perigee.native".words
  for _, high in ipairs { 2 ^ 31, 2 ^ 20, 1 } do -- lengths of 2^63, 2^52, 2^32
    local length = words.uint32(0) .. words.uint32(high)
    with_file(length .. words.uint32(words.masked_crc32c(length)) .. "data", function(path)
      t.equal(t.raises(function() data.records(path) end).code, "data_loss")
    end)
  end
end)

test("mutated Examples: fields, or an error that names the record", function(t)
  local sound = data.records(example_file)[3].data
  local seed = 1
  local function random(n)
    seed = (seed * 16807) % 2147483647
    return seed % n
  end
  local texts = { "", ("\10"):rep(1000), "\10\255\255\255\255\255\255\255\255\255\1", ("\255"):rep(50),
                  ("\11"):rep(100) }
  local nested = ""
  for _ = 1, 200 do nested = protobuf.bytes(1, nested) end
  texts[#texts + 1] = nested
  for _ = 1, 3000 do
    local text = sound
    for _ = 0, random(3) do
      local at = random(#text) + 1
      local kind = random(3)
      text = text:sub(1, at - 1) .. (kind == 0 and "" or string.char(random(256))) ..
             text:sub(kind == 1 and at or at + 1)
    end
    texts[#texts + 1] = text
  end
  with_file("", function(path)
    data.write_records(path, texts)
    local ds, good, bad = data.records { path, spec = SPEC }, 0, 0
    for i = 1, #ds do
      local ok, err = pcall(function() return ds[i] end)
      if ok then
        good = good + 1
      else
        bad = bad + 1
        t.equal(err.code, "data_loss")
        t.ok(tostring(err):find(("record %d at byte"):format(i), 1, true), tostring(err))
      end
    end
    t.ok(good > 0 and bad > 0)
    local kept, skipped = data.records { path, spec = SPEC, on_error = "skip" }
    t.equal({ #kept, #skipped }, { good, bad })
  end)
end)
