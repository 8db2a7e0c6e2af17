---@meta _
-- SPDX-License-Identifier: Apache-2.0
-- Made by scripts/dev/docs. Editors complete `require "perigee"` from it: put its folder into Lua.workspace.library.

---@class perigee.nn
local nn = {}

---The mean of each of `size` windows that share each axis evenly; size 1 is the mean over the whole. [N, C, ...] to [N,
---C, size...], N may be missing. Window i of n covers an axis of s elements from floor(i s / n) to ceil((i + 1) s / n),
---i from 0, the end excluded.
---@param options? integer|integer[]|{size: integer|integer[]} # size
---@param ... any
---@return perigee.Layer
function nn.AdaptiveAvgPool1d(options, ...) end

---The mean of each of `size` windows that share each axis evenly; size 1 is the mean over the whole. [N, C, ...] to [N,
---C, size...], N may be missing. Window i of n covers an axis of s elements from floor(i s / n) to ceil((i + 1) s / n),
---i from 0, the end excluded.
---@param options? integer|integer[]|{size: integer|integer[]} # size
---@param ... any
---@return perigee.Layer
function nn.AdaptiveAvgPool2d(options, ...) end

---The mean of each of `size` windows that share each axis evenly; size 1 is the mean over the whole. [N, C, ...] to [N,
---C, size...], N may be missing. Window i of n covers an axis of s elements from floor(i s / n) to ceil((i + 1) s / n),
---i from 0, the end excluded.
---@param options? integer|integer[]|{size: integer|integer[]} # size
---@param ... any
---@return perigee.Layer
function nn.AdaptiveAvgPool3d(options, ...) end

---The largest value of each of `size` windows that share each axis evenly. [N, C, ...] to [N, C, size...], N may be
---missing. Window i of n covers an axis of s elements from floor(i s / n) to ceil((i + 1) s / n), i from 0, the end
---excluded.
---@param options? integer|integer[]|{size: integer|integer[], return_indices?: boolean} # size, return_indices=false
---@param ... any
---@return perigee.Layer
function nn.AdaptiveMaxPool1d(options, ...) end

---The largest value of each of `size` windows that share each axis evenly. [N, C, ...] to [N, C, size...], N may be
---missing. Window i of n covers an axis of s elements from floor(i s / n) to ceil((i + 1) s / n), i from 0, the end
---excluded.
---@param options? integer|integer[]|{size: integer|integer[], return_indices?: boolean} # size, return_indices=false
---@param ... any
---@return perigee.Layer
function nn.AdaptiveMaxPool2d(options, ...) end

---The largest value of each of `size` windows that share each axis evenly. [N, C, ...] to [N, C, size...], N may be
---missing. Window i of n covers an axis of s elements from floor(i s / n) to ceil((i + 1) s / n), i from 0, the end
---excluded.
---@param options? integer|integer[]|{size: integer|integer[], return_indices?: boolean} # size, return_indices=false
---@param ... any
---@return perigee.Layer
function nn.AdaptiveMaxPool3d(options, ...) end

---Dropout for SELU networks, which keeps mean 0 and variance 1 (Klambauer et al., 2017): while training, an element
---becomes s = -1.7581, SELU's limit for x to -inf, with probability p; then all are scaled and shifted, a x + b with
---a = ((1 - p) (1 + p s^2))^(-1/2) and b = -a p s.
---@param options? number|{p?: number} # p=0.5
---@return perigee.Layer
function nn.AlphaDropout(options) end

---The mean of each window: [N, C, L] to [N, C, L']; N may be missing. Each axis becomes floor((size + 2 padding -
---kernel) / stride) + 1 long, rounded up with ceil_mode.
---@param options? integer|integer[]|{kernel: integer|integer[], stride?: integer|integer[], padding?: integer|integer[], ceil_mode?: boolean, count_include_pad?: boolean, divisor_override?: integer} # kernel, stride, padding={0}, ceil_mode=false, count_include_pad=true, divisor_override=0
---@param ... any
---@return perigee.Layer
function nn.AvgPool1d(options, ...) end

---The mean of each window: [N, C, H, W] to [N, C, H', W']; N may be missing. Each axis becomes floor((size + 2 padding
--- - kernel) / stride) + 1 long, rounded up with ceil_mode.
---@param options? integer|integer[]|{kernel: integer|integer[], stride?: integer|integer[], padding?: integer|integer[], ceil_mode?: boolean, count_include_pad?: boolean, divisor_override?: integer} # kernel, stride, padding={0, 0}, ceil_mode=false, count_include_pad=true, divisor_override=0
---@param ... any
---@return perigee.Layer
function nn.AvgPool2d(options, ...) end

---The mean of each window: [N, C, D, H, W] to [N, C, D', H', W']; N may be missing. Each axis becomes floor((size + 2
---padding - kernel) / stride) + 1 long, rounded up with ceil_mode.
---@param options? integer|integer[]|{kernel: integer|integer[], stride?: integer|integer[], padding?: integer|integer[], ceil_mode?: boolean, count_include_pad?: boolean, divisor_override?: integer} # kernel, stride, padding={0, 0, 0}, ceil_mode=false, count_include_pad=true, divisor_override=0
---@param ... any
---@return perigee.Layer
function nn.AvgPool3d(options, ...) end

---Binary cross entropy of probabilities p in [0, 1], in the shape of y: -(y log(p) + (1 - y) log(1 - p)), logarithms
---being -100 at least. A p outside is an error that names it. The gradient (p - y) / (p (1 - p)) is divided by 1e-12 at
---least, so that it is finite where p is 0 or 1 (float16: by 2^-15).
---`nn.bce` as a layer, which remembers its options: layer(p, y).
---@param options? {reduction?: "mean"|"sum"|"none", weight?: perigee.Tensor} # reduction=mean, weight
---@return perigee.Layer
function nn.BCELoss(options) end

---Binary cross entropy of logits x in the shape of y: -(pos_weight y log(s) + (1 - y) log(1 - s)) with s = sigmoid(x),
---safe for any size of x.
---`nn.bce_with_logits` as a layer, which remembers its options: layer(x, y).
---@param options? {pos_weight?: perigee.Tensor, reduction?: "mean"|"sum"|"none", weight?: perigee.Tensor} # pos_weight, reduction=mean, weight
---@return perigee.Layer
function nn.BCEWithLogitsLoss(options) end

---Normalises each channel of [N, C] or [N, C, L] over the batch, in the same shape (Ioffe and Szegedy, 2015): (x -
---mean) / sqrt(var + eps) * weight + bias. While training, mean and biased variance are those of the batch, and running
---= (1 - momentum) running + momentum batch, with the unbiased variance.
---@param options? integer|{features: integer, eps?: number, momentum?: number, affine?: boolean, track_running_stats?: boolean, activation?: "none"|"relu"} # features, eps=1e-05, momentum=0.1, affine=true, track_running_stats=true, activation=none
---@param ... any
---@return perigee.nn.BatchNorm1d
function nn.BatchNorm1d(options, ...) end

---Normalises each channel of [N, C, H, W] over the batch, in the same shape (Ioffe and Szegedy, 2015): (x - mean) /
---sqrt(var + eps) * weight + bias. While training, mean and biased variance are those of the batch, and running = (1 -
---momentum) running + momentum batch, with the unbiased variance.
---@param options? integer|{features: integer, eps?: number, momentum?: number, affine?: boolean, track_running_stats?: boolean, activation?: "none"|"relu"} # features, eps=1e-05, momentum=0.1, affine=true, track_running_stats=true, activation=none
---@param ... any
---@return perigee.nn.BatchNorm2d
function nn.BatchNorm2d(options, ...) end

---Normalises each channel of [N, C, D, H, W] over the batch, in the same shape (Ioffe and Szegedy, 2015): (x - mean) /
---sqrt(var + eps) * weight + bias. While training, mean and biased variance are those of the batch, and running = (1 -
---momentum) running + momentum batch, with the unbiased variance.
---@param options? integer|{features: integer, eps?: number, momentum?: number, affine?: boolean, track_running_stats?: boolean, activation?: "none"|"relu"} # features, eps=1e-05, momentum=0.1, affine=true, track_running_stats=true, activation=none
---@param ... any
---@return perigee.nn.BatchNorm3d
function nn.BatchNorm3d(options, ...) end

---x1 weight[k] x2 + bias[k] for every output k: [..., inputs1] and [..., inputs2] to [..., out]. weight is
---[out, inputs1, inputs2].
---@param options? integer|{inputs1: integer, inputs2: integer, out: integer, bias?: boolean} # inputs1, inputs2, out, bias=true
---@param ... any
---@return perigee.nn.Bilinear
function nn.Bilinear(options, ...) end

---x where positive, alpha (exp(x / alpha) - 1) elsewhere (Barron, 2017)
---@param options? number|{alpha?: number} # alpha=1
---@return perigee.Layer
function nn.CELU(options) end

