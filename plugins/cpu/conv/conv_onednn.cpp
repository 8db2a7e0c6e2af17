// SPDX-License-Identifier: Apache-2.0
// oneDNN's convolutions run several times faster in a layout of their own than in plain NCHW, even
// with reorders on both sides. Channels-last tensors are taken as they lie. 16-bit floats that it has no arithmetic for
// become float32 in the copies that the layout needs anyway.
#include "conv/conv_onednn.hpp"

#include "linalg/work.hpp"

namespace pg::cpu {
namespace {

using onednn::Desc;
using onednn::Dims;

using Algorithm = dnnl::algorithm;

// Fewer channels take no less time.
constexpr int64_t kFewest = 8;
// Winograd's 4x4 tiles of the result from which on transforming the filters for each call pays.
constexpr int64_t kFewestTiles = 64;

// The result's bias, which backward data does not add.
template <class T>
void add_bias(const void* bias, void* result, int64_t n, int64_t channels, int64_t size) {
  const auto* b = static_cast<const T*>(bias);
  auto* y = static_cast<T*>(result);
  parallel_for(n * channels, std::max<int64_t>(1, 16384 / (size + 1)), [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      Accumulator<T> more = load<T>(b[i % channels]);
      for (int64_t k = 0; k < size; k++) y[i * size + k] = store<T>(load<T>(y[i * size + k]) + more);
    }
  });
}

void require_fast(const dnnl::primitive_desc_base& pd) {
  if (!onednn::is_fast(pd)) throw dnnl::error(dnnl_unimplemented, "no kernel but the reference one");
}

}  // namespace

Desc operand_desc(const ConvOperand& t, onednn::DataType type) {
  Dims dims(t.shape, t.shape + t.rank);
  if (t.dense()) return onednn::dense(dims, type);
  if (t.channels_last()) return onednn::channels_last(dims, type);
  return Desc(dims, type, Dims(t.stride, t.stride + t.rank));
}

Desc weight_desc(const ConvOperand& t, int64_t groups, onednn::DataType type) {
  if (groups == 1) return operand_desc(t, type);
  Dims dims(t.shape, t.shape + t.rank), stride(t.stride, t.stride + t.rank);
  dims[0] /= groups;
  dims.insert(dims.begin(), groups);
  if (t.dense()) return onednn::dense(dims, type);
  stride.insert(stride.begin(), stride[0] * dims[1]);
  return Desc(dims, type, stride);
}

Dims padding_behind(const ConvShape& s) {
  Dims after;
  for (uint32_t i = 5 - s.x.rank; i < 3; i++)
    after.push_back((s.out[i] - 1) * s.stride[i] + (s.kernel[i] - 1) * s.dilation[i] + 1 - s.in[i] - s.padding[i]);
  return after;
}

OnednnConvolution::OnednnConvolution(const ConvShape& s, onednn::DataType type, Algorithm algorithm)
    : algorithm_(algorithm),
      kind_(s.kind),
      dtype_(s.dtype),
      n_(s.n),
      c_(s.c),
      image_(s.in_count()),
      bias_(s.bias),
      one_thread_(s.alone || deterministic() ||
                  work_of({s.n, s.o, s.out_count(), std::max(s.c / s.groups, kFewest), s.taps()}) <=
                      onednn::kSmallWork) {
  onednn::OneThread guard(one_thread_);
  const bool sums = s.alone && s.kind == ConvKind::kWeightGradient;
  onednn::DataType own = onednn::data_type(s.dtype), filters = sums ? onednn::DataType::f32 : type;
  x_ = operand_desc(s.x, own), y_ = operand_desc(s.y, own),
  weight_ = weight_desc(s.weight, s.groups, sums ? onednn::DataType::f32 : own);
  given_bias_ = Desc({s.o}, sums ? onednn::DataType::f32 : own, onednn::Tag::a);
  Dims x = x_.dims(), y = y_.dims(), weight = weight_.dims();
  bool last = (s.kind == ConvKind::kInputGradient ? s.y : s.x).channels_last();
  auto data = [&](const Dims& dims) { return last ? onednn::channels_last(dims, type) : onednn::any(dims, type); };
  Desc bias({s.o}, filters, onednn::Tag::a);
  // Few channels: oneDNN would pad them to a whole vector for the weight gradient, 2.5 times slower with one.
  bool few = s.kind == ConvKind::kWeightGradient && s.groups == 1 && s.c < 4 && !last;
  if (few && try_create(s, onednn::dense(x, type), onednn::any(weight, filters), data(y), bias)) return;
  create(s, data(x), onednn::any(weight, filters), data(y), bias);
}

