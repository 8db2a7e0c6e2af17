// SPDX-License-Identifier: Apache-2.0
// oneDNN's convolutions run several times faster in a layout of their own than in plain NCHW (MEASUREMENTS.md), even
// with reorders on both sides. Channels-last tensors are taken as they lie.
#include "conv/conv.hpp"
#include "onednn/adapted.hpp"

namespace pg::cpu {
namespace {

using onednn::Desc;
using onednn::Dims;

bool lies_channels_last(const pg_tensor& t) {
  return t.rank == 4 && t.shape[1] > 1 && t.stride[1] == 1 && t.stride[3] == t.shape[1] &&
         t.stride[2] == t.shape[3] * t.stride[3] && t.stride[0] == t.shape[2] * t.stride[2];
}

// A tensor's layout in oneDNN's words. Axes of size 1 may have any stride, which would hide that a tensor is dense.
Desc given(const pg_tensor& t, const Dims& dims) {
  onednn::DataType type = onednn::data_type(dtype_of(t));
  if (is_dense(t)) return onednn::dense(dims, type);
  if (lies_channels_last(t) && dims.size() == 4) return onednn::channels_last(dims, type);
  Dims stride(t.stride, t.stride + t.rank);
  if (dims.size() == 5) stride.insert(stride.begin(), stride[0] * dims[1]);  // groups, outputs within the group, ...
  return Desc(dims, type, stride);
}

class OnednnConvolution final : public Convolution {
 public:
  explicit OnednnConvolution(const ConvShape& s) : kind_(s.kind), bias_(s.bias) {
    onednn::DataType type = onednn::data_type(s.dtype);
    Dims x{s.n, s.c, s.h, s.w}, y{s.n, s.o, s.oh, s.ow}, weight{s.o, s.c / s.groups, s.kh, s.kw};
    if (s.groups > 1) weight = {s.groups, s.o / s.groups, s.c / s.groups, s.kh, s.kw};
    x_ = given(s.x, x), y_ = given(s.y, y), weight_ = given(s.weight, weight);
    bool last = lies_channels_last(s.kind == ConvKind::kInputGradient ? s.y : s.x);
    auto data = [&](const Dims& dims) { return last ? onednn::channels_last(dims, type) : onednn::any(dims, type); };
    Desc bias({s.o}, type, onednn::Tag::a);
    // Few channels: oneDNN would pad them to a whole vector for the weight gradient, 2.5 times slower with one.
    bool few = s.kind == ConvKind::kWeightGradient && s.groups == 1 && s.c < 4 && !last;
    if (few && try_create(s, onednn::dense(x, type), onednn::any(weight, type), data(y), bias)) return;
    create(s, data(x), onednn::any(weight, type), data(y), bias);
  }

  uint64_t workspace() const override { return adapted_.workspace(); }
  uint64_t packed_bytes() const override { return kind_ == ConvKind::kWeightGradient ? 0 : adapted_.packed_bytes(1); }
  void pack(const void* weight, void* target) override { adapted_.pack(1, weight, target); }

  void run(const ConvData& d) override {
    auto address = [](const void* p) { return const_cast<void*>(p); };
    std::vector<void*> addresses;
    switch (kind_) {
      case ConvKind::kForward: addresses = {address(d.x), address(d.weight), d.result}; break;
      case ConvKind::kInputGradient: addresses = {address(d.y), address(d.weight), d.result}; break;
      case ConvKind::kWeightGradient: addresses = {address(d.y), address(d.x), d.result}; break;
    }
    if (bias_) addresses.push_back(address(d.bias));
    adapted_.run(std::move(addresses), {nullptr, d.packed_weight}, d.workspace);
  }

 private:
  bool try_create(const ConvShape& s, const Desc& x, const Desc& weight, const Desc& y, const Desc& bias) {
    try {
      create(s, x, weight, y, bias);
      return true;
    } catch (const dnnl::error&) {
      return false;
    }
  }

