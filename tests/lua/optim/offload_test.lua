-- SPDX-License-Identifier: Apache-2.0
-- offload="host": states of optimizers in host memory. Scripts run in processes of their own, with simulated devices
-- whose streams are late and whose races are errors.

local tests = (debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or ".") .. "/../.."
package.path = tests .. "/?.lua;" .. package.path
local launched = require "launched"
local process = require "process"
local pg = require "perigee"

local COMMON = [[
local nn, optim = pg.nn, pg.optim
local function free() collectgarbage() collectgarbage() pg.memory.collect() end
local function live(device) free() return pg.memory.stats(device).live end
local SHAPES = { { 5, 7 }, { 3 }, { 0, 4 }, { 2, 3, 4 }, {}, { 65, 2 } }
local DTYPES = { "float32", "bfloat16", "float32", "float64", "float32", "float16" }
-- Leaves of several dtypes and shapes, and gradients that differ in each step; the second has none in the first step.
local function leaves(device, matrices)
  pg.manual_seed(3)
  local list = {}
  for i, shape in ipairs(SHAPES) do
    if not matrices or #shape >= 2 then
      list[#list + 1] = pg.randn(shape, { dtype = "float32" }):to(DTYPES[i]):to(device):requires_grad_()
    end
  end
  return list
end
local function set_gradients(list, step)
  pg.manual_seed(step)
  for i, p in ipairs(list) do
    local gradient = pg.randn(p.shape, { dtype = "float32" }):to(p.dtype):to(p.device)
    if step > 1 or i ~= 2 then p.grad = gradient end
  end
end
local function contents(list, optimizer)
  local all, state = {}, optimizer:state()
  for i, p in ipairs(list) do all[i] = p:detach():to("cpu"):to("float64"):totable() end
  for g, group in ipairs(state.groups) do
    all[#all + 1] = group.steps
    for _, name in ipairs { "exp_avg", "exp_avg_sq", "momentum_buffer", "square_avg", "row_var", "col_var",
                            "variance" } do
      for i = 1, #group.steps do
        local t = group.slots[name] and group.slots[name][i]
        all[#all + 1] = t and t:to("cpu"):to("float64"):totable() or 0
      end
    end
  end
  return all
end
]]

local function well(t, body, environment)
  local path = process.file(launched.HEAD .. COMMON .. "---\n" .. body .. "\nprint 'came to its end'\n")
  os.rename(path, path .. ".lua")
  local text, status = process.run(("PERIGEE_SIM_DEVICES=3 PERIGEE_SIM_JITTER=50 PERIGEE_SIM_RACES=1 %s timeout 60 " ..
                                    "'%s' %s.lua"):format(environment or "", process.need_perigee(t), path))
  os.remove(path .. ".lua")
  if status ~= 0 or not text:find "came to its end" then error(text, 0) end
end

test("steps have the bits of states that stay: optimizers, dtypes, empties, groups", function(t)
  well(t, [[
    for _, case in ipairs { { "SGD", momentum = 0.9 }, { "Adam" }, { "AdamW", weight_decay = 0.1 }, { "RMSprop" },
                            { "LAMB" }, { "Adafactor" }, { "Muon", matrices = true }, { "SGD" } } do
      local function train(offload)
        local list = leaves("sim:1", case.matrices)
        local options = { list, lr = 0.05, momentum = case.momentum, weight_decay = case.weight_decay,
                          offload = offload }
        local optimizer = optim[case[1] ](options)
        if not case.matrices then
          list[#list + 1] = pg.randn({ 9 }, { device = "cpu" }):requires_grad_()
          optimizer:add_group { params = { list[#list] }, lr = 0.1 }
        end
        for step = 1, 4 do
          set_gradients(list, step)
          optimizer:step()
        end
        return contents(list, optimizer), optimizer
      end
      local expected, plain = train(nil)
      local got, optimizer = train "host"
      same(got, expected, case[1] .. " differs")
      same({ plain.groups[1].offload, optimizer.groups[1].offload, optimizer.groups[#optimizer.groups].offload },
           { false, "host", "host" })
      for _, group in ipairs(optimizer.groups) do
        for _, list in pairs(group.slots) do
          for _, state in pairs(list) do same(state.device, "cpu") end
        end
      end
    end
  ]])
end)

test("what is live on the device falls by the size of the states, to the byte", function(t)
  well(t, [[
    local function trained(offload)
      local before = live "sim:0"
      local model = nn.Sequential { nn.Linear { 64, 128 }, nn.Linear { 128, 32 } }:to "sim:0"
      local optimizer = optim.Adam { model:parameters(), offload = offload }
      for _ = 1, 3 do
        for _, p in ipairs(model:parameters()) do p.grad = p:detach() * 0.5 end
        optimizer:step()
      end
      return live "sim:0" - before, optimizer, model
    end
    local plain, a = trained(nil)
    local host, b, model = trained "host"
    local bytes = 0
    for _, p in ipairs(model:parameters()) do bytes = bytes + 2 * p:numel() * 4 end
    same(plain - host, bytes, ("%d and %d bytes are live; the states have %d"):format(plain, host, bytes))
  ]])
end)

test("a device that cannot hold parameters, gradients and states trains with the states in host memory", function(t)
  well(t, [[
    local MB = 2 ^ 20
    local function train(offload, limit, device)
      free()
      pg.memory.empty_cache(device)
      pg.config.memory_limit(device, limit and live(device) + limit or 0)
      local list = {}
      for i = 1, 8 do
        list[i] = pg.full({ 2 * MB / 4 * 2 }, i, { device = device }):requires_grad_()
        list[i].grad = list[i]:detach() * 0.5
      end
      local optimizer = optim.Adam { list, lr = 0.1, offload = offload }
      for _ = 1, 2 do optimizer:step() end
      return list, optimizer
    end
    local LIMIT = 64 * MB + 20 * MB -- eight times 4 MB of parameters, as many of gradients, twice as many of states
    raises(function() train(nil, LIMIT, "sim:0") end, "the limit set for this device")
    free()
    local list = train("host", LIMIT, "sim:0")
    local expected = train(nil, nil, "sim:1")
    for i, p in ipairs(list) do
      same({ p[1]:item(), p[-1]:item() }, { expected[i][1]:item(), expected[i][-1]:item() })
    end
  ]], "PERIGEE_SIM_RACES=0")
end)

test("states and checkpoints are the same; either way goes on with the other's; states move", function(t)
  well(t, [[
    local folder = os.tmpname()
    os.remove(folder)
    local function read(path)
      local f = assert(io.open(path, "rb"))
      local text = f:read "*a"
      f:close()
      return text
    end
    local function build(offload, name, device)
      pg.manual_seed(1)
      local model = nn.Sequential { nn.Linear { 3, 4 }, nn.Linear { 4, 2 } }:to(device)
      local optimizer = optim.AdamW { model:parameters(), lr = 0.02, offload = offload }
      return model, optimizer, pg.CheckpointManager { folder .. name, model = model, optimizer = optimizer }
    end
    local function step(model, optimizer, n)
      pg.manual_seed(n)
      optimizer:zero_grad()
      model(pg.randn({ 5, 3 }):to(model[1].weight.device)):pow(2):mean():backward()
      optimizer:step()
    end
    local paths = {}
    for _, offload in ipairs { "host", false } do
      local name = offload or "none"
      local model, optimizer, manager = build(offload, name, "sim:0")
      for n = 1, 3 do step(model, optimizer, n) end
      pg.manual_seed(7)
      paths[#paths + 1] = manager:save { step = 3 }
    end
    same(read(paths[1]), read(paths[2]), "the checkpoints differ")
    local results = {}
    for _, way in ipairs { { "host", "none" }, { false, "host" }, { "host", "host", "sim:2" }, { false, "none" } } do
      local model, optimizer, manager = build(way[1], way[2], "sim:0")
      manager:restore()
      for n = 4, 5 do step(model, optimizer, n) end
      if way[3] then model:to(way[3]) end
      optimizer.groups[1].offload = not way[1] and "host"
      for n = 6, 7 do step(model, optimizer, n) end
      same(optimizer.groups[1].slots.exp_avg[1].device, way[1] and (way[3] or "sim:0") or "cpu")
      results[#results + 1] = contents(model:parameters(), optimizer)
    end
    for i = 1, 3 do same(results[i], results[4], i .. " goes on otherwise") end
    os.execute("rm -rf '" .. folder .. "'*")
  ]])
end)

test("own loops in compiled functions, with scaled losses and recomputed layers, have the same bits", function(t)
  well(t, [[
    local function train(offload)
      pg.manual_seed(2)
      local model = nn.Sequential { nn.Linear { 3, 4 }, nn.Tanh {}, nn.Linear { 4, 1 } }:to "sim:0"
      local optimizer = optim.Adam { model:parameters(), lr = 0.02, offload = offload }
      local scaler = pg.amp.GradScaler { init_scale = 2 ^ 4 }
      local average = optim.EMA { model, decay = 0.5 }
      local function step(x)
        optimizer:zero_grad()
        scaler:scale(pg.recompute(model, x):pow(2):mean()):backward()
        scaler:step(optimizer)
        scaler:update()
        average:update()
      end
      local plain = function(x)
        optimizer:zero_grad()
        model(x):pow(2):mean():backward()
        optimizer:step()
      end
      local compiled = pg.compile(plain)
      for n = 1, 4 do step(pg.randn({ 5, 3 }):to "sim:0") end
      for n = 1, 4 do compiled(pg.randn({ 5, 3 }):to "sim:0") end
      local list = model:parameters()
      for _, name in ipairs { "0.weight", "2.bias" } do list[#list + 1] = average.shadow[name] end
      return contents(list, optimizer)
    end
    same(train "host", train(nil))
  ]])
end)

test("what offload may be, and where it is not", function(t)
  local list = { pg.ones({ 2 }, { requires_grad = true }) }
  t.raises(function() pg.optim.Adam { list, offload = "disk" } end,
           'Adam: offload must be "host", got string "disk"')
  t.raises(function() pg.optim.Adam { offload = true } end, "offload must be \"host\", got boolean true")
  t.raises(function() pg.optim.Adam { { { params = list, offload = 1 } } } end,
           "offload must be \"host\", got number 1")
  local optimizer = pg.optim.Adam { list, offload = "host" }
  t.raises(function() optimizer.groups[1].offload = "cpu" end, "offload must be \"host\"")
  t.raises(function() optimizer.offload = nil end, "a field of the parameter groups")
  t.raises(function()
    pg.graph(function()
      optimizer:minimize((list[1] * 2):sum())
    end)
  end, "cannot keep states in host memory")
  t.equal(optimizer.groups[1].offload, "host")
  list[1].grad = pg.ones { 2 }
  optimizer:step()
  optimizer:step()
end)
