-- SPDX-License-Identifier: Apache-2.0
-- Compiled functions that reduce columns, and lines that are long or cut in parts, with what is elementwise around
-- them, on the device in force: the bits of eager code, and one kernel where the device writes one for them.
-- PERIGEE_LINES says how many random functions; PERIGEE_LINES_ONE runs that one.

local here = debug.getinfo(1, "S").source:match("^@(.*)lua/compile/[^/]*$") or "../../"
package.path = here .. "?.lua;" .. package.path

local pg = require "perigee"
local compare = require "compared"
local generator = require("draws").generator -- not of numbers that are compared

local GENERATES = pg.device():find "^cuda" ~= nil
local FLOATS = { "float32", "bfloat16", "float16", "float64" }

local function kernels(step, count)
  local s = step:stats()
  assert(s.hits > 0, step:explain())
  if GENERATES then assert(s.kernels == count, ("%d kernels, not %d\n%s"):format(s.kernels, count, step:explain())) end
end
local function name_of(dtype, shape) return dtype .. " " .. table.concat(shape, "x") end
local function leading(shape)
  local axes = {}
  for i = 1, #shape - 1 do axes[i] = i end
  return axes
end

-- Few columns and many, rows that are cut in parts, rows of several axes.
test("columns", function(t)
  t.uncompiled()
  for k, dtype in ipairs(FLOATS) do
    for i, shape in ipairs { { 70, 129 }, { 2600, 20 }, { 5, 40, 50 }, { 3, 9000 }, { 33, 64 } } do
      if k <= 2 or i <= 2 then
        local axes = leading(shape)
        kernels(compare(name_of(dtype, shape), function()
          return { pg.randn(shape):to(dtype), pg.randn(shape):to(dtype), pg.randn({ shape[#shape] }):to(dtype) }
        end, function(call, x, y, w)
          local plain, z = x:mean(axes), (x * call + y * w):abs()
          return z:sum(axes), z:amax { axis = axes } * w + w, (z + 1):var { axis = axes, correction = 1 }:sqrt(), z,
                 plain, z:logsumexp(axes), z:norm(2, axes)
        end), 1)
      end
    end
  end
end)

test("an axis in the middle, and results of other dtypes", function(t)
  t.uncompiled()
  kernels(compare("the middle", function() return { pg.randn { 6, 50, 33 }, pg.randn { 6, 50, 33 } } end,
                  function(_, x, y)
    local z = (x * y + 1):tanh()
    return z:sum(2), z:argmax(2), z:gt(0):any(2), z:amin { axis = 2 }, z:gt(-1):all(2)
  end), 1)
  kernels(compare("whole numbers", function()
    return { pg.randint(-9, 9, { 400, 30 }, { dtype = "int32" }), pg.randint(-9, 9, { 400, 30 }, { dtype = "int32" }) }
  end, function(i, x, y)
    local z = x * y + i
    return z:sum(1), z:amax { axis = 1 }, z:argmin(1), z:prod(1), z
  end), 1)
end)

test("an operand that was stretched gets its gradient there", function(t)
  t.uncompiled()
  for _, dtype in ipairs { "float32", "bfloat16" } do
    local step = compare("gradient in " .. dtype, function()
      local w, b = pg.randn({ 30 }):to(dtype), pg.randn({ 30 }):to(dtype)
      w.requires_grad, b.requires_grad = true, true
      return { pg.randn({ 600, 30 }):to(dtype), w, b }
    end, function(_, x, w, b)
      w.grad, b.grad = nil, nil
      local loss = (x * w + b):tanh():square():mean()
      loss:backward()
      return loss:detach(), w.grad, b.grad
    end)
    t.ok(step:stats().hits > 0)
    if GENERATES then t.ok(step:explain():find "kernel of cuda:[^\n]* sum_like", step:explain()) end
  end
end)

test("lines that are long, or cut in parts, and what is made of their numbers", function(t)
  t.uncompiled()
  for k, dtype in ipairs(FLOATS) do
    for i, shape in ipairs { { 200000 }, { 3, 70001 }, { 1, 65537 }, { 520, dtype:find "16" and 8201 or 4203 } } do
      if k <= 2 or i == 2 then
        local function make() return { pg.randn(shape):to(dtype), pg.randn(shape):to(dtype) } end
        kernels(compare(name_of(dtype, shape), make, function(_, x, y)
          local z = (x * y):relu()
          return z:sum(-1), z:mean(-1) * 2 + 1, z:amax { axis = -1 }, z:argmax(-1), z:var { axis = -1 }, z
        end), 1)
      end
    end
    kernels(compare("mean of squares in " .. dtype, function()
      return { pg.randn({ 130, 1001 }):to(dtype), pg.randn({ 130, 1001 }):to(dtype) }
    end, function(_, x, y) return (x - y):square():mean():sqrt() end), 1)
  end
end)

test("numbers that are known at the end go to other kernels", function(t)
  t.uncompiled()
  local step = compare("and back", function() return { pg.randn { 3, 50001 }, pg.randn { 3, 50001 } } end,
                       function(_, x, y)
    local z = (x * y):tanh()
    return z - z:mean { axis = -1, keepdim = true }, z * z:amax { axis = -2, keepdim = true }
  end)
  if GENERATES then t.ok(step:stats().kernels >= 2, step:explain()) end
end)

test("what is written over while columns and long lines are read", function(t)
  t.uncompiled()
  for _, dtype in ipairs(FLOATS) do
    for _, shape in ipairs { { 300, 25 }, { 2, 40000 } } do
      local axis = shape[1] == 2 and 2 or 1
      compare(name_of(dtype, shape), function()
        local one = { shape[1], shape[2] }
        one[axis] = 1
        return { pg.randn(shape):to(dtype), pg.randn(shape):to(dtype), pg.randn(one):to(dtype) }
      end, function(_, x, y, r)
        local before = (x * 1.5):sum(axis, true)
        x:mul_(0.5):sub_(y * r)
        y:sub_(x)
        r:mul_(0.5):add_((y * 0.01):sum(axis, true))
        return before, y:amax { axis = axis }, x:mean()
      end)
    end
  end
end)

test("numbers that are no numbers", function(t)
  t.uncompiled()
  for _, dtype in ipairs { "float32", "float16" } do
    compare(dtype, function()
      local x = pg.randn({ 200, 5 }):to(dtype)
      x[{ { 1, 4 }, 1 }] = pg.tensor({ 1 / 0, -1 / 0, 0 / 0, -0.0 }):to(dtype)
      x[{ {}, 2 }] = -1 / 0
      x[{ {}, 3 }] = -0.0
      return { x }
    end, function(_, x)
      local y = x * 2
      return y:amax { axis = 1 } + 0, y:sum(1), y:logsumexp(1), y:nansum(1), y:argmax(1), y:argmin(1), y:ne(0):any(1), y
    end)
  end
end)

-- ---- random functions ----

local UNARY = { "relu", "tanh", "exp", "neg", "abs", "square", "sigmoid", "silu" }
local BINARY = { "add", "sub", "mul", "maximum", "minimum" }
local REDUCE = { "sum", "mean", "amax", "amin", "logsumexp", "prod", "norm", "argmax" }

local function random_function(seed)
  local draw = generator(seed)
  local dtype = FLOATS[draw(4)]
  local shapes = { { 330, 20 }, { 40, 500 }, { 3, 17, 60 }, { 2, 30000 }, { 70000 }, { 26, 26 } }
  local shape = shapes[draw(#shapes)]
  local axis, keep = draw(2) == 1 and 1 or #shape, draw(3) > 1
  local steps, outs = {}, {}
  for k = 1, 4 + draw(8) do steps[k] = { draw(9), draw(64), draw(64), draw(64) } end
  for k = 1, 1 + draw(3) do outs[k] = draw(64) end
  local function make()
    return { pg.randn(shape):to(dtype), pg.randn(shape):to(dtype), pg.randn({ shape[#shape] }):to(dtype) }
  end
  local function fn(i, x, y, w)
    local full, numbers = { x, y }, {}
    local function pick(list, n) return list[n % #list + 1] end
    for _, s in ipairs(steps) do
      local kind, a, b = s[1], pick(full, s[2]), pick(full, s[3])
      if kind <= 2 then
        full[#full + 1] = a[UNARY[s[4] % #UNARY + 1]](a)
      elseif kind == 3 then
        full[#full + 1] = a[BINARY[s[4] % #BINARY + 1]](a, b)
      elseif kind == 4 then
        full[#full + 1] = (s[4] % 2 == 0 and a * w or a * (0.25 * i)) + 0.5
      elseif kind <= 7 then
        local op = REDUCE[s[4] % #REDUCE + 1]
        local made = pg[op](a, { axis = axis, keepdim = keep })
        numbers[#numbers + 1] = op == "argmax" and made:to(dtype) or made
      elseif #numbers > 0 then
        local r, q = pick(numbers, s[3]), pick(numbers, s[4])
        if keep and s[4] % 3 == 0 then
          full[#full + 1] = a - r
        elseif s[4] % 5 == 1 then
          full[1]:mul_(0.9)
        else
          numbers[#numbers + 1] = (r + q):tanh()
        end
      end
    end
    local results = { full[#full], numbers[#numbers] or x:sum() }
    for k, n in ipairs(outs) do results[k + 2] = pick(n % 2 == 0 and #numbers > 0 and numbers or full, n) end
    return unpack(results)
  end
  return make, fn
end

test("random functions", function(t)
  t.uncompiled()
  local only = tonumber(os.getenv "PERIGEE_LINES_ONE")
  local joined = 0
  for seed = only or 1, only or tonumber(os.getenv "PERIGEE_LINES") or 12 do
    local step = compare("function " .. seed, random_function(seed))
    for _, r in ipairs(step:stats().regions) do
      for _, name in ipairs { "sum", "mean", "amax", "logsumexp", "prod", "norm", "argmax" } do
        if r.operators:find(name, 1, true) then joined = joined + 1 break end
      end
    end
  end
  t.ok(only or not GENERATES or joined > 0)
end)
