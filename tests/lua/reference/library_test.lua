-- SPDX-License-Identifier: Apache-2.0
-- docs/library/perigee.lua as an editor reads it: its annotations are what LuaLS accepts, and what they offer behind a
-- dot or a colon is what there is at run time, neither more nor less.

local here = debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or "."
local root = here .. "/../../.."
package.path = root .. "/tests/?.lua;" .. root .. "/tests/?/init.lua;" .. package.path

local complete = require "luacats.complete"
local library = require "luacats.library"
local script = require "luacats.script"

local function read_library() return library.read(root) end

test("docs/library: every annotation is one that LuaLS accepts", function(t)
  local file, problems, size = read_library()
  t.ok(size < 500000, "LuaLS skips files of more than 500 KB; it has " .. size)
  t.equal(problems, {})
  t.equal(file.meta, "perigee") -- what require asks for
  t.ok(file.result and file.result.name == "perigee", "it returns the class perigee")
end)

-- ---- what there is at run time ----

local pg = require "perigee"
local native = require "perigee.native"
local nn, optim = pg.nn, pg.optim
local META = require("perigee.nn.walk").META

local KEYWORDS = require("luacats.types").keywords

-- Names that are reachable but for no one's use from outside, by class.
local INNER = {
  ["perigee.nn"] = "Module", -- what all layers are; as a value only an error with a hint
  ["perigee.Layer"] = "init describe padded_forward class options order",
  ["perigee.Optimizer"] = "new name defaults seen kept_by",
  ["perigee.LBFGS"] = "params options moves turns iterations",
  ["perigee.Schedule"] = "new name base optimizer options rates chain observe seen cuts needed",
  ["perigee.Average"] = "name options part sources exact",
  ["perigee.GradScaler"] = "factor growth_factor backoff_factor growth_interval growth_tracker enabled order seen",
  ["perigee.CheckpointManager"] = "objects mode looked_up",
  ["perigee.SummaryWriter"] = "file",
  ["perigee.Profile"] = "live names nested on_devices roofline_of thread_names threads",
  ["perigee.Vocabulary"] = "kind tokens ids",
  ["perigee.Tokenizer"] = "tokens ranks results added steps prefix suffix whole_words document id_of bytes known " ..
    "known_count added_tokens count find_added",
  ["perigee.Graph"] = "native results eager listed sources symbols names constants optimizers scalers before_run",
  ["perigee.Session"] = "native committed names seen",
  ["perigee.Compiled"] = "fn native mode fuse",
  ["perigee.Plot"] = "color x_low x_high y_low y_high",
  ["perigee.Callback"] = "options path verbose waited restore",
  ["perigee.Iterator"] = "stage begin run next stop feeds fed peeked",
  ["perigee.Dataset"] = "stage pull count seed native pure in_order functions workers ahead what parents name line " ..
    "fn in_memory on_workers tunes",
  ["perigee.Group"] = "number",
}

local function add_keys(set, t)
  for key in next, t do
    if type(key) == "string" and not key:find("^_") and not KEYWORDS[key] then set[key] = true end
  end
end

local function upvalue(f, name)
  for i = 1, 60 do
    local found, value = debug.getupvalue(f, i)
    if found == name then return value end
  end
end

local function tensor_names()
  local set = {}
  add_keys(set, native.methods)
  for _, name in ipairs(native.tensor.field_names()) do set[name] = true end
  for _, name in ipairs(native.op_names()) do
    if native.operators.is_method(name) and not require("perigee.reference").is_inner(name) then
      set[name] = not KEYWORDS[name] or nil
      set[name .. "_"] = native.operators.get(name).in_place or set[name .. "_"]
    end
  end
  return set
end

