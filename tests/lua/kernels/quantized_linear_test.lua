-- SPDX-License-Identifier: Apache-2.0
-- quantized_linear's ways through a small weight against what it is composed of, in float64: sizes that fill no vector,
-- groups, rows from one to many, views, empties; by each instruction set.

local tests = (debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or ".") .. "/../.."
package.path = tests .. "/?.lua;" .. package.path

local pg = require "perigee"
local process = require "process"

-- The result in float64, of what the arguments hold.
local function expected(x, weight, scale, bias, o)
  local wide = pg.dequantize(weight, scale:to("float64"), { format = o.format })
  x = x:to("float64")
  if o.activations and x:numel() > 0 then
    local low, high, zero = -127, 127, nil
    local step = o.x_scale and o.x_scale:to("float64")
    if o.activations == "uint8" then
      low, high = 0, 255
      zero = o.x_zero and o.x_zero:to("float64")
      if not step then
        local least = x:amin { axis = -1, keepdim = true }:minimum(0)
        step = (x:amax { axis = -1, keepdim = true }:maximum(0) - least) / 255
        zero = (-least / step):round()
      end
    elseif not step then
      step = x:abs():amax { axis = -1, keepdim = true } / 127
    end
    x = pg.fake_quantize(x, step, zero, { low = low, high = high })
  end
  return pg.linear(x, wide, bias and bias:to("float64"))
end

local TOLERANCE = { float32 = 2e-5, bfloat16 = 1e-2, float16 = 2e-3 }

local function check(t, dtype, rows, outputs, inputs, groups, o, view)
  local x = view and pg.randn { inputs, rows }:to(dtype):t() or pg.randn { rows, inputs }:to(dtype)
  local weight = pg.randint(-127, 128, { outputs, inputs }):to("int8")
  if o.format == "int4" then weight = pg.randint(0, 256, { outputs, inputs / 2 }):to("uint8") end
  if o.format:find "float8" then -- of either sign, up to 60 or 448
    weight = pg.randint(0, o.format == "float8_e4m3fn" and 127 or 100, { outputs, inputs })
    weight = (weight + pg.randint(0, 2, { outputs, inputs }) * 128):to("uint8")
  end
  local scale = (pg.rand { outputs, groups } * 0.01 + 0.01):to(dtype)
  local bias = o.bias and pg.randn { outputs }:to(dtype) or nil
  local y = pg.quantized_linear(x, weight, scale, bias, o.x_scale and o.x_scale:to(dtype), o.x_zero and
                                o.x_zero:to(dtype), { format = o.format, activations = o.activations })
  t.equal({ y.dtype, y.shape[1], y.shape[2] }, { dtype, rows, outputs })
  if rows * outputs == 0 then return end
  local want = expected(x, weight, scale, bias, o)
  local size = want:abs():amax():item() + 1e-3
  -- In float32 a number halfway between two whole ones may go the other way.
  local most = TOLERANCE[dtype] * size
  if o.activations and not o.x_scale and x:numel() > 0 then most = most + 0.03 * x:to("float64"):abs():amax():item() end
  local off = (y:to("float64") - want):abs():amax():item()
  t.ok(off <= most, ("%s %dx%dx%d, %d groups, %s %s: off by %g, at most %g"):format(
    dtype, rows, outputs, inputs, groups, o.format, o.activations or "floating", off, most))
end

local SIZES = { -- outputs, inputs, groups
  { 1, 16, 1 }, { 5, 18, 1 }, { 7, 32, 2 }, { 9, 62, 1 }, { 4, 64, 1 }, { 13, 112, 2 }, { 6, 130, 1 }, { 33, 258, 1 },
  { 10, 192, 3 }, { 21, 784, 14 }, { 8, 1028, 1 }, { 3, 12, 6 }, { 17, 2048, 32 },
}

test("ragged sizes, rows, groups, dtypes", function(t)
  pg.manual_seed(3)
  for k, size in ipairs(SIZES) do
    for _, rows in ipairs { 1, 2, 3, 5, 8, 17, 140 } do
      for i, dtype in ipairs { "float32", "bfloat16", "float16" } do
        for _, format in ipairs { "int8", "int4" } do
          for _, activations in ipairs { false, "int8", "uint8" } do
            if i == 1 or (k + rows) % 3 == 0 then
              check(t, dtype, rows, size[1], size[2], size[3],
                    { format = format, activations = activations or nil, bias = (k + rows) % 2 == 0 })
            end
          end
        end
      end
    end
  end
end)

