// SPDX-License-Identifier: Apache-2.0
// The device's strided copy and fill: any dtype to any, complex included.
#pragma once

#include "perigee/kernels/reference/operand.hpp"

namespace sim {

// Throws pg::Error (not supported) for a dtype that is unknown here.
void check_dtype(uint32_t dtype);

// Of one shape; the two may overlap.
void copy_elements(const pg::reference::Operand& target, const pg::reference::Operand& source);

void fill_elements(const pg::reference::Operand& target, double value);

}  // namespace sim
