// SPDX-License-Identifier: Apache-2.0
// Private layouts of inputs: what a kernel makes once of a weight (pg_kernel's `pack`) and reads at later launches.
#pragma once

#include "call/signature.hpp"
#include "tensor/tensor.hpp"

namespace perigee {

constexpr uint32_t kPackedInputs = 8;  // inputs beyond have no private layouts

// The private layout of an input, once it has been used twice without a change in between; NULL before, and where
// there is no memory for it. `launch` is the one that will read it. Any thread, with the stream's turn.
StorageRef packed_form(Signature& s, Tensor& x, uint32_t input, const pg_launch& launch);

}  // namespace perigee
