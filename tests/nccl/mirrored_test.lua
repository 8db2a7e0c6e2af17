-- SPDX-License-Identifier: Apache-2.0
-- Training on several devices of one process over NCCL: what copies between devices give, bit for bit, equal replicas;
-- and what fails is an error behind which training goes on.

local tests = (debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or ".") .. "/.."
package.path = tests .. "/?.lua;" .. package.path
local launched = require "launched"
local process = require "process"

-- A home without an engine for these devices.
local WITHOUT = "PERIGEE_HOME='" .. assert(os.getenv "HOME_WITHOUT_NCCL") .. "' "

local TRAIN = [[
local nn, optim = pg.nn, pg.optim
local DEVICES = { "cuda:2", "cuda:0", "cuda:1" }
local function train(dtype, around)
  pg.manual_seed(3)
  local strategy = d.mirrored { devices = DEVICES }
  local model, optimizer
  strategy:scope(function()
    model = nn.Sequential { nn.Linear { 5, 16 }, nn.Tanh {}, nn.Linear { 16, 1 } }:to(dtype)
    optimizer = optim.Adam { model:parameters(), lr = 0.02 }
  end)
  local x = pg.randn { 7, 5 }
  local ds = pg.data.from_slices { x = x:to(dtype), y = x:sum { axis = 2, keepdim = true }:to(dtype) }:batch(7)
  local function step()
    for _, batch in strategy:distribute(ds):each() do
      strategy:run(function(b)
        optimizer:zero_grad()
        nn.mse(model(b.x), b.y):backward()
        strategy:reduce_gradients(optimizer)
        optim.clip_grad_norm_(model:parameters(), 1)
        optimizer:step()
      end, batch)
    end
    for _, device in ipairs(DEVICES) do pg.synchronize(device) end
  end
  for n = 1, 4 do (around or pcall)(step, n) end
  local function text()
    local parts = {}
    for _, t in ipairs(model:parameters()) do
      parts[#parts + 1] = table.concat(t:detach():reshape(-1):to("float64"):totable(), " ")
    end
    return table.concat(parts, "\n")
  end
  local all = strategy:run(text)
  assert(#all == 3 and all[1] == all[2] and all[1] == all[3], "replicas differ")
  return all[1]
end
]]

local function run(t, body, environment)
  local path = process.file(launched.HEAD .. TRAIN .. "---\n" .. body .. "\nprint 'came to its end'\n")
  os.rename(path, path .. ".lua")
  local text, status = process.run(("PERIGEE_STANDIN_DEVICES=3 PERIGEE_STANDIN_JITTER=50 %s timeout 120 '%s' %s.lua")
                                     :format(environment or "", process.need_perigee(t), path))
  os.remove(path .. ".lua")
  return text, status
end

local function well(t, body, environment)
  local text, status = run(t, body, environment)
  if status ~= 0 or not text:find "came to its end" then error(text, 0) end
  return text
end

local MUST = "local function must(step) assert(pcall(step)) end\n"

test("the bits are those of copies between devices", function(t)
  local body = MUST .. [[for _, dtype in ipairs { "float32", "float64" } do print(train(dtype, must)) end]]
  local copied = well(t, body, WITHOUT)
  t.ok(well(t, body) == copied, "the bits differ")
  -- That NCCL is what carries them is seen by its failure, which does not come there.
  t.ok(well(t, body, WITHOUT .. "PERIGEE_STANDIN_FAIL=ncclAllReduce:1:999") == copied)
end)

test("a call that NCCL does not take, and one that fails on the devices: named, and training goes on", function(t)
  local body = [[
    local failed = {}
    print(train("float32", function(step)
      local ok, problem = pcall(step)
      if ok then return end
      failed[#failed + 1] = tostring(problem)
      for _ = 1, 2 do for _, device in ipairs(DEVICES) do pcall(pg.synchronize, device) end end
    end))
    print("failed " .. #failed .. ": " .. table.concat(failed, "; "))
  ]]
  local text = well(t, body, "PERIGEE_STANDIN_FAIL=ncclAllReduce:7:999")
  t.ok(text:find "failed [12]: .-ncclAllReduce: unhandled cuda error", text)
  text = well(t, body, "PERIGEE_STANDIN_FAIL=ncclRemote:20:999")
  t.ok(text:find "failed [12]: .-remote process exited or there was a network error", text)
end)

test("a call that does not end: an error at the deadline, no hang", function(t)
  local text, status = run(t, [[
    d.deadline(0.3)
    train("float32", function(step) assert(pcall(step)) end)
  ]], "PERIGEE_STANDIN_FAIL=ncclHang:9:999")
  t.ok(status == 1 and text:find "took more than 0.3 seconds", text)
end)
