// SPDX-License-Identifier: Apache-2.0
// CRC-32C (Castagnoli), as TFRecord files have it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace formats {

uint32_t crc32c(const void* data, size_t bytes);

// Turned and moved, so that what holds checksums can have one itself.
inline uint32_t masked_crc32c(const void* data, size_t bytes) {
  const uint32_t c = crc32c(data, bytes);
  return (c >> 15 | c << 17) + 0xa282ead8u;
}

}  // namespace formats
