// SPDX-License-Identifier: Apache-2.0
// A region with reductions of lines, softmax or layer_norm as the source of one kernel. A block takes some lines at a
// time, in stages: what is made of numbers a line, what is made element by element, then the reductions, whose results
// the next stage reads. Of softmax and layer_norm it is a reduction what they know of a line; the next stage makes
// their elements. Between stages lines and numbers lie in shared memory, as in a tensor of their dtype. The kernel's
// parameter is
//
//   int64_t lines, length, tile, packets;   tile: lines of a block at a time; packets: of a line
//   uint64_t aligned;                       as in source.hpp
//   char* data[operands];                   inputs, then outputs
//   uint64_t number[numbers];
//   Axis axis[rank];  int64_t stride[layouts][rank];
//   int64_t room[rooms];                    where lines and numbers lie in shared memory
//   int64_t dealt[lines][2];                threads a line, elements a part; of softmax and layer_norm: threads a line
//   where
//                                           it is read in packets, and where it is not
#pragma once

#include "source.hpp"

namespace cuda::fused {

struct LineSource {
  Source source;
  int64_t length = 0, tile = 0;  // elements of a line, lines of a block at a time
  std::vector<uint64_t> tail;    // of the parameter, behind the strides
  uint32_t shared = 0;           // bytes

  uint64_t argument_bytes() const { return source.argument_bytes() + 8 * (2 + tail.size()); }
};

// Whether a piece is such.
bool has_lines(const pg::Region& piece);
// Refuses a piece that is too large.
LineSource write_lines(const pg::Region& piece);

}  // namespace cuda::fused
