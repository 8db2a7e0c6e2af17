-- SPDX-License-Identifier: Apache-2.0
-- Convolutions and pooling of volumes, and adaptive maximum pooling, on the device in force (or else the simulated one)
-- against the CPU: sizes that the case tables leave out, views, and gradients.

local pg = require "perigee"

local DEVICE = pg.device() ~= "cpu" and pg.device() or "sim:0"
local STEP = { float64 = 2 ^ -40, float32 = 2 ^ -17, float16 = 2 ^ -9, bfloat16 = 2 ^ -6 }

local function rand(shape, dtype)
  return pg.device("cpu", function() return (pg.rand(shape) * 2 - 1):to(dtype or "float32") end)
end

-- fn(inputs) gives a list of tensors; inputs are made on the CPU, once.
local function agree(t, label, dtype, inputs, fn)
  local function run(device)
    return pg.device(device, function()
      local moved = {}
      for i, x in ipairs(inputs) do moved[i] = x:clone():to(device) end
      return fn(moved)
    end)
  end
  local expected, got = run "cpu", run(DEVICE)
  t.equal(#got, #expected)
  for i, y in ipairs(got) do
    local want = expected[i]
    t.equal({ label, i, y.device, y.dtype, y.shape }, { label, i, DEVICE, want.dtype, want.shape })
    if want:numel() > 0 then
      local a, b = y:cpu():to("float64"), want:to("float64")
      local far = ((a - b):abs() / (b:abs() + 1)):max():item()
      t.ok(far <= STEP[dtype], ("%s in %s, result %d: %g off, at most %g"):format(label, dtype, i, far, STEP[dtype]))
    end
  end
end

local function sloped(fn, ...)
  local leaves = {}
  for i, x in ipairs { ... } do leaves[i] = x:detach():requires_grad_() end
  local y = fn(unpack(leaves))
  local weights = pg.arange(y:numel(), { dtype = "float32" }):remainder(7):reshape(y.shape):to(y.dtype):to(y.device)
  local d = { pg.grad({ (y * weights):sum() }, leaves) }
  return y:detach(), unpack(d)
end

for dtype in pairs(STEP) do
  test("convolutions of volumes in " .. dtype, function(t)
    local cases = {
      { { 2, 4, 5, 6, 4 }, { 6, 4, 3, 2, 2 }, {} },
      { { 2, 4, 5, 6, 4 }, { 6, 2, 2, 3, 1 }, { groups = 2, stride = { 2, 1, 1 }, padding = { 1, 0, 2 } } },
      { { 1, 3, 6, 5, 7 }, { 2, 3, 2, 2, 3 }, { padding = { 1, 0, 0, 2, 1, 1 }, dilation = { 2, 1, 3 } } },
      { { 0, 3, 4, 4, 4 }, { 2, 3, 2, 2, 2 }, {} },
    }
    for i, case in ipairs(cases) do
      local inputs = { rand(case[1], dtype), rand(case[2], dtype), rand({ case[2][1] }, dtype) }
      agree(t, "case " .. i, dtype, inputs, function(a)
        return { sloped(function(x, w, b) return pg.conv3d(x, w, b, case[3]) end, a[1], a[2], a[3]) }
      end)
    end
    agree(t, "views", dtype, { rand({ 5, 2, 4, 6, 3 }, dtype), rand({ 2, 2, 3, 4, 2 }, dtype) }, function(a)
      local x, w = a[1]:permute(2, 5, 1, 3, 4), a[2]:permute(4, 1, 2, 3, 5):narrow(2, 1, 1):expand { 4, 3, 2, 3, 2 }
      return { pg.conv3d(x, w), pg.conv3d(x, w, nil, { stride = 2, padding = 1 }) }
    end)
    local inputs = { rand({ 2, 4, 3, 4, 2 }, dtype), rand({ 4, 3, 2, 3, 3 }, dtype), rand({ 3 }, dtype) }
    agree(t, "transposed", dtype, inputs, function(a)
      local options = { stride = 2, padding = 1, output_padding = { 1, 0, 1 } }
      return { sloped(function(x, w, b) return pg.conv_transpose3d(x, w, b, options) end, a[1], a[2], a[3]) }
    end)
  end)

  test("pooling of volumes in " .. dtype, function(t)
    local windows = {
      { kernel = 2 }, { kernel = 3, stride = 2, padding = 1 }, { kernel = { 2, 3, 1 }, stride = 2, ceil_mode = true },
      { kernel = { 1, 3, 2 }, stride = { 1, 2, 1 }, padding = { 0, 1, 0 } }, { kernel = { 5, 6, 8 } },
    }
    for i, options in ipairs(windows) do
      agree(t, "windows " .. i, dtype, { rand({ 2, 3, 5, 6, 8 }, dtype) }, function(a)
        local x = a[1]:permute(2, 1, 3, 4, 5)
        local results = { (pg.no_grad(pg.max_pool3d, x, options)) }
        local function add(fn)
          for _, y in ipairs { sloped(fn, x) } do results[#results + 1] = y end
        end
        add(function(v) return (pg.max_pool3d(v, options)) end)
        for _, own in ipairs { { count_include_pad = false }, { divisor_override = 5 }, {} } do
          for key, value in pairs(options) do own[key] = value end
          add(function(v) return pg.avg_pool3d(v, own) end)
        end
        return results
      end)
    end
  end)

  test("adaptive pooling in " .. dtype, function(t)
    local cases = { { { 2, 3, 7 }, { 1, 3, 7, 9 } }, { { 2, 2, 5, 7 }, { { 1, 1 }, { 2, 3 }, { 7, 9 } } },
                    { { 2, 2, 3, 5, 4 }, { { 1, 1, 1 }, { 2, 3, 3 }, { 3, 7, 2 } } } }
    for axes, case in ipairs(cases) do
      for _, size in ipairs(case[2]) do
        agree(t, axes .. " axes", dtype, { rand(case[1], dtype) }, function(a)
          local max, mean = pg["adaptive_max_pool" .. axes .. "d"], pg["adaptive_avg_pool" .. axes .. "d"]
          local x = a[1]:transpose(1, 2)
          local y, d = sloped(function(v) return (max(v, size)) end, x)
          local m, e = sloped(function(v) return mean(v, size) end, x)
          return { y, d, m, e, (pg.no_grad(max, x, size)) }
        end)
      end
    end
  end)
end

-- More rows than a block of threads tells apart, and planes large enough to be cut into bands.
test("gradients of maximum pooling of long axes", function(t)
  local options = { kernel = { 2, 3, 3 }, stride = { 1, 2, 2 }, padding = { 1, 1, 1 } }
  for _, shape in ipairs { { 1, 1, 2100, 3, 5 }, { 1, 2, 9, 40, 51 }, { 1, 1, 3, 1500, 4 }, { 2, 1, 2, 2, 2500 } } do
    agree(t, table.concat(shape, "x"), "float32", { rand(shape) }, function(a)
      return { sloped(function(v) return (pg.max_pool3d(v, options)) end, a[1]) }
    end)
  end
  agree(t, "plane", "float32", { rand { 1, 2, 1300, 14 } }, function(a)
    return { sloped(function(v) return (pg.max_pool2d(v, { kernel = 3, stride = 2, padding = 1 })) end, a[1]) }
  end)
end)

test("in windows of volumes a NaN wins, and of equals the first is taken", function(t)
  local function run(device)
    return pg.device(device, function()
      local x = pg.zeros { 1, 1, 2, 4, 4 }
      x[1][1][2][3][4] = 0 / 0
      local y, d = sloped(function(v) return (pg.max_pool3d(v, { kernel = 2 })) end, x)
      return { y:isnan():to("int64"):cpu():totable(), d:cpu():totable() }
    end)
  end
  t.equal(run(DEVICE), run "cpu")
end)
