-- SPDX-License-Identifier: Apache-2.0
-- Compiled functions whose regions hold operators that work on lines: reductions, softmax, normalisation, with what is
-- elementwise around them. The bits are those of eager code. PERIGEE_LINES says how many random functions;
-- PERIGEE_LINES_ONE runs that one.

local here = debug.getinfo(1, "S").source:match("^@(.*)lua/compile/[^/]*$") or "../../"
package.path = here .. "?.lua;" .. package.path

local pg = require "perigee"
local _, fuses = require "fusing"()
local compare = require "compared"
local generator = require("draws").generator -- not of numbers that are compared

local INF, NAN = math.huge, 0 / 0
local FLOATS = { "float32", "bfloat16", "float16", "float64" }

-- Large enough that regions with lines are wanted: smaller ones are in the caches anyway.
local SHAPES = { { 520, 129 }, { 10000, 7 }, { 70, 1000 }, { 1100, 64 }, { 4, 16384 }, { 3, 11, 2048 } }
if not fuses then SHAPES = { { 52, 129 }, { 100, 7 }, { 3, 11, 204 } } end -- where nothing is joined, any will do

-- Of 16-bit floats regions with lines are wanted where they save more.
local function made(step, kernels, dtype)
  local s = step:stats()
  if not fuses then return assert(s.hits > 0, step:explain()) end
  if dtype and dtype:find "16" then return end
  assert(s.kernels == kernels, ("%d kernels, not %d\n%s"):format(s.kernels, kernels, step:explain()))
end

test("a reduction and what it reduces are one kernel", function(t)
  t.uncompiled()
  for _, dtype in ipairs(FLOATS) do
    for _, shape in ipairs(SHAPES) do
      local name = dtype .. " " .. table.concat(shape, "x")
      local function make() return { pg.randn(shape):to(dtype), pg.randn(shape):to(dtype) } end
      made(compare(name .. " sum", make, function(_, x, y) return (x * y):sum() end), 1, dtype)
      made(compare(name .. " mean of squares", make, function(_, x, y) return (x - y):square():mean():sqrt() end), 1,
           dtype)
      made(compare(name .. " of lines", make, function(i, x, y)
        local z = (x * i + y):abs()
        return z:sum(-1), z:amax { axis = -1 }, z:mean(-1), z:norm(2, -1), z
      end), 1, dtype)
    end
  end
end)

test("lines that are longer than the caches", function(t)
  t.uncompiled()
  for _, dtype in ipairs(FLOATS) do
    for _, shape in ipairs(fuses and { { 200000 }, { 3, 70001 }, { 4, 16385 }, { 1, 65536 } } or { { 3, 16385 } }) do
      local name = dtype .. " " .. table.concat(shape, "x")
      local function make() return { pg.randn(shape):to(dtype), pg.randn(shape):to(dtype) } end
      local step = compare(name, make, function(_, x, y)
        local z = (x * y):relu()
        return z:sum(-1), z:mean(-1) * 2 + 1, z:amax { axis = -1 }, x:argmax(-1), z:var { axis = -1 }, z
      end)
      made(step, 1, dtype)
      step = compare(name .. " and back", make, function(_, x, y)
        local z = x * y
        return z - z:mean { axis = -1, keepdim = true }
      end)
      t.ok(step:stats().kernels >= 2) -- the mean is known when all has been read
    end
  end
end)

test("numbers of a line go back to its elements", function(t)
  t.uncompiled()
  for _, dtype in ipairs(FLOATS) do
    for _, shape in ipairs(SHAPES) do
      local name = dtype .. " " .. table.concat(shape, "x")
      made(compare(name, function() return { pg.randn(shape):to(dtype) } end, function(_, x)
        local e = (x - x:amax { axis = -1, keepdim = true }):exp()
        local y = e / e:sum { axis = -1, keepdim = true }
        local centred = y - y:mean { axis = -1, keepdim = true }
        return y, centred, centred:square():mean { axis = -1, keepdim = true }:sqrt() + 1
      end), 1, dtype)
    end
  end
end)

