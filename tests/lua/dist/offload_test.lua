-- SPDX-License-Identifier: Apache-2.0
-- offload="host" under every strategy: with averages and recomputed layers training has the bits of states that stay,
-- and so have checkpoints.

local tests = (debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or ".") .. "/../.."
package.path = tests .. "/?.lua;" .. package.path
local launched = require "launched"
local process = require "process"

local COMMON = [[
local nn, optim = pg.nn, pg.optim
local function live(device)
  collectgarbage()
  collectgarbage()
  pg.memory.collect()
  return pg.memory.stats(device).live
end
local function build(device)
  return nn.Sequential { nn.Linear { 6, 16 }, nn.Tanh {}, nn.Linear { 16, 16 }, nn.Tanh {},
                         nn.Linear { 16, 1 } }:to(device)
end
-- Own loop with an average, recomputed layers and clipping: what all have in the end, and the bytes that states take.
local function train(strategy, device, offload, level, name)
  pg.manual_seed(4)
  local model, optimizer, average
  local before = live(device)
  strategy:scope(function()
    model = build(device)
    if level then d.shard(model, { level = level }) end
    optimizer = optim.AdamW { model:parameters(), lr = 0.02, offload = offload }
    average = optim.EMA { model, decay = 0.5 }
  end)
  local x = pg.randn { 20, 6 }
  local ds = pg.data.from_slices { x = x, y = x:sum { axis = 2, keepdim = true } }:batch(8)
  for epoch = 1, 2 do
    for step, batch in strategy:distribute(ds):each() do
      strategy:run(function(b)
        local here = pg.device() == "cpu" and device or pg.device()
        local loss = nn.mse(pg.recompute(model, b.x:to(here)), b.y:to(here))
        optimizer:zero_grad()
        loss:backward()
        strategy:reduce_gradients(optimizer)
        optim.clip_grad_norm_(model:parameters(), 1)
        optimizer:step()
        average:update()
      end, batch)
    end
  end
  optimizer:zero_grad()
  local all, bytes = {}, 0
  for i, p in ipairs(model:parameters()) do all[i] = p:detach():to("cpu"):totable() end
  for name, t in pairs(average:state().shadow) do all["average " .. name] = t:to("cpu"):totable() end
  for _, list in pairs(optimizer.groups[1].slots) do
    for i, t in pairs(list) do
      all[#all + 1] = t:to("cpu"):totable()
      bytes = bytes + math.ceil(t:numel() * 4 / 64) * 64 -- as blocks of memory have them
      same(t.device, offload and "cpu" or device)
    end
  end
  local path
  if name then
    local manager = (level and d.Checkpoints or pg.CheckpointManager) { name .. (offload or "none"), model = model,
                                                                        optimizer = optimizer }
    if level or rank == 0 then path = manager:save { step = 6 } end
    manager:restore()
    for _, list in pairs(optimizer.groups[1].slots) do
      for _, t in pairs(list) do same(t.device, offload and "cpu" or device) end
    end
  end
  collectgarbage()
  local now = live(device) - before
  return all, now, bytes, path
end
local function read(path)
  local f = assert(io.open(path, "rb"))
  local text = f:read "*a"
  f:close()
  return text
end
-- With states that stay and with offload; answers the paths of the checkpoints.
local function compare(new_strategy, device, level, name, what)
  train(new_strategy(), device, nil, level) -- what is made once
  local expected, plain, bytes, first = train(new_strategy(), device, nil, level, name)
  local got, host, _, second = train(new_strategy(), device, "host", level, name)
  for key, value in pairs(expected) do same(got[key], value, what .. ": " .. key .. " differs") end
  same(plain - host, bytes, ("%s: %d and %d bytes are live; the states have %d"):format(what, plain, host, bytes))
  return first, second
end
]]

test("devices of one process", function(t)
  local path = process.file(launched.HEAD .. COMMON .. "---\n" .. [[
    local name = os.tmpname() .. "."
    for n = 1, 3 do
      local function strategy() return d.mirrored { devices = { unpack({ "sim:0", "sim:1", "sim:2" }, 1, n) } } end
      local first, second = compare(strategy, "sim:0", nil, name .. n, n .. " devices")
      same(read(first), read(second), "checkpoints differ")
    end
    os.execute("rm -rf '" .. name .. "'*")
    print "came to its end"
  ]])
  local text, status = process.run(("PERIGEE_SIM_DEVICES=3 PERIGEE_SIM_JITTER=30 PERIGEE_SIM_RACES=1 timeout 60 " ..
                                    "'%s' %s"):format(process.need_perigee(t), path))
  if status ~= 0 or not text:find "came to its end" then error(text, 0) end
end)

test("processes, and parameters, gradients and states that are spread over them", function(t)
  local folder = os.tmpname()
  os.remove(folder)
  launched.well(t, 2, COMMON .. ([[
    local name = "%s."
    local first, second = compare(d.multi_worker, "sim:0", nil, name, "processes")
    if rank == 0 then same(read(first), read(second), "checkpoints differ") end
    for level = 1, 3 do
      first, second = compare(d.multi_worker, "sim:0", level, name .. level, "level " .. level)
      d.barrier()
      if rank == 0 then
        assert(first ~= second)
        local p = io.popen(("diff -r '%%s' '%%s' 2>&1"):format(first, second))
        local text = p:read "*a"
        p:close()
        same(text, "", text)
      end
      d.barrier()
    end
  ]]):format(folder), "PERIGEE_SIM_JITTER=30")
  os.execute("rm -rf '" .. folder .. "'*")
end)
