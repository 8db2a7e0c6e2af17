-- SPDX-License-Identifier: Apache-2.0
-- What is loaded while compiled functions are used: devices that come later change nothing for those that are here.

local tests = (debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or ".") .. "/../.."
package.path = tests .. "/?.lua;" .. package.path
local process = require "process"

-- Runs a script in a process of its own, in which nothing is loaded yet.
local function apart(t, body)
  local perigee = process.need_perigee(t)
  local path = process.file([[
    local pg = require "perigee"
    local function loaded()
      local names = {}
      for _, p in ipairs(pg.plugins()) do
        if p.state == "available" and p.kinds:find "device" then names[#names + 1] = p.name end
      end
      return table.concat(names, " ")
    end
  ]] .. body)
  os.rename(path, path .. ".lua")
  local text, status = process.run(("PERIGEE_SIM_DEVICES=1 %s %s.lua"):format(perigee, path))
  os.remove(path .. ".lua")
  t.equal({ text, status }, { "well\n", 0 })
end

test("who waits for all devices waits for those that are here", function(t)
  apart(t, [[
    local x = pg.ones { 2 } + 1
    assert(loaded() == "cpu", loaded())
    pg.synchronize()
    assert(loaded() == "cpu", loaded())
    pg.synchronize "sim"
    assert(loaded():find "sim", loaded())
    print "well"
  ]])
end)

test("plans stay when another device's plugin is loaded", function(t)
  apart(t, [[
    local w = pg.randn { 8, 8 }
    w.requires_grad = true
    local function loss(x) return (x:matmul(w):relu() * 2):sum() end
    local step = pg.compile(function(x)
      w.grad = nil
      local y = loss(x)
      y:backward()
      return y:detach(), w.grad
    end)
    local call = pg.compile(function(x) return pg.inference_mode(loss, x) end, { frozen = true })
    local x = pg.randn { 4, 8 }
    for _ = 1, 4 do step(x) call(x) end
    local before, frozen = step:stats(), call:stats()
    assert(before.plans == 1 and before.hits == 2 and frozen.hits == 2, step:explain() .. call:explain())
    pg.devices()
    assert(loaded():find "sim", loaded())
    for _ = 1, 3 do step(x) call(x) end
    local after = step:stats()
    assert(after.plans == 1 and after.recorded == before.recorded and after.hits == 5, step:explain())
    after = call:stats()
    assert(after.recorded == frozen.recorded and after.hits == 5, call:explain())
    print "well"
  ]])
end)

test("what a frozen call has kept is given back once other kernels may serve", function(t)
  apart(t, [[
    local model = pg.nn.Sequential { pg.nn.Conv2d { 16, 64, 3 }, pg.nn.ReLU {}, pg.nn.Conv2d { 64, 64, 3 } }
    model:eval()
    local function run(x) return model(x) end
    local call = pg.compile(function(x) return pg.inference_mode(run, x) end, { frozen = true })
    local x = pg.randn { 1, 16, 12, 12 }
    local expected = model(x):detach()
    local function live()
      for _ = 1, 4 do call(x) end
      assert((call(x) - expected):abs():max():item() < 1e-4)
      collectgarbage()
      return pg.memory.stats("cpu").live
    end
    local first = live()
    for i = 1, 12 do
      pg.config.set { threads = i % 2 + 1 }
      local now = live()
      assert(now < first + 400000, ("%d bytes are live, %d at first\n"):format(now, first))
    end
    assert(call:stats().recorded >= 11, call:explain())
    print "well"
  ]])
end)
