// SPDX-License-Identifier: Apache-2.0
// Convolution by columns: every window of an image unrolled into a column of a matrix, then a matrix product.
#include <algorithm>

#include "conv/conv.hpp"
#include "linalg/gemm.hpp"

namespace pg::cpu {
namespace {

// A dense view of a tensor: itself, or a copy in the workspace.
template <class T>
const T* densify(const pg_tensor& t, const int64_t* shape, const int64_t* stride, bool dense, const void* data,
                 Scratch& scratch) {
  if (dense) return static_cast<const T*>(data);
  int64_t count = element_count(t);
  auto* copy = static_cast<T*>(scratch.take(static_cast<uint64_t>(count) * sizeof(T)));
  if (data != nullptr) gather(t.rank, shape, stride, static_cast<const T*>(data), copy);
  return copy;
}

template <class T>
class ColumnConvolution final : public Convolution {
 public:
  explicit ColumnConvolution(const ConvShape& shape) : s_(shape) {
    remember(s_.x, x_), remember(s_.weight, weight_), remember(s_.y, y_);
    depth_ = s_.c / s_.groups * s_.kh * s_.kw, plane_ = s_.oh * s_.ow, outputs_ = s_.o / s_.groups;
  }

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
    bool empty = s_.n * plane_ * outputs_ * depth_ == 0;
    switch (s_.kind) {
      case ConvKind::kForward:
        start_forward(static_cast<const T*>(data.bias), result);
        if (!empty) forward(p, result);
        break;
      case ConvKind::kInputGradient:
        std::fill_n(result, s_.n * s_.c * s_.h * s_.w, T{});
        if (!empty) input_gradient(p, result);
        break;
      case ConvKind::kWeightGradient:
        std::fill_n(result, s_.o * depth_, T{});
        if (!empty) weight_gradient(p, result);
        break;
    }
  }

 private:
  struct Layout {
    int64_t shape[4], stride[4];
    bool dense;
  };
  struct Pieces {
    const T *x = nullptr, *weight = nullptr, *y = nullptr;
    T* columns = nullptr;
    void* gemm = nullptr;
  };

  static void remember(const pg_tensor& t, Layout& layout) {
    std::copy_n(t.shape, 4, layout.shape), std::copy_n(t.stride, 4, layout.stride);
    layout.dense = is_dense(t);
  }

  void reserve(Scratch& scratch, const ConvData& d, Pieces& p) const {
    auto take = [&](const pg_tensor& t, const Layout& l, const void* data) {
      return densify<T>(t, l.shape, l.stride, l.dense, data, scratch);
    };
    // Element counts come from the remembered shapes: the call's own are gone at launch.
    pg_tensor x = s_.x, weight = s_.weight, y = s_.y;
    x.shape = x_.shape, weight.shape = weight_.shape, y.shape = y_.shape;
    if (s_.kind != ConvKind::kInputGradient) p.x = take(x, x_, d.x);
    if (s_.kind != ConvKind::kWeightGradient) p.weight = take(weight, weight_, d.weight);
    if (s_.kind != ConvKind::kForward) p.y = take(y, y_, d.y);
    p.columns = static_cast<T*>(scratch.take(static_cast<uint64_t>(depth_ * plane_) * sizeof(T)));
    if (depth_ * plane_ * outputs_ == 0) return;
    uint64_t bytes = std::max({gemm_workspace<T>(outputs_, plane_, depth_), gemm_workspace<T>(depth_, plane_, outputs_),
                               gemm_workspace<T>(outputs_, depth_, plane_)});
    p.gemm = scratch.take(bytes);
  }

  void start_forward(const T* bias, T* y) const {
    int64_t o = s_.o, plane = plane_, step = s_.bias_stride;
    parallel_for(s_.n * o, std::max<int64_t>(1, 16384 / (plane + 1)), [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++)
        std::fill_n(y + i * plane, plane, bias == nullptr ? T{} : bias[i % o * step]);
    });
  }

