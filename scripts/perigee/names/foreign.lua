-- SPDX-License-Identifier: Apache-2.0
-- Names that users of PyTorch, numpy and Keras type, and what they are called here. Only asked for when a name was not
-- found: a row that has become a real name is never read.

local absent = require "perigee.names.absent"

local foreign = {}

-- Fields and methods of tensors.
local TENSOR = {
  T = "x:t() transposes a matrix, x:transpose(a, b) swaps two axes", H = "x:t()", ndim = "x:dim()",
  ndimension = "x:dim()", nelement = "x:numel()", length = "#x counts the first axis, x:numel() all elements",
  len = "#x counts the first axis, x:numel() all elements", data = "x:detach()",
  grad_fn = "x.is_leaf says whether an operator made it", cuda = "x:to(\"cuda:0\")", xpu = "x:to(\"gpu:0\")",
  nElement = "x:numel()", nDimension = "x:dim()", uniform = "x:uniform_(low, high) writes into x; pg.rand{2, 3}",
  is_cuda = "x.device is the device's name", numpy = "x:totable() gives Lua tables", tolist = "x:totable()",
  type = "x.dtype asks, x:to(\"float32\") converts", astype = "x:to(\"float32\")", cast = "x:to(\"float32\")",
  byte = "x:to(\"uint8\")", bool = "x:to(\"bool\")", char = "x:to(\"int8\")", short = "x:to(\"int16\")",
  bfloat16 = "x:to(\"bfloat16\")",
  clip = "x:clamp(min, max)", clip_ = "x:clamp_(min, max)", absolute = "x:abs()", power = "x:pow(y)",
  subtract = "x:sub(y) or x - y", multiply = "x:mul(y) or x * y", divide = "x:div(y) or x / y",
  negative = "x:neg() or -x", fill = "x:fill_(v) writes; pg.full_like(x, v) makes a new one",
  zero = "x:zero_() writes; pg.zeros_like(x) makes a new one", swapaxes = "x:transpose(a, b)",
  swapdims = "x:transpose(a, b)", moveaxis = "x:movedim(from, to)", concat = "pg.cat{x, y, axis=1}",
  append = "pg.cat{x, y, axis=1}", greater = "x:gt(y)", less = "x:lt(y)", greater_equal = "x:ge(y)",
  less_equal = "x:le(y)", not_equal = "x:ne(y)",
  register_hook = "x:hook(fn)",
  resize = "x:reshape(...)", resize_ = "x:reshape(...)", new_zeros = "pg.zeros{..., dtype=x.dtype, device=x.device}",
  new_ones = "pg.ones{..., dtype=x.dtype, device=x.device}", ["repeat"] = "x:tile(...)",
  get_device = "x.device", element_size = "x.dtype", storage = "x:contiguous()", pin_memory = "x:cpu()",
}

-- Fields of pg.
local PERIGEE = {
  FloatTensor = "pg.tensor{...} gives float32", LongTensor = "pg.tensor({...}, {dtype=\"int64\"})",
  DoubleTensor = "pg.tensor({...}, {dtype=\"float64\"})", from_numpy = "pg.tensor{...}, or a .safetensors file",
  as_tensor = "pg.tensor{...}", asarray = "pg.tensor{...}", array = "pg.tensor{...}", constant = "pg.tensor{...}",
  concat = "pg.cat{x, y, axis=1}",
  concatenate = "pg.cat{x, y, axis=1}", vstack = "pg.cat{x, y, axis=1}", hstack = "pg.cat{x, y, axis=2}",
  range = "pg.arange(first, stop), where stop is excluded", random = "pg.rand{2, 3}, pg.randn{2, 3}",
  seed = "pg.manual_seed(42)", set_seed = "pg.manual_seed(42)",
  cuda = "x:to(\"cuda:0\") moves, pg.devices(\"gpu\") lists", mps = "pg.devices(\"gpu\") lists accelerators",
  utils = "pg.data.from_slices{x=..., y=...}", DataLoader = "pg.data.from_slices{x=..., y=...}:batch(64)",
  autograd = "loss:backward(), pg.grad(loss, {w})", functional = "pg.relu, pg.softmax, ...",
  F = "pg.relu, pg.softmax, ...", Variable = "pg.tensor({...}, {requires_grad=true})",
  Parameter = "pg.nn.Parameter(tensor)", set_grad_enabled = "pg.no_grad(fn)", backends = "pg.config.set{...}",
  inf = "math.huge", nan = "0/0", pi = "math.pi", e = "math.exp(1)",
  absolute = "pg.abs(x)", power = "pg.pow(x, y) or x ^ y", subtract = "pg.sub(x, y) or x - y",
  multiply = "pg.mul(x, y) or x * y", divide = "pg.div(x, y) or x / y", negative = "pg.neg(x) or -x",
  greater = "pg.gt(x, y)", less = "pg.lt(x, y)", greater_equal = "pg.ge(x, y)", less_equal = "pg.le(x, y)",
  not_equal = "pg.ne(x, y)", clip = "pg.clamp(x, min, max)", swapaxes = "pg.transpose(x, a, b)",
  moveaxis = "pg.movedim(x, from, to)", arctan2 = "pg.atan2(y, x)", size = "x:size()", shape = "x.shape",
  dtype = "x.dtype; names are strings, dtype=\"float32\"",
  expand_dims = "pg.unsqueeze(x, axis)", reduce_sum = "pg.sum(x)", reduce_mean = "pg.mean(x)",
  is_available = "pg.devices(\"gpu\")", Size = "a list: {2, 3}", keras = "pg.nn", layers = "pg.nn", losses = "pg.nn",
  optimizers = "pg.optim", GradientTape = "pg.tape(function(tape) ... end)",
}

