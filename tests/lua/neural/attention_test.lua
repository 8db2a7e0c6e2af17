-- SPDX-License-Identifier: Apache-2.0
-- scaled_dot_product_attention as scripts call it; its numbers are checked from tests/cases.

local pg = require "perigee"
local nn = pg.nn

local function near(t, a, b) t.ok(pg.allclose(a, b, { rtol = 1e-5, atol = 1e-6 }), "the results differ") end

test("grouped queries share keys and values", function(t)
  local q, k, v = pg.randn { 2, 8, 5, 4 }, pg.randn { 2, 2, 7, 4 }, pg.randn { 2, 2, 7, 3 }
  local wide_k, wide_v = k:repeat_interleave { 4, axis = 2 }, v:repeat_interleave { 4, axis = 2 }
  for _, mask in ipairs { false, pg.randn { 2, 8, 5, 7 }, pg.randn { 2, 1, 5, 7 }, pg.randn { 5, 7 } } do
    local m = mask or nil
    near(t, pg.scaled_dot_product_attention(q, k, v, { attn_mask = m, enable_gqa = true }),
         pg.scaled_dot_product_attention(q, wide_k, wide_v, { attn_mask = m }))
  end
  t.raises(function() pg.scaled_dot_product_attention(q, k, v) end, "need enable_gqa=true")
  t.raises(function() pg.scaled_dot_product_attention(q, pg.randn { 2, 3, 7, 4 }, v, { enable_gqa = true }) end,
           "must be a multiple")
end)

test("leading axes broadcast", function(t)
  local q, k = pg.randn { 3, 1, 4, 2 }, pg.randn { 5, 6, 2 }
  t.equal(pg.scaled_dot_product_attention(q, k, k).shape, { 3, 5, 4, 2 })
end)

test("dropout drops weights: the same ones in both directions, others at the next call", function(t)
  local q, k = pg.randn { 2, 30, 4 }, pg.randn { 2, 70, 4 }
  local v = pg.eye(70):expand { 2, 70, 70 } -- so that the result shows the weights
  local plain = pg.scaled_dot_product_attention(q, k, v)
  pg.manual_seed(3)
  local some = pg.scaled_dot_product_attention(q, k, v, { dropout_p = 0.4 })
  local kept = some:ne(0)
  local share = kept:to("float32"):mean():item()
  t.ok(math.abs(share - 0.6) < 0.05, "share kept is " .. share)
  near(t, some, pg.where(kept, plain / 0.6, 0))
  t.ok(not pg.allclose(some, pg.scaled_dot_product_attention(q, k, v, { dropout_p = 0.4 })), "the same weights again")
  local leaf = v:clone():requires_grad_()
  pg.manual_seed(3)
  pg.scaled_dot_product_attention(q, k, leaf, { dropout_p = 0.4 }):sum():backward()
  near(t, leaf.grad, some:sum(2):unsqueeze(3):expand { 2, 70, 70 })
  t.raises(function() pg.scaled_dot_product_attention(q, k, v, { dropout_p = 2 }) end, "expected 0 to 1")
end)

-- Where a device computes them in another kernel: by what float32 gives on the CPU. Parts of one projection, of odd
-- lengths, at addresses that are not aligned, and alone.
-- Batch, heads, queries, keys, widths of keys and values.
local SHAPES = { { 2, 3, 37, 37, 16, 16 }, { 1, 2, 64, 100, 64, 32 }, { 2, 1, 1, 130, 8, 24 }, { 1, 1, 70, 3, 128, 8 },
                 { 2, 2, 9, 5, 20, 20 }, { 1, 2, 65, 97, 7, 5 } }
test("16-bit floats, with their gradients", function(t)
  for _, dtype in ipairs { "float16", "bfloat16" } do
    local allowed = dtype == "float16" and 4e-3 or 3e-2
    for _, s in ipairs(SHAPES) do
      local n, heads, queries, keys, width, values = unpack(s)
      for _, causal in ipairs { false, true } do
        for offset = 0, 1 do
          local all = {}
          for i, size in ipairs { { queries, width }, { keys, width }, { keys, values } } do
            local flat = pg.randn({ n * size[1] * heads * size[2] + offset }):to(dtype)
            all[i] = flat[{ { 1 + offset, -1 } }]:reshape(n, size[1], heads, size[2]):transpose(2, 3)
          end
          local options = { is_causal = causal, scale = offset == 1 and 0.3 or nil }
          local function run(inputs)
            for i, x in ipairs(inputs) do inputs[i] = x:detach():requires_grad_() end
            local y = pg.scaled_dot_product_attention(inputs[1], inputs[2], inputs[3], options)
            return { y, pg.grad((y:to("float32") ^ 2):sum(), inputs) }
          end
          local wide = {}
          for i, x in ipairs(all) do wide[i] = x:cpu():to("float32") end
          local got, expected = run(all), pg.device("cpu", function() return run(wide) end)
          for i, x in ipairs(got) do
            t.equal(x.dtype, dtype)
            local off = (x:cpu():to("float32") - expected[i]):abs():amax():item()
            local most = expected[i]:abs():amax():item()
            local what = ("%s {%s} causal %s offset %d"):format(dtype, table.concat(s, ", "), tostring(causal), offset)
            t.ok(off <= allowed * math.max(most, 0.1), ("%s, result %d: off by %g of %g"):format(what, i, off, most))
          end
        end
      end
    end
  end
end)