  // Calls body(channel, ky, kx, row of the column matrix) for the rows begin .. end of one group.
  template <class Body>
  void for_rows(Body&& body) const {
    int64_t kw = s_.kw, kh = s_.kh;
    parallel_for(depth_, std::max<int64_t>(1, 16384 / (plane_ + 1)), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; row++) body(row / (kw * kh), row / kw % kh, row % kw, row);
    });
  }

  void unroll(const T* image, T* columns) const {
    for_rows([&](int64_t channel, int64_t ky, int64_t kx, int64_t row) {
      T* out = columns + row * plane_;
      const T* source = image + channel * s_.h * s_.w;
      for (int64_t y = 0; y < s_.oh; y++) {
        int64_t sy = y * s_.stride[0] - s_.padding[0] + ky * s_.dilation[0];
        bool inside = sy >= 0 && sy < s_.h;
        for (int64_t x = 0; x < s_.ow; x++) {
          int64_t sx = x * s_.stride[1] - s_.padding[1] + kx * s_.dilation[1];
          *out++ = inside && sx >= 0 && sx < s_.w ? source[sy * s_.w + sx] : T{};
        }
      }
    });
  }

  // The transpose of unroll: adds every column entry to the pixel it came from. Parallel by channel, so that no two
  // threads write the same pixel.
  void roll(const T* columns, T* image) const {
    parallel_for(s_.c / s_.groups, 1, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin * s_.kh * s_.kw; row < end * s_.kh * s_.kw; row++) {
        int64_t channel = row / (s_.kh * s_.kw), ky = row / s_.kw % s_.kh, kx = row % s_.kw;
        const T* in = columns + row * plane_;
        T* target = image + channel * s_.h * s_.w;
        for (int64_t y = 0; y < s_.oh; y++) {
          int64_t sy = y * s_.stride[0] - s_.padding[0] + ky * s_.dilation[0];
          for (int64_t x = 0; x < s_.ow; x++, in++) {
            int64_t sx = x * s_.stride[1] - s_.padding[1] + kx * s_.dilation[1];
            if (sy >= 0 && sy < s_.h && sx >= 0 && sx < s_.w) target[sy * s_.w + sx] += *in;
          }
        }
      }
    });
  }

  // body(group, offset of its x, offset of its y) for every image and group.
  template <class Body>
  void for_groups(Body&& body) const {
    for (int64_t i = 0; i < s_.n * s_.groups; i++) {
      body(i % s_.groups, i * (s_.c / s_.groups) * s_.h * s_.w, i * outputs_ * plane_);
    }
  }

  void forward(const Pieces& p, T* y) const {
    for_groups([&](int64_t group, int64_t at_x, int64_t at_y) {
      unroll(p.x + at_x, p.columns);
      gemm<T>(outputs_, plane_, depth_, {p.weight + group * outputs_ * depth_, depth_, 1}, {p.columns, plane_, 1},
              {y + at_y, plane_, 1}, {nullptr, 1, true}, p.gemm);
    });
  }

  void input_gradient(const Pieces& p, T* dx) const {
    for_groups([&](int64_t group, int64_t at_x, int64_t at_y) {
      gemm<T>(depth_, plane_, outputs_, {p.weight + group * outputs_ * depth_, 1, depth_}, {p.y + at_y, plane_, 1},
              {p.columns, plane_, 1}, {}, p.gemm);
      roll(p.columns, dx + at_x);
    });
  }

  void weight_gradient(const Pieces& p, T* dw) const {
    for_groups([&](int64_t group, int64_t at_x, int64_t at_y) {
      unroll(p.x + at_x, p.columns);
      gemm<T>(outputs_, depth_, plane_, {p.y + at_y, plane_, 1}, {p.columns, 1, plane_},
              {dw + group * outputs_ * depth_, depth_, 1}, {nullptr, 1, true}, p.gemm);
    });
  }

  ConvShape s_;
  Layout x_, weight_, y_;
  int64_t depth_, plane_, outputs_;
};

}  // namespace

std::unique_ptr<Convolution> make_column_convolution(const ConvShape& shape) {
  if (shape.dtype == PG_F64) return std::make_unique<ColumnConvolution<double>>(shape);
  return std::make_unique<ColumnConvolution<float>>(shape);
}

}  // namespace pg::cpu
