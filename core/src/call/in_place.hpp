// SPDX-License-Identifier: Apache-2.0
// What a write in place must not spoil: other inputs that share its memory, and values that its gradient rule uses.
#pragma once

#include "call/eager.hpp"
#include "tape/tape.hpp"

namespace perigee {

// Calls the operator with copies of those inputs that share memory with what it writes to, the target in place or an
// input, but that lie in it otherwise: a kernel may write before it has read all of them. False where there are none;
// nothing has been done then.
bool call_separated(Signature& s, Tensor* const* inputs, const void* attrs, TensorRef* outputs, uint32_t output_count);

// Where nothing writes into the target as it lies there, or at all: computes the operator as if it were not in place,
// and copies the result over. The tape sees both.
void call_apart(Signature& s, Tensor* const* inputs, const void* attrs, TensorRef* outputs, uint32_t output_count);

// The target as it is before the write, with its history, where the tape will save it; else null.
TensorRef target_before(const TapeCall& call);

}  // namespace perigee
