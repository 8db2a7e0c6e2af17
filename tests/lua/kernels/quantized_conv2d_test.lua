-- SPDX-License-Identifier: Apache-2.0
-- quantized_conv2d's ways against what it is composed of, in float64: channels and filters that fill no vector,
-- strides, holes, padding, groups, images from none to many, views; by each instruction set.

local tests = (debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or ".") .. "/../.."
package.path = tests .. "/?.lua;" .. package.path

local pg = require "perigee"
local process = require "process"

-- The result in float64, of x as whole numbers that float32 arithmetic makes of it, as the kernel does.
local function expected(x, weight, scale, bias, o)
  local wide = pg.dequantize(weight, scale:to("float64"), { format = o.format })
  x = x:to("float32")
  if o.activations and x:numel() > 0 then
    local low, high, zero = -127, 127, nil
    local step = o.x_scale
    if o.activations == "uint8" then
      low, high, zero = 0, 255, o.x_zero
      if not step then
        local least = x:amin { axis = { 2, 3, 4 }, keepdim = true }:minimum(0)
        step = (x:amax { axis = { 2, 3, 4 }, keepdim = true }:maximum(0) - least) / 255
        zero = -(least / step):round()
      end
    elseif not step then
      step = x:abs():amax { axis = { 2, 3, 4 }, keepdim = true } / 127
    end
    x = pg.fake_quantize(x, step, zero, { low = low, high = high })
  end
  local channels = x.shape[2] / (o.groups or 1)
  local y = pg.conv2d(x:to("float64"), wide:reshape(wide.shape[1], channels, o.kernel[1], o.kernel[2]),
                      bias and bias:to("float64"), { stride = o.stride, padding = o.padding, dilation = o.dilation,
                                                     groups = o.groups })
  return o.activation == "relu" and y:relu() or y
end

local TOLERANCE = { float32 = 2e-6, bfloat16 = 1e-2, float16 = 1e-3 }

local function check(t, dtype, shape, outputs, scales, o)
  local x = o.view and pg.randn { shape[1], shape[3], shape[4], shape[2] }:to(dtype):permute(1, 4, 2, 3) or
            pg.randn { shape }:to(dtype)
  local numbers = shape[2] / (o.groups or 1) * o.kernel[1] * o.kernel[2]
  local weight = pg.randint(-127, 128, { outputs, numbers }):to("int8")
  if o.format == "int4" then weight = pg.randint(0, 256, { outputs, numbers / 2 }):to("uint8") end
  if o.format and o.format:find "float8" then weight = pg.randint(0, 100, { outputs, numbers }):to("uint8") end
  local scale = (pg.rand { outputs, scales } * 0.01 + 0.01):to(dtype)
  local bias = o.bias and pg.randn { outputs }:to(dtype) or nil
  local y = pg.quantized_conv2d(x, weight, scale, bias, o.x_scale and o.x_scale:to(dtype),
                                o.x_zero and o.x_zero:to(dtype),
                                { kernel = o.kernel, stride = o.stride, padding = o.padding, dilation = o.dilation,
                                  groups = o.groups, format = o.format, activations = o.activations,
                                  activation = o.activation })
  local want = expected(x, weight, scale, bias, o)
  t.equal({ y.dtype, y.shape }, { dtype, want.shape })
  if y:numel() == 0 then return end
  local size, off = want:abs():amax():item() + 1e-3, (y:to("float64") - want):abs():amax():item()
  t.ok(off <= TOLERANCE[dtype] * size, ("%s %s, %d filters, %d scales, %s %s %s groups=%s: off by %g of %g"):format(
    dtype, table.concat(shape, "x"), outputs, scales, table.concat(o.kernel, "x"), o.format or "int8",
    o.activations or "floating", tostring(o.groups), off, size))
end

