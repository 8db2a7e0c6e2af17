-- SPDX-License-Identifier: Apache-2.0
-- perigee.quant: models with fewer bits a weight.

local native = require "perigee.native"
local walk = require "perigee.nn.walk"
local hooks = require "perigee.nn.hooks"
local places = require "perigee.nn.places"
local calibration = require "perigee.quant.calibration"
local conv = require "perigee.quant.conv"
local fold = require "perigee.quant.fold"
local linear = require "perigee.quant.linear"
local reports = require "perigee.quant.report"
local training = require "perigee.quant.training"

---@class perigee.quant
local quant = {}

local META = walk.META
local WHOLE = { "int8", "int4" }
local DTYPES = { "int8", "int4", "float8_e4m3fn", "float8_e5m2" }
local KINDS = { Linear = linear, Conv2d = conv }
local MODES = { "weight_only", "dynamic", "static" }
local LEAST_GROUP, MOST_GROUP = 16, 64 -- of int4 where no size is given

local function pg() return require "perigee" end
local function class_of(layer) return getmetatable(layer).__name end
local function label(place) return place.path == "" and class_of(place.layer) or place.path end

-- ---- groups ----

-- Numbers that share a scale where nothing was asked for: of int8 a whole row, of int4 as many as divide it.
local function default_group(dtype, inputs)
  if dtype ~= "int4" then return inputs end
  for size = MOST_GROUP, LEAST_GROUP, -2 do
    if inputs % size == 0 then return size end
  end
  return inputs
end

-- Why a weight of rows of `inputs` numbers cannot be of this dtype and group size; nil: it can.
local function misfit(inputs, o)
  if inputs == 0 then return "it has no inputs" end
  if o.dtype == "int4" and inputs % 2 ~= 0 then
    return ("int4 needs an even number of inputs, it has %d"):format(inputs)
  end
  if o.group_size and inputs % o.group_size ~= 0 then
    return ("group_size=%d does not divide its %d inputs"):format(o.group_size, inputs)
  end
end

-- ---- layers ----

local function is_done(layer)
  local class = getmetatable(layer)
  return class == linear.class or class == conv.class or training.is_trained(layer)
end

-- Why a layer cannot be quantised; nil: it can.
local function obstacle(layer, shared)
  if is_done(layer) then return "it is quantised already" end
  local name = class_of(layer)
  if not KINDS[name] or not layer[META].attributes or layer.forward ~= pg().nn[name].forward then
    return "it is no Linear or Conv2d"
  end
  local rule = hooks.computed(layer, "weight")
  if rule then return ("its weight is computed by %s"):format(rule.kind) end
  if layer[META].hooks then return "it has hooks" end
  if shared[layer.weight] then return "it shares its weight with another layer" end
end

