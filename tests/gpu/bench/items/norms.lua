-- SPDX-License-Identifier: Apache-2.0
-- Norms and pooling, of the sizes of GPT-2 and of a ResNet's first layers. norms.py has the same for PyTorch.

local pg = require "perigee"

return function(b)
  local rand, size = b.rand, b.size

  local function layer_norm(suffix, dtype)
    local rows, width = size(16384), size(768)
    local x, w, bias = rand({ rows, width }, dtype, true), rand({ width }, dtype, true), rand({ width }, dtype, true)
    local dy, bytes = rand({ rows, width }, dtype), rows * width * (dtype == "float32" and 4 or 2)
    local function forward() return (pg.layer_norm(x, w, bias)) end
    b.row("layer_norm" .. suffix, "GB/s", function() pg.no_grad(function() forward():free() end) end, 2 * bytes)
    b.row("layer_norm" .. suffix .. "_backward", "GB/s", function()
      for _, d in ipairs { pg.grad({ forward() }, { x, w, bias }, { grad_outputs = { dy } }) } do d:free() end
    end, 5 * bytes)
  end

  local function norm_pool(suffix, dtype)
    local n, c, side = size(64), 64, b.side(56)
    local x, dy = rand({ n, c, side, side }, dtype, true), rand({ n, c, side, side }, dtype)
    local weight, bias, mean, var = rand({ c }, nil, true), rand({ c }, nil, true), rand { c }, rand { c }
    local function forward() return (pg.batch_norm(x, weight, bias, mean, var, { training = true })) end
    b.row("batch_norm" .. suffix, "ms", function() pg.no_grad(function() forward():free() end) end)
    b.row("batch_norm" .. suffix .. "_backward", "ms", function()
      for _, d in ipairs { pg.grad({ forward() }, { x, weight, bias }, { grad_outputs = { dy } }) } do d:free() end
    end)
    b.row("max_pool_3x3" .. suffix, "ms", function()
      pg.no_grad(function() (pg.max_pool2d(x, { kernel = 3, stride = 2, padding = 1 })):free() end)
    end)
    local pooled = rand({ n, c, side / 2, side / 2 }, dtype)
    b.row("avg_pool_2x2" .. suffix, "ms", function()
      pg.no_grad(function() pg.avg_pool2d(x, { kernel = 2 }):free() end)
    end)
    b.row("avg_pool_2x2" .. suffix .. "_backward", "ms", function()
      pg.grad({ pg.avg_pool2d(x, { kernel = 2 }) }, { x }, { grad_outputs = { pooled } }):free()
    end)
  end

  return {
    layer_norm = function()
      layer_norm("_f32", "float32")
      layer_norm("_bf16", "bfloat16")
    end,
    norm_pool = function()
      norm_pool("_f32", "float32")
      norm_pool("_bf16", "bfloat16")
    end,
  }
end
