-- SPDX-License-Identifier: Apache-2.0
-- Convolutions whose channels fill the blocks of oneDNN's layouts, with planes that do not fill a vector: the copies to
-- and from those layouts, in all float dtypes, against float64. And the ways that large ones take.

local pg = require "perigee"

local shapes = {
  -- n, channels in, out, height, width, kernel, options
  { 2, 16, 32, 7, 9, 3, { padding = 1 } },
  { 3, 32, 16, 5, 5, 1, {} },
  { 1, 8, 24, 33, 17, 3, { stride = 2, padding = 1 } }, -- longer than what is converted at a time
  { 2, 3, 16, 11, 6, 3, {} }, -- too few to be blocked
  { 2, 12, 20, 6, 6, 3, {} }, -- blocks that are not filled
  { 2, 16, 32, 6, 7, 3, { groups = 2, padding = 1 } },
  { 3, 16, 32, 30, 29, 3, { padding = 1 } }, -- enough tiles for Winograd's way
  -- Batches of which each thread takes whole images: by that way, directly, in groups, with few channels.
  { 4, 16, 32, 96, 95, 3, { padding = 1 } },
  { 8, 64, 16, 64, 48, 1, {} },
  { 40, 16, 16, 48, 45, 3, { padding = 1 } }, -- more parts than weight gradients are kept
  { 4, 32, 32, 96, 90, 3, { groups = 2, padding = 1 } },
  { 6, 3, 24, 201, 120, 7, { stride = 2, padding = 3 } },
  -- Winograd's way with AVX2: blocks of eight channels, tiles that go beyond the image, any padding.
  { 2, 24, 40, 29, 31, 3, { padding = 1 } },
  { 4, 40, 24, 20, 17, 3, {} },
  { 2, 32, 48, 14, 15, 3, { padding = 2 } },
  { 2, 48, 32, 13, 10, 3, { padding = 3 } },
  { 2, 32, 32, 21, 18, 3, { padding = { 1, 0 } } },
  { 16, 64, 72, 7, 7, 3, { padding = 1 } },
  { 9, 128, 128, 4, 6, 3, { padding = 1 } }, -- by tiles of 2x2 results
}
local tolerance = { float32 = 1e-4, float16 = 4e-3, bfloat16 = 3e-2 }

local function run(dtype, tensors, options, format)
  local x, w, b, dy = unpack(tensors)
  x, w, b = x:to(dtype), w:to(dtype), b:to(dtype)
  if format then x, dy = x:contiguous { memory_format = format }, dy:contiguous { memory_format = format } end
  for _, p in ipairs { x, w, b } do p.requires_grad = true end
  local y = pg.conv2d(x, w, b, options)
  return { y, pg.grad(y, { x, w, b }, { grad_outputs = dy:to(dtype) }) }
end

for i, s in ipairs(shapes) do
  test(("shape %d: result and gradients"):format(i), function(t)
    pg.manual_seed(i)
    local n, inputs, out, height, width, kernel, options = unpack(s)
    local products = n * inputs * out * height * width * kernel * kernel / (options.groups or 1)
    if pg.device():find "^sim" and products > 2e7 then t.skip("its plain loops would take minutes") end
    local function random(...) return pg.randn({ ... }):to("bfloat16"):to("float64") end -- the same in every dtype
    local tensors = { random(n, inputs, height, width), random(out, inputs / (options.groups or 1), kernel, kernel),
                      random(out) }
    tensors[4] = random(unpack(pg.conv2d(tensors[1], tensors[2], tensors[3], options).shape))
    local expected = run("float64", tensors, options)
    for dtype, within in pairs(tolerance) do
      for turn = 1, 4 do -- weights are packed when they are used again
        local format = turn == 4 and "channels_last" or nil
        for k, got in ipairs(run(dtype, tensors, options, format)) do
          t.equal(got.dtype, dtype)
          local off = (got:to("float64") - expected[k]):abs():max():item()
          t.ok(off <= within * expected[k]:abs():max():item(),
               ("%s %s, tensor %d is off by %g"):format(dtype, format or "", k, off))
        end
      end
    end
  end)
