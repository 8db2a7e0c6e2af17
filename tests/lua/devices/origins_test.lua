-- SPDX-License-Identifier: Apache-2.0
-- What fails late, on an asynchronous device: which operator it was and, where that has been asked for, whose call.

local pg = require "perigee"
local nn = pg.nn

local DEVICE = pg.device() ~= "cpu" and pg.device() or "sim:0"

-- Runs fn(idx), which makes an index out of range fail, and answers the message of the synchronisation.
local function message_of(fn)
  local idx = pg.tensor({ 0, 7 }, { dtype = "int64", device = DEVICE })
  fn(idx)
  local ok, err = pcall(pg.synchronize, DEVICE)
  pcall(pg.synchronize, DEVICE)
  return not ok and tostring(err) or nil
end

local model = nn.Sequential { nn.Identity {}, nn.Embedding { 3, 2 } }:to(DEVICE)
local table_ = pg.zeros { 3, 2, device = DEVICE }
local function in_layer(idx) local y = model(idx) return y end
local function in_function(idx) local y = pg.embedding(table_, idx) return y end
local function in_options(idx) local y = pg.embedding { table_, idx, padding_idx = 1 } return y end

test("late errors name operator and number, and how to learn more", function(t)
  local text = message_of(in_function)
  t.ok(text:find("embedding (number ", 1, true) and text:find("7 at position [2]", 1, true), text)
  t.ok(text:find("(pg.config.set{origins=true} tells where it was called)", 1, true), text)
end)

test("with origins, the script's line and the layer", function(t)
  pg.config.set { origins = true }
  local ok, err = pcall(function()
    t.equal(pg.config.get().origins, true)
    for _, fn in ipairs { in_layer, in_function, in_options } do
      local line = debug.getinfo(fn, "S").linedefined
      for _ = 1, 60 do fn(pg.zeros { 2, dtype = "int64", device = DEVICE }) end -- compiled by now
      local text = message_of(fn)
      local want = ("origins_test.lua:%d"):format(line)
      t.ok(text:find("embedding %(number %d+%), called at [^ ]*" .. want:gsub("%p", "%%%0")), text)
      t.equal(text:find("in Sequential.1 (Embedding): ", 1, true) ~= nil, fn == in_layer)
      t.ok(not text:find("origins=true", 1, true), text)
    end
  end)
  pg.config.set { origins = false }
  if not ok then error(err, 0) end
  t.ok(not message_of(in_function):find("called at", 1, true))
end)

test("probabilities outside of [0, 1] are named on every device, which stays whole", function(t)
  for _, device in ipairs { "cpu", DEVICE } do
    local function bad(pattern, fn)
      t.raises(function()
        pg.device(device, fn)
        pg.synchronize(device)
      end, pattern)
      pcall(pg.synchronize, device)
      t.equal((pg.ones { 2, device = device } + 1):cpu(), { 2, 2 })
    end
    for _, dtype in ipairs { "float64", "float32", "float16", "bfloat16" } do
      local p = pg.tensor({ { 0, 1, 0.5 }, { 1, 1.5, -1 } }, { dtype = dtype, device = device })
      bad("p is 1%.5 at position %[2, 2%]; expected 0 to 1", function() return pg.bernoulli(p) end)
      bad("p is 1%.5 at position %[2, 2%]; expected 0 to 1", function() return nn.bce(p, pg.zeros_like(p)) end)
      bad("p is %-1 at position %[1, 2%]", function() return p:t():flip { 1 }:bernoulli() end)
    end
    bad("p is %-?nan", function() return pg.bernoulli(pg.tensor({ 0 / 0 }, { device = device })) end)
    local many = pg.full({ 300000 }, 0.5, { device = device })
    t.ok(math.abs(pg.bernoulli(many):mean():item() - 0.5) < 0.01)
    many[-1], many[200001] = 2, 3
    bad("p is 3 at position %[200001%]", function() return pg.bernoulli(many) end)
  end
end)

test("nothing to resample is said at once", function(t)
  for _, device in ipairs { "cpu", DEVICE } do
    t.raises(function() pg.interpolate(pg.ones { 1, 2, 4, 0, 3, device = device }, 2 ^ 31) end, "axis 4 is empty")
    t.equal(pg.interpolate(pg.ones { 0, 2, 4, device = device }, 2 ^ 31).shape, { 0, 2, 2 ^ 31 })
  end
end)

test("reset forgets failures, limits and settings", function(t)
  local threads = pg.config.get().threads
  pg.embedding(table_, pg.tensor({ 9 }, { dtype = "int64", device = DEVICE }))
  pg.config.memory_limit(DEVICE, "1MB")
  pg.config.set { threads = 1, origins = true }
  pg.set_default_dtype "float64"
  pg.reset()
  pg.synchronize(DEVICE)
  t.equal(pg.memory.stats(DEVICE).limit, 0)
  t.equal(pg.zeros { 600, 600, device = DEVICE }:sum():item(), 0)
  t.equal(pg.get_default_dtype(), "float32")
  t.equal({ pg.config.get().threads, pg.config.get().origins }, { threads, false })
end)

test("a share of a device's memory", function(t)
  local total
  for _, d in ipairs(pg.devices "cpu") do total = d.memory_total end
  if total and total > 0 then
    pg.config.memory_fraction("cpu", 0.5)
    t.equal(pg.memory.stats("cpu").limit, math.floor(total * 0.5))
    pg.config.memory_limit("cpu", 0)
  end
  t.raises(function() pg.config.memory_fraction("cpu", 2) end, "above 0 and at most 1")
  pg.config.memory_growth("cpu", true)
  t.raises(function() pg.config.memory_growth("cpu", false) end, "set a limit first")
end)