---Connectionist temporal classification (Graves et al. 2006): the negative log likelihood of label sequences, over all
---ways to align them with the steps. The gradient is that of what log_softmax was taken of; there is no second
---derivative.
---`nn.ctc` as a layer, which remembers its options: layer(log_probs, targets, input_lengths, target_lengths).
---@param options? {blank?: integer, reduction?: "mean"|"sum"|"none", zero_infinity?: boolean} # blank=0, reduction=mean, zero_infinity=false
---@return perigee.Layer
function nn.CTCLoss(options) end

---[N, C, ...] with the channels of `groups` groups interleaved: channel i C / groups + j goes to j groups + i (Zhang et
---al., 2018).
---@param options? integer|{groups: integer} # groups
---@return perigee.Layer
function nn.ChannelShuffle(options) end

---[N, C, L] padded by what lies at the other end along the last axis; N may be missing.
---@param options? integer|integer[]|{padding: integer|integer[]} # padding
---@param ... any
---@return perigee.Layer
function nn.CircularPad1d(options, ...) end

---[N, C, H, W] padded by what lies at the other end along the last two axes; N may be missing.
---@param options? integer|integer[]|{padding: integer|integer[]} # padding
---@param ... any
---@return perigee.Layer
function nn.CircularPad2d(options, ...) end

---[N, C, D, H, W] padded by what lies at the other end along the last three axes; N may be missing.
---@param options? integer|integer[]|{padding: integer|integer[]} # padding
---@param ... any
---@return perigee.Layer
function nn.CircularPad3d(options, ...) end

---A Linear whose outputs are shared out: weight [outputs / N, inputs] and bias of the own ones, from [..., inputs] to
---[..., outputs / N], or with gather to [..., outputs] on all. With sequence_axis the input is a part of the sequence
---along that axis, and the result is of all of it. An nn.RowLinear goes on without a word in between.
---@param options? integer|{inputs?: integer, outputs?: integer, bias?: boolean, group: perigee.Group, from?: perigee.nn.Linear, sequence_axis?: integer, gather?: boolean} # inputs, outputs, bias=true, group, from, sequence_axis, gather=false
---@param ... any
---@return perigee.nn.ColumnLinear
function nn.ColumnLinear(options, ...) end

---[N, C, L] padded by `value` along the last axis; N may be missing.
---@param options? integer|integer[]|{padding: integer|integer[], value: number} # padding, value
---@param ... any
---@return perigee.Layer
function nn.ConstantPad1d(options, ...) end

---[N, C, H, W] padded by `value` along the last two axes; N may be missing.
---@param options? integer|integer[]|{padding: integer|integer[], value: number} # padding, value
---@param ... any
---@return perigee.Layer
function nn.ConstantPad2d(options, ...) end

---[N, C, D, H, W] padded by `value` along the last three axes; N may be missing.
---@param options? integer|integer[]|{padding: integer|integer[], value: number} # padding, value
---@param ... any
---@return perigee.Layer
function nn.ConstantPad3d(options, ...) end

---Cross-correlation of sequences: y[o] = bias[o] + sum over inputs i of weight[o, i] * x[i], from [N, inputs, L] to [N,
---out, L'] (N may be missing) with weight [out, inputs / groups, k]. Each axis becomes floor((size + 2 padding -
---dilation (kernel - 1) - 1) / stride) + 1 long. Channels of one group see only inputs of the same group.
---@param options? integer|{inputs: integer, out: integer, kernel: integer|integer[], stride?: integer|integer[], padding?: integer|integer[]|"same"|"valid", dilation?: integer|integer[], groups?: integer, bias?: boolean, activation?: "none"|"relu", padding_mode?: "zeros"|"reflect"|"replicate"|"circular"} # inputs, out, kernel, stride={1}, padding={0}, dilation={1}, groups=1, bias=true, activation=none, padding_mode=zeros
---@param ... any
---@return perigee.nn.Conv1d
function nn.Conv1d(options, ...) end

---Cross-correlation of images: y[o] = bias[o] + sum over inputs i of weight[o, i] * x[i], from [N, inputs, H, W] to [N,
---out, H', W'] (N may be missing) with weight [out, inputs / groups, kh, kw]. Each axis becomes floor((size + 2 padding
--- - dilation (kernel - 1) - 1) / stride) + 1 long. Channels of one group see only inputs of the same group.
---@param options? integer|{inputs: integer, out: integer, kernel: integer|integer[], stride?: integer|integer[], padding?: integer|integer[]|"same"|"valid", dilation?: integer|integer[], groups?: integer, bias?: boolean, activation?: "none"|"relu", padding_mode?: "zeros"|"reflect"|"replicate"|"circular"} # inputs, out, kernel, stride={1, 1}, padding={0, 0}, dilation={1, 1}, groups=1, bias=true, activation=none, padding_mode=zeros
---@param ... any
---@return perigee.nn.Conv2d
function nn.Conv2d(options, ...) end

---Cross-correlation of volumes: y[o] = bias[o] + sum over inputs i of weight[o, i] * x[i], from [N, inputs, D, H, W] to
---[N, out, D', H', W'] (N may be missing) with weight [out, inputs / groups, kd, kh, kw]. Each axis becomes floor((size
---+ 2 padding - dilation (kernel - 1) - 1) / stride) + 1 long. Channels of one group see only inputs of the same group.
---@param options? integer|{inputs: integer, out: integer, kernel: integer|integer[], stride?: integer|integer[], padding?: integer|integer[]|"same"|"valid", dilation?: integer|integer[], groups?: integer, bias?: boolean, activation?: "none"|"relu", padding_mode?: "zeros"|"reflect"|"replicate"|"circular"} # inputs, out, kernel, stride={1, 1, 1}, padding={0, 0, 0}, dilation={1, 1, 1}, groups=1, bias=true, activation=none, padding_mode=zeros
---@param ... any
---@return perigee.nn.Conv3d
function nn.Conv3d(options, ...) end

---Transpose of a convolution of sequences: [N, inputs, L] to [N, out, L'] (N may be missing) with weight [inputs, out /
---groups, k]. It is the gradient of that convolution by its input. Each axis becomes (size - 1) stride - 2 padding +
---dilation (kernel - 1) + output_padding + 1 long.
---@param options? integer|{inputs: integer, out: integer, kernel: integer|integer[], stride?: integer|integer[], padding?: integer|integer[], output_padding?: integer|integer[], groups?: integer, bias?: boolean, dilation?: integer|integer[]} # inputs, out, kernel, stride={1}, padding={0}, output_padding={0}, groups=1, bias=true, dilation={1}
---@param ... any
---@return perigee.nn.ConvTranspose1d
function nn.ConvTranspose1d(options, ...) end

---Transpose of a convolution of images: [N, inputs, H, W] to [N, out, H', W'] (N may be missing) with weight [inputs,
---out / groups, kh, kw]. It is the gradient of that convolution by its input. Each axis becomes (size - 1) stride - 2
---padding + dilation (kernel - 1) + output_padding + 1 long.
---@param options? integer|{inputs: integer, out: integer, kernel: integer|integer[], stride?: integer|integer[], padding?: integer|integer[], output_padding?: integer|integer[], groups?: integer, bias?: boolean, dilation?: integer|integer[]} # inputs, out, kernel, stride={1, 1}, padding={0, 0}, output_padding={0, 0}, groups=1, bias=true, dilation={1, 1}
---@param ... any
---@return perigee.nn.ConvTranspose2d
function nn.ConvTranspose2d(options, ...) end

