-- SPDX-License-Identifier: Apache-2.0
-- What there is, by the name that users type: operators, layers and optimizers from the schemas of plugins, everything
-- else from the annotations of this folder's sources. The prompt's help, the reference pages and the stubs for editors
-- are made of it.

local native = require "perigee.native"
local annotations = require "perigee.reference.annotations"
local receivers = require "perigee.reference.receivers"
local conv_padding = require "perigee.neural.conv_padding"

local reference = {}

---@class perigee.Entry
---@field name string "pg.softmax", "tensor:sum", "nn.Linear", "layer:summary", "optim.Adam"
---@field kind "operator"|"layer"|"optimizer"|"function"|"method"
---@field doc string
---@field parameters {name: string, type: string, doc: string, required: boolean, default: any}[]
---@field inputs? table[] of operators: {name, doc, optional}
---@field outputs? table[] of operators: {name, doc}
---@field options? table[] of losses: what their last argument, a table, may name; as parameters
---@field grammar? boolean whether all arguments are the call grammar's
---@field takes_table? boolean whether the parameters may also come in one table
---@field returns string[]
---@field file? string

-- The value of a dotted name below pg: "nn.mse", "memory.stats".
local function find_value(pg, name)
  local value = pg
  for part in name:gmatch("[^.]+") do
    if type(value) ~= "table" then return nil end
    local ok, next_value = pcall(function() return value[part] end)
    if not ok then return nil end
    value = next_value
  end
  return value
end

---The value of a dotted name below pg.
---@param name string
---@return any
function reference.value_of(name) return find_value(require "perigee", name) end

