// SPDX-License-Identifier: Apache-2.0
#include "conv/conv.hpp"
#include "onednn/onednn.hpp"

namespace pg::cpu {
namespace {

// A dense float32 stand-in for a tensor of 16-bit floats.
struct Wide {
  ConvOperand own, wide;

  explicit Wide(const ConvOperand& t) : own(t), wide(t) {
    int64_t step = 1;
    for (uint32_t i = t.rank; i-- > 0; step *= t.shape[i]) wide.stride[i] = step;
  }
  uint64_t bytes() const { return static_cast<uint64_t>(own.count()) * sizeof(float); }
};

template <class T>
class WidenedConvolution final : public Convolution {
 public:
  explicit WidenedConvolution(const ConvShape& s)
      : kind_(s.kind),
        biases_(s.kind == ConvKind::kInputGradient ? s.c : s.o),
        bias_stride_(s.bias ? s.bias_stride : 0),
        x_(s.x),
        weight_(s.weight),
        y_(s.y) {
    ConvShape wide = s;
    wide.dtype = PG_F32;
    wide.x = x_.wide, wide.weight = weight_.wide, wide.y = y_.wide;
    wide.bias_stride = 1;
    wide.relu = false;  // of what has been rounded
    inner_ = make_convolution(wide);
  }

  uint64_t workspace() const override {
    Scratch scratch;
    reserve(scratch);
    return scratch.bytes();
  }

  void run(const ConvData& d) override {
    Scratch scratch(d.workspace);
    Pieces p = reserve(scratch);
    widen_into(x_, d.x, p.x), widen_into(weight_, d.weight, p.weight), widen_into(y_, d.y, p.y);
    if (d.bias != nullptr) gather(1, &biases_, &bias_stride_, static_cast<const T*>(d.bias), p.bias);
    const Wide& result = kind_ == ConvKind::kForward ? y_ : kind_ == ConvKind::kInputGradient ? x_ : weight_;
    float* sums = kind_ == ConvKind::kForward ? p.y : kind_ == ConvKind::kInputGradient ? p.x : p.weight;
    auto given = [&](const void* original, const float* copy) { return original == nullptr ? nullptr : copy; };
    ConvData wide{};
    wide.x = given(d.x, p.x), wide.weight = given(d.weight, p.weight), wide.y = given(d.y, p.y);
    wide.bias = given(d.bias, p.bias), wide.result = sums, wide.workspace = p.inner;
    inner_->run(wide);
    scatter(result.own.rank, result.own.shape, result.own.stride, sums, static_cast<T*>(d.result));
  }

 private:
  struct Pieces {
    float *x, *weight, *y, *bias;
    void* inner;
  };
  Pieces reserve(Scratch& scratch) const {
    auto take = [&](uint64_t bytes) { return static_cast<float*>(scratch.take(bytes)); };
    return {take(x_.bytes()), take(weight_.bytes()), take(y_.bytes()),
            take(static_cast<uint64_t>(biases_) * sizeof(float)), scratch.take(inner_->workspace())};
  }
  static void widen_into(const Wide& w, const void* data, float* out) {
    if (data != nullptr) gather(w.own.rank, w.own.shape, w.own.stride, static_cast<const T*>(data), out);
  }

  ConvKind kind_;
  int64_t biases_, bias_stride_;
  Wide x_, weight_, y_;
  std::unique_ptr<Convolution> inner_;
};

}  // namespace

std::unique_ptr<Convolution> make_widened_convolution(const ConvShape& shape) {
  if (shape.dtype == PG_BF16) return std::make_unique<WidenedConvolution<BFloat16>>(shape);
  return std::make_unique<WidenedConvolution<Half>>(shape);
}

}  // namespace pg::cpu
