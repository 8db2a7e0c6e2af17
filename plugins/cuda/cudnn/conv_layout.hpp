// SPDX-License-Identifier: Apache-2.0
// Convolutions once shapes and attributes have been read, and what of their operands' layouts cuDNN is told. Arithmetic
// on the host and without CUDA, so that it is tested where there is no GPU.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>

namespace cuda::dnn {

using Four = std::array<int64_t, 4>;

// Of images [n, c, rows, columns] or of volumes [n, c, planes, rows, columns].
class Sizes {
 public:
  constexpr Sizes() = default;
  constexpr Sizes(std::initializer_list<int64_t> values) : count_(values.size()) {
    std::copy(values.begin(), values.end(), values_.begin());
  }
  constexpr Sizes(const Four& four) : count_(4) { std::copy(four.begin(), four.end(), values_.begin()); }
  static constexpr Sizes of(const int64_t* values, size_t count) {
    Sizes out;
    std::copy_n(values, out.count_ = count, out.values_.begin());
    return out;
  }
  constexpr size_t size() const { return count_; }
  constexpr int64_t& operator[](size_t i) { return values_[i]; }
  constexpr int64_t operator[](size_t i) const { return values_[i]; }
  constexpr const int64_t* begin() const { return values_.data(); }
  constexpr const int64_t* end() const { return begin() + count_; }
  constexpr bool operator==(const Sizes& other) const { return std::equal(begin(), end(), other.begin(), other.end()); }

 private:
  std::array<int64_t, 5> values_{};
  size_t count_ = 4;
};

enum class ConvKind { kForward, kInputGradient, kWeightGradient };

// All three are y [n, o, oh, ow] = x [n, c, h, w] * weight [o, c / groups, kh, kw], or the same with a third axis
// before the rows: of the three tensors one is asked for, the other two are given.
struct ConvShape {
  ConvKind kind = ConvKind::kForward;
  uint32_t dtype = 0;
  Sizes x, weight, y;                       // shapes
  Sizes x_stride, weight_stride, y_stride;  // in elements
  int64_t groups = 1;
  // Of the axes that filters slide over; padding before, and behind.
  int64_t stride[3] = {1, 1, 1}, padding[3] = {}, behind[3] = {}, dilation[3] = {1, 1, 1};
  bool bias = false;  // forward only
  int64_t bias_stride = 1;

  size_t axes() const { return x.size() - 2; }
  const Sizes& result() const { return kind == ConvKind::kForward ? y : kind == ConvKind::kInputGradient ? x : weight; }
};

// These take Four and Sizes.
template <class S>
constexpr int64_t count_of(const S& shape) {
  int64_t count = 1;
  for (int64_t size : shape) count *= size;
  return count;
}

template <class S>
constexpr S dense_strides(const S& shape) {
  S stride = shape;
  int64_t step = 1;
  for (size_t i = shape.size(); i-- > 0; step *= shape[i]) stride[i] = step;
  return stride;
}
template <class S>
constexpr S channels_last_strides(const S& shape) {
  S stride = shape;
  int64_t step = shape[1];
  for (size_t i = shape.size(); i-- > 2; step *= shape[i]) stride[i] = step;
  stride[1] = 1, stride[0] = step;
  return stride;
}

// Axes of size 1 may have any stride.
template <class S>
constexpr bool lies_as(const S& shape, const S& stride, const S& expected) {
  for (size_t i = 0; i < shape.size(); i++) {
    if (shape[i] != 1 && stride[i] != expected[i]) return false;
  }
  return true;
}

enum class Layout { kDense, kChannelsLast, kOther };

// Dense where both fit.
template <class S>
constexpr Layout layout_of(const S& shape, const S& stride) {
  if (lies_as(shape, stride, dense_strides(shape))) return Layout::kDense;
  if (lies_as(shape, stride, channels_last_strides(shape))) return Layout::kChannelsLast;
  return Layout::kOther;
}

// Strides that say the same, also along axes of size 1; those of a dense copy for other layouts.
template <class S>
constexpr S told_strides(const S& shape, Layout layout) {
  return layout == Layout::kChannelsLast ? channels_last_strides(shape) : dense_strides(shape);
}

// Which operands cuDNN reads through dense copies: as few as possible at first, all that are not dense if no engine
// takes them as they lie.
struct Layouts {
  Layout x, weight, y;
  bool copy_x = false, copy_weight = false, copy_y = false;

  bool all_dense() const { return x == Layout::kDense && weight == Layout::kDense && y == Layout::kDense; }
};

inline Layouts choose_layouts(const ConvShape& s, bool as_given) {
  Layouts l{layout_of(s.x, s.x_stride), layout_of(s.weight, s.weight_stride), layout_of(s.y, s.y_stride)};
  auto copy = [&](Layout& layout, bool& copied, bool result) {
    copied = !result && (layout == Layout::kOther || (!as_given && layout != Layout::kDense));
    if (copied) layout = Layout::kDense;
  };
  copy(l.x, l.copy_x, s.kind == ConvKind::kInputGradient);
  copy(l.weight, l.copy_weight, s.kind == ConvKind::kWeightGradient);
  copy(l.y, l.copy_y, s.kind == ConvKind::kForward);
  return l;
}

}  // namespace cuda::dnn
