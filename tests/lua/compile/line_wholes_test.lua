-- SPDX-License-Identifier: Apache-2.0
-- Compiled functions with softmax, log_softmax, their gradients and layer_norm among what is elementwise, on the
-- device in force: the bits of eager code, and one kernel where the device writes one for them.

local here = debug.getinfo(1, "S").source:match("^@(.*)lua/compile/[^/]*$") or "../../"
package.path = here .. "?.lua;" .. package.path

local pg = require "perigee"
local compare = require "compared"

local INF, NAN = math.huge, 0 / 0
local GENERATES = pg.device():find "^cuda" ~= nil
local FLOATS = { "float32", "bfloat16", "float16", "float64" }
-- Of whole packets and not, of less than a warp's elements and more, few lines and many, and lines that the kernel of
-- layer_norm has in registers. A device that compiles sources does so once for shapes that are alike.
local SHAPES = { { 5, 7 }, { 3, 64 }, { 2, 3, 130 }, { 300, 33 }, { 6, 1024 }, { 70, 1200 }, { 9, 512 } }

local function name_of(dtype, shape) return dtype .. " " .. table.concat(shape, "x") end
local function one_kernel(step)
  local s = step:stats()
  assert(s.hits > 0, step:explain())
  if GENERATES then assert(s.kernels == 1, ("%d kernels, not one\n%s"):format(s.kernels, step:explain())) end
end

