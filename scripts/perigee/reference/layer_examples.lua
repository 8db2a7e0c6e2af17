-- SPDX-License-Identifier: Apache-2.0
-- Examples of layers whose arguments cannot be guessed: how one is made and what it is called with, or a program.

local INDEX = [[pg.tensor({{0, 1, 2}}, {dtype="int64"})]]
local list = {
  AlphaDropout = { "nn.AlphaDropout{0.1}", "pg.rand{2, 4}" },
  Bilinear = { "nn.Bilinear{4, 3, 2}", "pg.rand{5, 4}, pg.rand{5, 3}" },
  ChannelShuffle = { "nn.ChannelShuffle{2}", "pg.rand{1, 4, 3, 3}" },
  CosineSimilarity = { "nn.CosineSimilarity{axis=2}", "pg.rand{5, 4}, pg.rand{5, 4}" },
  Embedding = { "nn.Embedding{10, 4}", INDEX },
  EmbeddingBag = { [[nn.EmbeddingBag{10, 4, mode="sum"}]], INDEX },
  Fold = { "nn.Fold{{4, 4}, 2, stride=2}", "pg.rand{1, 12, 4}" },
  GRU = { nil, nil, "local gru = nn.GRU{4, 3, num_layers=2}\nlocal x = pg.rand{2, 5, 4}\nlocal y, h = gru(x)\n" ..
    "print(y.shape, h.shape)\ny, h = gru(x, {h0=h, lengths={5, 2}})\nprint(y[2])" },
  GRUCell = { "nn.GRUCell{4, 3}", "pg.rand{2, 4}" },
  LSTM = { nil, nil, "local lstm = nn.LSTM{4, 3, bidirectional=true}\nlocal x = pg.rand{2, 5, 4}\n" ..
    "local y, h, c = lstm(x)\nprint(y.shape, h.shape, c.shape)\ny, h, c = lstm(x, {h, c})" },
  LSTMCell = { nil, nil, "local cell, x = nn.LSTMCell{4, 3}, pg.rand{2, 5, 4}\nlocal h, c\n" ..
    "for step = 1, 5 do h, c = cell(x[{{}, step}], h, c) end\nprint(h.shape, c.shape)" },
  RNN = { nil, nil, "local rnn = nn.RNN{4, 3, nonlinearity=\"relu\"}\nlocal y, h = rnn(pg.rand{2, 5, 4})\n" ..
    "print(y.shape, h.shape)" },
  RNNCell = { "nn.RNNCell{4, 3}", "pg.rand{2, 4}" },
  Function = { "nn.Function(function(x) return x * 2 end)", "pg.rand{2, 4}" },
  ColumnLinear = { "nn.ColumnLinear{4, 8, group=pg.dist.group{0}}", "pg.rand{2, 4}" },
  RowLinear = { "nn.RowLinear{8, 4, group=pg.dist.group{0}}", "pg.rand{2, 8}" },
  ShardedEmbedding = { "nn.ShardedEmbedding{10, 4, group=pg.dist.group{0}}", INDEX },
  ShardedAttention = { "nn.ShardedAttention{8, 2, group=pg.dist.group{0}}", "pg.rand{2, 5, 8}" },
  ShardedDropout = { "nn.ShardedDropout{0.1, group=pg.dist.group{0}}", "pg.rand{2, 4}" },
  SyncBatchNorm = { "nn.SyncBatchNorm{4}", "pg.rand{2, 4, 5, 5}" },
  GroupNorm = { "nn.GroupNorm{2, 4}", "pg.rand{2, 4, 5, 5}" },
  InstanceNorm = { "nn.InstanceNorm{4}", "pg.rand{2, 4, 5, 5}" },
  LPPool1d = { "nn.LPPool1d{2, 3}", "pg.rand{2, 4, 9}" },
  LPPool2d = { "nn.LPPool2d{2, 3}", "pg.rand{2, 4, 9, 9}" },
  LocalResponseNorm = { "nn.LocalResponseNorm{3}", "pg.rand{2, 4, 5, 5}" },
  ModuleDict = { nil, nil, "local heads = nn.ModuleDict{a=nn.Linear{4, 2}, b=nn.Linear{4, 3}}\n" ..
    "print(heads.b(pg.rand{5, 4}).shape)" },
  ModuleList = { nil, nil, "local blocks = nn.ModuleList{nn.Linear{4, 4}, nn.Linear{4, 4}}\n" ..
    "local x = pg.rand{2, 4}\nfor i = 1, #blocks do x = blocks[i](x) end\nprint(x.shape)" },
  MultiheadAttention = { nil, nil, "local layer = nn.MultiheadAttention{8, 2}\nlocal x = pg.rand{2, 5, 8}\n" ..
    "local y, weights = layer(x, x, x, {need_weights=true})\nprint(y.shape, weights.shape)" },
  PairwiseDistance = { "nn.PairwiseDistance{}", "pg.rand{5, 4}, pg.rand{5, 4}" },
  Parameter = { nil, nil, "local scale = nn.Parameter(pg.ones{1})\nprint(scale)" },
  ParameterList = { nil, nil,
    "local weights = nn.ParameterList{nn.Parameter(pg.ones{2}), nn.Parameter(pg.zeros{3})}\n" ..
      "print(#weights, weights[2])" },
  PixelShuffle = { "nn.PixelShuffle{2}", "pg.rand{1, 8, 3, 3}" },
  PixelUnshuffle = { "nn.PixelUnshuffle{2}", "pg.rand{1, 2, 6, 6}" },
  RMSNorm = { "nn.RMSNorm{8}", "pg.rand{2, 5, 8}" },
  Reshape = { "nn.Reshape{2, -1}", "pg.rand{3, 8}" },
  RoPE = { "nn.RoPE{8}", "pg.rand{2, 2, 5, 8}" },
  Softmin = { "nn.Softmin{2}", "pg.rand{2, 4}" },
  Transformer = { "nn.Transformer{8, 2, 1, 1, 16}", "pg.rand{2, 5, 8}, pg.rand{2, 3, 8}" },
  TransformerDecoder = { "nn.TransformerDecoder{nn.TransformerDecoderLayer{8, 2, 16}, 2}",
                         "pg.rand{2, 3, 8}, pg.rand{2, 5, 8}" },
  TransformerDecoderLayer = { "nn.TransformerDecoderLayer{8, 2, 16}", "pg.rand{2, 3, 8}, pg.rand{2, 5, 8}" },
  TransformerEncoder = { "nn.TransformerEncoder{nn.TransformerEncoderLayer{8, 2, 16}, 2}", "pg.rand{2, 5, 8}" },
  TransformerEncoderLayer = { "nn.TransformerEncoderLayer{8, 2, 16}", "pg.rand{2, 5, 8}, {is_causal=true}" },
  Unflatten = { "nn.Unflatten{2, {2, 3}}", "pg.rand{4, 6}" },
  Unfold = { "nn.Unfold{2}", "pg.rand{1, 3, 4, 4}" },
  Upsample = { [[nn.Upsample{scale_factor=2, mode="bilinear"}]], "pg.rand{1, 3, 4, 4}" },
}