end

test("a weight that is used again is packed, and packed anew after a write", function(t)
  for _, dtype in ipairs { "float32", "bfloat16", "float16" } do
    pg.manual_seed(1)
    local x, w = pg.randn({ 2, 16, 8, 8 }, { dtype = dtype }), pg.randn({ 16, 16, 3, 3 }, { dtype = dtype })
    local first = pg.conv2d(x, w)
    for _ = 1, 3 do t.equal(pg.conv2d(x, w):totable(), first:totable()) end
    w:mul_(2)
    for _ = 1, 3 do t.equal(pg.conv2d(x, w):totable(), (first * 2):totable()) end
  end
end)

test("views of large images are taken as they lie, with gradients", function(t)
  for dtype, within in pairs(tolerance) do
    pg.manual_seed(4)
    local whole, w = pg.randn({ 3, 64, 25, 48 }, { dtype = dtype }), pg.randn({ 24, 32, 3, 3 }, { dtype = dtype })
    for i, x in ipairs { whole[{ {}, { 1, 64, 2 } }], whole:permute(1, 4, 3, 2)[{ {}, { 1, 32 } }] } do
      for _, v in ipairs { w, w:flip(3), pg.randn({ 32, 24, 3, 3 }, { dtype = dtype }):transpose(1, 2) } do
        local function convolve(a, b)
          a.requires_grad, b.requires_grad = true, true
          local y = pg.conv2d(a, b, nil, { padding = 1 })
          local n, o, rows, columns = unpack(y.shape)
          local dy = pg.linspace(-1, 1, n * o * rows * columns):to("bfloat16"):to(y.dtype)
          return { y, pg.grad(y, { a, b }, { grad_outputs = dy:reshape(n, o, columns, rows):transpose(3, 4) }) }
        end
        local got = convolve(x:detach(), v:detach())
        local expected = convolve(x:detach():contiguous():to("float64"), v:detach():contiguous():to("float64"))
        for k = 1, 3 do
          local off = (got[k]:to("float64") - expected[k]):abs():max():item()
          t.ok(off <= within * expected[k]:abs():max():item(),
               ("%s, view %d, tensor %d is off by %g"):format(dtype, i, k, off))
        end
      end
    end
  end
end)

test("views are taken as they lie", function(t)
  for _, dtype in ipairs { "float32", "bfloat16" } do
    pg.manual_seed(2)
    local x, w = pg.randn({ 2, 8, 8, 16 }, { dtype = dtype }), pg.randn({ 16, 16, 3, 3 }, { dtype = dtype })
    x = x:permute(1, 4, 2, 3)
    local expected = pg.conv2d(x:contiguous():to("float64"), w:to("float64"))
    local off = (pg.conv2d(x, w):to("float64") - expected):abs():max():item()
    t.ok(off <= tolerance[dtype] * expected:abs():max():item(), dtype .. " is off by " .. off)
    local narrow = pg.randn({ 2, 32, 8, 8 }, { dtype = dtype })[{ {}, { 1, 32, 2 } }]
    expected = pg.conv2d(narrow:contiguous():to("float64"), w:to("float64"))
    off = (pg.conv2d(narrow, w):to("float64") - expected):abs():max():item()
    t.ok(off <= tolerance[dtype] * expected:abs():max():item(), dtype .. " of a part is off by " .. off)
  end
end)

test("a transposed convolution of a large batch, with a bias", function(t)
  pg.manual_seed(3)
  local x, w, b = pg.randn { 6, 16, 60, 61 }, pg.randn { 16, 32, 3, 3 }, pg.randn { 32 }
  local expected = pg.conv_transpose2d(x:to("float64"), w:to("float64"), b:to("float64"), { padding = 1 })
  for dtype, within in pairs(tolerance) do
    local got = pg.conv_transpose2d(x:to(dtype), w:to(dtype), b:to(dtype), { padding = 1 })
    local off = (got:to("float64") - expected):abs():max():item()
    t.ok(off <= 4 * within * expected:abs():max():item(), ("%s is off by %g"):format(dtype, off))
  end
end)