test("a scale and a zero point of all of x; views; empties; odd inputs", function(t)
  pg.manual_seed(4)
  local scale, zero = pg.tensor { 0.03125 }, pg.tensor { 93 }
  for _, rows in ipairs { 1, 4, 135 } do
    for _, format in ipairs { "int8", "int4" } do
      for _, dtype in ipairs { "float32", "bfloat16" } do
        check(t, dtype, rows, 11, 96, 3, { format = format, activations = "int8", x_scale = scale, bias = true })
        check(t, dtype, rows, 11, 96, 1, { format = format, activations = "uint8", x_scale = scale, x_zero = zero })
      end
      check(t, "float32", rows, 11, 96, 3, { format = format }, true)
      check(t, "float32", rows, 11, 96, 3, { format = format, activations = "int8" }, true)
      check(t, "float32", rows, 0, 96, 3, { format = format })
      check(t, "float32", rows, 3, 0, 3, { format = format, bias = true })
      check(t, "float32", rows, 3, 0, 3, { format = format, activations = "uint8", bias = true })
    end
    for _, inputs in ipairs { 17, 33, 63, 129, 771 } do
      for _, activations in ipairs { false, "int8", "uint8" } do
        check(t, "float32", rows, 6, inputs, 1, { format = "int8", activations = activations or nil })
      end
    end
  end
  check(t, "float32", 0, 3, 32, 1, { format = "int8", activations = "int8" })
end)

test("float8: ragged sizes, rows, groups, dtypes", function(t)
  pg.manual_seed(5)
  for k, size in ipairs(SIZES) do
    for i, rows in ipairs { 1, 3, 8, 33 } do
      for _, format in ipairs { "float8_e4m3fn", "float8_e5m2" } do
        local dtype = ({ "float32", "bfloat16", "float32" })[(i + k) % 3 + 1]
        check(t, dtype, rows, size[1], size[2], size[3], { format = format, bias = k % 2 == 0 })
      end
    end
  end
end)

test("each code of float8 is multiplied as what it stands for; a NaN or infinity stays in its row", function(t)
  for _, format in ipairs { "float8_e4m3fn", "float8_e5m2" } do
    local codes, scale = pg.arange(0, 256):to("uint8"):reshape(256, 1), pg.full({ 256, 1 }, 0.5)
    local weight = pg.cat({ codes, pg.zeros({ 256, 63 }, { dtype = "uint8" }) }, { axis = 2 })
    local numbers = pg.dequantize(codes, scale, { format = format })
    for _, rows in ipairs { 1, 50 } do
      local x = pg.zeros { rows, 64 }
      x[{ {}, 1 }] = 1
      local y = pg.quantized_linear(x, weight, scale, nil, nil, nil, { format = format })
      for i = 1, 256 do
        local got, want = y[{ rows, i }]:item(), numbers[{ i, 1 }]:item()
        t.ok(got == want or got ~= got and want ~= want, ("%s %d: %g, expected %g"):format(format, i - 1, got, want))
      end
    end
  end
end)

test("sums of whole numbers are exact, of the largest ones too", function(t)
  for _, rows in ipairs { 1, 5 } do
    local x, weight = pg.full({ rows, 4096 }, 127.0), pg.full({ 5, 4096 }, -127, { dtype = "int8" })
    local one = pg.ones { 5, 1 }
    local y = pg.quantized_linear(x, weight, one, nil, nil, nil, { activations = "int8" })
    t.equal(y:amax():item(), -127 * 127 * 4096)
    t.equal(y:amin():item(), -127 * 127 * 4096)
    local least = pg.full({ 5, 4096 }, -128, { dtype = "int8" })
    y = pg.quantized_linear(x, least, one, nil, pg.ones { 1 }, nil, { activations = "int8" })
    t.equal(y:amin():item(), -128 * 127 * 4096)
  end
end)

test("a NaN makes its row NaN, an infinity too where rows are scaled; zeros stay zeros", function(t)
  for _, rows in ipairs { 2, 130 } do
    for _, activations in ipairs { "floating", "int8", "uint8" } do
      local x = pg.zeros { rows, 64 }
      x[{ 2, 5 }] = 0 / 0
      local y = pg.quantized_linear(x, pg.full({ 3, 64 }, 100, { dtype = "int8" }), pg.ones { 3, 1 }, nil, nil, nil,
                                    { activations = activations })
      t.equal(y[1]:totable(), { 0, 0, 0 })
      t.ok(y[2]:isnan():all():item(), activations)
    end
  end
end)

test("the other instruction sets", function(t)
  if os.getenv "PERIGEE_CPU_ISA" then return end
  for _, isa in ipairs { "avx2", "avx512" } do
    local out, code = process.run("PERIGEE_CPU_ISA=" .. isa .. " " .. process.need_perigee(t) .. " test " ..
                                  debug.getinfo(1, "S").source:sub(2))
    t.equal(code, 0, out)
  end
end)
