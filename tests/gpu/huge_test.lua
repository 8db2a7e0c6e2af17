-- SPDX-License-Identifier: Apache-2.0
-- Tensors of more than 2^31 elements on the device in force: a byte each, so that 12 GiB are enough. Skipped where
-- there is less, and on other devices, which would take minutes. PERIGEE_TEST_HUGE=COUNT rehearses it smaller.

local pg = require "perigee"

local COUNT = tonumber(os.getenv("PERIGEE_TEST_HUGE") or 2 ^ 31 + 17)
local device = pg.device()

-- Bytes; a device that does not know how many it has is taken to have enough.
local function room()
  for _, d in ipairs(pg.devices()) do
    if d.name == device then
      local bytes = d.memory_free > 0 and d.memory_free or d.memory_total
      return bytes > 0 and bytes or math.huge
    end
  end
end

local function huge(name, fn)
  test("huge/" .. name, function(t)
    if not (device:find("^cuda") or os.getenv("PERIGEE_TEST_HUGE")) then t.skip("for GPUs") end
    if room() < 6 * COUNT then t.skip("less than 6 bytes an element of memory") end
    local x = pg.full({ COUNT }, 1, { dtype = "int8" })
    x[COUNT] = 3
    fn(t, x)
    x:free()
    pg.memory.collect()
    pg.memory.empty_cache(device)
  end)
end

huge("fill, write, read, sum", function(t, x)
  t.equal(x[1]:item(), 1)
  t.equal(x[COUNT - 1]:item(), 1)
  t.equal(x[COUNT]:item(), 3)
  t.equal(x:sum():item(), COUNT + 2)
  t.equal(x:amax():item(), 3)
  t.equal(x:argmax():item(), COUNT - 1)
end)

huge("elementwise", function(t, x)
  local y = x + x
  t.equal(y[COUNT]:item(), 6)
  t.equal(y:sum():item(), 2 * COUNT + 4)
  y:add_(x)
  t.equal(y[{ { COUNT - 1, COUNT } }]:totable(), { 3, 9 })
  local equal = x:eq(3)
  t.equal(equal:to("uint8"):sum():item(), 1)
end)

huge("views that begin anywhere", function(t, x)
  local odd = x[{ { 2, COUNT } }]
  t.equal((odd + 1):sum():item(), 2 * (COUNT - 1) + 2)
  local stepped = x[{ { 1, COUNT, 2 } }]:clone()
  t.equal(stepped:sum():item(), math.ceil(COUNT / 2) + (COUNT % 2 == 1 and 2 or 0))
end)

huge("transposed, broadcast", function(t, x)
  local rows = math.floor(COUNT / 3)
  local matrix = x[{ { COUNT - 3 * rows + 1, COUNT } }]:reshape(rows, 3)
  local turned = matrix:t():contiguous()
  t.equal(turned[{ 3, rows }]:item(), 3)
  t.equal(turned:sum(2):totable(), { rows, rows, rows + 2 })
  t.equal(matrix:sum(1):totable(), { rows, rows, rows + 2 })
  local scaled = matrix * pg.tensor({ 1, 2, 4 }, { dtype = "int8" })
  t.equal(scaled[{ rows, {} }]:totable(), { 1, 2, 12 })
end)

huge("found, selected, joined", function(t, x)
  t.equal(x:eq(3):nonzero():totable(), { { COUNT - 1 } })
  t.equal(x[pg.tensor({ COUNT - 1, 0, COUNT - 2 }, { dtype = "int64" })]:totable(), { 3, 1, 1 })
  t.equal(x[x:eq(3)]:totable(), { 3 })
  local half = math.floor(COUNT / 2)
  local joined = pg.cat { x[{ { half + 1, COUNT } }], x[{ { 1, half } }] }
  t.equal(joined[COUNT - half]:item(), 3)
  t.equal(joined:sum():item(), COUNT + 2)
end)

huge("random numbers", function(t)
  pg.manual_seed(5)
  local bits = pg.randint(0, 2, { COUNT }, { dtype = "int8" })
  local share = bits:sum():item() / COUNT
  t.ok(math.abs(share - 0.5) < 5 / math.sqrt(COUNT), share)
  local half = math.floor(COUNT / 2)
  local first, second = bits[{ { 1, half } }], bits[{ { COUNT - half + 1, COUNT } }]
  local alike = first:eq(second):to("uint8"):sum():item() / half
  t.ok(alike < 0.6, alike) -- the same bits do not come again beyond 2^31
end)
