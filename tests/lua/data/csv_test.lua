-- SPDX-License-Identifier: Apache-2.0
-- data.csv with columns: rows as samples, through the source `csv`. Its tensors are tested with the file formats.

local tests = (debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or ".") .. "/../.."
package.path = tests .. "/?.lua;" .. package.path

local pg = require "perigee"
local process = require "process"
local native = require "perigee.native"
local data = pg.data
local NAME = os.tmpname()

local function file(text, ending)
  process.write(NAME .. (ending or ".csv"), text)
  return NAME .. (ending or ".csv")
end

local function plain(sample)
  local copy = {}
  for key, v in pairs(sample) do
    copy[key] = pg.is_tensor(v) and (v:dim() == 0 and v:item() or v:totable()) or v
  end
  return copy
end

local function all(ds, from)
  local list = {}
  for i, sample in ds:each(from) do list[i - (from and from.from.position or 0)] = plain(sample) end
  return list
end

test("rows are samples of fields by the names in the first line", function(t)
  local path = file('width,height,"the ""name""",class\n1,2.5,"a, b",3\n\n \n+4,5e1,"two\nlines",-6\r\n' ..
                    '7,8,,9007199254740993')
  local ds = data.csv { path, columns = {
    x = { "float32", from = { "width", "height" } }, y = { "int64", from = "class" },
    name = { "string", from = 'the "name"', default = "-" }, width = "float64" } }
  t.equal({ #ds, ds.size }, { 3, 3 })
  t.equal({ ds[1].x.dtype, ds[1].x.shape, ds[1].y.dtype, ds[1].y:dim(), ds[1].width.dtype },
          { "float32", { 2 }, "int64", 0, "float64" })
  local rows = all(ds:take(2))
  t.equal(rows[1], { x = { 1, 2.5 }, y = 3, name = "a, b", width = 1 })
  t.equal(rows[2], { x = { 4, 50 }, y = -6, name = "two\nlines", width = 4 })
  t.equal(ds[3].y:item_int64(), 9007199254740993LL)
  t.equal(ds[-1].name, "-")
  for _, b in ds:batch(3):prefetch(1):each() do
    t.equal({ b.x.shape, b.y.shape, b.name }, { { 3, 2 }, { 3 }, { "a, b", "two\nlines", "-" } })
  end
end)

test("rows without names: columns in order, several to a vector, empty ones by default", function(t)
  local ds = data.csv { file "comment\n1;2;3;a\n4;;6;b\n", delimiter = ";", skip = 1,
                        columns = { { "x", "float32", 2, default = -1 }, { "y", "int64" }, { "s", "string" } } }
  t.equal(all(ds), { { x = { 1, 2 }, y = 3, s = "a" }, { x = { 4, -1 }, y = 6, s = "b" } })
  t.equal(all(data.csv { file("1\t2\n", ".tsv"), columns = { { "a", "int64" } } }), { { a = 1 } })
  t.equal(all(data.csv { file "\239\187\1911,2\n", columns = { { "x", "float32", 1 } } }), { { x = { 1 } } })
  for _, text in ipairs { "", "\n\n" } do t.equal(#data.csv { file(text), columns = { { "a", "int64" } } }, 0) end
end)

-- Rows long and short, some of several lines, over the limits of the blocks in which files are looked through.
local function many(count)
  local lines, expected = { "n,word,more" }, {}
  for i = 1, count do
    local word = (i % 7 == 0 and "\n" or ".") .. ("x"):rep(i * 37 % 900)
    lines[#lines + 1] = ("%d,%s,%g"):format(i, i % 3 == 0 and ('"%s"'):format(word) or word:gsub("\n", "-"), i / 8)
    expected[i] = { n = i, word = i % 3 == 0 and word or word:gsub("\n", "-"), more = i / 8 }
  end
  return table.concat(lines, "\n"), expected
end
local COLUMNS = { n = "int64", word = "string", more = "float32" }

test("plain and compressed, whatever threads read; passes go on where others were", function(t)
  local text, expected = many(3000)
  local packed = NAME .. ".csv.gz"
  native.write(packed, { "data" }, { native.host.from_bytes("test", text, native.dtypes.by_name.uint8, { #text }) })
  for _, path in ipairs { file(text), packed } do
    for threads = 0, 3 do
      local ds = data.csv { path, columns = COLUMNS, workers = threads > 0 and threads or nil }
      t.equal(all(ds), expected)
      local mixed = ds:shuffle { seed = 3 }:shard { 3, 1 }
      local pass, begun = mixed:each(), {}
      for i = 1, 57 do begun[i] = plain(select(2, pass())) end
      local state = pass:state()
      pass:close()
      local rest = all(mixed, { from = state })
      mixed:epoch(state.epoch - 1)
      local whole = all(mixed)
      t.equal(#whole, 1000)
      for i = 1, #whole do t.equal(begun[i] or rest[i - 57], whole[i]) end
    end
  end
  local two = data.csv { { NAME .. ".csv", packed }, columns = COLUMNS }
  t.equal({ #two, plain(two[3001]), plain(two[6000]) }, { 6000, expected[1], expected[3000] })
end)

test("what is damaged is named by file, line and column, or left out", function(t)
  local function refused(text, problem, columns, i)
    local path = file(text)
    local line = debug.getinfo(1, "l").currentline + 1
    local e = t.raises(function() return data.csv { path, columns = columns or { { "x", "float32", 2 } } }[i or 2] end)
    t.ok(e.code == "data_loss" and e.message:find(path .. ": " .. problem, 1, true), tostring(e))
    t.ok(e.message:find(("csv_test.lua:%d%s"):format(line, problem:find "quote has" and ": " or ", element"), 1, true),
         e.message)
  end
  refused("1,2\n3\n", "line 2: 1 columns, expected 2 as in the lines before")
  refused("1,2\n\n3,4,5\n", "line 3: 3 columns, expected 2")
  refused("1,2\n3,x\n", 'line 2, column 2: "x" is not a number (field "x")')
  refused("1,2\n3,\n", 'line 2, column 2: "" is not a number')
  refused("1,2\n3,1e999\n", "line 2, column 2")
  refused("1,2\n3,0.5\n", 'line 2, column 2: "0.5" is not a whole number', { { "x", "int64", 2 } })
  refused('a,b\n"1\n",2\n"2"x,3\n', "line 4, column 1: there is text behind its closing quote", { b = "int64" })
  refused('1,2\n3,"4\n', "line 2: a field that begins with a quote has no end")
  local path = file "1,2\n3\n4,x\n5,6,7\n8,9"
  for _, threads in ipairs { 0, 2 } do
    local ds = data.csv { path, columns = { { "x", "float32", 2 } }, on_error = "skip",
                          workers = threads > 0 and threads or nil }
    t.equal(all(ds), { { x = { 1, 2 } }, { x = { 8, 9 } } })
    local count, messages = ds:skipped()
    t.equal(count, 3)
    local told = table.concat(messages, "\n") -- threads come to them in any order
    t.ok(told:find(path .. ": line 4: 3 columns", 1, true), told)
  end
  local two = { file "a\n1\n", file("b\n1\n", ".2.csv") }
  local e = t.raises(function() data.csv { two, columns = { a = "int64" } } end)
  t.ok(e.code == "data_loss" and e.message:find("line 1: the names of its columns are not those", 1, true), e.message)
  e = t.raises(function() all(data.csv { file "1\n2\nx", columns = { { "x", "int64" } } }:prefetch(2)) end)
  t.equal(e.code, "data_loss")
end)

test("mistakes", function(t)
  local path = file "a,b\n1,2\n"
  local function refused(options, text, code)
    options[1] = options[1] or path
    local e = t.raises(function() data.csv(options) end)
    t.equal(e.code, code or "invalid_argument")
    t.ok(tostring(e):find(text, 1, true), tostring(e))
  end
  refused({ columns = { c = "int64" } }, 'there is no column "c"; there are a, b')
  refused({ columns = { { "x", "float32", 3 } } }, "there is no column 3; there are 2")
  refused({ columns = { a = "int32" } }, "columns.a must be float32, float64, int64 or string, got string \"int32\"")
  refused({ columns = { a = 3 } }, "columns.a must be a dtype or a table, got number 3")
  refused({ columns = { a = { "int64", form = "b" } } }, 'columns.a has an unknown option "form"')
  refused({ columns = { a = { "int64", default = 0.5 } } }, "columns.a: default must be of dtype int64")
  refused({ columns = { a = { "string", from = { "a", "b" } } } }, "columns.a is a string, and can be of one column")
  refused({ columns = { { "a", "int64", 0 } } }, "columns[1]: a count of columns must be 1 or more")
  refused({ columns = { { 3, "int64" } } }, "columns[1] must have a name, got number 3")
  refused({ columns = {} }, "columns has none")
  refused({ columns = { a = "int64" }, dtype = "float32" }, "dtype is that of a tensor")
  refused({ columns = { a = "int64" }, delimiter = "ab" }, "delimiter must be one character")
  refused({ columns = { a = "int64" }, skip = 9 }, "there is no line with the names of columns", "data_loss")
  refused({ on_error = "skip" }, "workers and on_error are of samples")
  refused({ { path, path } }, "path must be a string")
  refused({ "/nowhere/a.csv", columns = { a = "int64" } }, "/nowhere/a.csv: cannot open", "not_found")
  refused({ file("1,2\n", ".csv.gz"), columns = { { "a", "int64" } } }, "not gzip data", "data_loss")
  for _, ending in ipairs { "", ".csv", ".tsv", ".csv.gz", ".2.csv" } do os.remove(NAME .. ending) end
end)
