-- SPDX-License-Identifier: Apache-2.0
-- A value for a parameter, by its annotated type and its name: what a caller would give, now and then something else.

local R = require "fuzz.random"
local V = require "fuzz.values"

local A = {}

local STRINGS = { mode = { "nearest", "linear", "bilinear", "bicubic", "trilinear", "area", "constant", "reflect",
                           "replicate", "circular", "sum", "mean", "max", "min", "fan_in", "fan_out" },
                  reduction = { "mean", "sum", "none", "batchmean" },
                  padding_mode = { "zeros", "border", "reflection" },
                  interpolation = { "linear", "lower", "higher", "midpoint", "nearest" },
                  nonlinearity = { "relu", "leaky_relu", "tanh", "sigmoid", "linear" }, ord = { "fro", "nuc", "inf" },
                  device = { "cpu", "sim:0", "cuda" }, reduce = { "sum", "prod", "mean", "amax", "amin" },
                  approximate = { "none", "tanh" }, activation = { "relu", "gelu", "tanh", "sigmoid" },
                  monitor = { "loss", "val_loss" }, name = { "a", "b", "x" }, event = { "forward" },
                  target = { "cpu", "float64", "sim:0" }, format = { "channels_last", "contiguous" },
                  memory_format = { "channels_last", "contiguous_format" }, size = { "1GB", "0", "-1MB" },
                  matmul_precision = { "highest", "high", "medium" },
                  equation = { "ij,jk->ik", "ii->i", "...i->...", "ij->", "a,b->ab", "ij,ij", "i...,j->ij...", "->",
                               "zz" } }
STRINGS.init = { "zeros", "ones", "uniform", "glorot_uniform" }
local PATHS = { "a.npy", "b.npz", "c.safetensors", "d.csv", "missing/x.npy", "", "." }

-- Layers are small: nested ones cost time.
local LAYERS = { "nn.Linear{4, 2}", "nn.Linear{3}", "nn.ReLU{}", "nn.Sequential{nn.Linear{4, 3}, nn.Tanh{}}",
                 "nn.Conv2d{2, 3, 3}", "nn.BatchNorm1d{4}", "nn.LSTM{4, 3}", "nn.Dropout{0.5}", "nn.Embedding{5, 4}" }
local OBJECTS = {
  ["perigee.Layer"] = LAYERS, ["perigee.Optimizer"] = { "optim.SGD{{pg.ones({3}, {requires_grad=true})}, lr=0.1}",
                                                          "optim.Adam{nn.Linear{2, 1}:parameters(), lr=0.1}" },
  ["perigee.Dataset"] = { "data.from_slices{x=pg.rand{6, 4}, y=pg.rand{6, 2}}", "data.range(5)" },
  ["perigee.Graph"] = { "pg.graph(function(g) return { y = g:constant({1, 2}) * 2 } end)" },
  ["perigee.Metric"] = { "pg.metrics.Accuracy{}" },
  ["perigee.Schedule"] = { "function(o) return optim.sched.Step{o, 2} end" },
  ["perigee.LossName"] = { "\"mse\"", "\"cross_entropy\"" }, ["perigee.MetricName"] = { "\"accuracy\"", "\"mse\"" },
  ["perigee.Reduction"] = { "\"mean\"", "\"sum\"", "\"none\"" }, ["perigee.Callback"] = { "{}" },
  ["perigee.Data"] = { "data.from_slices{x=pg.rand{6, 4}, y=pg.rand{6, 2}}" },
  ["perigee.PackedSequence"] = { "nn.utils.pack_padded_sequence(pg.rand{2, 3, 4}, {3, 1})" },
  ["perigee.GradScaler"] = { "amp.GradScaler{}" },
}
local FUNCTIONS = { "function(x) return x end", "function(x) return x:sum() end", "function(...) return ... end",
                    "function() return pg.ones{2}:sum() end", "function(a, b) return a * 2, b end",
                    "function(x) return x[1] end", "function() error(\"own\", 0) end", "pg.relu", "function() end" }

-- Names of whole numbers, and what range makes sense of them.
local RANGES = { kernel = { 1, 4 }, stride = { 1, 3 }, padding = { 0, 2 }, dilation = { 1, 3 }, groups = { 1, 4 },
                 size = { 1, 8 }, out = { 1, 8 }, inputs = { 1, 8 }, classes = { 1, 9 }, diagonal = { -4, 4 },
                 offset = { -3, 3 }, correction = { -1, 2 }, count = { 0, 5 }, n = { 0, 6 }, bins = { 1, 9 },
                 heads = { 1, 4 }, shifts = { -9, 9 }, k = { 1, 4 }, epochs = { 0, 2 }, batch_size = { 1, 4 },
                 features = { 1, 8 }, shape = { 0, 6 }, counts = { 0, 3 }, sizes = { 0, 6 }, dims = { 1, 3 },
                 encoder_layers = { 0, 2 }, decoder_layers = { 0, 2 }, feedforward = { 1, 9 }, layers = { 1, 2 },
                 embed = { 1, 8 }, max_iter = { 0, 3 }, max_eval = { 0, 3 }, history_size = { 1, 3 },
                 ns_steps = { 0, 3 }, iterations = { 0, 3 }, warmup = { 0, 2 }, max_iterations = { 0, 5 } }
