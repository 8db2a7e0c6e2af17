-- SPDX-License-Identifier: Apache-2.0
-- Elements on their way to workers and back: whatever they look like, and however many look alike before one does not.

local pg = require "perigee"
local native = require "perigee.native"
local data = pg.data

-- A value with its tensors as tables.
local function plain(v)
  if native.is_tensor(v) then return { shape = v.shape, v:totable() } end
  if type(v) ~= "table" then return v end
  local all = {}
  for key, field in pairs(v) do all[key] = plain(field) end
  return all
end

local function list(ds)
  local all = {}
  for step, s in ds:each() do all[step] = plain(s) end
  return all
end

-- Each kind of element comes often enough for functions of its own, then others come between.
local function strange(s)
  local own = require "perigee"
  local i = s.value
  local kind = i < 120 and math.floor(i / 20) or i % 9
  if kind == 0 then return { value = i } end
  if kind == 1 then return { value = i, name = "n" .. i, ok = i % 2 == 0 } end
  if kind == 2 then return { x = own.ones { 2 } * i, list = { i, { deep = "a\0b" .. i } } } end
  if kind == 3 then return { ["a \"key\"\n"] = i, ["end"] = "", [-3] = 1, [7] = false } end
  if kind == 4 then return i + 0.5 end
  if kind == 5 then return { empty = {}, [1] = own.zeros { 0 }, [2] = "s" } end
  if kind == 6 then return { value = tostring(i) } end
  if kind == 7 then return { value = i, more = i } end
  return { x = i, list = { i, { deep = true } } }
end

test("elements of all kinds come back from workers as they were", function(t)
  local expected = list(data.range(300):map(strange))
  for workers = 1, 3, 2 do
    t.equal(list(data.range(300):map { strange, workers = workers }:prefetch(64)), expected)
    local twice = data.range(300):map { strange, workers = workers }:map { function(s) return s end, workers = 1 }
    t.equal(list(twice:prefetch(64)), expected)
  end
  local kept = list(data.range(300):map(strange):map { function(s) return s end, workers = 2 }:prefetch(16))
  t.equal(kept, expected)
  local ds = data.range(300):map { strange, workers = 2 }:prefetch(64)
  local it = ds:each()
  for _ = 1, 133 do it() end
  local rest, state = {}, it:state()
  it:close()
  for step, s in ds:each { from = state } do rest[step - 133] = plain(s) end
  local behind = {}
  for i = 134, 300 do behind[i - 133] = expected[i] end
  t.equal(rest, behind)
end)

test("an element that looks nearly like those before is no other", function(t)
  local function odd(s)
    local own = require "perigee"
    local i = s.value
    if i == 90 then return { x = own.ones { 3 }, y = i, z = 1 } end
    if i == 91 then return { x = own.ones { 3 } } end
    if i == 92 then return { x = io.stdout, y = i } end
    if i == 93 then return { x = setmetatable({}, {}), y = i } end
    return { x = own.ones { 3 }, y = i }
  end
  local function run(skipped)
    local ds = data.range(100):skip(skipped):map { odd, workers = 1 }:prefetch(64)
    local count, last = 0, nil
    local ok, problem = pcall(function()
      for _, s in ds:each() do count, last = count + 1, s end
    end)
    return count, last, ok, tostring(problem)
  end
  local count, last, ok, problem = run(0)
  t.equal(count, 92)
  t.ok(not ok and problem:find("x is .*; expected tensors"), problem)
  t.ok(last.x:equal(pg.ones { 3 }) and last.y == nil and last.z == nil)
  t.equal((run(93)), 0)
  local third = data.range(91):map { odd, workers = 2 }:prefetch(64)
  local z = {}
  for step, s in third:each() do
    if s.z then z[#z + 1] = step end
  end
  t.equal(z, { 91 })
end)

test("a tensor that was freed is told, among many that were not", function(t)
  local function freed(s)
    local x = require("perigee").ones { 3 }
    if s.value == 80 then x:free() end
    return { x = x }
  end
  local count = 0
  t.raises(function()
    for _ in data.range(100):map { freed, workers = 1 }:prefetch(64):each() do count = count + 1 end
  end, "closed by t:free")
  t.equal(count, 80)
end)

test("an error among many elements has its script's line and its place", function(t)
  local function bad(s)
    if s.value % 100 == 99 then error("element " .. s.value) end
    return s
  end
  for workers = 1, 3, 2 do
    local count = 0
    t.raises(function()
      for _ in data.range(1000):map { bad, workers = workers }:prefetch(64):each() do count = count + 1 end
    end, "elements_test.lua:%d+: element 99")
    t.equal(count, 99)
    local ds = data.range(1000):map { bad, workers = workers, on_error = "skip" }:prefetch(64)
    count = 0
    for _ in ds:each() do count = count + 1 end
    t.equal({ count, (ds:skipped()) }, { 990, 10 })
  end
end)

test("what many quick elements draw is theirs, whoever draws", function(t)
  local function run(workers, ahead)
    pg.manual_seed(7)
    local function draw(s)
      if s.value % 3 == 0 then return { value = require("perigee").rand { 2 } } end
      if s.value % 3 == 1 then return { value = math.random(), more = math.random(10) } end
      if s.value == 200 then math.randomseed(5) end
      return { value = s.value == 200 and math.random() or 0 }
    end
    return list(data.range(400):map { draw, workers = workers }:prefetch(ahead))
  end
  local one = run(1, 1)
  t.equal(run(1, 64), one)
  t.equal(run(3, 64), one)
  math.randomseed(5)
  t.equal(one[201].value, math.random())
  local seen = {}
  for i = 2, 400, 3 do
    t.ok(not seen[one[i].value])
    seen[one[i].value] = true
  end
end)

test("batches of what workers make stack, and say which sample does not fit", function(t)
  local function grow(s) return { x = require("perigee").ones { s.value < 333 and 2 or 3 }, y = s.value } end
  local here, there = data.range(400):map(grow):batch(50), data.range(400):map { grow, workers = 2 }:batch(50)
  local function first(ds)
    local seen = {}
    local ok, problem = pcall(function()
      for _, b in ds:prefetch(4):each() do seen[#seen + 1] = plain(b) end
    end)
    return seen, ok, tostring(problem)
  end
  local expected = first(here)
  t.equal(#expected, 6)
  local seen, ok, problem = first(there)
  t.equal(seen, expected)
  t.ok(not ok and problem:find("x of sample 334 is tensor float32 {3}, but of sample 301 it is", 1, true), problem)
end)