---Transpose of a convolution of volumes: [N, inputs, D, H, W] to [N, out, D', H', W'] (N may be missing) with weight
---[inputs, out / groups, kd, kh, kw]. It is the gradient of that convolution by its input. Each axis becomes (size - 1)
---stride - 2 padding + dilation (kernel - 1) + output_padding + 1 long.
---@param options? integer|{inputs: integer, out: integer, kernel: integer|integer[], stride?: integer|integer[], padding?: integer|integer[], output_padding?: integer|integer[], groups?: integer, bias?: boolean, dilation?: integer|integer[]} # inputs, out, kernel, stride={1, 1, 1}, padding={0, 0, 0}, output_padding={0, 0, 0}, groups=1, bias=true, dilation={1, 1, 1}
---@param ... any
---@return perigee.nn.ConvTranspose3d
function nn.ConvTranspose3d(options, ...) end

---1 - cos(a, b) where y is 1, max(0, cos(a, b) - margin) where it is -1.
---`nn.cosine_embedding` as a layer, which remembers its options: layer(a, b, y).
---@param options? {margin?: number, reduction?: "mean"|"sum"|"none"} # margin=0, reduction=mean
---@return perigee.Layer
function nn.CosineEmbeddingLoss(options) end

---The cosine of the angle between two tensors along an axis: sum(x y) / (max(|x|, eps) max(|y|, eps)), |x| the
---Euclidean norm. layer(x, y): two tensors that broadcast; the axis is gone from the result.
---@param options? integer|{axis?: integer, eps?: number} # axis=2, eps=1e-08
---@param ... any
---@return perigee.Layer
function nn.CosineSimilarity(options, ...) end

---Softmax and negative log likelihood in one: -weight[y] log(softmax(x)[y]); with label_smoothing e, 1 - e times that
---plus e / C times its sum over all classes. "mean" divides by the sum of the labels' weights.
---`nn.cross_entropy` as a layer, which remembers its options: layer(logits, labels).
---@param options? {ignore_index?: integer, label_smoothing?: number, reduction?: "mean"|"sum"|"none", weight?: perigee.Tensor} # ignore_index=-100, label_smoothing=0, reduction=mean, weight
---@return perigee.Layer
function nn.CrossEntropyLoss(options) end

---The same as nn.Linear. activation(x weight^T + bias) over the last axis: [..., inputs] to [..., out]. weight is [out,
---inputs].
---@param options? integer|{inputs: integer, out: integer, bias?: boolean, activation?: "none"|"relu"|"gelu_tanh"} # inputs, out, bias=true, activation=none
---@param ... any
---@return perigee.nn.Linear
function nn.Dense(options, ...) end

---While training: zeroes each element with probability p, scales the rest by 1 / (1 - p) (Srivastava et al., 2014). Any
---shape, which stays; in eval() nothing happens.
---@param options? number|{p?: number} # p=0.5
---@return perigee.Layer
function nn.Dropout(options) end

---While training: zeroes whole channels of [N, C, L] with probability p, scales the rest by 1 / (1 - p) (Tompson et
---al., 2015). N may be missing.
---@param options? number|{p?: number} # p=0.5
---@return perigee.Layer
function nn.Dropout1d(options) end

---While training: zeroes whole channels of [N, C, H, W] with probability p, scales the rest by 1 / (1 - p) (Tompson et
---al., 2015). N may be missing.
---@param options? number|{p?: number} # p=0.5
---@return perigee.Layer
function nn.Dropout2d(options) end

---While training: zeroes whole channels of [N, C, D, H, W] with probability p, scales the rest by 1 / (1 - p) (Tompson
---et al., 2015). N may be missing.
---@param options? number|{p?: number} # p=0.5
---@return perigee.Layer
function nn.Dropout3d(options) end

---x where positive, alpha (exp(x) - 1) elsewhere (Clevert, Unterthiner and Hochreiter, 2015)
---@param options? number|{alpha?: number} # alpha=1
---@return perigee.Layer
function nn.ELU(options) end

---Rows of weight [entries, features] by index: [...] int64 to [..., features]. Weights begin as normal numbers.
---@param options? integer|{entries: integer, features: integer, padding_idx?: integer} # entries, features, padding_idx=-1
---@param ... any
---@return perigee.nn.Embedding
function nn.Embedding(options, ...) end

---Rows of weight [entries, features] summed, averaged or their largest values taken, a bag at a time: called as
---layer(index [B, L]) or layer(index [N], offsets [B]), int64 from 0; gives [B, features]. If mode is "sum" a third
---argument, in the index's shape, is what the rows are multiplied by.
---@param options? integer|{entries: integer, features: integer, mode?: "mean"|"sum"|"max", include_last_offset?: boolean, padding_idx?: integer} # entries, features, mode=mean, include_last_offset=false, padding_idx=-1
---@param ... any
---@return perigee.nn.EmbeddingBag
function nn.EmbeddingBag(options, ...) end

---Merges the axes from `first` to `last` into one: with first=2, [N, C, H, W] to [N, C H W].
---@param options? integer|{first?: integer, last?: integer} # first=2, last=-1
---@param ... any
---@return perigee.Layer
function nn.Flatten(options, ...) end

---The cross entropy with easy examples weighed down: (1 - p)^gamma of it, p the target's probability (Lin et al. 2017).
---Labels mean softmax, targets in the logits' shape sigmoid.
---`nn.focal` as a layer, which remembers its options: layer(logits, target).
---@param options? {alpha?: number, gamma?: number, ignore_index?: integer, reduction?: "mean"|"sum"|"none", weight?: perigee.Tensor} # alpha=0.25, gamma=2, ignore_index=-100, reduction=mean, weight
---@return perigee.Layer
function nn.FocalLoss(options) end

---Columns added up to images of `size`, where windows overlap: [N, C kh kw, L] to [N, C, H, W]. The transpose of
---Unfold.
---@param options? integer|integer[]|{size: integer|integer[], kernel: integer|integer[], dilation?: integer|integer[], padding?: integer|integer[], stride?: integer|integer[]} # size, kernel, dilation=1, padding=0, stride=1
---@param ... any
---@return perigee.Layer
function nn.Fold(options, ...) end

---A function as a layer without parameters.
---@param ... (fun(...): any)|{fn: (fun(...): any)} # fn
---@return perigee.Layer
function nn.Function(...) end

---x Phi(x), with Phi the normal distribution's cumulative function (Hendrycks and Gimpel, 2016)
---@param options? "none"|"tanh"|{approximate?: "none"|"tanh"} # approximate=none
---@return perigee.Layer
function nn.GELU(options) end

---a sigmoid(b), a and b being the halves of x along `axis`, which is half as long in the result (Dauphin et al., 2016)
---@param options? integer|{axis?: integer} # axis=-1
---@return perigee.Layer
function nn.GLU(options) end

---Gated recurrent units (Cho et al., 2014): r, z = sigmoid(W_ih x + b_ih + W_hh h + b_hh), n = tanh(W_in x + b_in +
---r (W_hn h + b_hn)), h' = (1 - z) n + z h; rows come in the order r, z, n, and the reset gate is applied behind the
---product, as in PyTorch. `y, h = gru(x)`: x, y, h, `lengths` and packed sequences as of RNN.
---@param options? integer|{input_size?: integer, hidden_size?: integer, num_layers?: integer, bias?: boolean, batch_first?: boolean, dropout?: number, bidirectional?: boolean} # input_size, hidden_size, num_layers=1, bias=true, batch_first=true, dropout=0, bidirectional=false
---@param ... any
---@return perigee.nn.GRU
function nn.GRU(options, ...) end

---One step of nn.GRU: h = cell(x, h), x [N, input_size], h [N, hidden_size], or both without N. Without h it begins
---with zeros.
---@param options? integer|{input_size?: integer, hidden_size?: integer, bias?: boolean} # input_size, hidden_size, bias=true
---@param ... any
---@return perigee.nn.GRUCell
function nn.GRUCell(options, ...) end

---Negative log likelihood (log(var) + (x - y)^2 / var) / 2 of y under a normal distribution of mean x and variance var,
---which is taken for eps where it is less (Nix and Weigend, 1994). A negative one is an error that names it.
---`nn.gaussian_nll` as a layer, which remembers its options: layer(x, y, var).
---@param options? {eps?: number, full?: boolean, reduction?: "mean"|"sum"|"none"} # eps=1e-06, full=false, reduction=mean
---@return perigee.Layer
function nn.GaussianNLLLoss(options) end

---Each group of channels of each example normalised by itself, then scaled and shifted by channel: [N, C, ...] in the
---same shape (Wu and He, 2018). (x - mean) / sqrt(var + eps) * weight + bias, mean and biased variance taken over a
---group's channels and all axes behind them.
---@param options? integer|{groups: integer, channels: integer, eps?: number, affine?: boolean} # groups, channels, eps=1e-05, affine=true
---@param ... any
---@return perigee.nn.GroupNorm
function nn.GroupNorm(options, ...) end

---x, but 0 where |x| <= lambd
---@param options? number|{lambd?: number} # lambd=0.5
---@return perigee.Layer
function nn.Hardshrink(options) end

---relu6(x + 3) / 6
---@param options? table
---@return perigee.Layer
function nn.Hardsigmoid(options) end

---x relu6(x + 3) / 6 (Howard et al., 2019)
---@param options? table
---@return perigee.Layer
function nn.Hardswish(options) end

---x limited to [min_val, max_val]
---@param options? number|{min_val?: number, max_val?: number} # min_val=-1, max_val=1
---@param ... any
---@return perigee.Layer
function nn.Hardtanh(options, ...) end

---x where y is 1 (pairs that belong together: a distance to be small), max(0, margin - x) where it is -1.
---`nn.hinge_embedding` as a layer, which remembers its options: layer(x, y).
---@param options? {margin?: number, reduction?: "mean"|"sum"|"none"} # margin=1, reduction=mean
---@return perigee.Layer
function nn.HingeEmbeddingLoss(options) end

---max(0, 1 - y x) for targets y of -1 and 1.
---`nn.hinge` as a layer, which remembers its options: layer(x, y).
---@param options? {reduction?: "mean"|"sum"|"none"} # reduction=mean
---@return perigee.Layer
function nn.HingeLoss(options) end

---Quadratic within delta, linear outside (Huber, 1964): with d = |x - y|, d^2 / 2 where d < delta, else
---delta (d - delta / 2).
---`nn.huber` as a layer, which remembers its options: layer(x, y).
---@param options? {delta?: number, reduction?: "mean"|"sum"|"none", weight?: perigee.Tensor} # delta=1, reduction=mean, weight
---@return perigee.Layer
function nn.HuberLoss(options) end

---Gives what it is given.
---@param ... any # anything
---@return perigee.Layer
function nn.Identity(...) end

---Each channel of each example normalised by itself, in the same shape: [N, C, ...] (Ulyanov, Vedaldi and Lempitsky,
---2016).
---(x - mean) / sqrt(var + eps) * weight + bias, mean and biased variance taken over the axes behind C.
---@param options? integer|{features: integer, eps?: number, momentum?: number, affine?: boolean, track_running_stats?: boolean} # features, eps=1e-05, momentum=0.1, affine=false, track_running_stats=false
---@param ... any
---@return perigee.nn.InstanceNorm
function nn.InstanceNorm(options, ...) end

---Each channel of each example normalised by itself, in the same shape: [N, C, L]; N may be missing (Ulyanov, Vedaldi
---and Lempitsky, 2016).
---(x - mean) / sqrt(var + eps) * weight + bias, mean and biased variance taken over the axes behind C.
---@param options? integer|{features: integer, eps?: number, momentum?: number, affine?: boolean, track_running_stats?: boolean} # features, eps=1e-05, momentum=0.1, affine=false, track_running_stats=false
---@param ... any
---@return perigee.nn.InstanceNorm1d
function nn.InstanceNorm1d(options, ...) end

---Each channel of each example normalised by itself, in the same shape: [N, C, H, W]; N may be missing (Ulyanov,
---Vedaldi and Lempitsky, 2016).
---(x - mean) / sqrt(var + eps) * weight + bias, mean and biased variance taken over the axes behind C.
---@param options? integer|{features: integer, eps?: number, momentum?: number, affine?: boolean, track_running_stats?: boolean} # features, eps=1e-05, momentum=0.1, affine=false, track_running_stats=false
---@param ... any
---@return perigee.nn.InstanceNorm2d
function nn.InstanceNorm2d(options, ...) end

---Each channel of each example normalised by itself, in the same shape: [N, C, D, H, W]; N may be missing (Ulyanov,
---Vedaldi and Lempitsky, 2016).
---(x - mean) / sqrt(var + eps) * weight + bias, mean and biased variance taken over the axes behind C.
---@param options? integer|{features: integer, eps?: number, momentum?: number, affine?: boolean, track_running_stats?: boolean} # features, eps=1e-05, momentum=0.1, affine=false, track_running_stats=false
---@param ... any
---@return perigee.nn.InstanceNorm3d
function nn.InstanceNorm3d(options, ...) end

---Divergence of the target's distribution from the predicted one (Kullback and Leibler 1951): target (log target - x),
---x being log probabilities; with log_target the target is too. reduction "batchmean" divides the sum by the size of
---axis 1, which is the divergence as it is defined; "mean" divides by the number of elements, as in PyTorch.
---`nn.kl_div` as a layer, which remembers its options: layer(x, target).
---@param options? {log_target?: boolean, reduction?: "mean"|"sum"|"none"|"batchmean"} # log_target=false, reduction=mean
---@return perigee.Layer
function nn.KLDivLoss(options) end

---Mean of |x - y|; with a weight, the weighed sum divided by the sum of the weights.
---`nn.l1` as a layer, which remembers its options: layer(x, y).
---@param options? {reduction?: "mean"|"sum"|"none", weight?: perigee.Tensor} # reduction=mean, weight
---@return perigee.Layer
function nn.L1Loss(options) end

---The norm of each window of [N, C, L]: (sum of x^norm)^(1 / norm); each axis becomes floor((size - kernel) / stride) +
---1 long.
---@param options? number|{norm: number, kernel: integer|integer[], stride?: integer|integer[], ceil_mode?: boolean} # norm, kernel, stride, ceil_mode=false
---@param ... any
---@return perigee.Layer
function nn.LPPool1d(options, ...) end

---The norm of each window of [N, C, H, W]: (sum of x^norm)^(1 / norm); each axis becomes floor((size - kernel) /
---stride) + 1 long.
---@param options? number|{norm: number, kernel: integer|integer[], stride?: integer|integer[], ceil_mode?: boolean} # norm, kernel, stride, ceil_mode=false
---@param ... any
---@return perigee.Layer
function nn.LPPool2d(options, ...) end

---Long short-term memory (Hochreiter and Schmidhuber, 1997) with forget gates: i, f, o = sigmoid, g = tanh of
---W_ih x + b_ih + W_hh h + b_hh, whose rows come in the order i, f, g, o; c' = f c + i g; h' = o tanh(c'), or W_hr of
---that with proj_size (Sak et al., 2014). `y, h, c = lstm(x)`: x, y, h, `lengths` and packed sequences as of RNN, with
---states of proj_size where there is one; c [num_layers D, N, hidden_size]. lstm(x, {h, c}), lstm(x, h, c) and
---lstm(x, {h0=h, c0=c}) begin with given states, in place of zeros. Parameters are called as PyTorch's.
---@param options? integer|{input_size?: integer, hidden_size?: integer, num_layers?: integer, bias?: boolean, batch_first?: boolean, dropout?: number, bidirectional?: boolean, proj_size?: integer} # input_size, hidden_size, num_layers=1, bias=true, batch_first=true, dropout=0, bidirectional=false, proj_size=0
---@param ... any
---@return perigee.nn.LSTM
function nn.LSTM(options, ...) end

---One step of nn.LSTM: h, c = cell(x, {h, c}) or cell(x, h, c), x [N, input_size], h and c [N, hidden_size], or all
---without N. Without them it begins with zeros.
---@param options? integer|{input_size?: integer, hidden_size?: integer, bias?: boolean} # input_size, hidden_size, bias=true
---@param ... any
---@return perigee.nn.LSTMCell
function nn.LSTMCell(options, ...) end

---Normalises over the last axes, those that `shape` names (Ba, Kiros and Hinton, 2016): (x - mean) / sqrt(var + eps) *
---weight + bias, the variance being the biased one; [..., shape] in the same shape.
---@param options? integer|integer[]|{shape: integer|integer[], eps?: number, affine?: boolean, bias?: boolean, elementwise_affine?: boolean} # shape, eps=1e-05, affine=true, bias=true, elementwise_affine=true
---@param ... any
---@return perigee.nn.LayerNorm
function nn.LayerNorm(options, ...) end

---x where positive, negative_slope x elsewhere (Maas, Hannun and Ng, 2013)
---@param options? number|{negative_slope?: number} # negative_slope=0.01
---@return perigee.Layer
function nn.LeakyReLU(options) end

---activation(x weight^T + bias) over the last axis: [..., inputs] to [..., out]. weight is [out, inputs].
---@param options? integer|{inputs: integer, out: integer, bias?: boolean, activation?: "none"|"relu"|"gelu_tanh"} # inputs, out, bias=true, activation=none
---@param ... any
---@return perigee.nn.Linear
function nn.Linear(options, ...) end

---Each element divided by a power of the mean of the squares over `size` neighbouring channels (Krizhevsky, Sutskever
---and Hinton, 2012): x / (k + alpha mean(x^2))^beta, zeros standing outside; [N, C, ...] in the same shape.
---@param options? integer|{size: integer, alpha?: number, beta?: number, k?: number} # size, alpha=0.0001, beta=0.75, k=1
---@param ... any
---@return perigee.Layer
function nn.LocalResponseNorm(options, ...) end

---log(1 / (1 + exp(-x)))
---@param options? table
---@return perigee.Layer
function nn.LogSigmoid(options) end

---log(exp(x) / sum(exp(x))) along `axis`: x - log(sum(exp(x)))
---@param options? integer|{axis?: integer} # axis=-1
---@return perigee.Layer
function nn.LogSoftmax(options) end

---Mean of (x - y)^2; with a weight, the weighed sum divided by the sum of the weights.
---`nn.mse` as a layer, which remembers its options: layer(x, y).
---@param options? {reduction?: "mean"|"sum"|"none", weight?: perigee.Tensor} # reduction=mean, weight
---@return perigee.Layer
function nn.MSELoss(options) end

---max(0, margin - y (a - b)): where y is 1, a should rank above b.
---`nn.margin_ranking` as a layer, which remembers its options: layer(a, b, y).
---@param options? {margin?: number, reduction?: "mean"|"sum"|"none"} # margin=0, reduction=mean
---@return perigee.Layer
function nn.MarginRankingLoss(options) end

---The largest value of each window: [N, C, L] to [N, C, L']; N may be missing. Each axis becomes floor((size + 2
---padding - dilation (kernel - 1) - 1) / stride) + 1 long, rounded up with ceil_mode.
---@param options? integer|integer[]|{kernel: integer|integer[], stride?: integer|integer[], padding?: integer|integer[], dilation?: integer|integer[], ceil_mode?: boolean, return_indices?: boolean} # kernel, stride, padding={0}, dilation={1}, ceil_mode=false, return_indices=false
---@param ... any
---@return perigee.Layer
function nn.MaxPool1d(options, ...) end

---The largest value of each window: [N, C, H, W] to [N, C, H', W']; N may be missing. Each axis becomes floor((size + 2
---padding - dilation (kernel - 1) - 1) / stride) + 1 long, rounded up with ceil_mode.
---@param options? integer|integer[]|{kernel: integer|integer[], stride?: integer|integer[], padding?: integer|integer[], dilation?: integer|integer[], ceil_mode?: boolean, return_indices?: boolean} # kernel, stride, padding={0, 0}, dilation={1, 1}, ceil_mode=false, return_indices=false
---@param ... any
---@return perigee.Layer
function nn.MaxPool2d(options, ...) end

---The largest value of each window: [N, C, D, H, W] to [N, C, D', H', W']; N may be missing. Each axis becomes
---floor((size + 2 padding - dilation (kernel - 1) - 1) / stride) + 1 long, rounded up with ceil_mode.
---@param options? integer|integer[]|{kernel: integer|integer[], stride?: integer|integer[], padding?: integer|integer[], dilation?: integer|integer[], ceil_mode?: boolean, return_indices?: boolean} # kernel, stride, padding={0, 0, 0}, dilation={1, 1, 1}, ceil_mode=false, return_indices=false
---@param ... any
---@return perigee.Layer
function nn.MaxPool3d(options, ...) end

---x tanh(softplus(x)) (Misra, 2019)
---@param options? table
---@return perigee.Layer
function nn.Mish(options) end

---Layers by name, none of which runs by itself: nn.ModuleDict{conv=..., pool=...}; dict.conv, and dict:names(). Names
---of one table come in alphabetical order; dict:add(name, layer) appends. Names of methods ("state", "fit") are like
---others, and weights load by them; the layer under one is dict:get("state"), since dict.state is the method.
---@param layers? table<string, perigee.Layer> # layers by name
---@return perigee.nn.ModuleDict
function nn.ModuleDict(layers) end

---A list of layers that has no forward of its own; positions as in nn.Sequential.
---@param ... perigee.Layer|(perigee.Layer|function)[] # layers, or functions of tensors
---@return perigee.nn.ModuleList
function nn.ModuleList(...) end

---Binary cross entropy of logits [..., C] of C independent labels each, averaged over them: the mean over C of
--- -(y log(s) + (1 - y) log(1 - s)) with s = sigmoid(x).
---`nn.multilabel_soft_margin` as a layer, which remembers its options: layer(x, y).
---@param options? {reduction?: "mean"|"sum"|"none", weight?: perigee.Tensor} # reduction=mean, weight
---@return perigee.Layer
function nn.MultiLabelSoftMarginLoss(options) end

---weight[label] / C times the sum of max(0, margin - x[label] + x[c])^p over the classes c other than the label
---(Crammer and Singer, 2001).
---`nn.multi_margin` as a layer, which remembers its options: layer(x, labels).
---@param options? {margin?: number, p?: integer, reduction?: "mean"|"sum"|"none", weight?: perigee.Tensor} # margin=1, p=1, reduction=mean, weight
---@return perigee.Layer
function nn.MultiMarginLoss(options) end

---Attention of several heads (Vaswani et al., 2017), with PyTorch's parameter names: each head gives
---softmax(q k^T / sqrt(embed / heads)) v of its part of the projected query, key and value; the heads' results side by
---side go through a linear layer. Called as
---layer(query, key, value, options); key and value default to query. Tensors are [N, L, embed], or [L, N, embed] with
---batch_first=false (PyTorch's default, not ours), or [L, embed]. Options, as in PyTorch:
---attn_mask [L, S] or [N * heads, L, S]: bool, true where a query may NOT see a key (the opposite of
---scaled_dot_product_attention), or numbers added to the scores; key_padding_mask [N, S], without a batch [S]: bool,
---true where a key is padding; is_causal; need_weights (default false): returns the weights [N, L, S] too, averaged
---over the heads, or [N, heads, L, S] with average_attn_weights=false.
---@param options? integer|{embed: integer, heads: integer, dropout?: number, bias?: boolean, add_bias_kv?: boolean, add_zero_attn?: boolean, kdim?: integer, vdim?: integer, batch_first?: boolean} # embed, heads, dropout=0, bias=true, add_bias_kv=false, add_zero_attn=false, kdim, vdim, batch_first=true
---@param ... any
---@return perigee.nn.MultiheadAttention
function nn.MultiheadAttention(options, ...) end

---Negative log likelihood -weight[y] x[y] of log probabilities x. "mean" divides by the sum of the labels' weights.
---`nn.nll` as a layer, which remembers its options: layer(log_probs, labels).
---@param options? {ignore_index?: integer, reduction?: "mean"|"sum"|"none", weight?: perigee.Tensor} # ignore_index=-100, reduction=mean, weight
---@return perigee.Layer
function nn.NLLLoss(options) end

---x where positive, weight x elsewhere, with learnt slopes (He, Zhang, Ren and Sun, 2015)
---@param options? integer|{num_parameters?: integer, init?: number} # num_parameters=1, init=0.25
---@param ... any
---@return perigee.nn.PReLU
function nn.PReLU(options, ...) end

---The p-norm of the difference along the last axis: (sum |x - y + eps|^p)^(1 / p). layer(x, y): [..., D] and [..., D]
---to [...].
---@param options? number|{p?: number, eps?: number, keepdim?: boolean} # p=2, eps=1e-06, keepdim=false
---@param ... any
---@return perigee.Layer
function nn.PairwiseDistance(options, ...) end

---Makes a tensor a parameter: a leaf that needs gradients and that layers register. It shares `tensor`'s memory.
---@param tensor perigee.Tensor # of a floating dtype
---@param options? {requires_grad?: boolean} # requires_grad=false: registered, but not trained
---@return perigee.Tensor
function nn.Parameter(tensor, options) end

---A list of parameters: list[1], #list; positions as in nn.Sequential.
---@param ... perigee.Tensor|perigee.Tensor[] # what becomes parameters
---@return perigee.nn.ParameterList
function nn.ParameterList(...) end

---[N, C r^2, H, W] to [N, C, H r, W r], r being `factor`: element (h, w) of channel c r^2 + i r + j goes to
---(h r + i, w r + j) of channel c (Shi et al., 2016).
---@param options? integer|{factor: integer} # factor
---@return perigee.Layer
function nn.PixelShuffle(options) end

---[N, C, H r, W r] to [N, C r^2, H, W], r being `factor`: PixelShuffle undone.
---@param options? integer|{factor: integer} # factor
---@return perigee.Layer
function nn.PixelUnshuffle(options) end

---Negative log likelihood exp(x) - y x of counts y under Poisson's distribution of mean exp(x), or x - y log(x + eps)
---of mean x with log_input=false; without the term log(y!), which x does not change.
---`nn.poisson_nll` as a layer, which remembers its options: layer(x, y).
---@param options? {eps?: number, full?: boolean, log_input?: boolean, reduction?: "mean"|"sum"|"none"} # eps=1e-08, full=false, log_input=true, reduction=mean
---@return perigee.Layer
function nn.PoissonNLLLoss(options) end

---The last axes, those that `shape` names, divided by their root mean square, then scaled (Zhang and Sennrich, 2019):
---x / sqrt(mean(x^2) + eps) * weight, in the same shape.
---@param options? integer|integer[]|{shape: integer|integer[], eps?: number, affine?: boolean, elementwise_affine?: boolean} # shape, eps, affine=true, elementwise_affine=true
---@param ... any
---@return perigee.nn.RMSNorm
function nn.RMSNorm(options, ...) end

---Recurrent layers (Elman, 1990): h' = f(W_ih x + b_ih + W_hh h + b_hh), f being tanh or relu, over the steps of
---sequences. `y, h = rnn(x)`: x [N, T, input_size], or [T, N, input_size] with batch_first=false (PyTorch's default,
---not ours), or one sequence [T, input_size]; y [N, T, D hidden_size] has the last layer's states of all steps, D being
---2 where it is bidirectional, else 1; h [num_layers D, N, hidden_size] the last states of all. rnn(x, h) and
---rnn(x, {h0=h}) begin with given ones, in place of zeros. rnn(x, {lengths={5, 3}}), a list or a tensor, ends each
---sequence at its own length: y is 0 behind it, h what it was there. Or x is packed, by nn.utils.pack_padded_sequence:
---then y is packed too. Parameters are called as PyTorch's. In a graph a number of steps that is known is recorded step
---by step, one that only a run tells as a pg.scan.
---@param options? integer|{input_size?: integer, hidden_size?: integer, num_layers?: integer, nonlinearity?: "tanh"|"relu", bias?: boolean, batch_first?: boolean, dropout?: number, bidirectional?: boolean} # input_size, hidden_size, num_layers=1, nonlinearity=tanh, bias=true, batch_first=true, dropout=0, bidirectional=false
---@param ... any
---@return perigee.nn.RNN
function nn.RNN(options, ...) end

---One step of nn.RNN: h = cell(x, h), x [N, input_size], h [N, hidden_size], or both without N. Without h it begins
---with zeros.
---@param options? integer|{input_size?: integer, hidden_size?: integer, bias?: boolean, nonlinearity?: "tanh"|"relu"} # input_size, hidden_size, bias=true, nonlinearity=tanh
---@param ... any
---@return perigee.nn.RNNCell
function nn.RNNCell(options, ...) end

---max(x, 0)
---@param options? table
---@return perigee.Layer
function nn.ReLU(options) end

---x limited to [0, 6]
---@param options? table
---@return perigee.Layer
function nn.ReLU6(options) end

---[N, C, L] padded by what lies inside, mirrored at the outermost element along the last axis; N may be missing.
---@param options? integer|integer[]|{padding: integer|integer[]} # padding
---@param ... any
---@return perigee.Layer
function nn.ReflectionPad1d(options, ...) end

---[N, C, H, W] padded by what lies inside, mirrored at the outermost element along the last two axes; N may be missing.
---@param options? integer|integer[]|{padding: integer|integer[]} # padding
---@param ... any
---@return perigee.Layer
function nn.ReflectionPad2d(options, ...) end

---[N, C, D, H, W] padded by what lies inside, mirrored at the outermost element along the last three axes; N may be
---missing.
---@param options? integer|integer[]|{padding: integer|integer[]} # padding
---@param ... any
---@return perigee.Layer
function nn.ReflectionPad3d(options, ...) end

---[N, C, L] padded by its outermost elements along the last axis; N may be missing.
---@param options? integer|integer[]|{padding: integer|integer[]} # padding
---@param ... any
---@return perigee.Layer
function nn.ReplicationPad1d(options, ...) end

---[N, C, H, W] padded by its outermost elements along the last two axes; N may be missing.
---@param options? integer|integer[]|{padding: integer|integer[]} # padding
---@param ... any
---@return perigee.Layer
function nn.ReplicationPad2d(options, ...) end

---[N, C, D, H, W] padded by its outermost elements along the last three axes; N may be missing.
---@param options? integer|integer[]|{padding: integer|integer[]} # padding
---@param ... any
---@return perigee.Layer
function nn.ReplicationPad3d(options, ...) end

---All but the first axis in a new shape: nn.Reshape{3, -1} makes [N, 3, ...] of [N, ...].
---@param options? integer|integer[]|{shape: integer|integer[]} # shape
---@param ... any
---@return perigee.Layer
function nn.Reshape(options, ...) end

---x + layer(x): nn.Residual{layer, ...} runs its layers in sequence.
---@param ... perigee.Layer|(perigee.Layer|function)[] # layers, or functions of tensors
---@return perigee.Layer
function nn.Residual(...) end

---Rotary positions (Su et al., 2021, RoFormer): turns pairs of the last axis of x [..., L, width] by angles that grow
---with the position: pair i at position m by m base^(-2 i / width), i from 0. layer(x, offset): the first position is
---`offset` (default 0); layer(x, positions): an integer tensor [L], or [N, L] with a row for each x[n], of positions
---from 0. Pairs are the two halves (as in GPT-NeoX and Llama), or neighbours with interleaved=true (as in the paper).
---With rotary_width only the first rotary_width numbers turn (then that is the width of the formula).
---`scaling` reaches beyond the length of training by `factor` s: linear (Chen et al., 2023, Position Interpolation)
---divides positions by s; ntk (NTK-aware; Peng et al., 2023, section 3.1) has base s^(width / (width - 2)) in place of
---base; yarn (Peng et al., 2023, sections 3.2 and 3.4) divides the speed of pairs that make fewer than beta_slow turns
---in original_length positions by s, keeps those of more than beta_fast, goes between them in a line, and multiplies
---cosines and sines by attention_factor, 0.1 ln(s) + 1.
---@param options? integer|{width: integer, base?: number, interleaved?: boolean, rotary_width?: integer, scaling?: "none"|"linear"|"ntk"|"yarn", factor?: number, original_length?: integer, beta_fast?: number, beta_slow?: number, ramp?: "rotations"|"pairs", attention_factor?: number} # width, base=10000, interleaved=false, rotary_width, scaling=none, factor, original_length, beta_fast=32, beta_slow=1, ramp=rotations, attention_factor
---@param ... any
---@return perigee.Layer
function nn.RoPE(options, ...) end

---A Linear whose inputs are shared out: weight [outputs, inputs / N], from [..., inputs / N], as an nn.ColumnLinear
---leaves it, or with split from [..., inputs], to [..., outputs] on all. The bias is added once. With sequence_axis
---each process gets its part of the result along that axis.
---@param options? integer|{inputs?: integer, outputs?: integer, bias?: boolean, group: perigee.Group, from?: perigee.nn.Linear, sequence_axis?: integer, split?: boolean} # inputs, outputs, bias=true, group, from, sequence_axis, split=false
---@param ... any
---@return perigee.nn.RowLinear
function nn.RowLinear(options, ...) end

---1.0507 x where positive, 1.7581 (exp(x) - 1) elsewhere, which keeps mean 0 and variance 1 (Klambauer et al., 2017)
---@param options? table
---@return perigee.Layer
function nn.SELU(options) end

---Layers one after the other: what one returns is the next one's input. model[2] is the second, model[-1] the last,
---model[{1, 2}] another Sequential of the first two; model[2] = layer replaces, model[2] = nil or model:remove(2) takes
---out. What is assigned over an entry is looked at in the next call or read: until then # may still count one that
---was set to nil, while remove is done at once. A convolution, batch normalisation or Linear and a ReLU behind it run
---as one operator, to the same numbers, where nothing sees what goes from one to the other.
---@param ... perigee.Layer|(perigee.Layer|function)[] # layers, or functions of tensors
---@return perigee.nn.Sequential
function nn.Sequential(...) end

---A MultiheadAttention of which each process has some of the heads, and the rows of the projections that are theirs;
---the result is that of all heads, on all. Called as one, with the same masks. With sequence=true query, key and value
---are parts of their sequences, and so is the result.
---@param options? integer|{embed?: integer, heads?: integer, dropout?: number, bias?: boolean, batch_first?: boolean, group: perigee.Group, sequence?: boolean, from?: perigee.nn.MultiheadAttention} # embed, heads, dropout=0, bias=true, batch_first=true, group, sequence=false, from
---@param ... any
---@return perigee.nn.ShardedAttention
function nn.ShardedAttention(options, ...) end

---A Dropout that draws other random numbers on each process of a group: for parts of activations.
---@param options? number|{p?: number, group: perigee.Group} # p=0.5, group
---@param ... any
---@return perigee.nn.ShardedDropout
function nn.ShardedDropout(options, ...) end

---An Embedding whose rows are shared out: weight [entries / N, features]; from [...] int64 to [..., features] on all,
---or with sequence_axis each process's part of it along that axis of the result.
---@param options? integer|{entries?: integer, features?: integer, group: perigee.Group, from?: perigee.nn.Embedding, sequence_axis?: integer} # entries, features, group, from, sequence_axis
---@param ... any
---@return perigee.nn.ShardedEmbedding
function nn.ShardedEmbedding(options, ...) end

---x sigmoid(x) (Elfwing, Uchibe and Doya, 2017)
---@param options? table
---@return perigee.Layer
function nn.SiLU(options) end

---1 / (1 + exp(-x))
---@param options? table
---@return perigee.Layer
function nn.Sigmoid(options) end

---Huber's loss divided by beta (Girshick, 2015): with d = |x - y|, d^2 / (2 beta) where d < beta, else d - beta / 2.
---`nn.smooth_l1` as a layer, which remembers its options: layer(x, y).
---@param options? {beta?: number, reduction?: "mean"|"sum"|"none"} # beta=1, reduction=mean
---@return perigee.Layer
function nn.SmoothL1Loss(options) end

---log(1 + exp(-y x)) for targets y of -1 and 1.
---`nn.soft_margin` as a layer, which remembers its options: layer(x, y).
---@param options? {reduction?: "mean"|"sum"|"none"} # reduction=mean
---@return perigee.Layer
function nn.SoftMarginLoss(options) end

---exp(x) / sum(exp(x)) along `axis`
---@param options? integer|{axis?: integer} # axis=-1
---@return perigee.Layer
function nn.Softmax(options) end

---softmax(-x) along an axis.
---@param options? integer|{axis?: integer} # axis=-1
---@return perigee.Layer
function nn.Softmin(options) end

---log(1 + exp(beta x)) / beta, and x where beta x > threshold
---@param options? number|{beta?: number, threshold?: number} # beta=1, threshold=20
---@param ... any
---@return perigee.Layer
function nn.Softplus(options, ...) end

---x - lambd where x > lambd, x + lambd where x < -lambd, 0 between
---@param options? number|{lambd?: number} # lambd=0.5
---@return perigee.Layer
function nn.Softshrink(options) end

---x / (1 + |x|)
---@param options? table
---@return perigee.Layer
function nn.Softsign(options) end

---BatchNorm1d, 2d or 3d, whose mean and variance while training are those of the whole batch where replicas of a
---strategy compute parts of it: [N, C, ...] in the same shape. Anywhere else it is a plain one. pg.dist.sync_batchnorm
---makes it of those in a model.
---@param options? integer|{features: integer, eps?: number, momentum?: number, affine?: boolean, track_running_stats?: boolean} # features, eps=1e-05, momentum=0.1, affine=true, track_running_stats=true
---@param ... any
---@return perigee.nn.SyncBatchNorm
function nn.SyncBatchNorm(options, ...) end

---(exp(x) - exp(-x)) / (exp(x) + exp(-x))
---@param options? table
---@return perigee.Layer
function nn.Tanh(options) end

---x - tanh(x)
---@param options? table
---@return perigee.Layer
function nn.Tanhshrink(options) end

---x where x > threshold, value elsewhere
---@param options? number|{threshold: number, value: number} # threshold, value
---@param ... any
---@return perigee.Layer
function nn.Threshold(options, ...) end

---Encoder and decoder (Vaswani et al., 2017), each a stack that ends in a layer norm: model(source [N, S, embed],
---target [N, T, embed], options) gives [N, T, embed]; options source = {...} and target = {...} are those of the two
---stacks.
---@param options? integer|{embed?: integer, heads?: integer, encoder_layers?: integer, decoder_layers?: integer, feedforward?: integer, dropout?: number, activation?: string|function|perigee.Layer, eps?: number, batch_first?: boolean, norm_first?: boolean, bias?: boolean} # embed=512, heads=8, encoder_layers=6, decoder_layers=6, feedforward=2048, dropout=0.1, activation=relu, eps=1e-05, batch_first=true, norm_first=false, bias=true
---@param ... any
---@return perigee.nn.Transformer
function nn.Transformer(options, ...) end

---`count` copies of a decoder layer one after the other, then `norm` if given: decoder(x, memory, options).
---@param options? perigee.Layer|{layer: perigee.Layer, count: integer, norm?: perigee.Layer} # layer, count, norm
---@param ... any
---@return perigee.nn.TransformerDecoder
function nn.TransformerDecoder(options, ...) end

---As TransformerEncoderLayer, with attention over `memory` in between. layer(x, memory, options): options mask,
---key_padding_mask and is_causal for x, memory_mask, memory_key_padding_mask and memory_is_causal for memory.
---@param options? integer|{embed: integer, heads: integer, feedforward?: integer, dropout?: number, activation?: string|function|perigee.Layer, eps?: number, batch_first?: boolean, norm_first?: boolean, bias?: boolean} # embed, heads, feedforward=2048, dropout=0.1, activation=relu, eps=1e-05, batch_first=true, norm_first=false, bias=true
---@param ... any
---@return perigee.nn.TransformerDecoderLayer
function nn.TransformerDecoderLayer(options, ...) end

---`count` copies of an encoder layer one after the other, then `norm` if given: encoder(x, options).
---@param options? perigee.Layer|{layer: perigee.Layer, count: integer, norm?: perigee.Layer} # layer, count, norm
---@param ... any
---@return perigee.nn.TransformerEncoder
function nn.TransformerEncoder(options, ...) end

---Self-attention and two linear layers, each with a residual and a layer norm (Vaswani et al., 2017):
---x = norm1(x + attention(x)), then norm2(x + linear2(activation(linear1(x)))); with norm_first (Xiong et al., 2020)
---x + attention(norm1(x)) and so on. layer(x, options): x [N, L, embed], in the same shape; options mask,
---key_padding_mask, is_causal as those of MultiheadAttention.
---@param options? integer|{embed: integer, heads: integer, feedforward?: integer, dropout?: number, activation?: string|function|perigee.Layer, eps?: number, batch_first?: boolean, norm_first?: boolean, bias?: boolean} # embed, heads, feedforward=2048, dropout=0.1, activation=relu, eps=1e-05, batch_first=true, norm_first=false, bias=true
---@param ... any
---@return perigee.nn.TransformerEncoderLayer
function nn.TransformerEncoderLayer(options, ...) end

---max(0, margin + d(anchor, positive) - d(anchor, negative)), d being the p-norm of the difference along the last axis
---(Schroff, Kalenichenko and Philbin, 2015; swap: Balntas et al., 2016).
---`nn.triplet_margin` as a layer, which remembers its options: layer(anchor, near, far).
---@param options? {eps?: number, margin?: number, p?: number, reduction?: "mean"|"sum"|"none", swap?: boolean} # eps=1e-06, margin=1, p=2, reduction=mean, swap=false
---@return perigee.Layer
function nn.TripletMarginLoss(options) end

---One axis as several: nn.Unflatten{2, {3, 4}} makes [N, 3, 4] of [N, 12].
---@param options? integer|{axis: integer, shape: integer|integer[]} # axis, shape
---@param ... any
---@return perigee.Layer
function nn.Unflatten(options, ...) end

---Windows of images as columns: [N, C, H, W] to [N, C kh kw, L], L the number of windows, each axis holding
---floor((size + 2 padding - dilation (kernel - 1) - 1) / stride) + 1 of them.
---@param options? integer|integer[]|{kernel: integer|integer[], dilation?: integer|integer[], padding?: integer|integer[], stride?: integer|integer[]} # kernel, dilation=1, padding=0, stride=1
---@param ... any
---@return perigee.Layer
function nn.Unfold(options, ...) end

---[N, C, ...] at another size of the axes behind C, or `scale_factor` times as large: pg.interpolate as a layer.
---@param options? integer|integer[]|{size?: integer|integer[], scale_factor?: number|number[], mode?: "nearest"|"linear"|"bilinear"|"bicubic"|"trilinear"|"area", align_corners?: boolean} # size, scale_factor, mode=nearest, align_corners
---@param ... any
---@return perigee.Layer
function nn.Upsample(options, ...) end

---[N, C, L] padded by zeros along the last axis; N may be missing.
---@param options? integer|integer[]|{padding: integer|integer[]} # padding
---@param ... any
---@return perigee.Layer
function nn.ZeroPad1d(options, ...) end

---[N, C, H, W] padded by zeros along the last two axes; N may be missing.
---@param options? integer|integer[]|{padding: integer|integer[]} # padding
---@param ... any
---@return perigee.Layer
function nn.ZeroPad2d(options, ...) end

---[N, C, D, H, W] padded by zeros along the last three axes; N may be missing.
---@param options? integer|integer[]|{padding: integer|integer[]} # padding
---@param ... any
---@return perigee.Layer
function nn.ZeroPad3d(options, ...) end

---The adapters that nn.lora gave a model, of which this may be a clone.
---@param model perigee.Layer
---@return perigee.Adapters
function nn.adapters(model) end

---Binary cross entropy of probabilities p in [0, 1], in the shape of y: -(y log(p) + (1 - y) log(1 - p)), logarithms
---being -100 at least. A p outside is an error that names it. The gradient (p - y) / (p (1 - p)) is divided by 1e-12 at
---least, so that it is finite where p is 0 or 1 (float16: by 2^-15).
---@param p perigee.Tensor # probabilities
---@param y perigee.Tensor # the shape of p
---@param options? {weight?: perigee.Tensor, reduction?: perigee.Reduction}
---@return perigee.Tensor
function nn.bce(p, y, options) end

---Binary cross entropy of logits x in the shape of y: -(pos_weight y log(s) + (1 - y) log(1 - s)) with s = sigmoid(x),
---safe for any size of x.
---@param x perigee.Tensor # logits
---@param y perigee.Tensor # the shape of x
---@param options? {weight?: perigee.Tensor, pos_weight?: perigee.Tensor, reduction?: perigee.Reduction}
---@return perigee.Tensor
function nn.bce_with_logits(x, y, options) end

---A new class of layers. `parent` is the class to extend (`parent.init(self, ...)` is super).
---@param name string # what printing and messages call it
---@param parent? perigee.Layer
---@return perigee.LayerClass
function nn.class(name, parent) end

---1 - cos(a, b) where y is 1, max(0, cos(a, b) - margin) where it is -1.
---@param a perigee.Tensor # [N, D] or [D]
---@param b perigee.Tensor # the shape of a
---@param y perigee.Tensor # 1 or -1, [N] or []
---@param options? {margin?: number, reduction?: perigee.Reduction}
---@return perigee.Tensor
function nn.cosine_embedding(a, b, y, options) end

---Softmax and negative log likelihood in one: -weight[y] log(softmax(x)[y]); with label_smoothing e, 1 - e times that
---plus e / C times its sum over all classes. "mean" divides by the sum of the labels' weights.
---@param logits perigee.Tensor # [N, C] or [N, C, ...]
---@param labels perigee.Tensor # int64 [N, ...] from 0, or probabilities in the shape of the logits
---@param options? {weight?: perigee.Tensor, ignore_index?: integer, label_smoothing?: number, reduction?: perigee.Reduction}
---@return perigee.Tensor
function nn.cross_entropy(logits, labels, options) end

---Connectionist temporal classification (Graves et al. 2006): the negative log likelihood of label sequences, over all
---ways to align them with the steps. The gradient is that of what log_softmax was taken of; there is no second
---derivative.
---@param log_probs perigee.Tensor # [T, N, C], log_softmax along C; or [T, C], one sequence
---@param targets perigee.Tensor # int64 from 0, [N, S], or all labels one after the other
---@param input_lengths perigee.Tensor|integer[] # steps of each sequence, [N]
---@param target_lengths perigee.Tensor|integer[] # labels of each sequence, [N]
---@param options? {blank?: integer, reduction?: perigee.Reduction, zero_infinity?: boolean}
---@return perigee.Tensor
function nn.ctc(log_probs, targets, input_lengths, target_lengths, options) end

---The cross entropy with easy examples weighed down: (1 - p)^gamma of it, p the target's probability (Lin et al. 2017).
---Labels mean softmax, targets in the logits' shape sigmoid.
---@param logits perigee.Tensor # [N, C] or [N, C, ...]
---@param target perigee.Tensor # int64 labels [N, ...], or numbers from 0 to 1 in the shape of the logits
---@param options? {gamma?: number, alpha?: number, weight?: perigee.Tensor, ignore_index?: integer, reduction?: perigee.Reduction}
---@return perigee.Tensor
function nn.focal(logits, target, options) end

---pg.col2im: columns added up to images.
---@param ... any # as those of pg.col2im
---@return perigee.Tensor
function nn.fold(...) end

---Negative log likelihood (log(var) + (x - y)^2 / var) / 2 of y under a normal distribution of mean x and variance var,
---which is taken for eps where it is less (Nix and Weigend, 1994). A negative one is an error that names it.
---@param x perigee.Tensor # the mean
---@param y perigee.Tensor # the shape of x
---@param var perigee.Tensor # the shape of x, or 1 in place of its last axis, or without it
---@param options? {full?: boolean, eps?: number, reduction?: perigee.Reduction}
---@return perigee.Tensor
function nn.gaussian_nll(x, y, var, options) end

---max(0, 1 - y x) for targets y of -1 and 1.
---@param x perigee.Tensor # scores
---@param y perigee.Tensor # the shape of x
---@param options? {reduction?: perigee.Reduction}
---@return perigee.Tensor
function nn.hinge(x, y, options) end

---x where y is 1 (pairs that belong together: a distance to be small), max(0, margin - x) where it is -1.
---@param x perigee.Tensor # distances
---@param y perigee.Tensor # 1 or -1, broadcasts against x
---@param options? {margin?: number, reduction?: perigee.Reduction}
---@return perigee.Tensor
function nn.hinge_embedding(x, y, options) end

---Quadratic within delta, linear outside (Huber, 1964): with d = |x - y|, d^2 / 2 where d < delta, else
---delta (d - delta / 2).
---@param x perigee.Tensor # prediction
---@param y perigee.Tensor # the shape of x
---@param options? {delta?: number, weight?: perigee.Tensor, reduction?: perigee.Reduction}
---@return perigee.Tensor
function nn.huber(x, y, options) end

---Whether v is a layer.
---@param v any # anything
---@return boolean
function nn.is_layer(v) end

---Whether v is a tensor that layers register as a parameter.
---@param v any # anything
---@return boolean
function nn.is_parameter(v) end

---Divergence of the target's distribution from the predicted one (Kullback and Leibler 1951): target (log target - x),
---x being log probabilities; with log_target the target is too. reduction "batchmean" divides the sum by the size of
---axis 1, which is the divergence as it is defined; "mean" divides by the number of elements, as in PyTorch.
---@param x perigee.Tensor # log probabilities
---@param target perigee.Tensor # the shape of x
---@param options? {reduction?: perigee.Reduction|"batchmean", log_target?: boolean}
---@return perigee.Tensor
function nn.kl_div(x, target, options) end

---Mean of |x - y|; with a weight, the weighed sum divided by the sum of the weights.
---@param x perigee.Tensor # prediction
---@param y perigee.Tensor # the shape of x
---@param options? {weight?: perigee.Tensor, reduction?: perigee.Reduction}
---@return perigee.Tensor
function nn.l1(x, y, options) end

---Freezes a model and puts adapters beside its Linear layers, or the layers that are named: each then adds
---alpha / rank B(A(x)), A and B being layers of `rank` outputs and inputs, and only they are trained (Hu et al., 2021).
---B begins as zeros, so that nothing changes at first. Convolutions can be targets too, and "MultiheadAttention" or the
---name of one: its in_proj_weight, to which queries, keys and values share an A. Names in state() stay, beside
---`fc.weight` there are `fc.lora_A.weight` and `fc.lora_B.weight`, as PEFT has them. Answers the adapters, which are
---saved alone, merged into the weights, or taken away.
---@param ... perigee.Layer|integer|{model: perigee.Layer, rank?: integer, alpha?: number, dropout?: number, targets?: (string|function)[], train?: (string|function)[]} # model, rank=8, alpha, dropout=0, targets={"Linear"}, train
---@return perigee.Adapters
function nn.lora(...) end

---max(0, margin - y (a - b)): where y is 1, a should rank above b.
---@param a perigee.Tensor # scores
---@param b perigee.Tensor # the shape of a
---@param y perigee.Tensor # 1 or -1, broadcasts against a, with no axes of its own
---@param options? {margin?: number, reduction?: perigee.Reduction}
---@return perigee.Tensor
function nn.margin_ranking(a, b, y, options) end

---Mean of (x - y)^2; with a weight, the weighed sum divided by the sum of the weights.
---@param x perigee.Tensor # prediction
---@param y perigee.Tensor # the shape of x
---@param options? {weight?: perigee.Tensor, reduction?: perigee.Reduction}
---@return perigee.Tensor
function nn.mse(x, y, options) end

---weight[label] / C times the sum of max(0, margin - x[label] + x[c])^p over the classes c other than the label
---(Crammer and Singer, 2001).
---@param x perigee.Tensor # [N, C] or [C]
---@param labels perigee.Tensor # int64 [N] or []
---@param options? {p?: integer, margin?: number, weight?: perigee.Tensor, reduction?: perigee.Reduction} # p: 1 or 2
---@return perigee.Tensor
function nn.multi_margin(x, labels, options) end

---Binary cross entropy of logits [..., C] of C independent labels each, averaged over them: the mean over C of
--- -(y log(s) + (1 - y) log(1 - s)) with s = sigmoid(x).
---@param x perigee.Tensor # logits
---@param y perigee.Tensor # the shape of x
---@param options? {weight?: perigee.Tensor, reduction?: perigee.Reduction}
---@return perigee.Tensor
function nn.multilabel_soft_margin(x, y, options) end

---Negative log likelihood -weight[y] x[y] of log probabilities x. "mean" divides by the sum of the labels' weights.
---@param log_probs perigee.Tensor # [N, C] or [N, C, ...]
---@param labels perigee.Tensor # int64 [N, ...] from 0
---@param options? {weight?: perigee.Tensor, ignore_index?: integer, reduction?: perigee.Reduction}
---@return perigee.Tensor
function nn.nll(log_probs, labels, options) end

---Negative log likelihood exp(x) - y x of counts y under Poisson's distribution of mean exp(x), or x - y log(x + eps)
---of mean x with log_input=false; without the term log(y!), which x does not change.
---@param x perigee.Tensor # the mean, or its logarithm
---@param y perigee.Tensor # the shape of x
---@param options? {log_input?: boolean, full?: boolean, eps?: number, reduction?: perigee.Reduction}
---@return perigee.Tensor
function nn.poisson_nll(x, y, options) end

---Cross entropy over classes that are shared out: what nn.cross_entropy gives of the logits of all processes behind
---each other, on each of them, without bringing these together. Classes stand on the last axis.
---@param ... perigee.Tensor|{logits: perigee.Tensor, labels: perigee.Tensor, group: perigee.Group, reduction?: "mean"|"sum"|"none", label_smoothing?: number, ignore_index?: integer} # logits, labels, group, reduction=mean, label_smoothing=0, ignore_index=-100
---@return perigee.Tensor
function nn.sharded_cross_entropy(...) end

---Huber's loss divided by beta (Girshick, 2015): with d = |x - y|, d^2 / (2 beta) where d < beta, else d - beta / 2.
---@param x perigee.Tensor # prediction
---@param y perigee.Tensor # the shape of x
---@param options? {beta?: number, reduction?: perigee.Reduction}
---@return perigee.Tensor
function nn.smooth_l1(x, y, options) end

---log(1 + exp(-y x)) for targets y of -1 and 1.
---@param x perigee.Tensor # scores
---@param y perigee.Tensor # the shape of x
---@param options? {reduction?: perigee.Reduction}
---@return perigee.Tensor
function nn.soft_margin(x, y, options) end

---max(0, margin + d(anchor, positive) - d(anchor, negative)), d being the p-norm of the difference along the last axis
---(Schroff, Kalenichenko and Philbin, 2015; swap: Balntas et al., 2016).
---@param anchor perigee.Tensor # [N, D]
---@param near perigee.Tensor # [N, D] of the same class
---@param far perigee.Tensor # [N, D] of another one
---@param options? {margin?: number, p?: number, eps?: number, swap?: boolean, reduction?: perigee.Reduction}
---@return perigee.Tensor
function nn.triplet_margin(anchor, near, far, options) end

---pg.im2col: windows of images as columns.
---@param ... any # as those of pg.im2col
---@return perigee.Tensor
function nn.unfold(...) end
