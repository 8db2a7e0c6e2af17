// SPDX-License-Identifier: Apache-2.0
// Writing, or folding in, elements at indices: what scatter, index_put and their kin share.
#pragma once

#include "perigee/kernels/strided.hpp"
#include "storage.hpp"

namespace cpu {

enum class Fold { write, add, multiply, largest, smallest };

// for b in before, for i in 0 .. count, for k in inner:
//   target[b][index[b][i][k] * step[0]][k] (fold)= source[b][i][k]
// in that order for each element of the target, on however many threads.
struct ScatterPlan {
  enum { target, source, index };  // operands
  pg::Nest<3> before, inner;
  int64_t count = 0;
  int64_t step[3] = {};  // of the operands from one i to the next; of the target: what an index counts
  int64_t limit = 0;     // indices are in [0, limit)
  // Different b write to different places, and may be dealt out to threads.
  bool split_before = true;
};

// All of the storage type; only Fold::write takes float16 and bfloat16.
void scatter_fold(const ScatterPlan& plan, Storage type, Fold fold, void* target, const void* source,
                  const int64_t* index);

// target, source (or result) and index of scatter (or gather), the last two of one shape, along an axis.
ScatterPlan scatter_plan(const pg_tensor& target, const pg_tensor& source, const pg_tensor& index, uint32_t axis);

// source[b][i][k] = target[b][index[b][i][k] * step[0]][k], of elements of a size.
void gather_elements(const ScatterPlan& plan, int bytes, const void* target, void* source, const int64_t* index);

// An index tensor without the axes along which it is broadcast: read once, shown with strides of 0.
struct CompactIndex {
  explicit CompactIndex(const pg_tensor& index) : read(index), shown(index) {
    int64_t next = 1;
    for (uint32_t i = index.rank; i-- > 0;) {
      bool repeats = index.shape[i] > 1 && index.stride[i] == 0;
      shape[i] = repeats ? 1 : index.shape[i];
      stride[i] = repeats ? 0 : next;
      next *= shape[i];
    }
    read.shape = shape;
    shown.stride = stride;
  }
  CompactIndex(const CompactIndex&) = delete;
  pg_tensor read, shown;
  int64_t shape[PG_MAX_RANK], stride[PG_MAX_RANK];
};

// A description of its own: a tensor without gaps of the shape, and dtype, of another.
struct DenseLike {
  DenseLike(const pg_tensor& like, uint32_t dtype) : tensor(like) {
    int64_t next = 1;
    for (uint32_t i = like.rank; i-- > 0; next *= like.shape[i]) shape[i] = like.shape[i], stride[i] = next;
    tensor.shape = shape;
    tensor.stride = stride;
    tensor.dtype_code = static_cast<uint16_t>(dtype >> 16);
    tensor.dtype_bits = static_cast<uint16_t>(dtype & 0xffffu);
  }
  DenseLike(const DenseLike&) = delete;
  pg_tensor tensor;
  int64_t shape[PG_MAX_RANK], stride[PG_MAX_RANK];
};

}  // namespace cpu
