-- SPDX-License-Identifier: Apache-2.0
-- Layers without parameters that move pixels: padding, upsampling, windows as columns.

local native = require "perigee.native"
local Module = require "perigee.nn.module"
local told = require "perigee.nn.told"

local spatial = {}

-- A class whose options are read by `params` and whose forward is f(x, options).
local function layer(name, params, f)
  local class, read = Module.class(name), nil
  function class:init(...)
    read = read or native.signature(name, params)
    self.options = read(...)
  end
  function class:forward(x) return f(x, self.options) end
  function class:describe()
    local parts = {}
    for _, param in ipairs(params) do
      local v = self.options[param[1]]
      if type(v) == "table" then v = "{" .. table.concat(v, ", ") .. "}" end
      if v ~= nil then parts[#parts + 1] = param[1] .. "=" .. tostring(v) end
    end
    return table.concat(parts, ", ")
  end
  spatial[name] = class
end

-- One number, or two an axis, last axis first, as the list that pad takes.
local function widths_of(name, padding, axes)
  if type(padding) == "number" then
    local list = {}
    for i = 1, 2 * axes do list[i] = padding end
    return list
  end
  if type(padding) ~= "table" or #padding ~= 2 * axes then
    native.raise("invalid_argument", name, ("padding takes one number or %d, got %s"):format(2 * axes,
                 native.describe(padding)), "before and behind, last axis first")
  end
  return padding
end

local SHAPES = { "[N, C, L]", "[N, C, H, W]", "[N, C, D, H, W]" }

local function pads(prefix, mode, most, text, options)
  for axes = 1, most do
    local name = ("%sPad%dd"):format(prefix, axes)
    told.texts[name] = ("%s padded by %s. padding is one number, or two an axis, last axis first."):format(
                         SHAPES[axes], text)
    local params = { { "padding", "any", required = true } }
    for _, param in ipairs(options or {}) do params[#params + 1] = param end
    layer(name, params, function(x, o)
      local rank = native.tensor.rank(x)
      if rank ~= axes + 2 and rank ~= axes + 1 then
        native.raise("invalid_argument", name,
                     ("expected an input of %d axes, or of %d without a batch, got %s"):format(axes + 2, axes + 1,
                                                                                              tostring(x.shape)))
      end
      return x:pad(widths_of(name, o.padding, axes), { mode = mode, value = o.value or 0 })
    end)
  end
end
pads("Zero", "constant", 3, "zeros")
pads("Constant", "constant", 3, "`value`", { { "value", "number", required = true } })
pads("Reflection", "reflect", 3, "what lies inside, mirrored at the outermost element")
pads("Replication", "replicate", 3, "its outermost elements")
pads("Circular", "circular", 3, "what lies at the other end")

---Images at another size or `scale_factor` times as large: pg.interpolate as a layer.
layer("Upsample", { { "size", "any" }, { "scale_factor", "any" }, { "mode", "string", default = "nearest" },
                    { "align_corners", "boolean" } }, function(x, o)
  return x:interpolate { size = o.size, scale_factor = o.scale_factor, mode = o.mode, align_corners = o.align_corners }
end)

---[N, C * r^2, H, W] to [N, C, H * r, W * r].
layer("PixelShuffle", { { "factor", "integer", required = true } }, function(x, o) return x:pixel_shuffle(o.factor) end)
---[N, C, H * r, W * r] to [N, C * r^2, H, W].
layer("PixelUnshuffle", { { "factor", "integer", required = true } },
      function(x, o) return x:pixel_unshuffle(o.factor) end)
---[N, C, ...] with the channels of `groups` groups interleaved.
layer("ChannelShuffle", { { "groups", "integer", required = true } },
      function(x, o) return x:channel_shuffle(o.groups) end)

local windows = { { "kernel", "any", required = true }, { "dilation", "any", default = 1 },
                  { "padding", "any", default = 0 }, { "stride", "any", default = 1 } }
---Windows of images as columns: [N, C, H, W] to [N, C * kh * kw, L].
layer("Unfold", windows, function(x, o) return x:im2col(o) end)
---Columns added up to images of `size`: [N, C * kh * kw, L] to [N, C, H, W].
layer("Fold", { { "size", "any", required = true }, unpack(windows) }, function(x, o) return x:col2im(o) end)

---Each element divided by a power of the mean of the squares over `size` neighbouring channels.
layer("LocalResponseNorm", { { "size", "integer", required = true }, { "alpha", "number", default = 1e-4 },
                             { "beta", "number", default = 0.75 }, { "k", "number", default = 1 } },
      function(x, o) return x:local_response_norm(o) end)

-- As functions, under PyTorch's names; pg.unfold is windows along one axis.
---pg.im2col: windows of images as columns.
---@param ... any as those of pg.im2col
---@return perigee.Tensor
function spatial.unfold(...) return require("perigee").im2col(...) end
---pg.col2im: columns added up to images.
---@param ... any as those of pg.col2im
---@return perigee.Tensor
function spatial.fold(...) return require("perigee").col2im(...) end

for axes = 1, 2 do
  local moved = axes == 1 and "[N, C, L]" or "[N, C, H, W]"
  told.texts[("LPPool%dd"):format(axes)] = "The norm of each window of " .. moved .. ": (sum of |x|^norm)^(1 / norm)."
  layer(("LPPool%dd"):format(axes), { { "norm", "number", required = true }, { "kernel", "any", required = true },
                                      { "stride", "any" }, { "ceil_mode", "boolean", default = false } },
        function(x, o) return x[("lp_pool%dd"):format(axes)](x, o) end)
end

return spatial
