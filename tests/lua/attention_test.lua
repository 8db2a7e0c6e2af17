-- SPDX-License-Identifier: Apache-2.0
-- scaled_dot_product_attention as scripts call it; its numbers are checked from tests/cases.

local pg = require "perigee"

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

test("memory is linear in the sequence", function(t)
  pg.device("cpu", function() -- whose kernel it is about
    local q = pg.randn { 1, 1, 20000, 2 }
    local before = pg.memory.stats("cpu").peak
    q:scaled_dot_product_attention(q, q, { is_causal = true })
    t.ok(pg.memory.stats("cpu").peak - before < 64e6, "the scores alone are 1.6 GB")
  end)
end)
