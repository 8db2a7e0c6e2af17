-- SPDX-License-Identifier: Apache-2.0
-- The processor gives the same bits with any number of threads: loops may be shared out, sums keep their order. The
-- inputs are large enough to be shared out, and of sizes that no number of threads divides.

local pg = require "perigee"
local nn = pg.nn

pg.manual_seed(3)
local x, w = pg.randn { 300, 1001 }, pg.randn { 517, 1001 }
local images, filters = pg.randn { 4, 16, 61, 63 }, pg.randn { 24, 16, 3, 3 }
local batch = pg.randn { 6, 16, 97, 95 } -- whose images the threads share out
local biases = pg.randn { 24 }
local places, values = pg.randint(0, 300, { 200000 }), pg.randn { 200000 }
local labels = pg.randint(0, 1001, { 300 })
local heads = pg.randn { 2, 3, 301, 32 }

-- Gradients of f's result, squared and summed, by its arguments.
local function slopes(f, ...)
  local leaves = { ... }
  for i, leaf in ipairs(leaves) do leaves[i] = leaf:detach():clone():requires_grad_() end
  return { pg.grad(f(unpack(leaves)):pow(2):sum(), leaves) }
end

-- Bags of 20 rows, whose sums, and whose gradients, are dealt out.
local function bags(mode, dtype)
  local table_, index = x:narrow(2, 1, 37):to(dtype), places:reshape(10000, 20)
  local list = slopes(function(a) return pg.embedding_bag(a, index, { mode = mode }) end, table_)
  list[2] = pg.embedding_bag(table_, index, { mode = mode })
  return unpack(list)
end

local cases = {
  elementwise = function() return { x:gelu(), x:sin(), x:abs():pow(1.7), x * 3 + x, x:to("bfloat16"):exp() } end,
  reductions = function()
    return { x:sum(), x:sum { axis = 1 }, x:mean { axis = 2 }, images:var(), (x * 0.01 + 1):prod(), x:norm(),
             x:logsumexp { axis = 2 }, x:to("bfloat16"):sum(), x:argmax { axis = 1 } }
  end,
  rows = function() return { x:softmax(2), x:softmax(1), x:cumsum(1), x:cumsum(2), (x:sort(2)), (x:topk(5)) } end,
  norms = function()
    local layer = nn.BatchNorm2d { 16 }
    local list = slopes(function(a) return layer(a) end, images)
    list[2] = slopes(function(a) return pg.layer_norm(a, { 1001 }) end, x)[1]
    list[3] = slopes(function(a) return pg.group_norm(a, 4) end, images)[1]
    return list
  end,
  products = function()
    local list = { x:matmul(w:transpose(1, 2)), x:to("float64"):matmul(w:to("float64"):transpose(1, 2)) }
    -- Those of 16 bits are oneDNN's to share out where the processor has arithmetic for them: thread_bits_test has
    -- those.
    for _, slope in ipairs(slopes(pg.linear, x, w)) do list[#list + 1] = slope end
    return list
  end,
  convolutions = function()
    -- The weight's gradient of a batch that is not split is oneDNN's to share out: thread_bits_test has that.
    local list = slopes(function(a) return pg.conv2d(a, filters, nil, { padding = 1 }) end, images)
    list[2] = slopes(function(a) return pg.conv2d(a, filters:to("bfloat16"), nil, { padding = 1 }) end,
                     images:to("bfloat16"))[1]
    list[3] = slopes(function(a) return pg.conv2d(batch, a, nil, { padding = 1 }) end, filters)[1]
    for _, slope in ipairs(slopes(function(...) return pg.conv2d_activation(...) end, batch, filters, biases)) do
      list[#list + 1] = slope
    end
    return list
  end,
  windows = function()
    local list = slopes(function(a) return pg.max_pool2d(a, 3, { stride = 2, padding = 1 }) end, images)
    list[2] = slopes(function(a) return pg.avg_pool2d(a, 3, { stride = 2, padding = 1 }) end, images)[1]
    for _, mode in ipairs { "nearest", "bilinear", "bicubic" } do
      for _, factor in ipairs { 1.7, 0.4 } do
        list[#list + 1] = images:interpolate { scale_factor = factor, mode = mode }
        list[#list + 1] = slopes(function(a) return a:interpolate { scale_factor = factor, mode = mode } end, images)[1]
      end
    end
    return list
  end,
  ["writes at indices"] = function()
    return { pg.zeros { 300 }:index_add(1, places, values), places:bincount(), (places:unique()),
             slopes(function(a) return pg.embedding(a, places) end, x:narrow(2, 1, 3))[1] }
  end,
  ["bags of embeddings"] = function()
    local list = { bags("sum", "float32") }
    for _, mode in ipairs { "sum", "mean", "max" } do
      for _, dtype in ipairs { "float32", "float64", "bfloat16" } do
        list[#list + 1], list[#list + 2] = bags(mode, dtype)
      end
    end
    local weights = values:abs():reshape(10000, 20)
    for _, slope in ipairs(slopes(function(a, b)
      return pg.embedding_bag(a, places:reshape(10000, 20), { mode = "sum", per_sample_weights = b })
    end, x:narrow(2, 1, 37), weights)) do
      list[#list + 1] = slope
    end
    return list
  end,
  ["attention and losses"] = function()
    return { slopes(function(a) return pg.scaled_dot_product_attention(a, a, a, { is_causal = true }) end, heads)[1],
             slopes(function(a) return nn.cross_entropy(a, labels) end, x)[1] }
  end,
}

for name, make in pairs(cases) do
  test("any number of threads gives the same bits: " .. name, function(t)
    if t.device and t.device ~= "cpu" then t.skip("of the processor's kernels") end
    local before, expected = pg.config.get().threads, nil
    local ok, problem = pcall(function()
      for _, threads in ipairs { 1, 2, 3 } do
        pg.config.set { threads = threads }
        local results = make()
        expected = expected or results
        for i, y in ipairs(results) do
          local same = y:eq(expected[i]):logical_or(y:ne(y)):all():item()
          t.ok(same, ("result %d differs with %d threads"):format(i, threads))
        end
      end
    end)
    pg.config.set { threads = before }
    if not ok then error(problem, 0) end
  end)
end