local CASES = { -- x, filters, scales of one, the rest
  { { 1, 1, 8, 8 }, 16, 1, { kernel = { 3, 3 }, padding = { 1 }, bias = true } },
  { { 2, 3, 9, 7 }, 9, 1, { kernel = { 3, 2 }, stride = { 2, 1 }, padding = { 1, 0 } } },
  { { 1, 16, 14, 14 }, 33, 1, { kernel = { 3, 3 }, padding = { 1 }, bias = true, activation = "relu" } },
  { { 3, 8, 5, 5 }, 8, 1, { kernel = { 1, 1 }, bias = true } },
  { { 2, 20, 6, 11 }, 24, 1, { kernel = { 2, 3 }, dilation = { 2, 2 }, padding = { 1, 2, 0, 3 } } },
  { { 2, 32, 6, 6 }, 48, 1, { kernel = { 3, 3 }, groups = 2, padding = { 1 }, stride = { 2, 2 }, bias = true } },
  { { 1, 12, 7, 5 }, 24, 1, { kernel = { 3, 3 }, groups = 3, dilation = { 1, 2 }, padding = { 2 } } },
  { { 1, 5, 9, 9 }, 16, 1, { kernel = { 9, 9 } } },
  { { 1, 9, 3, 70 }, 17, 1, { kernel = { 3, 5 }, padding = { 3, 4 } } },
  { { 1, 16, 9, 9 }, 72, 1, { kernel = { 3, 3 }, groups = 2, padding = { 1 }, bias = true } },
  { { 1, 3, 17, 19 }, 64, 1, { kernel = { 7, 7 }, stride = { 2, 2 }, padding = { 3 }, bias = true } },
  { { 1, 33, 7, 9 }, 50, 1, { kernel = { 1, 1 }, stride = { 2, 1 } } },
  { { 2, 17, 9, 11 }, 40, 1, { kernel = { 3, 3 }, padding = { 1, 2, 0, 3 }, bias = true, activation = "relu" } },
  { { 1, 13, 5, 61 }, 17, 1, { kernel = { 3, 3 } } }, { { 3, 64, 6, 4 }, 8, 1, { kernel = { 3, 3 }, padding = { 4 } } },
  { { 1, 12, 33, 31 }, 47, 1, { kernel = { 3, 3 }, padding = { 1 }, bias = true } },
  { { 1, 6, 4, 4 }, 6, 1, { kernel = { 3, 3 }, groups = 6, padding = { 1 }, bias = true } }, -- filters too few
  { { 2, 8, 6, 6 }, 12, 2, { kernel = { 2, 2 }, activation = "relu" } }, -- scales too many
  { { 0, 3, 4, 4 }, 8, 1, { kernel = { 3, 3 } } }, { { 2, 4, 3, 3 }, 0, 1, { kernel = { 3, 3 } } },
  { { 1, 2, 2, 2 }, 8, 1, { kernel = { 2, 2 }, padding = { 6 } } },
  { { 2, 5, 7, 10 }, 9, 1, { kernel = { 2, 2 }, stride = { 3, 3 } } }, -- what no window sees at the right
  { { 1, 32, 8, 8 }, 40, 1, { kernel = { 3, 3 }, padding = { 1 }, bias = true, activation = "relu" } },
  { { 2, 24, 6, 12 }, 33, 1, { kernel = { 3, 3 }, padding = { 1 }, bias = true } },
  { { 1, 64, 4, 4 }, 32, 9, { kernel = { 3, 3 }, padding = { 1 }, bias = true, activation = "relu" } },
}

local function with(o, more)
  local all = {}
  for k, v in pairs(o) do all[k] = v end
  for k, v in pairs(more) do all[k] = v end
  return all
end

test("ragged sizes, formats, dtypes, whole and floating", function(t)
  pg.manual_seed(3)
  for i, case in ipairs(CASES) do
    local shape, outputs, scales, o = unpack(case)
    for k, activations in ipairs { false, "int8", "uint8" } do
      local a = activations or nil
      check(t, "float32", shape, outputs, scales, with(o, { activations = a }))
      check(t, (i + k) % 2 == 0 and "bfloat16" or "float16", shape, outputs, scales, with(o, { activations = a }))
      if shape[2] / (o.groups or 1) * o.kernel[1] * o.kernel[2] % 2 == 0 then
        check(t, "float32", shape, outputs, scales, with(o, { activations = a, format = "int4" }))
      end
    end
    check(t, "float32", shape, outputs, scales, with(o, { format = i % 2 == 0 and "float8_e5m2" or "float8_e4m3fn" }))
    check(t, "float32", shape, outputs, scales, with(o, { view = true, activations = i % 2 == 0 and "int8" or nil }))
  end
end)

test("one scale and zero point for all images", function(t)
  pg.manual_seed(4)
  for _, case in ipairs(CASES) do
    local shape, outputs, scales, o = unpack(case)
    local fixed = { x_scale = pg.tensor { 0.03125 } }
    check(t, "float32", shape, outputs, scales, with(o, with(fixed, { activations = "int8" })))
    for _, zero in ipairs { 0, 93, 255 } do
      check(t, "float32", shape, outputs, scales,
            with(o, with(fixed, { activations = "uint8", x_zero = pg.tensor { zero + 0.0 } })))
    end
  end
end)

