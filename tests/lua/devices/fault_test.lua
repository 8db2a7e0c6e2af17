-- SPDX-License-Identifier: Apache-2.0
-- What goes wrong on a device: nth launches and copies of a training step, a device that is lost, writes that fail
-- half-way, inputs that are written to and overlap others.

local here = debug.getinfo(1, "S").source:match("^@(.*)lua/devices/[^/]*$") or "../../"
package.path = here .. "?.lua;" .. package.path

local pg = require "perigee"
local native = require "perigee.native"
local process = require "process"
local nn = pg.nn

local sim = pg.devices("sim")[1]

local function simulated(name, fn)
  test(name, function(t)
    if not sim then t.skip("there is no simulated accelerator") end
    native.without_device(fn, t, sim.name, native.find_device(sim.name)) -- whatever device the suite runs on
  end)
end

-- A step from given parameters, so that any number of them can be tried.
local function make(device, compiled)
  pg.manual_seed(3)
  local model = nn.Sequential { nn.Linear { 5, 4 }, nn.ReLU {}, nn.Linear { 4, 2 } }:to(device)
  local x, y = pg.randn { 6, 5 }:to(device), pg.randn { 6, 2 }:to(device)
  local first = {}
  for i, p in ipairs(model:parameters()) do first[i] = p:detach():clone() end
  local opt = pg.optim.SGD { model:parameters(), lr = 0.1 }
  local function step()
    opt:zero_grad()
    local loss = (model(x) - y):pow(2):mean()
    loss:backward()
    opt:step()
    return loss
  end
  if compiled then step = pg.compile(step) end
  local function restore()
    pg.no_grad(function() for i, p in ipairs(model:parameters()) do p:copy_(first[i]) end end)
  end
  local function run()
    local loss = step():item()
    local seen = { loss }
    for i, p in ipairs(model:parameters()) do seen[i + 1] = p:detach():totable() end
    return seen
  end
  return restore, run
end

for _, compiled in ipairs { false, true } do
  for _, what in ipairs { "launch", "copy" } do
    simulated(("each %s of a %s step fails in turn, by name, and the next one is right"):format(what,
      compiled and "compiled" or "plain"), function(t, d, index)
      local restore, run = make(d, compiled)
      for _ = 1, 4 do
        restore()
        run()
      end
      restore()
      local want = run()
      local failed, n = 0, 0
      repeat
        n = n + 1
        restore()
        pg.synchronize(d)
        native.device_native(index, "fail." .. what, n)
        local ok, err = pcall(run)
        native.device_native(index, "fail." .. what, 0)
        if not ok then
          failed = failed + 1
          t.ok(tostring(err):find(what .. " %d+ fails because PERIGEE_SIM_FAIL says so"), tostring(err))
          t.ok(tostring(err):find("number %d+"), "the error names the operation: " .. tostring(err))
          pcall(pg.synchronize, d)
          restore()
          t.equal(run(), want, ("after %s %d failed"):format(what, n))
        end
      until ok or n > 200
      t.ok(failed > 1 and n < 200, ("%d of %d failed"):format(failed, n))
    end)
  end
end

simulated("a device that a launch says is lost stays lost, and the rest goes on", function(t)
  local script = process.file [[
    local pg, native = require "perigee", require "perigee.native"
    local x = pg.ones({ 4 }, { device = "sim:0" })
    pg.synchronize "sim:0"
    native.device_native(native.find_device "sim:0", "lose", 1)
    local ok, err
    for _ = 1, 1e6 do
      ok, err = pcall(function() return x + 1 end)
      if not ok then break end
    end
    print(tostring(err))
    print(tostring(select(2, pcall(pg.zeros, { 1 }, { device = "sim:0" }))))
    print((pg.ones({ 2 }, { device = "sim:1" }) + 1):sum():item())
  ]]
  local text = process.run(("PERIGEE_SIM_DEVICES=2 '%s' '%s'"):format(process.need_perigee(t), script))
  os.remove(script)
  t.ok(text:find("add: sim:0: launch: sim:0 is lost", 1, true), text)
  t.ok(text:find("sim:0 is lost: sim:0 is lost", 1, true), text)
  t.ok(text:find("\n4\n", 1, true), text)
end)

test("a write that fails counts as one: what was saved of the tensor is not taken for what it was", function(t)
  local w = pg.tensor({ 1, 2, 3 }, { requires_grad = true })
  local x = w * 1
  local y = x * x
  local bad = pg.tensor({ 9 }, { dtype = "int64" })
  t.raises(function()
    pg.no_grad(function() x:index_add_(1, bad, pg.ones { 1 }) end)
    pg.synchronize() -- where faults are told later
  end, "out of range")
  t.raises(function() y:sum():backward() end, "modified")
end)

test("inputs that are written to may be parts of others", function(t)
  local function normalised(x, mean, var)
    return pg.batch_norm(x, nil, nil, mean, var, { training = true })
  end
  local x = pg.tensor { { 1, 2 }, { 3, 5 }, { 8, 13 } }
  local mean, var = x[1]:clone(), pg.ones { 2 }
  local want = normalised(x, mean, var)
  local shared = x:clone()
  local view, var2 = shared[1], pg.ones { 2 }
  t.equal(normalised(shared, view, var2), want)
  t.equal(shared[1], mean)
  t.equal(var2, var)
  t.equal(shared[2], { 3, 5 })
  local both = pg.ones { 3 }
  t.raises(function() normalised(x, both[{ { 1, 2 } }], both[{ { 2, 3 } }]) end, "written to share memory")
end)