-- Numbers of steps: what is huge here is a long time by right.
local STEPS = { epochs = true, encoder_layers = true, decoder_layers = true, layers = true, max_iter = true,
                max_eval = true, ns_steps = true, iterations = true, warmup = true, items = true, history_size = true,
                max_iterations = true, times = true, workers = true, patience = true, count = true }

local function split(text, separators)
  local parts, depth, from = {}, 0, 1
  for i = 1, #text do
    local c = text:sub(i, i)
    if c:find "[%(%[{<]" then depth = depth + 1 elseif c:find "[%)%]}>]" then depth = depth - 1 end
    if depth == 0 and separators:find(c, 1, true) then
      parts[#parts + 1] = text:sub(from, i - 1):match "^%s*(.-)%s*$"
      from = i + 1
    end
  end
  parts[#parts + 1] = text:sub(from):match "^%s*(.-)%s*$"
  return parts
end

local function integer(name)
  if name:find "axis" or name == "dim" or name == "first" or name == "last" or name == "a" or name == "b" then
    return V.axis()
  end
  local range = RANGES[name] or {}
  if STEPS[name] then return tostring(R.int(range[1] or -1, range[2] or 3)) end
  return V.integer(range[1], range[2])
end

local function integers(name)
  if name == "shape" or name == "size" and R.percent(50) then return V.shape() end
  if name:find "ax" or name == "from" or name == "to" then
    local list = {}
    for i = 1, R.weighted { { 1, 0 }, { 6, 1 }, { 8, 2 }, { 3, 3 }, { 1, 8 }, { 1, 9 } } do list[i] = V.axis() end
    return V.list_text(list)
  end
  local range = RANGES[name] or {}
  return V.integers(range[1] or 0, range[2])
end

local function repeated(n, make)
  local list = {}
  for i = 1, n do list[i] = make() end
  return V.list_text(list)
end

-- "{strict?: boolean, axis: integer}": some of the fields.
local function options(text)
  local parts = {}
  for _, field in ipairs(split(text:sub(2, -2), ",")) do
    local name, optional, kind = field:match "^([%w_]+)(%??):%s*(.+)$"
    if name and (optional == "" or R.percent(45)) then
      parts[#parts + 1] = ("%s=%s"):format(name, A.value(name, kind))
    end
  end
  if R.percent(2) then parts[#parts + 1] = "nonsense=1" end
  return V.list_text(parts)
end

local function tensor_of(name)
  if name:find "index" or name == "labels" or name == "indices" or name == "target" and R.percent(50) or
    name == "targets" or name:find "offsets" or name:find "lengths" or name == "target_lengths" then
    return R.percent(90) and V.index() or V.tensor()
  end
  if name == "mask" or name == "condition" then return V.tensor { dtype = R.percent(90) and "bool" or nil } end
  if name == "p" or name == "probabilities" then return ("%s:sigmoid()"):format(V.floats()) end
  if name:find "^params" or name:find "^grads" then return V.floats() end
  return V.tensor()
end
A.tensor_of = tensor_of

local function one(name, kind)
  if kind:find "^\"" or kind == "true" or kind == "false" then return kind end
  if kind == "integer" then return integer(name) end
  if kind == "number" and name == "seconds" then return ("%.2f"):format(R.int(-1, 9) / 100) end
  if kind == "number" then return STEPS[name] and integer(name) or V.number() end
  if kind == "boolean" then return R.percent(97) and R.pick { "true", "false" } or V.odd() end
  if kind == "perigee.Tensor" then return tensor_of(name) end
  if kind == "perigee.Tensor[]" then return repeated(R.int(0, 4), function() return tensor_of(name) end) end
  if kind == "perigee.Dtype" or name == "dtype" then return V.dtype() end
  if kind == "perigee.Size" then return V.integer() end
  if kind == "integer[]" then return integers(name) end
  if kind == "number[]" then return repeated(R.int(0, 4), V.number) end
  if kind == "string[]" then return repeated(R.int(0, 3), function() return A.value(name, "string") end) end
  if kind == "string" then
    if name == "device" then return V.device() end
    if name == "path" or name == "dir" then return ("%q"):format(R.pick(PATHS)) end
    return ("%q"):format(R.pick(STRINGS[name] or { "a", "mean", "x", "" }))
  end
  if kind:find "^fun" then return R.pick(FUNCTIONS) end
  if kind:find "^{" then return options(kind) end
  if kind:find "^%(" then
    local inner, rest = kind:match "^%((.*)%)(.*)$"
    if rest == "[]" then return repeated(R.int(0, 3), function() return A.value(name, inner) end) end
    return A.value(name, inner)
  end
  local list = kind:match "^(.*)%[%]$"
  if list then return repeated(R.int(0, 3), function() return A.value(name, list) end) end
  if OBJECTS[kind] then return R.pick(OBJECTS[kind]) end
  if kind:find "^table" then
    return R.pick { "{}", "{a=pg.ones{2}}", "{1, 2}", "{{1, 2}, {0, 1}}", V.integers(0, 3) }
  end
  return V.any()
end

---The text of a value for a parameter.
---@param name string
---@param kind string its type, as annotated
---@param choices? string[]
function A.value(name, kind, choices)
  if R.percent(2) then return V.any() end
  if choices and #choices > 0 then return ("%q"):format(R.pick(choices)) end
  return one(name, R.pick(split(kind:gsub("%?$", ""), "|")))
end

return A
