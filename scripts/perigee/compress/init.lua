-- SPDX-License-Identifier: Apache-2.0
-- perigee.compress: layers replaced by smaller ones that compute nearly the same.

local native = require "perigee.native"
local walk = require "perigee.nn.walk"
local hooks = require "perigee.nn.hooks"
local places = require "perigee.nn.places"
local svd = require "perigee.compress.svd"

---@class perigee.compress
local compress = {}

local META = walk.META
local WHERE = "compress.low_rank"
local CLASSES = { Linear = true, Conv1d = true, Conv2d = true, Conv3d = true }

local function pg() return require "perigee" end
local function class_of(layer) return getmetatable(layer).__name end

---Why a layer cannot be factored; nil: it can.
local function obstacle(layer, shared)
  local name, attributes = class_of(layer), layer[META].attributes
  if not CLASSES[name] or not attributes or layer.forward ~= pg().nn[name].forward then
    return "it is no Linear or convolution"
  end
  local rule = hooks.computed(layer, "weight")
  if rule then return ("its weight is computed by %s"):format(rule.kind) end
  if layer[META].hooks then return "it has hooks" end
  if layer[META].pad or attributes.info.by_name.groups and attributes:get "groups" ~= 1 then
    return "it has groups or a padding by name"
  end
  if shared[layer.weight] or layer.bias and shared[layer.bias] then return "it shares a tensor with another layer" end
end

-- ---- one layer ----

