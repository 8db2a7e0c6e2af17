// SPDX-License-Identifier: Apache-2.0
// The eager builder: runs a call whose signature is known.
#pragma once

#include "call/signature.hpp"

namespace perigee {

void run_eager(Signature& s, Tensor* const* inputs, const void* attrs, TensorRef* outputs, uint32_t output_count);

}  // namespace perigee
