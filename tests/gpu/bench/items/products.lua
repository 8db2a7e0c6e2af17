-- SPDX-License-Identifier: Apache-2.0
-- What the vendor's libraries compute, and attention. products.py has the same for PyTorch.

local pg = require "perigee"

return function(b)
  local rand, size, row = b.rand, b.size, b.row

  local function matmul(name, n, dtype)
    n = size(n)
    local x, y = b.randn({ n, n }, dtype), b.randn({ n, n }, dtype)
    row(name, "TFLOP/s", function() x:matmul(y):free() end, 2 * n ^ 3)
  end

  local function conv2d(name, dtype)
    local n, c, side = size(64), 64, b.side(56)
    local x, w, dy = b.randn({ n, c, side, side }, dtype, true), b.randn({ c, c, 3, 3 }, dtype, true),
                     rand({ n, c, side, side }, dtype)
    local operations = 2 * 9 * n * c * c * side * side
    row(name, "TFLOP/s", function()
      pg.no_grad(function() pg.conv2d(x, w, nil, { padding = 1 }):free() end)
    end, operations)
    row(name .. "_backward", "TFLOP/s", function()
      local dx, dw = pg.grad({ pg.conv2d(x, w, nil, { padding = 1 }) }, { x, w }, { grad_outputs = { dy } })
      dx:free()
      dw:free()
    end, 3 * operations)
  end

  -- GPT-2's: 12 heads of 64 over 1,024 positions. The masked half is not counted.
  local function attention(suffix, dtype)
    local n, heads, length, width = b.small and 1 or 8, 12, b.small and 16 or 1024, 64
    local shape = { n, heads, length, width }
    local q, k, v = b.randn(shape, dtype, true), b.randn(shape, dtype, true), b.randn(shape, dtype, true)
    local dy, operations = rand(shape, dtype), 2 * n * heads * length ^ 2 * width
    local function forward() return pg.scaled_dot_product_attention(q, k, v, { is_causal = true }) end
    row("attention" .. suffix, "TFLOP/s", function() pg.no_grad(function() forward():free() end) end, operations)
    row("attention" .. suffix .. "_backward", "TFLOP/s", function()
      for _, d in ipairs { pg.grad({ forward() }, { q, k, v }, { grad_outputs = { dy } }) } do d:free() end
    end, 3.5 * operations)
  end

  return {
    matmul = function()
      matmul("matmul_bf16_8192", 8192, "bfloat16")
      matmul("matmul_f16_8192", 8192, "float16")
      matmul("matmul_bf16_1024", 1024, "bfloat16")
      matmul("matmul_f32_4096", 4096, "float32")
    end,
    matmul_tf32 = function()
      b.with_tf32()
      matmul("matmul_tf32_4096", 4096, "float32")
    end,
    convolution = function()
      conv2d("conv2d_f32", "float32")
      conv2d("conv2d_bf16", "bfloat16")
    end,
    convolution_tf32 = function()
      b.with_tf32()
      conv2d("conv2d_tf32", "float32")
    end,
    attention = function()
      attention("_bf16", "bfloat16")
      attention("_f32", "float32")
    end,
  }
end