-- The names behind an object's dot.
local function names_of(v)
  if pg.is_tensor(v) then return tensor_names() end
  local set = {}
  if type(v) == "userdata" then -- a dataset
    local index = getmetatable(v).__index
    add_keys(set, upvalue(index, "Dataset"))
    add_keys(set, debug.getfenv(v))
    return set
  end
  while type(v) == "table" and not rawget(v, "__hidden") do
    add_keys(set, v)
    if nn.is_layer(v) then add_keys(set, v[META].tensors) end
    local meta = getmetatable(v)
    local index = meta and rawget(meta, "__index")
    v = type(index) == "function" and rawget(meta, "__perigee_layer") and meta or index
  end
  return set
end

-- Names of a module: those it has, and those it makes when they are asked for.
local function module_names(name)
  local set = {}
  local part = pg
  for key in name:gmatch("%.([%w_]+)") do part = part[key] end
  add_keys(set, part)
  local later = { perigee = { native.op_names(), native.lazy_names() },
                  ["perigee.nn"] = { native.layer_names(), { "Dense" } },
                  ["perigee.optim"] = { native.optimizer_names() } }
  for _, list in ipairs(later[name] or {}) do
    for _, key in ipairs(list) do
      if not require("perigee.reference").is_inner(key) and not KEYWORDS[key] then set[key] = true end
    end
  end
  local reference, operators = require "perigee.reference", {}
  for _, key in ipairs(native.op_names()) do operators[key] = true end
  for key in pairs(set) do -- second ways and inner operators, kept once they have been used
    local inner = operators[key] and reference.is_inner(key) and not reference.all()["pg." .. key]
    if part == pg and (reference.writes_as_operator(key) or inner) then set[key] = nil end
    if part == nn and key:find("^%l") and rawget(pg, key) == part[key] then set[key] = nil end
  end
  return set
end

