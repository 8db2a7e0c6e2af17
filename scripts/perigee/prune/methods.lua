-- SPDX-License-Identifier: Apache-2.0
-- Ways to prune, under the names of torch.nn.utils.prune. All answer what they were given.

local native = require "perigee.native"
local masks = require "perigee.prune.masks"
local choose = require "perigee.prune.choose"
local targets = require "perigee.prune.targets"

local prune = {}
local inner = {} -- what other files of the room use
prune.inner = inner
local function pg() return require "perigee" end
local function no_grad(fn, ...) return pg().no_grad(fn, ...) end

local TARGET, NAME, AMOUNT, COUNT = targets.TARGET, targets.NAME, choose.AMOUNT, choose.COUNT

-- ---- scores ----

local scores = {}
function scores.l1(where, layer, name)
  return choose.scores(where, masks.original(layer, name):detach(), targets.text(layer, name))
end
function scores.random(_, layer, name)
  local t = masks.original(layer, name)
  return pg().rand { t.shape, dtype = "float64", device = t.device }
end

-- Masks of all layers, and only then the first is set: what fails leaves all as it was.
local function set_all(list, name, make)
  local made = {}
  for i, layer in ipairs(list) do made[i] = make(layer, i) end
  for i, layer in ipairs(list) do masks.set(layer, name, made[i]) end
end

---Prunes the lowest-scored open elements of every layer by itself; count(left, layer) says how many.
function inner.by_layer(where, list, name, method, count)
  set_all(list, name, function(layer)
    local open = masks.open(layer, name)
    local number = count(open:sum():item(), layer)
    return choose.lowest(scores[method](where, layer, name), open, number):logical_not()
  end)
end

---The same of all layers together.
function inner.together(where, list, name, method, count)
  local all, open, device = {}, {}, masks.original(list[1], name).device
  for i, layer in ipairs(list) do
    all[i] = scores[method](where, layer, name):reshape(-1):to(device):to("float64")
    open[i] = masks.open(layer, name):reshape(-1):to(device)
  end
  open = pg().cat(open)
  local stays = choose.lowest(pg().cat(all), open, count(open:sum():item())):logical_not()
  local at = 1
  for _, layer in ipairs(list) do
    local t = masks.original(layer, name)
    masks.set(layer, name, stays:narrow(1, at, t:numel()):reshape(t.shape):to(t.device))
    at = at + t:numel()
  end
end

local function unstructured(where, method)
  local read = native.signature(where, { TARGET, AMOUNT, COUNT, NAME })
  return function(...)
    local o = read(...)
    local list = targets.find(where, o.target, o.name)
    no_grad(inner.by_layer, where, list, o.name, method, function(left)
      return choose.number(where, o, left, "elements")
    end)
    return o.target
  end
end

local l1_unstructured = unstructured("prune.l1_unstructured", "l1")
---Prunes the elements of least magnitude of a layer's parameter, of a model's in every layer by itself. A second call
---prunes more: its amount is of what is left. Equal magnitudes go in the order of their places.
---@return perigee.Layer|perigee.Layer[]
function prune.l1_unstructured(...) return l1_unstructured(...) end

local random_unstructured = unstructured("prune.random_unstructured", "random")
---Prunes elements at random, as pg.manual_seed has it: what magnitudes are compared with.
---@return perigee.Layer|perigee.Layer[]
function prune.random_unstructured(...) return random_unstructured(...) end

local read_global = native.signature("prune.global_unstructured", { TARGET, AMOUNT, COUNT, NAME, {
  "method", "string", named = true, default = "l1", choices = { "l1", "random" },
  doc = "what goes first: least magnitudes, or what chance says" } })
---Prunes the elements of least magnitude of all layers together: layers that matter less lose more.
---@return perigee.Layer|perigee.Layer[]
function prune.global_unstructured(...)
  local where, o = "prune.global_unstructured", read_global(...)
  local list = targets.find(where, o.target, o.name)
  no_grad(inner.together, where, list, o.name, o.method, function(left)
    return choose.number(where, o, left, "elements")
  end)
  return o.target
end

-- ---- whole slices ----

