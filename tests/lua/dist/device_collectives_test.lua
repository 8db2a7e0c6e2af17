-- SPDX-License-Identifier: Apache-2.0
-- Devices of one process whose type has an engine of collectives (sim): training has the bits that copies between
-- devices give it, nothing races, and what fails at one device is an error that says so, behind which training goes on.

local tests = (debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or ".") .. "/../.."
package.path = tests .. "/?.lua;" .. package.path
local launched = require "launched"
local process = require "process"

-- train(...) answers, as text, what four steps of three devices end in, and what steps have raised that were made again
-- from the state before them.
local COMMON = [[
local nn, optim = pg.nn, pg.optim
local DEVICES = { "sim:2", "sim:0", "sim:1" }
local function synchronize()
  for _, device in ipairs(DEVICES) do pg.synchronize(device) end
end
local function train(dtype, clip)
  pg.manual_seed(3)
  local strategy, failed = d.mirrored { devices = DEVICES }, {}
  local model, optimizer
  strategy:scope(function()
    model = nn.Sequential { nn.Linear { 5, 16 }, nn.BatchNorm1d { 16 }, nn.Tanh {}, nn.Linear { 16, 1 } }:to(dtype)
    optimizer = optim.Adam { model:parameters(), lr = 0.02 }
  end)
  local x = pg.randn { 7, 5 }
  local ds = pg.data.from_slices { x = x:to(dtype), y = x:sum { axis = 2, keepdim = true }:to(dtype) }:batch(7)
  local function step()
    for _, batch in strategy:distribute(ds):each() do
      strategy:run(function(b)
        optimizer:zero_grad()
        nn.mse(model(b.x), b.y):backward()
        if clip then
          strategy:reduce_gradients(optimizer)
          optim.clip_grad_norm_(model:parameters(), 1)
        end
        optimizer:step()
      end, batch)
    end
    synchronize()
  end
  local function state()
    local copy = {}
    for name, t in pairs(model:state()) do copy[name] = t:clone() end
    return { copy, optimizer:state() }
  end
  local n, last = 1, state()
  while n <= 4 do
    local ok, problem = pcall(step)
    if ok then
      n, last = n + 1, state()
    else
      failed[#failed + 1] = tostring(problem)
      assert(#failed < 9, failed[#failed])
      for _ = 1, 2 do pcall(synchronize) end
      model:load_state(last[1])
      optimizer:load_state(last[2])
    end
  end
  local parts = {}
  for _, t in ipairs(model:parameters()) do
    parts[#parts + 1] = table.concat(t:detach():reshape(-1):to("float64"):totable(), " ")
  end
  parts[#parts + 1] = table.concat(model[2].running_mean:to("float64"):totable(), " ")
  return table.concat(parts, "\n"), failed
end
]]

local function run(t, body, environment)
  local path = process.file(launched.HEAD .. COMMON .. "---\n" .. body .. "\nprint 'came to its end'\n")
  os.rename(path, path .. ".lua")
  local text, status = process.run(("PERIGEE_SIM_DEVICES=4 PERIGEE_SIM_JITTER=50 PERIGEE_SIM_RACES=1 %s timeout 240 " ..
                                    "'%s' %s.lua"):format(environment or "", process.need_perigee(t), path))
  os.remove(path .. ".lua")
  return text, status
end

local function well(t, body, environment)
  local text, status = run(t, body, environment)
  if status ~= 0 or not text:find "came to its end" then error(text, 0) end
  return text
end

local ALL = [[
  for _, dtype in ipairs { "float32", "float64", "bfloat16" } do
    for _, clip in ipairs { false, true } do
      local text, failed = train(dtype, clip)
      assert(#failed == 0, failed[1])
      print(text)
    end
  end
]]

test("the bits are those of copies between devices", function(t)
  local copied = well(t, ALL, "PERIGEE_SIM_MISSING=device_collectives")
  t.ok(well(t, ALL) == copied, "the bits differ")
  -- That no collective is made there is seen by its fault, which does not come.
  t.ok(well(t, ALL, "PERIGEE_SIM_MISSING=device_collectives PERIGEE_SIM_FAIL=collective:1") == copied)
end)

-- Whatever a step does between its backward passes and the optimizer's step: texts of what it ends in.
local CASES = [[
  local x = pg.rand { 10, 64 }
  local y = x:sum { axis = 2, keepdim = true }
  local native, numbers = require "perigee.native", {}
  for k = 1, 2 do numbers[k] = native.find_device("sim:" .. k - 1, "test") end
  local ENGINE = native.dist.device_group(numbers) ~= nil
  local function show(what, case, early)
    pg.manual_seed(1)
    local strategy = d.mirrored { devices = { "sim:1", "sim:0" } }
    local layers, optimizer, aside
    strategy:scope(function()
      layers = nn.Sequential { nn.Linear { 64, 512 }, nn.Tanh {}, nn.Linear { 512, 512 }, nn.Tanh {},
                               nn.Linear { 512, 1 } }
      aside = nn.Linear { 64, 1 }
      local params = layers:parameters()
      for _, p in ipairs(aside:parameters()) do params[#params + 1] = p end
      optimizer = optim.AdamW { params, lr = 0.01 }
    end)
    local params, sent, step = optimizer.groups[1].params, 0, 0
    for epoch = 1, 3 do
      for _, batch in strategy:distribute(pg.data.from_slices { x = x, y = y }:batch(7)):each() do -- 7 and 3
        step = step + 1
        strategy:run(function(b)
          if not case(step, strategy, optimizer, params, function(with_aside)
            local out = layers[1](b.x)
            out:hook(function()
              local reducer = strategy._reducers[optimizer]
              sent = math.max(sent, reducer and (reducer:counts()) or 0)
            end)
            for i = 2, #layers do out = layers[i](out) end
            if with_aside then out = out + aside(b.x) end
            nn.mse(out, b.y):backward()
          end) then optimizer:step() end
        end, batch)
      end
    end
    synchronize()
    local all = strategy:run(function()
      local parts = {}
      for i, p in ipairs(params) do parts[i] = p:detach():reshape(-1) end
      return pg.cat(parts)
    end)
    all = { all[1]:to "cpu", all[2]:to "cpu" }
    same(all[1]:eq(all[2]):all():item(), true, what .. ": replicas differ")
    same(ENGINE and sent > 0, ENGINE and early or false, what .. ": sent before backward was over")
    print(what, ("%.17g %.17g"):format(all[1]:to("float64"):sum():item(), all[1]:to("float64"):pow(2):sum():item()))
  end
  local function fresh(optimizer, backward, ...)
    optimizer:zero_grad()
    backward(...)
  end
  show("one backward", function(_, _, o, _, backward) fresh(o, backward) end, true)
  show("two", function(_, _, o, _, backward) fresh(o, backward) backward() end, true)
  show("one or two", function(step, _, o, _, backward)
    fresh(o, backward)
    if step % 3 == 0 then backward() end
  end, true)
  show("one or two, as the replica is", function(step, strategy, o, _, backward)
    fresh(o, backward)
    if (step + strategy.rank) % 2 == 0 then backward() end
  end, true)
  show("a step in every second run", function(step, _, o, _, backward)
    if step % 2 == 1 then o:zero_grad() end
    backward()
    return step % 2 == 1
  end, true)
  show("aside on one replica at times", function(step, strategy, o, _, backward)
    fresh(o, backward, strategy.rank == 1 and step % 2 == 0)
  end, true)
  show("halved behind backward", function(_, _, o, params, backward)
    fresh(o, backward, true)
    for _, p in ipairs(params) do p.grad:mul_(0.5) end
  end, true)
  show("another in its place", function(_, _, o, params, backward)
    fresh(o, backward, true)
    for _, p in ipairs(params) do p.grad = p.grad * 0.5 end
  end, true)
  show("changed on one replica behind the sums", function(_, strategy, o, params, backward)
    fresh(o, backward, true)
    strategy:reduce_gradients(o)
    if strategy.rank == 1 then params[1].grad:mul_(0.5) end
  end, true)
  show("a state that is loaded", function(step, _, o, _, backward)
    if step == 3 then o:load_state(o:state()) end
    fresh(o, backward, true)
  end, true)
  show("gradients of zeros", function(_, _, o, _, backward)
    o:zero_grad(false)
    backward(true)
  end, true)
]]

test("gradients are summed while backward computes: the bits of sums behind it, whatever a step does", function(t)
  local expected = well(t, CASES, "PERIGEE_SIM_MISSING=device_collectives")
  local text = well(t, CASES)
  t.ok(text == expected, text .. "\n" .. expected)
end)

test("a call that fails, wherever, is an error of its name, and training goes on to the same bits", function(t)
  local expected = well(t, [[print((train("float32", true)))]])
  for _, n in ipairs { 1, 4, 9 } do
    local text = well(t, [[
      local text, failed = train("float32", true)
      assert(failed[1], "nothing has failed")
      for _, problem in ipairs(failed) do
        assert(problem:find "all_reduce" or problem:find "broadcast" or problem:find "reduce", problem)
        assert(problem:find "because PERIGEE_SIM_FAIL says so", problem)
      end
      print(text)
    ]], "PERIGEE_SIM_FAIL=collective:" .. n)
    t.ok(text == expected, "the bits differ")
  end
end)

test("a link that is cut, a device that is lost, one that is late: named, and no hang", function(t)
  local function fails(environment, wanted, before)
    local text, status = run(t, (before or "") .. [[
      local text, failed = train("float32", false)
      print("failed: " .. tostring(failed[1]))
    ]], environment)
    t.ok(status == 1 and text:find(wanted), text)
  end
  fails("PERIGEE_SIM_LINKS=0-2:cut,0-1:cut,1-2:cut", "the link from sim:%d to sim:%d is cut")
  fails("PERIGEE_SIM_FAIL=lost:60", "sim:%d is lost")
  fails("PERIGEE_SIM_LINKS=0-2:/900000", "broadcast: took more than 0.2 seconds: ", "d.deadline(0.2)\n")
end)

test("what groups of devices may be", function()
  local native = require "perigee.native"
  local cpu = native.find_device("cpu", "test")
  assert(native.dist.device_group { cpu } == nil)
  local ok, problem = pcall(native.dist.device_group, { cpu, cpu })
  assert(not ok and tostring(problem):find "is named twice", problem)
end)
