// SPDX-License-Identifier: Apache-2.0
// Parts of a batch, each the work of one thread, and what of them has to be added up.
#pragma once

#include "conv/conv.hpp"

namespace pg::cpu {

// Images of a part; 0: the batch stays whole.
int64_t images_of_a_part(const ConvShape& shape);
ConvShape part_of(const ConvShape& shape, int64_t images);

// Sums over the parts are kept by group, of parts that follow each other: neither depends on the threads, and so
// neither do the bits.
constexpr int64_t kMostGroups = 16;
// result[i], of `dtype`, = sum over group < groups of sums[group * step + i].
void add_groups(const float* sums, int64_t groups, int64_t step, int64_t count, uint32_t dtype, void* result);

inline const void* advance(const void* data, int64_t bytes) {
  return data == nullptr ? nullptr : static_cast<const char*>(data) + bytes;
}

}  // namespace pg::cpu
