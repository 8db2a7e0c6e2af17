// SPDX-License-Identifier: Apache-2.0
// Convolution by columns: every window of an image unrolled into a column of a matrix, then a matrix product.
#include <algorithm>

#include "conv/conv.hpp"
#include "linalg/gemm.hpp"

namespace pg::cpu {
namespace {

template <class T>
class ColumnConvolution final : public Convolution {
 public:
  explicit ColumnConvolution(const ConvShape& s)
      : s_(s),
        depth_(s.c / s.groups * s.taps()),
        plane_(s.out_count()),
        image_(s.in_count()),
        outputs_(s.o / s.groups),
        product_(product_of(s.kind)) {}

  uint64_t workspace() const override {
    Scratch scratch;
    Pieces pieces;
    reserve(scratch, ConvData{}, pieces);
    return scratch.bytes();
  }

  void run(const ConvData& data) override {
    Scratch scratch(data.workspace);
    Pieces p;
    reserve(scratch, data, p);
    auto* result = static_cast<T*>(data.result);
    const auto* bias = static_cast<const T*>(data.bias);
    bool empty = s_.n * plane_ * outputs_ * depth_ == 0;
    switch (s_.kind) {
      case ConvKind::kForward:
        start(bias, result, s_.o, plane_);
        if (!empty) forward(p, result);
        break;
      case ConvKind::kInputGradient:
        start(bias, result, s_.c, image_);
        if (!empty) input_gradient(p, result);
        break;
      case ConvKind::kWeightGradient:
        std::fill_n(result, s_.o * depth_, T{});
        if (!empty) weight_gradient(p, result);
        break;
    }
  }

 private:
  struct Pieces {
    const T *x = nullptr, *weight = nullptr, *y = nullptr;
    T* columns = nullptr;
    void* gemm = nullptr;
  };

  // A dense view of a tensor: itself, or a copy in the workspace.
  static const T* densify(const ConvOperand& t, const void* data, Scratch& scratch) {
    if (t.dense()) return static_cast<const T*>(data);
    auto* copy = static_cast<T*>(scratch.take(static_cast<uint64_t>(t.count()) * sizeof(T)));
    if (data != nullptr) gather(t.rank, t.shape, t.stride, static_cast<const T*>(data), copy);
    return copy;
  }

  void reserve(Scratch& scratch, const ConvData& d, Pieces& p) const {
    if (s_.kind != ConvKind::kInputGradient) p.x = densify(s_.x, d.x, scratch);
    if (s_.kind != ConvKind::kWeightGradient) p.weight = densify(s_.weight, d.weight, scratch);
    if (s_.kind != ConvKind::kForward) p.y = densify(s_.y, d.y, scratch);
    p.columns = static_cast<T*>(scratch.take(static_cast<uint64_t>(depth_ * plane_) * sizeof(T)));
    if (depth_ * plane_ * outputs_ == 0) return;
    p.gemm = scratch.take(product_.workspace());
  }

  void start(const T* bias, T* result, int64_t channels, int64_t size) const {
    int64_t step = s_.bias_stride;
    parallel_for(s_.n * channels, std::max<int64_t>(1, 16384 / (size + 1)), [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++)
        std::fill_n(result + i * size, size, bias == nullptr ? T{} : bias[i % channels * step]);
    });
  }

  // Calls body(place in the column row, first place in the image, where output 0 looks along the last axis) for the
  // rows of outputs that row `row` of the column matrix holds; the image's place is -1 outside of it.
  template <class Body>
  void for_lines(int64_t row, Body&& body) const {
    const int64_t *in = s_.in, *out = s_.out, *k = s_.kernel;
    int64_t tap[3] = {row / k[2] / k[1] % k[0], row / k[2] % k[1], row % k[2]}, channel = row / s_.taps(), at[3];
    int64_t first = tap[2] * s_.dilation[2] - s_.padding[2];
    for (int64_t line = 0; line < out[0] * out[1]; line++) {
      int64_t o[2] = {line / out[1], line % out[1]};
      for (int i = 0; i < 2; i++) at[i] = o[i] * s_.stride[i] - s_.padding[i] + tap[i] * s_.dilation[i];
      bool inside = at[0] >= 0 && at[0] < in[0] && at[1] >= 0 && at[1] < in[1];
      body(line * out[2], inside ? ((channel * in[0] + at[0]) * in[1] + at[1]) * in[2] : -1, first);
    }
  }

