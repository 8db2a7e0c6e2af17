-- SPDX-License-Identifier: Apache-2.0
-- Pipelines over devices and over processes train as the whole model does; schedules wait as their formula says.

local tests = (debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or ".") .. "/../.."
package.path = tests .. "/?.lua;" .. package.path
local launched = require "launched"
local process = require "process"
local pg = require "perigee"

local COMMON = [[
local nn, optim = pg.nn, pg.optim
local function build(i) -- stage i of 4
  pg.manual_seed(i)
  if i == 1 then return nn.Sequential { nn.Embedding { 10, 6 }, nn.Linear { 6, 8 } }:to "float64" end
  if i == 4 then return nn.Sequential { nn.Linear { 8, 4 }, nn.Tanh {}, nn.Linear { 4, 1 } }:to "float64" end
  return nn.TransformerEncoderLayer { 8, 2, 16, dropout = 0 }:to "float64"
end
local function data()
  pg.manual_seed(9)
  local x = pg.randint(0, 10, { 10, 3 })
  return x, x:to "float64":unsqueeze(3)
end
local function near(what, a, b)
  local e = (a:cpu() - b:cpu()):abs():max():item() / (b:abs():max():item() + 1e-30)
  if not (e < 1e-9) then error(("%s differs by %g"):format(what, e), 2) end
end
-- `trained(stage)`: a pipeline's stage behind three steps, or nil.
local function train_whole(x, y)
  local list = {}
  for i = 1, 4 do list[i] = build(i) end
  local whole = nn.Sequential(list)
  local optimizer = optim.SGD { whole:parameters(), lr = 0.05, momentum = 0.9 }
  local losses = {}
  for step = 1, 3 do
    optimizer:zero_grad()
    local loss = nn.mse(whole(x), y)
    loss:backward()
    losses[step] = loss:detach()
    optimizer:step()
  end
  return whole, losses
end
local function train_pipeline(pipeline, x, y, losses)
  local optimizer = optim.SGD { pipeline:parameters(), lr = 0.05, momentum = 0.9 }
  for step = 1, 3 do
    optimizer:zero_grad()
    near("loss", pipeline:step(x, y), losses[step])
    optimizer:step()
  end
end
local function same_stages(pipeline, whole, x)
  for i, stage in pairs(pipeline.stages) do
    for k, p in ipairs(stage:parameters()) do near("stage " .. i, p:detach(), whole[i]:parameters()[k]:detach()) end
  end
  near("evaluation", pg.no_grad(function() return pipeline(x) end), pg.no_grad(function() return whole(x) end))
end
]]

