// SPDX-License-Identifier: Apache-2.0
// Copies of several strided parts in one launch, without conversion: what tensors are joined and cut with.
#pragma once

#include <algorithm>
#include <vector>

#include "kernel.hpp"
#include "units.hpp"
#include "walk.hpp"

namespace cuda {

constexpr int kPartsAtOnce = 8;  // fit into a kernel's parameters

struct CopiedPart {
  Walk<2> walk;  // target, source, in units
  void* target;
  const void* source;
};
template <int N>
struct CopiedParts {
  CopiedPart part[N];
};

template <class U, int N>
static __global__ void __launch_bounds__(kThreads) copy_parts(const __grid_constant__ CopiedParts<N> parts) {
  const CopiedPart& part = parts.part[N == 1 ? 0 : blockIdx.y];
  U* target = static_cast<U*>(part.target);
  const U* source = static_cast<const U*>(part.source);
  int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t p = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; p < part.walk.count; p += stride) {
    int64_t at[2];
    part.walk.locate(p, at);
    target[at[0]] = source[at[1]];
  }
}

// Prepared with the parts' shapes and strides; place(i) says at launch where part i lies.
class PartCopy {
 public:
  explicit PartCopy(uint32_t bytes = 1) : bytes_(bytes), unit_(16) {}

  // `shape` and the strides of both; empty parts need none.
  void add(uint32_t rank, const int64_t* shape, const int64_t* target_stride, const int64_t* source_stride) {
    int64_t stride[2][PG_MAX_RANK] = {};
    for (uint32_t i = 0; i < rank; i++) stride[0][i] = target_stride[i], stride[1][i] = source_stride[i];
    pg::Nest<2> nest = pg::make_nest<2>(rank, shape, stride, true);
    bool rows = nest.rank > 0 && nest.inner_stride(0) == 1 && nest.inner_stride(1) == 1;
    auto numbers = static_cast<uint64_t>(rows ? nest.inner() : 1);
    for (int k = 0; k < 2; k++) {
      for (int i = 0; i + 1 < nest.rank; i++) numbers |= static_cast<uint64_t>(nest.stride[k][i]);
    }
    unit_ = std::max(bytes_, std::min(unit_, unit_of(numbers * bytes_)));
    nests_.push_back(nest);
  }

  struct Place {
    void* target;
    const void* source;
  };
  template <class GetPlace>
  void run(const Launch& launch, const GetPlace& place) const {
    uint64_t addresses = unit_;
    for (size_t i = 0; i < nests_.size(); i++) {
      Place at = place(i);
      addresses |= reinterpret_cast<uint64_t>(at.target) | reinterpret_cast<uint64_t>(at.source);
    }
    with_unit(unit_of(addresses), [&](auto tag) {
      using U = typename decltype(tag)::type;
      if (nests_.size() == 1) return run_from<U, 1>(launch, place, 0);
      for (size_t i = 0; i < nests_.size(); i += kPartsAtOnce) run_from<U, kPartsAtOnce>(launch, place, i);
    });
  }

 private:
  template <class U, int N, class GetPlace>
  void run_from(const Launch& launch, const GetPlace& place, size_t first) const {
    CopiedParts<N> parts;
    int64_t largest = 0;
    uint32_t count = 0;
    for (; count < N && first + count < nests_.size(); count++) {
      Place at = place(first + count);
      parts.part[count] = {Walk<2>(in_units(nests_[first + count], sizeof(U))), at.target, at.source};
      largest = std::max(largest, parts.part[count].walk.count);
    }
    Grid grid = grid_for(largest);
    grid.y = count;
    launch(grid, copy_parts<U, N>, parts);
  }
  pg::Nest<2> in_units(pg::Nest<2> nest, size_t unit) const {
    int64_t factor = static_cast<int64_t>(unit) / bytes_;
    if (factor == 1) return nest;
    for (int k = 0; k < 2; k++) {
      for (int i = 0; i + 1 < nest.rank; i++) nest.stride[k][i] /= factor;
    }
    nest.shape[nest.rank - 1] /= factor;
    nest.count /= factor;
    return nest;
  }

  uint32_t bytes_, unit_;
  std::vector<pg::Nest<2>> nests_;
};

}  // namespace cuda
