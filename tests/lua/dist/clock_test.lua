-- SPDX-License-Identifier: Apache-2.0
-- The simulated accelerator's own clock (PERIGEE_SIM_CLOCK), and what it shows of pipelines: how long steps take where
-- launches and links take what is set, to the microsecond, on a machine of any speed.

local tests = (debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or ".") .. "/../.."
package.path = tests .. "/?.lua;" .. package.path
local process = require "process"

-- What each script begins with: what devices did while fn ran, in microseconds from the first beginning on.
local HEAD = [[
local pg = require "perigee"
local function microseconds(t) return math.floor(t * 1e6 + 0.5) end
local function told(fn)
  local profile, list, first = pg.profile(fn, { roofline = false, origins = false }), {}, math.huge
  for _, r in ipairs(profile.records) do
    if not r.thread and not r.block then -- what a device has told
      list[#list + 1] = r
      first = math.min(first, r.from)
    end
  end
  table.sort(list, function(a, b)
    if a.from ~= b.from then return a.from < b.from end
    return a.name < b.name
  end)
  local last = 0
  for _, r in ipairs(list) do
    r.from, r.to = microseconds(r.from - first), microseconds(r.to - first)
    last = math.max(last, r.to)
  end
  return list, last
end
]]

local function run(t, settings, body, words)
  local perigee = process.need_perigee(t)
  local path = process.file(HEAD .. body)
  local text, status = process.run(("PERIGEE_SIM_DEVICES=4 %s '%s' '%s' %s"):format(settings, perigee, path,
                                                                                    words or ""))
  os.remove(path)
  if status ~= 0 then error(("status %d: %s"):format(status, text), 2) end
  return text
end

test("launches, links and events take what is set", function(t)
  local text = run(t, "PERIGEE_SIM_CLOCK=exp:100,add:30,*:7 PERIGEE_SIM_LINKS=host-0:1MB/50,0-1:2MB/20", [[
    local x = pg.ones({ 256, 1024 }):to "sim:0"
    pg.synchronize()
    local function show(what, fn)
      local list, last = told(fn)
      local parts = {}
      for _, r in ipairs(list) do parts[#parts + 1] = ("%s %d-%d"):format(r.name, r.from, r.to) end
      print(what .. ": " .. table.concat(parts, ", ") .. "; " .. last)
    end
    show("one after the other", function() return x:exp():add(1):neg() end)
    show("beside each other", function()
      local a = pg.stream(1, x.exp, x)
      local b = pg.stream(2, x.add, x, 1)
      return a, b
    end)
    show("joined", function()
      local a = pg.stream(1, x.exp, x)
      return x:neg() + a
    end)
    show("from the host", function() return pg.ones({ 256, 1024 }):to "sim:0" end)
    show("to the other", function() return x:to "sim:1" end)
    show("waited for", function()
      x:exp()
      pg.synchronize "sim:0"
      return pg.stream(1, x.neg, x)
    end)
  ]])
  local function says(what, ...)
    local expected = what .. ": " .. (...):format(select(2, ...)) .. "\n"
    t.ok(text:find(expected, 1, true), ("%q is not in %s"):format(expected, text))
  end
  says("one after the other", "exp 0-100, add 100-130, neg 130-137; 137")
  says("beside each other", "add 0-30, exp 0-100; 100")
  says("joined", "exp 0-100, neg 0-7, add 100-130; 130")
  says("from the host", "upload 0-%d; %d", 1e6 + 50, 1e6 + 50)
  says("to the other", "transfer 0-%d; %d", 0.5e6 + 20, 0.5e6 + 20)
  says("waited for", "exp 0-100, neg 100-107; 107")
end)

test("collectives take what their links take", function(t)
  local text = run(t, "PERIGEE_SIM_CLOCK='*:0' PERIGEE_SIM_LINKS='*:1MB/100'", [[
    local strategy = pg.dist.mirrored { devices = { "sim:0", "sim:1", "sim:2", "sim:3" } }
    local p, optimizer
    strategy:scope(function()
      p = pg.nn.Linear { 1024, 256, bias = false }
      optimizer = pg.optim.SGD { p:parameters(), lr = 0.1 }
    end)
    local function step()
      strategy:run(function()
        optimizer:zero_grad()
        p:parameters()[1]:sum():backward()
        optimizer:step()
      end)
    end
    step()
    local longest = 0
    for _, r in ipairs((told(step))) do longest = math.max(longest, r.to - r.from) end
    print("longest " .. longest)
  ]])
  t.ok(text:find("longest " .. 1.5e6 + 600, 1, true), text) -- six times a quarter of 1 MB to the next one
end)

test("what the clock cannot read is an error", function(t)
  local perigee = process.need_perigee(t)
  for value, message in pairs { matmul = "'matmul' is not like matmul:1000 (microseconds)", [":5"] = "':5' is not like",
                                ["exp:fast"] = "'fast' is not a whole number in 0..10000000" } do
    local text = process.run(("PERIGEE_SIM_CLOCK='%s' '%s' plugins"):format(value, perigee))
    t.ok(text:find("PERIGEE_SIM_CLOCK: " .. message, 1, true), text)
  end
end)

-- Stages of a forward of 1 and a backward of 2 milliseconds: two products.
local PIPES = [[
local links = tonumber((...))
for i = 2, select("#", ...) do
  local schedule, places, each, micros = select(i, ...):match "^(%w+):(%d+):(%d+):(%d+)$"
  places, each, micros = tonumber(places), tonumber(each), tonumber(micros)
  local devices, stages = {}, {}
  for k = 1, places do devices[k] = "sim:" .. k - 1 end
  for s = 1, places * each do stages[s] = pg.nn.Linear { 8, 8, bias = false } end
  local pipeline = pg.dist.pipeline { stages = stages, devices = devices, micro_batches = micros,
                                      schedule = schedule, loss = pg.nn.mse }
  local x, y = pg.randn({ micros, 8 }, { device = "sim:0" }), pg.randn({ micros, 8 }, { device = devices[#devices] })
  x.requires_grad = true -- that the first stage computes as much as the others
  local function step() pipeline:step(x, y) end
  step()
  local list, total = told(step)
  local kernels = 0
  for _, r in ipairs(list) do kernels = kernels + (r.kind == "kernel" and r.to - r.from or 0) end
  local bubble, formula = 1 - kernels / places / total, pipeline:bubble()
  print(("%s bubble %.4f formula %.4f"):format(select(i, ...), bubble, formula))
  local within = (bubble - formula) / formula
  if not (within > -1e-9 and within < (links > 0 and 0.1 or 1e-9)) then error(within) end
end
]]
local SCHEDULES = "1f1b:2:1:4 1f1b:4:1:4 1f1b:4:1:8 1f1b:4:1:16 gpipe:4:1:8 interleaved:4:2:4 interleaved:4:2:8 " ..
                  "interleaved:2:2:8 interleaved:2:4:4 interleaved:3:3:9"

test("pipelines on devices wait as little as their schedules say", function(t)
  local text = run(t, "PERIGEE_SIM_CLOCK=linear:1000,matmul:1000", PIPES, "0 " .. SCHEDULES)
  local _, count = text:gsub("formula", "")
  t.equal(count, 10, text)
  run(t, "PERIGEE_SIM_CLOCK=linear:1000,matmul:1000 PERIGEE_SIM_LINKS='*:1GB/10'", PIPES, "10 " .. SCHEDULES)
end)

-- Backward as long as all sums of gradients, in sixteen layers; then each device steps for itself.
local OVERLAP = [[
local n, layers, width = tonumber((...)), 16, 256
local devices = {}
for k = 1, n do devices[k] = "sim:" .. k - 1 end
local strategy = pg.dist.mirrored { devices = devices }
local model, optimizer, parts = nil, nil, {}
strategy:scope(function()
  local list = {}
  for i = 1, layers do list[i] = pg.nn.Linear { width, width, bias = false } end
  model = pg.nn.Sequential(list)
  optimizer = pg.optim.Adam { model:parameters(), lr = 0.01 }
end)
for k = 1, n do parts[k] = pg.ones({ 2, width }, { device = devices[k] }) end
local function own()
  strategy:run(function()
    optimizer:zero_grad()
    model(parts[strategy.rank + 1]):sum():backward()
    optimizer:step()
  end)
end
local job = { x = pg.ones { 2 * n, width }, y = pg.ones { 2 * n, width }, loss = "mse", batch_size = 2 * n, epochs = 1,
              optimizer = optimizer, strategy = strategy, verbose = 0 }
for name, step in pairs { own = own, fit = function() model:fit(job) end } do
  for _ = 1, 3 do step() end -- the optimizer's state is made, and goes to all
  pg.synchronize()
  local list, total = told(step)
  local from, backward, sums = math.huge, 0, 0
  for _, r in ipairs(list) do
    if r.name == "matmul" then from = math.min(from, r.from) end
    if r.device == list[1].device then
      backward = backward + (r.name == "matmul" and r.to - r.from or 0)
      sums = sums + (r.stream == 31 and r.to - r.from or 0)
    end
  end
  print(("%s: step %d sums %d backward %d"):format(name, total - from, sums, backward))
  -- 0.15 of backward in which it computes what is sent first, and sends what it computes last
  if not (sums >= 0.98 * backward and total - from <= 1.15 * backward) then error(name) end
end
]]

test("gradients are summed while backward computes: a step takes what backward takes", function(t)
  for devices, cost in pairs { [2] = 131, [4] = 204 } do -- of 31 products
    local clock = ("PERIGEE_SIM_CLOCK='linear:60,matmul:%d,*:1'"):format(cost)
    local text = run(t, clock .. " PERIGEE_SIM_LINKS='*:1GB/5'", OVERLAP, devices)
    local _, count = text:gsub("step %d+ sums", "")
    t.equal(count, 2, text)
  end
end)

test("steps on 2, 4 and 8 devices take what the model of scaling says", function(t)
  local perigee = process.need_perigee(t)
  local settings = "PERIGEE_SIM_DEVICES=8 PERIGEE_SIM_CLOCK=linear:1000,matmul:1000 PERIGEE_SIM_LINKS='*:1GB/50'"
  local text, status = process.run(("%s '%s' '%s/bench/scaling.lua' check"):format(settings, perigee, tests))
  t.equal(status, 0, text)
  local count = 0
  for ratio in text:gmatch "ratio ([%d.]+)" do
    count = count + 1
    t.ok(math.abs(tonumber(ratio) - 1) < 0.01, text)
  end
  t.equal(count, 3, text)
  text, status = process.run(("'%s' '%s/bench/scaling.lua' buckets=1 latency=0 bandwidth=1e9"):format(perigee, tests))
  t.equal(status, 0, text) -- 1e8 bytes: 2 * 7 / 8 * 0.1 s on eight devices
  t.ok(text:find "\n +8 +0%.175 +0%.33 ", text)
end)
