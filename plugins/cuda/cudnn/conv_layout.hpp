// SPDX-License-Identifier: Apache-2.0
// Convolutions once shapes and attributes have been read, and what of their operands' layouts cuDNN is told. Arithmetic
// on the host and without CUDA, so that it is tested where there is no GPU.
#pragma once

#include <array>
#include <cstdint>

namespace cuda::dnn {

using Four = std::array<int64_t, 4>;

enum class ConvKind { kForward, kInputGradient, kWeightGradient };

// All three are y [n, o, oh, ow] = x [n, c, h, w] * weight [o, c / groups, kh, kw]: of the three tensors one is asked
// for, the other two are given.
struct ConvShape {
  ConvKind kind = ConvKind::kForward;
  uint32_t dtype = 0;
  Four x{}, weight{}, y{};                       // shapes
  Four x_stride{}, weight_stride{}, y_stride{};  // in elements
  int64_t groups = 1, stride[2] = {1, 1}, padding[2] = {}, behind[2] = {},
          dilation[2] = {1, 1};  // padding before, behind
  bool bias = false;             // forward only
  int64_t bias_stride = 1;

  const Four& result() const { return kind == ConvKind::kForward ? y : kind == ConvKind::kInputGradient ? x : weight; }
};

inline int64_t count_of(const Four& shape) { return shape[0] * shape[1] * shape[2] * shape[3]; }

constexpr Four dense_strides(const Four& s) { return {s[1] * s[2] * s[3], s[2] * s[3], s[3], 1}; }
constexpr Four channels_last_strides(const Four& s) { return {s[1] * s[2] * s[3], 1, s[1] * s[3], s[1]}; }

// Axes of size 1 may have any stride.
constexpr bool lies_as(const Four& shape, const Four& stride, const Four& expected) {
  for (int i = 0; i < 4; i++) {
    if (shape[i] != 1 && stride[i] != expected[i]) return false;
  }
  return true;
}

enum class Layout { kDense, kChannelsLast, kOther };

// Dense where both fit.
constexpr Layout layout_of(const Four& shape, const Four& stride) {
  if (lies_as(shape, stride, dense_strides(shape))) return Layout::kDense;
  if (lies_as(shape, stride, channels_last_strides(shape))) return Layout::kChannelsLast;
  return Layout::kOther;
}

// Strides that say the same, also along axes of size 1; those of a dense copy for other layouts.
constexpr Four told_strides(const Four& shape, Layout layout) {
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
