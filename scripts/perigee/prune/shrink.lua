-- SPDX-License-Identifier: Apache-2.0
-- Whole channels and heads: masks that cut them off from all that reads them, and networks made smaller by them.

local native = require "perigee.native"
local walk = require "perigee.nn.walk"
local masks = require "perigee.prune.masks"
local choose = require "perigee.prune.choose"
local targets = require "perigee.prune.targets"
local spaces = require "perigee.prune.spaces"
local resize = require "perigee.prune.resize"
local inner = require("perigee.prune.methods").inner

local prune = {}
local function pg() return require "perigee" end

local function check_model(where, model)
  if not walk.is_layer(model) then
    native.raise("invalid_argument", where, "needs a model, got " .. native.describe(model))
  end
  if walk.is_lazy(model) then
    native.raise("failed_precondition", where, "sizes are not known before the first input", "call the model once")
  end
end

local MODEL = { "model", "any", required = true, type = "perigee.Layer", doc = "what is pruned" }
local N = { "n", "integer", named = true, default = 2, doc = "1 or 2: order of the norm that says what matters least" }

local function check_order(where, n)
  if n ~= 1 and n ~= 2 then native.raise("invalid_argument", where, ("n must be 1 or 2, got %d"):format(n)) end
end

-- ---- channels ----