-- Which places are meant: all Linear and Conv2d layers, or those of `targets`, none of which may be impossible.
local function chosen(model, o, report)
  local all, shared, list = places.of(model), places.shared_tensors(model), {}
  for _, target in ipairs(o.targets or { false }) do
    local found = false
    if target and type(target) ~= "string" then
      native.raise("invalid_argument", o.where, "targets must be names of layers or of classes, got " ..
                   native.describe(target))
    end
    for _, place in ipairs(all) do
      local layer = place.layer
      if target and places.fits(target, place) or not target and (KINDS[class_of(layer)] or is_done(layer)) then
        local why = obstacle(layer, shared)
        if not why and not target and class_of(layer) == "Conv2d" then -- few of them have rows that are easily divided
          why = misfit(conv.options(layer[META].attributes).columns, o)
        end
        if is_done(layer) then
          native.raise("failed_precondition", o.where, ("%s is quantised already"):format(label(place)),
                       "quantise the floating model, or name other layers in targets")
        elseif why and target then
          native.raise("not_supported", o.where, ("%s (%s) cannot be quantised: %s"):format(label(place),
                       class_of(layer), why))
        elseif why then
          report.left[#report.left + 1] = { name = label(place), why = why }
        else
          list[#list + 1] = place
        end
        found = true
      end
    end
    if target and not found then
      native.raise("not_found", o.where, ("no layer fits %q of targets"):format(target))
    end
  end
  if #list == 0 then
    local left = report.left[1]
    native.raise("failed_precondition", o.where,
                 ("%s has no Linear or Conv2d layer to quantise"):format(class_of(model)),
                 left and ("%s stays: %s"):format(left.name, left.why) or nil)
  end
  return list
end

-- What a layer in place of an nn.Linear or nn.Conv2d is made by.
local function options_of(place, o)
  local meta = place.layer[META]
  local made = KINDS[class_of(place.layer)].options(meta.attributes, meta.pad)
  local why = misfit(made.columns, o)
  if why then
    native.raise("invalid_argument", o.where, ("%s cannot be quantised: %s"):format(label(place), why),
                 "another group_size or dtype, or targets without it")
  end
  if not place.layer.weight:isfinite():all():item() then
    native.raise("failed_precondition", o.where, ("the weight of %s holds NaN or infinite values"):format(label(place)))
  end
  made.dtype, made.group_size = o.dtype, o.group_size or default_group(o.dtype, made.columns)
  made.activations = o.mode == "weight_only" and "floating" or o.activations
  return made
end

-- A copy of a model with layers in the place of those that are meant: make(kind, layer, options, bias, path). What
-- stands behind them in an nn.Sequential and is computed with them is nn.Identity afterwards.
local function replace(o, report, make)
  local model, made = o.model:clone(), {}
  local list, options = chosen(model, o, report), {}
  for i, place in ipairs(list) do options[i] = options_of(place, o) end
  if o.data ~= nil then
    local seen = calibration.observe(model, list, o.data)
    for i, place in ipairs(list) do options[i].input = { calibration.parameters(seen[place.layer], o) } end
  end
  for i, place in ipairs(list) do
    local layer = place.layer
    if not made[layer] then
      local bias = fold.behind(model, place, options[i], report)
      made[layer] = make(KINDS[class_of(layer)], layer, options[i], bias or layer.bias, place.path)
    end
    if place.parent then places.put(place, made[layer]) else model = made[layer] end
  end
  return model
end

local function check(o)
  if not walk.is_layer(o.model) then
    native.raise("invalid_argument", o.where, "needs a model, got " .. native.describe(o.model))
  end
  if o.group_size and o.group_size < 1 then
    native.raise("invalid_argument", o.where, ("group_size must be at least 1, got %d"):format(o.group_size))
  end
  if walk.is_lazy(o.model) then
    native.raise("failed_precondition", o.where, "sizes are not known before the first input", "call the model once")
  end
end

-- The mode that options mean, and whether they fit it.
local function check_calibration(o)
  o.mode = o.mode or (o.data ~= nil and "static" or "weight_only")
  if o.dtype:find "float8" and o.mode ~= "weight_only" then
    native.raise("invalid_argument", o.where,
                 ("dtype=%q is for weights alone; mode=%q multiplies whole numbers"):format(o.dtype, o.mode),
                 "dtype=\"int8\", or mode=\"weight_only\"")
  end
  if o.mode == "static" and o.data == nil then
    native.raise("invalid_argument", o.where, "mode=\"static\" finds the scales of what goes through layers with data=",
                 "some batches of training data, or mode=\"dynamic\", which needs none")
  elseif o.mode ~= "static" and o.data ~= nil then
    native.raise("invalid_argument", o.where, ("mode=%q does not look at data"):format(o.mode), "mode=\"static\"")
  elseif o.percentile <= 50 or o.percentile > 100 then
    native.raise("invalid_argument", o.where, ("percentile must be above 50 and at most 100, got %g"):format(
                 o.percentile))
  end
end

local DTYPE = { "dtype", "string", named = true, default = "int8", choices = DTYPES, doc = "of the weights" }
local WHOLE_DTYPE = { "dtype", "string", named = true, default = "int8", choices = WHOLE, doc = "of the weights" }
local MODEL = { "model", "any", required = true, type = "perigee.Layer", doc = "it stays as it is" }
local ACTIVATIONS = { "activations", "string", named = true, default = "int8", choices = { "int8", "uint8" },
                      doc = "the numbers of dynamic and static: int8 are symmetric, uint8 have a zero point" }
local GROUP = { "group_size", "integer", named = true,
                doc = "neighbours in a row of a weight that share a scale: must divide every layer's inputs. If not " ..
                  "given a whole row of int8 and float8 (a scale an output), of int4 the largest even divisor from " ..
                  "16 to 64, else a whole row" }
local TARGETS = { "targets", "table", named = true, type = "string[]",
                  doc = "names of layers, as in state() or their ends, or of classes; all Linear and Conv2d if not " ..
                    "given" }

local read = native.signature("quant.ptq", {
  MODEL, DTYPE,
  { "mode", "string", named = true, choices = MODES,
    doc = "what goes into layers: stays floating (weight_only), is made whole numbers by scales found anew for each " ..
      "row (dynamic), or by one scale found beforehand with data (static). If not given static where data is, else " ..
      "weight_only" },
  { "data", "any", named = true, type = "perigee.Dataset|perigee.Tensor|any[]",
    doc = "what the model is called with to calibrate: a dataset, a tensor, or a list of inputs" },
  ACTIVATIONS,
  { "observer", "string", named = true, default = "minmax", choices = { "minmax", "percentile", "mse" },
    doc = "how static finds a range: the extremes, a percentile of them, or the least mean of squared errors" },
  { "percentile", "number", named = true, default = 99.99, doc = "of observer=\"percentile\"" },
  GROUP, TARGETS })

---A copy of a trained model whose Linear and Conv2d layers have weights of whole numbers of eight bits, or of four, or
---of float8, and a scale for every row or group (post-training quantisation, symmetric: the largest magnitude of a
---group becomes 127 or 7, or the format's largest number). A row is all that makes one output: of a Conv2d a filter.
---Memory and files shrink to about a quarter or an eighth. What goes through layers stays floating, or with
---mode="dynamic" and "static" is made whole numbers inside of each layer, which multiplies whole numbers then: the
---fastest where the processor multiplies bytes (VNNI). Only "static" looks at data. A BatchNorm2d right behind a Conv2d
---in an nn.Sequential, as it computes in evaluation, becomes part of its filters, a ReLU behind it part of the layer;
---where they stood is nn.Identity. Gradients reach inputs and biases, not the weights. Layers that share their weight,
---have hooks or a weight that is computed (a mask of pg.prune) stay as they are, which the report says; where `targets`
---names one that is an error.
---@return perigee.Layer quantised
---@return perigee.QuantReport report by layer how far its weight moved and the bytes it takes; print shows it
function quant.ptq(...)
  local o = read(...)
  o.where = "quant.ptq"
  check(o)
  check_calibration(o)
  return pg().no_grad(function()
    local report = reports.new(o.model)
    local model = replace(o, report, function(kind, layer, options, bias, path)
      local made, weight = kind.make(layer, options, bias)
      reports.add(report, path, layer, made, weight)
      return made
    end)
    report.bytes = model:size()
    return model, report
  end)
end

local read_qat = native.signature("quant.qat", {
  MODEL, WHOLE_DTYPE,
  { "mode", "string", named = true, default = "weight_only", choices = MODES,
    doc = "as ptq's; static takes the extremes of what goes in while training, averaged with a momentum of 0.1" },
  ACTIVATIONS, GROUP, TARGETS })

---A copy of a model whose Linear and Conv2d layers round their weight, and with mode="dynamic" or "static" what goes
---in, as whole numbers would be, while the parameters stay floating and keep their names: trained on, it learns to be
---quantised (quantisation-aware training; gradients pass straight through the rounding, Bengio, Leonard and Courville
---2013). Batch norms and ReLUs behind them are taken in as by ptq: what was normalised is learnt with the filters.
---pg.quant.convert then makes the small model of it.
---@return perigee.Layer model to train
function quant.qat(...)
  local o = read_qat(...)
  o.where = "quant.qat"
  check(o)
  return pg().no_grad(function()
    return replace(o, { left = {}, folded = {} }, function(_, layer, options, bias)
      options.static = o.mode == "static"
      return training.make(layer, options, bias)
    end)
  end)
end

local read_convert = native.signature("quant.convert", {
  { "model", "any", required = true, type = "perigee.Layer", doc = "of pg.quant.qat; it stays as it is" } })

---A copy of a model that pg.quant.qat made and that was trained, with weights of whole numbers: what ptq makes of
---others.
---@return perigee.Layer quantised
---@return perigee.QuantReport report
function quant.convert(...)
  local o = read_convert(...)
  o.where = "quant.convert"
  check(o)
  return pg().no_grad(function()
    local model, made = o.model:clone(), {}
    local report = reports.new(model)
    for _, place in ipairs(places.of(model)) do
      local layer = place.layer
      if training.is_trained(layer) then
        if not made[layer] then
          local options, kind = training.options(layer)
          if not options then
            native.raise("failed_precondition", o.where, ("%s has seen no input in training"):format(label(place)),
                         "train the model first, in train() mode")
          end
          local small, weight = kind.make(layer, options, layer.bias)
          made[layer] = small
          reports.add(report, place.path, layer, small, weight)
        end
        if place.parent then places.put(place, made[layer]) else model = made[layer] end
      end
    end
    if #report.rows == 0 then
      native.raise("failed_precondition", o.where, ("%s has no layer of pg.quant.qat"):format(class_of(model)),
                   "convert what qat made, or quantise another model by pg.quant.ptq")
    end
    report.bytes = model:size()
    return model, report
  end)
end

return quant
