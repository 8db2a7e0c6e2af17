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
  local text = process.run(process.need_perigee(t) .. " " .. path)
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
  ["avg_pool1d of a spread element"] = "pg.avg_pool1d(pg.ones { 1, 1, 1 }:expand(1, 1, 2 ^ 32), 1)",
  ["max_pool1d of a spread element"] = "pg.max_pool1d(pg.ones { 1, 1, 1 }:expand(1, 1, 2 ^ 32), 1)",
} do
  test("huge/" .. name, function(t)
    local bytes, err, text = growth(t, code)
    t.equal(err, "out_of_memory", text)
    t.ok(bytes < 100e6, ("%.0f MB were filled"):format(bytes / 1e6))
  end)
end

-- Nothing is computed, so nothing is needed.
for name, code in pairs {
  interpolate = "assert(pg.interpolate(pg.ones { 0, 1, 4 }, { size = 2 ^ 32 }).shape[3] == 2 ^ 32)",
  adaptive_max_pool1d = "assert(pg.adaptive_max_pool1d(pg.ones { 0, 1, 5 }, 2 ^ 32).shape[3] == 2 ^ 32)",
  avg_pool1d = "assert(pg.avg_pool1d(pg.ones { 0, 1, 2 ^ 32 }, 1).shape[3] == 2 ^ 32)",
  max_pool1d = "assert(pg.max_pool1d(pg.ones { 0, 1, 2 ^ 32 }, 1).shape[3] == 2 ^ 32)",
} do
  test("huge/of nothing/" .. name, function(t)
    local bytes, err, text = growth(t, code)
    t.equal(err, "false", text)
    t.ok(bytes < 100e6, ("%.0f MB were filled"):format(bytes / 1e6))
  end)
end