local function others(rank, axis)
  local list = {}
  for i = 1, rank do
    if i ~= axis then list[#list + 1] = i end
  end
  return list
end

---Which slices along an axis are not all pruned.
function inner.open_slices(layer, name, axis)
  local open = masks.open(layer, name)
  return #open.shape == 1 and open or open:any { axis = others(#open.shape, axis) }
end

---The mask of a parameter whose slices along an axis stay or go.
function inner.of_slices(layer, name, axis, stays)
  local t = masks.original(layer, name)
  local shape = {}
  for i, size in ipairs(t.shape) do shape[i] = i == axis and size or 1 end
  return stays:to(t.device):reshape(shape):expand(t.shape):contiguous()
end

---Norms of order n of the slices along an axis, of what is not pruned.
function inner.slice_norms(where, layer, name, axis, n)
  local t = masks.value(layer, name)
  local absolute = choose.scores(where, t, targets.text(layer, name))
  if #t.shape == 1 then return absolute end
  return pg().linalg.vector_norm(absolute, { ord = n, axis = others(#t.shape, axis) })
end

local function structured(where, score)
  local params = { TARGET, AMOUNT, COUNT, NAME,
                   { "axis", "axis", named = true, default = 1, doc = "along which slices go; 1: output channels" } }
  if score == "norm" then
    params[#params + 1] = { "n", "number", named = true, default = 2,
                            doc = "order of the norm; math.huge: the largest" }
  end
  local read = native.signature(where, params)
  return function(...)
    local o = read(...)
    if o.n and o.n ~= o.n then native.raise("invalid_argument", where, "n is NaN") end
    local list = targets.find(where, o.target, o.name)
    no_grad(set_all, list, o.name, function(layer)
      local t = masks.original(layer, o.name)
      local axis = native.tensor.axis_of(where, t, o.axis)
      local open = inner.open_slices(layer, o.name, axis)
      local by = score == "norm" and inner.slice_norms(where, layer, o.name, axis, o.n) or
                 pg().rand { #open, dtype = "float64", device = t.device }
      local count = choose.number(where, o, open:sum():item(), "slices")
      return inner.of_slices(layer, o.name, axis, choose.lowest(by, open, count):logical_not())
    end)
    return o.target
  end
end

local ln_structured = structured("prune.ln_structured", "norm")
---Prunes whole slices of a parameter, those of least norm: rows of a Linear, filters of a convolution. The network
---keeps its size; pg.prune.channels with pg.prune.shrink makes a smaller one.
---@return perigee.Layer|perigee.Layer[]
function prune.ln_structured(...) return ln_structured(...) end

local random_structured = structured("prune.random_structured")
---Prunes whole slices of a parameter at random.
---@return perigee.Layer|perigee.Layer[]
function prune.random_structured(...) return random_structured(...) end

-- ---- n of m, and masks of one's own ----

local read_n_of_m = native.signature("prune.n_of_m", { TARGET,
  { "n", "integer", default = 2, doc = "how many of a group stay" },
  { "m", "integer", default = 4, doc = "neighbours that make a group; the axis is a multiple of it" },
  { "axis", "axis", named = true, default = 2, doc = "along which groups lie; 2: input channels" }, NAME })
---Leaves n of every m neighbours along an axis, those of greatest magnitude: with 2 of 4 the pattern that sparse matrix
---units take (Mishra et al., 2021). Of equal magnitudes the later stays. Elements that are pruned already count as 0.
---@return perigee.Layer|perigee.Layer[]
function prune.n_of_m(...)
  local where, o = "prune.n_of_m", read_n_of_m(...)
  if o.n < 0 or o.m < 1 or o.n > o.m then
    native.raise("invalid_argument", where, ("needs 0 <= n <= m and m >= 1, got n=%d, m=%d"):format(o.n, o.m))
  end
  local list, axes = targets.find(where, o.target, o.name), {}
  for i, layer in ipairs(list) do
    local t = masks.original(layer, o.name)
    axes[i] = native.tensor.axis_of(where, t, o.axis)
    if t.shape[axes[i]] % o.m ~= 0 then
      native.raise("invalid_argument", where, ("%s %s: axis %d is no multiple of m=%d"):format(
                     targets.text(layer, o.name), tostring(t.shape), axes[i], o.m))
    end
  end
  no_grad(set_all, list, o.name, function(layer, i)
    local absolute = choose.scores(where, masks.value(layer, o.name), targets.text(layer, o.name))
    return choose.highest_of(pg().where(masks.open(layer, o.name), absolute, -1), o.n, o.m, axes[i])
  end)
  return o.target
end

-- A tensor of yes and no as bool, on the parameter's device.
local function as_mask(where, mask, t, text)
  if native.tensor.shapes_differ(mask.shape, t.shape) then
    native.raise("invalid_argument", where, ("the mask is %s; expected %s, the shape of %s"):format(
                   tostring(mask.shape), tostring(t.shape), text))
  end
  local yes = mask
  if mask.dtype ~= "bool" then
    yes = mask:ne(0)
    if mask:numel() > 0 and not mask:eq(0):logical_or(mask:eq(1)):all():item() then
      native.raise("invalid_argument", where, ("the mask is %s and holds values other than 0 and 1"):format(mask.dtype),
                   "t:ne(0) makes a mask of any tensor")
    end
  end
  return yes:to(t.device):clone()
end

local read_custom = native.signature("prune.custom_from_mask", {
  { "layer", "any", required = true, type = "perigee.Layer", doc = "whose parameter it is" },
  { "mask", "tensor", required = true, doc = "in the parameter's shape: true or 1 stays, false or 0 goes" }, NAME })
---Prunes with a mask of one's own. Earlier masks go on holding.
---@return perigee.Layer
function prune.custom_from_mask(...)
  local where, o = "prune.custom_from_mask", read_custom(...)
  local list = targets.find(where, o.layer, o.name)
  if #list > 1 or list[1] ~= o.layer then
    native.raise("invalid_argument", where, ("%s has no parameter %q of its own"):format(getmetatable(o.layer).__name or
                   native.describe(o.layer), o.name), "a mask is for one layer")
  end
  no_grad(function()
    masks.set(o.layer, o.name, as_mask(where, o.mask, masks.original(o.layer, o.name), targets.text(o.layer, o.name)))
  end)
  return o.layer
end

return prune