-- W [out, n] as B [out, rank] A [rank, n], nearest of all in the sum of squares, and the part of W's squares that they
-- keep; nil where they would hold no less than W.
local function factor(layer, o)
  local weight = layer.weight:detach():to("float64"):cpu()
  local out = weight.shape[1]
  local w = weight:reshape(out, -1)
  local n = w.shape[2]
  if not w:isfinite():all():item() then
    native.raise("failed_precondition", WHERE, ("weight of %s holds NaN or infinite values"):format(class_of(layer)))
  end
  local is_tall = out >= n
  local values, vectors = svd((is_tall and w:t() or w):contiguous():totable())
  local all, rank = 0, o.rank
  for _, value in ipairs(values) do all = all + value ^ 2 end
  local kept = 0
  for i, value in ipairs(values) do
    if rank and i > rank then break end
    kept = kept + value ^ 2
    if o.energy and kept >= o.energy * all then
      rank = i
      break
    end
  end
  rank = math.min(rank or #values, #values)
  if rank * (out + n) >= out * n then return nil end
  local basis, scale = {}, {}
  for i = 1, rank do basis[i], scale[i] = vectors[i], values[i] > 0 and math.sqrt(values[i]) or 1 end
  local u = pg().tensor(basis, { dtype = "float64" }) -- left vectors of a tall W, right ones of a wide one, as rows
  local s = pg().tensor(scale, { dtype = "float64" }):unsqueeze(2)
  local a = is_tall and u:matmul(w) / s or u * s
  local b = is_tall and (u * s):t() or w:matmul(u:t()) / s:t()
  return a, b, rank, all > 0 and kept / all or 1
end

local function set(parameter, value, like)
  parameter:copy_(value:reshape(parameter.shape):to(parameter.dtype))
  parameter.requires_grad = like.requires_grad
end

-- nn.Sequential of two layers in place of one.
local function split(layer, a, b, rank)
  local nn, name, attributes = pg().nn, class_of(layer), layer[META].attributes
  local inputs, out, bias = attributes:get "inputs", attributes:get "out", attributes:get "bias"
  local activation = attributes.info.by_name.activation and attributes:get "activation" or nil
  local first, second
  if name == "Linear" then
    first, second = nn.Linear { inputs, rank, bias = false }, nn.Linear { rank, out, bias = bias,
                                                                         activation = activation }
  else
    first = nn[name] { inputs, rank, attributes:get "kernel", stride = attributes:get "stride", bias = false,
                       padding = attributes:get "padding", dilation = attributes:get "dilation" }
    second = nn[name] { rank, out, 1, bias = bias, activation = activation }
  end
  local weight = layer.weight
  for _, part in ipairs { first, second } do
    part:to(weight.device):to(weight.dtype)
    part:train(layer.training)
  end
  set(first.weight, a:to(weight.device), weight)
  set(second.weight, b:to(weight.device), weight)
  if bias then set(second.bias, layer.bias:detach(), layer.bias) end
  return nn.Sequential { first, second }:train(layer.training)
end

-- ---- a model ----

-- Which places are meant: all that can be factored, or those of `targets`, none of which may be impossible.
local function chosen(model, o, shared)
  local list = {}
  for _, target in ipairs(o.targets or { false }) do
    local found = false
    if o.targets and type(target) ~= "string" then
      native.raise("invalid_argument", WHERE, "targets must be names of layers or of classes, got " ..
                   native.describe(target))
    end
    for _, place in ipairs(places.of(model)) do
      if not target or places.fits(target, place) then
        local why = obstacle(place.layer, shared)
        if target and why then
          native.raise("not_supported", WHERE, ("%s (%s) cannot be factored: %s"):format(place.path,
                       class_of(place.layer), why))
        end
        found = true
        if not why then list[#list + 1] = place end
      end
    end
    if not found then native.raise("not_found", WHERE, ("no layer fits %q of targets"):format(target)) end
  end
  return list
end

local function check(o)
  if not walk.is_layer(o.model) then
    native.raise("invalid_argument", WHERE, "needs a model, got " .. native.describe(o.model))
  end
  if (o.rank == nil) == (o.energy == nil) then
    native.raise("invalid_argument", WHERE, o.rank and "rank and energy are given, of which one decides" or
                 "needs rank or energy", "rank=16, or energy=0.95")
  end
  if o.rank and o.rank < 1 then
    native.raise("invalid_argument", WHERE, ("rank must be at least 1, got %d"):format(o.rank))
  end
  if o.energy and not (o.energy > 0 and o.energy <= 1) then
    native.raise("invalid_argument", WHERE, ("energy must lie in (0, 1], got %g"):format(o.energy))
  end
  if walk.is_lazy(o.model) then
    native.raise("failed_precondition", WHERE, "sizes are not known before the first input", "call the model once")
  end
end

local read = native.signature(WHERE, {
  { "model", "any", required = true, type = "perigee.Layer", doc = "it stays as it is" },
  { "rank", "integer", named = true, doc = "of every weight that is factored" },
  { "energy", "number", named = true,
    doc = "in place of `rank`: the part of a weight's sum of squares that is kept, which decides its rank" },
  { "targets", "table", named = true, type = "string[]", doc = "names of layers, as in state() or their ends, or of " ..
    "classes; all Linear layers and convolutions if not given" } })

---A copy of a model in which Linear layers and convolutions are two layers in sequence, of `rank` channels between
---them: the product of their weights is the matrix of that rank that is nearest to the weight (singular value
---decomposition; Eckart and Young, 1936). A convolution becomes one of `rank` filters and one of kernel 1. Layers that
---would not get smaller stay; where `targets` names one, or all would, that is an error. A weight of 500 rows and
---columns takes seconds, one of a thousand ten times as long.
---@return perigee.Layer smaller
---@return {name: string, rank: integer, energy: number}[] factored what became of which layer, and how much was kept
function compress.low_rank(...)
  local o = read(...)
  check(o)
  return pg().no_grad(function()
    local model = o.model:clone()
    local report, made = {}, {}
    for _, place in ipairs(chosen(model, o, places.shared_tensors(model))) do
      local layer = place.layer
      if made[layer] == nil then
        local a, b, rank, energy = factor(layer, o)
        if not a and o.targets then
          native.raise("invalid_argument", WHERE, ("%s (%s) would not get smaller"):format(place.path, class_of(layer)),
                       "a lower rank or energy, or not this layer")
        end
        made[layer] = a and split(layer, a, b, rank) or false
        if a then report[#report + 1] = { name = place.path, rank = rank, energy = energy } end
      end
      if made[layer] and place.parent then places.put(place, made[layer]) end
      if made[layer] and not place.parent then model = made[layer] end
    end
    if #report == 0 then
      native.raise("failed_precondition", WHERE, ("no layer of %s would get smaller"):format(class_of(o.model)),
                   "a lower rank or energy")
    end
    return model, report
  end)
end

return compress
