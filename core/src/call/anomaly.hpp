// SPDX-License-Identifier: Apache-2.0
// Finding the operator that made the first NaN or infinity.
#pragma once

#include "registry/registry.hpp"
#include "tensor/tensor.hpp"

namespace perigee {

// Fails when an eager call's outputs, or what it wrote into its inputs, hold NaN although no input and no number among
// its attributes did, or an infinity although all of those were finite. Waits for the device.
void check_finite(const Op& op, Tensor* const* inputs, uint32_t input_count, const uint32_t* groups, const void* attrs,
                  bool in_place, const TensorRef* outputs, uint32_t output_count);

}  // namespace perigee
