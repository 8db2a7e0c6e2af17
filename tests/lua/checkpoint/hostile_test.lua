-- SPDX-License-Identifier: Apache-2.0
-- States that somebody made: a file whose checksum fits says nothing of who wrote it. Every one is taken or refused
-- with a code; no raw error of Lua, and what was taken does not end in one later.

local pg = require "perigee"
local native = require "perigee.native"
local pack = require "perigee.checkpoint.pack"
local nn, optim = pg.nn, pg.optim

local function with_folder(fn)
  local folder = os.tmpname()
  os.remove(folder)
  native.make_folder(folder)
  local stderr = io.stderr
  io.stderr = { write = function() end } -- luacheck: ignore
  local ok, err = pcall(fn, folder)
  io.stderr = stderr -- luacheck: ignore
  os.execute(("rm -rf '%s'"):format(folder))
  if not ok then error(err, 0) end
end

-- ---- files ----

local function whole(changes)
  local tree = { objects = {}, values = { step = 1 }, best = {}, rng = { seed = "1", offset = 0 } }
  for key, value in pairs(changes or {}) do tree[key] = value end
  return tree
end

-- Writes `text` as the state of a checkpoint that is whole, with tensors "t" and "u".
local function seal(folder, text, step)
  local stem = ("%s/step-%08d"):format(folder, step or 1)
  local notes = { format = "perigee-checkpoint/1", state = text }
  return native.write_sealed(stem, "safetensors", { "t", "u" }, { pg.ones { 2 }, pg.zeros { 3 } }, notes)
end