-- The public names of an annotated definition.
local function public_names(pg, entry, short_file)
  if entry.receiver == "local" then
    local name = receivers.locals[short_file] and receivers.locals[short_file][entry.name]
    if not name then return {} end
    find_value(pg, (name:gsub("^pg%.", ""))) -- loads it, and so its signature
    return { name }
  end
  local prefix = receivers.prefixes[entry.receiver]
  if prefix == nil then prefix = entry.receiver:gsub("^pg%.?", "") .. "." end
  if not prefix then return {} end
  if prefix == "." then prefix = "pg." end
  if prefix == "layer:" and entry.name == "class" then return { "nn.class" } end
  if prefix:find(":$") then return { prefix .. entry.name } end
  local names = {}
  local bare = (prefix .. entry.name):gsub("^pg%.", "")
  if find_value(pg, bare) ~= nil then names[1] = bare:find("%.") and bare or "pg." .. bare end
  if (prefix == "pg." or entry.receiver == "both") and rawget(native.methods, entry.name) then
    names[#names + 1] = "tensor:" .. entry.name
  end
  return names
end

local function literal(v)
  if type(v) == "string" then return ("%q"):format(v) end
  if type(v) ~= "table" then return tostring(v) end
  local parts = {}
  for i, x in ipairs(v) do parts[i] = literal(x) end
  return "{" .. table.concat(parts, ", ") .. "}"
end
reference.literal = literal

local TYPES = { integer = "integer", number = "number", size = "integer|perigee.Size",
                bound = "number|perigee.Size", boolean = "boolean", string = "string", table = "table",
                tensor = "perigee.Tensor", tensors = "perigee.Tensor[]", list = "integer|integer[]",
                pair = "integer|integer[]", counts = "integer|integer[]", numbers = "number|number[]",
                axis = "integer", axes = "integer|integer[]", dtype = "perigee.Dtype",
                device = "string", any = "any", single = "any", ["function"] = "function" }

-- What names mean everywhere, where a function does not say more.
local USUAL = {
  axis = "axis, from 1, negative from the end", axes = "axes, from 1, negative from the end",
  keepdim = "whether axes stay, with size 1", dtype = "dtype of the result", device = "device of the result",
  requires_grad = "whether gradients are wanted of it",
}

local function meaning(name, doc, said, of)
  if said and said.doc ~= "" then return said.doc end
  if (name == "dtype" or name == "device") and not (of:find("^pg%.") or of:find("^tensor:")) then return doc or "" end
  return doc or USUAL[name] or ""
end

-- Parameters: by the call grammar's signature where there is one, else as annotated.
local function parameters_of(entry, name)
  local bare = name:gsub("^pg%.", ""):gsub("^%a+:", "")
  local params = native.signatures[bare] or native.signatures[entry.name]
  local documented = {}
  for _, p in ipairs(entry.params) do documented[p.name] = p end
  local list = {}
  local last = entry.arguments[#entry.arguments]
  -- A method of another class has no signature of a tensor's method.
  local is_other = name:find(":") and not name:find("^tensor:") and rawget(native.methods, bare)
  if params and not is_other and (last == nil or last == "..." or last == "o") then
    for i, p in ipairs(params) do
      local said = documented[p.alias or p[1]]
      local is_self = i == 1 and p[2] == "tensor" and #entry.arguments < 2 -- else the function has it before the "..."
      if not (is_self and name:find(":")) then
        list[#list + 1] = { name = p.alias or p[1], type = said and said.type or p.type or TYPES[p[2]] or "any",
                            doc = meaning(p.alias or p[1], p.doc, said, name), required = p.required == true,
                            default = p.default, named = p.named, choices = p.choices }
      end
    end
    return list, true
  end
  if #entry.params > 0 then
    -- What methods of tensors are made of has the tensor as its first argument.
    local has_self = name:find(":") and (receivers.functions[entry.receiver] or name:find("^tensor:") and
                                         entry.params[1].name == entry.arguments[1])
    for i, p in ipairs(entry.params) do
      list[i] = { name = p.name, type = p.type, doc = meaning(p.name, nil, p, name),
                  required = not p.optional and p.name ~= "..." }
    end
    if has_self then list.receiver = table.remove(list, 1) end
    return list
  end
  for i, argument in ipairs(entry.arguments) do
    if not (i == 1 and (argument == "self" or argument == "t") and name:find(":")) then
      list[#list + 1] = { name = argument, type = "any", doc = "", required = argument ~= "..." }
    end
  end
  return list
end

local function tensor_parameter() return { name = "x", type = "perigee.Tensor", doc = "", required = true } end

local function from_annotation(entry, name)
  local parameters, grammar = parameters_of(entry, name)
  local options
  if entry.arguments[1] == "options" and grammar then -- only the first argument takes the call grammar
    local plain = { name = entry.name, params = entry.params, arguments = { "options" } }
    parameters, grammar, options = parameters_of(plain, "-"), nil, parameters
  end
  -- The signature of a method that is a function of pg too lacks the tensor.
  local method, first = rawget(native.methods, name:match("^pg%.(.*)$") or ""), parameters[1]
  if method and grammar and not (first and first.type:find("^perigee%.Tensor")) then
    table.insert(parameters, 1, tensor_parameter())
  end
  return { name = name, kind = name:find(":") and "method" or "function", doc = table.concat(entry.doc, "\n"),
           parameters = parameters, options = options, grammar = grammar, returns = entry.returns,
           takes_table = not grammar and annotations.takes_table(entry, name),
           file = entry.file, line = entry.line }
end

local KINDS = { "boolean", "integer", "number", "perigee.Dtype", "string", "integer", "integer|integer[]",
                "integer|integer[]", "integer|integer[]", "string", [12] = "number" }

local AXIS, AXES = 6, 8 -- kinds whose numbers schemas count from 0 and users from 1
local function shown_default(a)
  local function shifted(axis) return axis >= 0 and axis + 1 or axis end
  if a.kind == AXIS and type(a.default) == "number" then return shifted(a.default) end
  if a.kind ~= AXES or type(a.default) ~= "table" then return a.default end
  local list = {}
  for i, axis in ipairs(a.default) do list[i] = shifted(axis) end
  return list
end

local function attribute(a)
  return { name = a.shown or a.name, type = a.choices and #a.choices > 0 and "string" or KINDS[a.kind] or "any",
           doc = a.doc or "", required = a.required, default = shown_default(a), choices = a.choices }
end

local function attributes_of(list)
  local parameters = {}
  for _, a in ipairs(list) do
    if not a.internal and not (a.name == "seed" or a.name == "offset") then
      parameters[#parameters + 1] = attribute(a)
    end
  end
  return parameters
end

-- Operators whose first letters say that only gradients use them are no part of the reference.
local function is_inner(name) return name:find("_grad") ~= nil or name:find("_like$") and name ~= "expand_like" end
reference.is_inner = is_inner

local function operator_entry(name)
  local op = native.operators.describe(name)
  local parameters = attributes_of(op.visible)
  if name:find("^conv%dd") then conv_padding.describe_names(parameters) end
  return { name = "pg." .. name, kind = "operator", doc = op.doc, op = op, inputs = op.inputs, outputs = op.outputs,
           parameters = parameters, returns = {}, category = op.category,
           differentiable = op.differentiable, in_place = op.in_place }
end

-- A class of nn written in Lua whose constructor takes the call grammar, or a loss's options.
local function class_entry(name, doc, parameters)
  return { name = name, kind = "layer", doc = doc, parameters = parameters, returns = {}, class = true }
end

-- Layers of losses: the function's text, and its options.
local function add_losses(index)
  local common = require "perigee.nn.loss.common"
  for name, loss in pairs(require("perigee.nn.told").losses) do
    local entry, options, called, inputs = index["nn." .. loss], {}, {}, {}
    local types = entry.parameters[#entry.parameters].type
    for key, default in pairs(common.defaults(loss)) do
      local kind = types:match("[{ ]" .. key .. "%?: *([%w_.%[%]]+)") or type(default)
      if default == false and kind ~= "boolean" then default = nil end
      options[#options + 1] = { name = key, type = kind, doc = common.meaning(loss, key), required = false,
                                default = default, named = true, choices = common.choices(loss, key) }
    end
    table.sort(options, function(a, b) return a.name < b.name end)
    for i = 1, #entry.parameters - 1 do
      local p = entry.parameters[i]
      called[i], inputs[i] = p.name, { name = p.name, doc = p.doc }
    end
    entry.options = options
    local text = ("%s\n`nn.%s` as a layer, which remembers its options: layer(%s)."):format(entry.doc, loss,
                                                                                            table.concat(called, ", "))
    local as_layer = class_entry("nn." .. name, text, options)
    as_layer.inputs = inputs
    index["nn." .. name] = as_layer
  end
end

-- Classes that a loop makes have their text in the table of their file.
local function add_classes(index, pg)
  local texts = require("perigee.nn.told").texts
  for name, class in pairs(pg.nn) do
    local is_class = type(name) == "string" and name:find("^%u") and type(class) == "table"
    local key = is_class and "nn." .. name
    local old = index[key]
    if is_class and native.signatures[name] and (not old or old.kind ~= "layer" and #old.returns == 0) then
      local found = parameters_of({ name = name, params = {}, arguments = {} }, key)
      index[key] = class_entry(key, old and old.doc or texts[name] or "", found)
    end
  end
  for name, of in pairs(require("perigee.nn.told").aliases) do
    local entry = index["nn." .. of]
    local alias = class_entry("nn." .. name, ("The same as nn.%s. %s"):format(of, entry.doc), entry.parameters)
    alias.info, alias.alias_of = entry.info, "nn." .. of
    index["nn." .. name] = alias
  end
  index["amp.GradScaler"] = class_entry("amp.GradScaler", "Loss scaling for float16 with a scale that adapts itself " ..
    "(Micikevicius et al. 2018), with PyTorch's schedule.",
    parameters_of({ name = "amp.GradScaler", params = {}, arguments = {} }, "amp.GradScaler"))
end

---Whether a method is an operator's form that writes into its tensor, "relu_": the operator's entry says so.
---@param name string
---@return boolean
function reference.writes_as_operator(name)
  local op = name:find("_$") and native.operators.get(name:sub(1, -2))
  return op and op.in_place and true or false
end

-- Functions under a second name, and methods that write into their tensor: what they are is said of the first.
local function add_kin(index, pg)
  local names = {}
  for name, entry in pairs(index) do names[#names + 1] = entry.kind ~= "operator" and name or nil end
  table.sort(names)
  local known, found = {}, {}
  for _, name in ipairs(names) do
    local method = name:match("^tensor:(.*)$")
    local value = method and rawget(native.methods, method)
    if not method and not name:find(":") then value = find_value(pg, (name:gsub("^pg%.", ""))) end
    if value and not known[value] then known[value] = name end
  end
  local function add(name, value)
    if index[name] or type(value) ~= "function" then return end
    local plain, of = name:match("^tensor:(.*)_$"), known[value]
    local written = plain and (index["tensor:" .. plain] or index["pg." .. plain])
    local entry = of and index[of] or written
    if not entry then return end
    local text = of and ("The same as %s. %s"):format(of, entry.doc) or ("x:%s, written into x."):format(plain)
    local parameters = entry.parameters
    if of and name:find(":") and not of:find(":") then parameters = { unpack(parameters, 2) } end
    if of and of:find(":") and not name:find(":") then
      parameters = { parameters.receiver or tensor_parameter(), unpack(parameters) }
    end
    found[name] = { name = name, doc = text, kind = name:find(":") and "method" or "function",
                    parameters = parameters, grammar = entry.grammar or not of,
                    returns = entry.returns[1] and entry.returns or { "perigee.Tensor" } }
  end
  for name, value in pairs(pg) do if type(name) == "string" then add("pg." .. name, value) end end
  for name, value in pairs(native.methods) do
    if not index["pg." .. name] and not reference.writes_as_operator(name) then add("tensor:" .. name, value) end
  end
  for name, entry in pairs(found) do index[name] = entry end
end

-- Options of an optimizer: two of the schema's have a name together.
local function optimizer_options(list)
  local names = {}
  for _, p in ipairs(list) do names[p.name] = p.default end
  if names.beta1 and names.beta2 then
    list[#list + 1] = { name = "betas", type = "number[]", doc = "beta1 and beta2", required = false,
                        default = { names.beta1, names.beta2 } }
  end
  list[#list + 1] = { name = "offload", type = '"host"', doc = "keep the state in host memory between steps",
                      required = false }
  return list
end

-- Optimizers written in Lua.
local function add_rules(index, pg)
  local rule = require "perigee.optim.rule"
  for name in pairs(pg.optim) do
    local entry, parameters = index["optim." .. name], {}
    for i, a in ipairs(rule.attributes(name) or {}) do
      parameters[i] = { name = a[1], type = type(a[2]), doc = a[3], required = false, default = a[2] }
    end
    if parameters[1] then
      entry.kind, entry.parameters, entry.returns = "optimizer", optimizer_options(parameters), {}
    end
  end
end

local index -- by name

local function add_annotated(pg)
  for _, source in ipairs(annotations.sources()) do
    for _, entry in ipairs(annotations.read(source.path)) do
      local hidden = entry.name:find("^__") or entry.name == "new" or entry.name == "init" or
                     entry.name == "forward" and entry.receiver ~= "Module"
      for _, name in ipairs(hidden and {} or public_names(pg, entry, source.short)) do
        local old = index[name]
        if not old or (entry.documented and (old.doc == "" or old.kind == "operator")) then
          index[name] = from_annotation(entry, name)
          index[name].source = source.short
        end
      end
    end
  end
end

local function add_described()
  for _, name in ipairs(native.op_names()) do
    if not is_inner(name) then index["pg." .. name] = operator_entry(name) end
  end
  for _, name in ipairs(native.layer_names()) do
    local info = native.layer(name)
    index["nn." .. name] = { name = "nn." .. name, kind = "layer", doc = info.doc, info = info, returns = {},
                             parameters = conv_padding.describe(name, attributes_of(info.attributes)) }
  end
  for _, name in ipairs(native.optimizer_names()) do
    local info = native.optimizer(name)
    index["optim." .. name] = { name = "optim." .. name, kind = "optimizer", doc = info.doc, info = info, returns = {},
                                parameters = optimizer_options(attributes_of(info.attributes)) }
  end
end

---All entries by name. Made once. It loads modules and calls nothing of theirs: looking up has no effect.
---@return table<string, perigee.Entry>
function reference.all()
  if index then return index end
  local pg = require "perigee"
  pg.version() -- makes the front end
  native.run_rooms()
  index = {}
  -- Signatures are made when modules load.
  for _, name in ipairs(native.lazy_names()) do local _ = pg[name] end
  require "perigee.fit"
  add_described()
  add_annotated(pg)
  add_classes(index, pg)
  add_losses(index)
  add_rules(index, pg)
  add_kin(index, pg)
  return index
end

local sorted

---Names, sorted.
---@return string[]
function reference.names()
  if sorted then return sorted end
  sorted = {}
  for name in pairs(reference.all()) do sorted[#sorted + 1] = name end
  table.sort(sorted)
  return sorted
end

---The entry of a name as users write it, with or without its prefix.
---@return perigee.Entry?
function reference.find(name)
  local all = reference.all()
  if all[name] then return all[name] end
  local bare = name:gsub("^pg%.", "")
  for _, prefix in ipairs { "", "pg.", "nn.", "optim.", "tensor:", "layer:", "optimizer:", "dataset:", "optim.sched.",
                            "nn.init.", "nn.utils.", "data.", "data.text.", "graph:", "session:" } do
    if all[prefix .. bare] then return all[prefix .. bare] end
  end
end

---The entry of a function or class, under its first name.
---@return perigee.Entry?
function reference.find_value(value)
  local pg, all = require "perigee", reference.all()
  for _, name in ipairs(reference.names()) do -- "pg." before "tensor:"
    local method = name:match("^tensor:(.*)$")
    local found
    if method then found = rawget(native.methods, method)
    elseif not name:find(":") then found = find_value(pg, (name:gsub("^pg%.", ""))) end
    if rawequal(found, value) then return all[all[name].alias_of or name] end
  end
end

return reference
