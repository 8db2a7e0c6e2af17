-- SPDX-License-Identifier: Apache-2.0
-- Sums over processes of every size that goes another way, between as many processes as are a power of two and as are
-- not: right, the same bits on all of them, in place, and several under way at a time.

local tests = (debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or ".") .. "/../.."
package.path = tests .. "/?.lua;" .. package.path
local launched = require "launched"

-- `mine(n, dtype, r)`: what rank r adds. `alike(what, y)`: all ranks have the same bits.
local COMMON = [[
local native = require "perigee.native"
local WORLD = 1
local function mine(n, dtype, r)
  pg.manual_seed(100 + r)
  local x = pg.randn({ n }) * 3
  return (dtype == "uint8" and x:abs() or x):to(dtype or "float64")
end
local function expected(n, dtype)
  local total = mine(n, dtype, 0)
  for r = 1, size - 1 do total = total + mine(n, dtype, r) end
  return total
end
local function alike(what, y)
  local bits = y:numel() > 0 and d.all_gather(y:reshape(1, -1)) or y:reshape(0, 1)
  for r = 1, bits:size(1) do
    same(bits[r]:eq(y:reshape(-1)):all():item(), true, what .. ": rank " .. r - 1 .. " has other bits")
  end
end
]]

local function sums_of(sizes)
  return COMMON .. ("local SIZES = { %s }\n"):format(table.concat(sizes, ", ")) .. [[
    for _, n in ipairs(SIZES) do
      local what = n .. " elements"
      local y = d.all_reduce(mine(n, nil, rank))
      same(y:numel(), n, what)
      if n > 0 then near(what, y, expected(n)) end
      alike(what, y)
      local z = pg.keep(mine(n, nil, rank))
      native.dist.finish(native.dist.begin_sum(WORLD, z))
      if n > 0 then same(z:eq(y):all():item(), true, what .. " in place") end
      if n > 0 then near(what .. ", mean", d.all_reduce(mine(n, nil, rank), { op = "mean" }), expected(n) / size) end
    end
    for _, dtype in ipairs { "float16", "bfloat16", "float32", "int64", "int16", "uint8" } do
      for _, n in ipairs { 1, 300, 2500, 9000 } do
        local y = d.all_reduce(mine(n, dtype, rank))
        if dtype:find "int" then
          same(y:eq(expected(n, dtype)):all():item(), true, dtype)
        end
        alike(dtype .. " " .. n, y)
        local most = d.all_reduce(mine(n, dtype, rank), { op = "max" })
        local all = d.all_gather(mine(n, dtype, rank):reshape(1, -1))
        same(most:eq((all:max { axis = 1 })):all():item(), true, dtype .. " max")
      end
    end
  ]]
end

-- In float64: 8 bytes an element.
local FEW = { 0, 1, 7, 128, 480, 481, 512, 960, 961, 1000, 2048, 2049, 5000 }

test("two processes: whole, in two messages, in halves of chunks", function(t)
  local sizes = { unpack(FEW) }
  for _, n in ipairs { 32768, 32769, 131072, 131073, 700001 } do sizes[#sizes + 1] = n end
  launched.well(t, 2, sums_of(sizes))
end)

test("two processes: sums of one size again and again, of sizes by turns, in place, and several at a time", function(t)
  launched.well(t, 2, COMMON .. [[
    for _, dtype in ipairs { "float32", "float64", "float16", "int32" } do
      for round = 1, 4 do
        for _, n in ipairs { 300, 300, 300, 900, 300, 60 } do
          local x = mine(n, dtype, rank)
          local y = d.all_reduce(x)
          alike(dtype .. " " .. n, y)
          if dtype ~= "float16" then near(dtype .. " " .. n, y, expected(n, dtype)) end
          same(x:eq(mine(n, dtype, rank)):all():item(), true, "the input is what it was")
          local z = pg.keep(mine(n, dtype, rank))
          native.dist.finish(native.dist.begin_sum(WORLD, z))
          same(z:eq(y):all():item(), true, "in place")
        end
        local begun, sums = {}, {}
        for k = 1, 5 do
          sums[k] = pg.keep(mine(300, dtype, rank) * k)
          begun[k] = native.dist.begin_sum(WORLD, sums[k])
        end
        for i = 1, 5 do native.dist.finish(begun[rank == 0 and i or 6 - i]) end
        local one = d.all_reduce(mine(300, dtype, rank))
        for k = 1, 5 do
          alike(dtype .. ", several", sums[k])
          if dtype == "float64" or dtype == "int32" then near(dtype .. ", several", sums[k], one * k) end
        end
      end
    end
  ]])
end)

test("two processes: a mean has the bits of a sum of halves, and does not overflow where a sum would", function(t)
  launched.well(t, 2, COMMON .. [[
    for _, dtype in ipairs { "float32", "float64", "float16", "bfloat16" } do
      for _, n in ipairs { 1, 7, 1000, 131073 } do
        pg.manual_seed(5 + rank)
        local x = (pg.randn { n } * 3):to(dtype)
        local mean, sum = d.all_reduce(x, { op = "mean" }), d.all_reduce(x * 0.5)
        same(mean:eq(sum):all():item(), true, dtype .. " " .. n)
      end
    end
    local largest = pg.tensor({ 60000, -60000 }, { dtype = "float16" })
    same(d.all_reduce(largest, { op = "mean" }), largest:totable())
  ]])
end)

test("three, four and five processes", function(t)
  for n = 3, 5 do launched.well(t, n, sums_of(FEW)) end
end)

test("which zero is larger, and whose NaN, is decided alike", function(t)
  for n = 2, 3 do
    launched.well(t, n, COMMON .. [[
      local zero = rank % 2 == 0 and 0 or -1 / math.huge
      for _, dtype in ipairs { "float32", "float64", "float16" } do
        for _, op in ipairs { "sum", "max", "min" } do
          local x = pg.tensor({ zero, -zero, rank == 1 and 0 / 0 or 1, -(0 / 0) }, { dtype = dtype })
          if rank > 0 then x[4] = 0 / 0 end
          local y = d.all_reduce(x, { op = op })
          local all = d.all_gather(pg.cat { 1 / y[{ { 1, 2 } }], y[{ { 3, 4 } }]:ne(y[{ { 3, 4 } }]):to(dtype) })
          for r = 1, size - 1 do
            for i = 1, 4 do same(all[4 * r + i]:item(), all[i]:item(), dtype .. " " .. op .. " " .. i) end
          end
        end
      end
    ]])
  end
end)

test("several under way, ended in another order by each process", function(t)
  for n = 2, 4 do
    launched.well(t, n, COMMON .. [[
      local ranks = {}
      for r = 0, size - 1 do ranks[r + 1] = r end
      local other = native.dist.group(ranks)
      local sums, begun = {}, {}
      for k = 1, 24 do
        local count = ({ 3, 700, 1000, 40000, 300000, 9 })[k % 6 + 1]
        sums[k] = pg.keep(mine(count, nil, rank) * k)
        begun[k] = native.dist.begin_sum(k % 2 == 0 and WORLD or other, sums[k])
      end
      same(d.all_reduce(pg.tensor(rank)):item(), size * (size - 1) / 2)
      for i = 1, 24 do
        local k = rank % 2 == 0 and i or 25 - i
        native.dist.finish(begun[k])
      end
      for k = 1, 24 do
        near("sum " .. k, sums[k], expected(sums[k]:numel()) * k)
        alike("sum " .. k, sums[k])
      end
    ]])
  end
end)