  // Descriptions that oneDNN may choose a layout for, with the layouts it is given.
  void create(const ConvShape& s, const Desc& x, const Desc& weight, const Desc& y, const Desc& bias) {
    constexpr auto direct = dnnl::algorithm::convolution_direct;
    const dnnl::engine& engine = onednn::engine();
    Dims stride{s.stride[0], s.stride[1]}, dilation{s.dilation[0] - 1, s.dilation[1] - 1};
    Dims before{s.padding[0], s.padding[1]}, after;
    // What the last window leaves over need not be padded: oneDNN checks that the sizes fit exactly.
    after = {(s.oh - 1) * s.stride[0] + (s.kh - 1) * s.dilation[0] + 1 - s.h - s.padding[0],
             (s.ow - 1) * s.stride[1] + (s.kw - 1) * s.dilation[1] + 1 - s.w - s.padding[1]};
    auto training = dnnl::prop_kind::forward_training;
    dnnl::convolution_forward::desc forward =
        s.bias ? dnnl::convolution_forward::desc(training, direct, x, weight, bias, y, stride, dilation, before, after)
               : dnnl::convolution_forward::desc(training, direct, x, weight, y, stride, dilation, before, after);
    dnnl::convolution_forward::primitive_desc pd(forward, onednn::user_scratchpad(), engine);
    if (s.kind == ConvKind::kForward) {
      require_fast(pd);
      std::vector<onednn::Operand> operands = {{DNNL_ARG_SRC, x_, pd.src_desc()},
                                               {DNNL_ARG_WEIGHTS, weight_, pd.weights_desc()},
                                               {DNNL_ARG_DST, y_, pd.dst_desc(), true}};
      if (s.bias) operands.push_back({DNNL_ARG_BIAS, bias, bias});
      adapted_ = onednn::Adapted(dnnl::convolution_forward(pd), std::move(operands), pd.scratchpad_desc());
    } else if (s.kind == ConvKind::kInputGradient) {
      dnnl::convolution_backward_data::desc desc(direct, x, weight, y, stride, dilation, before, after);
      dnnl::convolution_backward_data::primitive_desc back(desc, onednn::user_scratchpad(), engine, pd);
      require_fast(back);
      adapted_ = onednn::Adapted(dnnl::convolution_backward_data(back),
                                 {{DNNL_ARG_DIFF_DST, y_, back.diff_dst_desc()},
                                  {DNNL_ARG_WEIGHTS, weight_, back.weights_desc()},
                                  {DNNL_ARG_DIFF_SRC, x_, back.diff_src_desc(), true}},
                                 back.scratchpad_desc());
    } else {
      dnnl::convolution_backward_weights::desc desc(direct, x, weight, y, stride, dilation, before, after);
      dnnl::convolution_backward_weights::primitive_desc back(desc, onednn::user_scratchpad(), engine, pd);
      require_fast(back);
      adapted_ = onednn::Adapted(dnnl::convolution_backward_weights(back),
                                 {{DNNL_ARG_DIFF_DST, y_, back.diff_dst_desc()},
                                  {DNNL_ARG_SRC, x_, back.src_desc()},
                                  {DNNL_ARG_DIFF_WEIGHTS, weight_, back.diff_weights_desc(), true}},
                                 back.scratchpad_desc());
    }
  }

  static void require_fast(const dnnl::primitive_desc_base& pd) {
    if (!onednn::is_fast(pd)) throw dnnl::error(dnnl_unimplemented, "no kernel but the reference one");
  }

  ConvKind kind_;
  bool bias_;
  Desc x_, weight_, y_;
  onednn::Adapted adapted_;
};

bool has_zero_stride(const pg_tensor& t) {
  for (uint32_t i = 0; i < t.rank; i++) {
    if (t.shape[i] > 1 && t.stride[i] == 0) return true;
  }
  return false;
}

}  // namespace

std::unique_ptr<Convolution> make_onednn_convolution(const ConvShape& s) {
  if (onednn::data_type(s.dtype) == onednn::DataType::undef) return nullptr;
  if (s.n * s.c * s.h * s.w * s.o * s.oh * s.ow * s.kh * s.kw == 0) return nullptr;
  if (has_zero_stride(s.x) || has_zero_stride(s.y) || has_zero_stride(s.weight)) return nullptr;
  if (s.bias && s.bias_stride != 1 && s.o > 1) return nullptr;
  if (s.groups > 1 && !is_dense(s.weight) && s.weight.stride[0] < 1) return nullptr;
  try {
    return std::make_unique<OnednnConvolution>(s);
  } catch (const dnnl::error& e) {
    if (e.status == dnnl_unimplemented || e.status == dnnl_invalid_arguments) return nullptr;
    onednn::check(e.status, "convolution");
    return nullptr;
  }
}

}  // namespace pg::cpu
