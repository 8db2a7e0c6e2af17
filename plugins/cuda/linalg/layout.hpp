// SPDX-License-Identifier: Apache-2.0
// How a batch of matrix products over strided operands becomes calls of cuBLASLt. Arithmetic on the host and without
// CUDA, so that it is tested where there is no GPU.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "perigee/kernels/product.hpp"

namespace cuda::linalg {

using pg::Activation;
using pg::BatchAxis;
using pg::ProductShape;
using Strides = pg::MatrixStrides;

// An operand as cuBLASLt reads it. Its matrices are column-major, so a row-major operand is its own transpose there.
struct View {
  bool column_major = false;  // in our words
  int64_t ld = 1;
};

// None: neither axis is contiguous, or the rows overlap (a broadcast). The stride along an axis of size 1 says nothing,
// which makes a strided vector a matrix with a leading dimension.
inline std::optional<View> view_of(int64_t rows, int64_t columns, Strides s) {
  if (columns == 1 || s.column == 1) {
    int64_t ld = rows == 1 ? std::max<int64_t>(columns, 1) : s.row;
    if (ld >= columns) return View{false, ld};
  }
  if (rows == 1 || s.row == 1) {
    int64_t ld = columns == 1 ? std::max<int64_t>(rows, 1) : s.column;
    if (ld >= rows) return View{true, ld};
  }
  return std::nullopt;
}

// A copy of an operand, dense in the order of its axes; axes along which it is broadcast are left out.
struct DenseCopy {
  bool needed = false;
  std::vector<int64_t> shape, stride;  // of the source; stride in elements
  int64_t count = 0;                   // elements of the copy
};

// Lets `operand` (&ProductShape::a and &BatchAxis::a, or b's) be such a copy.
inline DenseCopy make_dense(ProductShape& s, Strides ProductShape::*operand, int64_t BatchAxis::*step, int64_t rows,
                            int64_t columns) {
  DenseCopy copy{true, {}, {}, rows * columns};
  for (const BatchAxis& axis : s.batch) {
    if (axis.*step != 0) copy.shape.push_back(axis.size), copy.stride.push_back(axis.*step);
  }
  copy.shape.push_back(rows), copy.shape.push_back(columns);
  copy.stride.push_back((s.*operand).row), copy.stride.push_back((s.*operand).column);
  for (size_t i = s.batch.size(); i-- > 0;) {
    if (s.batch[i].*step == 0) continue;
    s.batch[i].*step = copy.count;
    copy.count *= s.batch[i].size;
  }
  s.*operand = {columns, 1};
  return copy;
}

// The calls: one for every index of `loop`, each over the strided batch `batch`.
struct Calls {
  ProductShape shape;  // with the strides of the copies, where there are any
  DenseCopy copy_a, copy_b;
  View a, b;
  int64_t ldc = 1;
  BatchAxis batch;
  std::vector<BatchAxis> loop;

  int64_t count() const {
    int64_t calls = 1;
    for (const BatchAxis& axis : loop) calls *= axis.size;
    return calls;
  }
  // Where call `index` begins.
  BatchAxis offset(int64_t index) const {
    BatchAxis at;
    for (size_t i = loop.size(); i-- > 0; index /= loop[i].size) {
      int64_t step = index % loop[i].size;
      at.a += step * loop[i].a, at.b += step * loop[i].b, at.c += step * loop[i].c;
    }
    return at;
  }
};

namespace detail {

inline bool broadcasts(const ProductShape& s, int64_t BatchAxis::*step) {
  return std::any_of(s.batch.begin(), s.batch.end(), [&](const BatchAxis& axis) { return axis.*step == 0; });
}

// The longest axis becomes the strided batch, the others a loop.
inline void split_batch(Calls& calls) {
  calls.loop = calls.shape.batch;
  calls.batch = {};
  auto longer = [](const BatchAxis& x, const BatchAxis& y) { return x.size < y.size; };
  auto longest = std::max_element(calls.loop.begin(), calls.loop.end(), longer);
  if (longest == calls.loop.end()) return;
  calls.batch = *longest;
  calls.loop.erase(longest);
}

inline Calls make_calls(ProductShape s, bool copy_a, bool copy_b) {
  Calls calls;
  if (copy_a) calls.copy_a = make_dense(s, &ProductShape::a, &BatchAxis::a, s.m, s.k);
  if (copy_b) calls.copy_b = make_dense(s, &ProductShape::b, &BatchAxis::b, s.k, s.n);
  simplify(s);
  calls.shape = std::move(s);
  split_batch(calls);
  return calls;
}

}  // namespace detail

// Up to so many calls cost less than copying an operand so that there is one.
constexpr int64_t kLoopedCalls = 8;

// None where cuBLASLt does not apply: empty operands, and sizes beyond its 32 bits. c must be row-major.
inline std::optional<Calls> plan_calls(ProductShape s) {
  simplify(s);
  constexpr int64_t kLimit = std::numeric_limits<int32_t>::max();
  if (s.m <= 0 || s.n <= 0 || s.k <= 0 || s.batch_count() <= 0) return std::nullopt;
  bool copy_a = !view_of(s.m, s.k, s.a), copy_b = !view_of(s.k, s.n, s.b);
  Calls calls = detail::make_calls(s, copy_a, copy_b);
  if (calls.count() > kLoopedCalls) {
    // Operands that are as large as the batch: a copy costs what reading them costs.
    bool dense_a = copy_a || !detail::broadcasts(s, &BatchAxis::a);
    bool dense_b = copy_b || !detail::broadcasts(s, &BatchAxis::b);
    Calls other = detail::make_calls(s, dense_a, dense_b);
    if (other.count() < calls.count()) calls = std::move(other);
  }
  const ProductShape& shape = calls.shape;
  std::optional<View> a = view_of(shape.m, shape.k, shape.a), b = view_of(shape.k, shape.n, shape.b),
                      c = view_of(shape.m, shape.n, shape.c);
  if (!a || !b || !c || (c->column_major && shape.m > 1 && shape.n > 1)) return std::nullopt;
  if (shape.m > kLimit || shape.n > kLimit || shape.k > kLimit || calls.batch.size > kLimit) return std::nullopt;
  calls.a = *a, calls.b = *b;
  calls.ldc = shape.m == 1 ? shape.n : shape.c.row;
  return calls;
}

// The alignment in bytes that all matrices of a strided batch share, when the first has `alignment`.
inline uint32_t batch_alignment(uint32_t alignment, const BatchAxis& batch, int64_t step, int64_t item) {
  uint32_t result = alignment;
  while (batch.size > 1 && result > item && step * item % result != 0) result /= 2;
  return result;
}

}  // namespace cuda::linalg
