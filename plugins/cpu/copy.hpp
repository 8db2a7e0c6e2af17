// SPDX-License-Identifier: Apache-2.0
// Strided copies with conversion, and fills: the device's entries, and kernels that are no more than these.
#pragma once

#include "perigee/plugin.hpp"

namespace cpu {

// Tensors that carry their buffers. Same shape; any strides, any dtypes.
void copy_tensor(const pg_tensor& target, const pg_tensor& source);
void fill_tensor(const pg_tensor& target, const pg_number& value);
inline void fill_tensor(const pg_tensor& target, double value) { fill_tensor(target, pg::make_number(value)); }

// A description with an address.
pg_tensor at_address(const pg_tensor& t, pg_address address);

}  // namespace cpu
