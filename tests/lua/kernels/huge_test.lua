-- SPDX-License-Identifier: Apache-2.0
-- Results that no memory holds are refused before memory is filled with what would be needed to compute them.

local tests = (debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or ".") .. "/../.."
package.path = tests .. "/?.lua;" .. package.path

local process = require "process"

-- Runs calls in a process of its own, with a limit of memory for tensors; answers the most bytes that it ever used
-- beyond what it used before, and what the calls said.
local PROGRAM = [[
local pg = require "perigee"
local function used()
  for line in io.lines("/proc/self/status") do
    local kilobytes = line:match "^VmHWM:%%s+(%%d+) kB"
    if kilobytes then return kilobytes * 1024 end
  end
end
pg.config.memory_limit("cpu", "64MB")
pg.interpolate(pg.ones { 1, 1, 4 }, { size = 9 })
local before = used()
local ok, err = pcall(function()
  %s
end)
print(("%%d"):format(used() - before), not ok and err.code, tostring(err))
]]

local function growth(t, code)
  local path = process.file(PROGRAM:format(code))
  local text = process.run(("timeout 60 %s %s"):format(process.need_perigee(t), path))
  os.remove(path)
  local bytes, err = text:match "^(%d+)%s+(%S+)"
  if not bytes then error(text, 0) end
  return tonumber(bytes), err, text
end

for name, code in pairs {
  interpolate = "pg.interpolate(pg.ones { 1, 1, 4 }, { size = 2 ^ 32 })",
  ["interpolate linearly"] = "pg.interpolate(pg.ones { 1, 1, 4 }, { size = 2 ^ 32, mode = \"linear\" })",
  ["interpolate planes"] = "pg.interpolate(pg.ones { 1, 1, 4, 4 }, { size = { 2 ^ 32, 2 }, mode = \"bicubic\" })",
  ["adaptive_avg_pool1d"] = "pg.adaptive_avg_pool1d(pg.ones { 1, 1, 5 }, 2 ^ 32)",
  ["adaptive_max_pool1d"] = "pg.adaptive_max_pool1d(pg.ones { 1, 1, 5 }, 2 ^ 32)",
  ["matmul of spread elements"] = "pg.matmul(pg.ones { 1 }:expand(2 ^ 30, 64), pg.ones { 1 }:expand(64, 2 ^ 29))",
  ["linear of spread elements"] = "pg.linear(pg.ones { 1 }:expand(2 ^ 30, 64), pg.ones { 1 }:expand(2 ^ 29, 64))",
  ["matmul of spread matrices"] = "local x = pg.ones { 1 }:expand(8, 2 ^ 28, 64) pg.matmul(x, x:transpose(2, 3))",
  ["conv2d of spread elements"] = "local x = pg.ones { 1 } " ..
    "pg.conv2d(x:expand(2 ^ 30, 4, 1, 1), x:expand(2 ^ 29, 4, 1, 1))",
  ["avg_pool1d of a spread element"] = "pg.avg_pool1d(pg.ones { 1, 1, 1 }:expand(1, 1, 2 ^ 32), 1)",
  ["max_pool1d of a spread element"] = "pg.max_pool1d(pg.ones { 1, 1, 1 }:expand(1, 1, 2 ^ 32), 1)",
} do
  test("huge/" .. name, function(t)
    local bytes, err, text = growth(t, code)
    t.equal(err, "out_of_memory", text)
    t.ok(bytes < 100e6, ("%.0f MB were filled"):format(bytes / 1e6))
  end)
end

-- Not even the classes' weights are looked at.
local function of_no_samples(reduction)
  return ([[
for _, device in ipairs { "cpu", "sim:0" } do
  pg.device(device, function()
    local x = pg.zeros({ 0, 2 ^ 40 }):requires_grad_(true)
    pg.nn.CrossEntropyLoss { reduction = %q }(x, pg.zeros({ 0 }, { dtype = "int64" })):backward()
    assert(x.grad.shape[2] == 2 ^ 40)
    pg.synchronize(device)
  end)
end]]):format(reduction)
end

-- Nothing is computed, so nothing is needed.
for name, code in pairs {
  interpolate = "assert(pg.interpolate(pg.ones { 0, 1, 4 }, { size = 2 ^ 32 }).shape[3] == 2 ^ 32)",
  adaptive_max_pool1d = "assert(pg.adaptive_max_pool1d(pg.ones { 0, 1, 5 }, 2 ^ 32).shape[3] == 2 ^ 32)",
  avg_pool1d = "assert(pg.avg_pool1d(pg.ones { 0, 1, 2 ^ 32 }, 1).shape[3] == 2 ^ 32)",
  max_pool1d = "assert(pg.max_pool1d(pg.ones { 0, 1, 2 ^ 32 }, 1).shape[3] == 2 ^ 32)",
  cross_entropy = of_no_samples "mean",
  ["summed cross_entropy"] = of_no_samples "sum",
} do
  test("huge/of nothing/" .. name, function(t)
    local bytes, err, text = growth(t, code)
    t.equal(err, "false", text)
    t.ok(bytes < 100e6, ("%.0f MB were filled"):format(bytes / 1e6))
  end)
end

-- Lines without elements take no time, however many there are.
local OF_LINES = { "softmax", "log_softmax", "softmin", "cumsum", "cumprod", "cummax", "logcumsumexp", "sort",
                   "argsort", "flip", "roll", "index_select" }
for _, name in ipairs(OF_LINES) do
  test("huge/lines of nothing/" .. name, function(t)
    local arguments = name == "roll" and "1, 1" or "1"
    if name == "index_select" then arguments = "pg.zeros { 0, dtype = \"int64\" }, 1" end
    local bytes, err, text = growth(t, ([[
for _, device in ipairs { "cpu", "sim:0" } do
  pg.device(device, function()
    local y = pg.%s(pg.zeros { 0, 2 ^ 40 }, %s)
    assert(y.shape[2] == 2 ^ 40)
    pg.synchronize(device)
  end)
end]]):format(name, arguments))
    t.equal(err, "false", text)
    t.ok(bytes < 100e6, ("%.0f MB were filled"):format(bytes / 1e6))
  end)
end

-- So many views are no list.
for _, call in ipairs { "tensor_split(2 ^ 40)", "chunk(2 ^ 40)", "split(1)", "unbind()" } do
  test("huge/parts/" .. call, function(t)
    local _, err, text = growth(t, ("pg.zeros { 1 }:expand(2 ^ 40):%s"):format(call))
    t.equal(err, "invalid_argument", text)
  end)
end