test("softmax and norms of what is made, and of what comes from outside", function(t)
  t.uncompiled()
  for k, dtype in ipairs(FLOATS) do
    for i, shape in ipairs(SHAPES) do
      if k <= 2 or i % 2 == 0 then
        local n = shape[#shape]
        one_kernel(compare(name_of(dtype, shape), function()
          return { pg.randn(shape):to(dtype), pg.randn(shape):to(dtype), pg.randn({ n }):to(dtype), pg.randn { n } }
        end, function(call, x, y, w, b)
          local s, plain = x * (0.5 * call) + y, pg.layer_norm(x, { n })
          local normed = pg.layer_norm(s, { n }, w, dtype == "float64" and w or b, 1e-5 * call)
          return s:softmax(-1) * y, (s:log_softmax(-1) * y):sum(-1), normed:relu(), plain * 2,
                 y:softmax(-1) + 1
        end))
      end
    end
  end
end)

test("gradients of softmax and log_softmax, of what is made and of what comes from outside", function(t)
  t.uncompiled()
  for k, dtype in ipairs(FLOATS) do
    for i, shape in ipairs(SHAPES) do
      if (k + i) % 2 == 0 then
        local function make()
          return { pg.randn(shape):to(dtype), pg.randn(shape):to(dtype), pg.randn(shape):to(dtype) }
        end
        one_kernel(compare(name_of(dtype, shape), make, function(call, x, y, dy)
          local p, scaled = (x * 0.5):softmax(-1), dy * call
          return pg.softmax_grad(p, scaled, { axis = -1 }) * 0.5, -- both are made here
                 pg.softmax_grad(y, scaled, { axis = -1 }), pg.softmax_grad(p, y, { axis = -1 }) + x
        end))
        one_kernel(compare(name_of(dtype, shape) .. " log", make, function(call, x, y, dy)
          return pg.log_softmax_grad(y, dy, { axis = -1 }):sum(-1), -- none is
                 pg.log_softmax_grad(x:log_softmax(-1), dy * call, { axis = -1 }) * y
        end))
      end
    end
  end
end)

test("gradients of attention that is written out, and of a softmax by two ways", function(t)
  t.uncompiled()
  for _, dtype in ipairs { "float32", "bfloat16" } do
    local step = compare(dtype, function()
      local x = pg.randn({ 4, 20, 48 }):to(dtype)
      x.requires_grad = true
      return { x, pg.randn({ 4, 20, 48 }):to(dtype), (pg.rand { 20, 48 } - 0.5):to(dtype) }
    end, function(_, x, y, mask)
      x.grad = nil
      local p = (x * 0.125 + mask):softmax(-1)
      local loss = (p * y):sum() + (p:square() * 2):mean() + ((x * 3):log_softmax(-1) * y):mean()
      loss:backward()
      return loss:detach(), x.grad
    end)
    t.ok(step:stats().hits > 0)
    if GENERATES then t.ok(step:explain():find("softmax_grad mul", 1, true), step:explain()) end
  end
end)

test("one behind the other, with numbers of lines between them", function(t)
  t.uncompiled()
  for _, dtype in ipairs { "float32", "bfloat16" } do
    for _, shape in ipairs { { 60, 96 }, { 4, 5, 6, 11 } } do
      local last, dims = { shape[#shape] }, { shape[#shape - 1], shape[#shape] }
      one_kernel(compare(name_of(dtype, shape), function()
        return { pg.randn(shape):to(dtype), pg.randn(last):to(dtype) }
      end, function(_, x, w)
        local h = pg.layer_norm(x:tanh(), last, w)
        local p = (h * 0.125):softmax(-1)
        local top = p:amax { axis = -1, keepdim = true }
        return p - top, top:log(), p:argmax(-1), pg.layer_norm(p * h, last):softmax(-1)
      end))
      if #shape > 2 then
        one_kernel(compare(name_of(dtype, shape) .. " of two axes", function()
          return { pg.randn(shape):to(dtype), pg.randn(dims):to(dtype) }
        end, function(_, x, w) return pg.layer_norm(x:tanh(), dims, w, w) * 2, x:tanh() end))
      end
    end
  end
end)

test("operands that do not begin at a packet", function(t)
  t.uncompiled()
  for _, dtype in ipairs(FLOATS) do
    for first = 1, 2 do
      local step = compare(dtype .. " from " .. first, function()
        local long, vector = pg.randn({ 4 * 256 + 3 }):to(dtype), pg.randn({ 256 + 3 }):to(dtype)
        return { long, vector }
      end, function(i, long, vector)
        local x, w = long:narrow(1, first, 1024):reshape { 4, 256 }, vector:narrow(1, 3 - first, 256)
        local dy = long:narrow(1, 3 - first, 1024):reshape { 4, 256 }
        return x:softmax(-1) * i, pg.softmax_grad(x, dy, { axis = -1 }) * i, pg.softmax_grad(x * i, dy, { axis = -1 }),
               pg.log_softmax_grad(x, dy * i, { axis = -1 }), pg.layer_norm(x, { 256 }, w, w) * i,
               pg.layer_norm(x * i, { 256 }, w) + 1, x:log_softmax(-1):exp()
      end)
      t.ok(step:stats().hits > 0)
    end
  end
end)

test("what training keeps of a norm, and gradients", function(t)
  t.uncompiled()
  for _, dtype in ipairs { "float32", "bfloat16" } do
    local step = compare("gradients in " .. dtype, function()
      local w = pg.randn { 96 }:to(dtype)
      w.requires_grad = true
      return { pg.randn({ 70, 96 }):to(dtype), w, pg.randn({ 70, 96 }):to(dtype) }
    end, function(_, x, w, y)
      w.grad = nil
      local h = pg.layer_norm(x * w, { 96 }, w)
      local p = (h * 0.5):softmax(-1)
      local loss = ((p + 1):log() * y):sum(-1):mean() + (h - y):square():mean()
      loss:backward()
      return loss:detach(), w.grad
    end)
    t.ok(step:stats().hits > 0)
    if GENERATES then t.ok(step:explain():find("mul layer_norm mul softmax", 1, true), step:explain()) end
  end
end)

test("numbers that are no numbers, and writing over what is read", function(t)
  t.uncompiled()
  for _, dtype in ipairs(FLOATS) do
    compare("special " .. dtype, function()
      local x = pg.randn({ 6, 100 }):to(dtype)
      x[{ 1, { 1, 5 } }] = pg.tensor({ INF, -INF, NAN, -0.0, 0 }):to(dtype)
      x[{ 2, { 1, 2 } }] = pg.tensor({ INF, INF }):to(dtype)
      x[{ 3, {} }] = -INF
      return { x }
    end, function(_, x)
      local y = x * 2
      return y:softmax(-1) * 1, y:log_softmax(-1):exp(), pg.layer_norm(y, { 100 }) + 1,
             pg.softmax_grad(y, x * 3, { axis = -1 }), pg.log_softmax_grad(x, y, { axis = -1 })
    end)
    compare("in place " .. dtype, function()
      return { pg.randn({ 30, 50 }):to(dtype), pg.randn({ 30, 50 }):to(dtype) }
    end, function(_, x, y)
      x:mul_(0.5)
      local p = x:softmax(-1)
      x:add_(p)
      y:copy_(pg.layer_norm(y, { 50 }) * p)
      y:copy_(pg.softmax_grad(p, y * 2, { axis = -1 }))
      return y:amax { axis = -1 }, x:mean()
    end)
  end
end)
