-- SPDX-License-Identifier: Apache-2.0
-- Compiled functions that reduce lines, on the device in force (or else the simulated one): the bits of eager code, and
-- how many kernels there are where the device joins reductions with what is elementwise around them.

local pg = require "perigee"

local DEVICE = pg.device() ~= "cpu" and pg.device() or "sim:0"
local JOINS = DEVICE:find "^cuda" ~= nil
local FLOATS = { "float32", "float64", "float16", "bfloat16" }
-- Lines of all sorts: of whole packets and not, shorter than a warp's and longer, few and many, of several axes.
-- A device compiles a source once for shapes that are alike.
local SHAPES = { { 5, 7 }, { 3, 64 }, { 2, 3, 130 }, { 300, 33 }, { 6, 1024 }, { 1, 60 } }
local FEW = { { 40, 96 }, { 90, 7 } }

local function values(x)
  return { x.dtype, x.shape, x:isnan():cpu():totable(), x:nan_to_num():cpu():totable(),
           pg.ones({ 1 }):to(x.dtype):to(x.device):copysign(x):cpu():totable() }
end

-- fn(i, inputs...) eagerly and compiled, call by call.
local function compare(t, name, inputs, fn, kernels)
  pg.device(DEVICE, function()
    local moved = {}
    for k, x in ipairs(inputs) do moved[k] = x:to(DEVICE) end
    local step = pg.compile(fn)
    for i = 1, 5 do
      local expected, got = { fn(i, unpack(moved)) }, { step(i, unpack(moved)) }
      t.equal(#got, #expected)
      for k, y in ipairs(expected) do
        local ok, problem = pcall(t.equal, values(got[k]), values(y))
        local form = "%s, call %d, result %d: %s\n%s"
        if not ok then error(form:format(name, i, k, tostring(problem), step:explain()), 0) end
      end
    end
    local s = step:stats()
    t.ok(s.hits > 0, step:explain())
    if JOINS and kernels then t.equal({ name, s.kernels }, { name, kernels }, step:explain()) end
  end)
end

local function rand(shape, dtype) return pg.device("cpu", function() return (pg.randn(shape) * 2):to(dtype) end) end

local function each(fn, shapes)
  for _, dtype in ipairs(FLOATS) do
    for _, shape in ipairs(shapes or SHAPES) do fn(dtype, shape, dtype .. " " .. table.concat(shape, "x")) end
  end
end

test("reductions of what is made element by element", function(t)
  each(function(dtype, shape, name)
    compare(t, name, { rand(shape, dtype), rand(shape, dtype) }, function(i, x, y)
      local z = (x * i + y):abs()
      return z:sum(-1), z:amax { axis = -1 }, (z * y):mean(-1)
    end, 1)
  end)
end)

-- All in one function: on a device that compiles sources each function costs time.
test("every reduction, of results and of what comes from outside", function(t)
  local all = { "sum", "mean", "amax", "amin", "logsumexp", "nansum", "var", "std" }
  each(function(dtype, shape, name)
    compare(t, name, { rand(shape, dtype) }, function(i, x)
      local y, results = x * 0.5 + i, {}
      for k, op in ipairs(all) do
        local options = { axis = -1, keepdim = true, correction = op == "std" and 0 or op == "var" and 1 or nil }
        results[k] = pg[op](y, options) * 2 + pg[op](x, options)
      end
      return y - results[1], unpack(results)
    end, 1)
    compare(t, "norms of " .. name, { rand(shape, dtype) }, function(_, x)
      local y = (x + 1):tanh()
      return y:norm(0, -1), y:norm(1, -1) + 1, y:norm(2, -1), y:norm(math.huge, -1), y:norm(-math.huge, -1), y
    end, 1)
  end, FEW)
end)

test("numbers of a line go back to its elements, several times", function(t)
  each(function(dtype, shape, name)
    compare(t, name, { rand(shape, dtype) }, function(_, x)
      local e = (x - x:amax { axis = -1, keepdim = true }):exp()
      local y = e / e:sum { axis = -1, keepdim = true }
      local centred = y - y:mean { axis = -1, keepdim = true }
      return y, centred, centred:square():mean { axis = -1, keepdim = true }:sqrt() + 1
    end, 1)
  end, FEW)
end)

test("rms_norm and what is around it", function(t)
  each(function(dtype, shape, name)
    local n = shape[#shape]
    compare(t, name, { rand(shape, dtype), rand(shape, dtype), rand({ n }, dtype) }, function(_, x, y, w)
      local s = x + y
      return pg.rms_norm(s, { n }, w) * 2, s
    end)
  end, FEW)
end)

test("lines of several axes, operands that are spread, truth values and other dtypes on the way", function(t)
  for _, dtype in ipairs(FLOATS) do
    local inputs = { rand({ 6, 5, 4, 9 }, dtype), rand({ 4, 1 }, dtype), rand({ 6, 1, 1, 9 }, dtype),
                     rand({ 6, 5 }, dtype) }
    compare(t, dtype, inputs, function(_, x, b, c, r)
      local z = x * b + c
      local m = z:mean { axes = { 3, 4 }, keepdim = true }
      return pg.where(z:gt(m), z, m * 0.5), z:sum { axes = { 3, 4 } } * r
    end, 1)
    compare(t, dtype .. " in float32", inputs, function(_, x, b)
      local z = x:to "float32" * 2 + b
      return (z - z:mean { axes = { 2, 3, 4 }, keepdim = true }):to(dtype)
    end)
  end
end)

test("numbers that are read as a whole, lines of two lengths, and reductions of reductions", function(t)
  for _, dtype in ipairs(FLOATS) do
    local square = { rand({ 32, 32 }, dtype), rand({ 32, 32 }, dtype) }
    compare(t, dtype, square, function(_, x, y)
      local z = x * y
      local s = z:sum(-1) -- spread over lines, not along them
      return z + s, z:sum(1) + s
    end)
    compare(t, dtype, { rand({ 8, 6, 16 }, dtype) }, function(_, x)
      local z = x:tanh()
      return z:sum(-1):sum(-1) * 2, z - z:mean { axes = { 2, 3 }, keepdim = true },
             z - z:amax { axis = -1, keepdim = true }
    end)
  end
end)

test("what is written over its input is written when that has been read", function(t)
  for _, dtype in ipairs(FLOATS) do
    local x, r = rand({ 24, 40 }, dtype), rand({ 24, 1 }, dtype)
    local function steps(compiled)
      return pg.device(DEVICE, function()
        local a, b = x:clone():to(DEVICE), r:clone():to(DEVICE)
        local step = function()
          return pg.no_grad(function()
            local before = a:sum { axis = -1, keepdim = true }
            a:add_(a)
            local z = (a - before):tanh()
            b:add_(z:amax { axis = -1, keepdim = true })
            return z:mean(-1) + 1, z * before + b
          end)
        end
        step = compiled and pg.compile(step) or step
        local seen = {}
        for i = 1, 5 do
          local u, v = step()
          seen[i] = { values(u), values(v), values(a), values(b) }
        end
        return seen
      end)
    end
    t.equal({ dtype, steps(true) }, { dtype, steps(false) })
  end
end)

test("special values in lines", function(t)
  for _, dtype in ipairs(FLOATS) do
    local x = rand({ 8, 40 }, dtype)
    pg.device("cpu", function()
      x[1][3], x[2][5], x[2][9], x[3][1], x[4][40] = 0 / 0, 1 / 0, -1 / 0, -1 / 0, 1 / 0
      x[5]:zero_() x[6]:fill_(-0.0) x[7]:fill_(-1 / 0)
    end)
    compare(t, dtype, { x }, function(i, v)
      local z = v * i
      return z:amax { axis = -1 }, z:amin { axis = -1 }, z:logsumexp(-1), z:sum(-1), z:nansum(-1) * 1,
             z:var { axis = -1 }
    end)
  end
end)

test("arguments that do not begin at a packet, and numbers that change in a captured plan", function(t)
  for _, dtype in ipairs(FLOATS) do
    local long = rand({ 4 * 64 + 3 }, dtype)
    pg.device(DEVICE, function()
      local all = long:to(DEVICE)
      for first = 1, 2 do
        local x = all:narrow(1, first, 256):reshape { 4, 64 }
        compare(t, dtype .. " from " .. first, {}, function(i)
          local s = x:sum { axis = -1, keepdim = true }
          return (x * i - s) / (s + i), x:amax { axis = -1 } * i
        end)
      end
    end)
  end
end)
