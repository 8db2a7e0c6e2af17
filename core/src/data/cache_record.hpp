// SPDX-License-Identifier: Apache-2.0
// Elements as bytes, for files of this machine's byte order.
#pragma once

#include <string>

#include "data/element.hpp"

namespace perigee {

// Tensors must be on the processor.
std::string to_bytes(const Element& element);
// Throws PG_E_DATA_LOSS where the bytes are none of to_bytes. `last`: a layout that is likely.
Element from_bytes(const char* bytes, size_t size, LayoutRef& last);
uint64_t checksum_of(const char* bytes, size_t size);  // finds damage, not malice

}  // namespace perigee