void OnednnConvolution::run(const ConvData& d) {
  onednn::OneThread guard(one_thread_);
  auto address = [](const void* p) { return const_cast<void*>(p); };
  std::vector<void*> addresses;
  switch (kind_) {
    case ConvKind::kForward: addresses = {address(d.x), address(d.weight), d.result}; break;
    case ConvKind::kInputGradient: addresses = {address(d.y), address(d.weight), d.result}; break;
    case ConvKind::kWeightGradient: addresses = {address(d.y), address(d.x), d.result}; break;
  }
  if (bias_ && kind_ == ConvKind::kForward) addresses.push_back(address(d.bias));
  if (bias_ && kind_ == ConvKind::kWeightGradient) addresses.push_back(d.dbias);
  adapted_.run(std::move(addresses), {d.packed_dy, d.packed_weight}, d.workspace);
  if (!bias_ || kind_ != ConvKind::kInputGradient) return;
  with_float(dtype_, [&](auto tag) { add_bias<typename decltype(tag)::type>(d.bias, d.result, n_, c_, image_); });
}

bool OnednnConvolution::try_create(const ConvShape& s, const Desc& x, const Desc& weight, const Desc& y,
                                   const Desc& bias) {
  try {
    create(s, x, weight, y, bias);
    return true;
  } catch (const dnnl::error&) {
    return false;
  }
}

// Descriptions that oneDNN may choose a layout for, with the layouts it is given.
void OnednnConvolution::create(const ConvShape& s, const Desc& x, const Desc& weight, const Desc& y, const Desc& bias) {
  const dnnl::engine& engine = onednn::engine();
  Dims stride, dilation, before, after = padding_behind(s);
  for (uint32_t i = 5 - s.x.rank; i < 3; i++)
    stride.push_back(s.stride[i]), dilation.push_back(s.dilation[i] - 1), before.push_back(s.padding[i]);
  auto training = dnnl::prop_kind::forward_training;
  bool with_bias = s.bias && s.kind == ConvKind::kForward;
  using Forward = dnnl::convolution_forward::desc;
  const bool sums = s.kind == ConvKind::kWeightGradient;  // whose sums may be wider than what it is the gradient of
  const Desc filters = sums ? onednn::any(weight.dims(), x.data_type()) : weight;
  Forward forward = with_bias ? Forward(training, algorithm_, x, filters, bias, y, stride, dilation, before, after)
                              : Forward(training, algorithm_, x, filters, y, stride, dilation, before, after);
  dnnl::convolution_forward::primitive_desc pd(forward, onednn::user_scratchpad(), engine);
  if (s.kind == ConvKind::kForward) {
    require_fast(pd);
    std::vector<onednn::Operand> operands = {{DNNL_ARG_SRC, x_, pd.src_desc()},
                                             {DNNL_ARG_WEIGHTS, weight_, pd.weights_desc()},
                                             {DNNL_ARG_DST, y_, pd.dst_desc(), true, s.relu, s.alone}};
    if (with_bias) operands.push_back({DNNL_ARG_BIAS, given_bias_, bias});
    adapted_ = onednn::Adapted(dnnl::convolution_forward(pd), std::move(operands), pd.scratchpad_desc());
  } else if (s.kind == ConvKind::kInputGradient) {
    dnnl::convolution_backward_data::desc desc(algorithm_, x, weight, y, stride, dilation, before, after);
    dnnl::convolution_backward_data::primitive_desc back(desc, onednn::user_scratchpad(), engine, pd);
    require_fast(back);
    adapted_ = onednn::Adapted(dnnl::convolution_backward_data(back),
                               {{DNNL_ARG_DIFF_DST, y_, back.diff_dst_desc()},
                                {DNNL_ARG_WEIGHTS, weight_, back.weights_desc()},
                                {DNNL_ARG_DIFF_SRC, x_, back.diff_src_desc(), true, false, s.alone}},
                               back.scratchpad_desc());
  } else {
    using Weights = dnnl::convolution_backward_weights::desc;
    Weights desc = s.bias ? Weights(algorithm_, x, weight, bias, y, stride, dilation, before, after)
                          : Weights(algorithm_, x, weight, y, stride, dilation, before, after);
    dnnl::convolution_backward_weights::primitive_desc back(desc, onednn::user_scratchpad(), engine, pd);
    require_fast(back);
    std::vector<onednn::Operand> operands = {{DNNL_ARG_DIFF_DST, y_, back.diff_dst_desc()},
                                             {DNNL_ARG_SRC, x_, back.src_desc()},
                                             {DNNL_ARG_DIFF_WEIGHTS, weight_, back.diff_weights_desc(), true}};
    if (s.bias) operands.push_back({DNNL_ARG_DIFF_BIAS, given_bias_, bias, true});
    adapted_ = onednn::Adapted(dnnl::convolution_backward_weights(back), std::move(operands), back.scratchpad_desc());
  }
}