  void unroll(const T* image, T* columns) const {
    parallel_for(depth_, std::max<int64_t>(1, 16384 / (plane_ + 1)), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; row++) {
        for_lines(row, [&](int64_t to, int64_t from, int64_t first) {
          T* target = columns + row * plane_ + to;
          for (int64_t i = 0, x = first; i < s_.out[2]; i++, x += s_.stride[2])
            target[i] = from >= 0 && x >= 0 && x < s_.in[2] ? image[from + x] : T{};
        });
      }
    });
  }

  // The transpose of unroll: adds every column entry to the pixel it came from. Parallel by channel, so that no two
  // threads write the same pixel.
  void roll(const T* columns, T* image) const {
    parallel_for(s_.c / s_.groups, 1, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin * s_.taps(); row < end * s_.taps(); row++) {
        for_lines(row, [&](int64_t from, int64_t to, int64_t first) {
          const T* source = columns + row * plane_ + from;
          for (int64_t i = 0, x = first; to >= 0 && i < s_.out[2]; i++, x += s_.stride[2])
            if (x >= 0 && x < s_.in[2]) image[to + x] += source[i];
        });
      }
    });
  }

  // body(group, offset of its x, offset of its y) for every image and group.
  template <class Body>
  void for_groups(Body&& body) const {
    for (int64_t i = 0; i < s_.n * s_.groups; i++) {
      body(i % s_.groups, i * (s_.c / s_.groups) * image_, i * outputs_ * plane_);
    }
  }

  void forward(const Pieces& p, T* y) const {
    for_groups([&](int64_t group, int64_t at_x, int64_t at_y) {
      unroll(p.x + at_x, p.columns);
      product_.run({p.weight + group * outputs_ * depth_, depth_, 1}, {p.columns, plane_, 1}, nullptr,
                   {y + at_y, plane_, 1}, {nullptr, 1, true}, p.gemm);
    });
  }

  void input_gradient(const Pieces& p, T* dx) const {
    for_groups([&](int64_t group, int64_t at_x, int64_t at_y) {
      product_.run({p.weight + group * outputs_ * depth_, 1, depth_}, {p.y + at_y, plane_, 1}, nullptr,
                   {p.columns, plane_, 1}, {}, p.gemm);
      roll(p.columns, dx + at_x);
    });
  }

  void weight_gradient(const Pieces& p, T* dw) const {
    for_groups([&](int64_t group, int64_t at_x, int64_t at_y) {
      unroll(p.x + at_x, p.columns);
      product_.run({p.y + at_y, plane_, 1}, {p.columns, 1, plane_}, nullptr,
                   {dw + group * outputs_ * depth_, depth_, 1}, {nullptr, 1, true}, p.gemm);
    });
  }

  // That of one image and group. Nothing is asked of it where a dimension is empty.
  Gemm<T> product_of(ConvKind kind) const {
    auto make = [](int64_t m, int64_t n, int64_t k) {
      return Gemm<T>(std::max<int64_t>(m, 1), std::max<int64_t>(n, 1), std::max<int64_t>(k, 1), thread_count());
    };
    if (kind == ConvKind::kForward) return make(outputs_, plane_, depth_);
    return kind == ConvKind::kInputGradient ? make(depth_, plane_, outputs_) : make(outputs_, depth_, plane_);
  }

  ConvShape s_;
  int64_t depth_, plane_, image_, outputs_;
  Gemm<T> product_;
};

}  // namespace

std::unique_ptr<Convolution> make_column_convolution(const ConvShape& shape) {
  if (shape.dtype == PG_F64) return std::make_unique<ColumnConvolution<double>>(shape);
  return std::make_unique<ColumnConvolution<float>>(shape);
}

}  // namespace pg::cpu
