// SPDX-License-Identifier: Apache-2.0
// What a vendor library did not do to its dense result itself: a bias, an activation.
#pragma once

#include "activation.hpp"
#include "runtime.hpp"

namespace cuda {

struct Epilogue {
  const void* bias = nullptr;  // NULL: none
  int64_t bias_stride = 0;
  Activation activation = Activation::kNone;
};

// y [blocks, channels, plane] = activation(y + bias [channels]), floats.
void run_epilogue(cudaStream_t stream, uint32_t dtype, int64_t blocks, int64_t channels, int64_t plane,
                  const Epilogue& epilogue, void* y);

}  // namespace cuda