namespace {

bool has_zero_stride(const ConvOperand& t) {
  for (uint32_t i = 0; i < t.rank; i++) {
    if (t.shape[i] > 1 && t.stride[i] == 0) return true;
  }
  return false;
}

std::unique_ptr<OnednnConvolution> try_in(const ConvShape& s, onednn::DataType type, Algorithm algorithm) {
  try {
    auto convolution = std::make_unique<OnednnConvolution>(s, type, algorithm);
    if (algorithm == Algorithm::convolution_winograd && convolution->workspace() > kWinogradBytes) return nullptr;
    return convolution;
  } catch (const dnnl::error& e) {
    if (e.status == dnnl_unimplemented || e.status == dnnl_invalid_arguments) return nullptr;
    onednn::check(e.status, "convolution");
    return nullptr;
  }
}

std::unique_ptr<OnednnConvolution> try_in(const ConvShape& s, onednn::DataType type) {
  // Lavin and Gray, "Fast algorithms for convolutional neural networks", 2016: half the time of the direct way or less,
  // and rounding errors like those of its other kernels (README.md). The choice depends on shapes alone, so that the
  // same script gets the same bits.
  if (type == onednn::DataType::f32 && pays_winograd(s)) {
    if (auto convolution = try_in(s, type, Algorithm::convolution_winograd)) return convolution;
  }
  return try_in(s, type, Algorithm::convolution_direct);
}

}  // namespace

bool pays_winograd(const ConvShape& s) { return s.suits_winograd() && s.n * s.image_tiles() >= kFewestTiles; }

std::unique_ptr<WholeConvolution> make_whole_convolution(const ConvShape& s) {
  if (onednn::data_type(s.dtype) == onednn::DataType::undef) return nullptr;
  if (s.x.count() == 0 || s.weight.count() == 0 || s.y.count() == 0) return nullptr;
  if (has_zero_stride(s.x) || has_zero_stride(s.y) || has_zero_stride(s.weight)) return nullptr;
  if (s.kind != ConvKind::kWeightGradient && s.bias && s.bias_stride != 1 &&
      (s.kind == ConvKind::kForward ? s.o : s.c) > 1) {
    return nullptr;
  }
  if (s.groups > 1 && !s.weight.dense() && s.weight.stride[0] < 1) return nullptr;
  if (auto winograd = make_winograd_convolution(s)) return winograd;
  if (onednn::computes(s.dtype)) {
    if (auto convolution = try_in(s, onednn::data_type(s.dtype))) return convolution;
  }
  // A bias that this file adds itself would be added to sums that have been rounded.
  if (s.dtype == PG_F32 || (s.bias && s.kind == ConvKind::kInputGradient)) return nullptr;
  return try_in(s, onednn::DataType::f32);
}

std::unique_ptr<Convolution> make_onednn_convolution(const ConvShape& shape) {
  if (auto split = make_split_convolution(shape)) return split;
  return make_whole_convolution(shape);
}

}  // namespace pg::cpu
