-- SPDX-License-Identifier: Apache-2.0
-- Convolution and pooling layers, padding by name and mode, interpolation, and images taken apart and put together.

local pg = require "perigee"
local nn = pg.nn

local function image(...) return pg.arange(pg.zeros { ... }:numel()):to("float32"):reshape(...) end

local function close(t, a, b, tolerance)
  t.ok(a.shape == b.shape, tostring(a.shape) .. " and " .. tostring(b.shape))
  local distance = (a:to "float64" - b:to "float64"):abs():max():item()
  t.ok(distance <= (tolerance or 1e-5), "differ by " .. distance)
end

test("padding=\"same\" keeps sizes, the odd element behind", function(t)
  local x, w = image(1, 1, 4, 5), pg.ones { 1, 1, 2, 3 }
  local y = x:conv2d(w, { padding = "same" })
  t.ok(y:has_shape { 1, 1, 4, 5 }, tostring(y.shape))
  close(t, y, x:pad({ 1, 1, 0, 1 }):conv2d(w))
  close(t, pg.conv2d { x, w, padding = "valid" }, x:conv2d(w))
  close(t, pg.conv2d(x, w, nil, { padding = "same", dilation = 2 }), x:pad({ 2, 2, 1, 1 }):conv2d(w, { dilation = 2 }))
  t.raises(function() x:conv2d(w, { padding = "same", stride = 2 }) end, "only with stride 1")
  t.raises(function() x:conv2d(w, { padding = "some" }) end, "did you mean \"same\"")
end)

test("convolution layers name their padding", function(t)
  for _, mode in ipairs { "zeros", "reflect", "replicate", "circular" } do
    local layer = nn.Conv2d { 2, 3, 3, padding = { 1, 2 }, padding_mode = mode }
    local x = pg.randn { 2, 2, 5, 6 }
    local padded = x:pad({ 2, 2, 1, 1 }, { mode = mode == "zeros" and "constant" or mode })
    close(t, layer(x), pg.conv2d(padded, layer.weight, layer.bias), 1e-5)
    local again = layer:clone()
    close(t, again(x), layer(x), 0)
  end
  local same = nn.Conv1d { out = 4, kernel = 4, padding = "same", padding_mode = "circular" }
  t.ok(same(pg.randn { 2, 3, 7 }):has_shape { 2, 4, 7 })
  t.ok(tostring(same):find("padding_mode=circular", 1, true), tostring(same))
  t.ok(nn.Conv2d { out = 8, kernel = 4, padding = "same" }(pg.randn { 1, 2, 5, 5 }):has_shape { 1, 8, 5, 5 })
  t.raises(function() nn.Conv2d { 1, 2, 3, padding = "full" } end, "\"same\" or \"valid\"")
  t.raises(function() nn.Conv2d { 1, 2, 3, padding_mode = "mirror" } end, "must be one of")
  t.raises(function() nn.ConvTranspose2d { 1, 2, 3, padding = "same" } end, "in numbers")
end)

test("layers of one to three axes infer their channels and train", function(t)
  for axes = 1, 3 do
    local shape = { 2, 4 }
    for i = 1, axes do shape[i + 2] = 6 end
    local function named(name) return nn[name .. axes .. "d"] end
    local model = nn.Sequential { named "Conv" { out = 4, kernel = 3, padding = 1, groups = 2 }, nn.ReLU {},
      named "MaxPool" { 2 }, named "ConvTranspose" { out = 2, kernel = 2, stride = 2 },
      named "AvgPool" { 3, stride = 2 },
      named "AdaptiveAvgPool" { 1 },
      nn.Flatten {} }
    local x = pg.randn { shape, requires_grad = true }
    local y = model(x)
    t.ok(y:has_shape { 2, 2 }, tostring(y.shape))
    y:sum():backward()
    for name, p in model:named_parameters() do t.ok(p.grad and p.grad:abs():sum():item() > 0, name) end
    t.ok(x.grad:has_shape(shape))
    t.ok(named "AdaptiveMaxPool" { 2 }(x:detach()):numel() == 8 * 2 ^ axes)
    t.raises(function() model(pg.randn { 4 }) end, "expected an input")
  end
end)

test("pooling gives the places of its maxima", function(t)
  local x = pg.tensor { { { { 1, 5, 2, 0 }, { 3, 4, 8, 1 } } } }
  local y, at = x:max_pool2d(2, { return_indices = true })
  t.equal(y, { { { { 5, 8 } } } })
  t.equal(at, { { { { 1, 6 } } } })
  t.ok(at.dtype == "int64")
  local _, all = pg.adaptive_max_pool2d { x, size = 1, return_indices = true }
  t.equal(all, { { { { 6 } } } })
  t.equal(x:max_pool2d(2, { return_indices = false }), { { { { 5, 8 } } } })
  t.raises(function() x:max_pool2d(2, { return_indices = 1 }) end, "true or false")
end)

