-- SPDX-License-Identifier: Apache-2.0
-- What moves bytes: launches, copies, elementwise, reductions, softmax, an optimizer. kernels.py is PyTorch's half.

local pg = require "perigee"

return function(b)
  local rand, size, row = b.rand, b.size, b.row

  local function both_ways(name, bytes, x, fn)
    row(name, "GB/s", function() pg.no_grad(function() fn(x):free() end) end, 2 * bytes)
    local dy = rand(x.shape, x.dtype)
    row(name .. "_backward", "GB/s", function()
      pg.grad({ fn(x) }, { x }, { grad_outputs = { dy } }):free()
    end, 5 * bytes) -- forward: read, write; back: two read, one written
  end

  return {
    launch = function()
      local a, c, recorded = rand { 4 }, rand { 4 }, rand({ 4 }, nil, true)
      b.launches("launch_add", function() local _ = a + c end)
      b.launches("launch_add_recorded", function() local _ = recorded + c end)
    end,
    copies = function()
      local n = size(2 ^ 26)
      local here = pg.device("cpu", function() return pg.rand { n } end)
      local function copied(x, to) return x.device == to and x:clone() or x:to(to) end -- on the CPU, in rehearsals
      local there = copied(here, b.device)
      row("copy_to_device", "GB/s", function() copied(here, b.device):free() end, 4 * n)
      row("copy_to_host", "GB/s", function() copied(there, "cpu"):free() end, 4 * n)
      row("copy_on_device", "GB/s", function() there:clone():free() end, 8 * n)
      row("copy_transposed", "GB/s", function() there:reshape(-1, 4):t():contiguous():free() end, 8 * n)
      local side = math.floor(math.sqrt(n))
      local square = rand { side, side }
      row("copy_square_transposed", "GB/s", function() square:t():contiguous():free() end, 8 * side * side)
    end,
    elementwise = function()
      local n = size(2 ^ 26)
      local x, y = rand { n }, rand { n }
      row("add_64m", "GB/s", function() (x + y):free() end, 12 * n)
      row("gelu_64m", "GB/s", function() x:gelu():free() end, 8 * n)
      row("relu_64m", "GB/s", function() x:relu():free() end, 8 * n)
      local lines, line = x:reshape(-1, 4), rand { 4 }
      row("add_row_64m", "GB/s", function() (lines + line):free() end, 8 * n)
      row("rand_64m", "GB/s", function() pg.rand({ n }, { device = b.device }):free() end, 4 * n)
      local half = x:to("bfloat16")
      row("gelu_bf16_64m", "GB/s", function() half:gelu():free() end, 4 * n)
      row("chain_bf16_64m", "GB/s", function() ((half * 2 + 1):relu() * half):free() end, 4 * n)
    end,
    reductions = function()
      local side = size(8192)
      local x = rand { side, side }
      local bytes = 4 * side * side
      row("sum_all", "GB/s", function() x:sum():free() end, bytes)
      row("sum_rows", "GB/s", function() x:sum(2):free() end, bytes)
      row("sum_columns", "GB/s", function() x:sum(1):free() end, bytes)
      row("amax_rows", "GB/s", function() x:amax(2):free() end, bytes)
      row("var_rows", "GB/s", function() x:var { axis = 2 }:free() end, bytes)
    end,
    softmax = function()
      local lines, width = size(4096), b.small and 257 or 50257
      for _, dtype in ipairs { "float32", "bfloat16" } do
        local x = rand({ lines, width }, dtype, true)
        local bytes = lines * width * (dtype == "float32" and 4 or 2)
        local suffix = dtype == "float32" and "_f32" or "_bf16"
        both_ways("softmax_50257" .. suffix, bytes, x, function(v) return v:softmax { axis = 2 } end)
        local labels = b.classes(width, lines)
        row("cross_entropy_50257" .. suffix, "GB/s", function()
          pg.grad({ pg.cross_entropy(x, labels) }, { x }):free()
        end, 3 * bytes)
      end
    end,
    adam = function()
      local n = math.floor(size(25e6) / 10)
      local parts = {}
      for i = 1, 10 do
        parts[i] = rand({ n }, nil, true)
        parts[i].grad = rand { n }
      end
      local optimizer = pg.optim.Adam { parts, lr = 1e-3 }
      row("adam_25m", "GB/s", function() optimizer:step() end, 280 * n)
    end,
  }
end
