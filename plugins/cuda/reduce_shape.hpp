// SPDX-License-Identifier: Apache-2.0
// A reduction's shape, prepared once: which axes stay and which go, the kernel that suits it, and its arguments.
#pragma once

#include "reduce_plan.hpp"
#include "walk.hpp"

namespace cuda {

constexpr uint64_t kStateBytes = 24;

template <int N>
int64_t inner_of(const Walk<N>& walk) {
  return walk.rank == 0 ? 1 : walk.extent[walk.rank - 1].size;
}
template <int N>
int64_t inner_stride_of(const Walk<N>& walk, int operand) {
  return walk.rank == 0 ? 1 : walk.stride[operand][walk.rank - 1];
}

// Whether the operand can be read in packets of so many elements: its innermost dimension is dense and a multiple of
// them, and so are all other strides.
template <int N>
bool in_packets(const Walk<N>& walk, int operand, int64_t elements) {
  if (walk.rank == 0 || inner_stride_of(walk, operand) != 1 || inner_of(walk) % elements != 0) return false;
  for (int i = 0; i + 1 < walk.rank; i++) {
    if (walk.stride[operand][i] % elements != 0) return false;
  }
  return true;
}

// The same walk in packets; strides stay in elements.
template <int N>
Walk<N> packed(Walk<N> walk, int64_t elements) {
  int last = walk.rank - 1;
  walk.count /= elements;
  walk.narrow = walk.count < kNarrow;
  walk.extent[last] = Extent(walk.extent[last].size / elements);
  for (int k = 0; k < N; k++) walk.stride[k][last] *= elements;
  return walk;
}

// What the kernels of reduce.cuh get, next to the reducer. N operands of one dtype.
template <int N>
struct ReduceArguments {
  const char* base[N] = {};
  uint32_t dtype = 0;
  int32_t lanes = 1;
  bool linear = false;  // elements of a result are neighbours, in every operand
  bool packed = false;  // `reduced` is in packets of 16 aligned bytes
  int64_t results = 0, elements = 0, per_part = 0;
  int64_t columns = 0, tiles = 0;  // columns: 0 where reduced by rows
  void* to = nullptr;              // states instead of results
  const void* from = nullptr;      // states instead of elements, `parts` a result
  int64_t parts = 1, from_result = 0, from_part = 0;
  Walk<N + 1> kept;  // output, operands
  Walk<N> reduced;
};

template <int N>
class ReduceShape {
 public:
  ReduceShape() = default;
  // kept[0] are the output's strides, kept[1 + n] operand n's. ordered: results (reduced elements) are numbered in
  // row-major order. width: elements of a packet.
  ReduceShape(uint32_t dtype, int64_t width, const pg::Nest<N + 1>& kept, const pg::Nest<N>& reduced)
      : dtype_(dtype), width_(width), kept_(kept), reduced_(reduced) {
    linear_ = true;
    for (int n = 0; n < N; n++) linear_ = linear_ && reduced_.linear(n);
    bool side_by_side = kept_.rank > 0 && reduced_.count > 1;
    for (int n = 0; n < N; n++) side_by_side = side_by_side && inner_stride_of(kept_, n + 1) == 1;
    in_columns_ = side_by_side && inner_stride_of(reduced_, 0) != 1;
    in_packets_ = width > 1 && !linear_;
    for (int n = 0; n < N; n++) {
      in_packets_ = in_packets_ && in_packets(reduced_, n, width) && multiples(kept_, n + 1, width);
    }
    if (in_columns_) {
      int64_t columns = inner_of(kept_), outer = columns == 0 ? 0 : kept_.count / columns;
      columns_ = plan_columns(outer, columns, reduced_.count);
    } else {
      rows_ = plan_rows(kept_.count, reduced_.count, linear_ || in_packets_ ? width : 1);
    }
  }

  int64_t results() const { return kept_.count; }
  int64_t elements() const { return reduced_.count; }
  uint64_t workspace() const {
    int64_t parts = in_columns_ ? columns_.parts : rows_.parts;
    return parts > 1 ? static_cast<uint64_t>(parts * kept_.count) * kStateBytes : 0;
  }

  ReduceArguments<N> arguments(const void* const* base, int64_t width) const {
    ReduceArguments<N> a;
    bool aligned = width == width_;
    for (int n = 0; n < N; n++) {
      a.base[n] = static_cast<const char*>(base[n]);
      aligned = aligned && (reinterpret_cast<uintptr_t>(base[n]) & 15u) == 0;
    }
    a.dtype = dtype_, a.results = kept_.count, a.elements = reduced_.count;
    a.kept = kept_, a.reduced = reduced_;
    if (in_columns_) {
      a.lanes = columns_.lanes, a.per_part = columns_.per_part, a.parts = columns_.parts, a.tiles = columns_.tiles;
      a.columns = inner_of(kept_);
    } else {
      a.linear = linear_;
      a.packed = in_packets_ && aligned;
      if (a.packed) a.reduced = packed(reduced_, width_);
      a.lanes = rows_.lanes, a.per_part = rows_.per_part, a.parts = rows_.parts;
    }
    return a;
  }
  const Grid& grid() const { return in_columns_ ? columns_.grid : rows_.grid; }
  // Turns the arguments of the first launch into those that reduce its states.
  void second_pass(ReduceArguments<N>& a, const void* states) const {
    a.from = states, a.to = nullptr;
    a.from_result = in_columns_ ? 1 : a.parts;
    a.from_part = in_columns_ ? kept_.count : 1;
    a.lanes = plan_rows(kept_.count, a.parts, 1, false).lanes;
  }

 private:
  template <int M>
  static bool multiples(const Walk<M>& walk, int operand, int64_t width) {
    for (int i = 0; i < walk.rank; i++) {
      if (walk.stride[operand][i] % width != 0) return false;
    }
    return true;
  }

  uint32_t dtype_ = 0;
  int64_t width_ = 1;
  Walk<N + 1> kept_;
  Walk<N> reduced_;
  bool linear_ = false, in_columns_ = false, in_packets_ = false;
  RowsPlan rows_;
  ColumnsPlan columns_;
};

// Strides of the operands split into what stays and what goes.
template <int N>
struct ReduceAxes {
  uint32_t kept = 0, reduced = 0;
  int64_t kept_shape[PG_MAX_RANK] = {}, reduced_shape[PG_MAX_RANK] = {};
  int64_t kept_stride[N + 1][PG_MAX_RANK] = {}, reduced_stride[N][PG_MAX_RANK] = {};

  // Axis i of x (and of the others) is reduced when bit i of `axes` is set.
  ReduceAxes(const pg_tensor* const (&operands)[N], uint32_t axes) {
    const pg_tensor& x = *operands[0];
    for (uint32_t i = 0; i < x.rank; i++) {
      bool gone = (axes >> i & 1u) != 0;
      (gone ? reduced_shape[reduced] : kept_shape[kept]) = x.shape[i];
      for (int n = 0; n < N; n++) {
        (gone ? reduced_stride[n][reduced] : kept_stride[n + 1][kept]) = operands[n]->stride[i];
      }
      (gone ? reduced : kept)++;
    }
  }
};

}  // namespace cuda
