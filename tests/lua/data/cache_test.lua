-- SPDX-License-Identifier: Apache-2.0
-- ds:cache: in memory and in files; what is refused, and what is damaged.

local tests = (debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or ".") .. "/../.."
package.path = tests .. "/?.lua;" .. package.path
local process = require "process"
local pg = require "perigee"
local native = require "perigee.native"
local data = pg.data

local function plain(v)
  if native.is_tensor(v) then return { v.dtype, v:totable() } end
  if type(v) ~= "table" then return v end
  local list = {}
  for key, field in pairs(v) do list[key] = plain(field) end
  return list
end

local function all(ds)
  local list = {}
  for _, element in ds:each() do list[#list + 1] = plain(element) end
  return list
end

local function new_path()
  local path = os.tmpname()
  os.remove(path)
  return path
end

local function exists(path)
  local file = io.open(path, "rb")
  if file then file:close() end
  return file ~= nil
end

local whole, write = process.read, process.write

-- A source that counts what is asked of it, and elements of all kinds.
local function counted(n)
  local made = { count = 0 }
  made.ds = data.from_index { n, function(i)
    made.count = made.count + 1
    return { x = pg.full({ 2, 3 }, i), turned = pg.arange(6):reshape { 2, 3 }:t(), h = pg.ones { 2, dtype = "float16" },
             none = pg.zeros { 0, 4 }, scalar = pg.tensor(i, { dtype = "int64" }), b = pg.tensor { true, false },
             name = "n\0" .. i, list = { i, i % 2 == 0, "" } }
  end }
  return made
end

local function even(s) return s.value % 2 == 0 end
local function tenfold(s) return { value = s.value * 10 } end

test("each element is computed once", function(t)
  for _, path in ipairs { false, new_path() } do
    local source = counted(5)
    local expected = all(source.ds)
    source.count = 0
    local ds = source.ds:cache(path or nil)
    t.equal({ #ds, plain(ds[2]), source.count }, { 5, expected[2], 1 })
    for _ = 1, 3 do t.equal(all(ds), expected) end
    t.equal(source.count, 5)
    t.equal(all(ds:batch(2):prefetch(2)), all(source.ds:batch(2)))
    t.equal(source.count, 10) -- five of the one that is not cached
    if path then os.remove(path) end
  end
end)

test("caches stand in all kinds of pipelines", function(t)
  local ways = {
    function(path) return data.range(21):map(tenfold):cache(path):filter(even) end,
    function(path) return data.range(21):map { tenfold, workers = 2 }:cache(path) end,
    function(path) return data.range(21):filter(even):cache(path):map { tenfold, workers = 2 } end,
    function(path) return data.range(21):filter { even, workers = 2 }:cache(path):shuffle { 4, seed = 1 }:batch(3) end,
    function(path) return data.range(21):filter { even, workers = 2 }:cache(path):repeated(2):skip(3) end,
    function(path) return data.range(21):filter(even):cache(path):prefetch(2):repeated(2):skip(3):batch(2) end,
    function(path) return data.range(21):shuffle { seed = 1 }:cache(path):batch(4):prefetch(2) end,
    function(path) return data.range(6):cache(path):zip(data.range(6):cache()) end,
  }
  for number, make in ipairs(ways) do
    for _, path in ipairs { false, new_path() } do
      local first = make(path or nil)
      for step in first:each() do if step == 3 then break end end -- a part of it is there
      local expected = { all(first), all(first) }
      if path then t.ok(exists(path), number) end
      local again = make(path or nil) -- of the whole file
      again:epoch(1)
      t.equal({ number, all(again), all(again) }, { number, expected[1], expected[2] })
      if path then os.remove(path) end
    end
  end
end)

test("the order of the first epoch stays", function(t)
  local ds = data.range(30):shuffle { seed = 1 }:cache()
  local it = ds:each()
  for _ = 1, 10 do it() end
  local first, second = all(ds), all(ds)
  t.equal(first, second)
  table.sort(first, function(a, b) return a.value < b.value end)
  for i, s in ipairs(first) do t.equal(s.value, i - 1) end -- all of them, none twice
end)

test("a file outlives the script, and nothing is computed again", function(t)
  local path = new_path()
  local program = [[
    local pg = require "perigee"
    local function fn(s) io.write "c" return { x = pg.full({ 3 }, s.value), name = "n" .. s.value } end
    local function other(s) return s.name ~= "n2" end
    local ds = pg.data.range(4):map(fn):filter(other):cache(]] .. ("%q"):format(path) .. [[)
    for _, s in ds:each() do io.write(s.name, " ", s.x:sum():item(), " ") end
  ]]
  local script = process.file(program)
  local function run() return process.run(("'%s' '%s'"):format(process.need_perigee(t), script)) end
  local first = run()
  t.equal(first:gsub("c", ""), "n0 0 n1 3 n3 9 ")
  t.equal(select(2, first:gsub("c", "")), 4)
  t.equal(run(), "n0 0 n1 3 n3 9 ")
  os.remove(script)
  os.remove(path)
end)

test("a file appears when it has all elements", function(t)
  local path = new_path()
  local ds = counted(6).ds:cache(path)
  for step in ds:each() do if step == 4 then break end end
  t.equal(exists(path), false)
  t.equal(#all(ds), 6)
  t.equal(exists(path), true)
  os.remove(path)
  local failing = data.range(4):map(function(s) if s.value == 2 then error "two" end return s end):cache(path)
  t.raises(function() all(failing) end, "two")
  t.equal(exists(path), false)
  t.raises(function() all(data.range(3):cache "/nowhere/at/all") end, "/nowhere/at/all: cannot create")
  t.raises(function() all(data.from_index { 2, function() return { f = print } end }:cache()) end,
           "cache: f is a function; expected tensors")
end)

test("another pipeline's file is refused", function(t)
  local path, factor = new_path(), 3
  local function make(n, k, seed)
    return data.range(n):map(function(s) return { value = s.value * k * factor } end):shuffle { seed = seed }:batch(2)
  end
  t.equal(#all(make(6, 2, 1):cache(path)), 3)
  t.equal(#make(6, 2, 1):cache(path), 3)
  local function refused(ds, text) t.raises(function() ds:cache(path) end, "cache: .*another pipeline's.*" .. text) end
  refused(make(7, 2, 1), "stage 1 is range 6, here it is range 7")
  refused(make(6, 3, 1), "stage 2 is map %x+, here it is map %x+.*another name")
  refused(make(6, 2, 2), "stage 3 is shuffle all seed 1 true, here it is shuffle all seed 2")
  refused(make(6, 2, 1):batch(2), "stage 5 is nothing, here it is batch 2")
  t.raises(function() make(6, 2, 1):cache { path, version = "2" } end, "here it is version 2")
  factor = 4
  refused(make(6, 2, 1), "stage 2")
  local x = pg.rand({ 4, 2 }, { device = "cpu" })
  os.remove(path)
  all(data.from_slices { x = x }:cache(path))
  t.equal(#data.from_slices { x = x:clone() }:cache(path), 4)
  refused(data.from_slices { x = x + 1 }, "stage 1 is from_slices")
  os.remove(path)
end)

test("damage is found, wherever it is", function(t)
  local path = new_path()
  local function make() return data.range(3):map(function(s) return { value = s.value, name = "n" } end):cache(path) end
  local expected = all(make())
  local good, found = whole(path), 0
  local function read()
    local ok, problem = pcall(function() return all(make()) end)
    if ok then return false end
    t.ok(tostring(problem):find(path, 1, true), tostring(problem))
    t.ok(tostring(problem):find "delete the file", tostring(problem))
    return true
  end
  t.equal(all(make()), expected)
  for at = 1, #good do
    write(path, good:sub(1, at - 1) .. string.char((good:byte(at) + 1) % 256) .. good:sub(at + 1))
    t.ok(read(), ("byte %d"):format(at))
    found = found + 1
  end
  t.equal(found, #good)
  for length = 0, #good - 1, 7 do
    write(path, good:sub(1, length))
    t.ok(read(), ("%d bytes"):format(length))
  end
  write(path, good .. "more")
  t.ok(read())
  write(path, good)
  t.equal(all(make()), expected)
  write(path, good:sub(1, -41) .. ("\0"):rep(40))
  t.raises(function() make() end, "damaged, or cut off")
  os.remove(path)
end)

test("many epochs take no more memory", function(t)
  local ds = data.range(16):map(function(s) return { x = pg.full({ 256 }, s.value) } end):cache():batch(4)
  local function live()
    all(ds)
    collectgarbage()
    native.handles.reclaim()
    return pg.memory.stats("cpu").live
  end
  local before = live()
  for _ = 1, 20 do all(ds) end
  t.ok(live() <= before + 65536)
end)