test("sums of whole numbers are exact, of the largest ones too; a NaN spoils its image only", function(t)
  local weight, one = pg.full({ 8, 64 * 9 }, -127, { dtype = "int8" }), pg.ones { 8, 1 }
  local x = pg.full({ 2, 64, 4, 4 }, 127.0)
  local function run(images, o) return pg.quantized_conv2d(images, weight, one, nil, nil, nil, o) end
  local y = run(x, { kernel = { 3, 3 }, activations = "int8" })
  t.equal({ y:amax():item(), y:amin():item() }, { -127 * 127 * 576, -127 * 127 * 576 })
  x = pg.full({ 2, 64, 4, 4 }, 255.0)
  y = run(x, { kernel = { 3, 3 }, activations = "uint8" })
  t.equal(y:amin():item(), -127 * 255 * 576)
  x[{ 2, 3, 1, 1 }] = 0 / 0
  for _, activations in ipairs { "int8", "uint8" } do
    y = run(x, { kernel = { 3, 3 }, activations = activations, activation = "relu" })
    t.ok(y[2]:isnan():all():item() and not y[1]:isnan():any():item(), activations)
  end
end)

test("numbers at the ends of their ranges make exact sums of either sign, around any zero point", function(t)
  pg.manual_seed(5)
  local weight = (pg.randint(0, 2, { 40, 48 * 9 }) * 254 - 127):to("int8")
  local one, ends = pg.ones { 40, 1 }, pg.tensor { 0.0, 255.0, 1.0, 254.0 }
  local which = pg.randint(0, 4, { 2, 48, 9, 10 })
  for _, zero in ipairs { 0, 77, 255 } do
    local x = ends:index_select(which:reshape(-1), { axis = 1 }):reshape(2, 48, 9, 10) - zero
    for _, stride in ipairs { 1, 2 } do
      local o = { kernel = { 3, 3 }, stride = { stride, stride }, padding = { 1 }, activations = "uint8" }
      local y = pg.quantized_conv2d(x, weight, one, nil, pg.ones { 1 }, pg.tensor { zero + 0.0 }, o)
      local want = pg.conv2d(x:to("float64"), weight:to("float64"):reshape(40, 48, 3, 3), nil,
                             { stride = { stride, stride }, padding = { 1 } })
      t.equal((y:to("float64") - want):abs():amax():item(), 0)
      o.activations = "int8"
      x = x:maximum(-127):minimum(127)
      y = pg.quantized_conv2d(x, weight, one, nil, pg.ones { 1 }, nil, o)
      want = pg.conv2d(x:to("float64"), weight:to("float64"):reshape(40, 48, 3, 3), nil,
                       { stride = { stride, stride }, padding = { 1 } })
      t.equal((y:to("float64") - want):abs():amax():item(), 0)
      x = ends:index_select(which:reshape(-1), { axis = 1 }):reshape(2, 48, 9, 10) - zero
    end
  end
end)

test("images of every width", function(t)
  pg.manual_seed(7)
  for width = 1, 36 do
    for i, kernel in ipairs { { 1, 1 }, { 3, 3 } } do
      local o = { kernel = kernel, padding = { i - 1 }, activations = width % 2 == 0 and "int8" or "uint8" }
      check(t, "float32", { 1, 20, 5, width }, 18, 1, o)
    end
  end
end)

test("tiles hold as many channels as are exact, of the largest numbers too", function(t)
  for _, channels in ipairs { 113, 114, 115, 228, 229, 230 } do
    for _, activations in ipairs { "int8", "uint8" } do
      for _, format in ipairs { "int8", "int4" } do
        local most, least = activations == "int8" and 127.0 or 255.0, format == "int8" and -128 or -8
        if channels % 2 == 0 or format == "int8" then
          local weight = format == "int8" and pg.full({ 16, channels * 9 }, least, { dtype = "int8" }) or
                         pg.zeros({ 16, channels * 9 / 2 }, { dtype = "uint8" })
          local y = pg.quantized_conv2d(pg.full({ 1, channels, 12, 12 }, most), weight, pg.ones { 16, 1 }, nil, nil,
                                        nil, { kernel = { 3, 3 }, format = format, activations = activations })
          t.equal({ y:amin():item(), y:amax():item() },
                  { most * least * channels * 9, most * least * channels * 9 },
                  ("%d channels, %s by %s"):format(channels, activations, format))
        end
      end
    end
  end
end)