test("memory is linear in the sequence", function(t)
  pg.device("cpu", function() -- whose kernel it is about
    local q = pg.randn { 1, 1, 20000, 2 }
    local before = pg.memory.stats("cpu").peak
    q:scaled_dot_product_attention(q, q, { is_causal = true })
    t.ok(pg.memory.stats("cpu").peak - before < 64e6, "the scores alone are 1.6 GB")
  end)
end)

test("a mask that learns, twice differentiated", function(t)
  pg.manual_seed(4)
  local function made(...) return pg.randn({ ... }, { dtype = "float64" }):requires_grad_() end
  for _, shape in ipairs { { 2, 3, 4 }, { 3, 4 }, { 4 } } do
    local inputs = { made(2, 3, 5), made(2, 4, 5), made(2, 4, 6), made(unpack(shape)) }
    local function second(fn)
      local g = { pg.grad(fn(unpack(inputs)):sin():sum(), inputs, { create_graph = true }) }
      local sum = 0
      for _, d in ipairs(g) do sum = sum + d:square():sum() end
      return { pg.grad(sum, inputs) }
    end
    local fused = second(function(q, k, v, m) return pg.scaled_dot_product_attention(q, k, v, { attn_mask = m }) end)
    local composed = second(function(q, k, v, m)
      return (q:matmul(k:transpose(2, 3)) / math.sqrt(5) + m):softmax(-1):matmul(v)
    end)
    for i = 1, 4 do near(t, fused[i], composed[i]) end
  end
end)

-- y and the weights, by either way: with and without need_weights.
local function both(layer, x, o)
  local y = layer(x, x, x, o)
  local with = { need_weights = true, average_attn_weights = false }
  for name, v in pairs(o) do with[name] = v end
  local same, weights = layer(x, x, x, with)
  return y, same, weights
end

test("is_causal leaves added keys in sight", function(t)
  for i = 1, 3 do
    local layer = nn.MultiheadAttention { 4, 2, add_bias_kv = i ~= 2, add_zero_attn = i ~= 1 }
    local x = pg.randn { 2, 3, 4 }
    local later = pg.ones({ 3, 3 }, { dtype = "bool" }):triu(1)
    local y, same, weights = both(layer, x, { is_causal = true })
    local want, _, wanted = both(layer, x, { attn_mask = later })
    near(t, y, want)
    near(t, same, want)
    near(t, weights, wanted)
    local added = pg.randn { 3, 3 }
    y = both(layer, x, { is_causal = true, attn_mask = added })
    near(t, y, (both(layer, x, { attn_mask = pg.where(later, -math.huge, added) })))
  end
end)

test("masks of attention layers", function(t)
  local layer, x = nn.MultiheadAttention { 4, 2 }, pg.randn { 2, 4 }
  local _, _, weights = both(layer, x, { key_padding_mask = pg.tensor { false, true } })
  t.equal(weights:select(3, 2), { { 0, 0 }, { 0, 0 } })
  -- a query that may see nothing gets 0, whoever looks
  local y, same
  y, same, weights = both(layer, x, { attn_mask = pg.tensor { { true, true }, { false, true } } })
  near(t, y, same)
  t.equal(weights, { { { 0, 0 }, { 1, 0 } }, { { 0, 0 }, { 1, 0 } } })
  local leaf = pg.randn({ 2, 4 }, { requires_grad = true })
  select(2, layer(leaf, leaf, leaf, { attn_mask = pg.tensor { { true, true }, { false, true } }, need_weights = true }))
    :sum():backward()
  t.ok(leaf.grad:isfinite():all():item())
  local z = pg.randn { 2, 3, 4 }
  local function refused(o, message) t.raises(function() layer(z, z, z, o) end, message) end
  refused({ key_padding_mask = pg.tensor { false, true } }, "key_padding_mask is {2}; expected {2, 3}")
  refused({ key_padding_mask = pg.zeros({ 1, 3 }, { dtype = "bool" }) }, "key_padding_mask is {1, 3}; expected {2, 3}")
  refused({ key_padding_mask = pg.zeros({ 2, 3 }, { dtype = "int64" }) }, "key_padding_mask is int64; expected bool")
  refused({ attn_mask = pg.zeros { 3 } }, "attn_mask is {3}; expected {3, 3} or {4, 3, 3}")
  refused({ attn_mask = { { 1 } } }, "attn_mask must be a tensor, got a table")
  refused(pg.ones { 3, 3 }, "options must be a table, got tensor")
  t.raises(function() layer(z, z[{ { 1, 1 } }]) end, "expected one batch, and as many values as keys")
  t.raises(function() layer(z, z, z[{ {}, { 1, 2 } }]) end, "as many values as keys")
  t.raises(function() layer { 1 } end, "query must be a tensor, got a table")
  t.raises(function() nn.RoPE { 4 } (z, z) end, "positions must be integers, got float32")
  t.raises(function() nn.RoPE { 4 } (z, {}) end, "offset must be a number or a tensor of positions")
  t.raises(function() nn.TransformerDecoderLayer { 4, 2, 8 } (z) end, "memory must be a tensor, got nil")
  t.raises(function() nn.Transformer { 4, 2, 1, 1, feedforward = 8 } (z) end, "target must be a tensor, got nil")
end)

