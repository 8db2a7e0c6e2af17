-- SPDX-License-Identifier: Apache-2.0
-- Perigee's half of the GPU benchmark: perigee turns.lua DEVICE full|small ITEM. It makes the item's rows ready and
-- says so, then measures a block of one whenever it is told to, so that both halves take turns. turns.py is PyTorch's
-- half; an item has the same rows in both. With one more argument, "compiled", only the steps of models, by pg.compile.

local pg = require "perigee"
local native = require "perigee.native"

local device, small, item, compiled = arg[1] or "cuda:0", arg[2] == "small", arg[3], arg[4] == "compiled"
local here = arg[0]:match("^(.*)/[^/]*$") or "."
local BLOCK = small and 0 or 0.04 -- seconds, or one call
local BURST = 200 -- calls that a device's queue takes without waiting

local function say(...)
  print(table.concat({ ... }, " "))
  io.stdout:flush()
end
local function one_line(text) return (tostring(text):gsub("%s+", " ")) end

local b = { device = device, small = small, compiled = compiled }
local rows, order = {}, {}

function b.size(n) return small and math.max(4, math.floor(n / 64)) or n end
function b.side(n) return small and 8 or n end
function b.note(text) say("note", one_line(text)) end

function b.rand(shape, dtype, grad)
  local x = pg.rand(shape, { device = device }):to(dtype or "float32")
  return grad and x:requires_grad_() or x
end
function b.randn(shape, dtype, grad)
  local x = pg.randn(shape, { device = device }):to(dtype or "float32")
  return grad and x:requires_grad_() or x
end
function b.classes(n, ...) return pg.randint(0, n, { ... }, { device = device }) end

-- A row: run() is one call; `amount` of the unit are done in one where more is better (bytes for GB/s, operations for
-- TFLOP/s). Its first calls are made here: what they find out once is not measured.
local UNITS = { ["GB/s"] = 1e-9, ["TFLOP/s"] = 1e-12, ["1/s"] = 1, ms = 1e3, us = 1e6, ns = 1e9 }
function b.row(name, unit, run, amount, pure)
  if compiled and not pure then return end
  local ok, err = pcall(function()
    for _ = 1, 3 do run() end
    pg.synchronize(device)
    local start = native.clock()
    run()
    pg.synchronize(device)
    local count = math.max(1, math.min(1000, math.floor(BLOCK / (native.clock() - start))))
    rows[name] = function()
      collectgarbage "collect"
      pg.synchronize(device)
      local from = native.clock()
      for _ = 1, count do run() end
      pg.synchronize(device)
      local seconds = (native.clock() - from) / count
      return amount and amount / seconds * UNITS[unit] or seconds * UNITS[unit]
    end
  end)
  if ok then order[#order + 1] = { name, unit, amount and "more" or "less" } else say("failed", name, one_line(err)) end
end

-- How long the host is busy with a call: bursts that the device's queue takes without waiting.
function b.launches(name, run)
  if compiled then return end
  for _ = 1, 1000 do run() end
  rows[name] = function()
    pg.synchronize(device)
    collectgarbage "collect"
    local from = native.clock()
    for _ = 1, BURST do run() end
    return (native.clock() - from) / BURST * 1e9
  end
  order[#order + 1] = { name, "ns", "less" }
end

-- Products of float32 in TF32, where there is such a thing.
function b.with_tf32()
  local ok = pcall(pg.config.set, { matmul_precision = "high" })
  if not ok then b.note "Perigee computes no products in TF32: its figures in rows of TF32 are float32's" end
end

local found
for _, file in ipairs { "kernels", "products", "norms", "models" } do
  found = found or dofile(("%s/items/%s.lua"):format(here, file))(b)[item]
end
if not found then error(("turns.lua: there is no item %s"):format(item), 0) end
local ok, err = pcall(found)
if not ok then say("failed", item, one_line(err)) end
for _, row in ipairs(order) do say("row", unpack(row)) end
say "ready"

for line in io.lines() do
  local name = line:match("^go (%S+)$")
  if not name then break end
  local done, value = pcall(rows[name])
  if done then say("value", name, ("%.5g"):format(value)) else say("failed", name, one_line(value)) end
end
