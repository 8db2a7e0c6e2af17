-- SPDX-License-Identifier: Apache-2.0
-- Compiled functions whose regions hold sums over the first axes, with what is elementwise around them. The bits are
-- those of eager code. PERIGEE_LINES says how many random functions; PERIGEE_LINES_ONE runs that one.

local here = debug.getinfo(1, "S").source:match("^@(.*)lua/compile/[^/]*$") or "../../"
package.path = here .. "?.lua;" .. package.path

local pg = require "perigee"
local _, fuses = require "fusing"()
local compare = require "compared"
local generator = require("draws").generator -- not of numbers that are compared

local FLOATS = { "float32", "bfloat16", "float16", "float64" }
-- Rows and columns that no tile divides, one strip and many, rows of several axes; columns for at least two threads.
local SHAPES = { { 700, 129 }, { 129, 1000 }, { 65, 4096 }, { 5, 40, 500 }, { 3, 70000 }, { 2000, 256 } }

local function with_threads(count, fn)
  local before = pg.config.get().threads
  pg.config.set { threads = count }
  local good, problem = pcall(fn)
  pg.config.set { threads = before }
  if not good then error(problem, 0) end
end

local function one_kernel(step, dtype)
  local s = step:stats()
  if not fuses then return assert(s.hits > 0, step:explain()) end
  if dtype:find "16" then return end -- there regions are wanted where they save more
  assert(s.kernels == 1, ("%d kernels\n%s"):format(s.kernels, step:explain()))
end