-- "x: missing" for what is reachable and not declared, "x: not there" for the reverse.
local function compare(where, declared, there, is_optional)
  local wrong = {}
  for name in pairs(there) do
    if not declared[name] then wrong[#wrong + 1] = ("%s.%s: missing"):format(where, name) end
  end
  for name in pairs(declared) do
    if not there[name] and not is_optional(name) then wrong[#wrong + 1] = ("%s.%s: not there"):format(where, name) end
  end
  table.sort(wrong)
  return wrong
end

local function without_inner(completer, tree, set)
  completer:each(tree, function(part)
    completer:ancestors(part, function(class)
      for name in (INNER[class.name] or ""):gmatch("[%w_]+") do set[name] = nil end
    end)
  end)
  return set
end

test("docs/library: modules offer what they have", function(t)
  local file = read_library()
  local completer = complete.new(file)
  require("perigee.reference").all()
  local wrong, seen = {}, 0
  for _, name in ipairs { "perigee", "perigee.nn", "perigee.nn.init", "perigee.optim", "perigee.optim.sched",
                          "perigee.data", "perigee.amp", "perigee.callbacks", "perigee.linalg", "perigee.memory",
                          "perigee.config", "perigee.json", "perigee.image", "perigee.prune", "perigee.dist",
                          "perigee.compress", "perigee.quant", "perigee.tune" } do
    local tree = completer:type_of("pg" .. name:sub(8))
    local declared = completer:members(tree)
    for _ in pairs(declared) do seen = seen + 1 end
    for _, line in ipairs(compare(name, declared, without_inner(completer, tree, module_names(name)),
                                  function() return false end)) do wrong[#wrong + 1] = line end
  end
  t.equal(wrong, {})
  t.ok(seen > 600, "looked at " .. seen)
end)

-- Expressions, with the class that an editor finds for each. Of those with a class of ours the names are compared too;
-- more: the value is of a class that extends it, or has fields by names of its own; less: what only its instances have.
local x = pg.rand { 4, 3 }
local model = nn.Sequential { nn.Linear { 3, 2 } }
local optimizer = optim.SGD { model:parameters(), lr = 0.1 }
local graph = pg.graph(function(g) return { y = g:placeholder { "x", shape = { 2 } }:relu() } end)
local folder = os.tmpname() .. ".d"
local VARIABLES = { x = x, model = model, optimizer = optimizer, graph = graph, folder = folder, pg = pg }
local TYPES = { x = "perigee.Tensor", model = "perigee.nn.Sequential", optimizer = "perigee.Optimizer",
                graph = "perigee.Graph", folder = "string" }
local T, L = "perigee.Tensor", "perigee.Layer"
local EXPRESSIONS = {
  { "x", T }, { "x:matmul(x:t()):relu()", T }, { "x:sum{axis=1}:sqrt()", T }, { "(x + 1):exp()", T },
  { "x[1]", T }, { "x.shape", "array" }, { "x.shape[1]", "integer" },
  { "x.dtype", "literal" }, { "pg.zeros{2}:add_(1)", T },
  { "pg.relu(x):clone()", T }, { "pg.linalg.norm(x)", T }, { "x:unbind()[1]", T },
  { "pg.nn.Linear{3, 2}", "perigee.nn.Linear" }, { "pg.nn.Dense{3, 2}.weight:sum()", T },
  { "pg.nn.Linear{3, 2}(x):relu()", T }, { "pg.nn.ReLU{}", L }, { "pg.nn.BatchNorm1d{3}.running_mean", T },
  { "model", "perigee.nn.Sequential" }, { "model[1]", L, more = true }, { "model:parameters()[1]", T },
  { "model:append(pg.nn.ReLU{}):eval()", L, more = true }, { "model:state()['0.weight']", T }, { "model(x)", T },
  { "pg.nn.ModuleDict{a=pg.nn.ReLU{}}", "perigee.nn.ModuleDict", more = true },
  { "pg.nn.ParameterList{x}[1]", T }, { 'pg.nn.class("Net"){}', L },
  { 'pg.nn.class("Net")', "perigee.LayerClass", less = "training" },
  { "pg.nn.Transformer{8, 2, 1, 1, 16}.encoder.layers", "perigee.nn.ModuleList" },
  { "pg.nn.cross_entropy(x, pg.zeros{4, dtype='int64'})", T }, { "pg.nn.CrossEntropyLoss{}", L },
  { "model:summary{input={3}}", "perigee.Summary" },
  { "pg.optim.Adam{model:parameters()}", "perigee.Optimizer" },
  { "pg.optim.Muon{model:parameters()}", "perigee.Optimizer" },
  { "pg.optim.LBFGS{model:parameters()}", "perigee.LBFGS" }, { "pg.optim.EMA{model}", "perigee.Average" },
  { "pg.optim.sched.Cosine{optimizer, 10}", "perigee.Schedule" },
  { "pg.optim.sched.Plateau{optimizer}", "perigee.Schedule" },
  { "pg.data.range(4):shuffle{4}:batch{2}", "perigee.Dataset" },
  { "pg.data.from_slices{x=x}:split{0.5, 0.5}", "perigee.Dataset" },
  { "pg.data.range(4):each()", "perigee.Iterator" }, { "pg.data.range(4):each():state().epoch", "integer" },
  { "pg.amp.GradScaler{}", "perigee.GradScaler" }, { "pg.amp.GradScaler{}:get_scale()", "number" },
  { "graph", "perigee.Graph" }, { "pg.Session{graph}", "perigee.Session" }, { "pg.plot{{1, 2}}", "perigee.Plot" },
  { "pg.callbacks.EarlyStopping{}", "perigee.callbacks.EarlyStopping" },
  { "pg.callbacks.ModelCheckpoint{folder}", "perigee.callbacks.ModelCheckpoint" },
  { "pg.callbacks.Monitor{}", "perigee.callbacks.Monitor" },
  { "pg.callbacks.TensorBoard{folder}", "perigee.callbacks.TensorBoard" },
  { "pg.callbacks.ProgressBar{}", "perigee.Callback" },
  { "pg.profile(function() return pg.ones{2} end)", "perigee.Profile" },
  { "pg.profile(function() return pg.ones{2} end).verdict.kind", "string" },
  { "pg.SummaryWriter{folder}:add_scalar('loss', 1, 2)", "perigee.SummaryWriter" },
  { "pg.CheckpointManager{folder, model=model}", "perigee.CheckpointManager" },
  { "pg.CheckpointManager{folder, model=model}:steps()[1]", "integer" },
  { "pg.nn.Linear{3, 1}:fit{x=x, y=pg.ones{4, 1}, loss='mse', optimizer=pg.optim.SGD{lr=0.1}, verbose=0}",
    "perigee.History" },
  { "pg.nn.Linear{3, 1}:fit{x=x, y=pg.ones{4, 1}}[1].loss", "number" },
  { "pg.memory.stats('cpu').live", "integer" }, { "pg.config.get().threads", "integer" },
}

-- What f answers; what it prints is lost.
local function silently(f)
  local plain = _G.print
  _G.print = function() end
  local ok, value = pcall(f)
  _G.print = plain
  return ok and value or error(value, 0)
end

for _, operator in ipairs { "+", "-", "*", "/", "^", "%" } do
  EXPRESSIONS[#EXPRESSIONS + 1] = { ("(x %s x):sum()"):format(operator), T }
end

-- What is offered between the quotes of an option.
local CHOICES = {
  { "pg.nn.mse", "reduction", "mean sum none" }, { "pg.nn.kl_div", "reduction", "mean sum none batchmean" },
  { "pg.nn.MSELoss", "reduction", "mean sum none" }, { "pg.nn.CTCLoss", "reduction", "mean sum none" },
  { "pg.interpolate", "mode", "nearest linear bilinear bicubic trilinear area" },
  { "x:interpolate", "mode", "nearest linear bilinear bicubic trilinear area" },
  { "pg.nn.Upsample", "mode", "nearest linear bilinear bicubic trilinear area" },
  { "pg.nn.EmbeddingBag", "mode", "mean sum max" }, { "pg.optim.sched.Plateau", "threshold_mode", "rel abs" },
  { "pg.optim.sched.OneCycle", "anneal_strategy", "cos linear" },
  { "pg.quantile", "interpolation", "linear lower higher midpoint nearest" },
  { "pg.callbacks.LRScheduler", "per", "epoch batch" },
  { "model:fit", "amp", "bfloat16 float16 float32" }, { "model:fit", "metrics",
    "accuracy auc binary_accuracy error f1 mae mse precision recall top_k_accuracy" },
  { "graph:variable", "init", "zeros ones uniform normal glorot_uniform glorot_normal" },
  { "pg.nn.Conv2d", "padding", "same valid" }, { "pg.conv2d", "padding", "same valid" },
  { "x:cast", "dtype", table.concat(native.dtypes.names, " ") },
  { "pg.nn.Linear", "activation", "none relu gelu_tanh" },
}

-- The strings that a type may be, also as one of a list.
local function literals(completer, tree, list)
  completer:each(tree, function(part)
    if part.kind == "array" then literals(completer, part.of, list) end
    if part.kind == "literal" then list[#list + 1] = part.value:sub(2, -2) end
  end)
  return list
end

test("docs/library: what options may be is offered between their quotes", function(t)
  local completer, wrong = complete.new(read_library(), TYPES), {}
  for _, case in ipairs(CHOICES) do
    local list = {}
    for _, p in ipairs(completer:type_of(case[1]).parameters) do
      completer:each(p.type, function(part)
        for _, f in ipairs(part.fields or {}) do
          if f.name == case[2] then literals(completer, f.type, list) end
        end
      end)
    end
    local found = table.concat(list, " ")
    if found ~= case[3] then wrong[#wrong + 1] = ("%s %s: %s"):format(case[1], case[2], found) end
  end
  t.equal(wrong, {})
end)

test("docs/library: options have a type that an editor shows, no union with any", function(t)
  local file, wrong, seen = read_library(), {}, 0
  for _, class in pairs(file.classes) do
    for name, method in pairs(class.methods) do
      local options = method.parameters.options
      seen = seen + (options and 1 or 0)
      for _, part in ipairs(options and options.type or {}) do
        if part.name == "any" then wrong[#wrong + 1] = class.name .. "." .. name end
      end
    end
  end
  t.equal(wrong, {})
  t.ok(seen > 300, "looked at " .. seen)
end)

-- Fields that are there at times, or by a type of key.
local function is_optional(completer, tree)
  return function(name)
    local found
    completer:each(tree, function(part)
      completer:ancestors(part, function(class)
        local f = class.fields[name]
        found = found or f and (f.optional or f.type.kind == "optional")
      end)
    end)
    return found
  end
end

test("docs/library: an editor finds the type of an expression, and offers what its value has", function(t)
  if t.device and t.device ~= "cpu" then t.skip("made once") end
  local completer = complete.new(read_library(), TYPES)
  local wrong = {}
  for _, case in ipairs(EXPRESSIONS) do
    local tree = completer:type_of(case[1])
    local found = completer:name_of(tree)
    if found ~= case[2] then wrong[#wrong + 1] = ("%s: %s, expected %s"):format(case[1], tostring(found), case[2]) end
    if found and found:find("^perigee%.") then
      local value = silently(setfenv(assert(loadstring("return " .. case[1])), VARIABLES))
      local there = without_inner(completer, tree, names_of(value))
      local declared = completer:members(tree)
      if case.less then declared[case.less] = nil end
      for _, line in ipairs(compare(case[1], declared, there, is_optional(completer, tree))) do
        if not (case.more and line:find("missing$")) then wrong[#wrong + 1] = line end
      end
    end
  end
  os.execute(("rm -rf '%s'"):format(folder))
  t.equal(wrong, {})
end)

local MODEL = [[
local Net = nn.class("Net")
function Net:init(o)
  self.fc = nn.Linear { o.inputs, o.out }
end
function Net:forward(x)
  local slice = x[{ 1, { 2, 3 } }]
  ---@type perigee.Tensor
  local part = x[{ 1, { 2, 3 } }]
]]

test("docs/library: a class and a type in a script's comments make layers and slices complete", function(t)
  local completer = complete.new(read_library(), { nn = "perigee.nn" })
  local function types_in(source)
    local read, list = script.read(completer, source), {}
    for i, text in ipairs { "self.fc", "self.fc.weight", "self.fc(part)", "self:parameters()[1]", "part" } do
      list[i] = read:name_of(read:type_of(text)) or "?"
    end
    t.equal(read:type_of("slice"), nil)
    return list
  end
  t.equal(types_in("---@class Net: perigee.LayerClass\n" .. MODEL), { "perigee.nn.Linear", T, T, T, T })
  t.equal(types_in(MODEL), { "any", "?", "?", T, T })
end)

-- What a layer holds by name: tensors, and layers with parameters.
local function parts_of(layer)
  local set = {}
  for key, v in next, layer do
    set[key] = type(key) == "string" and (pg.is_tensor(v) or nn.is_layer(v) and v:size() > 0) or nil
  end
  add_keys(set, layer[META].tensors)
  return set
end

test("docs/library: layers offer their parameters and inner layers", function(t)
  if t.device and t.device ~= "cpu" then t.skip("made once") end
  local completer = complete.new(read_library())
  local examples = require "perigee.reference.examples"
  local inherited = completer:members { kind = "name", name = L }
  local wrong, seen = {}, 0
  for name, entry in pairs(require("perigee.reference").all()) do
    local example = name:find("^nn%.%u") and examples.layer(name:sub(4), entry.info)
    local make = example and example.code:match("^local layer = ([^\n]*)")
    if make then
      local tree = completer:type_of("pg." .. name .. "{}")
      local declared, layer = {}, loadstring("local pg, nn = ... return " .. make)(pg, nn)
      for field, kind in pairs(completer:members(tree)) do
        if kind == "field" and not inherited[field] then declared[field] = true end
      end
      for _, line in ipairs(compare(name, declared, parts_of(layer), is_optional(completer, tree))) do
        wrong[#wrong + 1] = line
      end
      seen = seen + 1
    end
  end
  table.sort(wrong)
  t.equal(wrong, {})
  t.ok(seen > 100, "looked at " .. seen)
end)