local NN = {
  functional = "operators are functions of pg: pg.relu(x)", F = "operators are functions of pg: pg.relu(x)",
  parametrizations = "nn.utils.weight_norm(layer), nn.utils.spectral_norm(layer)",
  Input = "sizes are inferred",
  Activation = "nn.ReLU{}, nn.Tanh{}, ...", MaxPooling2D = "nn.MaxPool2d{2}", BatchNormalization = "nn.BatchNorm2d{}",
  SpatialConvolution = "nn.Conv2d{inputs, outputs, kernel}", Sequence = "nn.Sequential{...}",
  ClassNLLCriterion = "nn.NLLLoss{}", CrossEntropyCriterion = "nn.CrossEntropyLoss{}", MSECriterion = "nn.MSELoss{}",
  SpatialMaxPooling = "nn.MaxPool2d{2}", SpatialAveragePooling = "nn.AvgPool2d{2}",
  SpatialBatchNormalization = "nn.BatchNorm2d{channels}", LookupTable = "nn.Embedding{count, features}",
  View = "nn.Flatten{}, nn.Reshape{...}", JoinTable = "pg.cat{x, y, axis=1}",
  AveragePooling2D = "nn.AvgPool2d{2}", GlobalAveragePooling2D = "nn.AdaptiveAvgPool2d{1}",
  GlobalMaxPooling2D = "nn.AdaptiveMaxPool2d{1}", LayerNormalization = "nn.LayerNorm{shape}",
  losses = "nn.mse(x, y), nn.cross_entropy(logits, labels), ...",
  LogSoftMax = "nn.LogSoftmax{}", CategoricalCrossentropy = "nn.CrossEntropyLoss{}",
  Softmax2d = "nn.Softmax{axis=2}", UpsamplingNearest2d = "nn.Upsample{scale_factor=2}",
  UpsamplingBilinear2d = "nn.Upsample{scale_factor=2, mode=\"bilinear\", align_corners=true}",
  Buffer = "self:buffer(name, tensor)",
}

-- Names of torch.nn.functional for losses, those apart that are operators.
-- Layers that wait for their first input: all that are not told its size.
for kind, options in pairs { Linear = "out", Conv = "out=..., kernel=...", ConvTranspose = "out=..., kernel=...",
                             BatchNorm = "", InstanceNorm = "" } do
  for _, ending in ipairs { "", "1d", "2d", "3d" } do
    NN["Lazy" .. kind .. ending] = ("nn.%s%s{%s} takes its inputs from the first call"):format(kind, ending, options)
  end
end

for theirs, own in pairs {
  nll_loss = "nll", gaussian_nll_loss = "gaussian_nll", triplet_margin_loss = "triplet_margin",
  cosine_embedding_loss = "cosine_embedding", margin_ranking_loss = "margin_ranking",
  multi_margin_loss = "multi_margin",
} do NN[theirs] = ("nn.%s(x, y)"):format(own) end
for _, name in ipairs { "clip_grad_norm_", "clip_grad_value_" } do
  NN[name] = ("optim.%s(model:parameters(), 1.0)"):format(name)
end

