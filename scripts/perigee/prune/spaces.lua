-- SPDX-License-Identifier: Apache-2.0
-- Where channels go. A space is what one axis of channels is wherever it passes: the rows that make it, the columns
-- that read it, the norms between. Sequential and Residual are followed, all else pins what goes in or comes out.

local walk = require "perigee.nn.walk"

local spaces = {}
local META = walk.META
local function nn() return require("perigee").nn end

local function words(text)
  local set = {}
  for word in text:gmatch "%S+" do set[word] = true end
  return set
end

-- Element by element, or channel by channel, with nothing of their own.
local EACH = words [[ReLU ReLU6 Sigmoid LogSigmoid Tanh Tanhshrink SiLU Mish Hardswish Hardsigmoid SELU Softsign
  LeakyReLU ELU CELU Hardshrink Softshrink Hardtanh Softplus Threshold GELU Dropout Identity]]
local IMAGES = words [[MaxPool1d AvgPool1d AdaptiveMaxPool1d AdaptiveAvgPool1d MaxPool2d AvgPool2d AdaptiveMaxPool2d
  AdaptiveAvgPool2d MaxPool3d AvgPool3d AdaptiveMaxPool3d AdaptiveAvgPool3d Upsample ZeroPad1d ZeroPad2d ZeroPad3d
  Dropout1d Dropout2d Dropout3d]]
local NORMS = words "BatchNorm1d BatchNorm2d BatchNorm3d"
local CONVOLUTIONS = { Conv1d = { 1, 2 }, Conv2d = { 1, 2 }, Conv3d = { 1, 2 }, -- axes of weight: out, in
                       ConvTranspose1d = { 2, 1 }, ConvTranspose2d = { 2, 1 }, ConvTranspose3d = { 2, 1 } }
local BLOCKS = words "TransformerEncoderLayer TransformerDecoderLayer"

---Axes of a convolution's or Linear's weight: of output channels, and of input channels.
function spaces.axes_of(layer)
  local axes = CONVOLUTIONS[getmetatable(layer).__name]
  if axes then return axes[1], axes[2] end
  return 1, 2
end

local Tracer = {}
Tracer.__index = Tracer