test("processes: every schedule trains as the whole model does", function(t)
  launched.well(t, 2, COMMON .. [[
    local x, y = data()
    local whole, losses = train_whole(x, y)
    local made = {}
    local function maker(i)
      return function()
        made[#made + 1] = i
        return build(i)
      end
    end
    for _, name in ipairs { "1f1b", "gpipe", "interleaved" } do
      local stages = { maker(1), maker(2), maker(3), maker(4) }
      if name ~= "interleaved" then
        stages = { function() return nn.Sequential { maker(1)(), maker(2)() } end,
                   function() return nn.Sequential { maker(3)(), maker(4)() } end }
      end
      made = {}
      local pipeline = d.pipeline { stages = stages, micro_batches = 4, schedule = name, loss = nn.mse }
      same(#made, 2)
      train_pipeline(pipeline, x, y, losses)
      local of = whole
      if name ~= "interleaved" then
        of = nn.Sequential { nn.Sequential { whole[1], whole[2] }, nn.Sequential { whole[3], whole[4] } }
      end
      same_stages(pipeline, of, x)
      raises(function() pipeline:step(x[{ { 1, 3 } }], y[{ { 1, 3 } }]) end, "are fewer than 4")
    end
    raises(function() d.pipeline { stages = { build(1), build(2), build(3) } } end, "3 stages cannot be shared by 2")
    raises(function() d.pipeline { stages = { build(1), build(2), build(3), build(4) } } end, "need schedule=")
  ]])
end)

test("replicas of pipelines: a mesh", function(t)
  launched.well(t, 4, COMMON .. [[
    local mesh = d.mesh { data = 2, pipeline = 2 }
    local x, y = data()
    local whole, losses = train_whole(x, y)
    local strategy = d.multi_worker { mesh = mesh }
    local pipeline = d.pipeline { group = mesh.pipeline, micro_batches = 2, loss = nn.mse, stages = {
      function() return nn.Sequential { build(1), build(2) } end,
      function() return nn.Sequential { build(3), build(4) } end } }
    local optimizer = optim.SGD { pipeline:parameters(), lr = 0.05, momentum = 0.9 }
    local ds = pg.data.from_slices { x = x, y = y }:batch(10)
    for step = 1, 3 do
      for _, batch in strategy:distribute(ds):each() do
        strategy:run(function(b)
          optimizer:zero_grad()
          pipeline:step(b.x, b.y)
          optimizer:step()
        end, batch)
      end
    end
    local halves = { nn.Sequential { whole[1], whole[2] }, nn.Sequential { whole[3], whole[4] } }
    same_stages(pipeline, nn.Sequential(halves), x)
  ]])
end)

test("devices of one process: every schedule", function(t)
  local perigee = process.need_perigee(t)
  local path = process.file("local pg = require 'perigee'\nlocal d = pg.dist\n" .. COMMON .. [[
    local x, y = data()
    local whole, losses = train_whole(x, y)
    for _, case in ipairs { { "1f1b", 4 }, { "gpipe", 4 }, { "interleaved", 2 } } do
      local devices = {}
      for i = 1, case[2] do devices[i] = "sim:" .. i - 1 end
      local pipeline = d.pipeline { stages = { build(1), build(2), build(3), build(4) }, devices = devices,
                                    micro_batches = 4, schedule = case[1], loss = nn.mse }
      train_pipeline(pipeline, x, y, losses)
      same_stages(pipeline, whole, x)
    end
    local ok, err = pcall(d.pipeline, { stages = { build(1), build(2) }, devices = { "sim:0", "sim:0" } })
    assert(not ok and tostring(err):find "sim:0 is named twice: devices 1 and 2", tostring(err))

    -- a model that one device has not the memory for
    local W = 256
    local function layers(n)
      pg.manual_seed(3)
      local list = {}
      for i = 1, n do list[i] = nn.Linear { W, W, bias = false } end
      return list
    end
    local all, input = layers(8), pg.ones { 4, W }
    local expected = nn.Sequential(all)(input):sum()
    expected:backward()
    -- Parameters of all and no gradients; or of half, gradients, and those of a pass; and what streams have at least.
    local limit = 14 * W * W * 4
    for i = 0, 1 do pg.config.memory_limit("sim:" .. i, limit) end
    ok, err = pcall(function()
      local one = nn.Sequential(layers(8)):to "sim:0"
      one(input:to "sim:0"):sum():backward()
      pg.synchronize "sim:0"
    end)
    assert(not ok and err.code == "out_of_memory", "one device has room: " .. tostring(err))
    pg.memory.collect()
    for i = 0, 1 do pg.memory.empty_cache("sim:" .. i) end
    local parts = layers(8)
    local pipeline = d.pipeline { devices = { "sim:0", "sim:1" }, micro_batches = 2,
      stages = { nn.Sequential { unpack(parts, 1, 4) }, nn.Sequential { unpack(parts, 5, 8) } },
      loss = function(z) return z:sum() / z.shape[1] end }
    local loss = pipeline:step(input)
    assert(((loss * 4):cpu() - expected):abs():item() < 1e-4 * expected:abs():item(), "losses differ")
    for i, p in ipairs(pipeline:parameters()) do
      local g = all[i].weight.grad
      assert((p.grad:cpu() * 4 - g):abs():max():item() < 1e-4 * g:abs():max():item(), "gradients differ")
    end
    print "came to its end"
  ]])
  os.rename(path, path .. ".lua")
  local text, status = process.run(("PERIGEE_SIM_DEVICES=4 timeout 60 %s %s.lua"):format(perigee, path))
  os.remove(path .. ".lua")
  if status ~= 0 or not text:find "came to its end" then error(text) end
end)

test("schedules wait as the formula says, hold what they may, and finish", function(t)
  local schedules = require "perigee.dist.schedules"
  for _, case in ipairs {
    { "1f1b", 2, 4, 1 }, { "1f1b", 4, 8, 1 }, { "1f1b", 4, 2, 1 }, { "gpipe", 4, 8, 1 }, { "interleaved", 2, 4, 2 },
    { "interleaved", 4, 8, 2 }, { "interleaved", 4, 4, 2 }, { "interleaved", 4, 16, 3 }, { "interleaved", 1, 3, 2 },
    { "1f1b", 8, 64, 1 },
  } do
    local name, places, micros, each = unpack(case)
    local lists = {}
    for place = 0, places - 1 do
      lists[place + 1] = schedules.of(name, place, places, micros, each)
      t.equal(#lists[place + 1], 2 * micros * each)
      local held, most = 0, 0
      for _, s in ipairs(lists[place + 1]) do
        held = held + (s.kind == "F" and 1 or -1)
        most = math.max(most, held)
      end
      if name == "1f1b" then t.equal(most, math.min(places - place, micros)) end
    end
    local _, bubble = schedules.time(lists, places * each, 1, 2)
    t.close(bubble, (places - 1) / (micros * each + places - 1))
  end
  local nn = pg.nn
  local pipeline = pg.dist.pipeline { stages = { nn.Linear { 2, 2 }, nn.Linear { 2, 1 } }, devices = { "cpu" },
                                      micro_batches = 3, loss = nn.mse }
  t.equal(pipeline:bubble(), 0)
  t.equal(#pipeline:parameters(), 4)
  t.raises(function() pg.dist.pipeline { stages = {}, devices = { "cpu" } } end, "stages must be a list of layers")
  t.raises(function() pg.dist.pipeline { stages = { 1 }, devices = { "cpu" } } end, "stage 1 must be a layer")
  local without = pg.dist.pipeline { stages = { nn.Linear { 2, 2 } }, devices = { "cpu" } }
  t.raises(function() without:step(pg.ones { 4, 2 }) end, "has no loss")
end)
