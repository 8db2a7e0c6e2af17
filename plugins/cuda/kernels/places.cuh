// SPDX-License-Identifier: Apache-2.0
// Elements that an index names along one axis: where each lies, as a number to sort by.
#pragma once

#include "index_operand.hpp"
#include "kernel.hpp"

namespace cuda {
namespace {

// Strides of `t` without the axis, which the index stands for.
struct Others {
  int64_t stride[PG_MAX_RANK] = {}, step = 0;
  Others(const pg_tensor& t, int64_t axis) {
    for (uint32_t i = 0; i < t.rank; i++) stride[i] = i == axis ? 0 : t.stride[i];
    if (t.rank > 0) step = t.stride[axis];
  }
};
inline int64_t size_along(const pg_tensor& t, int64_t axis) { return t.rank == 0 ? 1 : t.shape[axis]; }

template <int N>
Walk<N> walk_together(const pg_tensor& shape, const int64_t* const (&strides)[N]) {
  int64_t stride[N][PG_MAX_RANK] = {};
  for (int k = 0; k < N; k++) {
    for (uint32_t i = 0; i < shape.rank; i++) stride[k][i] = strides[k][i];
  }
  return Walk<N>(pg::make_nest<N>(shape.rank, shape.shape, stride, false));
}

struct Numbered {
  Walk<2> walk;  // index, what it names elements of, without the axis
  int64_t size, step, total;
  uint32_t index_dtype;
};
// `whole` is contiguous; the index may be shorter along the other axes.
inline Numbered number_of(const pg_tensor& index, const pg_tensor& whole, int64_t axis) {
  Others others(whole, axis);
  return {walk_together<2>(index, {index.stride, others.stride}), size_along(whole, axis), others.step,
          pg::element_count(whole), pg::dtype_of(index)};
}

// keys: the number of the element that each entry of the index names, `total` where it is out of range; entries: 0, 1,
// ...
__global__ void __launch_bounds__(kThreads)
    number_places(const __grid_constant__ Numbered n, const void* index, uint64_t* keys, uint32_t* entries,
                  const __grid_constant__ FaultSite site) {
  int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t p = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; p < n.walk.count; p += stride) {
    int64_t at[2];
    n.walk.locate(p, at);
    int64_t value = load_index(index, n.index_dtype, at[0]);
    bool outside = is_outside(value, n.size);
    if (outside) note_fault(site, value, p);
    keys[p] = static_cast<uint64_t>(outside ? n.total : at[1] + value * n.step);
    entries[p] = static_cast<uint32_t>(p);
  }
}

}  // namespace
}  // namespace cuda