-- What Keras calls losses and metrics, as words for fit, and their classes.
local LOSSES = {
  sparse_categorical_crossentropy = "cross_entropy", categorical_crossentropy = "cross_entropy",
  binary_crossentropy = "bce", mean_squared_error = "mse", mean_absolute_error = "l1", mae = "l1",
  categorical_hinge = "multi_margin", kl_divergence = "kl_div", kld = "kl_div", poisson = "poisson_nll",
  categorical_focal_crossentropy = "focal", binary_focal_crossentropy = "focal", nll_loss = "nll", mse_loss = "mse",
}
local METRICS = {
  sparse_categorical_accuracy = "accuracy", categorical_accuracy = "accuracy", acc = "accuracy",
  mean_squared_error = "mse", mean_absolute_error = "mae", f1_score = "f1", AUC = "auc",
  top_k_categorical_accuracy = "top_k_accuracy", sparse_top_k_categorical_accuracy = "top_k_accuracy",
}
for theirs, own in pairs(LOSSES) do
  local text = ("nn.%s(prediction, target)"):format(own)
  NN[theirs], PERIGEE[theirs] = NN[theirs] or text, PERIGEE[theirs] or text
end
for theirs, own in pairs {
  SparseCategoricalCrossentropy = "CrossEntropyLoss", BinaryCrossentropy = "BCELoss", MeanSquaredError = "MSELoss",
  MeanAbsoluteError = "L1Loss", KLDivergence = "KLDivLoss", Huber = "HuberLoss",
} do NN[theirs] = ("nn.%s{}"):format(own) end
local METRIC_CLASSES = {
  SparseCategoricalAccuracy = "metrics.Accuracy{}", CategoricalAccuracy = "metrics.Accuracy{}",
  MeanSquaredError = "metrics.MSE{}", MeanAbsoluteError = "metrics.MAE{}", F1Score = "metrics.F1{}",
  TopKCategoricalAccuracy = "metrics.TopKAccuracy{k}", SparseTopKCategoricalAccuracy = "metrics.TopKAccuracy{k}",
  accuracy = "metrics.Accuracy{}", mse = "metrics.MSE{}", mae = "metrics.MAE{}", auc = "metrics.AUC{}",
}
local CALLBACKS = {
  ReduceLROnPlateau = "callbacks.LRScheduler{function(opt) return optim.sched.Plateau{opt} end}",
  LearningRateScheduler = "callbacks.LRScheduler{...}", TerminateOnNaN = "pg.detect_anomaly(fn)",
  History = "fit returns it", Callback = "a table with on_epoch_end, on_batch_end, ...",
  BackupAndRestore = "callbacks.ModelCheckpoint{dir} and fit{resume=true}",
}
local MEMORY = {
  memory_allocated = "pg.memory.stats(device).live", max_memory_allocated = "pg.memory.stats(device).peak",
  memory_reserved = "pg.memory.stats(device).reserved", get_memory_info = "pg.memory.stats(device)",
  summary = "pg.memory.stats(device)", memory_summary = "pg.memory.stats(device)", empty = "pg.memory.empty_cache()",
}

-- Methods of torch.nn.Module, of Torch7's modules and of Keras' models.
local LAYER = {
  state_dict = "model:state()", load_state_dict = "model:load_state(state)", cuda = "model:to(\"cuda:0\")",
  half = "model:to(\"float16\")", float = "model:to(\"float32\")", double = "model:to(\"float64\")",
  bfloat16 = "model:to(\"bfloat16\")", requires_grad_ = "model:freeze() and model:unfreeze()",
  register_buffer = "self:buffer(name, tensor)", register_parameter = "self.name = nn.Parameter(tensor)",
  add_module = "self.name = layer", pop = "model:remove(position)",
  register_module = "self.name = layer", named_modules = "model:modules()",
  named_children = "model:children()", register_forward_hook = "layer:hook(\"forward\", fn)",
  register_forward_pre_hook = "layer:hook(\"forward_pre\", fn)",
  register_full_backward_hook = "layer:hook(\"backward\", fn)",
  register_full_backward_pre_hook = "layer:hook(\"backward_pre\", fn)",
  add = "model:append(layer)", get = "model[position]", backward = "loss:backward(), loss = nn.mse(model(x), y)",
  getParameters = "model:parameters()", zeroGradParameters = "model:zero_grad()", updateOutput = "model(x)",
  updateParameters = "optim.SGD{model:parameters(), lr=0.1}:step()",
  get_weights = "model:state()", set_weights = "model:load_state(state)",
  train_on_batch = "model:fit{x=x, y=y, ...}", test_on_batch = "model:evaluate{x=x, y=y}",
  compile = "model:fit{...}", save = "pg.save(path, model)", load = "pg.load(path, model)",
}

local SCHED = {
  StepLR = "optim.sched.Step", MultiStepLR = "optim.sched.MultiStep", ExponentialLR = "optim.sched.Exponential",
  PolynomialLR = "optim.sched.Polynomial", CosineAnnealingLR = "optim.sched.Cosine", LinearLR = "optim.sched.Linear",
  CosineAnnealingWarmRestarts = "optim.sched.CosineRestarts", OneCycleLR = "optim.sched.OneCycle",
  ReduceLROnPlateau = "optim.sched.Plateau", SequentialLR = "optim.sched.Sequential",
  ChainedScheduler = "optim.sched.Chain", LambdaLR = "optim.sched.Lambda", ConstantLR = "optim.sched.Constant",
  MultiplicativeLR = "optim.sched.Multiplicative",
}

