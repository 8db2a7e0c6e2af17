-- SPDX-License-Identifier: Apache-2.0
-- nn.utils: parameters of a layer that are computed of others at every call, by weight normalisation or spectral
-- normalisation. The layer's own field answers with what it is now.

local native = require "perigee.native"
local walk = require "perigee.nn.walk"
local fields = require "perigee.nn.fields"
local hooks = require "perigee.nn.hooks"
local common = require "perigee.nn.layers_common"

local META = walk.META

---@class perigee.nn.utils
local utils = {}

local LAYER = { "layer", "any", required = true, type = "perigee.Layer", doc = "whose parameter it is" }
local NAME = { "name", "string", default = "weight", doc = "of the parameter" }

local function check_layer(where, layer)
  if walk.is_layer(layer) then return end
  native.raise("invalid_argument", where, "needs a layer, got " .. native.describe(layer))
end

-- The layer's parameter of that name, which is to be computed from now on.
local function parameter(where, layer, name)
  check_layer(where, layer)
  local meta, called = layer[META], getmetatable(layer).__name
  local rule = hooks.computed(layer, name)
  if rule then
    native.raise("failed_precondition", where, ("%s of %s is computed by %s already"):format(name, called, rule.kind))
  end
  local t = meta.tensors[name]
  if not t or meta.kinds[name] ~= "parameter" then
    local names = {}
    for key, kind in pairs(meta.kinds) do
      if kind == "parameter" and meta.tensors[key] then names[#names + 1] = key end
    end
    table.sort(names)
    local near = native.suggest(name, names)
    native.raise("not_found", where, ("%s has no parameter %q"):format(called, name), near and
                 ("did you mean %q?"):format(near) or #names > 0 and "it has " .. table.concat(names, ", ") or nil)
  end
  if meta.lazy then
    native.raise("failed_precondition", where, ("the sizes of %s are not known before the first input"):format(called),
                 "call the layer once, or give its input size")
  end
  return t
end

local function numbers(n, except)
  local list = {}
  for i = 1, n do
    if i ~= except then list[#list + 1] = i end
  end
  return list
end

local function check_axis(where, axis, rank)
  if type(axis) ~= "number" or axis ~= math.floor(axis) then
    native.raise("invalid_argument", where, "axis must be an axis or false, got " .. native.describe(axis))
  elseif axis == 0 then
    native.raise("invalid_argument", where, "axis is 0, but axes count from 1", "the first axis is 1, the last -1")
  end
  if axis < -rank or axis > rank then
    native.raise("invalid_argument", where, ("axis %d is out of range for %d axes; expected 1..%d or -%d..-1"):format(
                   axis, rank, rank, rank))
  end
  return axis < 0 and axis + rank + 1 or axis
end

local function no_grad(fn, ...) return require("perigee").no_grad(fn, ...) end

-- The parameter again, as it is now.
local function remove(where, kind, ...)
  local o = where.read(...)
  check_layer(where.name, o.layer)
  local layer, rule = o.layer, hooks.computed(o.layer, o.name)
  if not rule or rule.kind ~= kind then
    native.raise("not_found", where.name, ("%s of %s is not computed by %s"):format(o.name, getmetatable(layer).__name,
                 kind))
  end
  local trained = layer[META].tensors[rule.trained]
  local value = no_grad(rule.compute, layer, false):clone()
  hooks.set_computed(layer, o.name, nil)
  for _, key in ipairs(rule.keys) do fields.take(layer, key) end
  value.requires_grad = trained.requires_grad
  walk.mark_parameter(value)
  layer[o.name] = value
  return layer
end

local function remover(kind)
  local name = "nn.utils.remove_" .. kind
  return { name = name, read = native.signature(name, { LAYER, NAME }) }
end

-- ---- weight normalisation ----

-- The norms along an axis, all others of size 1; of the whole where axis is false.
local function norms(t, axis)
  if not axis then return t:norm() end
  return #t.shape == 1 and t:abs() or t:norm { axis = numbers(#t.shape, axis), keepdim = true }
end

local read_weight_norm = native.signature("nn.utils.weight_norm", {
  LAYER, NAME, { "axis", "any", default = 1, type = "integer|false",
                 doc = "along which each entry has a norm of its own; false: one norm of the whole" } })

---Has a parameter computed of its direction v and its size g, as g v / ||v|| (Salimans and Kingma, 2016, "Weight
---normalization"), which are trained in its place: `weight` becomes `weight_g` and `weight_v`. `layer.weight` is still
---what they make now. Files load in which they are called parametrizations.weight.original0 and original1, as PyTorch's
---newer function has it. Answers the layer.
---@return perigee.Layer
function utils.weight_norm(...)
  local where = "nn.utils.weight_norm"
  local o = read_weight_norm(...)
  local v, axis, name = parameter(where, o.layer, o.name), o.axis, o.name
  if axis ~= false then axis = check_axis(where, axis, #v.shape) end
  local g = no_grad(norms, v, axis):clone()
  g.requires_grad = v.requires_grad
  walk.mark_parameter(g)
  local g_name, v_name = name .. "_g", name .. "_v"
  fields.take(o.layer, name)
  o.layer[g_name] = g -- in this order, as PyTorch's
  o.layer[v_name] = v
  hooks.set_computed(o.layer, name, {
    kind = "weight_norm", keys = { g_name, v_name }, trained = v_name,
    aliases = { [g_name] = ("parametrizations.%s.original0"):format(name),
                [v_name] = ("parametrizations.%s.original1"):format(name) },
    compute = function(layer)
      local tensors = layer[META].tensors
      local direction = tensors[v_name]
      return direction * (tensors[g_name] / norms(direction, axis))
    end })
  return o.layer
end

local weight_norm_removed = remover "weight_norm"
---Makes what nn.utils.weight_norm has computed a parameter again, as it is now. Answers the layer.
---@param layer perigee.Layer
---@param options? {name?: string}
---@return perigee.Layer
function utils.remove_weight_norm(layer, options) return remove(weight_norm_removed, "weight_norm", layer, options) end

-- ---- spectral normalisation ----

local FIRST_ITERATIONS = 15 -- as PyTorch's, so that the first estimate is a good one

local function matrix(t, axis)
  if axis ~= 1 then
    local order = numbers(#t.shape, axis)
    table.insert(order, 1, axis)
    t = t:permute(order)
  end
  return t:reshape(t.shape[1], -1)
end

local function unit(t, eps) return t / t:norm():clamp(eps, math.huge) end

local function iterate(w, u, v, count, eps)
  for _ = 1, count do
    u:copy_(unit(w:matmul(v), eps))
    v:copy_(unit(w:t():matmul(u), eps))
  end
end

local read_spectral_norm = native.signature("nn.utils.spectral_norm", {
  LAYER, NAME,
  { "n_power_iterations", "integer", default = 1, doc = "at every call in training" },
  { "eps", "number", default = 1e-12, doc = "least length that is divided by" },
  { "axis", "axis", doc = "of the outputs: the rows of the matrix. By default 1, and 2 of ConvTranspose layers" } })

-- Calls that compute in the parameter's own dtype, whatever autocast says.
local function uncast(fn)
  local function enter() return native.set_autocast(nil) end
  return function(...) return native.with(enter, native.set_autocast, fn, ...) end
end

---Has a parameter divided by its largest singular value (Miyato et al., 2018, "Spectral normalization for generative
---adversarial networks"): `weight` becomes the parameter `weight_orig` and the buffers `weight_u` and `weight_v`, which
---estimate the singular vectors, by power iterations at every call in training mode; evaluation uses them as they are.
---`layer.weight` is what they make now. Files load in which they are called as PyTorch's newer function has them:
---parametrizations.weight.original, and parametrizations.weight.0._u and _v. Answers the layer.
---@return perigee.Layer
function utils.spectral_norm(...)
  local where = "nn.utils.spectral_norm"
  local o = read_spectral_norm(...)
  local original, name, eps, count = parameter(where, o.layer, o.name), o.name, o.eps, o.n_power_iterations
  common.positive(where, o, "n_power_iterations")
  if eps <= 0 then native.raise("invalid_argument", where, ("eps must be positive, got %g"):format(eps)) end
  local rank = #original.shape
  if rank == 0 or original:numel() == 0 then
    native.raise("invalid_argument", where, ("%s %s is no matrix with a singular value"):format(name, tostring(
                   original.shape)))
  end
  local axis = o.axis or getmetatable(o.layer).__name:find "^ConvTranspose" and 2 or 1
  axis = check_axis(where, axis, rank)
  local n_orig, n_u, n_v = name .. "_orig", name .. "_u", name .. "_v"
  local u, v
  no_grad(uncast(function()
    local pg, w = require "perigee", matrix(original, axis)
    local like = { dtype = original.dtype, device = original.device }
    u, v = unit(pg.randn({ w.shape[1] }, like), eps), unit(pg.randn({ w.shape[2] }, like), eps)
    iterate(w, u, v, FIRST_ITERATIONS, eps)
  end))
  fields.take(o.layer, name)
  o.layer[n_orig] = original
  fields.add_buffer(o.layer, n_u, u)
  fields.add_buffer(o.layer, n_v, v)
  hooks.set_computed(o.layer, name, {
    kind = "spectral_norm", keys = { n_orig, n_u, n_v }, trained = n_orig,
    aliases = { [n_orig] = ("parametrizations.%s.original"):format(name),
                [n_u] = ("parametrizations.%s.0._u"):format(name), [n_v] = ("parametrizations.%s.0._v"):format(name) },
    compute = uncast(function(layer, called)
      local tensors = layer[META].tensors
      local w = matrix(tensors[n_orig], axis)
      local left, right = tensors[n_u], tensors[n_v]
      if called and layer.training then
        no_grad(iterate, w, left, right, count, eps)
        left, right = left:clone(), right:clone() -- the next call writes into them, and backward needs these
      end
      return tensors[n_orig] / (left * w:matmul(right)):sum()
    end) })
  return o.layer
end

local spectral_norm_removed = remover "spectral_norm"
---Makes what nn.utils.spectral_norm has computed a parameter again, as it is now. Answers the layer.
---@param layer perigee.Layer
---@param options? {name?: string}
---@return perigee.Layer
function utils.remove_spectral_norm(layer, options)
  return remove(spectral_norm_removed, "spectral_norm", layer, options)
end

for name, f in pairs(require("perigee.nn.recurrent.packed").utils) do utils[name] = f end

return require("perigee.names.package").close(utils, "nn.utils", "nn")