-- kind: where the channels are, "last" axis or the "second"; nil: not known.
local function new_space(self, size, kind)
  local space = { size = size, kind = kind, makers = {}, readers = {}, followers = {} }
  self.list[#self.list + 1] = space
  return space
end

local function root(space)
  while space.joined do space = space.joined end
  return space
end

local function pin(space, reason)
  space = root(space)
  space.pinned = space.pinned or reason
end

-- Two spaces that are added to each other are one.
local function join(a, b)
  a, b = root(a), root(b)
  if a == b then return a end
  if a.size and b.size and a.size ~= b.size or a.kind and b.kind and a.kind ~= b.kind then
    pin(a, "they are added to others")
    pin(b, "they are added to others")
    return a
  end
  for _, key in ipairs { "makers", "readers", "followers" } do
    for _, entry in ipairs(b[key]) do table.insert(a[key], entry) end
  end
  a.pinned, a.size, a.kind = a.pinned or b.pinned, a.size or b.size, a.kind or b.kind
  b.joined = a
  return a
end

-- The name of a layer's class where it computes what that class of nn does; nil of what scripts define.
local function known_name(layer)
  local name = getmetatable(layer).__name
  local found, class = pcall(function() return nn()[name] end)
  if found and type(class) == "table" and layer.forward == class.forward then return name end
end

local function text_of(self, layer) return ("%s (%s)"):format(self.names[layer], getmetatable(layer).__name) end

local trace

local function fold(self, layers, space)
  for _, layer in ipairs(layers) do space = trace(self, layer, space) end
  return space
end

-- What cannot be read: its input and output keep their channels, what is inside is looked at on its own.
local function opaque(self, layer, space, reason)
  pin(space, reason or ("they go into %s, which cannot be followed"):format(text_of(self, layer)))
  local function ends(what) return ("they are %s of a layer inside of %s"):format(what, text_of(self, layer)) end
  local skip = {}
  if BLOCKS[known_name(layer) or ""] and type(layer.options.activation) == "string" then
    local start = new_space(self)
    pin(start, ends "the input")
    pin(fold(self, { layer.linear1, layer.linear2 }, start), ends "the result")
    skip[layer.linear1], skip[layer.linear2] = true, true
  end
  for _, child in ipairs(walk.children(layer)) do
    if not skip[child] then
      local start = new_space(self)
      pin(start, ends "the input")
      pin(trace(self, child, start), ends "the result")
    end
  end
  local after = new_space(self)
  pin(after, ("they come from %s, which cannot be followed"):format(text_of(self, layer)))
  return after
end

local function check_kind(self, layer, space, kind)
  space = root(space)
  if space.kind and space.kind ~= kind then
    pin(space, ("%s takes them along another axis"):format(text_of(self, layer)))
  end
  space.kind = space.kind or kind
end

-- A Linear or a convolution of one group: all channels meet.
local function product(self, layer, space, name)
  local out_axis, in_axis = spaces.axes_of(layer)
  local shape, kind = layer.weight.shape, CONVOLUTIONS[name] and "second" or "last"
  local before, inputs = root(space), shape[in_axis]
  local factor = 1
  if before.flat and before.size and inputs % before.size == 0 and kind == "last" then
    factor = inputs / before.size
  else
    check_kind(self, layer, space, kind)
    before = root(space)
    before.size = before.size or inputs
    if before.size ~= inputs then pin(before, ("%s takes %d of them"):format(text_of(self, layer), inputs)) end
  end
  table.insert(root(space).readers, { layer = layer, axis = in_axis, factor = factor })
  local after = new_space(self, shape[out_axis], kind)
  table.insert(after.makers, { layer = layer, axis = out_axis })
  return after
end

-- A filter a channel: channels go through it as through a norm, each with a filter of its own.
local function depthwise(self, layer, space)
  local before = root(space)
  local n = layer.weight.shape[1]
  check_kind(self, layer, space, "second")
  if before.size and before.size ~= n then pin(before, ("%s takes %d of them"):format(text_of(self, layer), n)) end
  before.size = before.size or n
  table.insert(before.followers, { layer = layer })
  return space
end

local function grouped(self, layer, space)
  local inputs, outputs = layer[META].attributes:get "inputs", layer[META].attributes:get "out"
  pin(space, ("%s has groups"):format(text_of(self, layer)))
  local after = new_space(self, outputs, "second")
  pin(after, ("%s has groups"):format(text_of(self, layer)))
  root(space).size = root(space).size or inputs
  return after
end

-- Channels go on, each with values of its own.
local function follow(self, layer, space)
  local before, n = root(space), layer[META].attributes:get "features"
  if before.flat or before.size and before.size ~= n then
    pin(before, ("%s normalises %d channels"):format(text_of(self, layer), n))
  end
  before.size = before.size or n
  table.insert(before.followers, { layer = layer })
  return space
end

-- [N, C, ...] with all behind N as one axis: a channel is a run of elements there.
local function flatten(self, layer, space)
  local attributes, before = layer[META].attributes, root(space)
  if attributes:get "first" ~= 2 or attributes:get "last" ~= -1 then
    return opaque(self, layer, space)
  end
  if before.kind == "last" then return space end -- [N, C] stays; what reads more than C is refused there
  if before.pinned and not before.size then return space end
  before.flat = true -- for what reads it from here on: nothing else may
  return space
end

function trace(self, layer, space)
  local name = known_name(layer)
  if self.seen[layer] then
    local reason = ("%s is used more than once"):format(text_of(self, layer))
    pin(self.seen[layer].before, reason)
    pin(self.seen[layer].after, reason)
    pin(space, reason)
    local after = new_space(self)
    pin(after, reason)
    return after
  end
  local entry = { before = space }
  self.seen[layer] = entry
  local set = layer[META].hooks
  local bound = self.shared[layer]
  for key in pairs(set or {}) do
    if key ~= "computed" then bound = bound or ("%s has hooks"):format(text_of(self, layer)) end
  end
  for _, rule in pairs(set and set.computed or {}) do
    if rule.kind ~= "pruning" then
      bound = bound or ("a parameter of %s is computed by %s"):format(text_of(self, layer), rule.kind)
    end
  end
  local flat = root(space).flat
  local after
  if name == "Sequential" then
    after = fold(self, walk.children(layer), space)
  elseif name == "Residual" then
    local inside = fold(self, walk.children(layer), space)
    after = join(space, inside)
  elseif name == "Linear" then
    after = product(self, layer, space, name)
  elseif CONVOLUTIONS[name or ""] and not layer[META].pad then
    local attributes = layer[META].attributes
    local groups, way = attributes:get "groups", grouped
    if not flat and groups == 1 then
      way = product
    elseif not flat and groups == attributes:get "inputs" and groups == attributes:get "out" then
      way = depthwise
    end
    after = way(self, layer, space, name)
  elseif NORMS[name or ""] then
    after = follow(self, layer, space)
  elseif EACH[name or ""] or IMAGES[name or ""] and not flat and root(space).kind == "second" then
    after = space
  elseif name == "Flatten" then
    after = flatten(self, layer, space)
  else
    after = opaque(self, layer, space)
  end
  entry.after = after
  if bound then
    pin(space, bound)
    pin(after, bound)
  end
  return after
end

-- Layers of which a tensor stands under several names.
local function find_shared(self, model)
  local owners = {}
  for _, entry in ipairs(walk.tensors(model)) do
    local first = owners[entry.tensor]
    if first and first ~= entry.owner then
      local reason = ("%s and %s share a tensor"):format(text_of(self, first), text_of(self, entry.owner))
      self.shared[first], self.shared[entry.owner] = reason, reason
    end
    owners[entry.tensor] = first or entry.owner
  end
end

local function name_all(names, layer, name)
  if names[layer] then return end
  names[layer] = name == "" and "the model" or name
  for _, entry in ipairs(walk.entries(layer)) do
    local path = name == "" and entry.name or name .. "." .. entry.name
    if entry.kind == "layer" then name_all(names, entry.value, path) end
  end
end

---The spaces of a model: each with `makers` and `readers` ({ layer, axis, factor }), `followers`, `size`, and where its
---channels must all stay `pinned`, the reason. Also the names of all layers.
---@return table[] list, table<perigee.Layer, string> names
function spaces.of(model)
  local self = setmetatable({ list = {}, seen = {}, shared = {}, names = {} }, Tracer)
  name_all(self.names, model, "")
  find_shared(self, model)
  local start = new_space(self)
  pin(start, "they are the model's input")
  pin(trace(self, model, start), "they are the model's result")
  local list = {}
  for _, space in ipairs(self.list) do
    if not space.joined and #space.makers > 0 then list[#list + 1] = space end
  end
  return list, self.names
end

return spaces
