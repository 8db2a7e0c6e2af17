-- SPDX-License-Identifier: Apache-2.0
-- nn.lora: small trained matrices beside frozen ones (Hu et al., 2021, "LoRA"). A layer that is adapted becomes one of
-- a class that extends its own: it stays the same object with the same names, and gets lora_A and lora_B, PEFT's names.

local native = require "perigee.native"
local walk = require "perigee.nn.walk"
local hooks = require "perigee.nn.hooks"
local Module = require "perigee.nn.module"

local META = walk.META
local CONVOLUTIONS = { Conv1d = 1, Conv2d = 2, Conv3d = 3 }

local function pg() return require "perigee" end
local function class_of(layer) return getmetatable(layer).__name end

local classes = setmetatable({}, { __mode = "k" }) -- of adapted layers, by the class that they extend

-- What goes into an adapter's A.
local function dropped(self, x)
  local o = self.lora
  return o.dropout > 0 and self.training and pg().dropout(x, { p = o.dropout, training = true }) or x
end

-- Beside the projections of queries, keys and values, which are one weight [3 embed, embed].
local function projected_beside(self, i, x)
  local b = self.lora_B.weight
  local rows = b.shape[1] / 3
  return pg().linear(self.lora_A(dropped(self, x)), b:narrow(1, (i - 1) * rows + 1, rows)) * self.lora.scale
end

local function adapted_class(base)
  local class = classes[base]
  if class then return class end
  class = Module.class("LoRA" .. base.__name, base)
  classes[base] = class
  class.base = base
  if base.__name == "MultiheadAttention" then
    class.projected_beside = projected_beside
    return class
  end
  function class:forward(x)
    return base.forward(self, x) + self.lora_B(self.lora_A(dropped(self, x))) * self.lora.scale
  end
  return class
end

local function weight_name(layer) return layer.in_proj_weight and "in_proj_weight" or "weight" end

local function is_adapted(layer) return type(rawget(layer, "lora")) == "table" and rawget(layer, "lora_A") ~= nil end

