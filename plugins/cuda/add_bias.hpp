// SPDX-License-Identifier: Apache-2.0
// A bias added to the dense result of a vendor library that did not add it itself.
#pragma once

#include "runtime.hpp"

namespace cuda {

// y [blocks, channels, plane] += bias [channels], floats.
void add_bias(cudaStream_t stream, uint32_t dtype, int64_t blocks, int64_t channels, int64_t plane, const void* bias,
              int64_t bias_stride, void* y);

}  // namespace cuda
