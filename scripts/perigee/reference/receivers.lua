-- SPDX-License-Identifier: Apache-2.0
-- From what annotated functions are called in sources to what users call them.

local receivers = {}

-- What stands before the dot in a source, in the words of users. `false`: nothing that users call.
receivers.prefixes = {
  define = "tensor:", both = "pg.", creator = "pg.", like = "pg.", grad_scope = "pg.", triangle = "pg.", extreme =
  "pg.", arg_extreme = "pg.", methods = "tensor:", Module = "layer:", losses = "nn.", summary = "layer:", state =
  "layer:", fit = "layer:", init = "nn.init.", clip = "optim.", Optimizer = "optimizer:", Dataset = "dataset:", Graph
  = "graph:", Session = "session:",
  Compiled = "compiled:", files = "pg.", class = "nn.", Plot = "plot:", sched = "optim.sched.", History =
  "history:", walk = false, path = false, tensor = false, hooks = false, meta = false, metrics = "metrics.", Metric =
  "metric:", chosen = false, shapes = false, inputs = false, Progress = false, Handle = false,
  Manager = "checkpoint_manager:", checkpoint = "pg.", Schedule = "schedule:", Iterator = "iterator:", Average =
  "average:", averages = "optim.", callbacks = "callbacks.", resume = false, watch = false, pack = false,
  ModelCheckpoint = false, EarlyStopping = false, LRScheduler = false, CSVLogger = false, Monitor = false,
  ProgressBar = false, layer = "nn.", spatial = "nn.", GradScaler = "scaler:",
  instance_norm = "nn.", channel_dropout = "nn.", large = "optim.", module = "optim.", rule = false,
  Attributes = false, initial = false,
  LBFGS = "lbfgs:", Tape = "tape:", Sequential = "sequential:", ModuleList = "module_list:", ModuleDict =
  "module_dict:", ParameterList = "parameter_list:", on_list = "pg.", matrix_product = "pg.", slices = "pg.", distinct =
  "pg.", with_mean = "pg.", lp_pool = "pg.", filler = "tensor:", utils = "nn.utils.",
  prune = "prune.", tune = "tune.", quant = "quant.", linear = false, places = false, report = false, reports = false,
  Quantized = false, lora = "nn.", Adapters = "adapters:", Gradual = "gradual:",
  inner = false, masks = false, choose = false, targets = false, resize = false, spaces = false,
  PackedSequence = "packed_sequence:", events = "pg.", Writer = "summary_writer:", protobuf = false, records = false,
  sets = "data.", reader = false, framed = false, tar = false, shards = false, terminal = false,
  text = "data.text.", Vocabulary = "vocabulary:", Tokenizer = "tokenizer:",
  dist = "dist.", Strategy = "strategy:", Mesh = "mesh:", Sharding = false, Pipeline = "pipeline:",
  Checkpoints = "checkpoints:", Line = false, world = false, ending = false,
  gradients = false, shares = false, replicas = false, kind = false, Twins = false, Values = false,
  Heap = false, pieces = false, letters = false, image = "image.", common = false, draws = false,
  Draws = false, tables = false, headers = false,
  Reader = false, runs = false, Run = false, kinds = false, TensorBoard = false, usage = false, Meter = false,
  profile = "pg.", Profile = "profile:",
}

-- Receivers whose functions have the tensor, where they are methods too, as their first argument.
receivers.functions = { both = true, like = true, extreme = true, arg_extreme = true, pg = true, files = true,
                        matrix_product = true, slices = true, distinct = true, with_mean = true, lp_pool = true }

-- Files' local functions that users call, under their names.
receivers.locals = {
  ["profile/bench.lua"] = { bench = "pg.bench" },
  ["profile/compare.lua"] = { bench_compare = "pg.bench_compare" },
  ["autograd/gradcheck.lua"] = { gradcheck = "pg.gradcheck" },
  ["linalg/einsum.lua"] = { einsum = "pg.einsum" }, ["plot/init.lua"] = { plot = "pg.plot" },
  ["autograd/custom_grad.lua"] = { custom_grad = "pg.custom_grad" },
  ["autograd/recompute.lua"] = { recompute = "pg.recompute" },
  ["compile/init.lua"] = { compile = "pg.compile" },
  ["graph/init.lua"] = { graph = "pg.graph" },
  ["graph/session.lua"] = { new_session = "pg.Session", eval = "tensor:eval" },
  ["graph/load.lua"] = { load_graph = "pg.load_graph" },
  ["graph/name_scope.lua"] = { name_scope = "pg.name_scope" },
  ["control/cond.lua"] = { cond = "pg.cond" }, ["control/scan.lua"] = { scan = "pg.scan" },
  ["control/while_loop.lua"] = { while_loop = "pg.while_loop" },
  ["data/images.lua"] = { image_folder = "data.image_folder" },
  ["data/pipeline.lua"] = { is_dataset = "data.is_dataset" },
  ["data/generator.lua"] = { from_generator = "data.from_generator" }, ["data/files.lua"] = { files = "data.files" },
  ["data/csv.lua"] = { csv = "data.csv" },
  ["data/plugins.lua"] = { source = "data.source", decode = "data.decode", encode = "data.encode" },
  ["data/records/init.lua"] = { records = "data.records", write_records = "data.write_records" },
}

return receivers
