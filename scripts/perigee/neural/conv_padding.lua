-- SPDX-License-Identifier: Apache-2.0
-- What the convolution layers' padding may be beside numbers: "same" and "valid", and other modes than zeros.

local native = require "perigee.native"

local M = {}

---Layers whose options go through here.
M.layers = { Conv1d = 1, Conv2d = 2, Conv3d = 3, ConvTranspose1d = 1, ConvTranspose2d = 2, ConvTranspose3d = 3 }

local modes = { "zeros", "reflect", "replicate", "circular" }

local function is_one_of(list, v)
  for _, entry in ipairs(list) do
    if entry == v then return true end
  end
  return false
end

local function refuse(where, message, hint) native.raise("invalid_argument", where, message, hint) end

---Adds what padding may be beside numbers to the parameters that the reference lists of a convolution.
function M.describe_names(parameters)
  for _, p in ipairs(parameters) do
    if p.name == "padding" then
      p.type = p.type .. '|"same"|"valid"'
      p.doc = p.doc .. '; "same": as many as keep the size, with stride 1; "valid": none'
    end
  end
  return parameters
end

---Adds what is read here to the parameters that the reference lists of a layer.
function M.describe(name, parameters)
  if not M.layers[name] or name:find "Transpose" then return parameters end
  M.describe_names(parameters)
  parameters[#parameters + 1] = { name = "padding_mode", type = "string", required = false, default = "zeros",
                                  choices = modes, doc = "what the elements added are" }
  return parameters
end

---Widths that keep the size of axes of a kernel, the odd one behind: {before, behind} an axis, first axis first.
function M.same(where, kernel, dilation, stride)
  local widths = {}
  for i, k in ipairs(kernel) do
    if (stride[i] or stride[1]) ~= 1 then
      refuse(where, "padding \"same\" keeps the size only with stride 1", "give the padding in numbers")
    end
    local all = (dilation[i] or dilation[1]) * (k - 1)
    widths[#widths + 1], widths[#widths + 2] = math.floor(all / 2), math.ceil(all / 2)
  end
  return widths
end

---Takes what is named out of a layer's arguments: {padding =, mode =} or nil, and the arguments left.
function M.take(name, ...)
  local count = select("#", ...)
  local options = count > 0 and select(count, ...)
  if type(options) ~= "table" or getmetatable(options) ~= nil then return nil, ... end
  local padding, mode = options.padding, options.padding_mode
  if type(padding) ~= "string" and mode == nil then return nil, ... end
  if type(padding) == "string" and not is_one_of({ "same", "valid" }, padding) then
    local near = native.suggest(padding, { "same", "valid" })
    refuse(name, ("padding must be numbers, \"same\" or \"valid\", got %q"):format(padding),
           near and ("did you mean %q?"):format(near))
  end
  if mode ~= nil and not is_one_of(modes, mode) then
    refuse(name, ("padding_mode must be one of %s, got %s"):format(table.concat(modes, ", "), native.describe(mode)))
  end
  if name:find "Transpose" and (type(padding) == "string" or (mode or "zeros") ~= "zeros") then
    refuse(name, "a transposed convolution takes padding in numbers, and zeros only")
  end
  local copy, list = {}, { ... }
  for key, v in pairs(options) do copy[key] = v end
  copy.padding_mode = nil
  if type(padding) == "string" then copy.padding = nil end
  list[count] = copy
  return { padding = padding, mode = mode or "zeros" }, unpack(list, 1, count)
end

---Sets the padding in numbers; answers what is to be added to inputs by another mode than zeros, or nil.
function M.resolve(attributes, named)
  if named.padding == "same" then
    attributes:set("padding", M.same(attributes.info.name, attributes:get("kernel"), attributes:get("dilation"),
                                     attributes:get("stride")))
  end
  if named.mode == "zeros" then return nil end
  local padding, axes, pairs_ = attributes:get("padding"), M.layers[attributes.info.name], {}
  for i = 1, axes do
    local before, behind = padding[i], padding[i]
    if #padding == 2 * axes then before, behind = padding[2 * i - 1], padding[2 * i] end
    pairs_[i + 2] = { before, behind }
  end
  pairs_[1], pairs_[2] = { 0, 0 }, { 0, 0 }
  attributes:set("padding", 0)
  return { mode = named.mode, widths = pairs_ }
end

---Calls forward with the input padded.
function M.call(layer, meta, forward, x, ...)
  local pad = meta.pad
  if native.is_tensor(x) and x:dim() == #pad.widths then
    x = x:pad(pad.widths, { mode = pad.mode })
  elseif native.is_tensor(x) and x:dim() == #pad.widths - 1 then -- an example without a batch
    x = x:unsqueeze(1):pad(pad.widths, { mode = pad.mode }):squeeze(1)
  end
  return forward(layer, meta, x, ...)
end

return M