test("sums of columns and what they add up are one kernel", function(t)
  t.uncompiled()
  for threads = 1, 2 do
    with_threads(threads, function()
      for _, dtype in ipairs(FLOATS) do
        for _, shape in ipairs(SHAPES) do
          local name = dtype .. " " .. table.concat(shape, "x")
          local first = {}
          for i = 1, #shape - 1 do first[i] = i end
          local function make()
            return { pg.randn(shape):to(dtype), pg.randn(shape):to(dtype), pg.randn({ shape[#shape] }):to(dtype) }
          end
          one_kernel(compare(name .. " mean of squares", make, function(_, x, y)
            return (x - y):square():mean(first):sqrt()
          end), dtype)
          one_kernel(compare(name .. " several", make, function(i, x, y, w)
            local z = (x * i + y * w):abs()
            return z:sum(first), z:amax { axis = first }, (z + 1):amin { axis = first, keepdim = true } * w, z
          end), dtype)
        end
      end
    end)
  end
end)

test("an operand that was stretched gets its gradient there", function(t)
  t.uncompiled()
  local step = compare("gradient", function()
    local w, b = pg.randn { 300 }, pg.randn { 300 }
    w.requires_grad, b.requires_grad = true, true
    return { pg.randn { 600, 300 }, w, b }
  end, function(_, x, w, b)
    w.grad, b.grad = nil, nil
    local loss = (x * w + b):tanh():square():mean()
    loss:backward()
    return loss:detach(), w.grad, b.grad
  end)
  local explained = step:explain()
  if fuses then t.ok(explained:find "kernel of cpu:[^\n]* sum_like", explained) end
  t.ok(step:stats().hits > 0)
end)

test("what a sum of columns is needed for comes later", function(t)
  t.uncompiled()
  for _, keep in ipairs { true, false } do
    local step = compare("centred", function() return { pg.randn { 900, 200 } } end, function(_, x)
      local y = x * 2 + 1
      local centred = y - y:mean(1, keep)
      return centred, centred:square():sum(1)
    end)
    t.ok(not fuses or step:stats().kernels >= 2, step:explain())
  end
end)

test("results that lie where something else did", function(t)
  t.uncompiled()
  for threads = 1, 2 do
    with_threads(threads, function()
      compare("in place", function() return { pg.randn { 400, 600 }, pg.randn { 600 } } end, function(_, x, w)
        local s = (x * w):sum(1)
        x:mul_(0.5):add_(w)
        local after = x:square():sum(1)
        w:copy_(after + s)
        return s, x:amax { axis = 1 }
      end)
      compare("memory that dies", function() return { pg.randn { 400, 600 }, pg.randn { 600 } } end, function(_, x, w)
        local a = (w + 1):exp()
        local s = (x * a + x):sum(1)
        return (s * 2):tanh()
      end)
      compare("numbers over numbers", function() return { pg.randn { 64, 64 * 64 }, pg.randn { 64 * 64 } } end,
              function(_, x, w)
        local z = x * w
        w:mul_(0.5):add_(z:sum(1))
        return z:square():mean(1)
      end)
    end)
  end
end)

test("what is summed is written over by what comes behind", function(t)
  t.uncompiled()
  for threads = 1, 2 do
    with_threads(threads, function()
      local function make() return { pg.randn { 600, 1000 }, pg.randn { 600, 1000 }, pg.randn { 2, 1000 } } end
      one_kernel(compare("columns", make, function(_, x, y, w)
        local before = pg.sum_like(x, w[1])
        x:add_(y)
        return before
      end), "float32")
      one_kernel(compare("lines", make, function(_, x, y)
        local before = x:sum(-1)
        x:mul_(0.5):add_(y)
        return before
      end), "float32")
      one_kernel(compare("all", make, function(_, x, y)
        local before = x:sum()
        x:mul_(0.5):add_(y)
        return before
      end), "float32")
    end)
  end
end)

test("lines and columns of one tensor", function(t)
  t.uncompiled()
  compare("both", function() return { pg.randn { 512, 512 }, pg.randn { 512, 512 } } end, function(_, x, y)
    local z = x * y + 1
    return z:sum(1), z:sum(2), z:sum(), z:softmax(-1):sum(1), z
  end)
end)

test("no elements, one row, few columns", function(t)
  t.uncompiled()
  for _, shape in ipairs { { 0, 500 }, { 5, 0 }, { 1, 70000 }, { 70000, 1 }, { 30000, 5 }, { 9000, 8 } } do
    compare(table.concat(shape, "x"), function() return { pg.randn(shape) } end, function(_, x)
      return (x * 2 + 1):sum(1) * 2, (x + 1):square():mean(1, true)
    end)
  end
end)

-- ---- random functions ----

local UNARY = { "relu", "tanh", "exp", "neg", "abs", "square", "sigmoid", "silu" }
local BINARY = { "add", "sub", "mul", "maximum", "minimum" }
local REDUCE = {
  function(x, axes, keep) return x:sum(axes, keep) end,
  function(x, axes, keep) return x:mean(axes, keep) end,
  function(x, axes, keep) return x:amax { axis = axes, keepdim = keep } end,
  function(x, axes, keep) return x:amin { axis = axes, keepdim = keep } end,
  function(x, axes, keep) return x:var { axis = axes, keepdim = keep } end, -- has no columns
  function(x, _, keep) return x:sum(-1, keep) end,
}

local function random_function(seed)
  local draw = generator(seed)
  local dtype = FLOATS[draw(4)]
  local shape = SHAPES[draw(#SHAPES)]
  local axes, steps, outs = {}, {}, {}
  for i = 1, #shape - 1 do axes[i] = i end
  for k = 1, 4 + draw(10) do steps[k] = { draw(10), draw(64), draw(64), draw(64) } end
  for k = 1, 1 + draw(3) do outs[k] = draw(64) end
  local keep, threads = draw(2) == 1, draw(2)
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
      elseif kind <= 8 then
        numbers[#numbers + 1] = REDUCE[s[4] % #REDUCE + 1](a, axes, keep)
      elseif #numbers > 0 then
        local r, q = pick(numbers, s[3]), pick(numbers, s[4])
        if s[4] % 5 == 1 then
          full[1]:mul_(0.9)
        elseif s[4] % 5 == 2 and r:size(-1) == w:numel() then
          w:copy_(r:reshape { -1 })
        elseif s[4] % 5 == 3 and r:size(-1) == w:numel() then
          full[#full + 1] = a - r
        elseif r:numel() == q:numel() then
          numbers[#numbers + 1] = (r + q):tanh()
        end
      end
    end
    local results = { full[#full], numbers[#numbers] or x:sum(axes) }
    for k, n in ipairs(outs) do results[k + 2] = pick(n % 2 == 0 and #numbers > 0 and numbers or full, n) end
    return unpack(results)
  end
  return make, fn, threads
end

test("random functions with columns", function(t)
  t.uncompiled()
  local only = tonumber(os.getenv "PERIGEE_LINES_ONE")
  local joined, total = 0, 0
  for seed = only or 1, only or tonumber(os.getenv "PERIGEE_LINES") or 60 do
    local make, fn, threads = random_function(seed)
    local step
    with_threads(threads, function() step = compare("function " .. seed, make, fn, 3) end)
    for _, r in ipairs(step:stats().regions) do
      if r.operators:find "sum" or r.operators:find "mean" or r.operators:find "amax" then joined = joined + 1 end
    end
    total = total + 1
  end
  t.ok(only or not fuses or joined > total / 8, ("%d regions with columns in %d functions"):format(joined, total))
end)
