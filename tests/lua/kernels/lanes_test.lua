-- SPDX-License-Identifier: Apache-2.0
-- What goes by vectors where there is room for them gives what single elements give: averages of windows, blocks that
-- are joined, rows that are padded. Sizes lie around those of vectors. Whole numbers keep float32 and float64, which
-- goes another way, alike.

local pg = require "perigee"

local function same(a, b) return pg.equal(a:to("float64"), b:to("float64")) end
local function whole(shape) return pg.randint(-99, 100, shape):to("float64") end

test("averages of windows are the same of float32 and float64", function(t)
  for _, width in ipairs { 7, 8, 15, 16, 17, 24, 35, 64 } do
    for _, w in ipairs { { 2, 2, 0 }, { 2, 2, 1 }, { 3, 1, 1 }, { 3, 2, 1 }, { 4, 4, 0 }, { 1, 2, 0 }, { 5, 3, 2 } } do
      for _, pad in ipairs { true, false } do
        local o = { kernel = w[1], stride = w[2], padding = w[3], count_include_pad = pad }
        local wide = whole { 1, 2, 8, width }
        local x, z = wide:to("float32"):requires_grad_(), wide:clone():requires_grad_()
        local y, q = pg.avg_pool2d(x, o), pg.avg_pool2d(z, o)
        t.equal(same(y, q:to("float32")), true)
        local dy = whole(y.shape) * 3600 -- which every number of elements here divides
        y:backward(dy:to("float32"))
        q:backward(dy)
        t.equal(same(x.grad, z.grad), true)
      end
    end
  end
end)

test("windows that tile a volume, and a gradient of -0", function(t)
  local wide = whole { 1, 2, 4, 6, 18 }
  local x, z = wide:to("float32"):requires_grad_(), wide:clone():requires_grad_()
  local y, q = pg.avg_pool3d(x, { kernel = 2 }), pg.avg_pool3d(z, { kernel = 2 })
  t.equal(same(y, q:to("float32")), true)
  local dy = whole(y.shape)
  y:backward(dy:to("float32"))
  q:backward(dy)
  t.equal(same(x.grad, z.grad), true)
  local line = pg.zeros { 1, 1, 16 }:requires_grad_()
  pg.avg_pool1d(line, { kernel = 2 }):backward(pg.full({ 1, 1, 8 }, -0.0))
  t.equal((1 / line.grad):amin():item(), math.huge) -- a sum that begins with 0
end)

test("blocks of every length are joined", function(t)
  for _, n in ipairs { 1, 7, 31, 32, 33, 63, 64, 65, 255, 256, 257, 1023, 1024, 1025 } do
    local a, b = pg.randint(0, 100, { 3, n }):to("int8"), pg.randint(0, 100, { 3, n }):to("int8")
    local joined, laid = pg.stack({ a, b }, 2), pg.cat({ a, b:narrow(2, 1, 1) }, 2)
    t.equal(same(joined:select(2, 1), a) and same(joined:select(2, 2), b), true)
    t.equal(same(laid:narrow(2, 1, n), a) and same(laid:select(2, n + 1), b:select(2, 1)), true)
  end
end)

test("rows are padded from where each element comes", function(t)
  local function index(mode, i, n)
    if mode == "reflect" then return n - 1 - math.abs(n - 1 - math.abs(i)) end
    return mode == "replicate" and math.max(0, math.min(i, n - 1)) or i % n
  end
  local x = whole { 2, 5, 6 }
  for _, mode in ipairs { "reflect", "replicate", "circular" } do
    for _, laid in ipairs { x, x:transpose(2, 3) } do
      local h, w = laid:size(2), laid:size(3)
      local y = pg.pad(laid, { 3, 2, 1, 4 }, { mode = mode })
      for _, at in ipairs { { 0, 0 }, { 0, w + 4 }, { h + 4, 2 }, { h + 4, w + 4 }, { 2, 4 } } do
        local from = laid[{ 2, index(mode, at[1] - 1, h) + 1, index(mode, at[2] - 3, w) + 1 }]
        t.equal(y[{ 2, at[1] + 1, at[2] + 1 }]:item(), from:item())
      end
    end
  end
end)

test("repeat_interleave is the same by an axis, by options and by a list of counts", function(t)
  local x = whole { 2, 3, 4 }
  for axis = 1, 3 do
    local by_axis = x:repeat_interleave(3, axis)
    t.equal(same(by_axis, pg.repeat_interleave { x, count = 3, axis = axis }), true)
    local counts = pg.full({ x:size(axis) }, 3, { dtype = "int64" })
    t.equal(same(by_axis, x:repeat_interleave(counts, axis)), true)
    t.equal(x:repeat_interleave(0, axis):numel(), 0)
  end
  t.equal(same(x:repeat_interleave(2), x:reshape(-1):repeat_interleave(2, 1)), true)
  t.raises(function() x:repeat_interleave(-1, 1) end, "whole numbers from 0")
  t.raises(function() x:repeat_interleave(2, 1.5) end, "repeat_interleave")
end)