test("softmax, norms and what is around them", function(t)
  t.uncompiled()
  for _, dtype in ipairs(FLOATS) do
    for _, shape in ipairs(SHAPES) do
      local n = shape[#shape]
      local name = dtype .. " " .. table.concat(shape, "x")
      local function make()
        return { pg.randn(shape):to(dtype), pg.randn(shape):to(dtype), pg.randn({ n }):to(dtype),
                 pg.randn({ n }):to(dtype) }
      end
      made(compare(name .. " softmax", make, function(_, x, y) return (x * 0.125 + y):softmax(-1) * y end), 1, dtype)
      made(compare(name .. " log_softmax", make, function(_, x, y)
        return (x:tanh():log_softmax(-1) * y):sum(-1):neg()
      end), 1, dtype)
      made(compare(name .. " layer_norm", make, function(i, x, y, w, b)
        local sum = x + y
        return pg.layer_norm(sum, { n }, w, b, 1e-5 * i):relu(), sum
      end), 1, dtype)
      made(compare(name .. " rms_norm", make, function(_, x, y, w) return pg.rms_norm(x + y, { n }, w) * y end), 1,
           dtype)
    end
  end
end)

test("gradients through them", function(t)
  t.uncompiled()
  for _, dtype in ipairs { "float32", "bfloat16" } do
    local step = compare("gradients in " .. dtype, function()
      local w = pg.randn { 96 }:to(dtype)
      w.requires_grad = true
      return { pg.randn({ 700, 96 }):to(dtype), w, pg.randn({ 700, 96 }):to(dtype) }
    end, function(_, x, w, y)
      w.grad = nil
      local h = pg.layer_norm(x * w, { 96 })
      local p = (h * 0.5):softmax(-1)
      local loss = (p:log() * y):sum(-1):mean() + (h - y):square():mean()
      loss:backward()
      return loss:detach(), w.grad
    end)
    t.ok(step:stats().hits > 0)
    local explained = step:explain()
    if fuses and dtype == "float32" then
      t.ok(explained:find("mul layer_norm mul softmax", 1, true), explained)
      t.ok(explained:find("softmax_grad", 1, true), explained)
    end
  end
end)

test("what would not be quicker is left alone", function(t)
  t.uncompiled()
  if not fuses then t.skip(pg.device() .. " has no compiler that could join anything") end
  local function kernels(shape, fn)
    return compare("alone", function() return { pg.randn(shape), pg.randn(shape) } end, fn):stats().kernels
  end
  t.equal(kernels({ 20, 30 }, function(_, x, y) return (x * y + 1):sum() end), 2) -- it is in the caches anyway
  t.equal(kernels({ 700, 100 }, function(_, x) return x - x:mean { axis = -1, keepdim = true } end), 2)
  t.equal(kernels({ 700, 100 }, function(_, x, y) return (x * y + 1):sum() end), 1)
  t.equal(kernels({ 70, 10, 100 }, function(_, x, y) return (x * y + 1):sum(2) end), 2) -- an axis in the middle
end)

test("weights that a part of the region makes are whole before it", function(t)
  t.uncompiled()
  local n = 260
  local step = compare("made weights", function() return { pg.randn { n, n }, pg.randn { n } } end, function(_, x, w)
    local scaled = w * 2
    local row = x:sum(-1)
    return pg.layer_norm(x * scaled, { n }, scaled, w), x + row, x:t():contiguous() * 2 + row
  end)
  t.ok(step:stats().kernels > 1)
end)

test("what is written over while lines are read", function(t)
  t.uncompiled()
  for _, dtype in ipairs(FLOATS) do
    local function make() return { pg.randn({ 300, 250 }):to(dtype), pg.randn({ 300, 250 }):to(dtype) } end
    compare("in place " .. dtype, make, function(_, x, y)
      local before = x:sum(-1, true)
      x:mul_(0.5):sub_(before * 0.01)
      local p = x:softmax(-1)
      x:add_(p)
      y:copy_(p)
      return before, y:amax { axis = -1 }, x:mean()
    end)
    compare("memory that dies " .. dtype, make, function(_, x, y)
      local a, b = x:matmul(y:t()):matmul(y), y + 0
      local s = (a * b):softmax(-1)
      local r = (s - a):sum(-1, true)
      return s * b - r, (a + r):matmul(y:t())
    end)
  end
  compare("long lines", function() return { pg.randn { 3, 40000 }, pg.randn { 3, 40000 } } end, function(_, x, y)
    local s = x:sum(-1, true)
    x:mul_(0.5)
    y:sub_(x)
    return s, y:sum(-1), x:sum()
  end)
end)

test("numbers that are no numbers, and none at all", function(t)
  t.uncompiled()
  for _, dtype in ipairs(FLOATS) do
    compare("special " .. dtype, function()
      local x = pg.randn({ 170, 400 }):to(dtype)
      x[{ 1, { 1, 5 } }] = pg.tensor({ INF, -INF, NAN, -0.0, 0 }):to(dtype)
      x[{ 2, { 1, 2 } }] = pg.tensor({ INF, INF }):to(dtype)
      x[{ 3, {} }] = -INF
      return { x }
    end, function(_, x)
      local y = x * 2
      return y:softmax(-1) * 1, y:amax { axis = -1 }, y:argmax(-1), (y:sum(-1) + 1), y:log_softmax(-1):exp(),
             y:logsumexp { axis = -1 }, pg.rms_norm(y, { 400 }) + 1
    end)
  end
  for _, shape in ipairs { { 0, 5 }, { 5, 0 }, { 0 } } do
    compare("empty", function() return { pg.zeros(shape) } end, function(_, x)
      return (x + 1):sum(-1) * 2, (x * 2):softmax(-1) + 1, (x + 1):sum()
    end)
  end
end)

-- ---- random functions ----

local UNARY = { "relu", "tanh", "exp", "neg", "abs", "square", "sigmoid", "silu" }
local BINARY = { "add", "sub", "mul", "maximum", "minimum" }

local REDUCE = {
  function(x, keep) return x:sum(-1, keep) end,
  function(x, keep) return x:mean(-1, keep) end,
  function(x, keep) return x:amax { axis = -1, keepdim = keep } end,
  function(x, keep) return x:amin { axis = -1, keepdim = keep } end,
  function(x, keep) return x:var { axis = -1, keepdim = keep } end,
  function(x, keep) return x:logsumexp { axis = -1, keepdim = keep } end,
  function(x, keep) return x:norm(2, -1, keep) end,
  function(x, keep) return x:prod(-1, keep) end,
}
local WHOLE = {
  function(x) return x:softmax(-1) end,
  function(x) return x:log_softmax(-1) end,
  function(x, w) return pg.layer_norm(x, { x.shape[#x.shape] }, w, w) end,
  function(x, w) return pg.rms_norm(x, { x.shape[#x.shape] }, w) end,
}

local function random_function(seed)
  local draw = generator(seed)
  local dtype = FLOATS[draw(4)]
  local shapes = { { 330, 200 }, { 1400, 50 }, { 33, 2000 }, { 8000, 9 }, { 4, 17000 }, { 2, 11, 3000 }, { 70000 },
                   { 260, 260 } }
  local shape = shapes[draw(#shapes)]
  local steps, outs = {}, {}
  for k = 1, 4 + draw(10) do steps[k] = { draw(10), draw(64), draw(64), draw(64) } end
  for k = 1, 1 + draw(3) do outs[k] = draw(64) end
  local keep = draw(3) > 1
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
        numbers[#numbers + 1] = REDUCE[s[4] % #REDUCE + 1](a, keep)
      elseif kind == 8 then
        full[#full + 1] = WHOLE[s[4] % #WHOLE + 1](a, w)
      elseif #numbers > 0 then
        local r, q = pick(numbers, s[3]), pick(numbers, s[4])
        if keep and s[4] % 2 == 0 then
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

test("random functions with lines", function(t)
  t.uncompiled()
  local only = tonumber(os.getenv "PERIGEE_LINES_ONE")
  local joined, total = 0, 0
  for seed = only or 1, only or tonumber(os.getenv "PERIGEE_LINES") or 60 do
    local make, fn = random_function(seed)
    local step = compare("function " .. seed, make, fn, 3)
    for _, r in ipairs(step:stats().regions) do
      for _, name in ipairs { "sum", "mean", "amax", "softmax", "norm", "logsumexp" } do
        if r.operators:find(name, 1, true) then joined = joined + 1 break end
      end
    end
    total = total + 1
  end
  t.ok(only or not fuses or joined > total / 4, ("%d regions with lines in %d functions"):format(joined, total))
end)
