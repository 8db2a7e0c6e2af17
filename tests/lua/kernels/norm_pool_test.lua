-- SPDX-License-Identifier: Apache-2.0
-- Batch normalisation and pooling on the device in force (or else the simulated one) against the CPU, as models use
-- them: parameters and statistics in float32 whatever x is, results that nobody asked for left out. A device may have
-- two ways of computing them (plugins/cuda/README.md).

local pg = require "perigee"
local nn = pg.nn

local DEVICE = pg.device() ~= "cpu" and pg.device() or "sim:0"
local STEP = { float64 = 2 ^ -40, float32 = 2 ^ -17, float16 = 2 ^ -9, bfloat16 = 2 ^ -6 }

local function to_all(list, device)
  local moved = {}
  for i, x in ipairs(list) do moved[i] = x:clone():to(device) end
  return moved
end

-- fn(inputs) gives a list of tensors; inputs are made on the CPU, once.
local function agree(t, label, dtype, inputs, fn)
  local expected = pg.device("cpu", function() return fn(to_all(inputs, "cpu")) end)
  local got = pg.device(DEVICE, function() return fn(to_all(inputs, DEVICE)) end)
  t.equal(#got, #expected)
  for i, y in ipairs(got) do
    t.equal({ label, i, y.device, y.dtype, y.shape }, { label, i, DEVICE, expected[i].dtype, expected[i].shape })
    local a, b = y:cpu():to("float64"), expected[i]:to("float64")
    local far = ((a - b):abs() / (b:abs() + 1)):max():item()
    t.ok(far <= STEP[dtype], ("%s in %s, result %d: %g off, at most %g expected"):format(label, dtype, i, far,
                                                                                      STEP[dtype]))
  end
end

local function on_cpu(fn) return pg.device("cpu", fn) end

local function rand(shape, dtype, low)
  return on_cpu(function() return (pg.rand(shape) * 2 + (low or -1)):to(dtype or "float32") end)
end

-- x, dy, weight, bias, running mean and variance.
local function norm_inputs(shape, dtype)
  local c, own = { shape[2] }, dtype == "float64" and dtype or "float32"
  return { rand(shape, dtype), rand(shape, dtype), rand(c, own), rand(c, own), rand(c, own), rand(c, own, 0.5) }
end

local function gradients(y, of, dy)
  return { pg.grad({ y }, of, { grad_outputs = { dy } }) }
end

local shapes = { { 4, 8, 5, 6 }, { 6, 16 }, { 2, 3, 7 }, { 2, 8, 3, 2, 2 }, { 3, 1, 4, 4 }, { 2, 24, 1, 1 } }

for dtype in pairs(STEP) do
  test("batch_norm in training in " .. dtype, function(t)
    for _, shape in ipairs(shapes) do
      agree(t, "[" .. table.concat(shape, ", ") .. "]", dtype, norm_inputs(shape, dtype), function(a)
        local options = { training = true, momentum = 0.3, eps = 1e-3 }
        local alone = pg.no_grad(function() return (pg.batch_norm(a[1], a[3], a[4], options)) end)
        local leaves = { a[1]:requires_grad_(), a[3]:requires_grad_(), a[4]:requires_grad_() }
        local y = pg.batch_norm(a[1], a[3], a[4], a[5], a[6], options)
        local d = gradients(y, leaves, a[2])
        local only = gradients(pg.batch_norm(a[1], a[3]:detach(), a[4]:detach(), options), { a[1] }, a[2])
        return { y:detach(), a[5], a[6], d[1], d[2], d[3], alone, only[1] }
      end)
    end
  end)

  test("batch_norm of views and without parameters in " .. dtype, function(t)
    agree(t, "views", dtype, norm_inputs({ 4, 6, 5, 8 }, dtype), function(a)
      local x = a[1]:transpose(2, 4)
      local more = pg.cat { a[3], a[4], a[3] } -- 18: one that does not begin at the start of a block
      local y = pg.batch_norm(x, more:narrow(1, 2, 8), more:narrow(1, 4, 8), { training = true })
      local plain = pg.batch_norm(a[1], { training = true })
      local known = pg.batch_norm(a[1], a[3], a[4], a[5], a[6], { training = false })
      local unaligned = pg.batch_norm(a[1], more:narrow(1, 2, 6), more:narrow(1, 4, 6), { training = true })
      return { (y), (plain), (known), (unaligned) }
    end)
  end)

  test("pooling in " .. dtype, function(t)
    local windows = {
      { kernel = 2 }, { kernel = 3, stride = 2, padding = 1 }, { kernel = 3, stride = 2, ceil_mode = true },
      { kernel = { 3, 2 }, stride = { 2, 1 }, padding = { 1, 0 } },
    }
    for i, options in ipairs(windows) do
      agree(t, "windows " .. i, dtype, { rand({ 2, 3, 8, 10 }, dtype) }, function(a)
        local results = { pg.no_grad(function() return (pg.max_pool2d(a[1], options)) end) }
        for _, padded in ipairs { true, false } do
          local own = { count_include_pad = padded }
          for key, value in pairs(options) do own[key] = value end
          local x = a[1]:detach():requires_grad_()
          local y = pg.avg_pool2d(x, own)
          results[#results + 1] = y:detach()
          results[#results + 1] = pg.grad({ (y * y):sum() }, { x })
        end
        local x = a[1]:detach():requires_grad_()
        results[#results + 1] = pg.grad({ (pg.max_pool2d(x, options)):sum() }, { x })
        return results
      end)
    end
  end)
end

-- The square of the mean less the mean of the squares would leave no correct digit.
test("batch_norm far from zero", function(t)
  local x, dy, w, b = rand({ 4, 8, 6, 6 }) + 1000, rand { 4, 8, 6, 6 }, rand { 8 }, rand { 8 }
  local function run(device)
    return pg.device(device, function()
      local a = to_all({ x, dy, w, b }, device)
      a[1]:requires_grad_()
      local y = pg.batch_norm(a[1], a[3], a[4], { training = true })
      return y:detach():cpu(), (pg.grad({ y }, { a[1] }, { grad_outputs = { a[2] } })):cpu()
    end)
  end
  local y, dx = run(DEVICE)
  local expected, slope = run("cpu")
  t.ok((y - expected):abs():max():item() < 1e-3, "y")
  t.ok((dx - slope):abs():max():item() < 1e-3, "dx")
end)

test("a NaN wins in a window", function(t)
  local x = rand { 1, 2, 6, 6 }
  on_cpu(function() x[1][1][3][3] = 0 / 0 end)
  local y = pg.device(DEVICE, function()
    return pg.no_grad(function() return (pg.max_pool2d(x:to(DEVICE), { kernel = 3, stride = 3 })) end)
  end)
  t.equal(y:cpu():isnan():to("int64"):sum():item(), 1)
end)

test("batch norm of a large batch, whose results pass the caches", function(t)
  pg.manual_seed(4)
  for _, shape in ipairs { { 5, 6, 300, 301 }, { 9, 7, 123, 151 } } do
    local x, w, b = pg.randn(shape), pg.randn { shape[2] }, pg.randn { shape[2] }
    local dy = pg.randn(shape)
    local function run(dtype)
      local a = x:to(dtype):requires_grad_()
      local y = pg.batch_norm(a, nil, nil, w:to(dtype), b:to(dtype), { training = true })
      return { y, pg.grad(y, { a }, { grad_outputs = dy:to(dtype) })[1] }
    end
    local expected = run("float64")
    for dtype, within in pairs { float32 = 1e-5, bfloat16 = 2e-2, float16 = 2e-3 } do
      for i, got in ipairs(run(dtype)) do
        local off = (got:to("float64") - expected[i]):abs():max():item()
        t.ok(off <= within * expected[i]:abs():max():item(), ("%s, tensor %d is off by %g"):format(dtype, i, off))
      end
    end
  end
end)

test("norms of an empty batch: their parameters' gradients are 0", function(t)
  for name, layer in pairs { BatchNorm1d = nn.BatchNorm1d { 4 }, BatchNorm2d = nn.BatchNorm2d { 4 },
                             GroupNorm = nn.GroupNorm { 2, 4 }, InstanceNorm2d = nn.InstanceNorm2d { 4, affine = true },
                             LayerNorm = nn.LayerNorm { { 4, 3, 3 } },
                             activated = nn.Sequential { nn.BatchNorm2d { 4 }, nn.ReLU() } } do
    if t.device then layer:to(t.device) end
    layer(name == "BatchNorm1d" and pg.zeros { 0, 4 } or pg.zeros { 0, 4, 3, 3 }):sum():backward()
    for _, p in ipairs(layer:parameters()) do t.ok(p.grad:eq(0):all():item(), name) end
  end
end)

-- By the definition: NaN wins, the last of them; the first of equals is taken, which zeros of both signs show.
local function best_of_windows(x, kernel, stride)
  local planes, high, wide = x.shape[1], x.shape[2], x.shape[3]
  local rows, columns = math.floor((high - kernel) / stride) + 1, math.floor((wide - kernel) / stride) + 1
  local from, out = x:totable(), {}
  for p = 1, planes do
    for r = 0, rows - 1 do
      for c = 0, columns - 1 do
        local best
        for i = 1, kernel do
          for j = 1, kernel do
            local v = from[p][r * stride + i][c * stride + j]
            if best == nil or v > best or v ~= v then best = v end
          end
        end
        out[#out + 1] = best
      end
    end
  end
  return out
end

-- Zeros with their signs, and NaN.
local function text_of(numbers)
  local list = {}
  for i, v in ipairs(numbers) do list[i] = v ~= v and "nan" or ("%g"):format(v) end
  return table.concat(list, " ")
end

test("max pooling of planes narrower than a vector", function(t)
  for wide = 2, 18 do
    for planes = 1, 5 do
      for _, window in ipairs { { 2, 2 }, { 3, 2 }, { 2, 1 }, { 3, 1 } } do
        local kernel, stride = window[1], window[2]
        local high = kernel == 2 and stride == 2 and wide % 4 == 0 and wide or 7
        if wide >= kernel then
          local x = pg.randint(-2, 3, { planes, high, wide }):float() / 2
          x = pg.where(x:eq(-1), pg.full_like(x, -0.0), x)
          if planes % 2 == 0 then x = pg.where(x:eq(0.5), pg.full_like(x, 0 / 0), x) end
          local expected = best_of_windows(x, kernel, stride)
          local input = x:reshape { 1, planes, high, wide }
          local name = ("%dx%dx%d, %d by %d"):format(planes, high, wide, kernel, stride)
          for _, grad in ipairs { false, true } do -- with gradients, places are noted too
            local got = pg.max_pool2d(input:detach():requires_grad_(grad), { kernel = kernel, stride = stride })
            t.equal(text_of(got:detach():flatten():totable()), text_of(expected), name)
          end
        end
      end
    end
  end
end)
