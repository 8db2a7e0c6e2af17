-- SPDX-License-Identifier: Apache-2.0
-- What the methods of a class are called on: an expression, and statements before it.

local R = require "fuzz.random"
local V = require "fuzz.values"

local MODEL = { "nn.Linear{4, 2}", "nn.Sequential{nn.Linear{4, 3}, nn.ReLU{}, nn.Linear{3, 2}}", "nn.Linear{3}",
                "nn.Sequential{nn.Conv2d{1, 2, 3, padding=1}, nn.Flatten{}, nn.Linear{4}}", "nn.LSTM{4, 3}",
                "nn.BatchNorm1d{4}", "nn.Sequential{}" }
local OPTIMIZER = "optim.%s{{pg.ones({3}, {requires_grad=true}), pg.ones({2, 2}, {requires_grad=true})}, lr=0.1}"
local OPTIMIZERS = { "SGD", "Adam", "AdamW", "RMSprop", "Lion", "Adafactor", "LAMB" }
local SETS = { "data.range(7)", "data.from_slices{x=pg.arange(6), y=pg.rand{6, 2}}",
               "data.from_slices{x=pg.rand{6, 4}}:batch(2)", "data.range(5):shuffle()",
               "data.from_index{4, function(i) return {x=i} end}" }
local GRAPH = [[
local g = pg.graph(function(g)
  local x = g:placeholder{"x", shape={"batch", 3}, dtype="float32"}
  local w = g:variable{"w", shape={3, 2}, init="ones"}
  return { y = x:matmul(w), loss = x:matmul(w):square():sum() }
end)]]
local METRICS = { "Accuracy", "AUC", "BinaryAccuracy", "ErrorRate", "F1", "MAE", "MSE", "Precision", "Recall",
                  "TopKAccuracy" }

local makers = {}

function makers.tensor() return V.tensor() end
function makers.layer() return R.pick(MODEL) end
function makers.packed_sequence() return "nn.utils.pack_padded_sequence(pg.rand{2, 4, 3}, {4, 2})" end
function makers.optimizer() return OPTIMIZER:format(R.pick(OPTIMIZERS)) end
function makers.lbfgs() return "optim.LBFGS{{pg.ones({3}, {requires_grad=true})}, lr=0.1}" end
function makers.dataset() return R.pick(SETS) end
function makers.iterator() return R.pick(SETS) .. ":each()" end
function makers.average() return ("optim.%s(%s)"):format(R.pick { "EMA", "SWA" }, R.pick(MODEL)) end
function makers.metric() return ("pg.metrics.%s{}"):format(R.pick(METRICS)) end
function makers.scaler() return "amp.GradScaler{init_scale=8}" end
function makers.schedule() return ("optim.sched.Step{%s, 2}"):format(OPTIMIZER:format("SGD")) end
function makers.sequential() return "nn.Sequential{nn.Linear{4, 3}, nn.ReLU{}}" end
function makers.module_list() return "nn.ModuleList{nn.Linear{4, 3}, nn.ReLU{}}" end
function makers.module_dict() return "nn.ModuleDict{a=nn.Linear{4, 2}}" end
function makers.parameter_list() return "nn.ParameterList{nn.Parameter(pg.ones{2})}" end
function makers.graph() return "g", GRAPH end
function makers.session() return "pg.Session{g}", GRAPH end
function makers.checkpoint_manager() return "pg.CheckpointManager{\"checkpoints\", model=nn.Linear{2, 1}}" end
function makers.plot() return "pg.plot{1, 2, 3}" end
function makers.tape()
  return "kept", "local w = pg.ones({3}, {requires_grad=true})\nlocal kept\n" ..
    "pg.tape(function(tape) kept = tape; return w * 2 end)"
end

---@param class string the part of a method's name before the colon
return function(class)
  local make = makers[class]
  if not make then return "nil" end
  return make()
end
