-- SPDX-License-Identifier: Apache-2.0
-- What `perigee conform` asks of every device: memory, copies, streams, against the CPU and without operators' kernels.

local pg = require "perigee"
local native = require "perigee.native"

local dtypes = { "float32", "float64", "bfloat16", "float16", "int64", "int32", "int16", "int8", "uint8", "bool" }

local function first_line(err) return (tostring(err):match("^[^\n]*")) end

local function same(got, want, what)
  got, want = got:cpu(), want:cpu()
  if tostring(got.shape) ~= tostring(want.shape) or got.dtype ~= want.dtype then
    error(("%s: got %s %s, expected %s %s"):format(what, got.dtype, tostring(got.shape), want.dtype,
                                                     tostring(want.shape)), 0)
  end
  local a, b = native.host.flat(got), native.host.flat(want)
  for i = 1, want:numel() do
    if a[i] ~= b[i] and not (a[i] ~= a[i] and b[i] ~= b[i]) then
      error(("%s: element %d is %s, expected %s"):format(what, i, tostring(a[i]), tostring(b[i])), 0)
    end
  end
end

-- Small whole numbers, which every dtype holds, in [rows, columns].
local function numbers(dtype, rows, columns)
  local t = (pg.arange(rows * columns) * 7 % 23):reshape(rows, columns)
  return dtype == "bool" and t:gt(9) or t:to(dtype)
end

-- Level, group, name, function of the device's name; errors are failures.
local device_checks = {
  { 1, "memory", "zero elements", function(d)
    same(pg.zeros({ 0, 3 }, { device = d }), pg.zeros { 0, 3 }, "empty")
  end },
  { 1, "memory", "what is freed is used again", function(d)
    local function churn()
      for _ = 1, 50 do
        local t = pg.zeros({ 256, 256 }, { device = d })
        t:free()
      end
      pg.synchronize(d)
      return pg.memory.stats(d).reserved
    end
    local before = churn()
    if churn() > before then error("reserved memory grows although everything is freed", 0) end
  end },
  { 1, "memory", "exhaustion is an error that names it, and leaves the device usable", function(d)
    local old = pg.memory.stats(d).limit
    pg.config.memory_limit(d, pg.memory.stats(d).reserved + 2 ^ 20)
    local held = {}
    local ok, err = pcall(function()
      for i = 1, 64 do held[i] = pg.zeros({ 2 ^ 16 }, { device = d }) end
    end)
    for i = 1, #held do held[i] = nil end
    collectgarbage()
    pg.config.memory_limit(d, old)
    if ok then error("a limit of 1 MiB held 16", 0) end
    if err.code ~= "out_of_memory" then error("the error is " .. tostring(err.code) .. ": " .. first_line(err), 0) end
    same(pg.full({ 3 }, 2, { device = d }), pg.full({ 3 }, 2), "afterwards")
  end },
}

local levels = { memory = 1, copies = 1, streams = 2 }
local function add_check(group, name, fn) device_checks[#device_checks + 1] = { levels[group], group, name, fn } end

for _, dtype in ipairs(dtypes) do
  add_check("copies", "there and back, " .. dtype, function(d)
    for _, size in ipairs { { 1, 1 }, { 3, 5 }, { 64, 33 } } do
      local t = numbers(dtype, size[1], size[2])
      same(t:to(d), t, "round trip")
    end
  end)
  add_check("copies", "views become dense, " .. dtype, function(d)
    local t = numbers(dtype, 6, 8)
    local there = t:to(d)
    same(there:transpose(1, 2):contiguous(), t:transpose(1, 2):contiguous(), "transposed")
    same(there[{ { 2, 6, 2 }, { 1, 8, 3 } }]:contiguous(), t[{ { 2, 6, 2 }, { 1, 8, 3 } }]:contiguous(), "stepped")
    same(there[{ { 3, 3 } }]:expand(4, 8):contiguous(), t[{ { 3, 3 } }]:expand(4, 8):contiguous(), "expanded")
  end)
  add_check("copies", "writing into views, " .. dtype, function(d)
    local function written(t)
      local whole, part = t:clone(), t[{ {}, { 1, 4 } }]
      whole[{ {}, { 5, 8 } }] = part
      return whole
    end
    local t = numbers(dtype, 3, 8)
    same(written(t:to(d)), written(t), "written")
  end)
  add_check("copies", "fill, " .. dtype, function(d)
    same(pg.full({ 2, 3 }, 1, { dtype = dtype, device = d }), pg.full({ 2, 3 }, 1, { dtype = dtype }), "fill")
  end)
  add_check("copies", "converted to every dtype from " .. dtype, function(d)
    local t = numbers(dtype, 4, 6)
    local there = t:to(d):transpose(1, 2)
    for _, target in ipairs(dtypes) do same(there:to(target), t:transpose(1, 2):to(target), "to " .. target) end
  end)
end

add_check("streams", "copies in order, many of them", function(d)
  local t = pg.zeros({ 1000 }, { device = d })
  for i = 1, 200 do t[{ { i, i } }] = pg.full({ 1 }, i, { device = d }) end
  pg.synchronize(d)
  same(t[{ { 1, 200 } }], pg.arange(1, 201, { dtype = "float32" }), "in order")
end)
add_check("streams", "a source may be dropped while its copy is under way", function(d)
  local list = {}
  for i = 1, 100 do
    local source = pg.full({ 4096 }, i)
    list[i] = source:to(d)
    source:free()
  end
  for i = 1, 100 do same(list[i][{ { 1, 4 } }], pg.full({ 4 }, i), "copy " .. i) end
end)

-- The host gives an event back to its pool as soon as a stream has been told to wait for it, and records it again.
add_check("streams", "a wait is for what the event stood for then, though it is recorded again", function(d)
  for round = 1, 20 do
    local t, other = pg.zeros({ 2 ^ 18 }, { device = d }), pg.zeros({ 2 ^ 18 }, { device = d })
    pg.synchronize(d)
    pg.stream(1, function()
      for i = 1, 4 do t:fill_(4 * round + i) end
    end)
    local copy = pg.stream(2, function() return t:clone() end)
    pg.stream(3, function() other:fill_(1) end)
    pg.stream(4, function() return other:clone() end)
    same(copy, pg.full({ 2 ^ 18 }, 4 * round + 4), "round " .. round)
  end
end)

return device_checks