for axes = 1, 3 do
  local image = "pg.rand{2, 4" .. (", 5"):rep(axes) .. "}"
  for _, kind in ipairs { "Zero", "Reflection", "Replication", "Circular" } do
    local name = ("%sPad%dd"):format(kind, axes)
    list[name] = { ("nn.%s{1}"):format(name), image }
  end
  list[("ConstantPad%dd"):format(axes)] = { ("nn.ConstantPad%dd{1, 0.5}"):format(axes), image }
  list[("InstanceNorm%dd"):format(axes)] = { ("nn.InstanceNorm%dd{4}"):format(axes), image }
  list[("Dropout%dd"):format(axes)] = { ("nn.Dropout%dd{0.5}"):format(axes), image }
end

local CLASSES = { "pg.rand{4, 3}", [[pg.tensor({0, 2, 1, 0}, {dtype="int64"})]] }
local SIGNS = { "pg.rand{4}", "pg.tensor{1, -1, -1, 1}" }
local PROBABILITIES = { "pg.tensor{0.2, 0.9, 0.5}", "pg.tensor{0, 1, 1}" }
local VALUES = { "pg.tensor{1, 2, 4}", "pg.tensor{1, 3, 2}" }
local LOSSES = {
  BCELoss = PROBABILITIES, BCEWithLogitsLoss = PROBABILITIES, CrossEntropyLoss = CLASSES, FocalLoss = CLASSES,
  MultiMarginLoss = CLASSES, NLLLoss = { "pg.rand{4, 3}:log_softmax(2)", CLASSES[2] },
  GaussianNLLLoss = { VALUES[1], VALUES[2] .. ", pg.ones{3}" }, HingeEmbeddingLoss = SIGNS, HingeLoss = SIGNS,
  SoftMarginLoss = SIGNS, HuberLoss = VALUES, L1Loss = VALUES, MSELoss = VALUES, PoissonNLLLoss = VALUES,
  SmoothL1Loss = VALUES, KLDivLoss = { "pg.rand{2, 3}:log_softmax(2)", "pg.rand{2, 3}:softmax(2)" },
  MultiLabelSoftMarginLoss = { "pg.rand{2, 2}", "pg.tensor{{0, 1}, {1, 0}}" },
  CosineEmbeddingLoss = { "pg.rand{2, 3}", "pg.rand{2, 3}, pg.tensor{1, -1}" },
  MarginRankingLoss = { VALUES[1], VALUES[2] .. ", pg.tensor{1, -1, 1}" },
  TripletMarginLoss = { "pg.rand{2, 3}", "pg.rand{2, 3}, pg.rand{2, 3}" },
  CTCLoss = { "pg.rand{5, 1, 3}:log_softmax(3)", [[pg.tensor({{1, 2}}, {dtype="int64"}), {5}, {2}]] },
}
for name, inputs in pairs(LOSSES) do
  list[name] = { nil, nil, ("local loss = nn.%s{}\nprint(loss(%s, %s))"):format(name, inputs[1], inputs[2]) }
end

return list
