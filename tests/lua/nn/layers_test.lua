-- SPDX-License-Identifier: Apache-2.0
-- Layers and losses with PyTorch's weights give PyTorch's outputs and gradients (tests/layers: where they are from).

local pg = require "perigee"
local nn = pg.nn

local here = debug.getinfo(1, "S").source:match("^@(.*)lua/[^/]*/[^/]*$") or "tests/"
local fixtures = pg.load(here .. "layers/fixtures.safetensors")

local SEQUENCE_FIRST = { batch_first = false }

-- A layer, and how it is called with the case's inputs.
local function attention(options, call)
  options[1], options[2] = 8, 2
  return { function() return nn.MultiheadAttention(options) end, call or function(l, x) return l(x) end }
end
local function masked(l, x, mask) return l(x, x, x, { attn_mask = mask }) end
local function block(class, options)
  options[1], options[2], options[3], options.dropout = 8, 2, 12, 0
  return function() return class(options) end
end
local function loss(name, options)
  return { function() return nn.Identity {} end, function(_, x, y) return nn[name](x, y, options) end }
end
local steps = pg.arange(1, 7, 1, { dtype = "float64" }) / 4

local cases = {
  mha_self = attention {}, mha_flat = attention {}, mha_sequence_first = attention(SEQUENCE_FIRST),
  mha_causal = attention({}, function(l, x) return l(x, x, x, { is_causal = true }) end),
  mha_masks = attention({}, function(l, x, mask, padding)
    return l(x, x, x, { attn_mask = mask, key_padding_mask = padding })
  end),
  mha_added = attention({ bias = false }, masked),
  mha_cross = attention({ kdim = 6, vdim = 3 }, function(l, q, k, v) return l(q, k, v, { need_weights = true }) end),
  mha_bias_kv = attention({ add_bias_kv = true, add_zero_attn = true }, function(l, q, k, mask)
    return l(q, k, k, { attn_mask = mask, need_weights = true, average_attn_weights = false })
  end),
  encoder_layer = { block(nn.TransformerEncoderLayer, {}), function(l, x, padding)
    return l(x, { key_padding_mask = padding })
  end },
  encoder_layer_pre = { block(nn.TransformerEncoderLayer, { activation = "gelu", norm_first = true }),
                        function(l, x, mask) return l(x, { mask = mask }) end },
  decoder_layer = { block(nn.TransformerDecoderLayer, {}) },
  decoder_layer_pre = { block(nn.TransformerDecoderLayer, { norm_first = true }), function(l, x, y, mask)
    return l(x, y, { mask = mask })
  end },
  encoder = { function()
    return nn.TransformerEncoder { block(nn.TransformerEncoderLayer, {})(), 2, norm = nn.LayerNorm { { 8 } } }
  end },
  decoder = { function() return nn.TransformerDecoder { block(nn.TransformerDecoderLayer, {})(), 2 } end },
  transformer = { function() return nn.Transformer { 8, 2, 1, 1, 12, dropout = 0 } end },
  layer_norm = { function() return nn.LayerNorm { { 4, 5 } } end },
  group_norm = { function() return nn.GroupNorm { 2, 6 } end },
  group_norm_one = { function() return nn.GroupNorm { 1, 6, affine = false } end },
  instance_norm1d = { function() return nn.InstanceNorm1d { 6, affine = true } end },
  instance_norm2d = { function() return nn.InstanceNorm2d { 6, affine = true, track_running_stats = true } end },
  batch_norm3d = { function() return nn.BatchNorm3d { 2 } end },
  bilinear = { function() return nn.Bilinear { 3, 4, 2 } end },
  bag_mean = { function() return nn.EmbeddingBag { 5, 3 } end },
  bag_sum = { function() return nn.EmbeddingBag { 5, 3, mode = "sum" } end },
  bag_max = { function() return nn.EmbeddingBag { 5, 3, mode = "max" } end },
  bag_padded = { function() return nn.EmbeddingBag { 5, 3, padding_idx = 0 } end },
  bag_weighted = { function() return nn.EmbeddingBag { 5, 3, mode = "sum" } end,
                   function(l, i, w) return l(i, nil, w) end },
  cosine_similarity = { function() return nn.CosineSimilarity {} end },
  pairwise_distance = { function() return nn.PairwiseDistance { 3, keepdim = true } end },
  multi_margin = loss("multi_margin", { weight = steps, margin = 0.7 }),
  multi_margin2 = loss("multi_margin", { p = 2, reduction = "none" }),
  multilabel_soft_margin = loss("multilabel_soft_margin"),
  multilabel_soft_margin_sum = loss("multilabel_soft_margin", { reduction = "sum", weight = steps }),
}

-- The fixtures of a case by kind: state, in, out, seed, grad, din, after.
local by_case = {}
for name, t in pairs(fixtures) do
  local case, kind, key = name:match("^([^/]*)/([^/]*)/(.*)$")
  by_case[case] = by_case[case] or { state = {}, out = {}, grad = {}, din = {}, seed = {}, after = {}, ["in"] = {} }
  by_case[case][kind][tonumber(key) and tonumber(key) + 1 or key] = t
end

local function compare(what, got, want)
  if not got then error(what .. " is missing", 0) end
  if got.shape ~= want.shape then
    error(("%s is %s, expected %s"):format(what, tostring(got.shape), tostring(want.shape)), 0)
  end
  local off = got:numel() > 0 and (got - want):abs():max():item() or 0
  if off > 1e-9 * (1 + want:abs():max():item()) or off ~= off then
    error(("%s is off by %g"):format(what, off), 0)
  end
end

local function run(case, row)
  local layer = row[1]():to("float64")
  layer:load_state(case.state)
  local inputs = {}
  for i, x in ipairs(case["in"]) do
    inputs[i] = x:clone()
    inputs[i].requires_grad = x.dtype == "float64"
  end
  local outputs = { (row[2] or function(l, ...) return l(...) end)(layer, unpack(inputs)) }
  assert(#outputs == #case.out, "the number of outputs")
  local total
  for i, y in ipairs(outputs) do
    compare("output " .. i, y, case.out[i])
    local term = (y * case.seed[i]):sum()
    total = total and total + term or term
  end
  total:backward()
  for name, p in layer:named_parameters() do compare("gradient of " .. name, p.grad, case.grad[name]) end
  for i, want in pairs(case.din) do compare("gradient of input " .. i, inputs[i].grad, want) end
  for name, want in pairs(case.after) do compare(name, layer[name], want) end
end

for name, case in pairs(by_case) do
  test("layers/" .. name, function() run(case, assert(cases[name], "no row")) end)
end
test("layers: every row has a fixture", function(t)
  for name in pairs(cases) do t.ok(by_case[name], name) end
end)