test("interpolate: modes, sizes, mistakes", function(t)
  local x = image(1, 1, 2, 2)
  t.equal(x:interpolate { scale_factor = 2 },
          { { { { 0, 0, 1, 1 }, { 0, 0, 1, 1 }, { 2, 2, 3, 3 }, { 2, 2, 3, 3 } } } })
  t.equal(x:interpolate { size = 3, mode = "bilinear", align_corners = true },
          { { { { 0, 0.5, 1 }, { 1, 1.5, 2 }, { 2, 2.5, 3 } } } })
  t.equal(image(1, 1, 4):interpolate { size = 2, mode = "area" }, { { { 0.5, 2.5 } } })
  local up = nn.Upsample { scale_factor = 2, mode = "bilinear" }
  t.ok(up(x:to "bfloat16").dtype == "bfloat16")
  t.raises(function() x:interpolate { size = 3, scale_factor = 2 } end, "either")
  t.raises(function() x:interpolate { size = 3, mode = "bilinaer" } end, "did you mean \"bilinear\"")
  t.raises(function() x:interpolate { size = 3, mode = "linear" } end, "1 axes")
  t.raises(function() x:interpolate { size = 0 } end, "from 1")
  t.raises(function() x:interpolate { size = 3, align_corners = true } end, "no align_corners")
end)

test("interpolate: both axes at once are one after the other, whatever the call looks like", function(t)
  local modes = { nearest = "nearest", bilinear = "linear", bicubic = "cubic" }
  local function agrees(x, o, slack)
    local y, z, corners = x:interpolate(o), x, o.align_corners or false
    local size, factor = o.size, o.scale_factor
    for i = 1, 2 do
      local n = type(size) == "table" and size[i] or size
      local by = type(factor) == "table" and factor[i] or factor
      local again = by and math.floor(x:size(i + 2) * by)
      local scale = (by and not o.recompute_scale_factor) and 1 / by or 0
      z = pg.resample { z, axis = i + 2, size = n or again, mode = modes[o.mode or "nearest"], scale = scale,
                        align_corners = corners }
    end
    close(t, y, z, slack or 2e-6)
    close(t, pg.interpolate { x, size = o.size, scale_factor = o.scale_factor, mode = o.mode,
                              align_corners = o.align_corners, recompute_scale_factor = o.recompute_scale_factor },
          y, 0)
  end
  local wide = pg.randn { 2, 3, 21, 37 }
  for _, x in ipairs { wide, wide:permute(1, 4, 2, 3):contiguous():permute(1, 3, 4, 2), wide:transpose(3, 4),
                       wide[{ {}, {}, { 3, 17 }, { 2, 30 } }], pg.randn { 1, 1, 2, 3 } } do
    for mode in pairs(modes) do
      agrees(x, { size = 40, mode = mode })
      agrees(x, { size = { 50, 9 }, mode = mode })
      agrees(x, { scale_factor = 1.7, mode = mode })
      agrees(x, { scale_factor = { 0.6, 2 }, mode = mode, recompute_scale_factor = true })
      if mode ~= "nearest" then agrees(x, { size = { 7, 80 }, mode = mode, align_corners = true }) end
    end
    agrees(x, { scale_factor = 2 })
    agrees(x:to "bfloat16", { size = 30, mode = "bilinear" }, 0.05)
    agrees(x:to "float64", { size = 30, mode = "bicubic" }, 1e-12)
  end
  t.raises(function() wide:interpolate { size = 4, mode = "bilinear", corners = true } end, "unknown option")
  t.raises(function() wide:interpolate { size = 4.5 } end, "whole numbers")
  t.raises(function() wide:interpolate { size = { 4 } } end, "one number or 2")
  t.raises(function() wide:interpolate { scale_factor = 0.01 } end, "from 1")
  t.raises(function() wide:interpolate { scale_factor = -2 } end, "positive")
  t.raises(function() wide:interpolate({ size = 4 }, 1) end)
  t.raises(function() pg.interpolate(1, { size = 4 }) end, "tensor")
end)

test("columns and images are transposes of each other", function(t)
  local o = { kernel = { 2, 3 }, stride = { 2, 1 }, padding = { 1, 0 }, dilation = { 1, 2 } }
  local x = pg.randn { { 2, 3, 5, 6 }, dtype = "float64", requires_grad = true }
  local columns = x:im2col(o)
  local c = pg.randn { columns.shape, dtype = "float64" }
  local back = c:col2im { size = { 5, 6 }, kernel = o.kernel, stride = o.stride, padding = o.padding,
                          dilation = o.dilation }
  close(t, (columns * c):sum(), (x * back):sum(), 1e-10)
  close(t, pg.grad((columns * c):sum(), { x }), back, 1e-12)
  t.ok(nn.Fold { size = { 4, 4 }, kernel = 2, stride = 2 }(nn.Unfold { kernel = 2, stride = 2 }(image(1, 2, 4, 4)))
    :allclose(image(1, 2, 4, 4)))
  t.raises(function() x:im2col { kernel = 9 } end, "larger than axis 3")
  t.raises(function() c:col2im { size = { 4, 4 }, kernel = 2 } end, "expected")
end)