local OPTIM = {
  lr_scheduler = "optim.sched.Step, optim.sched.Cosine, ...",
  Optimizer = "optim.SGD{...}, optim.Adam{...}",
  sgd = "optim.SGD{model:parameters(), lr=0.1}",
}

local OPTIMIZER = {
  param_groups = "optimizer.groups", add_param_group = "optimizer:add_group{params=...}",
  state_dict = "optimizer:state()", load_state_dict = "optimizer:load_state(state)",
  defaults = "optimizer.groups[1].lr", lr = "optimizer.groups[1].lr", learning_rate = "optimizer.groups[1].lr",
}

local DATA = {
  DataLoader = "data.from_slices{x=..., y=...}:shuffle(1000):batch(64)", Dataset = "data.from_index{n, get}",
  TensorDataset = "data.from_slices{x=..., y=...}", from_tensor_slices = "data.from_slices{x=..., y=...}",
}

local ROWS = { tensor = TENSOR, perigee = PERIGEE, nn = NN, optim = OPTIM, data = DATA, layer = LAYER,
               sched = SCHED, optimizer = OPTIMIZER,
               metrics = METRIC_CLASSES, callbacks = CALLBACKS, memory = MEMORY }

-- Names of options: the first of these that the call knows.
local OPTIONS = {
  in_channels = { "inputs" }, in_features = { "inputs" }, out_channels = { "out" }, out_features = { "out" },
  units = { "out" }, filters = { "out" }, kernel_size = { "kernel" }, strides = { "stride" }, pad = { "padding" },
  num_embeddings = { "count" }, embedding_dim = { "features" }, num_features = { "channels", "features" },
  start_dim = { "first" }, end_dim = { "last" }, keepdims = { "keepdim" }, size = { "shape" }, reduce = { "reduction" },
  size_average = { "reduction" }, learning_rate = { "lr" }, lrate = { "lr" }, rate = { "p", "lr" }, inplace = {},
  use_bias = { "bias" }, dtypes = { "dtype" }, epoch = { "epochs" }, batchsize = { "batch_size" },
  normalized_shape = { "shape" }, elementwise_affine = { "affine" }, unbiased = { "correction" },
  dim_feedforward = { "feedforward" }, d_model = { "embed" }, nhead = { "heads" }, num_heads = { "heads" },
  embed_dim = { "embed" },
  negative = { "negative_slope" }, num_groups = { "groups" },
}

---A hint for a name that `kind` does not have, or nil.
---@param kind string "tensor", "perigee", "nn", "optim", "layer", "optimizer", or a part of pg
---@param name string
---@return string?
function foreign.hint(kind, name)
  local row = ROWS[kind] and ROWS[kind][name]
  if row then return row end
  if kind == "tensor" and absent.find(kind, name) then return ("there is no x:%s() in this version"):format(name) end
  if kind == "tensor" and name:find(":", 1, true) then return "slices are lists: x[{{first, last}}], both included" end
  if kind == "perigee" then
    local native = require "perigee.native"
    if native.dtypes.by_name[name] then return ("dtypes are names: dtype=%q"):format(name) end
    if native.layer(name) then return "nn." .. name end
    if native.optimizer(name) then return "optim." .. name end
  end
end

---Methods that layers have elsewhere, each of which raises what it is here; `__hidden`: they are nobody's to complete.
---@param raise fun(code: string, where: string?, text: string, hint: string)
---@return table<string, function>
function foreign.layer_methods(raise)
  local methods = { __hidden = true }
  for name, hint in pairs(LAYER) do
    methods[name] = function() raise("not_found", nil, ("a layer has no method %q"):format(name), hint) end
  end
  return methods
end

---What fit calls a loss, or a metric, of Keras' or PyTorch's; nil: it knows none of that name.
---@param name string
---@return string?
function foreign.loss(name) return LOSSES[name] end
---@param name string
---@return string?
function foreign.metric(name) return METRICS[name] end

---The option that `names` has in place of a foreign one; or a hint that is no name.
---@return string? name
---@return string? hint
function foreign.option(name, names)
  if name == "inplace" then return nil, "a trailing _ writes in place: x:relu_()" end
  if name == "params" then return nil, "parameters stand first: optim.Adam{model:parameters(), lr=0.1}" end
  for _, own in ipairs(OPTIONS[name] or {}) do
    for _, known in ipairs(names) do
      if known == own then return own end
    end
  end
end

return foreign
