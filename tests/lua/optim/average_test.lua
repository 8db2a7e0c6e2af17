-- SPDX-License-Identifier: Apache-2.0
-- optim.EMA and optim.SWA: averages of weights.

local pg = require "perigee"
local nn, optim = pg.nn, pg.optim

local function set(w, value) pg.no_grad(function() w:fill_(value) end) end

test("EMA forgets by its decay, with a warm-up if asked", function(t)
  for _, warmup in ipairs { false, true } do
    local w = pg.tensor({ 1, 1 }, { requires_grad = true })
    local ema, expected = optim.EMA { { w }, 0.9, warmup = warmup }, 1
    for n, value in ipairs { 3, -2, 5, 0 } do
      set(w, value)
      ema:update()
      local decay = warmup and math.min(0.9, n / (9 + n)) or 0.9
      expected = decay * expected + (1 - decay) * value
      t.close(ema.shadow[1]:totable(), { expected, expected }, 1e-6)
    end
    t.equal(w:totable(), { 0, 0 })
  end
end)

test("SWA is the mean of what it was shown", function(t)
  local w = pg.tensor({ 1, 1 }, { dtype = "float64" })
  local swa = optim.SWA { { w } }
  for _, value in ipairs { 3, 5, 10 } do
    set(w, value)
    swa:update()
  end
  t.close(swa.shadow[1]:totable(), { 6, 6 }, 1e-12)
end)

test("averages are swapped, used in a scope, copied; buffers go along", function(t)
  local model = nn.Sequential { nn.Linear { 2, 2 }, nn.BatchNorm1d { 2 } }
  local ema = optim.EMA { model, 0.5 }
  local weight, first = model[1].weight, model[1].weight:totable()
  set(weight, 4)
  set(model[2].running_mean, 7)
  ema:update()
  t.equal(ema.shadow["1.running_mean"]:totable(), { 7, 7 })
  local mean = ema.shadow["0.weight"]:totable()
  t.close(mean[1][1], (first[1][1] + 4) / 2)
  t.equal(ema:use(function(x) return x, weight:totable() end, 3), 3)
  local ok = pcall(ema.use, ema, function() error("inside") end)
  t.equal({ ok, weight:totable()[1][1] }, { false, 4 })
  t.equal(select(2, ema:use(function() return 1, weight:totable() end)), mean)
  ema:swap()
  t.equal(weight:totable(), mean)
  t.equal(ema.shadow["0.weight"]:totable()[1][1], 4)
  ema:swap()
  t.equal(weight:totable()[1][1], 4)
  local other = model:clone()
  ema:copy_to(other)
  t.equal(other[1].weight:totable(), mean)
  t.ok(other[1].weight.requires_grad)
  t.raises(function() ema:copy_to(nn.Linear { 2, 2 }) end, "not what is averaged")
end)

test("averages go on from their state, and survive a checkpoint", function(t)
  local folder = os.tmpname()
  os.remove(folder)
  local w = pg.tensor({ 1, 2 }, { requires_grad = true })
  local ema = optim.EMA { { w }, 0.9, warmup = true }
  set(w, 5)
  ema:update()
  pg.CheckpointManager({ folder, ema = ema }):save { step = 1 }
  local again = optim.EMA { { w }, 0.9, warmup = true }
  pg.CheckpointManager({ folder, ema = again }):restore()
  os.execute("rm -rf '" .. folder .. "'")
  t.equal(again.shadow[1]:totable(), ema.shadow[1]:totable())
  set(w, -3)
  ema:update()
  again:update()
  t.equal(again.shadow[1]:totable(), ema.shadow[1]:totable())
  t.raises(function() again:load_state { updates = 1, shadow = { pg.zeros { 3 } } } end, "expected float32 {2}")
  t.raises(function() again:load_state { updates = 1, shadow = { 3 } } end, "1 is number 3, expected float32 {2}")
  t.raises(function() again:load_state { updates = 1, shadow = {} } end, "1 is missing")
  for _, updates in ipairs { -1, 0.5, "1", 0 / 0 } do
    t.raises(function() again:load_state { updates = updates, shadow = ema.shadow } end, "updates must be a count")
  end
end)

test("16-bit weights have float32 averages", function(t)
  local w = pg.ones({ 2 }, { dtype = "bfloat16" })
  local ema = optim.EMA { { w }, 0.999 }
  set(w, 2)
  for _ = 1, 3 do ema:update() end
  t.close(ema.shadow[1]:totable()[1], 2 - 0.999 ^ 3, 1e-6)
  ema:copy_to()
  t.equal({ w.dtype, ema.shadow[1].dtype }, { "bfloat16", "float32" })
  local exact = ema.shadow[1]:totable()
  set(w, 3)
  for _ = 1, 2 do
    ema:swap()
    t.equal(ema.shadow[1]:totable(), { 3, 3 })
    ema:swap()
    t.equal({ ema.shadow[1]:totable(), w:totable() }, { exact, { 3, 3 } })
  end
  ema:swap()
  pg.no_grad(function() w[1] = 5 end) -- what is changed in between goes along
  ema:swap()
  t.equal(ema.shadow[1]:totable(), { 5, exact[2] })
end)

test("what averages refuse", function(t)
  t.raises(function() optim.EMA { 3 } end, "a layer or a list")
  t.raises(function() optim.EMA { { pg.zeros { 1 } }, 1 } end, "decay")
  t.raises(function() optim.EMA { nn.Linear { 3 } } end, "first input")
end)

test("averages move with the model", function(t)
  local there
  for _, d in ipairs(pg.devices()) do there = there or (d.name == "sim:0" and d.name) end
  if not there then t.skip("no sim:0") end
  for _, dtype in ipairs { "float32", "bfloat16" } do
    local model = nn.Linear { 2, 1 }:to("cpu"):to(dtype)
    set(model.weight, 1)
    local swa = optim.SWA { model }
    swa:update()
    model:to(there)
    set(model.weight, 4)
    swa:update()
    swa:swap()
    t.equal({ model.weight.device, swa.shadow.weight.device }, { there, there })
    t.close(model.weight:cpu():totable(), { { 2.5, 2.5 } })
    model:to("cpu")
    swa:swap()
    t.equal(model.weight:totable(), { { 4, 4 } })
    t.close(swa.shadow.weight:totable(), { { 2.5, 2.5 } })
  end
end)
