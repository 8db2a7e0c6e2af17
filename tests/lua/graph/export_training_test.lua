-- SPDX-License-Identifier: Apache-2.0
-- Training that was saved half-way goes on in another process, bit by bit: every optimizer, schedules, accumulation,
-- loss scaling, and the order that g:after and g:group ask for.

local here = debug.getinfo(1, "S").source:match("^@(.*)lua/graph/[^/]*$") or "../../"
package.path = here .. "?.lua;" .. package.path

local pg = require "perigee"
local files = require "graph_files"
local process = require "process"
local nn, optim = pg.nn, pg.optim

local function net()
  return nn.Sequential { nn.Linear { 4, 6 }, nn.BatchNorm1d { 6 }, nn.Tanh {}, nn.Dropout { 0.25 }, nn.Linear { 6, 3 } }
           :to "float64"
end

local function weights(model)
  local kept = {}
  for _, p in ipairs(model:parameters()) do
    if p:dim() > 1 then kept[#kept + 1] = p end
  end
  return kept
end

-- Each gives an optimizer, what opt:minimize gets, and what happens behind a step before the file is written.
local cases = {
  { "SGD", function(p) return optim.SGD { p, lr = 0.1, momentum = 0.9, nesterov = true, weight_decay = 1e-2 } end },
  { "Adam", function(p) return optim.Adam { p, lr = 1e-2, amsgrad = true, maximize = true } end },
  { "AdamW", function(p) return optim.AdamW { p, lr = 1e-2 } end },
  { "Adamax", function(p) return optim.Adamax { p } end }, { "NAdam", function(p) return optim.NAdam { p } end },
  { "RAdam", function(p) return optim.RAdam { p } end },
  { "Adagrad", function(p) return optim.Adagrad { p, lr_decay = 0.1 } end },
  { "Adadelta", function(p) return optim.Adadelta { p } end },
  { "RMSprop", function(p) return optim.RMSprop { p, momentum = 0.5, centered = true } end },
  { "Rprop", function(p) return optim.Rprop { p } end }, { "Lion", function(p) return optim.Lion { p } end },
  { "LAMB", function(p) return optim.LAMB { p, weight_decay = 0.1 } end },
  { "LARS", function(p) return optim.LARS { p, weight_decay = 0.1 } end },
  { "Adafactor", function(p) return optim.Adafactor { p, weight_decay = 0.1 } end },
  { "Muon", function(_, model) return optim.Muon { weights(model) } end },
  { "accumulation", function(p) return optim.Adam { p } end, { accumulate = 2, clip_norm = 0.5 } },
  { "groups", function(_, model)
    return optim.Adam { { { params = model[1]:parameters(), lr = 0.1 },
                          { params = model[5]:parameters(), lr = 0.01 } } }
  end, { clip_value = 0.1 } },
  { "loss scaling", function(p) return optim.Adam { p } end,
    function() return { scaler = pg.amp.GradScaler { init_scale = 2 ^ 10, growth_interval = 2 } } end },
  { "a schedule", function(p)
    local opt = optim.Adam { p, lr = 0.1 }
    return opt, optim.sched.Step { opt, 1 }
  end },
}

local function batch(i)
  pg.manual_seed(i)
  return { x = pg.randn({ 8, 4 }, { dtype = "float64" }), y = pg.randint(0, 3, { 8 }) }
end

local function recorded(case)
  local model = net()
  local opt, schedule = case[2](model:parameters(), model)
  local options = type(case[3]) == "function" and case[3]() or case[3]
  return pg.Session { pg.graph(function(g)
    local x = g:placeholder { "x", shape = { "n", 4 }, dtype = "float64" }
    local loss = nn.cross_entropy(model(x), g:placeholder { "y", shape = { "n" }, dtype = "int64" })
    return { loss = loss, train = opt:minimize(loss, options) }
  end) }, schedule
end

local function go_on(session, results, number)
  for i = 4, 6 do results[number .. " loss " .. i] = session:run({ "loss", "train" }, batch(i)).loss end
  for name, value in pairs(session:state()) do results[number .. " " .. name] = value end
end

local SCRIPT = [[
  local pg = require "perigee"
  local prefix, results = %q, {}
  for number = 1, %d do
    local session = pg.Session { pg.load_graph(prefix .. number .. ".pgraph") }
    for i = 4, 6 do
      pg.manual_seed(i)
      local feeds = { x = pg.randn({ 8, 4 }, { dtype = "float64" }), y = pg.randint(0, 3, { 8 }) }
      results[number .. " loss " .. i] = session:run({ "loss", "train" }, feeds).loss
    end
    for name, value in pairs(session:state()) do results[number .. " " .. name] = value end
  end
  pg.save(prefix .. ".safetensors", results)
]]

test("training goes on in another process", function(t)
  local perigee = process.need_perigee(t)
  local prefix = os.tmpname()
  local made, want = { prefix, prefix .. ".safetensors" }, {}
  for number, case in ipairs(cases) do
    pg.manual_seed(number)
    local session, schedule = recorded(case)
    for i = 1, 3 do
      session:run("train", batch(i))
      if schedule then schedule:step() end
    end
    made[#made + 1] = prefix .. number .. ".pgraph"
    pg.save(made[#made], session)
    go_on(session, want, number)
  end
  local script = process.file(SCRIPT:format(prefix, #cases))
  made[#made + 1] = script
  local status = os.execute(("%s %s"):format(perigee, script))
  local ok, e = pcall(function()
    t.equal(status, 0)
    files.same_all(pg.load(prefix .. ".safetensors"), want)
  end)
  for _, path in ipairs(made) do os.remove(path) end
  if not ok then error(e, 0) end
end)

test("what comes after, and groups, stay in their order", function(t)
  local session = pg.Session { pg.graph(function(g)
    local n, m = g:variable { "n", shape = {}, init = "zeros" }, g:variable { "m", shape = {}, init = "ones" }
    local x = g:placeholder { "x", shape = { "k" } }
    local first, second = n:add_(1), m:mul_(2)
    return { train = g:group { first, second }, seen = g:after({ first }, function() return x * 7 end),
             chosen = g:after({ second }, function()
               return pg.cond(x:sum():gt(0), function() return x + 1 end, function() return x end)
             end) }
  end) }
  session:run("train")
  local read, feeds = pg.Session { files.round_trip(session) }, { x = pg.tensor { 1, 2 } }
  t.equal(read.graph:text(), session.graph:text())
  for _, name in ipairs { "seen", "chosen" } do
    files.same_bits(read:run(name, feeds), session:run(name, feeds), name)
  end
  for _ = 1, 2 do
    session:run("train")
    read:run("train")
  end
  files.same_all(read:state(), session:state())
  t.equal(read:run("n"):item(), 4)
  t.equal(read:run("m"):item(), 16)
end)