-- [size] bool: which channels something reads.
local function read_channels(space, value)
  local any
  for _, reader in ipairs(space.readers) do
    local t = value(reader.layer)
    local used = t:ne(0)
    local axes = {}
    for i = 1, #t.shape do
      if i ~= reader.axis then axes[#axes + 1] = i end
    end
    used = used:any { axis = axes }:reshape(space.size, reader.factor):any { axis = 2 }:cpu()
    any = any and any:logical_or(used) or used
  end
  return any
end

local function mask_of(layer) return masks.open(layer, "weight") end
local function value_of(layer) return masks.value(layer, "weight") end

local function maker_names(space, names)
  local list = {}
  for _, maker in ipairs(space.makers) do list[#list + 1] = names[maker.layer] end
  return table.concat(list, " and ")
end

-- The spaces that are meant, or what keeps them from being pruned.
local function chosen_spaces(where, model, layers)
  local all, names = spaces.of(model)
  local wanted, list, reasons = {}, {}, {}
  for _, layer in ipairs(layers or {}) do wanted[layer] = true end
  for _, space in ipairs(all) do
    local asked = not layers
    for _, maker in ipairs(space.makers) do
      asked = asked or wanted[maker.layer]
      if wanted[maker.layer] then wanted[maker.layer] = false end
    end
    local pinned = space.pinned or #space.readers == 0 and "nothing reads them"
    if asked and pinned then
      reasons[#reasons + 1] = ("the channels of %s must stay: %s"):format(maker_names(space, names), pinned)
    elseif asked then
      list[#list + 1] = space
    end
  end
  for layer, missing in pairs(wanted) do
    if missing then
      native.raise("not_found", where, ("%s is no Linear or convolution of this model"):format(
                     walk.is_layer(layer) and getmetatable(layer).__name or native.describe(layer)))
    end
  end
  if layers and #reasons > 0 or #list == 0 then
    native.raise("not_supported", where, reasons[1] and table.concat(reasons, "; ", 1, math.min(#reasons, 4)) or
                   "the model has no channels that can be taken out",
                 "channels can go between a Linear or convolution and the next in nn.Sequential and nn.Residual")
  end
  return list
end

-- The mask of a reader's weight, of its channels that stay.
local function reader_mask(reader, stays)
  local t = masks.original(reader.layer, "weight")
  local columns = reader.factor == 1 and stays or stays:unsqueeze(2):expand(#stays, reader.factor):reshape(-1)
  return inner.of_slices(reader.layer, "weight", reader.axis, columns:to(t.device))
end

local function channel_scores(where, space, n)
  local sum
  for _, maker in ipairs(space.makers) do
    local norms = inner.slice_norms(where, maker.layer, "weight", maker.axis, n):cpu():to("float64"):pow(n)
    sum = sum and sum + norms or norms
  end
  return sum
end

-- { layer, mask } of all weights of a space, where `stays` is what remains of it.
local function add_masks(made, space, stays)
  for _, maker in ipairs(space.makers) do
    made[#made + 1] = { maker.layer, inner.of_slices(maker.layer, "weight", maker.axis, stays) }
  end
  for _, reader in ipairs(space.readers) do made[#made + 1] = { reader.layer, reader_mask(reader, stays) } end
end

local read_channels_options = native.signature("prune.channels", { MODEL, choose.AMOUNT, choose.COUNT, N,
  { "layers", "table", named = true, type = "perigee.Layer[]",
    doc = "those whose output channels are meant; all that can be taken out if not given" } })
---Prunes whole output channels of a model's Linear layers and convolutions, in each those of least norm: the weights
---that make them and those that read them, through activations, batch norms, pooling, dropout and nn.Flatten to the
---next Linear or convolution of nn.Sequential. What nn.Residual adds up is one set of channels. One always stays. A
---convolution with a group a channel is gone through, its filters going with their channels. The model computes with
---masks what pg.prune.shrink(model) computes with fewer channels. Channels that leave the model, or meet a layer that
---mixes them (a layer norm, groups of several channels, a script's own forward), stay: where `layers` names them, or
---nothing else is there, the error says why. Batches are the first axis.
---@return perigee.Layer model
function prune.channels(...)
  local where, o = "prune.channels", read_channels_options(...)
  check_model(where, o.model)
  check_order(where, o.n)
  local list, made = chosen_spaces(where, o.model, o.layers), {}
  for _, space in ipairs(list) do
    for _, part in ipairs { space.makers, space.readers } do
      for _, entry in ipairs(part) do targets.find(where, entry.layer, "weight") end -- refuses what is frozen
    end
  end
  pg().no_grad(function()
    for _, space in ipairs(list) do
      local open = read_channels(space, mask_of)
      local left = open:sum():item()
      local count = math.min(choose.number(where, o, left, "channels"), math.max(left - 1, 0))
      local gone = choose.lowest(channel_scores(where, space, o.n), open, count)
      add_masks(made, space, open:logical_and(gone:logical_not()))
    end
    for _, entry in ipairs(made) do masks.set(entry[1], "weight", entry[2]) end
  end)
  return o.model
end

-- ---- heads ----

local function attentions(model)
  local list = {}
  for _, layer in ipairs(walk.modules(model)) do
    local name = getmetatable(layer).__name
    if name == "MultiheadAttention" and layer.forward == pg().nn.MultiheadAttention.forward then
      list[#list + 1] = layer
    end
  end
  return list
end

-- The projections of queries, keys and values: names, and how many stand in each.
local function projections(layer)
  if layer.together then return { "in_proj_weight" }, 3 end
  return { "q_proj_weight", "k_proj_weight", "v_proj_weight" }, 1
end

-- One entry a head made one a row of a projection.
local function by_row(heads, width, times)
  return heads:unsqueeze(2):expand(#heads, width):reshape(1, -1):expand(times, #heads * width):reshape(-1)
end

local function sizes(layer)
  local o = layer.options
  return o.heads, (o.inner or o.embed) / o.heads
end

local function read_heads(layer, value)
  local heads, width = sizes(layer)
  return value(layer.out_proj):ne(0):any { axis = 1 }:reshape(heads, width):any { axis = 2 }:cpu()
end

local function head_scores(where, layer, n)
  local heads, width = sizes(layer)
  local names, times = projections(layer)
  local sum = inner.slice_norms(where, layer.out_proj, "weight", 2, n):cpu():to("float64"):pow(n)
                :reshape(heads, width):sum(2)
  for _, name in ipairs(names) do
    local norms = inner.slice_norms(where, layer, name, 1, n):cpu():to("float64"):pow(n)
    sum = sum + norms:reshape(times, heads, width):sum { axis = { 1, 3 } }
  end
  return sum
end

local read_heads_options = native.signature("prune.heads", { MODEL, choose.AMOUNT, choose.COUNT, N })
---Prunes whole heads of a model's nn.MultiheadAttention layers, in each those of least norm: their rows of the
---projections and their columns of out_proj. One always stays. pg.prune.shrink(model) then has fewer heads.
---@return perigee.Layer model
function prune.heads(...)
  local where, o = "prune.heads", read_heads_options(...)
  check_model(where, o.model)
  check_order(where, o.n)
  local list, made = attentions(o.model), {}
  if #list == 0 then
    native.raise("not_found", where, ("there is no MultiheadAttention in %s"):format(getmetatable(o.model).__name))
  end
  for _, layer in ipairs(list) do
    for _, name in ipairs((projections(layer))) do targets.find(where, layer, name) end
    targets.find(where, layer.out_proj, "weight")
  end
  pg().no_grad(function()
    for _, layer in ipairs(list) do
      local _, width = sizes(layer)
      local open = read_heads(layer, mask_of)
      local left = open:sum():item()
      local count = math.min(choose.number(where, o, left, "heads"), math.max(left - 1, 0))
      local stays = open:logical_and(choose.lowest(head_scores(where, layer, o.n), open, count):logical_not())
      local names, times = projections(layer)
      for _, name in ipairs(names) do
        made[#made + 1] = { layer, name, inner.of_slices(layer, name, 1, by_row(stays, width, times)) }
      end
      made[#made + 1] = { layer.out_proj, "weight", inner.of_slices(layer.out_proj, "weight", 2,
                                                                    by_row(stays, width, 1)) }
    end
    for _, entry in ipairs(made) do masks.set(unpack(entry)) end
  end)
  return o.model
end

-- ---- smaller networks ----

local function places_of(stays) return stays:nonzero():reshape(-1) end

-- All but the first of what stays goes where nothing does.
local function at_least_one(stays)
  if not stays:any():item() then stays[1] = true end
  return stays
end

local function shrink_channels(space)
  local stays = at_least_one(read_channels(space, value_of))
  if stays:all():item() then return end
  local places = places_of(stays)
  for _, maker in ipairs(space.makers) do
    resize.cut(maker.layer, "weight", maker.axis, places)
    resize.cut(maker.layer, "bias", 1, places)
    resize.settle(maker.layer)
  end
  for _, follower in ipairs(space.followers) do
    for _, name in ipairs { "weight", "bias", "running_mean", "running_var" } do
      resize.cut(follower.layer, name, 1, places)
    end
    resize.settle(follower.layer)
  end
  for _, reader in ipairs(space.readers) do
    local columns = places
    if reader.factor > 1 then
      local offsets = pg().arange { reader.factor }
      columns = (places:unsqueeze(2) * reader.factor + offsets):reshape(-1)
    end
    resize.cut(reader.layer, "weight", reader.axis, columns)
    resize.settle(reader.layer)
  end
end

local function shrink_heads(layer)
  local stays = at_least_one(read_heads(layer, value_of))
  if stays:all():item() then return end
  local _, width = sizes(layer)
  local names, times = projections(layer)
  local rows = places_of(by_row(stays, width, times))
  for _, name in ipairs(names) do resize.cut(layer, name, 1, rows) end
  resize.cut(layer, "in_proj_bias", 1, places_of(by_row(stays, width, 3)))
  local columns = places_of(by_row(stays, width, 1))
  for _, name in ipairs { "bias_k", "bias_v" } do resize.cut(layer, name, 3, columns) end
  resize.cut(layer.out_proj, "weight", 2, columns)
  resize.settle(layer.out_proj)
  resize.settle(layer)
end

local read_shrink = native.signature("prune.shrink", { MODEL })
---A copy of a model without the channels and heads that nothing reads: those whose weights in all layers that take them
---are 0, as pg.prune.channels and pg.prune.heads leave them. In evaluation it computes what the model does, to
---rounding, in less time and memory. Masks of what remains stay. The model itself is as before; optimizers are to be
---made anew.
---@return perigee.Layer smaller
function prune.shrink(...)
  local where, o = "prune.shrink", read_shrink(...)
  check_model(where, o.model)
  local small = o.model:clone()
  pg().no_grad(function()
    for _, space in ipairs((spaces.of(small))) do
      if not space.pinned and #space.readers > 0 then shrink_channels(space) end
    end
    for _, layer in ipairs(attentions(small)) do shrink_heads(layer) end
  end)
  return small
end

-- ---- back from files ----

-- The masks of a state that a layer has not, without which its names do not fit.
local function add_missing_masks(layer, prefix, state)
  for _, entry in ipairs(walk.entries(layer)) do
    if entry.kind == "layer" then
      add_missing_masks(entry.value, prefix .. entry.name .. ".", state)
    elseif entry.kind == "parameter" and state[prefix .. entry.name .. "_mask"] and state[prefix .. entry.name ..
      "_orig"] then
      masks.set(layer, entry.name, masks.open(layer, entry.name))
    end
  end
end

-- Tensors that are smaller in a state are made anew in its shape.
local function take_shapes(layer, prefix, state)
  local changed = false
  for _, entry in ipairs(walk.entries(layer)) do
    local t, name = entry.value, prefix .. entry.name
    if entry.kind == "layer" then
      changed = take_shapes(t, name .. ".", state) or changed
    elseif native.is_tensor(state[name]) and state[name].shape ~= t.shape and resize.can(layer) and
      #state[name].shape == #t.shape then
      native.assign(t, pg().zeros { state[name].shape, dtype = t.dtype, device = t.device })
      changed = true
    end
  end
  if changed and resize.can(layer) then resize.settle(layer) end
  return changed
end

---Makes a fresh model what a pruned one was: it gets the masks and the sizes that a state has, and loads it.
---@param model perigee.Layer made as the one that was pruned
---@param state table<string, perigee.Tensor> state() of the pruned one, or what pg.load gave
---@return perigee.Layer model
function prune.restore(model, state)
  local where = "prune.restore"
  check_model(where, model)
  if type(state) ~= "table" or walk.is_layer(state) then
    native.raise("invalid_argument", where, "needs a table of tensors, got " .. native.describe(state),
                 "pg.prune.restore(model, other:state())")
  end
  local trial = model:clone() -- what does not fit leaves the model as it is
  for _, target in ipairs { trial, model } do
    pg().no_grad(function()
      add_missing_masks(target, "", state)
      take_shapes(target, "", state)
    end)
    target:load_state(state)
  end
  return model
end

return prune
