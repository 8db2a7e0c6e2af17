// SPDX-License-Identifier: Apache-2.0
// The device's copy and fill entries, as kernels on a stream of the current device. Shapes are equal (the caller has
// looked), counts may be 0. Throw PG_E_NOT_SUPPORTED for dtypes that they do not read.
#pragma once

#include "runtime.hpp"

namespace cuda {

void copy_tensor(cudaStream_t stream, const pg_tensor& target, const pg_tensor& source);
void fill_tensor(cudaStream_t stream, const pg_tensor& target, const pg_number& value);

// A description with an address.
inline pg_tensor at_address(const pg_tensor& t, pg_address address) {
  pg_tensor copy = t;
  copy.buffer = address.buffer;
  copy.offset = address.offset;
  return copy;
}

}  // namespace cuda
