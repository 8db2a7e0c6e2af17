// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace perigee {

// The smallest dtype that holds both (PyTorch's table). 0 is neutral.
uint32_t promote_dtypes(uint32_t a, uint32_t b);

}  // namespace perigee
