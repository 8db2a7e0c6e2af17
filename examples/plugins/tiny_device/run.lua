-- SPDX-License-Identifier: Apache-2.0
-- What a script sees of the tiny device: it computes, it says why it does not compute the rest, it runs out of memory.
--   PERIGEE_PLUGIN_PATH=build/lib/perigee/plugins perigee run.lua

local pg = require "perigee"

-- It is a device like any other: no script, and nothing in Perigee, knows its name beforehand.
for _, d in ipairs(pg.devices("tiny")) do print(("%s: %s"):format(d.name, d.description)) end

-- The same computation here and there.
local function net(x, w1, w2) return (x:matmul(w1):relu() * x:matmul(w1)):matmul(w2) + x end
pg.manual_seed(1)
local x, w1, w2 = pg.randn { 64, 32 }, pg.randn { 32, 48 }, pg.randn { 48, 32 }
local here = net(x, w1, w2)
local there = net(x:to("tiny"), w1:to("tiny"), w2:to("tiny"))
assert(there.device == "tiny:0")
print(("a small net there and here differ by %.1e"):format((there:cpu() - here):abs():max():item()))
assert(pg.allclose(there:cpu(), here, { rtol = 1e-4, atol = 1e-3 }))

-- A transposed view is no dense tensor: `add` refuses it, the host makes a dense copy, and `add` is asked again.
local square = pg.randn { 8, 8 }
local on_tiny = square:to("tiny")
assert(((on_tiny:transpose(1, 2) + on_tiny):cpu() - (square:transpose(1, 2) + square)):abs():max():item() == 0)

-- What it does not support is an error that says who was asked and why it refused.
local function refused(what, fn, expected)
  local ok, err = pcall(fn)
  assert(not ok and err.code == "not_supported", tostring(err))
  assert(err:find(expected, 1, true), tostring(err))
  print(("%-20s %s"):format(what, err:match("[^:]+:%d+: (.*)")))
end
local counts, batch = pg.ones({ 2 }, { dtype = "int64" }):to("tiny"), on_tiny:reshape(2, 4, 8)
refused("another dtype", function() counts:add_(counts) end, "takes float32")
refused("a number", function() on_tiny:add_(1) end, "takes tensors, no numbers")
refused("broadcasting", function() on_tiny:add_(on_tiny[1]) end, "does not broadcast")
refused("a batch of matrices", function() batch = batch:matmul(on_tiny) end, "takes two matrices")
refused("no kernel at all", function() batch = on_tiny:exp() end, "exp")

-- 64 MiB is not much. The error comes before anything has happened, so the script goes on with what it has.
local held = {}
local ok, err = pcall(function()
  for i = 1, 10 do held[i] = pg.zeros({ 1024, 2048 }, { device = "tiny" }) end -- 8 MiB each
end)
assert(not ok and err.code == "out_of_memory", tostring(err))
print(("after %d blocks of 8 MiB: %s"):format(#held, err))
for i = 1, #held do held[i] = nil end
collectgarbage()
local again = pg.zeros({ 1024, 2048 }, { device = "tiny" })
assert((again + again):cpu():sum():item() == 0)
print(("after dropping them: %.0f MiB in use, and it computes"):format(pg.memory.stats("tiny:0").live / 2 ^ 20))