---`path`, layer of all layers inside, each once, in order.
local function each_layer(model)
  local list, seen = {}, {}
  local function visit(layer, path)
    if seen[layer] then return end
    seen[layer] = true
    list[#list + 1] = { path = path, layer = layer }
    for _, entry in ipairs(walk.entries(layer)) do
      if entry.kind == "layer" then visit(entry.value, path == "" and entry.name or path .. "." .. entry.name) end
    end
  end
  visit(model, "")
  return list
end

-- ---- which layers ----

local function matches(target, layer, path)
  if type(target) == "function" then return target(layer, path) and true or false end
  return path == target or class_of(layer) == target or path:sub(-#target - 1) == "." .. target
end

local function find(where, option, wanted, all)
  local found, marked = {}, {}
  for _, target in ipairs(wanted) do
    if type(target) ~= "string" and type(target) ~= "function" then
      native.raise("invalid_argument", where, ("%s must be names of layers or of classes, or functions, got %s"):format(
                     option, native.describe(target)))
    end
    local any = false
    for _, entry in ipairs(all) do
      if matches(target, entry.layer, entry.path) then
        any = true
        if not marked[entry.layer] then found[#found + 1] = entry end
        marked[entry.layer] = true
      end
    end
    if not any then
      local names = {}
      for _, entry in ipairs(all) do names[#names + 1] = entry.path ~= "" and entry.path or nil end
      local near = type(target) == "string" and native.suggest(target, names)
      native.raise("not_found", where, ("no layer fits %s of %s"):format(type(target) == "string" and
                   ("%q"):format(target) or "the function", option), near and ("did you mean %q?"):format(near) or
                   "names are as in state(), \"blocks.0.fc\", or their ends, or a class's")
    end
  end
  return found
end

local function check_target(where, entry)
  local layer, name = entry.layer, class_of(entry.layer)
  local text = ("%s (%s)"):format(entry.path == "" and "the model" or entry.path, name)
  local attributes = layer[META].attributes
  if name == "MultiheadAttention" and layer.forward == pg().nn.MultiheadAttention.forward then
    if not layer.in_proj_weight then
      native.raise("not_supported", where, text .. " cannot be adapted: its projections are three weights",
                   "without kdim and vdim they are one")
    end
    return
  end
  local is_known = attributes and (name == "Linear" or CONVOLUTIONS[name]) and
                   layer.forward == pg().nn[name].forward
  if not is_known then
    native.raise("not_supported", where, text .. " cannot be adapted",
                 "Linear, Conv1d, Conv2d, Conv3d and MultiheadAttention can")
  end
  if layer[META].lazy then
    native.raise("failed_precondition", where, ("the sizes of %s are not known before the first input"):format(text),
                 "call the model once")
  end
  if CONVOLUTIONS[name] and (attributes:get "groups" ~= 1 or layer[META].pad) then
    native.raise("not_supported", where, text .. " cannot be adapted: it has groups or a padding by name")
  end
  if attributes.info.by_name.activation and attributes:get "activation" ~= "none" then
    native.raise("not_supported", where, text .. " cannot be adapted: its activation comes before the sum",
                 "an activation layer of its own")
  end
end

-- ---- adapting ----

local function make_pair(layer, rank)
  local nn, name, attributes = pg().nn, class_of(layer), layer[META].attributes
  local inputs, out, a, b
  if attributes then
    inputs, out = attributes:get "inputs", attributes:get "out"
  else
    out, inputs = unpack(layer.in_proj_weight.shape)
  end
  if not CONVOLUTIONS[name] then
    a, b = nn.Linear { inputs, rank, bias = false }, nn.Linear { rank, out, bias = false }
  else
    a = nn[name] { inputs, rank, attributes:get "kernel", stride = attributes:get "stride", bias = false,
                   padding = attributes:get "padding", dilation = attributes:get "dilation" }
    b = nn[name] { rank, out, 1, bias = false }
  end
  pg().no_grad(function() b.weight:fill_(0) end)
  local weight = layer[weight_name(layer)]
  for _, part in ipairs { a, b } do part:to(weight.device):to(weight.dtype) end
  return a, b
end

local function adapt(layer, o)
  local a, b = make_pair(layer, o.rank)
  layer.lora_A = a -- in this order
  layer.lora_B = b
  rawset(layer, "lora", { rank = o.rank, alpha = o.alpha or o.rank, dropout = o.dropout,
                          scale = (o.alpha or o.rank) / o.rank })
  setmetatable(layer, adapted_class(getmetatable(layer)))
end

local function restore(layer)
  layer.lora_A, layer.lora_B = nil, nil
  rawset(layer, "lora", nil)
  setmetatable(layer, getmetatable(layer).base)
end

---The adapters of a model: what nn.lora and nn.adapters answer.
---@class perigee.Adapters
---@field model perigee.Layer
local Adapters = {}

local function adapted_layers(self)
  local list = {}
  for _, entry in ipairs(each_layer(self.model)) do
    if is_adapted(entry.layer) then list[#list + 1] = entry end
  end
  return list
end

-- Names and tensors of what is trained: adapters, and layers that were left trainable. In order.
local function tensors_of(self)
  local list, seen = {}, {}
  local function add(layer, path)
    for _, entry in ipairs(walk.tensors(layer)) do
      if not seen[entry.tensor] then
        seen[entry.tensor] = true
        list[#list + 1] = { name = path == "" and entry.name or path .. "." .. entry.name, tensor = entry.tensor,
                            kind = entry.kind }
      end
    end
  end
  for _, entry in ipairs(each_layer(self.model)) do
    if is_adapted(entry.layer) then
      local path = entry.path == "" and "" or entry.path .. "."
      add(entry.layer.lora_A, path .. "lora_A")
      add(entry.layer.lora_B, path .. "lora_B")
    elseif rawget(entry.layer, "lora_train") then
      add(entry.layer, entry.path)
    end
  end
  return list
end

---The parameters that are trained: for an optimizer.
---@return perigee.Tensor[]
function Adapters:parameters()
  local list = {}
  for _, entry in ipairs(tensors_of(self)) do
    if entry.kind == "parameter" then list[#list + 1] = entry.tensor end
  end
  return list
end

---Names of the adapted layers, as in the model's state().
---@return string[]
function Adapters:names()
  local list = {}
  for i, entry in ipairs(adapted_layers(self)) do list[i] = entry.path end
  return list
end

---What is trained alone, by the names that it has in the model's state(): pg.save("adapters.safetensors",
---adapters:state()). Shares the model's memory.
---@return table<string, perigee.Tensor>
function Adapters:state()
  local state = {}
  for _, entry in ipairs(tensors_of(self)) do state[entry.name] = entry.tensor:detach() end
  return state
end

---Copies in what state() gave, of a model that was adapted in the same way. All is looked at before anything changes.
---@param given table<string, perigee.Tensor>
---@param options? {strip_prefix?: string} what names have in front, base_model.model. in PEFT's files
---@return perigee.Adapters
function Adapters:load_state(given, options)
  local where = "Adapters:load_state"
  if type(given) ~= "table" or walk.is_layer(given) then
    native.raise("invalid_argument", where, "needs a table of tensors, got " .. native.describe(given))
  end
  local o = require("perigee.nn.loading").read_options(options)
  local strip, renamed, missing, unexpected = o.strip_prefix or "", {}, {}, {}
  for name, value in pairs(given) do
    name = tostring(name)
    renamed[name:sub(1, #strip) == strip and name:sub(#strip + 1) or name] = value
  end
  local plan = tensors_of(self)
  for _, entry in ipairs(plan) do
    local value = renamed[entry.name]
    if value == nil then
      missing[#missing + 1] = entry.name
    elseif not native.is_tensor(value) or value.shape ~= entry.tensor.shape then
      native.raise("invalid_argument", where, ("%s is %s here but %s in what is loaded"):format(entry.name,
                   tostring(entry.tensor.shape), native.is_tensor(value) and tostring(value.shape) or
                   native.describe(value)), "adapters of another rank?")
    end
    renamed[entry.name] = nil
  end
  for name in pairs(renamed) do unexpected[#unexpected + 1] = name end
  table.sort(unexpected)
  if #missing + #unexpected > 0 then
    native.raise("invalid_argument", where, ("names differ. Missing: %s. Unexpected: %s"):format(
                   #missing > 0 and table.concat(missing, ", ") or "none",
                   #unexpected > 0 and table.concat(unexpected, ", ") or "none"))
  end
  pg().no_grad(function()
    for _, entry in ipairs(plan) do
      for name, value in pairs(given) do
        if name == strip .. entry.name or name == entry.name then
          native.call("copy", { entry.tensor, value:detach():to(entry.tensor.device) })
        end
      end
    end
  end)
  return self
end

-- What the adapter adds to the weight, in float32 at least.
local function delta_of(layer)
  local a, b = layer.lora_A.weight:detach(), layer.lora_B.weight:detach()
  if a.dtype == "float16" or a.dtype == "bfloat16" then a, b = a:to("float32"), b:to("float32") end
  local rank = layer.lora.rank
  return (b:reshape(-1, rank):matmul(a:reshape(rank, -1)) * layer.lora.scale)
           :reshape(layer[weight_name(layer)].shape)
end

local function check_merge(where, self, list)
  local owners = {}
  for _, entry in ipairs(walk.tensors(self.model)) do
    owners[entry.tensor] = owners[entry.tensor] or {}
    owners[entry.tensor][entry.owner] = true
  end
  for _, entry in ipairs(list) do
    local name = weight_name(entry.layer)
    local rule = hooks.computed(entry.layer, name)
    if rule then
      native.raise("failed_precondition", where, ("the weight of %s is computed by %s"):format(entry.path, rule.kind),
                   (rule.undo or "nn.utils.remove_" .. rule.kind) .. " comes first")
    end
    local count = 0
    for _ in pairs(owners[entry.layer[name]]) do count = count + 1 end
    if count > 1 then
      native.raise("failed_precondition", where, ("the weight of %s is another layer's too, which is not adapted")
                     :format(entry.path), "give it a parameter of its own")
    end
  end
end

local function need_some(where, list)
  if #list == 0 then native.raise("failed_precondition", where, "the model has no adapters any more") end
end

---Adds the adapters to the weights that they stand beside and takes them away: the model gives the same in evaluation,
---to rounding, as fast as it was. Its parameters stay frozen; model:unfreeze() trains them.
---@return perigee.Layer model
function Adapters:merge()
  local list = adapted_layers(self)
  need_some("Adapters:merge", list)
  check_merge("Adapters:merge", self, list)
  pg().no_grad(function()
    for _, entry in ipairs(list) do
      local weight = entry.layer[weight_name(entry.layer)]:detach()
      local delta = delta_of(entry.layer)
      native.call("copy", { weight, (weight:to(delta.dtype) + delta):to(weight.dtype) })
      restore(entry.layer)
    end
  end)
  return self.model
end

---Takes the adapters away: the model is what it was. Its parameters stay frozen.
---@return perigee.Layer model
function Adapters:remove()
  local list = adapted_layers(self)
  need_some("Adapters:remove", list)
  for _, entry in ipairs(list) do restore(entry.layer) end
  return self.model
end

function Adapters:__tostring()
  local elements = 0
  for _, p in ipairs(self:parameters()) do elements = elements + p:numel() end
  return ("Adapters(%d layers, %d trained elements of %d)"):format(#adapted_layers(self), elements,
                                                                 self.model:count_parameters())
end

native.checked.class(Adapters, { noun = "the adapters of a model", call = "adapters" })

-- ---- nn.lora ----

local function check_model(where, model)
  if walk.is_layer(model) then return end
  native.raise("invalid_argument", where, "needs a model, got " .. native.describe(model))
end

local lora = {}

local read = native.signature("nn.lora", {
  { "model", "any", required = true, type = "perigee.Layer", doc = "what is adapted, in place" },
  { "rank", "integer", default = 8, doc = "of what is added to a weight" },
  { "alpha", "number", named = true, doc = "what is added is scaled by alpha / rank; rank if not given" },
  { "dropout", "number", named = true, default = 0, doc = "probability of an adapter's input to become 0 in training" },
  { "targets", "table", named = true, default = { "Linear" }, type = "(string|function)[]",
    doc = "names of layers, as in state() or their ends, names of classes, or functions (layer, name) that say yes" },
  { "train", "table", named = true, default = {}, type = "(string|function)[]",
    doc = "layers that are trained whole, such as a new head, in the same way" } })

---Freezes a model and puts adapters beside its Linear layers, or the layers that are named: each then adds
---alpha / rank B(A(x)), A and B being layers of `rank` outputs and inputs, and only they are trained (Hu et al., 2021).
---B begins as zeros, so that nothing changes at first. Convolutions can be targets too, and "MultiheadAttention" or the
---name of one: its in_proj_weight, to which queries, keys and values share an A. Names in state() stay, beside
---`fc.weight` there are `fc.lora_A.weight` and `fc.lora_B.weight`, as PEFT has them. Answers the adapters, which are
---saved alone, merged into the weights, or taken away.
---@return perigee.Adapters
function lora.lora(...)
  local where, o = "nn.lora", read(...)
  check_model(where, o.model)
  if o.rank < 1 then native.raise("invalid_argument", where, ("rank must be at least 1, got %d"):format(o.rank)) end
  if o.dropout < 0 or o.dropout >= 1 or o.dropout ~= o.dropout then
    native.raise("invalid_argument", where, ("dropout must lie in [0, 1), got %g"):format(o.dropout))
  end
  local all = each_layer(o.model)
  for _, entry in ipairs(all) do
    if is_adapted(entry.layer) then
      native.raise("failed_precondition", where, ("%s has adapters already"):format(entry.path == "" and
                   class_of(entry.layer) or entry.path), "nn.adapters(model):merge() or :remove() comes first")
    end
  end
  local trained = find(where, "train", o.train, all)
  local whole = {}
  for _, entry in ipairs(trained) do
    for _, layer in ipairs(walk.modules(entry.layer)) do whole[layer] = true end
  end
  local list = {}
  for _, entry in ipairs(find(where, "targets", o.targets, all)) do
    if not whole[entry.layer] then
      check_target(where, entry)
      list[#list + 1] = entry
    end
  end
  if #list == 0 then native.raise("not_found", where, "no layer is left to adapt") end
  o.model:freeze()
  for _, entry in ipairs(list) do native.graphs.outside(adapt, entry.layer, o) end
  for _, entry in ipairs(trained) do
    entry.layer:unfreeze()
    rawset(entry.layer, "lora_train", true)
  end
  return lora.adapters(o.model)
end

---The adapters that nn.lora gave a model, of which this may be a clone.
---@param model perigee.Layer
---@return perigee.Adapters
function lora.adapters(model)
  check_model("nn.adapters", model)
  local self = setmetatable({ model = model }, Adapters)
  if #adapted_layers(self) == 0 then
    native.raise("not_found", "nn.adapters", ("%s has no adapters"):format(class_of(model)), "nn.lora makes some")
  end
  return self
end

return lora