test("small images: filters are divided among threads, with the bits of one thread", function(t)
  pg.manual_seed(6)
  local threads = pg.config.get().threads
  for _, groups in ipairs { 1, 2 } do
    for _, outputs in ipairs { 16, 40, 64, 70, 130 } do
      for _, stride in ipairs { 1, 2 } do
        local x = pg.randn { 1, 64, 8, 7 }
        local weight = pg.randint(-127, 128, { outputs, 64 / groups * 9 }):to "int8"
        local scale, bias = pg.rand { outputs, 1 }, pg.randn { outputs }
        local function run(count)
          pg.config.set { threads = count }
          return pg.quantized_conv2d(x, weight, scale, bias, nil, nil,
                                     { kernel = { 3, 3 }, stride = { stride, stride }, padding = { 1 },
                                       groups = groups, activations = "int8", activation = "relu" })
        end
        local ok, problem = pcall(function()
          local one = run(1)
          for _, count in ipairs { 2, 3, 4 } do
            t.equal((run(count) - one):abs():amax():item(), 0, ("%d filters, %d groups"):format(outputs, groups))
          end
        end)
        pg.config.set { threads = threads }
        if not ok then error(problem, 0) end
      end
    end
  end
end)

test("numbers halfway between two whole ones become the even one", function(t)
  local x = pg.arange(-40, 40):to("float32"):reshape(1, 1, 8, 10) / 2
  local y = pg.quantized_conv2d(x, pg.ones({ 8, 1 }, { dtype = "int8" }), pg.ones { 8, 1 }, nil, pg.ones { 1 }, nil,
                                { kernel = { 1, 1 }, activations = "int8" })
  t.equal((y - x:round()):abs():amax():item(), 0)
end)

test("filters that are kept in a layout of their own follow what is written to them", function(t)
  local weight, scale = pg.ones({ 8, 4 }, { dtype = "int8" }), pg.ones { 8, 1 }
  local x = pg.full({ 1, 1, 2, 2 }, 127.0)
  local function run() return pg.quantized_conv2d(x, weight, scale, nil, nil, nil, { kernel = { 2, 2 },
                                                                                     activations = "int8" }) end
  for _ = 1, 5 do t.equal(run():amax():item(), 4 * 127) end
  weight:fill_(2)
  for _ = 1, 5 do t.equal(run():amax():item(), 8 * 127) end
  local filters, scales = pg.ones({ 16, 16 * 9 }, { dtype = "int8" }), pg.ones { 16, 1 }
  local image = pg.ones { 1, 16, 8, 8 }
  for _, activations in ipairs { "floating", "int8" } do -- as floats, and what is kept of whole numbers for tiles
    local function sum()
      return pg.quantized_conv2d(image, filters, scales, nil, activations == "int8" and pg.ones { 1 } or nil, nil,
                                 { kernel = { 3, 3 }, activations = activations }):amax():item()
    end
    filters:fill_(1)
    scales:fill_(1)
    for _ = 1, 4 do t.equal(sum(), 144) end
    filters:fill_(3)
    for _ = 1, 4 do t.equal(sum(), 432) end
    scales:fill_(0.5)
    for _ = 1, 4 do t.equal(sum(), 216) end
  end
  local fours, groups = pg.full({ 16, 16 * 9 / 2 }, 0x99, { dtype = "uint8" }), pg.ones { 16, 4 } -- ones by groups
  local function sum()
    return pg.quantized_conv2d(image, fours, groups, nil, nil, nil,
                               { kernel = { 3, 3 }, format = "int4" }):amax():item()
  end
  for _ = 1, 4 do t.equal(sum(), 144) end
  groups[{ {}, 2 }] = 3
  for _ = 1, 4 do t.equal(sum(), 216) end
  fours:fill_(0xaa)
  for _ = 1, 4 do t.equal(sum(), 432) end
  groups:fill_(1)
  for _ = 1, 4 do t.equal(sum(), 288) end
end)

test("the other instruction sets", function(t)
  if os.getenv "PERIGEE_CPU_ISA" then return end
  for _, isa in ipairs { "avx2", "avx512" } do
    local out, code = process.run("PERIGEE_CPU_ISA=" .. isa .. " " .. process.need_perigee(t) .. " test " ..
                                  debug.getinfo(1, "S").source:sub(2))
    t.equal(code, 0, out)
  end
end)