local hostile = {
  { "no JSON", "hello" }, { "nothing", "" }, { "a list", "[1,2]" }, { "a number", "3" }, { "a text", '"x"' },
  { "no best", '{"objects":{},"values":{"step":1},"rng":{"seed":"1","offset":0}}' },
  { "no values", '{"objects":{},"best":{},"rng":{"seed":"1","offset":0}}' },
  { "no objects", '{"values":{"step":1},"best":{},"rng":{"seed":"1","offset":0}}' },
  { "no random numbers", '{"objects":{},"best":{},"values":{"step":1}}' },
  { "null", '{"objects":null,"best":{},"values":{"step":1,"x":null},"rng":{"seed":"1","offset":0}}' },
  { "an unknown tensor", '{"x":{"$tensor":"none"}}' }, { "a tensor of no name", '{"x":{"$tensor":{"a":1}}}' },
  { "a tensor and more", '{"x":{"$tensor":"t","y":1}}' }, { "an unknown number", '{"x":{"$number":"many"}}' },
  { "a number that is a list", '{"x":{"$number":[1]}}' }, { "a map that is none", '{"x":{"$map":3}}' },
  { "a map of one", '{"x":{"$map":[1]}}' }, { "a key that is not a number", '{"x":{"$map":[{"$number":"nan"},1]}}' },
  { "a key that is a tensor", '{"x":{"$map":[{"$tensor":"t"},1]}}' },
  { "a key that is nothing", '{"x":{"$map":[null,1]}}' }, { "something unknown", '{"x":{"$code":"os.exit()"}}' },
  { "deep nesting", ("["):rep(1e5) }, { "deep nesting that ends", '{"x":' .. ("["):rep(3e4) .. ("]"):rep(3e4) .. "}" },
  { "half a character", '{"x":"\\ud800' }, { "numbers that are none", '{"x":nan,"y":0x10}' },
}
for _, case in ipairs {
  { "best", { step = "x" } }, { "best", { metric = "low" } }, { "best", 3 }, { "best", { step = pg.ones { 1 } } },
  { "best", { step = 0 / 0 } }, { "values", { step = {} } }, { "values", { step = 1, metric = {} } }, { "values", {} },
  { "objects", "x" }, { "rng", {} }, { "rng", { seed = "x", offset = 0 } }, { "rng", { seed = {}, offset = 0 } },
  { "rng", { seed = "1", offset = "x" } }, { "rng", { seed = "1", offset = -1 } },
  { "rng", { seed = "1", offset = {} } },
  { "rng", { seed = "1", offset = 0 / 0 } }, { "rng", { seed = ("9"):rep(400), offset = 0 } },
  { "rng", { seed = "1", offset = 1e300 } },
} do
  local text = pack.pack("test", whole { [case[1]] = case[2] }):gsub('"%$tensor":"[^"]*"', '"$tensor":"t"')
  hostile[#hostile + 1] = { ("%s %d"):format(case[1], #hostile), text }
end

local function check_code(t, what, ok, err)
  t.ok(ok or native.is_error(err) and err.code ~= "internal", ("%s: %s"):format(what, tostring(err)))
end

for _, case in ipairs(hostile) do
  test("a state that is " .. case[1], function(t)
    with_folder(function(folder)
      seal(folder, case[2])
      local function manager() return pg.CheckpointManager { folder, model = nn.Linear { 1, 1 } } end
      local err = t.raises(function() manager():restore() end)
      t.equal(err.code, "data_loss", tostring(err))
      t.equal(t.raises(function() manager():restore(1) end).code, "data_loss")
      for name, fn in pairs {
        best = function() return manager():best() end, restore_best = function() return manager():restore_best() end,
        save = function() return manager():save { step = 2, metric = 1 } end,
        again = function() return manager():save { step = 1, metric = 1 } end,
      } do
        check_code(t, name, pcall(fn))
      end
    end)
  end)
end

test("what a checkpoint holds but its objects do not expect", function(t)
  with_folder(function(folder)
    seal(folder, (pack.pack("test", whole { objects = { model = { 1, 2 } } })))
    check_code(t, "a list", false,
               t.raises(function() pg.CheckpointManager { folder, model = nn.Linear { 1, 1 } }:restore() end))
    check_code(t, "no such object", false,
               t.raises(function() pg.CheckpointManager { folder, other = nn.Linear { 1, 1 } }:restore() end))
  end)
end)

-- ---- objects ----

local bad = { false, true, -1, 0.5, 3, 1e300, 0 / 0, 1 / 0, "x", {}, { 1, "2" }, pg.ones { 7 },
              pg.zeros { 2, dtype = "int64" } }

-- Calls fn with every tree that differs from `tree` in one place, and with the place's name.
local function each_wrong(tree, fn, whole_tree, put, place)
  put = put or function(v) whole_tree = v end
  if place then
    put(nil)
    fn(whole_tree or nil, place .. " = nil")
  end
  for _, v in ipairs(bad) do
    put(v)
    fn(whole_tree, ("%s = %s"):format(place or "it", native.describe(v)))
  end
  put(tree)
  if type(tree) ~= "table" then return end
  local keys = {}
  for key in pairs(tree) do keys[#keys + 1] = key end
  for _, key in ipairs(keys) do
    each_wrong(tree[key], fn, whole_tree or tree, function(v) tree[key] = v end, (place or "") .. "." .. tostring(key))
    tree.unheard = 3
    fn(whole_tree or tree, (place or "") .. ".unheard = 3")
    tree.unheard = nil
  end
end

local function trained(make)
  return function()
    local model = nn.Linear { 2, 1 }
    local optimizer = make { model:parameters() }
    local function loss()
      optimizer:zero_grad()
      local l = model(pg.ones { 3, 2 }):square():mean()
      l:backward()
      return l
    end
    loss()
    optimizer:step(loss)
    return optimizer, function()
      loss()
      optimizer:step(loss)
      return tostring(optimizer)
    end
  end
end

local function scheduled(make)
  return function()
    local schedule = make(optim.SGD { nn.Linear { 2, 1 }:parameters(), lr = 0.1 })
    schedule:step(1)
    return schedule, function()
      for _ = 1, 3 do schedule:step(2) end
      return tostring(schedule), schedule:lr()
    end
  end
end

local function metric(make)
  return function()
    local m = make()
    local scores, real = pg.tensor { 0.2, 0.9 }, pg.tensor { 0, 1 }
    m:update(scores, real)
    return m, function()
      m:update(scores, real)
      return m:value()
    end
  end
end

local objects = {
  { "a layer", function()
      local model = nn.Sequential { nn.Linear { 2, 1 }, nn.BatchNorm1d { 1 } }
      return model, function() return model(pg.ones { 3, 2 }) end
    end },
  { "SGD", trained(function(o) return optim.SGD { o[1], lr = 0.1, momentum = 0.5 } end) },
  { "Adam", trained(function(o) return optim.Adam { o[1], amsgrad = true } end) },
  { "Adafactor", trained(function(o) return optim.Adafactor { o[1] } end) },
  { "LAMB", trained(function(o) return optim.LAMB { o[1] } end) },
  { "LBFGS", trained(function(o) return optim.LBFGS { o[1] } end) },
  { "a schedule", scheduled(function(o) return optim.sched.Cosine { o, 10 } end) },
  { "Plateau", scheduled(function(o) return optim.sched.Plateau { o, patience = 0 } end) },
  { "Chain", scheduled(function(o)
      return optim.sched.Chain { optim.sched.Exponential { o, 0.5 }, optim.sched.Cosine { o, 10 }, milestones = { 2 } }
    end) },
  { "EMA", function()
      local model = nn.Linear { 2, 1 }
      local average = optim.EMA { model }
      average:update()
      return average, function()
        average:update()
        average:copy_to()
      end
    end },
  { "GradScaler", function()
      local scaler = pg.amp.GradScaler {}
      return scaler, function() return tostring(scaler), scaler:scale(pg.ones { 1 }) end
    end },
  { "accuracy", metric(function() return pg.metrics.Accuracy { threshold = 0.5 } end) },
  { "precision", metric(function() return pg.metrics.Precision {} end) },
  { "AUC", metric(function() return pg.metrics.AUC {} end) },
  { "EarlyStopping", function()
      local stopping, job = pg.callbacks.EarlyStopping { monitor = "loss" }, { model = nn.Linear { 2, 1 } }
      stopping:on_train_begin(job)
      stopping:on_epoch_end(job, { epoch = 1, loss = 2 })
      local load_state = stopping.load_state
      stopping.load_state = function(self, saved) return load_state(self, saved, job) end
      return stopping, function()
        stopping:on_epoch_end(job, { epoch = 2, loss = 1 })
        stopping:on_train_end(job)
      end
    end },
  { "a session", function()
      local session = pg.Session { pg.graph(function(g)
        local w = g:variable { "w", shape = { 2 }, init = "ones" }
        return { y = w * 2 }
      end) }
      return session, function() return session:run "y" end
    end },
}

for _, object in ipairs(objects) do
  test("a hostile state of " .. object[1], function(t)
    local first = object[2]()
    local count = 0
    each_wrong(first:state(), function(state, place)
      count = count + 1
      local new, use = object[2]()
      local ok, err = pcall(new.load_state, new, state)
      check_code(t, place, ok, err)
      if ok then check_code(t, "used with " .. place, pcall(use)) end
    end)
    t.ok(count > 10, count)
  end)
end

test("a hostile place of a training", function(t)
  with_folder(function(folder)
    local x, y = pg.randn { 8, 2 }, pg.randn { 8, 1 }
    local function fit(resume, epochs)
      local model = nn.Linear { 2, 1 }
      return model:fit { data = pg.data.from_slices { x = x, y = y }:shuffle { seed = 1 }:batch(2), loss = "mse",
                         verbose = 0, optimizer = optim.SGD { lr = 0.01 }, epochs = epochs, resume = resume,
                         metrics = { "mae" },
                         callbacks = { pg.callbacks.ModelCheckpoint { folder, steps = 3, keep = 1 },
                                       pg.callbacks.EarlyStopping { monitor = "loss" } } }
    end
    fit(false, 2)
    local function saved_by(step)
      local model = nn.Linear { 2, 1 }
      local manager = pg.CheckpointManager { folder, keep = 1, model = model,
                                             optimizer = optim.SGD { model:parameters(), lr = 0.01 } }
      return manager, step and manager:restore(step) or manager:restore()
    end
    local _, values = saved_by()
    local place, whole_fit = values.fit, 0
    place.data = { epoch = 2, position = 2, size = 4 } -- inside of an epoch
    place.means = { loss = { sum = pg.ones { 1 }, count = 4 }, mae = { sum = pg.ones { 1 }, count = 4 } }
    each_wrong(place, function(state, where)
      local manager = saved_by()
      local done, err = pcall(manager.save, manager, { step = 8, fit = state })
      check_code(t, "saved with " .. where, done, err)
      if not done then return end
      whole_fit = whole_fit + 1
      local ok, history = pcall(fit, true, 3)
      check_code(t, where, ok, history)
      if ok then check_code(t, "shown with " .. where, pcall(tostring, history)) end
    end)
    t.ok(whole_fit > 100, whole_fit)
  end)
end)
