// SPDX-License-Identifier: Apache-2.0
#include "nets/net_convolution.hpp"

#include <algorithm>
#include <cmath>

#include "linalg/work.hpp"

namespace pg::cpu {
namespace {

using onednn::Desc;
using onednn::Dims;
using Algorithm = dnnl::algorithm;
using Forward = dnnl::convolution_forward;

constexpr auto kFloat = onednn::DataType::f32;

// The filters are transformed once, so that fewer tiles pay than where they are transformed at each call
// (conv/README.md). They take 1.8 to 4 times the memory, which has to be read for the tiles that there are.
bool pays_winograd_in_nets(const ConvShape& s) {
  constexpr int64_t kFewestChannels = 64, kFewestTiles = 16;
  return s.suits_winograd() && std::min(s.c, s.o) >= kFewestChannels && s.n * s.image_tiles() >= kFewestTiles;
}

Forward::primitive_desc describe(const NetStep& step, Algorithm algorithm) {
  const ConvShape& s = step.shape;
  const auto type = net_type(step.dtype);
  auto any_of = [&](const Desc& d) { return onednn::any(d.dims(), type); };
  const Desc x = any_of(operand_desc(s.x, type)), y = any_of(operand_desc(s.y, type)),
             weight = any_of(weight_desc(s.weight, s.groups, type)), bias({s.o}, kFloat, onednn::Tag::a);
  Dims stride, dilation, before;
  for (uint32_t i = 5 - s.x.rank; i < 3; i++)
    stride.push_back(s.stride[i]), dilation.push_back(s.dilation[i] - 1), before.push_back(s.padding[i]);
  const Dims after = padding_behind(s);
  const auto inference = dnnl::prop_kind::forward_inference;
  const Forward::desc desc =
      step.has_bias() ? Forward::desc(inference, algorithm, x, weight, bias, y, stride, dilation, before, after)
                      : Forward::desc(inference, algorithm, x, weight, y, stride, dilation, before, after);
  return {desc, net_attributes(step.posts), onednn::engine()};
}

}  // namespace

dnnl::primitive_attr net_attributes(const std::vector<NetPost>& posts) {
  dnnl::primitive_attr attributes = onednn::user_scratchpad();
  dnnl::post_ops list;
  for (const NetPost& p : posts) {
    if (p.sum) {
      list.append_sum(1.0f);
    } else {
      list.append_eltwise(1.0f, p.function.algorithm, p.function.alpha, p.function.beta);
    }
  }
  attributes.set_post_ops(list);
  return attributes;
}

bool is_one_threads(const ConvShape& s) {
  constexpr int64_t kFewest = 8;  // channels that take no less time
  return work_of({s.n, s.o, s.out_count(), std::max(s.c / s.groups, kFewest), s.taps()}) <= onednn::kSmallWork;
}

Forward::primitive_desc describe_net_convolution(const NetStep& step) {
  if (net_type(step.dtype) == kFloat && pays_winograd_in_nets(step.shape)) {
    try {
      auto found = describe(step, Algorithm::convolution_winograd);
      if (found.scratchpad_desc().get_size() <= kWinogradBytes && onednn::is_fast(found)) return found;
    } catch (const dnnl::error& e) {
      if (e.status != dnnl_unimplemented && e.status != dnnl_invalid_arguments) throw;
    }
  }
  auto found = describe(step, Algorithm::convolution_direct);
  if (!onednn::is_fast(found)) fail_support("oneDNN has no kernel but the reference one");
  return found;
}

std::optional<Winograd> find_net_winograd(const NetStep& step) {
  if (net_type(step.dtype) != kFloat) return std::nullopt;
  const auto is_relu = [](const NetPost& p) {
    return !p.sum && p.function.algorithm == Algorithm::eltwise_relu && p.function.alpha == 0;
  };
  const size_t count = step.posts.size();
  if (count > 2 || (count == 2 && !step.posts[0].sum)) return std::nullopt;
  if (count > 0 && !is_relu(step.posts.back()) && !(count == 1 && step.posts[0].sum)) return std::nullopt;
  return Winograd::make(step.shape, true);
}

NetWeights::NetWeights(const Region& piece, const std::vector<uint32_t>& positions, const NetStep& step,
                       const Winograd& winograd)
    : NetWeights(piece, positions, step, Desc()) {
  winograd_ = winograd;
}

NetWeights::NetWeights(const Region& piece, const std::vector<uint32_t>& positions, const NetStep& step,
                       const Desc& weight)
    : dtype_(step.dtype),
      channels_(step.shape.o),
      has_weight_(step.weight != PG_VALUE_NONE),
      has_bias_(step.has_bias()),
      operand_(step.shape.weight),
      fold_(piece, positions, step.shape.o, step.bias, step.norms),
      wanted_(weight) {
  if (has_weight_) input_ = positions[step.weight];
  ConvOperand dense = operand_;
  int64_t size = 1;
  for (uint32_t i = dense.rank; i-- > 0; size *= dense.shape[i]) dense.stride[i] = size;
  if (wanted_ != Desc()) reorder_ = onednn::Reorder(weight_desc(dense, step.shape.groups, kFloat), wanted_);
}

void NetWeights::read_filters(const pg_launch& launch, float* filters) const {
  auto read = [&](auto* given) { gather(operand_.rank, operand_.shape, operand_.stride, given, filters); };
  switch (dtype_) {
    case PG_BF16: return read(pg::input<const BFloat16>(launch, input_));
    case PG_F16: return read(pg::input<const Half>(launch, input_));
    default: return read(pg::input<const float>(launch, input_));
  }
}

void NetWeights::write(const pg_launch& launch, void* weight, void* bias) {
  std::vector<double> scale, shift;
  fold_.read(launch, scale, shift);
  const int64_t count = operand_.count(), row = count / channels_;
  std::vector<float> filters(static_cast<size_t>(count), 1);
  if (has_weight_) read_filters(launch, filters.data());
  for (int64_t i = 0; i < count && fold_.scales(); i++)
    filters[static_cast<size_t>(i)] =
        static_cast<float>(filters[static_cast<size_t>(i)] * scale[static_cast<size_t>(i / row)]);
  if (winograd_) {
    winograd_->transform(filters.data(), static_cast<float*>(weight));
  } else {
    const auto scratch = std::make_unique<std::byte[]>(reorder_.workspace());
    reorder_.run(filters.data(), weight, scratch.get());
  }
  for (int64_t o = 0; has_bias_ && o < channels_; o++)
    static_cast<float*>(bias)[o] = static_cast<float>(shift[static_cast<size_t>(o)]);
}

}  // namespace pg::cpu
