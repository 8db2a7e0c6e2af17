-- SPDX-License-Identifier: Apache-2.0
-- What users of PyTorch, numpy and Keras look for and this version has nothing for: such a name must not be answered
-- with a neighbour that does something else. Only asked for when a name was not found: a row that has become a real
-- name is never read.

local absent = {}

local LINALG = "inv pinv solve lstsq det slogdet qr svd svdvals eig eigh eigvals eigvalsh cholesky lu matrix_power " ..
  "matrix_rank matrix_exp cond multi_dot inv_ex solve_triangular"

local NAMES = {
  nn = "RNNBase RNNCellBase ParameterDict RReLU FeatureAlphaDropout " ..
    "MaxUnpool1d MaxUnpool2d MaxUnpool3d FractionalMaxPool2d FractionalMaxPool3d LPPool3d " ..
    "AdaptiveLogSoftmaxWithLoss MultiLabelMarginLoss TripletMarginWithDistanceLoss DataParallel " ..
    "DistributedDataParallel SimpleRNN Bidirectional TimeDistributed ConvLSTM2D",
  perigee = "fft dist distributed onnx quant quantization sparse distributions vmap func " ..
    "load_graph audio special stft istft inverse pinverse logdet " ..
    "triangular_solve cholesky_solve cholesky_inverse " .. LINALG,
  linalg = LINALG .. " cross vecdot tensorinv tensorsolve vander",
  optim = "ASGD SparseAdam Ftrl",
  tensor = "inverse pinverse logdet cholesky_inverse cholesky_solve stft istft to_sparse to_dense " .. LINALG,
  data = "cifar100 imagenet image ImageFolder IterableDataset Sampler " ..
    "WeightedRandomSampler random_split Subset ConcatDataset ChainDataset StackDataset",
}

-- What does the work meanwhile.
local WAYS = {
  nn = {
    ParameterDict = "nn.ParameterList{...}, or a class of your own with nn.Parameter fields",
    DataParallel = "the model runs on one device", DistributedDataParallel = "the model runs on one device",
    RNNBase = "nn.RNN, nn.LSTM, nn.GRU", RNNCellBase = "nn.RNNCell, nn.LSTMCell, nn.GRUCell",
    SimpleRNN = "nn.RNN{hidden_size}", Bidirectional = "nn.LSTM{hidden_size, bidirectional=true}",
  },
  data = { random_split = "x[{{1, n}}] and x[{{n + 1, -1}}]" },
}

local rows = {}
for kind, words in pairs(NAMES) do
  rows[kind] = {}
  for name in words:gmatch("%S+") do rows[kind][name] = true end
end

---Whether a name stands for something that is not in this version, and what may do instead.
---@param kind string? as of names/foreign.lua
---@param name any
---@return boolean
---@return string? way
function absent.find(kind, name)
  if not (rows[kind] and rows[kind][name]) then return false end
  return true, WAYS[kind] and WAYS[kind][name]
end

return absent
