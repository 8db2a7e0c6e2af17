-- SPDX-License-Identifier: Apache-2.0
-- Layers without parameters that move pixels: padding, upsampling, windows as columns.

local native = require "perigee.native"
local Module = require "perigee.nn.module"
local common = require "perigee.nn.layers_common"
local told = require "perigee.nn.told"

local spatial = {}

-- A class whose options are read by `params` and whose forward is f(x, options).
local function layer(name, params, f)
  local class, read = Module.class(name), native.signature(name, params)
  function class:init(...) self.options = read(...) end
  function class:forward(x) return f(x, self.options) end
  common.check_input(class)
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
    told.texts[name] = ("%s padded by %s along the last %s; N may be missing."):format(SHAPES[axes], text,
                         axes == 1 and "axis" or axes == 2 and "two axes" or "three axes")
    local params = { { "padding", "counts", required = true,
                       doc = "elements added: one number, or before and behind each axis, the last axis first" } }
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
pads("Constant", "constant", 3, "`value`", { { "value", "number", required = true, doc = "what is put there" } })
pads("Reflection", "reflect", 3, "what lies inside, mirrored at the outermost element")
pads("Replication", "replicate", 3, "its outermost elements")
pads("Circular", "circular", 3, "what lies at the other end")

---[N, C, ...] at another size of the axes behind C, or `scale_factor` times as large: pg.interpolate as a layer.
layer("Upsample", {
  { "size", "counts", doc = "of the result, one number or one an axis" },
  { "scale_factor", "numbers", doc = "how much larger, in place of `size`" },
  { "mode", "string", default = "nearest",
    choices = { "nearest", "linear", "bilinear", "bicubic", "trilinear", "area" },
    doc = "linear is of one axis, bilinear and bicubic of two, trilinear of three" },
  { "align_corners", "boolean", doc = "whether the outermost elements' centres stay; not of nearest and area" },
}, function(x, o)
  return x:interpolate { size = o.size, scale_factor = o.scale_factor, mode = o.mode, align_corners = o.align_corners }
end)

---[N, C r^2, H, W] to [N, C, H r, W r], r being `factor`: element (h, w) of channel c r^2 + i r + j goes to
---(h r + i, w r + j) of channel c (Shi et al., 2016).
layer("PixelShuffle", { { "factor", "integer", required = true, doc = "how much larger images become" } },
      function(x, o) return x:pixel_shuffle(o.factor) end)
---[N, C, H r, W r] to [N, C r^2, H, W], r being `factor`: PixelShuffle undone.
layer("PixelUnshuffle", { { "factor", "integer", required = true, doc = "how much smaller images become" } },
      function(x, o) return x:pixel_unshuffle(o.factor) end)
---[N, C, ...] with the channels of `groups` groups interleaved: channel i C / groups + j goes to j groups + i (Zhang et
---al., 2018).
layer("ChannelShuffle", { { "groups", "integer", required = true, doc = "C is a multiple of it" } },
      function(x, o) return x:channel_shuffle(o.groups) end)

local windows = {
  { "kernel", "counts", required = true, doc = "size of the window along each axis" },
  { "dilation", "counts", default = 1, doc = "distance between the window's elements" },
  { "padding", "counts", default = 0, doc = "zeros added on both sides of the image" },
  { "stride", "counts", default = 1, doc = "steps of the window" },
}
---Windows of images as columns: [N, C, H, W] to [N, C kh kw, L], L the number of windows, each axis holding
---floor((size + 2 padding - dilation (kernel - 1) - 1) / stride) + 1 of them.
layer("Unfold", windows, function(x, o) return x:im2col(o) end)
---Columns added up to images of `size`, where windows overlap: [N, C kh kw, L] to [N, C, H, W]. The transpose of
---Unfold.
layer("Fold", { { "size", "counts", required = true, doc = "H and W of the result" }, unpack(windows) },
      function(x, o) return x:col2im(o) end)

---Each element divided by a power of the mean of the squares over `size` neighbouring channels (Krizhevsky, Sutskever
---and Hinton, 2012): x / (k + alpha mean(x^2))^beta, zeros standing outside; [N, C, ...] in the same shape.
layer("LocalResponseNorm", {
  { "size", "integer", required = true, doc = "channels in the mean" },
  { "alpha", "number", default = 1e-4, doc = "factor of the mean" },
  { "beta", "number", default = 0.75, doc = "the power" },
  { "k", "number", default = 1, doc = "added to the mean" },
}, function(x, o) return x:local_response_norm(o) end)

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
  told.texts[("LPPool%dd"):format(axes)] = ("The norm of each window of %s: (sum of x^norm)^(1 / norm); each axis " ..
    "becomes floor((size - kernel) / stride) + 1 long."):format(SHAPES[axes])
  layer(("LPPool%dd"):format(axes), {
    { "norm", "number", required = true, doc = "order of the norm" },
    { "kernel", "counts", required = true, doc = "size of the window along each axis" },
    { "stride", "counts", doc = "steps of the window; the kernel's size if not given" },
    { "ceil_mode", "boolean", default = false, doc = "whether windows that stick out at the end count" },
  }, function(x, o) return x[("lp_pool%dd"):format(axes)](x, o) end)
end

return spatial
