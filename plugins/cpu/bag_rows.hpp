// SPDX-License-Identifier: Apache-2.0
// What kernels/simd/bags.cpp is asked to do.
#pragma once

#include <cstdint>

namespace cpu {

// Sums of rows of a dense table by bag: bag b is index[begin[b]] to index[begin[b + 1] - 1].
struct BagSums {
  const float* table;
  int64_t rows, columns;
  const int64_t *index, *begin;
  int64_t indices, skip;  // how many there are of all bags; skip: an index that does not count, or -1
  const float* weight;    // one for each index, or NULL
  int32_t mean;
  float* out;  // [bags][columns]
};
// Bags [first, last). False where an index is out of range.
using BagSumsFn = bool (*)(const BagSums& bags, int64_t first, int64_t last);
// Where a row's element is larger, or the first NaN: top[i] = row[i], at[i] = place. n elements of float or double.
using LargerRowFn = void (*)(const void* row, int64_t n, int32_t place, void* top, int32_t* at);

}  // namespace cpu
