// SPDX-License-Identifier: Apache-2.0
// The eager builder: runs a call whose signature is known.
#pragma once

#include "call/signature.hpp"

namespace perigee {

// Of a signature that is plain: its kernel, for outputs that are there. Addresses of what is absent are 0. `workspace`:
// s.workspace bytes of the caller's; with buffer 0 they are allocated.
void launch_plain(Signature& s, const pg_address* in, const pg_address* out, const void* attrs,
                  pg_address workspace = {0, 0});
// Work of a signature that has been launched once (tensor/watch.hpp), for outputs that are there.
void launch_again(Signature& s, Tensor* const* inputs, Tensor* const* outputs, const void* attrs, pg_address workspace);
void run_eager(Signature& s, Tensor* const* inputs, const void* attrs, TensorRef* outputs, uint32_t output_count);

}  // namespace perigee