test("attention of nothing", function(t)
  local layer = nn.TransformerEncoderLayer { 4, 2, 8 }
  for _, shape in ipairs { { 0, 3, 4 }, { 2, 0, 4 } } do
    local x = pg.zeros(shape, { requires_grad = true })
    local y = layer(x)
    t.equal(y.shape, shape)
    y:sum():backward()
    t.equal(x.grad.shape, shape)
    t.ok(layer.self_attn.in_proj_weight.grad:eq(0):all():item())
  end
end)

test("the mask of is_causal is made once for all heads", function(t)
  local device = pg.device() ~= "cpu" and pg.device() or "sim:0"
  pg.device(device, function()
    local heads, n = 256, 64
    local q = pg.randn { heads, n, 4 }
    local function peak(options)
      for _ = 1, 2 do
        q:scaled_dot_product_attention(q, q, options):free()
        pg.synchronize()
      end
      return pg.memory.stats(device).peak
    end
    local without, scores = peak {}, heads * n * n * 4
    local more = peak { is_causal = true } - without
    t.ok(more < 1.5 * scores, ("%d bytes more than without a mask; the scores have %d"):format(more, scores))
  end)
end)

test("scores of 16-bit floats are not rounded to 16 bits", function(t)
  -- 300 and 301 are one number in bfloat16; the weights tell them apart.
  for _, dtype in ipairs { "float16", "bfloat16" } do
    local q = pg.tensor({ { 16, 1 } }):to(dtype)
    local k = pg.tensor({ { 18.75, 0 }, { 18.75, 1 } }):to(dtype)
    local out = q:scaled_dot_product_attention(k, pg.eye(2):to(dtype), { scale = 1 }):to("float32")
    t.ok(pg.allclose(out, pg.tensor { { 1 / (1 + math.exp(1)), 1 / (1 + math.exp(-1)) } }, { rtol = 0.01 }),
         "the weights are " .. tostring(out))
  end
end)

-- Inputs whose heads lie between rows, made on the CPU: results and gradients of the sum of their sines.
local function computed(device, dtype, length, options)
  pg.manual_seed(5)
  local function made(...) return pg.device("cpu", pg.randn, { ... }):to(dtype) end
  local x, y, mask = made(3, length, 6, 2), made(3, 6, length, 2), made(6, 1, length)
  return pg.device(device, function()
    local q, v = x:to(device):transpose(2, 3):requires_grad_(), y:to(device):requires_grad_()
    pg.manual_seed(9)
    if options.attn_mask then options = { attn_mask = mask:to(device), dropout_p = options.dropout_p } end
    local out = q:scaled_dot_product_attention(q, v, options)
    local list = { out, pg.grad(out:to("float32"):sin():sum(), { q, v }) }
    for i, result in ipairs(list) do list[i] = result:to("float32"):cpu() end
    return list
  end)
end

test("devices compute the same attention and drop the same weights", function(t)
  local device = pg.device() ~= "cpu" and pg.device() or "sim:0"
  -- More scores than a GPU's kernel keeps at a time; a device without one would keep them all.
  local lengths = device:find "^sim" and { 33 } or { 33, 1024 }
  for _, length in ipairs(lengths) do
    for dtype, tolerance in pairs { float32 = 1e-5, bfloat16 = 2e-2 } do
      for _, options in ipairs { { is_causal = true, dropout_p = 0.3 }, { attn_mask = true, dropout_p = 0.3 } } do
        local expected, got = computed("cpu", dtype, length, options), computed(device, dtype, length, options)
        for i, want in ipairs(expected) do
          t.ok(pg.allclose(got[i], want, { rtol = tolerance, atol = tolerance }),
               ("%s, length %d, result %d: %g off"):format(dtype, length, i, (got[i] - want):abs():max():item()))
        end
      end
    end
  end
end)
