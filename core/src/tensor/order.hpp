// SPDX-License-Identifier: Apache-2.0
// Orders of axes: which axis lies within which, in memory.
#pragma once

#include <cstdint>

#include "tensor/meta.hpp"

namespace perigee {

// A permutation of a description's axes, the outermost first.
struct AxisOrder {
  uint32_t rank = 0;
  uint8_t axis[PG_MAX_RANK] = {};

  bool row_major() const {
    for (uint32_t i = 0; i < rank; i++)
      if (axis[i] != i) return false;
    return true;
  }
};

// What memory formats are called ("channels_last" of images [n, c, h, w], "channels_last_3d" of volumes).
enum class MemoryFormat : int32_t { preserve, contiguous, channels_last, channels_last_3d };

// The order of a result of `rank` axes `shape`, to which `count` operands broadcast: of two axes the one is the outer
// one that has the larger stride in the first operand that tells them apart. Absent operands and those of other shapes
// have no say, nor have axes along which an operand is broadcast.
AxisOrder order_of_operands(uint32_t rank, const int64_t* shape, const Meta* const* operands, uint32_t count);
AxisOrder order_of(const Meta& meta);
// Throws where the rank is not the format's. Not for `preserve`.
AxisOrder order_of_format(MemoryFormat format, const Meta& meta);

// Dense, in that order, which may have more axes: those that `shape` has are the last of them.
MetaRef ordered_meta(uint32_t dtype, uint32_t rank, const int64_t* shape, const AxisOrder& order);
// The dense description of such a result, whose dtype, rank and shape `plain` has: an operand's own strides where it
// decides.
MetaRef meta_like_operands(const MetaRef& plain, const Meta* const* operands, uint32_t count);
// Dense, in the description's own order; the description itself where it is dense and has the dtype.
MetaRef keep_order(const Meta& meta, uint32_t dtype);

}  // namespace perigee