test("pixels and channels change places", function(t)
  local x = image(2, 8, 3, 2)
  t.ok(x:pixel_shuffle(2):has_shape { 2, 2, 6, 4 })
  close(t, nn.PixelUnshuffle { 2 }(nn.PixelShuffle { 2 }(x)), x, 0)
  close(t, x:channel_shuffle(4):channel_shuffle(2), x, 0)
  t.raises(function() x:pixel_shuffle(3) end, "no multiple")
  t.raises(function() x:pixel_unshuffle(2) end, "multiples of 2")
end)

test("padding layers", function(t)
  local x = image(1, 1, 2, 3)
  t.equal(nn.ZeroPad2d { { 1, 0, 0, 1 } }(x), { { { { 0, 0, 1, 2 }, { 0, 3, 4, 5 }, { 0, 0, 0, 0 } } } })
  t.equal(nn.ReflectionPad1d { 1 }(x:squeeze(1)), { { { 1, 0, 1, 2, 1 }, { 4, 3, 4, 5, 4 } } })
  t.equal(nn.ConstantPad1d { 1, 7 }(image(1, 1, 1)), { { { 7, 0, 7 } } })
  t.equal(nn.ReplicationPad2d { 1 }(image(1, 1, 1, 1)):sum(), 0)
  t.raises(function() nn.ZeroPad2d { 1 }(x[1][1]) end, "4 axes")
  t.raises(function() nn.ZeroPad2d { { 1, 2 } }(x) end, "one number or 4")
end)

test("sampling at the identity's grid gives the image back", function(t)
  local x = pg.randn { 2, 3, 4, 5 }
  local identity = pg.tensor { { { 1, 0, 0 }, { 0, 1, 0 } } }:expand { 2, 2, 3 }
  for _, corners in ipairs { true, false } do
    local grid = pg.affine_grid(identity, { 2, 3, 4, 5 }, { align_corners = corners })
    close(t, x:grid_sample(grid, { align_corners = corners }), x, 1e-5)
  end
  t.raises(function() x:grid_sample(pg.zeros { 1, 2, 2, 2 }) end, "expected")
end)

test("sampling finds its pixels whatever the dtype: positions of large images are no 16-bit numbers", function(t)
  local x = (pg.arange(80 * 80):to("float32") / 6400):reshape(1, 1, 80, 80)
  local grid = pg.affine_grid(pg.tensor { { { 1, 0, 0 }, { 0, 1, 0 } } }, { 1, 1, 80, 80 }, { align_corners = true })
  for dtype, tolerance in pairs { float16 = 0.02, bfloat16 = 0.1 } do
    local low = x:to(dtype)
    local y = low:grid_sample(grid:to(dtype), { align_corners = true })
    t.ok(y.dtype == dtype)
    close(t, y:to("float32"), x, tolerance)
  end
  t.equal(x:grid_sample(grid * (0 / 0), { mode = "nearest" }):abs():max():item(), 0) -- nowhere is outside
end)

test("volumes are sampled at (x, y, z)", function(t)
  local x = pg.randn({ 2, 3, 3, 4, 5 }, { dtype = "float64" })
  local function places(n) return pg.linspace(-1, 1, n, { dtype = "float64" }) end
  local shape = { 2, 3, 4, 5 }
  local grid = pg.stack({ places(5):reshape(1, 1, 1, 5):expand(shape), places(4):reshape(1, 1, 4, 1):expand(shape),
                          places(3):reshape(1, 3, 1, 1):expand(shape) }, -1)
  for _, mode in ipairs { "bilinear", "nearest" } do
    close(t, x:grid_sample(grid, { mode = mode, align_corners = true }), x, 1e-12)
  end
  t.ok(pg.gradcheck(function(v, g) return v:grid_sample(g) end,
                    { x[{ { 1, 1 } }]:clone():requires_grad_(), (grid[{ { 1, 1 } }] * 0.73 + 0.01):requires_grad_() }))
  t.raises(function() x:grid_sample(grid, { mode = "bicubic" }) end, "one for images")
end)

test("lp_pool and local_response_norm follow their definitions", function(t)
  local x = pg.tensor { { { 3, 4, 0, 2 } } }
  t.equal(x:lp_pool1d(2, 2), { { { 5, 2 } } })
  local y = pg.ones { 1, 3, 2 }
  close(t, y:local_response_norm { 3, alpha = 3, beta = 1, k = 0 }, pg.tensor { { { 0.5, 0.5 }, { 1 / 3, 1 / 3 },
    { 0.5, 0.5 } } })
  t.ok(nn.LPPool2d { 2, 2 }(pg.ones { 1, 1, 4, 4 }):has_shape { 1, 1, 2, 2 })
  t.ok(nn.LocalResponseNorm { 2 }(y):has_shape { 1, 3, 2 })
end)
