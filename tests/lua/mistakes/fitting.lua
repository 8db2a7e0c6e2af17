-- SPDX-License-Identifier: Apache-2.0
-- Values that fit the parameters of public functions, and an object of each class that has methods.

local pg = require "perigee"
local nn, optim, data = pg.nn, pg.optim, pg.data

local fitting = { folder = os.tmpname() .. ".d" }
local folder = fitting.folder

local function model() return nn.Sequential { nn.Linear { 3, 2 }, nn.ReLU {} } end
local function trained() return model():parameters() end
local function dataset() return data.from_slices { x = pg.rand { 4, 3 }, y = pg.zeros { 4 } } end
local function optimizer() return optim.SGD { trained(), lr = 0.1 } end
local function schedule() return optim.sched.Step(optimizer(), 2) end
local function packed() return nn.utils.pack_padded_sequence(pg.rand { 2, 4, 3 }, { 4, 2 }) end
local function tensor() return pg.rand { 2, 3 } end
local function graph()
  return pg.graph(function(g) return { y = g:placeholder { "x", shape = { 2, 3 } }:relu() } end)
end
local function session() return pg.Session { graph() } end

-- By what stands before the colon in the reference.
fitting.objects = {
  tensor = tensor, layer = model, sequential = model, graph = graph, dataset = dataset, optimizer = optimizer,
  schedule = schedule,
  adapters = function() return nn.lora(model(), { rank = 1 }) end,
  tokenizer = function() return data.text.train_bpe("a text", 258) end,
  vocabulary = function() return data.text.chars("a text") end,
  average = function() return optim.EMA { model() } end,
  checkpoint_manager = function() return pg.CheckpointManager { folder, model = model() } end,
  iterator = function() return dataset():batch(2):each() end,
  gradual = function() return pg.prune.Gradual { model(), amount = 0.5, steps = 4 } end,
  compiled = function() return pg.compile(function(x) return x end) end,
  lbfgs = function() return optim.LBFGS { trained() } end,
  metric = function() return pg.metrics.Accuracy {} end,
  module_dict = function() return nn.ModuleDict { a = nn.ReLU {} } end,
  module_list = function() return nn.ModuleList { nn.ReLU {} } end,
  packed_sequence = packed,
  parameter_list = function() return nn.ParameterList { pg.rand { 2 } } end,
  profile = function() return pg.profile(function() return pg.rand { 2 } end) end,
  plot = function() return pg.plot { 1, 2, 3, file = folder .. "/plot.svg" } end,
  scaler = function() return pg.amp.GradScaler {} end,
  session = session,
  strategy = function() return pg.dist.multi_worker() end,
  pipeline = function() return pg.dist.pipeline { stages = { model() }, devices = { "cpu" }, loss = pg.nn.mse } end,
  checkpoints = function() return pg.dist.Checkpoints { folder .. "/spread", model = model() } end,
  mesh = function() return pg.dist.mesh { model = 1 } end,
  summary_writer = function() return pg.SummaryWriter { folder } end,
  tape = function() return pg.tape(function(tape) return tape end) end,
}

local function nothing() end

local NAMED = { path = folder .. "/a.safetensors", dir = folder, device = "cpu", into = model, what = model,
                fn = nothing, image = function() return pg.zeros { 6, 8, 3, dtype = "uint8" } end }
local TYPED = {
  integer = 1, number = 0.5, boolean = true, string = "a", table = {}, any = 1, ["function"] = nothing, fun = nothing,
  ["perigee.Tensor"] = tensor, ["perigee.Layer"] = model, ["perigee.Optimizer"] = optimizer,
  ["perigee.Schedule"] = schedule, ["perigee.Dataset"] = dataset, ["perigee.Graph"] = graph,
  ["perigee.PackedSequence"] = packed,
  ["perigee.PartialRun"] = function() return session():partial_run_setup({ "y" }, { "x" }) end,
  ["perigee.Group"] = function() return pg.dist.group { 0 } end,
  ["perigee.Dtype"] = "float32", ["perigee.Reduction"] = "sum", ["perigee.LossName"] = "mse",
}

local function made(v)
  if type(v) == "function" and v ~= nothing then return v() end
  return v
end

---A value of the first type that a parameter may have.
---@param p {name: string, type: string, choices: string[]?}
function fitting.value(p)
  if p.choices and p.choices[1] then return p.choices[1] end
  if NAMED[p.name] then return made(NAMED[p.name]) end
  local text = p.type:match("^%(?\"([^\"]*)\"")
  if text then return text end
  local word = p.type:match("^%(*([%w_.]+)")
  if not word or p.type:find "^table<" then return {} end
  local value = made(TYPED[word])
  if value == nil then error("no value of type " .. p.type) end
  if p.type:find("^%(?[%w_.]+%)?%[%]") or p.type:find("^%b()%[%]") then return { value } end
  return value
end

return fitting
