-- SPDX-License-Identifier: Apache-2.0
-- Streams: work that touches the same tensors is ordered, whichever stream it runs on, and memory is not reused too
-- early.

local tests = (debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or ".") .. "/../.."
package.path = tests .. "/?.lua;" .. package.path
local pg = require "perigee"
local process = require "process"

-- What PERIGEE_TEST_SECOND names, the device in force, or the simulated one.
local function second(t)
  local named = os.getenv("PERIGEE_TEST_SECOND") or pg.device()
  if named ~= "cpu" then return named end
  local ok, found = pcall(pg.devices, "sim")
  if not ok or #found == 0 then t.skip("no simulated device") end
  return "sim:0"
end

test("a stream's result is seen on another stream", function(t)
  local device = second(t)
  local x = pg.arange(1000):to("float32"):to(device)
  for i = 1, 20 do
    local y = pg.stream(1, function() return x * i end)
    local z = y + 1                                        -- stream 0 reads what stream 1 writes
    local back = pg.stream(1, function() return z - 1 end) -- and the other way round
    t.equal(back[1000]:item(), 999 * i)
  end
end)

test("a write waits for readers on other streams", function(t)
  local device = second(t)
  local x = pg.zeros { 4096, device = device }
  for i = 1, 20 do
    local read = pg.stream(1, function() return x + 0 end)
    x:add_(1)
    t.equal(read:sum():item(), 4096 * (i - 1))
  end
  t.equal(x:sum():item(), 4096 * 20)
end)

test("memory freed while another stream reads it is not reused too early", function(t)
  local device = second(t)
  for i = 1, 50 do
    local x = pg.full({ 2048 }, i, { device = device })
    local read = pg.stream(1, function() return x * 1 end)
    x:free()
    local other = pg.full({ 2048 }, -1, { device = device }) -- would land on x's memory
    t.equal(read:amax():item(), i)
    t.equal(read:amin():item(), i)
    t.equal(other:amax():item(), -1)
  end
end)

test("the stream is restored on error", function(t)
  second(t)
  t.raises(function() pg.stream(1, function() error("stop") end) end, "stop")
  t.raises(function() pg.stream(-1, print) end, "from 0 to 31")
  t.raises(function() pg.stream(32, print) end, "from 0 to 31")
end)

test("stream: what is written waits for all that was read, behind an earlier read too", function(t)
  local path = process.file [[
    local pg = require "perigee"
    pg.device("sim:0", function()
      local x = pg.ones { 4 }
      local first = pg.stream(1, function() return x + 1 end)
      local second = x:exp()
      pg.stream(1, function() x:add_(1) end)
      print(first[1]:item(), ("%.4f"):format(second[1]:item()), x[1]:item())
    end)
  ]]
  local text = process.run(("PERIGEE_SIM_RACES=1 '%s' '%s'"):format(process.need_perigee(t), path))
  os.remove(path)
  t.equal(text, "2\t2.7183\t2\n")
end)
